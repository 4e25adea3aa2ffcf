//! What a tool is: all that the model, permissions, hooks and displays know of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{CallForm, Json, patched_paths};

/// A tool, as the model and the engine see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// Its name, unique within the policy.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Json,
    /// What it accesses; decides which calls run in parallel.
    pub access: Access,
    /// What its calls are about; permissions compare their patterns with that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub subject: ToolSubject,
    /// Its names in the hook scripts of other agent programs, the usual one first. Permissions, matchers and models
    /// may use them too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub aliases: Vec<String>,
    /// Other forms in which models may call it. The first is also that of calls by its own name and its aliases.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forms: Vec<CallForm>,
    /// How a model may write its one argument, a text called `input`, as it is and not within JSON, where the wire format
    /// has that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub freeform: Option<Freeform>,
    /// The argument that represents a call in one line; absent: that of the subject.
    #[serde(default, skip_serializing_if = "is_default")]
    pub summary_field: Option<String>,
    /// Whether an interrupted call may be repeated.
    pub idempotent: bool,
    /// Time limit of a call, in milliseconds.
    pub timeout_ms: u64,
    /// Maximum bytes of output for the model; the middle of a longer output is left out.
    pub output_bytes_max: usize,
}

impl ToolSpec {
    /// A tool whose calls run alone and have no subject: with a time limit of a minute and 32 KiB of output, without
    /// aliases and other forms, not repeatable. `input_schema` is a JSON Schema of an object.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Json) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            access: Access::Anything,
            subject: ToolSubject::default(),
            aliases: Vec::new(),
            forms: Vec::new(),
            freeform: None,
            summary_field: None,
            idempotent: false,
            timeout_ms: 60_000,
            output_bytes_max: 32 * 1024,
        }
    }

    /// Its names, and what its calls are about.
    #[must_use]
    pub fn identity(&self) -> ToolIdentity {
        ToolIdentity { name: self.name.clone(), aliases: self.aliases.clone(), subject: self.subject.clone() }
    }

    /// The argument that represents a call in one line, if there is one.
    #[must_use]
    pub fn summary_field(&self) -> Option<&str> {
        self.summary_field.as_deref().or_else(|| self.subject.field())
    }
}

/// The form of an argument that a model writes as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freeform {
    /// What it may be, as a grammar of [Lark](https://github.com/lark-parser/lark).
    pub grammar: String,
}

impl Freeform {
    /// The name of the argument.
    pub const FIELD: &str = "input";
}

/// The tools of a run, or of one of its agents, are others from here on. Calls of an answer that was given before
/// are still made with the tools that it was given with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsChanged {
    /// The new tools, and new versions of tools that there were.
    #[serde(default, skip_serializing_if = "is_default")]
    pub added: Vec<ToolSpec>,
    /// The names of the tools that there no longer are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub removed: Vec<String>,
    /// Who changed them.
    pub by: String,
}

impl ToolsChanged {
    /// The difference between two sets of tools; `None` if there is none. Their order doesn't count.
    #[must_use]
    pub fn between(before: &[ToolSpec], after: &[ToolSpec], by: &str) -> Option<Self> {
        let added = after.iter().filter(|tool| !before.contains(tool)).cloned().collect::<Vec<_>>();
        let is_left = |name: &str| after.iter().any(|tool| tool.name == name);
        let removed = before.iter().map(|tool| &tool.name).filter(|name| !is_left(name));
        let removed = removed.cloned().collect::<Vec<_>>();
        let is_change = !added.is_empty() || !removed.is_empty();
        is_change.then(|| Self { added, removed, by: by.to_owned() })
    }

    /// `tools` after this change. A new version takes the place of the old one, and new tools come last: what a
    /// provider has cached of a request stays the same as far as possible. A name that is both removed and added is
    /// added.
    #[must_use]
    pub fn applied_to(&self, tools: &[ToolSpec]) -> Vec<ToolSpec> {
        let newest = |name: &str| self.added.iter().rfind(|tool| tool.name == name);
        let kept =
            tools.iter().filter(|tool| newest(&tool.name).is_some() || !self.removed.contains(&tool.name));
        let mut after = kept.map(|tool| newest(&tool.name).unwrap_or(tool).clone()).collect::<Vec<_>>();
        for tool in &self.added {
            if !after.iter().any(|known| known.name == tool.name) {
                after.extend(newest(&tool.name).cloned());
            }
        }
        after
    }
}

