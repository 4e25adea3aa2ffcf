//! Names of spans in a run, and the span of each event.

use std::collections::HashMap;

use provost_event::{ActorKey, Entry, GateEntry, ModelEntry, RunId, SessionId, ToolEntry};

use crate::{ObservedBody, ObserverEvent};

/// The progress of the agents of a run.
#[derive(Debug)]
pub(super) struct Spans {
    run: RunId,
    agents: HashMap<SessionId, Agent>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Agent {
    turn: u32,
    call: u32,
}

impl Spans {
    pub(super) fn new(run: RunId) -> Self {
        Self { run, agents: HashMap::new() }
    }

    /// The span of `event`, and its parent span. A span's name is its parent's name, a slash, and its own; runs
    /// and agents have their own ids.
    pub(super) fn place(&mut self, event: &ObserverEvent) -> (String, Option<String>) {
        let ActorKey::Session(session) = event.actor else { return (self.run.to_string(), None) };
        let agent = self.agent(session, &event.body);
        let turn = format!("{session}/turn-{}", agent.turn);
        let (span, parent_span) = match part(event) {
            Part::Agent => {
                let above = event.chain.parent.map(|parent| parent.to_string());
                (session.to_string(), above.unwrap_or_else(|| self.run.to_string()))
            }
            Part::Turn => (turn, session.to_string()),
            Part::Call => (format!("{turn}/llm-{}", agent.call), turn),
            Part::Tool(call) => (format!("{turn}/tool-{call}"), turn),
        };
        (span, Some(parent_span))
    }

    /// The progress of `session` after this event.
    fn agent(&mut self, session: SessionId, body: &ObservedBody) -> Agent {
        let agent = self.agents.entry(session).or_default();
        if let ObservedBody::Entry(record) = body
            && let Entry::Model(ModelEntry::Called(called)) = &record.entry
        {
            *agent = Agent { turn: called.turn, call: called.call };
        }
        *agent
    }
}

/// The subject of an event.
enum Part {
    Agent,
    Turn,
    Call,
    Tool(String),
}

fn part(event: &ObserverEvent) -> Part {
    use crate::ObserverEventKind as Kind;
    let entry = match &event.body {
        ObservedBody::Delta(_) => return Part::Call,
        ObservedBody::Entry(record) => &record.entry,
    };
    match (event.kind, entry) {
        (_, Entry::Tool(ToolEntry::Started(started))) => Part::Tool(started.call.to_string()),
        (_, Entry::Tool(ToolEntry::Finished(finished))) => Part::Tool(finished.call.to_string()),
        (_, Entry::Gate(GateEntry::PermissionDecided(decided))) => Part::Tool(decided.call.to_string()),
        (_, Entry::Gate(GateEntry::ApprovalRequested(asked))) => Part::Tool(asked.call.to_string()),
        (Kind::LlmStart | Kind::LlmEnd, _) => Part::Call,
        (Kind::SessionStart | Kind::SessionEnd, _) => Part::Agent,
        _ => Part::Turn,
    }
}
