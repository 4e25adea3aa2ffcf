//! Yielding the slot to another agent, and working again.

use provost_event::{Outcome, PauseReason, ResumeCause, Seq, SessionId, YieldRequested};

use super::{Deciding, Phase, Yielding};
use crate::session::{calls::run, model_call, segment};

/// Yields its slot at the next check. A model call in flight has `grace_ms` to finish.
pub(in crate::session) fn yield_slot(deciding: &mut Deciding<'_>, to: Option<SessionId>, grace_ms: u64) {
    if deciding.state.lifecycle.outcome().is_some()
        || deciding.state.lifecycle.is_stopping()
        || deciding.state.lifecycle.is_yielding()
    {
        return;
    }
    let now = deciding.step.now();
    deciding.commit(YieldRequested { to, due: Some(now.at.plus_ms(grace_ms)) });
    deciding.open(now.timer(grace_ms));
    match deciding.state.lifecycle.phase() {
        Phase::Ready | Phase::Between => model_call::next_call(deciding),
        Phase::Waiting(_) | Phase::JudgeWaits(_) => yield_now(deciding),
        Phase::Acting => run::advance_calls(deciding),
        Phase::New
        | Phase::Verifying
        | Phase::Judging(_)
        | Phase::MakingWorktree(_)
        | Phase::Preparing(_)
        | Phase::Thinking(_)
        | Phase::Compacting(_)
        | Phase::CheckingStop(_) => {}
    }
}

/// The grace period is over: a model call can be made again, a tool call can't.
pub(in crate::session) fn grace_is_over(deciding: &mut Deciding<'_>, timer: Seq) {
    let Some(Yielding { to, .. }) = deciding.state.lifecycle.yielding() else { return };
    deciding.step.close(timer);
    deciding.commit(YieldRequested { to, due: None });
    if let Phase::Thinking(call) | Phase::Judging(call) = deciding.state.lifecycle.phase() {
        deciding.step.abort(call);
    }
}

/// At a check: yields the slot if that was requested. Returns whether it does.
pub(in crate::session) fn yielded(deciding: &mut Deciding<'_>) -> bool {
    let yields = deciding.state.lifecycle.is_yielding() && !deciding.state.lifecycle.is_stopping();
    if yields {
        yield_now(deciding);
    }
    yields
}

fn yield_now(deciding: &mut Deciding<'_>) {
    let Some(Yielding { to: by, .. }) = deciding.state.lifecycle.yielding() else { return };
    // Hooks aren't called: the session continues without a request.
    segment::close_segment(deciding, Outcome::Paused { why: PauseReason::Preempted { by } });
}

pub(in crate::session) fn slot_is_free(deciding: &mut Deciding<'_>) {
    if deciding.state.lifecycle.outcome().is_some_and(Outcome::is_preempted) {
        segment::begin_segment(deciding, ResumeCause::SlotFree, None);
        segment::go_on_from_phase(deciding);
    }
}
