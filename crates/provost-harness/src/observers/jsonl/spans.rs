//! Where in a run an event belongs: its agent's place in the chain, and names for what begins and ends.

use std::collections::HashMap;

use provost_event::{ActorKey, Entry, RunId, SessionId};

use crate::{Observed, ObservedBody};

/// What is known of the agents of a run.
#[derive(Debug)]
pub(super) struct Spans {
    run: RunId,
    agents: HashMap<SessionId, Agent>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Agent {
    parent: Option<SessionId>,
    depth: u32,
    turn: u32,
    call: u32,
}

/// An event's place. A span is named by its parent's name, a slash, and its own: `RUN`, below it an agent as
/// `RUN.NUMBER`, below that `/turn-N`, and in a turn `/llm-CALL` and `/tool-CALL`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: Option<SessionId>,
    pub(super) depth: u32,
    pub(super) span: String,
    pub(super) parent_span: Option<String>,
}

impl Spans {
    pub(super) fn new(run: RunId) -> Self {
        Self { run, agents: HashMap::new() }
    }

    pub(super) fn place(&mut self, event: &Observed) -> Place {
        let ActorKey::Session(session) = event.actor else {
            return Place { parent: None, depth: 0, span: self.run.to_string(), parent_span: None };
        };
        let agent = self.agent(session, &event.body);
        let above = agent.parent.map_or_else(|| self.run.to_string(), |parent| parent.to_string());
        let turn = format!("{session}/turn-{}", agent.turn);
        let (span, parent_span) = match part(event) {
            Part::Agent => (session.to_string(), above),
            Part::Turn => (turn, session.to_string()),
            Part::Call => (format!("{turn}/llm-{}", agent.call), turn),
            Part::Tool(call) => (format!("{turn}/tool-{call}"), turn),
        };
        Place { parent: agent.parent, depth: agent.depth, span, parent_span: Some(parent_span) }
    }

    /// What is known of `session` once this has happened to it.
    fn agent(&mut self, session: SessionId, body: &ObservedBody) -> Agent {
        let mut agent = self.agents.get(&session).copied().unwrap_or_default();
        if let ObservedBody::Entry(record) = body {
            match &record.entry {
                Entry::SessionStarted(started) => {
                    let above = started.parent.and_then(|parent| self.agents.get(&parent));
                    agent.parent = started.parent;
                    agent.depth = started.parent.map_or(0, |_| above.map_or(1, |above| above.depth + 1));
                }
                Entry::ModelCalled(called) => {
                    agent.turn = called.turn;
                    agent.call = called.call;
                }
                _ => {}
            }
        }
        self.agents.insert(session, agent);
        agent
    }
}

/// What an event is about.
enum Part {
    Agent,
    Turn,
    Call,
    Tool(String),
}

fn part(event: &Observed) -> Part {
    use crate::ObservedKind as Kind;
    let entry = match &event.body {
        ObservedBody::Delta(_) => return Part::Call,
        ObservedBody::Entry(record) => &record.entry,
    };
    match (event.kind, entry) {
        (_, Entry::ToolStarted(started)) => Part::Tool(started.call.to_string()),
        (_, Entry::ToolFinished(finished)) => Part::Tool(finished.call.to_string()),
        (_, Entry::PermissionDecided(decided)) => Part::Tool(decided.call.to_string()),
        (_, Entry::ApprovalRequested(asked)) => Part::Tool(asked.call.to_string()),
        (Kind::LlmStart | Kind::LlmEnd, _) => Part::Call,
        (Kind::SessionStart | Kind::SessionEnd, _) => Part::Agent,
        _ => Part::Turn,
    }
}
