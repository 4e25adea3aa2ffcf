//! The MCP servers of a run, for people.

use std::fmt::Write as _;

use provost_event::{RunId, SessionId, counted};
use provost_view::explain::{McpExplanation, McpToolUse};

use crate::names::Names;
use crate::render::duration;

/// Names of tools that a line has.
const NAMES_MAX: usize = 12;

/// Which servers, which of their tools, who called them, and what was never called.
pub(super) fn servers(all: &[McpExplanation], names: &Names, run: RunId) -> String {
    let mut out = "\nMCP servers\n".to_owned();
    for server in all {
        let state = if server.was_started { "started" } else { "never started: no call reached it" };
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "   {}: {state}", server.server);
        for used in &server.called {
            let _ = writeln!(out, "      {}", line(used, names, run));
        }
        if !server.found.is_empty() {
            let _ = writeln!(out, "      found by searching: {}", listed(&server.found));
        }
        if !server.never_called.is_empty() {
            let _ = writeln!(out, "      never called: {}", listed(&server.never_called));
        }
    }
    out
}

fn line(used: &McpToolUse, names: &Names, run: RunId) -> String {
    let by = used.agents.iter().map(|(agent, calls)| {
        let who = names.in_words(SessionId { run, agent: *agent });
        if used.agents.len() > 1 { format!("{who} ({calls})") } else { who }
    });
    let by = by.collect::<Vec<_>>().join(", ");
    let parts =
        [(used.failed, "failed"), (used.not_made, "not made"), (used.unknown, "with an unknown outcome")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let more = parts.map(|(count, what)| format!(", {count} {what}")).collect::<String>();
    format!("{}: {} by {by}{more}, {}", used.tool, counted(used.calls, "call"), duration(used.duration_ms))
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
