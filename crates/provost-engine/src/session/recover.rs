//! How a session recovers when the process that performed its effects is gone.

use provost_event::{
    Budget, CallFacts, HookTrigger, HooksDecided, Outcome, PauseReason, ResumeCause, Resumed, Retry,
    RetryCause, Seq, StopRequested, ToolStatus, Usage,
};

use super::{Deciding, Phase, SessionState};
use crate::event::ToolResult;

impl Deciding<'_> {
    /// No process performs the open effects any more: each is performed again or counted as lost.
    pub(super) fn recover(&mut self, fresh: &[Seq]) {
        if self.state.lifecycle.outcome().is_some() {
            return;
        }
        let lost = self.state.lifecycle.phase();
        let running = self.state.calls.running_effects().collect::<Vec<_>>();
        let timers = self.state.calls.approval_timers();
        self.commit(Resumed {
            cause: ResumeCause::Interrupted,
            budget: Budget::default(),
            turns_max: None,
            reopens: false,
        });
        timers.into_iter().for_each(|timer| self.step.close(timer));
        self.time_approvals();
        let times = self.state.lifecycle.interruptions();
        if times >= self.state.assignment.limits().interruptions_max && !self.state.lifecycle.is_stopping() {
            let outcome = Outcome::Paused { why: PauseReason::CrashLoop { times } };
            self.commit(StopRequested { agent: None, outcome, for_child: false });
        }
        let asks = self.recover_questions();
        self.close_terminal_again();
        self.ask_about_worktree_again();
        if self.state.closing().is_some() {
            return;
        }
        if !matches!(lost, Phase::CheckingStop(seq) if asks.contains(&seq)) && self.recover_check(lost, fresh)
        {
            return;
        }
        match lost {
            Phase::Preparing(_) | Phase::Compacting(_) => self.finish_as_asked(),
            Phase::CheckingStop(seq) if asks.contains(&seq) => self.finish_as_asked(),
            Phase::Thinking(seq) if fresh.contains(&seq) && !self.state.lifecycle.is_stopping() => {}
            Phase::Thinking(seq) => {
                self.step.close(seq);
                self.settle(self.state.lost_usage());
                let call = self.state.turns.model_calls();
                let cause = RetryCause::Interrupted;
                self.commit(Retry::at_once(call, cause, self.state.lost_usage()));
                self.next_call();
            }
            Phase::MakingWorktree(seq) => {
                self.step.close(seq);
                match self.state.lifecycle.stopping().cloned() {
                    Some(outcome) => self.finish_segment(outcome),
                    None => self.make_worktree(),
                }
            }
            Phase::Waiting(seq) => {
                self.step.close(seq);
                self.try_first_model_again();
                self.next_call();
            }
            Phase::CheckingStop(seq) => {
                self.step.close(seq);
                match self.state.lifecycle.stopping().cloned() {
                    Some(outcome) => self.finish_segment(outcome),
                    None => self.check_stop(),
                }
            }
            Phase::Acting => self.recover_tools(running, fresh),
            Phase::Ready => self.next_call(),
            Phase::Between => self.finish_as_asked(),
            Phase::New | Phase::Verifying | Phase::Judging(_) | Phase::JudgeWaits(_) => {}
        }
    }

    /// Repeats the open questions to hooks, or records them as unanswered if the session is to stop anyway.
    fn recover_questions(&mut self) -> Vec<Seq> {
        let questions = self.state.hooks.entries();
        for seq in questions.iter().copied() {
            self.step.close(seq);
            let waits = matches!(
                self.state.hooks.get(seq),
                Some(HookTrigger::Closing { .. } | HookTrigger::Prompt { .. })
            );
            let keeps = waits && self.state.lifecycle.phase() != Phase::Preparing(seq);
            if self.state.lifecycle.is_stopping() && !keeps {
                self.commit(HooksDecided { asked: seq, reports: Vec::new(), scripts: None });
            } else {
                self.open_question(seq);
            }
        }
        questions
    }

    fn recover_tools(&mut self, running: Vec<Seq>, fresh: &[Seq]) {
        let stops = self.state.lifecycle.is_stopping();
        for seq in running {
            if fresh.contains(&seq) && !stops {
                continue;
            }
            if fresh.contains(&seq) {
                let text = "Not run: the agent was stopped before it began.";
                self.state.calls.hold(seq, ToolResult::without_run(ToolStatus::Cancelled, text));
            } else if !stops && self.is_idempotent(seq) {
                self.start_again(seq);
            } else {
                self.state.calls.hold(seq, ToolResult::lost());
            }
        }
        self.advance_calls();
    }
}

impl SessionState {
    /// The usage of a lost model call, which is unknown. An external program's own calls aren't charged.
    pub(super) fn lost_usage(&self) -> Usage {
        if self.assignment.is_external() { Usage::default() } else { Usage::unconfirmed() }
    }
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
        }
    }
}
