//! How a session runs tool calls: in parallel where they can't conflict, with results in the order of the calls.

use provost_event::{
    CallId, HookPoint, HookTrigger, Json, Outcome, Seq, StopRequested, ToolFinished, ToolStarted, ToolStatus,
    ToolsChanged,
};

use super::Calls;
use super::call::{CallStage, TrackedCall};
use super::gate::CallGate;
use crate::event::ToolResult;
use crate::session::{
    Deciding, Phase,
    calls::{approve, delegate, gate, repeats},
    change, model_call, progress, segment, yielding,
};
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
        let call = self.of_answer.0.iter().find(waits).cloned()?;
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
        let running = self.of_answer.running().map(|(call, seq)| (call.clone(), seq)).collect::<Vec<_>>();
        let held = running.into_iter().filter_map(|(call, seq)| {
            let result = self.take_held(seq)?;
            Some(DueResult { call, result, effect: Some(seq) })
        });
        held.collect()
    }

    /// Whether no call is running, and no hook is called about one.
    fn stand_still(&self, facts: CallFlowFacts<'_>) -> bool {
        !self.of_answer.is_running() && !facts.asks_hooks
    }

    /// Whether the results of all running calls are there.
    fn are_all_held(&self) -> bool {
        self.of_answer.running_effects().all(|seq| self.is_held(seq))
    }

    fn after(&self, facts: CallFlowFacts<'_>) -> AfterCalls {
        if self.are_held(facts.stopping) {
            return AfterCalls::Hold { ends: self.stand_still(facts) };
        }
        if self.of_answer.are_done() {
            return AfterCalls::End;
        }
        if facts.stopping.is_some() || !self.stand_still(facts) {
            AfterCalls::Wait
        } else if facts.yields {
            AfterCalls::Yield
        } else {
            match &self.sub_agent_outcome {
                Some(outcome) if self.of_answer.wait_for_sub_agents() => AfterCalls::Suspend(outcome.clone()),
                _ => AfterCalls::Wait,
            }
        }
    }
}

/// The result of a call that has none at the point of the fork.
const NO_RESULT: &str = "The conversation was forked before this call had a result. The call isn't made again, and \
                         whether it was made where the conversation comes from isn't known here.";

pub(in crate::session) fn tool_done(deciding: &mut Deciding<'_>, seq: Seq, result: ToolResult) {
    let is_open = deciding.state.calls.of_answer.running_effects().any(|running| running == seq);
    if is_open && !deciding.state.calls.is_held(seq) {
        deciding.state.calls.hold(seq, result);
        advance(deciding);
    }
}

/// Commits the results that are next in order, starts the calls that may start, and ends the turn after the
/// last call.
pub(in crate::session) fn advance(deciding: &mut Deciding<'_>) {
    if deciding.state.lifecycle.phase() != Phase::Acting || deciding.state.closing().is_some() {
        return;
    }
    if deciding.state.lifecycle.stopping().is_some_and(Outcome::is_final) {
        approve::withdraw_approvals(deciding);
        delegate::cut_delegated(deciding);
    }
    loop {
        commit_results(deciding);
        // A session that yields starts nothing more.
        if deciding.state.lifecycle.is_stopping()
            || deciding.state.lifecycle.is_yielding()
            || !gate::open_calls(deciding)
        {
            break;
        }
    }
    commit_held_results(deciding);
    match deciding.state.calls.after(call_flow_facts(deciding)) {
        AfterCalls::Wait | AfterCalls::Hold { ends: false } => {}
        AfterCalls::Hold { ends: true } => segment::finish_as_asked(deciding),
        AfterCalls::Yield => {
            yielding::yielded(deciding);
        }
        AfterCalls::Suspend(outcome) => {
            deciding.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: true });
            segment::finish(deciding, outcome);
        }
        AfterCalls::End => end_of_calls(deciding),
    }
}

fn call_flow_facts<'a>(deciding: &'a Deciding<'_>) -> CallFlowFacts<'a> {
    CallFlowFacts {
        stopping: deciding.state.lifecycle.stopping(),
        yields: deciding.state.lifecycle.is_yielding(),
        asks_hooks: deciding.state.hooks.are_about_calls(),
    }
}

