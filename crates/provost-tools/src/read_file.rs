//! `read_file`: some lines of a file or of a stored tool output; or a picture.

use std::fmt::Write as _;
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use async_trait::async_trait;
use provost_event::{Access, CallForm, ImageKind, Json, SessionId, ToolSpec, ToolSubject, ValueForm};
use provost_harness::{BLOB_URI, IMAGE_BYTES_MAX, ImageData, ImageError, Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::BackgroundJobs;
use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, editor_form, form, named, positive, valued};
use crate::job::{self, Job};
use crate::kept;
use crate::picture::{SIDE_MAX, sides};
use crate::seen::{FilesSeen, SeenBy};
use crate::sniff::{SNIFF_BYTES, not_text};
use crate::spec::{About, FILE_TIMEOUT, PAGE_BYTES_MAX};
use crate::text::{count, size};
use crate::window::{Wanted, Window};

/// The default for lines shown.
const LINES_DEFAULT: usize = 2000;

const DESCRIPTION: &str = "Reads a text file, or shows an image (PNG, JPEG, GIF or WebP). Each line of text comes with \
its number and a tab in front, which are not part of the file. A long file comes in pages: the last line of the answer says which lines were shown and with which \
`offset` to read on. Also reads tool outputs that were cut, by the `output:…` name given with them.";

/// Reads some lines of a file, with their numbers. Pictures of supported formats are returned whole, for any range
/// of lines; other binary files are described.
#[derive(Debug, Clone)]
pub struct ReadFile {
    spec: ToolSpec,
    seen: FilesSeen,
    jobs: BackgroundJobs,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute; or `output:…`.
    path: String,
    /// The number of the first line to show, from 1. Default 1.
    offset: Option<NonZeroUsize>,
    /// How many lines to show at most. Default 2000.
    limit: Option<NonZeroUsize>,
}

impl ReadFile {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "read_file",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::read_path("path"),
            aliases: &["Read"],
            forms: forms(),
            grammar: None,
            summary_field: None,
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>(), seen: FilesSeen::default(), jobs: BackgroundJobs::new() }
    }

    /// Reads the outputs of these jobs, too.
    #[must_use]
    pub fn with_jobs(mut self, jobs: BackgroundJobs) -> Self {
        self.jobs = jobs;
        self
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
    let range = ValueForm::LineRange { count: "limit".to_owned() };
    let fields = vec![named("path", FILE_NAMES), positive("offset", &[]), positive("limit", &[])];
    vec![form(&["read", "view"], fields), editor_form("view", vec![valued("offset", &["view_range"], range)])]
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

    fn session_over(&self, session: SessionId) {
        self.seen.forget(session);
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let Some(name) = arguments.path.strip_prefix(BLOB_URI) else {
            let seen = self.seen.by(context);
            return job::run_to_output(context, move |job| read_path(&arguments, &seen, job)).await;
        };
        match kept::output(name, context, &self.jobs).await {
            Ok(body) => job::run_to_output(context, move |job| read_body(body, &arguments, job)).await,
            Err(failure) => failure.into_output(),
        }
    }
}

fn read_path(arguments: &Arguments, seen: &SeenBy, job: &Job) -> Result<ToolOutput, Failure> {
    let place = job.workspace.locate(&arguments.path)?;
    let (file, metadata) = job.workspace.open_file(&place).map_err(|failure| match failure {
        Failure::IsFolder { path, .. } => Failure::IsFolder { path, hint: ": list_dir shows what is in it" },
        other => other,
    })?;
    let output = show(file, metadata.len(), arguments, job)?;
    seen.note(&place.absolute, &metadata);
    Ok(output)
}

fn read_body(body: Vec<u8>, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Failure> {
    let bytes = body.len() as u64;
    show(Cursor::new(body), bytes, arguments, job)
}

/// The requested lines, a picture, or a description of the file.
fn show(stream: impl Read, bytes: u64, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Failure> {
    let path = &arguments.path;
    let failed = |error| job.read_failure(path, error);
    let mut stream = job.stoppable(stream);
    let mut head = Vec::new();
    stream.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    let kind = not_text(&head);
    let image = kind.and_then(|_| ImageKind::of(&head));
    let whole = Cursor::new(head).chain(stream);
    match (image, kind) {
        (Some(kind), _) => {
            let mut body = Vec::new();
            whole.take(IMAGE_BYTES_MAX as u64 + 1).read_to_end(&mut body).map_err(failed)?;
            picture(kind, body, bytes, path)
        }
        (None, Some(kind)) => Ok(ToolOutput::ok(format!("[`{path}` isn't text: {kind}, {}]", size(bytes)))),
        (None, None) => page(whole, bytes, arguments, failed).map(ToolOutput::ok),
    }
}

/// The picture, and a line that describes it. `body` may be cut off after the limit of models; `bytes` is the
/// whole size.
fn picture(kind: ImageKind, body: Vec<u8>, bytes: u64, path: &str) -> Result<ToolOutput, Failure> {
    let (media_type, size) = (kind.media_type(), size(bytes));
    let refused = |why: String| Failure::Said(format!("`{path}` can't be shown: {why}"));
    let most = usize::try_from(bytes).unwrap_or(usize::MAX).max(body.len());
    if most > IMAGE_BYTES_MAX {
        return Err(refused(ImageError::TooLarge { bytes: most }.to_string()));
    }
    let Some((width, height)) = sides(kind, &body) else {
        return Err(refused(format!("it is damaged, or not all of it is there ({media_type}, {size})")));
    };
    if width.max(height) > SIDE_MAX {
        return Err(refused(format!(
            "it has {width}×{height} pixels, and models take at most {SIDE_MAX} a side; scale it down"
        )));
    }
    let image = ImageData::new(body).map_err(|error| refused(error.to_string()))?;
    let text = format!("{media_type}, {width}×{height}, {size}");
    Ok(ToolOutput { images: vec![image], ..ToolOutput::ok(text) })
}

/// The requested lines, and a last line with their position.
fn page(
    stream: impl Read,
    bytes: u64,
    arguments: &Arguments,
    failed: impl Fn(std::io::Error) -> Failure,
) -> Result<String, Failure> {
    let path = &arguments.path;
    let first = arguments.offset.map_or(1, NonZeroUsize::get);
    let lines_max = arguments.limit.map_or(LINES_DEFAULT, NonZeroUsize::get);
    let wanted = Wanted { first, lines_max, bytes_max: PAGE_BYTES_MAX };
    let window = Window::read(stream, wanted).map_err(failed)?;
    if window.shown == 0 && first > 1 {
        let total = count(window.counted, "line");
        return Err(Failure::Said(format!("`{path}` has only {total}: `offset` {first} is behind its end")));
    }
    if window.shown == 0 {
        return Ok(format!("[`{path}` is empty]"));
    }
    Ok(format!("{}[{}]", window.text, standing(&window, first, bytes)))
}

/// The range of lines, how to continue, and what isn't visible in them.
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
