//! A hook's JSON input: Claude Code's names and types, and Provost's own beside them.

mod kinds;

use std::path::Path;
use std::time::Duration;

use provost_engine::{CallDetails, HookCallDetails, StopCheck, WantedAgent, agent_names};
use provost_event::{
    Effort, Entry, HookContract, HookPoint, HookPolicy, HookTrigger, Json, Outcome, Seq, SessionId,
    SessionSource, ToolEntry, ToolFinished, ToolStatus,
};
use provost_harness::{HookAgent, HookQuestion, HookQuestionTrigger};
use serde_json::{Map, Value, json};

use crate::face::{Face, faces};
use crate::ids::session_name;
use crate::matcher::Names;
use crate::point::{event_name, rules};
use crate::tool;
use kinds::{error_kind, notification, notification_type};

/// The only trigger with which Provost starts a compaction.
const COMPACTION_TRIGGER: &str = "auto";
/// The reason of every session end in scripts: the other reasons are user actions in a terminal UI.
const END_REASON: &str = "other";

/// A question to the hooks of one hook point.
#[derive(Clone, Copy)]
pub(crate) struct HookQuery<'a> {
    pub(crate) question: &'a HookQuestion,
    pub(crate) point: HookPoint,
    contract: HookContract,
    hook: &'a HookPolicy,
    /// The folder of the hook's project.
    project: Option<&'a Path>,
    /// The face of the call that it is about, if not the call itself.
    face: Option<&'a Face>,
}

impl<'a> HookQuery<'a> {
    pub(crate) fn by(hook: &'a HookPolicy, question: &'a HookQuestion, point: HookPoint) -> Self {
        Self {
            question,
            point,
            contract: hook.contract,
            hook,
            project: hook.setup.project.as_deref(),
            face: None,
        }
    }

    pub(crate) const fn contract(self) -> HookContract {
        self.contract
    }

    /// The same question about one face of its call.
    pub(crate) const fn about_face(self, face: &'a Face) -> Self {
        Self { face: Some(face), ..self }
    }