/// What the calls of a tool are about. Each `field` is the name of an argument with a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolSubject {
    /// A command line, for a shell that is started for it.
    Command {
        /// The argument with the command line.
        field: String,
        /// The argument that is true if the command is to go on after the run, if there is one. Such a call needs the
        /// permission [`KEEP_RUNNING`](crate::KEEP_RUNNING) as well.
        #[serde(default, skip_serializing_if = "is_default")]
        keeps: Option<String>,
        /// The argument that is true if the command is to run outside of the agent's sandbox, if there is one. Such a
        /// call needs a person's approval of its own; without a sandbox it means nothing.
        #[serde(default, skip_serializing_if = "is_default")]
        leaves: Option<String>,
    },
    /// Text for a program at a terminal, which may be a shell: the command line that starts it, or typed text. A
    /// call without any of these arguments has no subject.
    Typed {
        /// The arguments with such text.
        fields: Vec<String>,
        /// The argument with the names of keys that are pressed after it, if there is one.
        #[serde(default, skip_serializing_if = "is_default")]
        keys: Option<String>,
        /// The argument that is false if the text isn't submitted, so that later text continues it, if there is one.
        #[serde(default, skip_serializing_if = "is_default")]
        submit: Option<String>,
    },
    /// A file or folder.
    Path {
        /// The argument with the path; relative paths are relative to the workspace.
        field: String,
        /// Whether everything below the path is included; then an absent path is the workspace.
        #[serde(default, skip_serializing_if = "is_default")]
        walks: bool,
        /// Whether calls change the file.
        #[serde(default, skip_serializing_if = "is_default")]
        writes: bool,
        /// Whether calls also change files outside of the workspace and the roots.
        #[serde(default, skip_serializing_if = "is_default")]
        anywhere: bool,
    },
    /// The files that a patch names: added, changed, moved and deleted ones.
    Patch {
        /// The argument with the patch; see [`patched_paths`](crate::patched_paths).
        field: String,
    },
    /// An address.
    Url {
        /// The argument with the URL.
        field: String,
    },
    /// Only what the agent itself has started by calls that passed the permissions: allowed unless a pattern asks or
    /// denies.
    Own,
    /// None of these: all of the arguments are the subject.
    #[default]
    Opaque,
}

