//! A tool call as permissions see it.

use std::path::{Path, PathBuf};

use provost_event::{Json, ToolIdentity, ToolSubject, patched_paths};
use serde_json::Value;

use super::names::runs_command_lines;
use super::path::NormalizedPath;
use super::shell::{Reader, Script};

/// Maximum number of commands of one call that an approval question names.
const PARTS_NAMED_MAX: usize = 3;

/// Keys, in lower case, that submit what was typed, or drop it.
const KEYS_THAT_SUBMIT: [&str; 3] = ["enter", "return", "ctrl-c"];
/// Keys that change nothing of what was typed; the last one ends the input.
const KEYS_WITHOUT_EFFECT_ON_TEXT: [&str; 4] = ["enter", "return", "ctrl-c", "ctrl-d"];

/// A call, its arguments read once.
pub(super) struct Call<'c> {
    pub(super) tool: &'c ToolIdentity,
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
    /// The files that a patch names, at least one.
    Files(Vec<NormalizedPath>),
    /// Any other text: a URL, or all arguments as JSON.
    Text(String),
    /// The relevant argument is missing or of a wrong type: the tool will reject the call.
    Unreadable,
}

impl<'c> Call<'c> {
    pub(super) fn read(tool: &'c ToolIdentity, input: &Json, workspace: &'c Path) -> Self {
        let read = |value| subject(&tool.subject, value, workspace);
        let subject = input.read::<Value>().map_or(Subject::Unreadable, read);
        Self { tool, workspace, subject }
    }

    /// The number of parts that must be covered: at least one.
    pub(super) fn parts(&self) -> usize {
        match &self.subject {
            Subject::Shell(script) => script.commands.len().max(1),
            Subject::Files(files) => files.len(),
            _ => 1,
        }
    }

    /// The text of these parts: commands as written.
    pub(super) fn named_parts(&self, parts: impl Iterator<Item = usize>) -> String {
        let script = match &self.subject {
            Subject::Shell(script) => script,
            Subject::Files(files) => {
                let named = parts.filter_map(|part| files.get(part)).map(NormalizedPath::shown);
                return listed(named.collect());
            }
            _ => return String::new(),
        };
        let mut named: Vec<String> = Vec::new();
        for command in parts.filter_map(|part| script.commands.get(part)) {
            let words = script.words_of(command);
            if !words.is_empty() && !named.contains(&words) {
                named.push(words);
            }
        }
        listed(named)
    }

    /// The path that it reads or changes, if that is neither in the workspace nor in one of `roots`, and the tool
    /// reaches it there.
    pub(super) fn outside(&self, roots: &[PathBuf]) -> Option<String> {
        let Subject::Path { place, .. } = &self.subject else { return None };
        let is_outside = self.tool.subject.reaches_outside()
            && !place.is_in_workspace()
            && !roots.iter().any(|root| place.is_in(root));
        is_outside.then(|| place.absolute())
    }

    /// Whether `ask` and `deny` rules for command lines also apply, whatever the tool is called.
    pub(super) const fn runs_command_line(&self) -> bool {
        matches!(self.subject, Subject::Shell(_)) && runs_command_lines(self.tool)
    }

    /// Why it may do more than its text shows.
    pub(super) fn unclear(&self) -> Option<&'static str> {
        match &self.subject {
            Subject::Shell(script) => script.unclear,
            Subject::Unreadable => Some("its arguments can't be read"),
            Subject::Path { .. } | Subject::Files(_) | Subject::Text(_) => None,
        }
    }
}

/// The first of these, and how many more there are.
fn listed(mut named: Vec<String>) -> String {
    let more = named.len().saturating_sub(PARTS_NAMED_MAX);
    named.truncate(PARTS_NAMED_MAX);
    let named = named.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn subject(of_tool: &ToolSubject, value: Value, workspace: &Path) -> Subject {
    let text = |field: &str| value.get(field).map(Value::as_str);
    match of_tool {
        ToolSubject::Command { field, .. } => match text(field) {
            Some(Some(command)) => Subject::Shell(Script::read(command, Reader::NewShell, workspace)),
            _ => Subject::Unreadable,
        },
        ToolSubject::Typed { fields, keys, submit } => {
            let given = fields.iter().filter_map(|field| value.get(field)).filter(|text| !text.is_null());
            let Some(texts) = given.map(Value::as_str).collect::<Option<Vec<_>>>() else {
                return Subject::Unreadable;
            };
            let pressed = keys.as_deref().and_then(|keys| value.get(keys)).filter(|keys| !keys.is_null());
            if texts.is_empty() && pressed.is_none() {
                return all(value);
            }
            let submits = submit.as_deref().and_then(|submit| value.get(submit)).and_then(Value::as_bool);
            typed(&texts, pressed, submits, workspace)
        }
        ToolSubject::Path { field, walks, .. } => {
            let path = |path| Subject::Path { place: NormalizedPath::new(path, workspace), walks: *walks };
            match value.get(field) {
                Some(Value::String(given)) => path(given),
                None | Some(Value::Null) if *walks => path("."),
                _ => Subject::Unreadable,
            }
        }
        ToolSubject::Patch { field } => match text(field) {
            Some(Some(patch)) => files_of(patch, workspace),
            _ => Subject::Unreadable,
        },
        ToolSubject::Url { field } => match text(field) {
            Some(Some(url)) => Subject::Text(url.to_owned()),
            _ => Subject::Unreadable,
        },
        ToolSubject::Own | ToolSubject::Opaque => all(value),
    }
}

/// The files that a patch names.
fn files_of(patch: &str, workspace: &Path) -> Subject {
    let files = patched_paths(patch).into_iter().map(|path| NormalizedPath::new(path, workspace));
    let files = files.collect::<Vec<_>>();
    if files.is_empty() { Subject::Unreadable } else { Subject::Files(files) }
}

/// Typed text may be read by a shell or by another program: the most dangerous reading counts. A return ends a line
/// at a terminal.
fn typed(texts: &[&str], pressed: Option<&Value>, submits: Option<bool>, workspace: &Path) -> Subject {
    let text = texts.join("\n").replace('\r', "\n");
    let mut script = Script::read(&text, Reader::Terminal, workspace);
    let keys = pressed.map(|keys| keys.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(keys)));
    let keys = keys.unwrap_or_default().iter().map(|key| key.as_str().unwrap_or_default().to_lowercase());
    let keys = keys.collect::<Vec<_>>();
    let first = keys.first().map(String::as_str);
    let is_submitted =
        submits.unwrap_or(keys.is_empty()) || first.is_some_and(|key| KEYS_THAT_SUBMIT.contains(&key));
    let doubt = if keys.iter().any(|key| !KEYS_WITHOUT_EFFECT_ON_TEXT.contains(&key.as_str())) {
        Some("its keys may edit what was typed, or run an earlier command")
    } else if !text.is_empty() && (!is_submitted || text.trim_end_matches('\n').ends_with('\\')) {
        Some("later text may go on with it")
    } else {
        None
    };
    script.unclear = script.unclear.or(doubt);
    Subject::Shell(script)
}

fn all(mut value: Value) -> Subject {
    value.sort_all_objects();
    Subject::Text(value.to_string())
}