    /// The face of the call in question.
    pub(crate) const fn face(self) -> Option<&'a Face> {
        self.face
    }

    /// The faces of the call in question; none: it is asked about as it is.
    pub(crate) fn faces(self) -> Vec<Face> {
        let call = self.own_call().filter(|_| rules(self.point).is_about_a_call);
        call.map(|call| faces(self.hook, call)).unwrap_or_default()
    }

    pub(crate) const fn session(self) -> SessionId {
        match &self.question.trigger {
            HookQuestionTrigger::HookCall(hook_call) => hook_call.session,
            HookQuestionTrigger::Stop(check) => check.session,
        }
    }

    /// A condition with its path as Provost writes it: in scripts' contracts `/` begins a path in the project's folder,
    /// and `//` an absolute one.
    pub(crate) fn located(self, condition: &str) -> String {
        let Some((tool, path)) = condition.split_once("(/").filter(|_| self.contract.is_foreign()) else {
            return condition.to_owned();
        };
        if !tool::takes_paths(tool) {
            return condition.to_owned();
        }
        let project = self.project.unwrap_or(&self.question.workspace);
        match path.strip_prefix('/') {
            Some(absolute) => format!("{tool}(/{absolute}"),
            None => format!("{tool}({}/{path}", project.display()),
        }
    }

    /// What is left of the session's time limit, which includes ending the hook's processes.
    pub(crate) fn limit(self) -> Option<Duration> {
        let limit_ms = match &self.question.trigger {
            HookQuestionTrigger::HookCall(hook_call) => hook_call.limit_ms,
            HookQuestionTrigger::Stop(check) => check.limit_ms,
        };
        limit_ms.map(Duration::from_millis)
    }

    fn about(self) -> Option<&'a HookTrigger> {
        match &self.question.trigger {
            HookQuestionTrigger::HookCall(hook_call) => Some(&hook_call.about),
            HookQuestionTrigger::Stop(_) => None,
        }
    }

    fn details(self) -> &'a HookCallDetails {
        match &self.question.trigger {
            HookQuestionTrigger::HookCall(hook_call) => &hook_call.details,
            HookQuestionTrigger::Stop(_) => &HookCallDetails::None,
        }
    }

    /// The tool call in question, in the shape of its face.
    pub(crate) fn call(self) -> Option<&'a CallDetails> {
        self.face.map_or_else(|| self.own_call(), |face| Some(&face.call))
    }

    /// The tool call in question as it is made.
    pub(crate) fn own_call(self) -> Option<&'a CallDetails> {
        match self.details() {
            HookCallDetails::Call(call) | HookCallDetails::Result { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Whether it is about a call that failed.
    pub(crate) fn failed(self) -> bool {
        use HookTrigger as About;
        matches!(
            self.about(),
            Some(About::Result { is_error: true, .. } | About::ChildEnd { is_error: true, .. })
        )
    }

    /// The event's name in the hook's input.
    pub(crate) fn event(self) -> &'static str {
        event_name(self.point, self.failed())
    }

    /// The names that matchers are compared with; `None` if matchers are ignored.
    pub(crate) fn names(self, contract: HookContract) -> Option<Names<'a>> {
        if !rules(self.point).has_matchers {
            return None;
        }
        match self.point {
            HookPoint::Spawn | HookPoint::ChildEnd => {
                return Some(tool::kind_names(self.call()?, contract));
            }
            HookPoint::SubagentStart | HookPoint::SubagentStop => {
                return Some(agent_names(self.question.agent.name.as_deref()));
            }
            point if rules(point).is_about_a_call => return Some(tool::call_names(self.call()?, contract)),
            _ => {}
        }
        match (self.point, self.about()?) {
            (HookPoint::SessionStart, about) => Some(vec![source_name(source_of(about))]),
            (HookPoint::PreCompact | HookPoint::PostCompact, _) => Some(vec![COMPACTION_TRIGGER]),
            (HookPoint::SessionEnd, _) => Some(vec![END_REASON]),
            (HookPoint::Notification, about) => Some(vec![notification_type(about)]),
            (HookPoint::StopFailure, HookTrigger::Closing { outcome }) => Some(vec![error_kind(outcome)]),
            _ => None,
        }
    }

    fn finished(self, seq: Seq) -> Option<&'a ToolFinished> {
        let session = self.session().into();
        let mut records = self.question.records.iter();
        let found = records.find(|record| record.seq == seq && record.actor == session)?;
        match &found.entry {
            Entry::Tool(ToolEntry::Finished(finished)) => Some(finished),
            _ => None,
        }
    }

    /// The question as JSON.
    pub(crate) fn json(self) -> Value {
        let mut out = self.common();
        match &self.question.trigger {
            HookQuestionTrigger::Stop(check) => put(&mut out, stop(check)),
            HookQuestionTrigger::HookCall(hook_call) => {
                out.insert("turn".to_owned(), hook_call.turn.into());
                put(&mut out, self.trigger(&hook_call.about));
                put(&mut out, self.more());
            }
        }
        Value::Object(out)
    }

    fn common(self) -> Map<String, Value> {
        let (session, path) = self.told_session();
        let mut out = Map::new();
        put(
            &mut out,
            json!({
                "session_id": self.name_of(session),
                "transcript_path": words(path),
                "cwd": self.question.folder.to_string_lossy(),
                "hook_event_name": self.event(),
                "run_id": session.run.to_string(),
            }),
        );
        if self.contract.is_foreign() {
            out.insert("provost_session".to_owned(), self.session().to_string().into());
        }
        if self.contract == HookContract::Codex {
            let turn = match &self.question.trigger {
                HookQuestionTrigger::HookCall(hook_call) => hook_call.turn,
                HookQuestionTrigger::Stop(check) => check.turn,
            };
            put(&mut out, json!({ "turn_id": turn.to_string(), "model": self.question.model.name }));
        }
        put(&mut out, self.agent());
        if rules(self.point).has_permission_mode {
            out.insert("permission_mode".to_owned(), "default".into());
        }
        if let Some(level) = self.effort().filter(|_| rules(self.point).is_about_a_call) {
            out.insert("effort".to_owned(), json!({ "level": level }));
        }
        out
    }

    fn name_of(self, session: SessionId) -> String {
        session_name(self.contract, session)
    }

    /// The session in the hook's input, and the path of its log. For scripts of other agents that is the session
    /// that a person started: they identify sub-agents by other names.
    fn told_session(self) -> (SessionId, Option<&'a Path>) {
        let (session, question) = (self.session(), self.question);
        match (self.contract, question.agent.parent) {
            (HookContract::Claude | HookContract::Codex, Some(_)) => {
                (SessionId::root(session.run), question.root_transcript_path.as_deref())
            }
            _ => (session, question.transcript_path.as_deref()),
        }
    }

    /// The agent, if it is a sub-agent.
    fn agent(self) -> Value {
        let HookAgent { parent: Some(parent), depth, name } = &self.question.agent else { return empty() };
        let mut fields = Map::new();
        put(
            &mut fields,
            json!({
                "agent_id": self.name_of(self.session()),
                "agent_type": tool::kind(name.as_deref()),
                "agent_parent": self.name_of(*parent),
                "agent_depth": depth,
            }),
        );
        if self.point == HookPoint::SubagentStop {
            let path = words(self.question.transcript_path.as_deref());
            fields.insert("agent_transcript_path".to_owned(), path.into());
        }
        Value::Object(fields)
    }

    /// The model's effort, in a script's terms.
    pub(crate) fn effort(self) -> Option<&'static str> {
        self.question.model.effort.map(|effort| match effort {
            Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High | Effort::Xhigh | Effort::Max => effort.name(),
        })
    }

    fn trigger(self, about: &HookTrigger) -> Value {
        match about {
            HookTrigger::Subagent if self.point == HookPoint::SubagentStart => empty(),
            HookTrigger::Session { .. } | HookTrigger::Subagent => {
                json!({ "source": source_name(source_of(about)), "model": self.question.model.name })
            }
            HookTrigger::Prompt { text, by } => json!({ "prompt": text, "prompt_by": by }),
            HookTrigger::Request { call } => json!({ "call": call, "model": self.question.model.name }),
            HookTrigger::Call { .. }
            | HookTrigger::Spawn { .. }
            | HookTrigger::Approval { .. }
            | HookTrigger::Result { .. }
            | HookTrigger::ChildEnd { .. } => {
                self.own_call().map_or_else(empty, |call| self.call_fields(call))
            }
            HookTrigger::Compaction => {
                json!({ "trigger": COMPACTION_TRIGGER, "custom_instructions": "" })
            }
            HookTrigger::Compacted => json!({ "trigger": COMPACTION_TRIGGER }),
            HookTrigger::Closing { outcome } => json!({ "outcome": outcome }),
            HookTrigger::Batch { .. } | HookTrigger::TurnEnd { .. } => empty(),
        }
    }

    fn call_fields(self, call: &CallDetails) -> Value {
        let mut fields = self.told(call, self.face);
        let more = match self.point {
            HookPoint::Notification => notification(
                self.about(),
                format!("Provost needs permission to use {}", tool::call_name(call)),
            ),
            HookPoint::Spawn => {
                json!({ "tool_use_id": call.call, "spawn": call.wanted.as_deref().map(spawn) })
            }
            HookPoint::Approval => json!({ "provost_why": call.why }),
            _ => json!({ "tool_use_id": call.call }),
        };
        put(&mut fields, more);
        Value::Object(fields)
    }

    /// A call under both of its names, in the shape of `face`.
    fn told(self, call: &CallDetails, face: Option<&Face>) -> Map<String, Value> {
        let shown = face.map_or(call, |face| &face.call);
        let mut told = tool::call_input(shown, &value_of(&shown.input), &self.question.workspace);
        if let (Some(face), Value::Object(told)) = (face, &mut told) {
            told.extend(face.more.clone());
        }
        let mut fields = Map::new();
        put(
            &mut fields,
            json!({
                "tool_name": tool::call_name(shown),
                "tool_input": told,
                "provost_tool": call.tool.name,
                "provost_input": value_of(&call.input),
            }),
        );
        fields
    }

    /// The fields with the question's details.
    fn more(self) -> Value {
        match self.details() {
            HookCallDetails::None | HookCallDetails::Call(_) => self.closing_words(""),
            HookCallDetails::Request { items, input_tokens, tool_calls } => {
                json!({ "items": items, "input_tokens": input_tokens, "tool_calls": tool_calls })
            }
            HookCallDetails::Result { call, finished } => self.result(call, *finished),
            HookCallDetails::Batch { calls } => {
                let calls = calls.iter().flat_map(|(call, seq)| self.batched(call, *seq));
                json!({ "tool_calls": calls.collect::<Vec<_>>() })
            }
            HookCallDetails::Text { tool_calls, last_text } => {
                let mut fields = Map::new();
                put(
                    &mut fields,
                    json!({
                        "tool_calls": tool_calls,
                        "last_text": last_text,
                        "last_assistant_message": last_text,
                    }),
                );
                put(&mut fields, self.closing_words(last_text));
                Value::Object(fields)
            }
            HookCallDetails::Compacted { summary } => json!({ "compact_summary": summary }),
        }
    }

    fn result(self, own: &CallDetails, seq: Seq) -> Value {
        let call = self.call().unwrap_or(own);
        let input = value_of(&call.input);
        let finished = self.finished(seq);
        let duration = finished.map(|finished| finished.duration_ms);
        let mut fields = Map::new();
        let told = if self.failed() {
            json!({
                "error": finished.map(tool::error_text).unwrap_or_default(),
                "is_interrupt": finished.is_some_and(|finished| finished.status == ToolStatus::Cancelled),
                "duration_ms": duration,
            })
        } else {
            let response = finished.map(|it| tool::response(call, it, &input, &self.question.workspace));
            json!({ "tool_response": response, "duration_ms": duration })
        };
        put(&mut fields, told);
        if let Some(HookTrigger::ChildEnd { child, outcome, .. }) = self.about() {
            let configured = call.wanted.as_ref().and_then(|wanted| wanted.agent.as_deref());
            let child = json!({
                "agent_id": self.name_of(*child),
                "agent_type": tool::kind(configured),
                "outcome": outcome,
            });
            fields.insert("child".to_owned(), child);
        }
        Value::Object(fields)
    }

    /// A call of a batch, once for each of its faces.
    fn batched(self, call: &CallDetails, seq: Seq) -> Vec<Value> {
        let faces = faces(self.hook, call);
        let shapes = if faces.is_empty() { vec![None] } else { faces.iter().map(Some).collect() };
        let output = self.finished(seq).map(|finished| finished.output.as_str());
        let told = shapes.into_iter().map(|face| {
            let mut fields = self.told(call, face);
            put(&mut fields, json!({ "tool_use_id": call.call, "tool_response": output }));
            Value::Object(fields)
        });
        told.collect()
    }

    /// The fields about the coming suspension or end, at each of its hook points.
    fn closing_words(self, last_text: &str) -> Value {
        let Some(HookTrigger::Closing { outcome }) = self.about() else { return empty() };
        match (self.point, outcome) {
            (HookPoint::SessionEnd, _) => json!({ "reason": END_REASON }),
            (HookPoint::Notification, _) => notification(self.about(), outcome.to_string()),
            (HookPoint::StopFailure, Outcome::Failed { message, .. }) => json!({
                "error": error_kind(outcome),
                "error_details": message,
                "last_assistant_message": message,
                "last_text": last_text,
            }),
            _ => empty(),
        }
    }
}