/// Where the session is to be suspended amid its calls, results don't wait for earlier calls that stay open.
/// While a call runs, a session that yields keeps their order.
fn commit_held_results(deciding: &mut Deciding<'_>) {
    let calls = &deciding.state.calls;
    let stopping = deciding.state.lifecycle.stopping();
    let yields = deciding.state.lifecycle.is_yielding() && stopping.is_none() && !calls.of_answer.are_done();
    if calls.are_held(stopping) || (yields && calls.are_all_held()) {
        for due in deciding.state.calls.take_all_held() {
            finish_due(deciding, due);
        }
    }
}

fn commit_results(deciding: &mut Deciding<'_>) {
    loop {
        let assignment = &deciding.state.assignment;
        let stopping = deciding.state.lifecycle.stopping();
        let due = deciding
            .state
            .calls
            .take_due(|calls, call| CallGate { calls, assignment }.result_without_run(call, stopping));
        match due {
            Some(due) => finish_due(deciding, due),
            None => return,
        }
    }
}

fn finish_due(deciding: &mut Deciding<'_>, due: DueResult) {
    due.effect.into_iter().for_each(|seq| deciding.step.close(seq));
    let DueResult { call, mut result, .. } = due;
    match result.asks.take() {
        Some(question) if !deciding.state.lifecycle.stopping().is_some_and(Outcome::is_final) => {
            approve::ask_for_tool(deciding, &call, *question);
        }
        Some(_) | None => finish(deciding, call, result),
    }
}

pub(super) fn finish(deciding: &mut Deciding<'_>, call: TrackedCall, result: ToolResult) {
    let about = HookTrigger::Result { call: call.id.clone(), is_error: result.status.is_error() };
    finish_with(deciding, call, result, about);
}

/// Commits a result, and calls hooks for `about` if the call was run.
pub(super) fn finish_with(
    deciding: &mut Deciding<'_>,
    call: TrackedCall,
    result: ToolResult,
    about: HookTrigger,
) {
    let tool = call.tool.clone();
    let was_run = call.stage.running().is_some() || call.stage.is_delegated();
    finish_without_hooks(deciding, call, result);
    if was_run
        && !deciding.state.lifecycle.is_stopping()
        && deciding.state.assignment.has_hooks_for_tool(about.points(), &tool)
    {
        deciding.ask(about);
    }
}

