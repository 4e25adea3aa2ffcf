//! `write_file`: a whole file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use provost_event::{Access, CallForm, Json, SessionId, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, editor_form, form, named};
use crate::job::{self, Job};
use crate::seen::{FilesSeen, Known, SeenBy, is_named_before};
use crate::spec::{About, FILE_TIMEOUT};
use crate::text::{count, line_count, size};
use crate::workspace::Replaced;

const DESCRIPTION: &str = "Writes a whole file: makes it and the folders it is in, or replaces all of its content. \
To change parts of a file, use edit_file.";

/// Writes a whole file atomically; an existing one keeps its permissions.
#[derive(Debug, Clone)]
pub struct WriteFile {
    spec: ToolSpec,
    seen: FilesSeen,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute.
    path: String,
    /// All of its new content.
    content: String,
}

impl WriteFile {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "write_file",
            description: DESCRIPTION,
            access: Access::Writes,
            subject: ToolSubject::written_path("path"),
            aliases: &["Write"],
            forms: forms(),
            grammar: None,
            summary_field: None,
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>(), seen: FilesSeen::default() }
    }

    /// Shares with other tools which files an agent knows.
    #[must_use]
    pub fn with_seen(mut self, seen: FilesSeen) -> Self {
        self.seen = seen;
        self
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let content = || named("content", &["file_text", "contents"]);
    vec![
        form(&["Write", "write", "create_file"], vec![named("path", FILE_NAMES), content()]),
        editor_form("create", vec![content()]),
    ]
}

impl Default for WriteFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn session_over(&self, session: SessionId) {
        self.seen.forget(session);
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let path = arguments.path.clone();
        let seen = self.seen.by(context);
        let unread = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&unread);
        let mut output = job::run(context, move |job| write(&arguments, &seen, &told, job)).await;
        if unread.load(Ordering::Relaxed) && !is_named_before(&path, context).await {
            output.text.push_str(
                "\nThere was such a file, and no earlier call of yours names it: what it held is replaced.",
            );
        }
        output
    }
}

/// Writes the file; `unread` becomes true if it was there and the agent is not known to have read it.
fn write(arguments: &Arguments, seen: &SeenBy, unread: &AtomicBool, job: &Job) -> Result<String, Failure> {
    let Arguments { path, content } = arguments;
    let place = job.workspace.locate_to_write(path)?;
    let known = job.workspace.metadata(&place).map(|metadata| seen.known(&place.absolute, &metadata));
    let done = match job.workspace.replace(&place, content.as_bytes(), job)? {
        Replaced::Nothing => "created",
        Replaced::File => "overwrote",
    };
    if let Ok(metadata) = job.workspace.metadata(&place) {
        seen.note(&place.absolute, &metadata);
    }
    let changed = match known {
        Ok(Known::AsItWas) => "\nIt had changed since you last read or wrote it: those changes are replaced.",
        Ok(Known::NotAtAll) => {
            unread.store(true, Ordering::Relaxed);
            ""
        }
        Ok(Known::AsItIs) | Err(_) => "",
    };
    let lines = count(line_count(content), "line");
    Ok(format!("{done} `{path}`: {lines}, {}{changed}", size(content.len() as u64)))
}