/// An agent to be spawned.
fn spawn(wanted: &WantedAgent) -> Value {
    json!({
        "agent": wanted.agent,
        "agent_type": tool::kind(wanted.agent.as_deref()),
        "name": wanted.name,
        "goal": wanted.goal,
        "priority": wanted.priority,
        "depth": wanted.depth,
    })
}

fn words(path: Option<&Path>) -> String {
    path.unwrap_or("".as_ref()).to_string_lossy().into_owned()
}

const fn source_of(about: &HookTrigger) -> SessionSource {
    match about {
        HookTrigger::Session { source } => *source,
        _ => SessionSource::Startup,
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn put(into: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        into.extend(fields);
    }
}

pub(crate) fn value_of(json: &Json) -> Value {
    json.read().unwrap_or_default()
}

fn stop(check: &StopCheck) -> Value {
    json!({
        "permission_mode": "default",
        "stop_hook_active": check.blocked_before,
        "last_assistant_message": check.final_text,
        "background_tasks": [],
        "session_crons": [],
        "final_text": Some(&check.final_text).filter(|text| !text.is_empty()),
        "iterations": check.turn,
        "tool_calls": check.tool_calls,
        "tool_calls_made": check.tool_calls,
        "stop_reason": check.stop_reason(),
    })
}

const fn source_name(source: SessionSource) -> &'static str {
    match source {
        SessionSource::Startup => "startup",
        SessionSource::Resume => "resume",
    }
}
