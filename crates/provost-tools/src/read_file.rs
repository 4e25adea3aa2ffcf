//! `read_file`: some lines of a file, or of a tool output that was kept whole.

use std::fmt::Write as _;
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use async_trait::async_trait;
use provost_event::{Access, BlobId, Json, ToolSpec};
use provost_harness::{BLOB_URI, Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::{Failure, chain};
use crate::job::{self, Job};
use crate::sniff::{SNIFF_BYTES, not_text};
use crate::spec::{About, FILE_TIMEOUT, PAGE_BYTES_MAX};
use crate::text::{count, size};
use crate::window::{Wanted, Window};

/// Lines shown unless told otherwise.
const LINES_DEFAULT: usize = 2000;

const DESCRIPTION: &str = "Reads a text file. Each line comes with its number and a tab in front, which are not part \
of the file. A long file comes in pages: the last line of the answer says which lines were shown and with which \
`offset` to read on. Also reads tool outputs that were cut, by the `output:…` name given with them.";

/// Reads some lines of a file, with their numbers. Binary files are described instead.
#[derive(Debug, Clone)]
pub struct ReadFile {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute inside of it; or `output:…`.
    path: String,
    /// The number of the first line to show, from 1. Default 1.
    offset: Option<NonZeroUsize>,
    /// How many lines to show at most. Default 2000.
    limit: Option<NonZeroUsize>,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "read_file",
            description: DESCRIPTION,
            access: Access::Reads,
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>() }
    }
}

impl Default for ReadFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let Some(name) = arguments.path.strip_prefix(BLOB_URI) else {
            return job::run(context, move |job| read_path(&arguments, job)).await;
        };
        match blob(name, context).await {
            Ok(body) => job::run(context, move |job| read_body(body, &arguments, job)).await,
            Err(failure) => failure.into_output(),
        }
    }
}

/// The output kept as `name`.
async fn blob(name: &str, context: &ToolContext) -> Result<Vec<u8>, Failure> {
    let id = BlobId(name.into());
    let got = context.cancel.run_until_cancelled(context.blobs.get_blob(&id)).await;
    match got.ok_or(Failure::Cancelled)? {
        Ok(Some(body)) => Ok(body),
        Ok(None) => Err(Failure::Said(format!(
            "there is no kept output `{BLOB_URI}{name}`: use the name exactly as it was given"
        ))),
        Err(error) => Err(Failure::Said(format!("can't read `{BLOB_URI}{name}`: {}", chain(&error)))),
    }
}

fn read_path(arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let place = job.workspace.locate(&arguments.path)?;
    let (file, metadata) = job.workspace.open_file(&place).map_err(|failure| match failure {
        Failure::IsFolder { path, .. } => Failure::IsFolder { path, hint: ": list_dir shows what is in it" },
        other => other,
    })?;
    page(file, metadata.len(), arguments, job)
}

fn read_body(body: Vec<u8>, arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let bytes = body.len() as u64;
    page(Cursor::new(body), bytes, arguments, job)
}

/// The lines asked for, and a last line that says where they stand.
fn page(stream: impl Read, bytes: u64, arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let path = &arguments.path;
    let failed = |error| job.read_failure(path, error);
    let mut stream = job.stoppable(stream);
    let mut head = Vec::new();
    stream.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    if let Some(kind) = not_text(&head) {
        return Ok(format!("[`{path}` isn't text: {kind}, {}]", size(bytes)));
    }
    let first = arguments.offset.map_or(1, NonZeroUsize::get);
    let lines_max = arguments.limit.map_or(LINES_DEFAULT, NonZeroUsize::get);
    let wanted = Wanted { first, lines_max, bytes_max: PAGE_BYTES_MAX };
    let window = Window::read(Cursor::new(head).chain(stream), wanted).map_err(failed)?;
    if window.shown == 0 && first > 1 {
        let total = count(window.counted, "line");
        return Err(Failure::Said(format!("`{path}` has only {total}: `offset` {first} is behind its end")));
    }
    if window.shown == 0 {
        return Ok(format!("[`{path}` is empty]"));
    }
    Ok(format!("{}[{}]", window.text, standing(&window, first, bytes)))
}

/// Which lines these are, how to go on, and what can't be seen of them.
fn standing(window: &Window, first: usize, bytes: u64) -> String {
    let last = first + window.shown - 1;
    let mut text = if window.counted_all {
        format!("lines {first}-{last} of {}", window.counted)
    } else {
        format!("lines {first}-{last} of more than {} ({})", window.counted, size(bytes))
    };
    // Writing to a string can't fail.
    if last < window.counted || !window.counted_all {
        let _ = write!(text, "; read on with offset {}", last + 1);
    } else if window.lacks_last_end {
        text.push_str("; no line end after the last one");
    }
    if window.has_carriage_returns {
        text.push_str("; lines end with CR LF");
    }
    if window.lossy {
        text.push_str("; bytes that aren't UTF-8 are shown as \u{fffd}");
    }
    text
}
