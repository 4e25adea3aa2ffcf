//! `search`: lines that match a regular expression, in files.

mod findings;

use std::fmt::Write as _;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::Override;
use provost_event::{Access, CallForm, Json, ToolSpec, ToolSubject};
use provost_harness::{BLOB_URI, Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::BackgroundJobs;
use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, FOLDER_NAMES, form, ignoring, named, positive, renamed, valued};
use crate::job::{self, Job};
use crate::kept;
use crate::spec::About;
use crate::text::count;
use crate::walk::{globs, walk};
use findings::{Findings, Mode};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The default and the maximum of matching lines shown.
const RESULTS_DEFAULT: usize = 100;
const RESULTS_MAX: usize = 1000;

/// Maximum lines of context.
const CONTEXT_LINES_MAX: usize = 20;

/// Maximum memory for one line and its context; a file with a longer line is left out.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

const DESCRIPTION: &str = "Searches files for a regular expression (Rust's syntax, line by line) and answers with \
`path:line:text`, or as `mode` says. Leaves out binary files and what ignore files (.gitignore) name, unless `path` names it.";

/// Searches files below a folder for a regular expression.
#[derive(Debug, Clone)]
pub struct Search {
    spec: ToolSpec,
    jobs: BackgroundJobs,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression; to search for `( ) [ ] { } . * + ? | ^ $ \` themselves, put a `\` before each.
    pattern: String,
    /// A folder or file: relative to the workspace, or absolute. Default: the workspace. Also a kept output, `output:…`.
    path: Option<String>,
    /// Only files that match this, such as `*.rs` or `src/**/*.{ts,tsx}` (from `path` on); with `!` in front: not these.
    glob: Option<String>,
    /// Whether upper and lower case are the same. Default false.
    case_insensitive: Option<bool>,
    /// Lines to show before and after each match, at most 20. Default 0.
    context_lines: Option<usize>,
    /// Matching lines, or files, to show, at most 1000. Default 100.
    max_results: Option<NonZeroUsize>,
    /// What to show: `content`: the matching lines (the default); `files`: only paths; `count`: paths with numbers of matching lines.
    mode: Option<Mode>,
}

impl Search {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "search",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::Path {
                field: "path".to_owned(),
                walks: true,
                writes: false,
                anywhere: false,
            },
            aliases: &["Grep"],
            forms: forms(),
            grammar: None,
            summary_field: Some("pattern"),
            idempotent: true,
            timeout: TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>(), jobs: BackgroundJobs::new() }
    }

    /// Searches the outputs of these jobs, too.
    #[must_use]
    pub fn with_jobs(mut self, jobs: BackgroundJobs) -> Self {
        self.jobs = jobs;
        self
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let fields = vec![
        named("pattern", &["query", "regex"]),
        named("path", &[FOLDER_NAMES, FILE_NAMES].concat()),
        named("glob", &["include", "include_pattern"]),
        named("case_insensitive", &["-i", "ignore_case", "ignoreCase"]),
        named("context_lines", &["-C", "context"]),
        positive("max_results", &["head_limit", "limit"]),
        valued("mode", &["output_mode"], renamed(&[("files_with_matches", "files")])),
    ];
    let names = ["grep", "rg", "ripgrep", "grep_search", "search_file_content", "grep_files"];
    vec![ignoring(form(&names, fields), &["-n"])]
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let Some(name) = arguments.path.as_deref().and_then(|path| path.strip_prefix(BLOB_URI)) else {
            return job::run(context, move |job| search(&arguments, job)).await;
        };
        match kept::output(name, context, &self.jobs).await {
            Ok(body) => job::run(context, move |job| search_kept(body, &arguments, job)).await,
            Err(failure) => failure.into_output(),
        }
    }
}

/// Searches a stored output, as a file of its name.
fn search_kept(body: Vec<u8>, arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let path = arguments.path.as_deref().unwrap_or_default();
    let (mut searcher, mut findings) = wanted(arguments);
    let file = job.stoppable(Cursor::new(body));
    findings.search(&mut searcher, &matcher(arguments)?, Path::new(path), file);
    job.go_on()?;
    Ok(answer(arguments, path, findings))
}

/// What searches, and what keeps the findings, as the arguments want it.
fn wanted(arguments: &Arguments) -> (Searcher, Findings) {
    let mode = arguments.mode.unwrap_or_default();
    let context_lines = match mode {
        Mode::Content => arguments.context_lines.unwrap_or(0).min(CONTEXT_LINES_MAX),
        Mode::Files | Mode::Count => 0,
    };
    let max = arguments.max_results.map_or(RESULTS_DEFAULT, NonZeroUsize::get).min(RESULTS_MAX);
    (searcher(context_lines), Findings::new(mode, max))
}

fn search(arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let matcher = matcher(arguments)?;
    let place = job.workspace.locate(path)?;
    let is_folder = job.workspace.metadata(&place)?.is_dir();
    let globs = match &arguments.glob {
        Some(glob) => globs(&place.absolute, glob)?,
        None => Override::empty(),
    };
    let (mut searcher, mut findings) = wanted(arguments);
    if !is_folder {
        let (file, _) = job.workspace.open_file(&place)?;
        findings.search(&mut searcher, &matcher, job.workspace.shown(&place.absolute), job.stoppable(file));
    }
    for entry in walk(&job.workspace, &place, None).flatten().filter(|_| is_folder) {
        job.go_on()?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if !is_file || globs.matched(entry.path(), false).is_ignore() {
            continue;
        }
        search_entry(entry.path(), &mut findings, &mut searcher, &matcher, job);
        if findings.is_full() {
            break;
        }
    }
    job.go_on()?;
    Ok(answer(arguments, path, findings))
}

fn search_entry(
    path: &Path,
    findings: &mut Findings,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    job: &Job,
) {
    let opened = job.workspace.met(path).and_then(|place| job.workspace.open_file(&place).ok());
    match opened {
        Some((file, _)) => {
            findings.search(searcher, matcher, job.workspace.shown(path), job.stoppable(file));
        }
        None => findings.unreadable += 1,
    }
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, Failure> {
    let mut builder = RegexMatcherBuilder::new();
    // `^` and `$` match at every line's ends, before CR LF too.
    builder.case_insensitive(arguments.case_insensitive.unwrap_or(false)).multi_line(true).crlf(true);
    builder.build(&arguments.pattern).map_err(|error| {
        Failure::Senseless(format!(
            "`pattern` can't be used:\n{error}\nTo search for one of ( ) [ ] {{ }} . * + ? | ^ $ \\ itself, put a \\ \
             before it; a match can't go over the end of a line."
        ))
    })
}

fn searcher(context_lines: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context_lines)
        .after_context(context_lines)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LINE_BYTES_MAX))
        .build()
}

fn answer(arguments: &Arguments, path: &str, findings: Findings) -> String {
    let mut standing = String::new();
    // Writing to a string can't fail.
    if findings.matches == 0 {
        let _ = write!(standing, "nothing in `{path}` matches `{}`", arguments.pattern);
        if let Some(glob) = &arguments.glob {
            let _ = write!(standing, " in files `{glob}`");
        }
    } else {
        let (matches, files) =
            (count(findings.matches, "matching line"), count(findings.files_matched, "file"));
        let _ = match findings.mode {
            Mode::Files => write!(standing, "{files} with matches"),
            Mode::Content | Mode::Count => write!(standing, "{matches} in {files}"),
        };
    }
    let _ = write!(standing, "; {} searched", count(findings.files, "file"));
    if findings.is_full() {
        standing
            .push_str("; stopped here: narrow `pattern`, `path` or `glob`, or raise `max_results` for more");
    }
    if findings.binary > 0 {
        let _ = write!(standing, "; {} left out", count(findings.binary, "binary file"));
    }
    if findings.unreadable > 0 {
        let _ = write!(standing, "; {} couldn't be read", count(findings.unreadable, "file"));
    }
    format!("{}[{standing}]", findings.text)
}