impl ToolSubject {
    /// The names of tools, besides the tool's own, by which a hook may mean calls about this.
    #[must_use]
    pub const fn names_for_hooks(&self) -> &'static [&'static str] {
        match self {
            Self::Command { .. } | Self::Typed { .. } => &["Bash", "shell"],
            Self::Path { writes: true, .. } | Self::Patch { .. } => {
                &["apply_patch", "Edit", "MultiEdit", "Write"]
            }
            Self::Path { .. } | Self::Url { .. } | Self::Own | Self::Opaque => &[],
        }
    }

    /// A command line in the argument `field`, none of which goes on after the run or runs outside of the sandbox.
    #[must_use]
    pub fn command(field: &str) -> Self {
        Self::Command { field: field.to_owned(), keeps: None, leaves: None }
    }

    /// A file or folder in the argument `field` that calls read.
    #[must_use]
    pub fn read_path(field: &str) -> Self {
        Self::Path { field: field.to_owned(), walks: false, writes: false, anywhere: false }
    }

    /// A file in the argument `field` that calls change.
    #[must_use]
    pub fn written_path(field: &str) -> Self {
        Self::Path { field: field.to_owned(), walks: false, writes: true, anywhere: false }
    }

    /// A file in the argument `field` that calls change, wherever it is: those of external agents.
    #[must_use]
    pub fn path_written_anywhere(field: &str) -> Self {
        Self::Path { field: field.to_owned(), walks: false, writes: true, anywhere: true }
    }

    /// The argument with the subject, if it is a single one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Command { field, .. }
            | Self::Path { field, .. }
            | Self::Patch { field }
            | Self::Url { field } => Some(field),
            Self::Typed { .. } | Self::Own | Self::Opaque => None,
        }
    }

    /// Whether calls read a file or folder, and change none.
    #[must_use]
    pub const fn is_read_path(&self) -> bool {
        matches!(self, Self::Path { writes: false, .. })
    }

    /// Whether calls reach files outside of the workspace and the roots, so that a permission must say where.
    #[must_use]
    pub const fn reaches_outside(&self) -> bool {
        matches!(self, Self::Path { writes: false, .. } | Self::Path { anywhere: true, .. })
    }

    /// The argument with the path of the file that calls change, if they change one.
    #[must_use]
    pub fn written_field(&self) -> Option<&str> {
        match self {
            Self::Path { field, writes: true, .. } => Some(field),
            _ => None,
        }
    }

    /// The command line that a call with these arguments runs in a shell of its own, if it runs one.
    #[must_use]
    pub fn command_in(&self, input: &Json) -> Option<String> {
        let Self::Command { field, .. } = self else { return None };
        let value = input.read::<serde_json::Value>().ok()?;
        Some(value.get(field)?.as_str()?.to_owned())
    }

    /// Whether a call with these arguments starts a command that is to go on after the run.
    #[must_use]
    pub fn keeps_running(&self, input: &Json) -> bool {
        matches!(self, Self::Command { keeps: Some(keeps), .. } if may_be_true(keeps, input))
    }

    /// Whether a call with these arguments is to run outside of the sandbox.
    #[must_use]
    pub fn leaves_sandbox(&self, input: &Json) -> bool {
        matches!(self, Self::Command { leaves: Some(leaves), .. } if may_be_true(leaves, input))
    }

    /// The path of the file that a call with these arguments changes, if it changes one and no other.
    #[must_use]
    pub fn written_path_in(&self, input: &Json) -> Option<String> {
        let mut paths = self.written_paths_in(input);
        if paths.len() == 1 { paths.pop() } else { None }
    }

    /// The paths of the files that a call with these arguments changes.
    #[must_use]
    pub fn written_paths_in(&self, input: &Json) -> Vec<String> {
        let text = |field: &str| {
            let value = input.read::<serde_json::Value>().ok()?;
            Some(value.get(field)?.as_str()?.to_owned())
        };
        match self {
            Self::Path { field, writes: true, .. } => text(field).into_iter().collect(),
            Self::Patch { field } => {
                let patch = text(field).unwrap_or_default();
                patched_paths(&patch).into_iter().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Whether an argument is there and isn't false. What isn't a truth value is rejected later; until then it may mean that.
fn may_be_true(field: &str, input: &Json) -> bool {
    let value = input.read::<serde_json::Value>().unwrap_or_default();
    let given = value.get(field);
    given.is_some_and(|given| !matches!(given, serde_json::Value::Null | serde_json::Value::Bool(false)))
}

/// The names of a tool, and what its calls are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolIdentity {
    /// Its name.
    pub name: String,
    /// See [`ToolSpec::aliases`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub aliases: Vec<String>,
    /// See [`ToolSpec::subject`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub subject: ToolSubject,
}

impl ToolIdentity {
    /// A tool of which only the name is known.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        Self { name: name.to_owned(), aliases: Vec::new(), subject: ToolSubject::Opaque }
    }

    /// All its names, its own first.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

/// What a tool accesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read-only: runs in parallel with other read-only calls.
    Reads,
    /// It changes the file that its subject names: runs in parallel with calls on other files.
    Writes,
    /// It may access anything: runs alone.
    Anything,
    /// It stands for a question that an external agent's program asks: runs alone.
    Consents,
    /// It has another agent work and isn't run by the executor: runs in parallel with its kind and with read-only
    /// calls.
    Delegates,
}
