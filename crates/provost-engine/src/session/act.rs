//! How a session runs tool calls: in parallel where they can't conflict, with results in the order of the calls.

use provost_event::{
    Access, CallId, HookPoint, HookTrigger, Json, Outcome, Seq, ToolFinished, ToolStarted, ToolStatus,
};

use super::{Call, Deciding, Phase, SessionState, Stage};
use crate::event::ToolResult;
use crate::{Effect, ToolRun};

/// Bytes per token of output, by a conservative estimate.
const BYTES_PER_TOKEN: u64 = 3;
/// Minimum output bytes of a call, however small the window is.
const OUTPUT_BYTES_MIN: usize = 1_000;

impl Deciding<'_> {
    pub(super) fn tool_done(&mut self, seq: Seq, result: ToolResult) {
        let open = self.state.running().any(|(_, running)| running == seq);
        if open && !self.state.held.0.contains_key(&seq) {
            self.state.held.0.insert(seq, result);
            self.advance_calls();
        }
    }

    /// Commits the results that are next in order, starts the calls that may start, and ends the turn after the
    /// last call.
    pub(super) fn advance_calls(&mut self) {
        if self.state.phase != Phase::Acting || self.state.closing().is_some() {
            return;
        }
        if self.state.stopping.as_ref().is_some_and(Outcome::is_final) {
            self.withdraw_approvals();
            self.cut_delegated();
        }
        loop {
            self.commit_results();
            // A session that yields starts nothing more.
            if self.state.stopping.is_some() || self.state.yielding.is_some() || !self.open_calls() {
                break;
            }
        }
        if self.state.holds_calls() {
            return self.hold();
        }
        if self.suspend_amid_calls() {
            return;
        }
        if self.state.calls.iter().all(|call| call.stage == Stage::Done) {
            self.end_of_calls();
        }
    }

    /// Waits for the running calls; then ends the segment and keeps the other calls as they are.
    fn hold(&mut self) {
        self.finish_held();
        if let Some(outcome) = self.state.stopping.clone().filter(|_| self.state.calls_stand_still()) {
            self.finish_segment(outcome);
        }
    }

    /// Commits results that wait for an earlier call whose result may take long.
    pub(super) fn finish_held(&mut self) {
        let running = self.state.running().map(|(call, seq)| (call.clone(), seq)).collect::<Vec<_>>();
        for (call, seq) in running {
            if let Some(result) = self.state.held.0.remove(&seq) {
                self.step.close(seq);
                self.finish(call, result);
            }
        }
    }

    fn commit_results(&mut self) {
        // The result of another agent's work may take long: later results don't wait for it.
        let waits = |call: &&Call| !call.stage.has_result() && !matches!(call.stage, Stage::Delegated { .. });
        while let Some(call) = self.state.calls.iter().find(waits).cloned() {
            let result = match call.stage {
                Stage::Running(seq) => match self.state.held.0.remove(&seq) {
                    Some(result) => {
                        self.step.close(seq);
                        result
                    }
                    None => return,
                },
                Stage::Pending => match self.result_without_run(&call) {
                    Some(result) => result,
                    None => return,
                },
                Stage::Asking(_)
                | Stage::Approving { .. }
                | Stage::Delegated { .. }
                | Stage::Reviewing(_)
                | Stage::Done => return,
            };
            self.finish(call, result);
        }
    }

    pub(super) fn finish(&mut self, call: Call, result: ToolResult) {
        let about = HookTrigger::Result { call: call.id.clone(), is_error: result.status.is_error() };
        self.finish_with(call, result, about);
    }

    /// Commits a result, and calls hooks for `about` if the call was run.
    pub(super) fn finish_with(&mut self, call: Call, result: ToolResult, about: HookTrigger) {
        let tool = call.tool.clone();
        let was_run = matches!(call.stage, Stage::Running(_) | Stage::Delegated { .. });
        self.finish_without_hooks(call, result);
        if was_run
            && self.state.stopping.is_none()
            && self.state.assignment.has_hooks_for_tool(about.points(), &tool)
        {
            self.ask(about);
        }
    }

    /// Commits a result without calling hooks.
    pub(super) fn finish_without_hooks(&mut self, call: Call, result: ToolResult) {
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

    /// The result of a call that won't be run.
    fn result_without_run(&self, call: &Call) -> Option<ToolResult> {
        if self.state.holds_calls() {
            return None;
        }
        if self.state.stopping.is_some() {
            return Some(cancelled());
        }
        if let Some(text) = self.state.objection(call) {
            return Some(ToolResult::without_run(ToolStatus::Rejected, text));
        }
        self.state.refusal(call).map(|text| ToolResult::without_run(ToolStatus::Denied, text))
    }

    pub(super) fn start_call(&mut self, id: &CallId) {
        let Some(call) = self.state.call(id).cloned() else { return };
        let memory = self.state.memories.get(&call.tool).cloned();
        let (tool, input) = (call.tool.clone(), call.input.clone());
        self.commit(ToolStarted { call: call.id, tool: call.tool, input: call.input, again: false });
        if self.state.is_delegated(id) {
            self.delegate(tool, input);
        } else {
            self.run_tool(id, memory);
        }
    }

    /// Gives each call without a result one that says that it wasn't run, and ends the turn. Nothing is running.
    pub(super) fn cancel_calls(&mut self) {
        self.withdraw_approvals();
        let open =
            self.state.calls.iter().filter(|call| !call.stage.has_result()).cloned().collect::<Vec<_>>();
        for call in open {
            self.finish(call, cancelled());
        }
        let calls = u32::try_from(self.state.calls.len()).unwrap_or(u32::MAX);
        self.end_turn(calls);
    }

    fn run_tool(&mut self, id: &CallId, memory: Option<Json>) {
        let Some(call) = self.state.calls.iter().find(|call| &call.id == id) else { return };
        let Some(spec) = self.state.assignment.tool(&call.tool) else { return };
        let output_bytes_max = spec.output_bytes_max.min(self.state.output_share());
        let is_last = self.state.calls.last().is_some_and(|last| last.id == call.id);
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
    pub(super) fn limit_left_ms(&self) -> Option<u64> {
        Some(self.state.ends?.limit.since_ms(self.step.now().elapsed))
    }

    pub(super) fn is_idempotent(&self, seq: Seq) -> bool {
        let call = self.state.running().find(|(_, running)| *running == seq).map(|(call, _)| call);
        call.and_then(|call| self.state.assignment.tool(&call.tool)).is_some_and(|spec| spec.idempotent)
    }

    /// Runs an interrupted call once more, under a new effect.
    pub(super) fn start_again(&mut self, seq: Seq) {
        let found = self.state.running().find(|(_, running)| *running == seq).map(|(call, _)| call.clone());
        let Some(call) = found else { return };
        self.step.close(seq);
        let memory = self.state.memories.get(&call.tool).cloned();
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
        let is_batch = |about: &HookTrigger| matches!(about, HookTrigger::Batch { .. });
        if self.state.questions.values().any(is_batch) {
            return true;
        }
        let asks = !self.state.told.batch
            && self.state.stopping.is_none()
            && self.state.assignment.has_hook(HookPoint::PostToolBatch);
        if asks {
            self.ask(HookTrigger::Batch { turn: self.state.next_turn() });
        }
        asks
    }

    fn end_of_calls(&mut self) {
        if self.asks_about_batch() {
            return;
        }
        let calls = u32::try_from(self.state.calls.len()).unwrap_or(u32::MAX);
        let tool = self.state.calls.last().map(|call| call.tool.clone()).unwrap_or_default();
        self.notices_of_calls();
        self.end_turn(calls);
        if self.state.stopping.is_some() {
            self.next_call();
        } else if let Some(outcome) = self.suspended_for_calls(tool) {
            self.finish_segment(outcome);
        } else {
            self.next_turn();
        }
    }
}

impl SessionState {
    /// Whether no call is running, and no hook is called about one.
    pub(super) fn calls_stand_still(&self) -> bool {
        let is_about_calls = |about: &HookTrigger| !matches!(about, HookTrigger::Prompt { .. });
        self.running().next().is_none() && !self.questions.values().any(is_about_calls)
    }

    /// Why a call can't be run at all, as text for the model.
    fn objection(&self, call: &Call) -> Option<String> {
        if let Some(written) = &call.malformed {
            return Some(format!(
                "The arguments of this call are not a JSON object, so it was not run. They were: {written}"
            ));
        }
        if self.assignment.tool(&call.tool).is_some() {
            return None;
        }
        let names = self.assignment.tools();
        let nearest = names
            .iter()
            .map(|spec| (strsim::normalized_damerau_levenshtein(&spec.name, &call.tool), spec.name.as_str()))
            .filter(|(likeness, _)| *likeness >= 0.5)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let offered = names.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
        Some(match nearest {
            Some((_, name)) => format!("There is no tool `{}`. Did you mean `{name}`?", call.tool),
            None => format!("There is no tool `{}`. There are: {offered}.", call.tool),
        })
    }

    /// The calls that may start now: in order, up to the first that could conflict with an earlier one.
    pub(super) fn startable(&self) -> Vec<Call> {
        let begun = |call: &&Call| call.stage != Stage::Pending && !call.stage.has_result();
        let mut claims = self.calls.iter().filter(begun).map(|call| self.claim(call)).collect::<Vec<_>>();
        let mut ready = Vec::new();
        for call in self.calls.iter().filter(|call| call.stage == Stage::Pending) {
            if self.objection(call).is_some() || self.refusal(call).is_some() {
                continue;
            }
            let claim = self.claim(call);
            if claims.iter().any(|other| other.meets(&claim)) {
                break;
            }
            claims.push(claim);
            ready.push(call.clone());
        }
        ready
    }

    /// Maximum output bytes for each call of the answer, so that all of them together leave half of the model's
    /// window for the rest.
    pub(super) fn output_share(&self) -> usize {
        let Some(room) = self.window().room() else { return usize::MAX };
        let bytes = usize::try_from(room.saturating_mul(BYTES_PER_TOKEN) / 2).unwrap_or(usize::MAX);
        (bytes / self.calls.len().max(1)).max(OUTPUT_BYTES_MIN)
    }

    fn claim(&self, call: &Call) -> CallAccess {
        match self.assignment.tool(&call.tool).map(|spec| &spec.access) {
            // The files that a sub-agent accesses aren't known, but it is told to work beside the others.
            Some(Access::Reads | Access::Delegates) => CallAccess::Reads,
            Some(Access::Writes { path_field }) => match path_in(&call.input, path_field) {
                Some(path) => CallAccess::Writes(path),
                None => CallAccess::Anything,
            },
            Some(Access::Anything | Access::Consents) | None => CallAccess::Anything,
        }
    }
}

fn cancelled() -> ToolResult {
    let text = "Not run: the agent was stopped before this call's turn came.";
    ToolResult::without_run(ToolStatus::Cancelled, text)
}

/// What a call may access.
#[derive(Debug, PartialEq, Eq)]
enum CallAccess {
    Reads,
    Writes(Vec<String>),
    Anything,
}

impl CallAccess {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reads, Self::Reads) => false,
            (Self::Writes(one), Self::Writes(two)) => one.iter().zip(two).all(|(a, b)| a == b),
            _ => true,
        }
    }
}

/// The components of the path in an argument; `None` if the text alone doesn't determine the file.
fn path_in(input: &Json, field: &str) -> Option<Vec<String>> {
    let value: serde_json::Value = input.read().ok()?;
    let path = value.get(field)?.as_str()?;
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            name => parts.push(name.to_owned()),
        }
    }
    if path.starts_with('/') { None } else { Some(parts) }
}
