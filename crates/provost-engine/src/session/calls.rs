//! The tool calls of the last answer: what is allowed, which of them run, and their results.

pub(super) mod approve;
mod call;
pub(super) mod delegate;
pub(super) mod gate;
mod list;
pub(super) mod repeats;
pub(super) mod run;

use std::collections::BTreeMap;

use provost_event::{
    Access, ApprovalRequested, ApprovalResolved, Block, CallId, HookTrigger, Json, NamedScript, Outcome,
    PermissionDecided, Seq, SubAgentSuspended, Timestamp, ToolFinished, ToolStarted, ToolStatus, ToolSubject,
};
use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::fingerprint::fingerprint;
use super::hooks::{CallReplacement, CombinedDecision};
use crate::event::ToolResult;
use crate::{CallDetails, ToolMemory, own_call};
use call::{CallStage, TrackedCall};
use gate::{Permits, wanted_agent};
use list::AnswerCalls;
use repeats::CallHistory;

pub(super) use gate::CallGate;

pub use call::PendingApproval;

/// The tool calls of the last answer, and what outlasts them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calls {
    /// In the order of the answer.
    of_answer: AnswerCalls,
    approvals: BTreeMap<Seq, PendingApproval>,
    permits: Permits,
    history: CallHistory,
    /// What each tool gets at its next call.
    memories: BTreeMap<String, Json>,
    /// The background commands that ran after the last call that had to do with them, in words.
    jobs: Vec<String>,
    /// What the sandbox denied last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    denied: Vec<String>,
    /// The outcome of a suspended sub-agent that the session waits for, if any.
    sub_agent_outcome: Option<Outcome>,
    #[serde(skip)]
    held: HeldResults,
}

/// Results that wait for those of earlier calls of the same answer. The only part of a session that isn't in its
/// log: if it is lost, the effects are still open, and so count as interrupted. It doesn't affect the equality of
/// states.
#[derive(Debug, Clone, Default)]
struct HeldResults(BTreeMap<Seq, ToolResult>);

impl PartialEq for HeldResults {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HeldResults {}

/// A call that has its result, as other parts of the session record it.
pub(super) struct FinishedCall {
    pub(super) tool: String,
    pub(super) input: Json,
    /// The files that it writes, if it does nothing else.
    pub(super) writes: Vec<String>,
    /// It changes nothing.
    pub(super) reads: bool,
    /// The command line that it runs, if it runs one.
    pub(super) command: Option<String>,
}

/// What hooks have said about one call.
pub(super) struct HooksOnCall<'a> {
    pub(super) decision: CombinedDecision,
    /// The arguments that take the place of the call's own.
    pub(super) replacement: Option<CallReplacement>,
    pub(super) scripts: Option<&'a [NamedScript]>,
}

/// How entries change them.
impl Calls {
    /// Permissions follow the policy, with the approvals of the run added.
    pub(super) fn bound_by(&mut self, assignment: &Assignment) {
        self.permits.bound_by(assignment);
    }

