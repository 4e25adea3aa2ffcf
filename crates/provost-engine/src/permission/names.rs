//! The names of tools.

/// A tool's own name and its names in scripts for other agents.
const KNOWN: [&[&str]; 9] = [
    &["shell", "Bash"],
    &["read_file", "Read"],
    &["write_file", "Write"],
    &["edit_file", "Edit", "MultiEdit"],
    &["search", "Grep"],
    &["list_dir", "Glob", "LS"],
    &["fetch", "WebFetch"],
    &["update_plan", "TodoWrite"],
    &["spawn_agent", "Agent", "Task"],
];

/// Returns the names of a tool, its own first, then those in scripts for other agents.
///
/// `tool` may be any of them; for an unknown name the result is that name alone.
#[must_use]
pub fn names_of(tool: &str) -> Vec<&str> {
    match KNOWN.iter().find(|names| names.contains(&tool)) {
        Some(names) => names.to_vec(),
        None => vec![tool],
    }
}

/// The name, in scripts for other agents, of a sub-agent that isn't configured and has the tools of its parent.
const ALIKE: &str = "general-purpose";

/// Returns the names of a kind of agent: of a configured sub-agent, or of one like the requesting agent; the names
/// in scripts for other agents come first.
#[must_use]
pub fn agent_names(configured: Option<&str>) -> Vec<&str> {
    match configured {
        Some(name) => vec![name],
        None => vec![ALIKE, "spawn_agent"],
    }
}
