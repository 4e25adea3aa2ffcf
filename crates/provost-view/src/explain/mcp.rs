//! The MCP servers of a run: which tools agents had of them, who called them, and which were never called.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{Entry, LifecycleEntry, SessionId, ToolEntry, ToolFinished, ToolSpec, ToolStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the tools of servers begin with.
const OF_MCP: &str = "mcp__";

/// An MCP server, as far as the run's agents had tools of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpExplanation {
    /// Its name.
    pub server: String,
    /// Whether a call reached it, so that it was started.
    pub was_started: bool,
    /// Its tools that were called, by name.
    pub called: Vec<McpToolUse>,
    /// Its tools that agents had and none called, by name.
    pub never_called: Vec<String>,
    /// Its tools that agents found by searching, by name.
    pub found: Vec<String>,
}

/// A tool of a server that was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolUse {
    /// Its name, as models know it.
    pub tool: String,
    /// Calls with a result.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that weren't made: denied, blocked, or with wrong arguments.
    pub not_made: u64,
    /// Those whose outcome isn't known.
    pub unknown: u64,
    /// The milliseconds of all of them.
    pub duration_ms: u64,
    /// The numbers of the agents that called it, with how often.
    pub agents: BTreeMap<u32, u64>,
}

/// What is summed up from the logs.
#[derive(Default)]
pub(super) struct McpSums {
    had: BTreeSet<String>,
    found: BTreeSet<String>,
    called: BTreeMap<String, McpToolUse>,
}

impl McpSums {
    pub(super) fn add(&mut self, session: SessionId, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => self.have(&started.policy.tools),
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => self.have(&changed.policy.tools),
            Entry::Tool(ToolEntry::Changed(changed)) => {
                self.have(&changed.added);
                let names =
                    changed.added.iter().map(|tool| &tool.name).filter(|name| name.starts_with(OF_MCP));
                self.found.extend(names.cloned());
            }
            Entry::Tool(ToolEntry::Finished(finished)) if finished.tool.starts_with(OF_MCP) => {
                self.finished(session, finished);
            }
            _ => {}
        }
    }

    fn have(&mut self, tools: &[ToolSpec]) {
        self.had.extend(tools.iter().map(|tool| tool.name.clone()).filter(|name| name.starts_with(OF_MCP)));
    }

    fn finished(&mut self, session: SessionId, finished: &ToolFinished) {
        let used = self.called.entry(finished.tool.clone()).or_insert_with(|| McpToolUse {
            tool: finished.tool.clone(),
            calls: 0,
            failed: 0,
            not_made: 0,
            unknown: 0,
            duration_ms: 0,
            agents: BTreeMap::new(),
        });
        used.calls += 1;
        used.duration_ms = used.duration_ms.saturating_add(finished.duration_ms);
        *used.agents.entry(session.agent).or_default() += 1;
        match finished.status {
            ToolStatus::Ok => {}
            ToolStatus::Rejected | ToolStatus::Denied => used.not_made += 1,
            ToolStatus::Unknown => used.unknown += 1,
            ToolStatus::Error | ToolStatus::TimedOut | ToolStatus::Cancelled => used.failed += 1,
        }
    }

    /// The servers, by name.
    pub(super) fn servers(self) -> Vec<McpExplanation> {
        let mut servers = BTreeMap::<String, McpExplanation>::new();
        let Self { had, found, mut called } = self;
        let names =
            had.into_iter().chain(called.keys().cloned().collect::<Vec<_>>()).collect::<BTreeSet<_>>();
        for name in names {
            let Some(server) = server_of(&name) else { continue };
            let server = servers.entry(server.to_owned()).or_insert_with(|| McpExplanation {
                server: server.to_owned(),
                was_started: false,
                called: Vec::new(),
                never_called: Vec::new(),
                found: Vec::new(),
            });
            if found.contains(&name) {
                server.found.push(name.clone());
            }
            match called.remove(&name) {
                Some(used) => {
                    server.was_started |= used.calls > used.not_made;
                    server.called.push(used);
                }
                None => server.never_called.push(name),
            }
        }
        servers.into_values().collect()
    }
}

/// The server in the name of a tool.
fn server_of(tool: &str) -> Option<&str> {
    tool.strip_prefix(OF_MCP)?.split_once("__").map(|(server, _)| server)
}
