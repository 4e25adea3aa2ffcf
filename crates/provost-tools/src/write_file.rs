//! `write_file`: a whole file.

use async_trait::async_trait;
use provost_event::{Access, CallForm, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, editor_form, form, named};
use crate::job::{self, Job};
use crate::spec::{About, FILE_TIMEOUT};
use crate::text::{count, line_count, size};
use crate::workspace::Replaced;

const DESCRIPTION: &str = "Writes a whole file: makes it and the folders it is in, or replaces all of its content. \
To change parts of a file, use edit_file.";

/// Writes a whole file atomically; an existing one keeps its permissions.
#[derive(Debug, Clone)]
pub struct WriteFile {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute inside of it.
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
            summary_field: None,
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>() }
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let content = || named("content", &["file_text", "contents"]);
    vec![
        form(&["write", "create_file"], vec![named("path", FILE_NAMES), content()]),
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

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match arguments::read(&self.spec.name, input) {
            Ok(arguments) => job::run(context, move |job| write(&arguments, job)).await,
            Err(misfit) => misfit,
        }
    }
}

fn write(arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let Arguments { path, content } = arguments;
    let place = job.workspace.locate_to_write(path)?;
    let done = match job.workspace.replace(&place, content.as_bytes(), job)? {
        Replaced::Nothing => "created",
        Replaced::File => "overwrote",
    };
    Ok(format!("{done} `{path}`: {}, {}", count(line_count(content), "line"), size(content.len() as u64)))
}
