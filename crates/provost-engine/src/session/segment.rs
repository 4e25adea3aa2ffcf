//! How a segment of work begins and ends: start, stop, suspension, end and resumption.

use provost_event::{
    Block, Ended, ErrorClass, HookPoint, HookTrigger, HooksAsked, ItemKind, Outcome, PauseReason, Paused,
    ResumeCause, Resumed, SessionStarted, StopRequested, UserMessage,
};

use super::{Deciding, Phase};
use crate::RunEvent;
use crate::run::DELIVERED;
use crate::session::last_report::last_report;
use crate::session::{
    answer,
    calls::{approve, delegate, run},
    change, external_calls, final_summary,
    goal::verify,
    hooks::ask,
    model_call, services, stop, terminal, worktree,
};

pub(in crate::session) fn start(deciding: &mut Deciding<'_>, started: SessionStarted) {
    deciding.commit(started);
    worktree::make(deciding);
    if deciding.state.lifecycle.phase() == Phase::Ready {
        model_call::next_call(deciding);
    }
}

pub(in crate::session) fn proceed(deciding: &mut Deciding<'_>, turn: u32) {
    let between = deciding.state.lifecycle.phase() == Phase::Between && deciding.state.lifecycle.is_live();
    if between && turn == deciding.state.turns.next() && !verify::looks_at_goal(deciding) {
        model_call::next_call(deciding);
    }
}

/// Suspends or ends the session, once hooks have been notified. Nothing is in flight any more.
pub(in crate::session) fn finish(deciding: &mut Deciding<'_>, outcome: Outcome) {
    let outcome = final_summary::without_summary(deciding.state, outcome);
    if deciding.state.closing().is_some()
        || final_summary::ask_final_summary(deciding, &outcome)
        || verify::checks_at_limit(deciding, &outcome)
    {
        return;
    }
    let Some(about) = ask::closing_trigger(deciding.state, &outcome) else {
        return close(deciding, outcome);
    };
    if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = deciding.state.lifecycle.phase() {
        deciding.step.close(timer);
    }
    if !deciding.state.lifecycle.stops_as(&outcome) {
        external_calls::end_grace(deciding);
        deciding.commit(StopRequested { agent: None, outcome, for_child: false });
    }
    deciding.ask(about);
}

/// Ends the segment. Calls that stay open in a suspended session get a result when it ends.
pub(in crate::session) fn close(deciding: &mut Deciding<'_>, outcome: Outcome) {
    if outcome.is_final() {
        end_calls(deciding);
    }
    if terminal::closes_terminal(deciding, &outcome) || worktree::asks_about_worktree(deciding, &outcome) {
        return;
    }
    deciding.state.open_effects().into_iter().for_each(|seq| deciding.step.close(seq));
    end_segment(deciding, outcome);
}

/// Ends a suspended session, in a segment of its own. Nothing is in flight, and there may be no process to
/// call hooks.
fn end_suspended(deciding: &mut Deciding<'_>, outcome: Outcome) {
    begin(deciding, ResumeCause::ToEnd, None);
    end_calls(deciding);
    end_segment(deciding, outcome);
}

/// Gives each open call its result.
fn end_calls(deciding: &mut Deciding<'_>) {
    if deciding.state.lifecycle.phase() == Phase::Acting || deciding.state.stands_aside_of(Phase::Acting) {
        if let Phase::JudgeWaits(timer) = deciding.state.lifecycle.phase() {
            deciding.step.close(timer);
        }
        delegate::cut_delegated(deciding);
        run::cancel_calls(deciding);
    }
}

fn end_segment(deciding: &mut Deciding<'_>, outcome: Outcome) {
    external_calls::settle_lost(deciding);
    let for_child = deciding.state.lifecycle.stops_for_child();
    if outcome.is_final() {
        deciding.commit(Ended { outcome: outcome.clone() });
    } else {
        deciding.commit(Paused { outcome: outcome.clone() });
    }
    let session = deciding.state.session;
    let text = last_report(deciding.state, &outcome);
    deciding.tell_run(RunEvent::SessionStopped { session, outcome, text, for_child });
}

