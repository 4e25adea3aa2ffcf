//! Yielding the slot to another agent, and working again.

use provost_event::{Outcome, PauseReason, ResumeCause, Resumed, Seq, SessionId, YieldRequested};

use super::{Deciding, Phase, Yielding};

impl Deciding<'_> {
    /// Yields its slot at the next check. A model call in flight has `grace_ms` to finish.
    pub(super) fn yield_slot(&mut self, to: Option<SessionId>, grace_ms: u64) {
        if self.state.lifecycle.outcome().is_some()
            || self.state.lifecycle.is_stopping()
            || self.state.lifecycle.is_yielding()
        {
            return;
        }
        let now = self.step.now();
        self.commit(YieldRequested { to, due: Some(now.at.plus_ms(grace_ms)) });
        self.open(now.timer(grace_ms));
        match self.state.lifecycle.phase() {
            Phase::Ready | Phase::Between => self.next_call(),
            Phase::Waiting(_) | Phase::JudgeWaits(_) => self.yield_now(),
            Phase::Acting => self.advance_calls(),
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
    pub(super) fn grace_is_over(&mut self, timer: Seq) {
        let Some(Yielding { to, .. }) = self.state.lifecycle.yielding() else { return };
        self.step.close(timer);
        self.commit(YieldRequested { to, due: None });
        if let Phase::Thinking(call) | Phase::Judging(call) = self.state.lifecycle.phase() {
            self.step.abort(call);
        }
    }

    /// At a check: yields the slot if that was requested. Returns whether it does.
    pub(super) fn yielded(&mut self) -> bool {
        let yields = self.state.lifecycle.is_yielding() && !self.state.lifecycle.is_stopping();
        if yields {
            self.yield_now();
        }
        yields
    }

    fn yield_now(&mut self) {
        let Some(Yielding { to: by, .. }) = self.state.lifecycle.yielding() else { return };
        // Hooks aren't called: the session continues without a request.
        self.close_segment(Outcome::Paused { why: PauseReason::Preempted { by } });
    }

    pub(super) fn slot_is_free(&mut self) {
        if self.state.lifecycle.outcome().is_some_and(Outcome::is_preempted) {
            self.begin_segment(ResumeCause::SlotFree, None);
            self.go_on_from_phase();
        }
    }

    /// The session is worked on again. Other entries at the beginning of the segment are committed before it
    /// proceeds.
    pub(super) fn begin_segment(&mut self, cause: ResumeCause, turns_max: Option<u32>) {
        let (budget, reopens) = (provost_event::Budget::default(), self.state.has_ended());
        self.commit(Resumed { cause, budget, turns_max, reopens });
    }

    /// Proceeds from the phase in which the last segment ended.
    pub(super) fn go_on_from_phase(&mut self) {
        self.time_approvals();
        let questions = self.state.hooks.entries();
        questions.into_iter().for_each(|seq| self.open_question(seq));
        match self.state.lifecycle.phase() {
            Phase::CheckingStop(_) => self.check_stop(),
            Phase::Ready => self.next_call(),
            Phase::Acting => self.advance_calls(),
            Phase::MakingWorktree(_) => self.make_worktree(),
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
}
