//! How a session runs tool calls: in parallel where they can't conflict, with results in the order of the calls.

use provost_event::{
    CallId, HookPoint, HookTrigger, Json, Outcome, Seq, StopRequested, ToolFinished, ToolStarted, ToolStatus,
};

use super::Calls;
use super::call::{CallStage, TrackedCall};
use super::gate::CallGate;
use crate::event::ToolResult;
use crate::session::{Deciding, Phase};
use crate::{Effect, ToolRun};

/// Bytes per token of output, by a conservative estimate.
const BYTES_PER_TOKEN: u64 = 3;
/// Minimum output bytes of a call, however small the window is.
const OUTPUT_BYTES_MIN: usize = 1_000;

/// What the course of the calls depends on besides them.
#[derive(Debug, Clone, Copy)]
struct CallFlowFacts<'a> {
    /// The outcome that the session is to stop with, if it is.
    stopping: Option<&'a Outcome>,
    /// The session is to yield its slot.
    yields: bool,
    /// Hooks are called about a call.
    asks_hooks: bool,
}

/// What follows once no call can be started.
#[derive(Debug, PartialEq, Eq)]
enum AfterCalls {
    /// Calls run, or wait for an answer.
    Wait,
    /// The running calls finish, and the others stay open; `ends` if none is running.
    Hold { ends: bool },
    /// The session yields its slot.
    Yield,
    /// The session is suspended like its sub-agent.
    Suspend(Outcome),
    /// Every call has its result.
    End,
}

/// A result that is next in order.
struct DueResult {
    call: TrackedCall,
    result: ToolResult,
    /// Its effect, if it had one.
    effect: Option<Seq>,
}

impl Calls {
    /// Takes the next result in order, if it is there; `without_run` gives that of a call that isn't run.
    fn take_due(
        &mut self,
        without_run: impl FnOnce(&Self, &TrackedCall) -> Option<ToolResult>,
    ) -> Option<DueResult> {
        // The result of another agent's work may take long: later results don't wait for it.
        let waits = |call: &&TrackedCall| !call.stage.has_result() && !call.stage.is_delegated();
        let call = self.of_answer.iter().find(waits).cloned()?;
        match call.stage {
            CallStage::Running(seq) => {
                let result = self.take_held(seq)?;
                Some(DueResult { call, result, effect: Some(seq) })
            }
            CallStage::Pending => {
                let result = without_run(self, &call)?;
                Some(DueResult { call, result, effect: None })
            }
            CallStage::Asking(_)
            | CallStage::Approving { .. }
            | CallStage::Delegated { .. }
            | CallStage::Reviewing(_)
            | CallStage::Done => None,
        }
    }

    /// Takes the results that wait for an earlier call whose result may take long.
    fn take_all_held(&mut self) -> Vec<DueResult> {
        let running = self.running().map(|(call, seq)| (call.clone(), seq)).collect::<Vec<_>>();
        let held = running.into_iter().filter_map(|(call, seq)| {
            let result = self.take_held(seq)?;
            Some(DueResult { call, result, effect: Some(seq) })
        });
        held.collect()
    }

    /// Whether no call is running, and no hook is called about one.
    fn stand_still(&self, facts: CallFlowFacts<'_>) -> bool {
        !self.is_running() && !facts.asks_hooks
    }

    /// Whether the results of all running calls are there.
    fn are_all_held(&self) -> bool {
        self.running_effects().all(|seq| self.is_held(seq))
    }

    fn after(&self, facts: CallFlowFacts<'_>) -> AfterCalls {
        if self.are_held(facts.stopping) {
            return AfterCalls::Hold { ends: self.stand_still(facts) };
        }
        if self.are_done() {
            return AfterCalls::End;
        }
        if facts.stopping.is_some() || !self.stand_still(facts) {
            AfterCalls::Wait
        } else if facts.yields {
            AfterCalls::Yield
        } else {
            self.waits_for_sub_agent().map_or(AfterCalls::Wait, AfterCalls::Suspend)
        }
    }

    /// The outcome of a suspended sub-agent, if nothing can proceed without such a one.
    fn waits_for_sub_agent(&self) -> Option<Outcome> {
        let mut open = self.of_answer.iter().map(|call| call.stage).filter(|stage| !stage.has_result());
        // A call that hasn't begun would conflict with the suspended ones.
        let waits = self.of_answer.iter().any(|call| call.stage.is_suspended())
            && open.all(|stage| stage.is_suspended() || stage == CallStage::Pending);
        self.sub_agent_outcome.clone().filter(|_| waits)
    }
}

/// The result of a call that has none at the point of the fork.
const NO_RESULT: &str = "The conversation was forked before this call had a result. The call isn't made again, and \
                         whether it was made where the conversation comes from isn't known here.";

