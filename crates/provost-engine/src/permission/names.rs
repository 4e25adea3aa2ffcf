//! The names that a tool is known by.

/// A tool's own name and what scripts written for other agents call it.
const KNOWN: [&[&str]; 8] = [
    &["shell", "Bash"],
    &["read_file", "Read"],
    &["write_file", "Write"],
    &["edit_file", "Edit", "MultiEdit"],
    &["search", "Grep"],
    &["list_dir", "Glob", "LS"],
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
