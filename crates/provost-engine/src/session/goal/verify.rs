//! Verifying the goal: on a claim, by interval, and at a limit.

use provost_event::{
    GoalCheckStarted, GoalCleared, GoalFinding, GoalTrigger, GoalVerdict, ItemKind, Origin, Outcome,
    PauseReason, Retry, RetryCause, Seq, StopRequested, SystemItem, Verdict, Verification,
};

use crate::RunEvent;
use crate::session::{
    Deciding, Phase, external_calls, goal::judge, hooks::decisions, model_call, progress, recover, segment,
    stop,
};

/// What follows a verdict.
enum AfterVerdict {
    /// The agent, which asked to stop, may do so.
    LetGo,
    /// The agent is done, although it didn't ask to stop.
    Complete,
    /// The agent is told what is missing.
    NotReached { reasoning: String, suggestions: Vec<String> },
    /// The session stops with this outcome or the one requested before, or else continues.
    GoOn(Option<Outcome>),
}

impl AfterVerdict {
    /// `unheard` says whether a message to the agent came after its last call; `rest` is the outcome where the goal
    /// is unverified.
    fn of(finding: GoalFinding, trigger: GoalTrigger, unheard: bool, rest: Option<Outcome>) -> Self {
        match (finding, trigger) {
            (GoalFinding::Achieved { .. }, GoalTrigger::Claim) => Self::LetGo,
            (GoalFinding::Achieved { .. }, _) if !unheard => Self::Complete,
            (GoalFinding::Achieved { .. }, _) => Self::GoOn(None),
            (GoalFinding::NotAchieved { reasoning, suggestions, .. }, _) => {
                Self::NotReached { reasoning, suggestions }
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Limit) => Self::GoOn(None),
            (GoalFinding::Unverified { .. }, GoalTrigger::Interval) => {
                let unreachable =
                    |why: &PauseReason| matches!(why, PauseReason::JudgeUnreachable { times: 1.., .. });
                let suspends = |rest: &Outcome| matches!(rest, Outcome::Paused { why } if unreachable(why));
                Self::GoOn(rest.filter(suspends))
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Claim) => Self::GoOn(rest),
        }
    }
}

/// Begins to verify the goal: first by the stop hooks, then by the judges.
pub(in crate::session) fn start_check(deciding: &mut Deciding<'_>, trigger: GoalTrigger) {
    let Some(generation) = deciding.state.goal.next_generation() else { return };
    let turn = model_call::turn_checked(deciding.state, trigger);
    deciding.commit(GoalCheckStarted { trigger, turn, generation });
    match deciding.state.lifecycle.phase() {
        Phase::CheckingStop(_) => stop::put_stop_question(deciding),
        _ => judge::ask_judge(deciding),
    }
}

/// Continues a verification that was interrupted.
pub(in crate::session) fn go_on_checking(deciding: &mut Deciding<'_>) {
    match (deciding.state.goal.live_trigger(), deciding.state.lifecycle.phase()) {
        (Some(GoalTrigger::Claim), Phase::CheckingStop(_)) => stop::check_stop(deciding),
        (Some(_), Phase::CheckingStop(_)) => stop::put_stop_question(deciding),
        (Some(_), _) => judge::ask_judge(deciding),
        (None, _) => decisions::go_on_stopping(deciding),
    }
}

/// The process that called the judge, or the stop hooks for a verification, is gone. Returns whether a
/// verification was lost.
pub(in crate::session) fn recover_check(deciding: &mut Deciding<'_>, lost: Phase, fresh: &[Seq]) -> bool {
    match lost {
        Phase::Judging(seq) if fresh.contains(&seq) && deciding.state.goal.is_verified() => {}
        Phase::Judging(seq) => {
            deciding.step.close(seq);
            deciding.settle(recover::lost_usage(deciding.state));
            let call = deciding.state.turns.model_calls();
            deciding.commit(Retry::at_once(
                call,
                RetryCause::Interrupted,
                recover::lost_usage(deciding.state),
            ));
            go_on_checking(deciding);
        }
        Phase::JudgeWaits(seq) => {
            deciding.step.close(seq);
            go_on_checking(deciding);
        }
        Phase::Verifying => go_on_checking(deciding),
        Phase::CheckingStop(seq) if deciding.state.goal.is_verified() => {
            deciding.step.close(seq);
            match deciding.state.goal.live_trigger() {
                // Timers of questions may have been set by the same entry.
                Some(GoalTrigger::Limit) => start_check(deciding, GoalTrigger::Limit),
                _ => go_on_checking(deciding),
            }
        }
        _ => return false,
    }
    true
}

/// Verifies once at a limit whether the goal is reached. Returns whether a verification begins.
pub(in crate::session) fn checks_at_limit(deciding: &mut Deciding<'_>, outcome: &Outcome) -> bool {
    if !deciding.state.may_check_at_limit(outcome) {
        return false;
    }
    if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = deciding.state.lifecycle.phase() {
        deciding.step.close(timer);
    }
    if !deciding.state.lifecycle.stops_as(outcome) {
        external_calls::end_grace(deciding);
        deciding.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
    }
    start_check(deciding, GoalTrigger::Limit);
    true
}

