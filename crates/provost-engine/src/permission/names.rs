//! The names of tools in rules.

use provost_event::{ToolIdentity, ToolSubject};

/// The names by which a rule is about command lines, of the shell or of any other tool that runs them.
const COMMAND_LINES: [&str; 2] = ["shell", "Bash"];

/// Whether `ask` and `deny` rules for command lines also apply to a tool that has another name.
pub(super) const fn runs_command_lines(tool: &ToolIdentity) -> bool {
    matches!(tool.subject, ToolSubject::Command { .. } | ToolSubject::Typed { .. })
}

/// The names by which rules may be about command lines.
pub(super) fn of_command_lines() -> impl Iterator<Item = &'static str> {
    COMMAND_LINES.into_iter()
}

/// The name, in scripts for other agents, of a sub-agent that isn't configured and has the tools of its parent.
const ALIKE: &str = "general-purpose";

/// Returns the names of a kind of agent: of a configured sub-agent, or of one like the requesting agent; the names
/// in scripts for other agents come first.
#[must_use]
pub fn agent_names(configured: Option<&str>) -> Vec<&str> {
    match configured {
        Some(name) => vec![name],
        None => vec![ALIKE, crate::SPAWN_TOOL],
    }
}