    /// Calls are tracked as calls of the agent's own tools, whatever form the model gave them in. What an external
    /// program asks for stays as it is.
    pub(super) fn answered(&mut self, content: &[Block], assignment: &Assignment) {
        let tools = if assignment.is_external() { &[] } else { assignment.tools() };
        let calls = content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(TrackedCall::new(call, own_call(call, tools))),
            Block::Text(_) | Block::Thinking { .. } | Block::Opaque { .. } | Block::Image(_) => None,
        });
        self.of_answer = AnswerCalls(calls.collect());
    }

    /// A call for an agent is no effect: its result comes from the run.
    pub(super) fn started(&mut self, started: &ToolStarted, head: Seq, assignment: &Assignment) {
        let stage = if assignment.delegates(&started.tool) {
            CallStage::Delegated { started: head, suspended: false }
        } else {
            CallStage::Running(head)
        };
        self.of_answer.set_stage(&started.call, stage);
    }

    pub(super) fn finished(
        &mut self,
        finished: &ToolFinished,
        head: Seq,
        assignment: &Assignment,
    ) -> Option<FinishedCall> {
        let call = self.of_answer.0.iter_mut().find(|call| call.id == finished.call)?;
        call.stage = CallStage::Done;
        call.finished = Some(head);
        let said = [call.tool.as_str(), call.input.text(), finished.output.as_str()];
        let images = finished.images.iter().map(|image| &*image.blob.0);
        self.history.finished(fingerprint(said.into_iter().chain(images)), finished);
        if !finished.facts.denied.is_empty() {
            self.denied.clone_from(&finished.facts.denied);
        }
        if let Some(memory) = &finished.memory {
            self.memories.insert(finished.tool.clone(), memory.clone());
        }
        if let Some(jobs) = &finished.facts.jobs {
            self.jobs.clone_from(jobs);
        }
        let writer = assignment.tool(&call.tool).filter(|spec| spec.access == Access::Writes);
        let writes = writer.map(|spec| spec.subject.written_paths_in(&call.input)).unwrap_or_default();
        let reads = assignment.only_reads(&call.tool);
        let command = assignment.tool(&call.tool).and_then(|spec| spec.subject.command_in(&call.input));
        Some(FinishedCall { tool: call.tool.clone(), input: call.input.clone(), writes, reads, command })
    }

    pub(super) fn turn_ended(&mut self) {
        self.history.turn_ended(self.of_answer.is_empty());
        self.of_answer = AnswerCalls::default();
    }

    /// The entry `head` calls hooks.
    pub(super) fn hooks_asked(&mut self, about: &HookTrigger, head: Seq) {
        match about {
            HookTrigger::Call { call, .. }
            | HookTrigger::Spawn { call }
            | HookTrigger::Approval { call, .. } => {
                self.of_answer.set_stage(call, CallStage::Asking(head));
            }
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                self.of_answer.set_stage(call, CallStage::Reviewing(head));
            }
            _ => {}
        }
    }

    /// Hooks have answered; what they said is absent if it doesn't count.
    pub(super) fn hooks_decided(&mut self, about: &HookTrigger, said: Option<HooksOnCall<'_>>) {
        match about {
            HookTrigger::Call { call, .. }
            | HookTrigger::Spawn { call }
            | HookTrigger::Approval { call, .. } => {
                self.of_answer.set_stage(call, CallStage::Pending);
            }
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                return self.of_answer.set_stage(call, CallStage::Done);
            }
            _ => return,
        }
        let Some(HooksOnCall { decision, replacement, scripts }) = said else { return };
        if let (HookTrigger::Call { call, .. } | HookTrigger::Approval { call, .. }, Some(replacement)) =
            (about, replacement)
        {
            return self.of_answer.update(call, |call| call.replace(replacement));
        }
        match about {
            HookTrigger::Call { call, .. } => {
                self.of_answer.update(call, |call| call.hooks_decided(decision))
            }
            HookTrigger::Spawn { call } => {
                self.of_answer.update(call, |call| call.spawn_hooks_decided(decision))
            }
            HookTrigger::Approval { call, .. } => {
                self.of_answer.update(call, |call| call.approval_hooks_decided(decision, scripts));
            }
            _ => {}
        }
    }

    pub(super) fn ruled(&mut self, decided: &PermissionDecided) {
        self.of_answer.update(&decided.call, |call| call.ruling = Some(decided.clone()));
    }

    pub(super) fn approval_requested(&mut self, request: &ApprovalRequested, head: Seq, at: Timestamp) {
        self.of_answer.set_stage(&request.call, CallStage::Approving { asked: head, timer: head });
        self.of_answer.update(&request.call, |call| call.question.clone_from(&request.question));
        self.approvals.insert(head, PendingApproval::new(head, request, at));
    }

    pub(super) fn approval_resolved(&mut self, resolved: &ApprovalResolved) {
        let Some(approval) = self.approvals.remove(&resolved.asked) else { return };
        self.permits.approval_resolved(&resolved.answer);
        self.of_answer.update(&approval.call, |call| call.approval_resolved(resolved));
    }

    pub(super) fn sub_agent_suspended(&mut self, entry: &SubAgentSuspended) {
        self.sub_agent_outcome = Some(entry.outcome.clone());
        self.of_answer.set_suspended(entry.started, true);
    }

    /// The agent that entry `started` requested works again.
    pub(super) fn sub_agent_resumed(&mut self, started: Seq) {
        self.of_answer.set_suspended(started, false);
    }

    /// Another segment begins, or the process that worked on this one is gone: a question that is still open gets
    /// the full time again.
    pub(super) fn resumed(&mut self, head: Seq, due: Timestamp) {
        self.jobs.clear();
        self.approvals.values_mut().for_each(|open| open.due = due);
        for call in &mut self.of_answer.0 {
            call.paused = false;
            if let CallStage::Approving { timer, .. } = &mut call.stage {
                *timer = head;
            }
        }
    }

    /// The session was resumed by a request.
    pub(super) fn resumed_by_request(&mut self) {
        self.sub_agent_outcome = None;
        self.history.resumed();
        self.of_answer.0.iter_mut().for_each(|call| call.stage = call.stage.resumed());
    }

    /// Takes over the calls of a fork's source that have no result.
    pub(super) fn taken_over(&mut self, from: Self) {
        self.of_answer = from.of_answer;
        self.of_answer.0.retain(|call| !call.stage.has_result());
        self.of_answer.0.iter_mut().for_each(|call| call.stage = CallStage::Pending);
    }
}

