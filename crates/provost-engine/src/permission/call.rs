//! A tool call as permissions see it.

use std::path::Path;

use provost_event::Json;
use serde_json::Value;

use super::names::names_of;
use super::path::NormalizedPath;
use super::shell::{Reader, Script};

/// Maximum number of commands of one call that an approval question names.
const PARTS_NAMED_MAX: usize = 3;

/// A call, its arguments read once.
pub(super) struct Call<'c> {
    pub(super) tool: &'c str,
    pub(super) workspace: &'c Path,
    pub(super) subject: Subject,
}

/// The text that a pattern's argument is compared to.
pub(super) enum Subject {
    /// A command for a shell.
    Shell(Script),
    /// A path.
    Path {
        /// Its target.
        place: NormalizedPath,
        /// Whether the tool walks the folders below it.
        walks: bool,
    },
    /// All arguments.
    Json(String),
    /// The relevant argument is missing or of a wrong type: the tool will reject the call.
    Unreadable,
}

impl<'c> Call<'c> {
    pub(super) fn read(tool: &'c str, input: &Json, workspace: &'c Path) -> Self {
        let subject =
            input.read::<Value>().map_or(Subject::Unreadable, |value| subject(tool, value, workspace));
        Self { tool, workspace, subject }
    }

    /// The number of parts that must be covered: at least one.
    pub(super) fn parts(&self) -> usize {
        match &self.subject {
            Subject::Shell(script) => script.commands.len().max(1),
            _ => 1,
        }
    }

    /// The text of these parts: commands as written.
    pub(super) fn named_parts(&self, parts: impl Iterator<Item = usize>) -> String {
        let Subject::Shell(script) = &self.subject else { return String::new() };
        let mut named: Vec<String> = Vec::new();
        for command in parts.filter_map(|part| script.commands.get(part)) {
            let words = script.words_of(command);
            if !words.is_empty() && !named.contains(&words) {
                named.push(words);
            }
        }
        let more = named.len().saturating_sub(PARTS_NAMED_MAX);
        named.truncate(PARTS_NAMED_MAX);
        let named = named.join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    }

    /// Whether it runs a command line by another tool than the shell: a `deny` or `ask` for the shell also counts
    /// for it.
    pub(super) fn runs_as_shell_does(&self) -> bool {
        matches!(self.subject, Subject::Shell(_)) && names_of(self.tool).first() != Some(&"shell")
    }

    /// Why it may do more than its text shows.
    pub(super) fn unclear(&self) -> Option<&'static str> {
        match &self.subject {
            Subject::Shell(script) => script.unclear,
            Subject::Unreadable => Some("its arguments can't be read"),
            Subject::Path { .. } | Subject::Json(_) => None,
        }
    }
}

fn subject(tool: &str, value: Value, workspace: &Path) -> Subject {
    let text = |name: &str| value.get(name).map(Value::as_str);
    let path = |path: &str, walks| Subject::Path { place: NormalizedPath::new(path, workspace), walks };
    match names_of(tool).first().copied().unwrap_or(tool) {
        "shell" => match text("command") {
            Some(Some(command)) => Subject::Shell(Script::read(command, Reader::NewShell)),
            _ => Subject::Unreadable,
        },
        // Typed text may be read by a shell or by another program: the most dangerous reading counts.
        "terminal" => match (text("action").flatten(), text("command").flatten(), text("text").flatten()) {
            (Some("start"), Some(line), _) | (Some("send"), _, Some(line)) => {
                Subject::Shell(Script::read(line, Reader::Terminal))
            }
            (Some("start"), None, _) | (None, ..) => Subject::Unreadable,
            _ => all(value),
        },
        "read_file" | "write_file" | "edit_file" => match text("path") {
            Some(Some(given)) => path(given, false),
            _ => Subject::Unreadable,
        },
        "list_dir" | "search" => match text("path") {
            Some(Some(given)) => path(given, true),
            None => path(".", true),
            Some(None) if value.get("path").is_some_and(Value::is_null) => path(".", true),
            Some(None) => Subject::Unreadable,
        },
        _ => all(value),
    }
}

/// Whether calls of the tool are compared by all of their arguments, as JSON.
pub(super) fn is_compared_as_json(tool: &str) -> bool {
    let own = names_of(tool).first().copied().unwrap_or(tool);
    !matches!(own, "shell" | "terminal" | "read_file" | "write_file" | "edit_file" | "list_dir" | "search")
}

fn all(mut value: Value) -> Subject {
    value.sort_all_objects();
    Subject::Json(value.to_string())
}
