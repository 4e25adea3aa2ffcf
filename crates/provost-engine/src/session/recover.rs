//! How a session recovers when the process that performed its effects is gone.

use provost_event::{
    Budget, CallFacts, HookTrigger, HooksDecided, Outcome, PauseReason, ResumeCause, Resumed, Retry,
    RetryCause, Seq, StopRequested, ToolStatus, Usage,
};

use super::{Deciding, Phase, SessionState};
use crate::event::ToolResult;
use crate::session::{
    calls::{approve, run},
    external_calls,
    goal::verify,
    model_call, models, segment, stop, terminal, worktree,
};

/// No process performs the open effects any more: each is performed again or counted as lost.
pub(in crate::session) fn recover(deciding: &mut Deciding<'_>, fresh: &[Seq]) {
    if deciding.state.lifecycle.outcome().is_some() {
        return;
    }
    let lost = deciding.state.lifecycle.phase();
    let running = deciding.state.calls.of_answer().running_effects().collect::<Vec<_>>();
    let timers = deciding.state.calls.of_answer().approval_timers();
    let left = segment::LeftRunning::by(deciding);
    external_calls::end_grace(deciding);
    deciding.commit(Resumed {
        cause: ResumeCause::Interrupted,
        budget: Budget::default(),
        turns_max: None,
        reopens: false,
    });
    timers.into_iter().for_each(|timer| deciding.step.close(timer));
    approve::time_approvals(deciding);
    left.tell(deciding);
    external_calls::settle_lost(deciding);
    stop_at_crash_loop(deciding);
    let asks = recover_questions(deciding);
    terminal::close_terminal_again(deciding);
    worktree::ask_about_worktree_again(deciding);
    if deciding.state.closing().is_some() {
        return;
    }
    if !matches!(lost, Phase::CheckingStop(seq) if asks.contains(&seq))
        && verify::recover_check(deciding, lost, fresh)
    {
        return;
    }
    match lost {
        Phase::Preparing(_) | Phase::Compacting(_) => segment::finish_as_asked(deciding),
        Phase::CheckingStop(seq) if asks.contains(&seq) => segment::finish_as_asked(deciding),
        Phase::Thinking(seq) if fresh.contains(&seq) && !deciding.state.lifecycle.is_stopping() => {}
        Phase::Thinking(seq) => {
            deciding.step.close(seq);
            // One that wasn't begun took nothing.
            let usage = if fresh.contains(&seq) { Usage::default() } else { lost_usage(deciding.state) };
            deciding.settle(usage);
            let call = deciding.state.turns.model_calls();
            let cause = RetryCause::Interrupted;
            deciding.commit(Retry::at_once(call, cause, usage));
            model_call::next_call(deciding);
        }
        Phase::MakingWorktree(seq) => {
            deciding.step.close(seq);
            match deciding.state.lifecycle.stopping().cloned() {
                Some(outcome) => segment::finish(deciding, outcome),
                None => worktree::make(deciding),
            }
        }
        Phase::Waiting(seq) => {
            deciding.step.close(seq);
            models::try_first_model_again(deciding);
            model_call::next_call(deciding);
        }
        Phase::CheckingStop(seq) => {
            deciding.step.close(seq);
            match deciding.state.lifecycle.stopping().cloned() {
                Some(outcome) => segment::finish(deciding, outcome),
                None => stop::check_stop(deciding),
            }
        }
        Phase::Acting => recover_tools(deciding, running, fresh),
        Phase::Ready => model_call::next_call(deciding),
        Phase::Between => segment::finish_as_asked(deciding),
        Phase::New | Phase::Verifying | Phase::Judging(_) | Phase::JudgeWaits(_) => {}
    }
}

/// A session that is interrupted again and again is suspended.
fn stop_at_crash_loop(deciding: &mut Deciding<'_>) {
    let times = deciding.state.lifecycle.interruptions();
    if times >= deciding.state.assignment.limits().interruptions_max
        && !deciding.state.lifecycle.is_stopping()
    {
        let outcome = Outcome::Paused { why: PauseReason::CrashLoop { times } };
        deciding.commit(StopRequested { agent: None, outcome, for_child: false });
    }
}

/// Repeats the open questions to hooks, or records them as unanswered if the session is to stop anyway.
fn recover_questions(deciding: &mut Deciding<'_>) -> Vec<Seq> {
    let questions = deciding.state.hooks.entries();
    for seq in questions.iter().copied() {
        deciding.step.close(seq);
        let waits = matches!(
            deciding.state.hooks.get(seq),
            Some(HookTrigger::Closing { .. } | HookTrigger::Prompt { .. })
        );
        let keeps = waits && deciding.state.lifecycle.phase() != Phase::Preparing(seq);
        if deciding.state.lifecycle.is_stopping() && !keeps {
            deciding.commit(HooksDecided { asked: seq, reports: Vec::new(), scripts: None });
        } else {
            deciding.open_question(seq);
        }
    }
    questions
}

fn recover_tools(deciding: &mut Deciding<'_>, running: Vec<Seq>, fresh: &[Seq]) {
    let stops = deciding.state.lifecycle.is_stopping();
    // Those with a result that waits for earlier ones have ended.
    let open = running.into_iter().filter(|seq| !deciding.state.calls.is_held(*seq)).collect::<Vec<_>>();
    for seq in open {
        let result = match fresh.contains(&seq) {
            true if stops => ToolResult::without_run(
                ToolStatus::Cancelled,
                "Not run: the agent was stopped before it began.",
            ),
            true => continue,
            false if !stops && run::is_idempotent(deciding, seq) => {
                run::start_again(deciding, seq);
                continue;
            }
            false => ToolResult::lost(),
        };
        deciding.state.calls.hold(seq, result.clone());
        deciding.step.hold(seq, result);
    }
    run::advance(deciding);
}

impl ToolResult {
    pub(super) fn lost() -> Self {
        Self::without_run(
            ToolStatus::Unknown,
            "Provost was interrupted while this ran. Whether and how far it took effect is unknown: \
             look before you do it again.",
        )
    }

    pub(super) fn without_run(status: ToolStatus, output: impl Into<String>) -> Self {
        Self {
            status,
            output: output.into(),
            images: Vec::new(),
            whole: None,
            duration_ms: 0,
            memory: None,
            plan: None,
            facts: CallFacts::default(),
            tools: Vec::new(),
            asks: None,
        }
    }
}

/// The usage of a lost model call, which is unknown. An external program's own calls aren't charged.
pub(in crate::session) fn lost_usage(state: &SessionState) -> Usage {
    if state.assignment.is_external() { Usage::default() } else { Usage::unconfirmed() }
}