/// What others ask about them.
impl Calls {
    /// The calls of the last answer.
    pub(super) const fn of_answer(&self) -> &AnswerCalls {
        &self.of_answer
    }

    /// Whether the session, if it stops with `stopping`, is suspended in the middle of its calls, because one of
    /// them waits for an approval, a sub-agent or a resumption: calls that have not begun stay open.
    fn are_held(&self, stopping: Option<&Outcome>) -> bool {
        stopping.is_some_and(|outcome| !outcome.is_final())
            && self.of_answer.0.iter().any(TrackedCall::waits_for_others)
    }

    /// Tool calls so far.
    pub(super) const fn made(&self) -> u32 {
        self.history.made()
    }

    /// Tools called since the agent last ended a turn without a call, or since it began.
    pub(super) const fn made_since_stop(&self) -> u32 {
        self.history.made_since_stop()
    }

    /// What each tool gets at its next call.
    pub(super) const fn memories(&self) -> &BTreeMap<String, Json> {
        &self.memories
    }

    /// The tool that runs the agent's commands, and its state from its last call.
    pub(super) fn shell(&self, assignment: &Assignment) -> Option<ToolMemory> {
        let mut known = self.memories.iter();
        let runs_commands = |tool: &str| {
            let spec = assignment.tool(tool);
            spec.is_some_and(|spec| matches!(spec.subject, ToolSubject::Command { .. }))
        };
        let (tool, memory) = known.find(|(tool, _)| runs_commands(tool))?;
        Some(ToolMemory { tool: tool.clone(), memory: memory.clone() })
    }

    /// The background commands that may still run, in words.
    pub(super) fn jobs(&self) -> &[String] {
        &self.jobs
    }

    /// The open approval questions, oldest first.
    pub(super) fn approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.values()
    }

    /// The open approval question about a call.
    pub(super) fn approval_of(&self, call: &CallId) -> Option<Seq> {
        self.approvals.values().find(|open| &open.call == call).map(|open| open.asked)
    }

    /// The fingerprint of the call that this is the result of, if that succeeded and only reads.
    pub(super) fn read_by(&self, finished: &ToolFinished, assignment: &Assignment) -> Option<u64> {
        let call = self.of_answer.get(&finished.call).filter(|_| finished.status == ToolStatus::Ok)?;
        let reads = assignment.only_reads(&call.tool);
        reads.then(|| fingerprint([call.tool.as_str(), call.input.text()]))
    }

    /// A call, as hooks see it.
    pub(super) fn details(&self, id: &CallId, assignment: &Assignment) -> Option<CallDetails> {
        Some(self.details_of(self.of_answer.get(id)?, assignment))
    }

    /// The calls that have results, as hooks see them, with the entries of their results.
    pub(super) fn finished_details(&self, assignment: &Assignment) -> Vec<(CallDetails, Seq)> {
        let calls = self.of_answer.0.iter();
        calls.filter_map(|call| Some((self.details_of(call, assignment), call.finished?))).collect()
    }

    /// The entry with a call's result.
    pub(super) fn result_of(&self, id: &CallId) -> Option<Seq> {
        self.of_answer.get(id)?.finished
    }

    fn details_of(&self, call: &TrackedCall, assignment: &Assignment) -> CallDetails {
        let is_asked = matches!(call.stage, CallStage::Asking(_));
        let wanted = assignment.delegates(&call.tool).then(|| Box::new(wanted_agent(call, assignment)));
        CallDetails {
            call: call.id.clone(),
            tool: Box::new(assignment.tool_identity(&call.tool)),
            input: call.input.clone(),
            memory: self.memories.get(&call.tool).cloned(),
            why: if is_asked { call.why_ask() } else { String::new() },
            wanted,
        }
    }

    /// Keeps the result of the effect `seq` until it is committed in its turn.
    pub(super) fn hold(&mut self, seq: Seq, result: ToolResult) {
        self.held.0.insert(seq, result);
    }

    /// Whether the result of the effect `seq` is kept until it is committed in its turn.
    pub(super) fn is_held(&self, seq: Seq) -> bool {
        self.held.0.contains_key(&seq)
    }

    fn take_held(&mut self, seq: Seq) -> Option<ToolResult> {
        self.held.0.remove(&seq)
    }
}
