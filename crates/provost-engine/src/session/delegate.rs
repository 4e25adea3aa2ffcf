//! Calls that another agent works for, and yielding to one. The run starts the other agent and reports its result;
//! the session only waits.

use provost_event::{
    CallFacts, CallId, HookTrigger, Outcome, PauseReason, ResumeCause, Resumed, Seq, SessionId,
    StopRequested, SubAgentResumed, SubAgentSuspended, ToolStatus, YieldRequested,
};

use super::{Deciding, Phase, SessionState, Stage, Yielding};
use crate::event::ToolResult;
use crate::{RunEvent, SubAgentReport};

impl Deciding<'_> {
    /// Requests an agent from the run; the entry just committed identifies the call.
    pub(super) fn delegate(&mut self, tool: String, input: provost_event::Json) {
        let (parent, call) = (self.state.session, self.state.head);
        self.tell_run(RunEvent::Spawn { parent, call, tool, input });
    }

    /// The other agent is done, or there is none. A suspended session records this too: the event isn't repeated.
    pub(super) fn sub_agent_finished(&mut self, started: Seq, report: SubAgentReport) {
        let Some(call) = self.state.delegated_by(started).cloned() else { return };
        let limit = self.state.assignment.tool(&call.tool).map_or(usize::MAX, |spec| spec.output_bytes_max);
        let output = cut(report.text, limit.min(self.state.output_share()));
        let SubAgentReport { status, duration_ms, ended, .. } = report;
        let result = ToolResult {
            status,
            output,
            images: Vec::new(),
            whole: None,
            duration_ms,
            memory: None,
            plan: None,
            facts: CallFacts::default(),
        };
        let is_error = status.is_error();
        let about = match ended {
            Some((child, outcome)) => {
                HookTrigger::ChildEnd { call: call.id.clone(), is_error, child, outcome }
            }
            None => HookTrigger::Result { call: call.id.clone(), is_error },
        };
        self.finish_with(call, result, about);
        if self.state.outcome.is_none() {
            self.advance_calls();
        }
    }

    /// The other agent is suspended: so is this one, once it has nothing else to do.
    pub(super) fn sub_agent_suspended(&mut self, started: Seq, outcome: Outcome) {
        let works = |call: &super::Call| matches!(call.stage, Stage::Delegated { suspended: false, .. });
        if self.state.outcome.is_some() || !self.state.delegated_by(started).is_some_and(works) {
            return;
        }
        self.commit(SubAgentSuspended { started, outcome });
        self.advance_calls();
    }

    /// The other agent works again, or is about to.
    pub(super) fn sub_agent_resumed(&mut self, started: Seq) {
        let suspended = |call: &super::Call| matches!(call.stage, Stage::Delegated { suspended: true, .. });
        if self.state.outcome.is_none() && self.state.delegated_by(started).is_some_and(suspended) {
            self.commit(SubAgentResumed { started });
        }
    }

    /// Yields its slot at the next check. A model call in flight has `grace_ms` to finish.
    pub(super) fn yield_slot(&mut self, to: Option<SessionId>, grace_ms: u64) {
        if self.state.outcome.is_some() || self.state.stopping.is_some() || self.state.yielding.is_some() {
            return;
        }
        let now = self.step.now();
        self.commit(YieldRequested { to, due: Some(now.at.plus_ms(grace_ms)) });
        self.open(now.timer(grace_ms));
        match self.state.phase {
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
        let Some(Yielding { to, .. }) = self.state.yielding else { return };
        self.step.close(timer);
        self.commit(YieldRequested { to, due: None });
        if let Phase::Thinking(call) | Phase::Judging(call) = self.state.phase {
            self.step.abort(call);
        }
    }

    /// At a check: yields the slot if that was requested. Returns whether it does.
    pub(super) fn yielded(&mut self) -> bool {
        let yields = self.state.yielding.is_some() && self.state.stopping.is_none();
        if yields {
            self.yield_now();
        }
        yields
    }

    fn yield_now(&mut self) {
        let Some(Yielding { to: by, .. }) = self.state.yielding else { return };
        // Hooks aren't called: the session continues without a request.
        self.close_segment(Outcome::Paused { why: PauseReason::Preempted { by } });
    }

    /// Suspends the session in the middle of its calls, if none of them can proceed without a sub-agent or a
    /// person: the calls stay open. Returns whether it does.
    pub(super) fn suspend_amid_calls(&mut self) -> bool {
        if self.state.stopping.is_some() || self.state.calls.iter().all(|call| call.stage == Stage::Done) {
            return false;
        }
        if self.state.yielding.is_some() {
            // While a call runs, results keep the order that they have without yielding.
            if self.state.running().all(|(_, seq)| self.state.held.0.contains_key(&seq)) {
                self.finish_held();
            }
            return self.state.calls_stand_still() && self.yielded();
        }
        let state = &self.state;
        if !state.calls_stand_still() {
            return false;
        }
        let Some(outcome) = state.sub_agent_outcome.clone() else { return false };
        // A call that hasn't begun would conflict with the suspended ones.
        let suspended = |stage: Stage| matches!(stage, Stage::Delegated { suspended: true, .. });
        let mut open = state.calls.iter().map(|call| call.stage).filter(|stage| !stage.has_result());
        if !state.calls.iter().any(|call| suspended(call.stage))
            || !open.all(|stage| suspended(stage) || stage == Stage::Pending)
        {
            return false;
        }
        self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: true });
        self.finish_segment(outcome);
        true
    }

    pub(super) fn slot_is_free(&mut self) {
        if self.state.outcome.as_ref().is_some_and(Outcome::is_preempted) {
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
        let questions = self.state.questions.keys().copied().collect::<Vec<_>>();
        questions.into_iter().for_each(|seq| self.open_question(seq));
        match self.state.phase {
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

    /// Gives each call that a sub-agent works for a result that says that it was stopped: the run stops that
    /// agent.
    pub(super) fn cut_delegated(&mut self) {
        let is_delegated = |stage: Stage| matches!(stage, Stage::Delegated { .. });
        let open =
            self.state.calls.iter().filter(|call| is_delegated(call.stage)).cloned().collect::<Vec<_>>();
        for call in open {
            // No hook is called about work that wasn't done.
            let call = super::Call { stage: Stage::Pending, ..call };
            let text = "The agent was stopped, and with it the one that worked for it.";
            self.finish(call, ToolResult::without_run(ToolStatus::Cancelled, text));
        }
    }
}

impl SessionState {
    pub(super) fn delegated(&mut self, id: &CallId, started: Seq) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            call.stage = Stage::Delegated { started, suspended: false };
        }
    }

    pub(super) fn is_delegated(&self, id: &CallId) -> bool {
        self.call(id).is_some_and(|call| matches!(call.stage, Stage::Delegated { .. }))
    }

    fn delegated_by(&self, entry: Seq) -> Option<&super::Call> {
        let is_by = |stage: Stage| matches!(stage, Stage::Delegated { started, .. } if started == entry);
        self.calls.iter().find(|call| is_by(call.stage))
    }

    pub(super) fn note_sub_agent_resumed(&mut self, entry: Seq) {
        for call in &mut self.calls {
            if let Stage::Delegated { started, suspended } = &mut call.stage
                && *started == entry
            {
                *suspended = false;
            }
        }
    }

    /// Whether it only waits for its sub-agents.
    pub(super) fn only_waits(&self) -> bool {
        let is_delegated = |call: &super::Call| matches!(call.stage, Stage::Delegated { .. });
        self.running().next().is_none() && self.questions.is_empty() && self.calls.iter().any(is_delegated)
    }

    pub(super) fn note_sub_agent_suspended(&mut self, entry: &SubAgentSuspended) {
        self.sub_agent_outcome = Some(entry.outcome.clone());
        for call in &mut self.calls {
            if let Stage::Delegated { started, suspended } = &mut call.stage
                && *started == entry.started
            {
                *suspended = true;
            }
        }
    }
}

/// Bytes at the end of a text that are kept when its middle is left out: they hold the status of the agent.
const END_BYTES: usize = 2 * 1024;

/// A text without its middle if it is too long, with a note in its place.
fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = END_BYTES.min(bytes_max / 2);
    let beginning = text.get(..text.floor_char_boundary(bytes_max.saturating_sub(end))).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len().saturating_sub(end))..).unwrap_or_default();
    let whole = text.len();
    format!("{beginning}\n[{whole} bytes in all; what is missing here is in that agent's log]\n{end}")
}