/// Records the result of the verification, and acts on it: with the outcome `rest`, if given, where it is
/// unverified.
pub(in crate::session) fn conclude(deciding: &mut Deciding<'_>, finding: GoalFinding, rest: Option<Outcome>) {
    let Some(check) = deciding.state.goal.live_check() else { return };
    let trigger = check.trigger();
    let generation = check.generation();
    let turn = model_call::turn_checked(deciding.state, trigger);
    deciding.commit(GoalVerdict { trigger, turn, generation, finding: finding.clone() });
    let unheard = deciding.state.turns.is_unheard() || deciding.state.hooks.have_prompts();
    match AfterVerdict::of(finding, trigger, unheard, rest) {
        AfterVerdict::LetGo => stop::let_go(deciding, Verification::Passed),
        AfterVerdict::Complete => {
            let verdict = Verdict::find(deciding.state.turns.text());
            if matches!(deciding.state.lifecycle.phase(), Phase::CheckingStop(_)) {
                // The time limit was reached during the claim.
                deciding.end_turn(0);
            }
            segment::finish(deciding, Outcome::Completed { verdict, verification: Verification::Passed });
        }
        AfterVerdict::NotReached { reasoning, suggestions } => {
            tell_what_is_missing(deciding, trigger, &reasoning, &suggestions);
            not_achieved(deciding, trigger, reasoning);
        }
        AfterVerdict::GoOn(rest) => go_on_unfinished(deciding, rest),
    }
}

fn tell_what_is_missing(
    deciding: &mut Deciding<'_>,
    trigger: GoalTrigger,
    reasoning: &str,
    suggestions: &[String],
) {
    let opening = match trigger {
        GoalTrigger::Claim => "The goal isn't reached yet, so you can't stop.",
        GoalTrigger::Interval | GoalTrigger::Limit => "The goal isn't reached yet.",
    };
    let mut body = format!("{opening} An independent judge who saw the evidence says:\n\n{reasoning}");
    if !suggestions.is_empty() {
        let lines = suggestions.iter().map(|line| format!("\n- {line}")).collect::<String>();
        body.push_str("\n\nWhat it suggests:");
        body.push_str(&lines);
    }
    deciding.commit(SystemItem {
        item: ItemKind::GoalNotReached,
        body,
        origin: Origin::Judges,
        rules: Vec::new(),
    });
}

fn not_achieved(deciding: &mut Deciding<'_>, trigger: GoalTrigger, reasoning: String) {
    if trigger != GoalTrigger::Claim {
        return go_on_unfinished(deciding, None);
    }
    deciding.end_turn(0);
    if deciding.state.goal.has_no_rounds_left(&deciding.state.assignment) {
        segment::finish(deciding, Outcome::Blocked { reasons: vec![format!("judge: {reasoning}")] });
    } else {
        segment::next_turn(deciding);
    }
}

/// Stops with `rest` or with the outcome that was requested before; otherwise continues the work.
pub(in crate::session) fn go_on_unfinished(deciding: &mut Deciding<'_>, rest: Option<Outcome>) {
    match rest.or_else(|| deciding.state.lifecycle.stopping().cloned()) {
        Some(outcome) => segment::finish(deciding, outcome),
        None => segment::next_turn(deciding),
    }
}

/// A turn has ended: suspends the session after too many turns without progress, or verifies the goal if that
/// is due. Returns whether it does either.
pub(in crate::session) fn looks_at_goal(deciding: &mut Deciding<'_>) -> bool {
    if deciding.state.lifecycle.is_stopping() || deciding.state.lifecycle.outcome().is_some() {
        return false;
    }
    if progress::looks_at_progress(deciding) {
        return true;
    }
    let is_due = deciding.state.goal.is_interval_over(deciding.state.goal_facts());
    if is_due {
        start_check(deciding, GoalTrigger::Interval);
    }
    is_due
}

/// Clears the goal. What is in flight stops, and the session is suspended.
pub(in crate::session) fn clear_goal(deciding: &mut Deciding<'_>, by: String) {
    if deciding.state.goal.in_force(&deciding.state.assignment).is_none() {
        return;
    }
    deciding.commit(GoalCleared { by: by.clone() });
    let agent = Some(deciding.state.session.agent);
    if deciding.state.lifecycle.outcome().is_some_and(Outcome::is_preempted) {
        // A preempted session would continue without a request.
        return deciding.tell_run(RunEvent::Pause { agent, by });
    }
    if deciding.state.lifecycle.outcome().is_some() || deciding.state.closing().is_some() {
        return;
    }
    match (deciding.state.lifecycle.stopping().cloned(), deciding.state.lifecycle.phase()) {
        (Some(_), Phase::Judging(seq)) => deciding.step.abort(seq),
        (Some(outcome), Phase::Verifying | Phase::JudgeWaits(_)) => segment::finish(deciding, outcome),
        (Some(_), _) => {}
        (None, _) => {
            if deciding.state.calls.of_answer().are_delegated() {
                deciding.tell_run(RunEvent::Pause { agent, by: by.clone() });
            }
            segment::stop(deciding, Outcome::Paused { why: PauseReason::GoalCleared { by } });
        }
    }
}