/// After a turn that isn't the last: the next turn, or a wait for the event that allows it.
pub(in crate::session) fn next_turn(deciding: &mut Deciding<'_>) {
    // A stepped session checks the goal when it is told to take the next turn.
    if deciding.state.lifecycle.phase() != Phase::Between && verify::looks_at_goal(deciding) {
        return;
    }
    let makes_way =
        deciding.state.lifecycle.phase() == Phase::Between && deciding.state.lifecycle.is_yielding();
    if deciding.state.lifecycle.phase() == Phase::Ready || deciding.state.lifecycle.is_stopping() || makes_way
    {
        model_call::next_call(deciding);
    }
}

pub(in crate::session) fn stop(deciding: &mut Deciding<'_>, outcome: Outcome) {
    if deciding.state.lifecycle.outcome().is_some() {
        if outcome.is_final() {
            end_suspended(deciding, outcome);
        }
        return;
    }
    if outcome.is_final() {
        // A repeated stop by a person doesn't wait for the last hooks.
        deciding.state.closing().into_iter().for_each(|seq| deciding.step.abort(seq));
    }
    if let (Some(seq), Outcome::BudgetExhausted(exhausted)) =
        (final_summary::ending_at_limit(deciding.state), &outcome)
        && exhausted.used >= exhausted.limit
    {
        // The time for the final summary and for the last check of the goal is over too.
        deciding.step.abort(seq);
    }
    if !deciding.state.lifecycle.accepts_stop(&outcome) {
        return;
    }
    external_calls::end_grace(deciding);
    deciding.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
    ask::stop_asking(deciding);
    if deciding.state.closing().is_some() {
        return;
    }
    match deciding.state.lifecycle.phase() {
        Phase::Thinking(seq) | Phase::MakingWorktree(seq) | Phase::Judging(seq) => deciding.step.abort(seq),
        Phase::CheckingStop(seq) if deciding.state.hooks.is_open(seq) => {}
        Phase::CheckingStop(seq) => deciding.step.abort(seq),
        Phase::Preparing(seq) | Phase::Compacting(seq) if deciding.state.hooks.is_open(seq) => {}
        Phase::Preparing(_) | Phase::Compacting(_) => finish(deciding, outcome),
        Phase::Acting => {
            let running = deciding.state.calls.of_answer().running_effects().collect::<Vec<_>>();
            running.into_iter().for_each(|seq| deciding.step.abort(seq));
            run::advance(deciding);
        }
        Phase::New
        | Phase::Ready
        | Phase::Between
        | Phase::Waiting(_)
        | Phase::Verifying
        | Phase::JudgeWaits(_) => finish(deciding, outcome),
    }
}

/// Begins another segment.
pub(in crate::session) fn resume(
    deciding: &mut Deciding<'_>,
    by: String,
    turns_max: Option<u32>,
    text: Option<String>,
) {
    let Some(before) = deciding.state.lifecycle.outcome().cloned() else { return };
    begin(deciding, ResumeCause::Asked { by: by.clone() }, turns_max);
    tell_of_end(deciding, &before, text.is_some());
    if text.is_none() && is_cut_off(&before) {
        deciding.say(ItemKind::Continue, answer::CONTINUE);
    }
    change::tell_of_changed_goal(deciding);
    match text {
        // Open questions are asked as soon as the session is resumed.
        Some(text) if deciding.state.assignment.has_hook(HookPoint::PromptSubmit) => {
            deciding.commit(HooksAsked { about: HookTrigger::Prompt { text, by } });
        }
        Some(text) => deciding.commit(UserMessage { content: vec![Block::Text(text)], by }),
        None => {}
    }
    go_on_from_phase(deciding);
}

/// Whether the segment ended amid an answer.
fn is_cut_off(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paused { why: PauseReason::Model(trouble) } if trouble.class == ErrorClass::OutputCap)
}

