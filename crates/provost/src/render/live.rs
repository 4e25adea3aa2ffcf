//! A calm view for a terminal: lines that stay, and a status line below them.

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::{Style, Term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use provost_engine::RunState;
use provost_event::{Delta, Record};

use super::View;
use super::entry::Sayer;
use super::narrow::Narrow;
use super::saying::{Saying, Tag, Weight};
use super::tracker::Tracker;

/// Columns of text; wider lines are hard to read.
const WIDTH_MAX: usize = 100;
/// Columns that the status line doesn't get: for the spinner and what [`Narrow`] keeps free.
const ROOM: usize = 10;
const TICK: Duration = Duration::from_millis(120);
const INDENT: &str = "  ";
const UNDER: &str = "      ";

pub(super) struct Live {
    bar: ProgressBar,
    sayer: Mutex<Sayer>,
    // Its own lock, never held while the bar draws: the bar's status line takes it.
    tracker: Arc<Mutex<Tracker>>,
}

impl Live {
    pub(super) fn new(before: Option<&RunState>) -> Self {
        let tracker = Arc::new(Mutex::new(Tracker::new(before)));
        let target = ProgressDrawTarget::term_like(Box::new(Narrow(Term::buffered_stderr())));
        let bar = ProgressBar::with_draw_target(None, target).with_style(style(Arc::clone(&tracker)));
        bar.enable_steady_tick(TICK);
        Self { bar, sayer: Mutex::default(), tracker }
    }

    /// Prints above the status line. (The bar's own printing fills lines with spaces, which would be copied.)
    fn print(&self, lines: &str) {
        // Nobody sees it any more, then: the run is what matters.
        self.bar.suspend(|| drop(writeln!(std::io::stderr(), "{lines}")));
    }

    fn track(&self, change: impl FnOnce(&mut Tracker)) {
        change(&mut self.tracker.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn style(tracker: Arc<Mutex<Tracker>>) -> ProgressStyle {
    let status = move |_: &ProgressState, out: &mut dyn fmt::Write| {
        let line = tracker.lock().unwrap_or_else(PoisonError::into_inner).line();
        let line = console::truncate_str(&line, columns().saturating_sub(ROOM), "…").into_owned();
        // A line that can't be drawn is drawn at the next tick.
        let _ = write!(out, "{}", Style::new().for_stderr().dim().apply_to(line));
    };
    let spinner = ProgressStyle::default_spinner().tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ");
    match spinner.clone().template("  {spinner:.cyan} {status}") {
        Ok(style) => style.with_key("status", status),
        Err(_) => spinner,
    }
}

fn columns() -> usize {
    usize::from(Term::stderr().size().1)
}

impl View for Live {
    fn record(&self, record: &Record) {
        self.track(|tracker| tracker.note(record));
        let saying = self.sayer.lock().unwrap_or_else(PoisonError::into_inner).say(record);
        if saying.weight == Weight::Kept {
            self.print(&lines(&saying, columns().min(WIDTH_MAX)));
        }
    }

    fn delta(&self, delta: &Delta) {
        self.track(|tracker| tracker.hear(delta.kind));
    }

    fn stopping(&self, signal: &str) {
        self.track(Tracker::stop);
        let note = format!("{INDENT}{signal}: stopping cleanly; once more stops at once");
        self.print(&Style::new().for_stderr().yellow().apply_to(note).to_string());
    }

    fn close(&self) {
        self.bar.finish_and_clear();
    }
}

/// The lines of a saying, marked, coloured and wrapped to `width`.
fn lines(saying: &Saying, width: usize) -> String {
    let plain = Style::new().for_stderr();
    let (mark, style) = match saying.tag {
        Tag::Agent => return format!("\n{}", wrapped(saying.text(), INDENT, width)),
        Tag::Run => ("▸", plain.clone().bold()),
        Tag::User => ("»", plain.clone().cyan()),
        Tag::Provost | Tag::Detail | Tag::Tool => ("·", plain.clone().dim()),
        Tag::Ok => ("✓", plain.clone().green()),
        Tag::Failed => ("✗", plain.clone().red()),
        Tag::HooksAgree => ("◆", plain.clone().green()),
        Tag::HooksObject => ("◆", plain.clone().yellow()),
        Tag::Asks => ("?", plain.clone().yellow().bold()),
        Tag::Retry => ("↻", plain.clone().yellow()),
        Tag::Budget => ("■", plain.clone().yellow()),
    };
    let text = wrapped(saying.text(), "    ", width);
    let mut out = format!("{INDENT}{} {}", style.apply_to(mark), text.trim_start());
    for line in saying.more() {
        let line = wrapped(line, UNDER, width);
        out.push('\n');
        out.push_str(&plain.clone().dim().apply_to(line).to_string());
    }
    out
}

fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width.max(20)).initial_indent(indent).subsequent_indent(indent);
    let expanded = text.replace('\t', "    ");
    expanded.lines().map(|line| textwrap::fill(line, &options)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::lines;
    use crate::render::saying::{Saying, Tag};

    #[test]
    fn lines_are_marked_wrapped_and_safe() {
        console::set_colors_enabled_stderr(false);
        let said =
            Saying::kept(Tag::Agent, "I'll look around first, then run\nthe \u{1b}[31mtests\u{1b}[0m.");
        let failed = Saying::kept(Tag::Failed, "shell cargo test --workspace --all-features (12.3s)");
        let failed = failed.with(["exit status 101".to_owned(), "\ttests/a.rs".to_owned()]);
        let shown = [lines(&said, 30), lines(&failed, 30)].join("\n");
        let shown = shown.lines().map(|line| format!("|{line}\n")).collect::<String>();
        expect![[r#"
            |
            |  I'll look around first, then
            |  run
            |  the tests.
            |  ✗ shell cargo test
            |    --workspace --all-features
            |    (12.3s)
            |      exit status 101
            |          tests/a.rs
        "#]]
        .assert_eq(&shown);
    }
}