impl Deciding<'_> {
    pub(in crate::session) fn tool_done(&mut self, seq: Seq, result: ToolResult) {
        let is_open = self.state.calls.running_effects().any(|running| running == seq);
        if is_open && !self.state.calls.is_held(seq) {
            self.state.calls.hold(seq, result);
            self.advance_calls();
        }
    }

    /// Commits the results that are next in order, starts the calls that may start, and ends the turn after the
    /// last call.
    pub(in crate::session) fn advance_calls(&mut self) {
        if self.state.lifecycle.phase() != Phase::Acting || self.state.closing().is_some() {
            return;
        }
        if self.state.lifecycle.stopping().is_some_and(Outcome::is_final) {
            self.withdraw_approvals();
            self.cut_delegated();
        }
        loop {
            self.commit_results();
            // A session that yields starts nothing more.
            if self.state.lifecycle.is_stopping() || self.state.lifecycle.is_yielding() || !self.open_calls()
            {
                break;
            }
        }
        self.commit_held_results();
        match self.state.calls.after(self.call_flow_facts()) {
            AfterCalls::Wait | AfterCalls::Hold { ends: false } => {}
            AfterCalls::Hold { ends: true } => self.finish_as_asked(),
            AfterCalls::Yield => {
                self.yielded();
            }
            AfterCalls::Suspend(outcome) => {
                self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: true });
                self.finish_segment(outcome);
            }
            AfterCalls::End => self.end_of_calls(),
        }
    }

    fn call_flow_facts(&self) -> CallFlowFacts<'_> {
        CallFlowFacts {
            stopping: self.state.lifecycle.stopping(),
            yields: self.state.lifecycle.is_yielding(),
            asks_hooks: self.state.hooks.are_about_calls(),
        }
    }

    /// Where the session is to be suspended amid its calls, results don't wait for earlier calls that stay open.
    /// While a call runs, a session that yields keeps their order.
    fn commit_held_results(&mut self) {
        let calls = &self.state.calls;
        let stopping = self.state.lifecycle.stopping();
        let yields = self.state.lifecycle.is_yielding() && stopping.is_none() && !calls.are_done();
        if calls.are_held(stopping) || (yields && calls.are_all_held()) {
            for due in self.state.calls.take_all_held() {
                self.finish_due(due);
            }
        }
    }

    fn commit_results(&mut self) {
        loop {
            let assignment = &self.state.assignment;
            let stopping = self.state.lifecycle.stopping();
            let due = self
                .state
                .calls
                .take_due(|calls, call| CallGate { calls, assignment }.result_without_run(call, stopping));
            match due {
                Some(due) => self.finish_due(due),
                None => return,
            }
        }
    }

    fn finish_due(&mut self, due: DueResult) {
        due.effect.into_iter().for_each(|seq| self.step.close(seq));
        self.finish(due.call, due.result);
    }

    pub(super) fn finish(&mut self, call: TrackedCall, result: ToolResult) {
        let about = HookTrigger::Result { call: call.id.clone(), is_error: result.status.is_error() };
        self.finish_with(call, result, about);
    }

    /// Commits a result, and calls hooks for `about` if the call was run.
    pub(super) fn finish_with(&mut self, call: TrackedCall, result: ToolResult, about: HookTrigger) {
        let tool = call.tool.clone();
        let was_run = call.stage.running().is_some() || call.stage.is_delegated();
        self.finish_without_hooks(call, result);
        if was_run
            && !self.state.lifecycle.is_stopping()
            && self.state.assignment.has_hooks_for_tool(about.points(), &tool)
        {
            self.ask(about);
        }
    }

    /// Commits a result without calling hooks.
    fn finish_without_hooks(&mut self, call: TrackedCall, result: ToolResult) {
        self.commit(ToolFinished {
            call: call.id,
            tool: call.tool,
            status: result.status,
            output: result.output,
            images: result.images,
            whole: result.whole,
            duration_ms: result.duration_ms,
            memory: result.memory,
            plan: result.plan,
            facts: result.facts,
        });
    }

    pub(in crate::session) fn start_call(&mut self, id: &CallId) {
        let Some(call) = self.state.calls.get(id).cloned() else { return };
        let memory = self.state.calls.memories.get(&call.tool).cloned();
        self.commit(ToolStarted {
            call: call.id,
            tool: call.tool.clone(),
            input: call.input.clone(),
            again: false,
        });
        if self.state.assignment.delegates(&call.tool) {
            self.delegate(call.tool, call.input);
        } else {
            self.run_tool(id, memory);
        }
    }

    /// Gives each call that a fork took over a result that says that it has none.
    pub(in crate::session) fn answer_forked_calls(&mut self) {
        for call in self.state.calls.without_result() {
            self.finish_without_hooks(call, ToolResult::without_run(ToolStatus::Unknown, NO_RESULT));
        }
    }

    /// Gives each call without a result one that says that it wasn't run, and ends the turn. Nothing is running.
    pub(in crate::session) fn cancel_calls(&mut self) {
        self.withdraw_approvals();
        for call in self.state.calls.without_result() {
            self.finish(call, cancelled());
        }
        self.end_turn(self.state.calls.count());
    }

    fn run_tool(&mut self, id: &CallId, memory: Option<Json>) {
        let Some(call) = self.state.calls.get(id) else { return };
        let Some(spec) = self.state.assignment.tool(&call.tool) else { return };
        let output_bytes_max =
            spec.output_bytes_max.min(self.state.calls.output_share(self.state.window().room()));
        let is_last = self.state.calls.of_answer.last().is_some_and(|last| last.id == call.id);
        let looks_at_workspace = is_last && self.state.progress.looks_at_workspace(self.state.stuck_turns());
        let run = ToolRun {
            session: self.state.session,
            call: call.id.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            timeout_ms: spec.timeout_ms,
            limit_ms: self.limit_left_ms(),
            output_bytes_max,
            memory,
            scripts: call.scripts.clone(),
            looks_at_workspace,
        };
        self.open(Effect::RunTool(run));
    }

    /// The remaining time of the limit that applies to the agent, if any.
    pub(in crate::session) fn limit_left_ms(&self) -> Option<u64> {
        Some(self.state.turns.limit_ends()?.since_ms(self.step.now().elapsed))
    }

    pub(in crate::session) fn is_idempotent(&self, seq: Seq) -> bool {
        let call = self.state.calls.running().find(|(_, running)| *running == seq).map(|(call, _)| call);
        call.and_then(|call| self.state.assignment.tool(&call.tool)).is_some_and(|spec| spec.idempotent)
    }

    /// Runs an interrupted call once more, under a new effect.
    pub(in crate::session) fn start_again(&mut self, seq: Seq) {
        let found =
            self.state.calls.running().find(|(_, running)| *running == seq).map(|(call, _)| call.clone());
        let Some(call) = found else { return };
        self.step.close(seq);
        let memory = self.state.calls.memories.get(&call.tool).cloned();
        self.commit(ToolStarted {
            call: call.id.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            again: true,
        });
        self.run_tool(&call.id, memory);
    }

    /// Whether hooks have yet to decide on all the results together.
    fn asks_about_batch(&mut self) -> bool {
        if self.state.hooks.are_about_batch() {
            return true;
        }
        let asks = self.state.hooks.lack_batch(&self.state.assignment)
            && !self.state.lifecycle.is_stopping()
            && self.state.assignment.has_hook(HookPoint::PostToolBatch);
        if asks {
            self.ask(HookTrigger::Batch { turn: self.state.turns.next() });
        }
        asks
    }

    fn end_of_calls(&mut self) {
        if self.asks_about_batch() {
            return;
        }
        let tool = self.state.calls.last_tool().to_owned();
        self.notices_of_calls();
        self.end_turn(self.state.calls.count());
        if self.state.lifecycle.is_stopping() {
            self.next_call();
        } else if let Some(outcome) = self.state.calls.suspends(tool, self.state.assignment.limits()) {
            self.finish_segment(outcome);
        } else {
            self.next_turn();
        }
    }
}

impl Calls {
    /// Maximum output bytes for each call of the answer, so that all of them together leave half of a window with
    /// this room, in tokens, for the rest.
    pub(super) fn output_share(&self, room: Option<u64>) -> usize {
        let Some(room) = room else { return usize::MAX };
        let bytes = usize::try_from(room.saturating_mul(BYTES_PER_TOKEN) / 2).unwrap_or(usize::MAX);
        (bytes / self.of_answer.len().max(1)).max(OUTPUT_BYTES_MIN)
    }
}

impl CallGate<'_> {
    /// The result of a call that won't be run.
    fn result_without_run(&self, call: &TrackedCall, stopping: Option<&Outcome>) -> Option<ToolResult> {
        if self.calls.are_held(stopping) {
            return None;
        }
        if stopping.is_some() {
            return Some(cancelled());
        }
        if let Some(text) = self.objection(call) {
            return Some(ToolResult::without_run(ToolStatus::Rejected, text));
        }
        call.refusal().map(|text| ToolResult::without_run(ToolStatus::Denied, text))
    }
}

fn cancelled() -> ToolResult {
    let text = "Not run: the agent was stopped before this call's turn came.";
    ToolResult::without_run(ToolStatus::Cancelled, text)
}