/// Begins another segment after a failure, within the limits of the previous one.
pub(in crate::session) fn restart(deciding: &mut Deciding<'_>, attempt: u32, attempts_max: u32) {
    let Some(before) = deciding.state.lifecycle.outcome().map(ToString::to_string) else { return };
    let before = before.lines().next().unwrap_or_default();
    begin(deciding, ResumeCause::Retry { attempt }, None);
    let body = format!(
        "Your work had failed ({before}), and you are restarted: retry {attempt} of {attempts_max}. What you did \
         before still stands, and your limits are the same. Look at how far you came, and go on from there; if what \
         you did led to the failure, do it differently."
    );
    deciding.say(ItemKind::Resumed, body);
    go_on_from_phase(deciding);
}

/// Tells the agent how its last segment ended, unless it was only suspended.
fn tell_of_end(deciding: &mut Deciding<'_>, outcome: &Outcome, is_told_more: bool) {
    if !outcome.is_final() {
        return;
    }
    let body = match outcome {
        Outcome::Completed { .. } if is_told_more => return,
        Outcome::Completed { .. } => {
            "You were done, and have been asked to go on. Look whether everything that was asked for is \
             done, and do what is missing."
                .to_owned()
        }
        Outcome::Cancelled { by } if by == DELIVERED => {
            "What you had come to was delivered, and you are asked to go on with it.".to_owned()
        }
        outcome => {
            format!("Your work had ended ({outcome}), and you have been asked to go on with it.")
        }
    };
    deciding.say(ItemKind::Resumed, &body);
}

pub(in crate::session) fn finish_as_asked(deciding: &mut Deciding<'_>) {
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        finish(deciding, outcome);
    }
}

/// The session is worked on again. Other entries at the beginning of the segment are committed before it
/// proceeds.
pub(in crate::session) fn begin(deciding: &mut Deciding<'_>, cause: ResumeCause, turns_max: Option<u32>) {
    let budget = provost_event::Budget::default();
    let reopens = deciding.state.has_ended();
    let left = LeftRunning::by(deciding);
    let goes_on = cause != ResumeCause::ToEnd;
    deciding.commit(Resumed { cause, budget, turns_max, reopens });
    // At once: that entry names the timer.
    approve::time_approvals(deciding);
    if goes_on {
        left.tell(deciding);
    }
}

/// What an agent has left running, as of the end of its last segment.
pub(in crate::session) struct LeftRunning {
    /// Background commands, of which none outlives a segment; in words.
    jobs: Vec<String>,
    /// What it is to be told of its services, which do.
    services: Option<String>,
}

impl LeftRunning {
    /// Taken before the entry that begins the next segment.
    pub(in crate::session) fn by(deciding: &Deciding<'_>) -> Self {
        Self { jobs: deciding.state.calls.jobs().to_vec(), services: services::summary(deciding) }
    }

    /// Tells the agent what became of it.
    pub(in crate::session) fn tell(self, deciding: &mut Deciding<'_>) {
        if !self.jobs.is_empty() {
            let body = format!(
                "You were interrupted or suspended, and background jobs don't outlive that. None of these runs any more: \
                 {}. `jobs` tells how each ended and shows the end of its output. Start again what you still need.",
                self.jobs.join(", ")
            );
            deciding.say(ItemKind::Resumed, body);
        }
        self.services.into_iter().for_each(|text| deciding.say(ItemKind::Resumed, text));
    }
}

/// Proceeds from the phase in which the last segment ended.
pub(in crate::session) fn go_on_from_phase(deciding: &mut Deciding<'_>) {
    let questions = deciding.state.hooks.entries();
    questions.into_iter().for_each(|seq| deciding.open_question(seq));
    match deciding.state.lifecycle.phase() {
        Phase::CheckingStop(_) => stop::check_stop(deciding),
        Phase::Ready => model_call::next_call(deciding),
        Phase::Acting => run::advance(deciding),
        Phase::MakingWorktree(_) => worktree::make(deciding),
        Phase::New
        | Phase::Between
        | Phase::Verifying
        | Phase::Judging(_)
        | Phase::JudgeWaits(_)
        | Phase::Thinking(_)
        | Phase::Waiting(_)
        | Phase::Preparing(_)
        | Phase::Compacting(_) => {}
    }
}
