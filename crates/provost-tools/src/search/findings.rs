//! The results of a search so far.

use std::io::{self, Read};
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::spec::PAGE_BYTES_MAX;
use crate::text::cut;

/// Maximum bytes of a line to show.
const SHOWN_BYTES_MAX: usize = 400;

/// What is shown of the findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

/// The lines found, as text, and the counts.
pub(crate) struct Findings {
    pub(crate) mode: Mode,
    pub(crate) text: String,
    pub(crate) matches: usize,
    pub(crate) files: usize,
    pub(crate) files_matched: usize,
    pub(crate) binary: usize,
    pub(crate) unreadable: usize,
    matches_max: usize,
    full: bool,
}

impl Findings {
    /// No findings; at most `matches_max` lines are shown, or files where no lines are.
    pub(crate) fn new(mode: Mode, matches_max: usize) -> Self {
        Self {
            mode,
            text: String::new(),
            matches: 0,
            files: 0,
            files_matched: 0,
            binary: 0,
            unreadable: 0,
            matches_max,
            full: false,
        }
    }

    /// Whether there was more than fits.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// Searches one file. Matches before a file turns out to be binary count.
    pub(crate) fn search(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        path: &Path,
        file: impl Read,
    ) {
        let matches_before = self.matches;
        self.files += 1;
        let name = path.display().to_string();
        let mut in_file = InFile { findings: self, path: &name, binary: false, matches: 0 };
        let searched = searcher.search_reader(matcher, file, &mut in_file);
        let binary = in_file.binary;
        let found = in_file.matches;
        self.found_in(&name, found);
        if searched.is_err() {
            self.unreadable += 1;
        } else if binary && self.matches == matches_before {
            self.binary += 1;
        }
        if self.matches > matches_before {
            self.files_matched += 1;
        }
    }

    /// Adds the line of a file whose matches aren't shown.
    fn found_in(&mut self, name: &str, found: usize) {
        let line = match self.mode {
            _ if found == 0 => return,
            Mode::Content => return,
            Mode::Files => format!("{name}\n"),
            Mode::Count => format!("{name}:{found}\n"),
        };
        if self.files_matched == self.matches_max {
            self.full = true;
        } else if self.add(&line) {
            self.matches += found;
        }
    }

    /// Adds a line; if it doesn't fit, returns false and adds nothing.
    fn add(&mut self, line: &str) -> bool {
        if self.text.len() + line.len() > PAGE_BYTES_MAX {
            self.full = true;
            return false;
        }
        self.text.push_str(line);
        true
    }
}

struct InFile<'a> {
    findings: &'a mut Findings,
    path: &'a str,
    binary: bool,
    /// Matching lines that aren't shown.
    matches: usize,
}

impl InFile<'_> {
    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or(0);
        match cut(text, SHOWN_BYTES_MAX) {
            (whole, true) => format!("{}{mark}{number}{mark}{whole}\n", self.path),
            (part, false) => format!("{}{mark}{number}{mark}{part}… [{} bytes]\n", self.path, text.len()),
        }
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.findings.mode != Mode::Content {
            self.matches += 1;
            return Ok(self.findings.mode == Mode::Count);
        }
        if self.findings.matches == self.findings.matches_max {
            self.findings.full = true;
            return Ok(false);
        }
        let line = self.line(':', found.line_number(), found.bytes());
        let fits = self.findings.add(&line);
        self.findings.matches += usize::from(fits);
        Ok(fits)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.line('-', context.line_number(), context.bytes());
        Ok(self.findings.add(&line))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.findings.add("--\n"))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}
