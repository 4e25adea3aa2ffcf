//! The names that a tool is known by.

/// A tool's own name and what scripts written for other agents call it.
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

/// Returns the names that a tool answers to, its own first, then those that scripts of other agents use.
///
/// `tool` may be any of them; a name that nothing is known of stands alone.
#[must_use]
pub fn names_of(tool: &str) -> Vec<&str> {
    match KNOWN.iter().find(|names| names.contains(&tool)) {
        Some(names) => names.to_vec(),
        None => vec![tool],
    }
}

/// What scripts of other agents call one that isn't configured, and has what the agent has that asks for it.
const ALIKE: &str = "general-purpose";

/// Returns the names that a kind of agent answers to: that of a configured sub-agent, or those of one like the agent
/// that asks, what scripts of other agents call it first.
#[must_use]
pub fn agent_names(configured: Option<&str>) -> Vec<&str> {
    match configured {
        Some(name) => vec![name],
        None => vec![ALIKE, "spawn_agent"],
    }
}