/// Commits a result without calling hooks.
fn finish_without_hooks(deciding: &mut Deciding<'_>, call: TrackedCall, result: ToolResult) {
    let tool = call.tool.clone();
    deciding.commit(ToolFinished {
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
    if !result.tools.is_empty() {
        let changed = ToolsChanged { added: result.tools, removed: Vec::new(), by: tool };
        change::change_tools(deciding, &changed);
    }
}

pub(in crate::session) fn start_call(deciding: &mut Deciding<'_>, id: &CallId) {
    let Some(call) = deciding.state.calls.of_answer.get(id).cloned() else { return };
    let memory = deciding.state.calls.memories.get(&call.tool).cloned();
    let outside = call.leaves_sandbox();
    let replaced_by = call.proposer();
    deciding.commit(ToolStarted {
        call: call.id,
        tool: call.tool.clone(),
        input: call.input.clone(),
        again: call.answer.is_some(),
        outside,
        replaced_by,
    });
    if deciding.state.assignment.delegates(&call.tool) {
        delegate::delegate(deciding, call.tool, call.input);
    } else {
        run_tool(deciding, id, memory);
    }
}

/// Gives each call that a fork took over a result that says that it has none.
pub(in crate::session) fn answer_forked_calls(deciding: &mut Deciding<'_>) {
    for call in deciding.state.calls.of_answer.without_result() {
        finish_without_hooks(deciding, call, ToolResult::without_run(ToolStatus::Unknown, NO_RESULT));
    }
}

/// Gives each call without a result one that says that it wasn't run, and ends the turn. Nothing is running.
pub(in crate::session) fn cancel_calls(deciding: &mut Deciding<'_>) {
    approve::withdraw_approvals(deciding);
    for call in deciding.state.calls.of_answer.without_result() {
        finish(deciding, call, cancelled());
    }
    deciding.end_turn(deciding.state.calls.of_answer.count());
}

fn run_tool(deciding: &mut Deciding<'_>, id: &CallId, memory: Option<Json>) {
    let Some(call) = deciding.state.calls.of_answer.get(id) else { return };
    let Some(spec) = deciding.state.assignment.tool(&call.tool) else { return };
    let output_bytes_max =
        spec.output_bytes_max.min(deciding.state.calls.output_share(deciding.state.window().room()));
    let is_last = deciding.state.calls.of_answer.0.last().is_some_and(|last| last.id == call.id);
    let looks_before = deciding.state.progress.looks_at_workspace(progress::stuck_turns(deciding.state));
    let run = ToolRun {
        session: deciding.state.session,
        call: call.id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
        timeout_ms: spec.timeout_ms,
        limit_ms: deciding.limit_left_ms(),
        output_bytes_max,
        memory,
        scripts: call.scripts.clone(),
        roots: deciding.state.assignment.file_roots(),
        granted: deciding.state.calls.permits.granted(call),
        outside: call.leaves_sandbox(),
        rules: deciding.state.rules_sought(),
        looks_before,
        looks_at_workspace: looks_before && is_last,
        answer: call.answer.clone(),
    };
    deciding.open(Effect::RunTool(run));
}

pub(in crate::session) fn is_idempotent(deciding: &Deciding<'_>, seq: Seq) -> bool {
    let call =
        deciding.state.calls.of_answer.running().find(|(_, running)| *running == seq).map(|(call, _)| call);
    call.and_then(|call| deciding.state.assignment.tool(&call.tool)).is_some_and(|spec| spec.idempotent)
}

/// Runs an interrupted call once more, under a new effect.
pub(in crate::session) fn start_again(deciding: &mut Deciding<'_>, seq: Seq) {
    let found = deciding
        .state
        .calls
        .of_answer
        .running()
        .find(|(_, running)| *running == seq)
        .map(|(call, _)| call.clone());
    let Some(call) = found else { return };
    deciding.step.close(seq);
    let memory = deciding.state.calls.memories.get(&call.tool).cloned();
    deciding.commit(ToolStarted {
        call: call.id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
        again: true,
        outside: call.leaves_sandbox(),
        replaced_by: call.proposer(),
    });
    run_tool(deciding, &call.id, memory);
}

/// Whether hooks have yet to decide on all the results together.
fn asks_about_batch(deciding: &mut Deciding<'_>) -> bool {
    if deciding.state.hooks.are_about_batch() {
        return true;
    }
    let asks = deciding.state.hooks.lack_batch(&deciding.state.assignment)
        && !deciding.state.lifecycle.is_stopping()
        && deciding.state.assignment.has_hook(HookPoint::PostToolBatch);
    if asks {
        deciding.ask(HookTrigger::Batch { turn: deciding.state.turns.next() });
    }
    asks
}

fn end_of_calls(deciding: &mut Deciding<'_>) {
    if asks_about_batch(deciding) {
        return;
    }
    let tool = deciding.state.calls.of_answer.last_tool().to_owned();
    repeats::notices_of_calls(deciding);
    deciding.end_turn(deciding.state.calls.of_answer.count());
    if deciding.state.lifecycle.is_stopping() {
        model_call::next_call(deciding);
    } else if let Some(outcome) = deciding.state.calls.suspends(tool, &deciding.state.assignment) {
        segment::finish(deciding, outcome);
    } else {
        segment::next_turn(deciding);
    }
}

impl Calls {
    /// Maximum output bytes for each call of the answer, so that all of them together leave half of a window with
    /// this room, in tokens, for the rest.
    pub(super) fn output_share(&self, room: Option<u64>) -> usize {
        let Some(room) = room else { return usize::MAX };
        let bytes = usize::try_from(room.saturating_mul(BYTES_PER_TOKEN) / 2).unwrap_or(usize::MAX);
        (bytes / self.of_answer.0.len().max(1)).max(OUTPUT_BYTES_MIN)
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
