//! A calm view for a terminal: lines that stay, and a status line below them.

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use console::{Style, Term, measure_text_width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use provost_engine::RunState;
use provost_event::{Delta, Entry, GateEntry, Record};
use provost_harness::{Clock as _, SystemClock};

use super::entry::Sayer;
use super::narrow::Narrow;
use super::question::{Extent, Room, call_in_full, facts};
use super::safe::visible;
use super::saying::{Saying, Tag, Weight};
use super::tracker::Tracker;
use super::wait::left_in_words;
use super::{View, safe};
use crate::questions::asker;
use provost_view::ApprovalQuestion;

/// Columns of text; wider lines are hard to read.
const WIDTH_MAX: usize = 100;
/// Columns that the status line doesn't get: for the spinner and what [`Narrow`] keeps free.
const ROOM: usize = 10;
/// Goes to the line's beginning and erases what stands in it.
const ERASE_LINE: &str = "\r\u{1b}[2K";
const TICK: Duration = Duration::from_millis(120);
const INDENT: &str = "  ";
const UNDER: &str = "      ";
/// Lines that a question needs besides its call, and those that a call gets on the smallest terminal.
const QUESTION_LINES: usize = 9;
const CALL_LINES_MIN: usize = 5;
/// Columns of the names of facts.
const NAME_WIDTH: usize = 5;

pub(super) struct Live {
    bar: ProgressBar,
    sayer: Mutex<Sayer>,
    // Its own lock, never held while the bar draws: the bar's status line takes it.
    tracker: Arc<Mutex<Tracker>>,
    /// The prompt of an open question, in the last line in place of the status line.
    prompt: Mutex<Option<String>>,
}

impl Live {
    pub(super) fn new(sayer: Sayer, before: Option<&RunState>) -> Self {
        let tracker = Arc::new(Mutex::new(Tracker::new(before)));
        let target = ProgressDrawTarget::term_like(Box::new(Narrow(Term::buffered_stderr())));
        let bar = ProgressBar::with_draw_target(None, target).with_style(style(Arc::clone(&tracker)));
        bar.enable_steady_tick(TICK);
        Self { bar, sayer: Mutex::new(sayer), tracker, prompt: Mutex::default() }
    }

    /// Prints above the status line, or above the prompt of a question. (The bar's own printing fills lines with
    /// spaces, which would be copied.)
    fn print(&self, lines: &str) {
        // A failed write doesn't stop the run.
        match &*self.prompt() {
            Some(prompt) => drop(write!(std::io::stderr(), "{ERASE_LINE}{lines}\n{prompt}")),
            None => self.bar.suspend(|| drop(writeln!(std::io::stderr(), "{lines}"))),
        }
    }

    fn prompt(&self) -> MutexGuard<'_, Option<String>> {
        self.prompt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints lines, then the prompt in place of the status line.
    fn print_and_ask(&self, lines: &str, words: &str) {
        let mut prompt = self.prompt();
        if prompt.is_none() {
            self.bar.finish_and_clear();
        }
        let words = wrapped(&format!("{words} › "), INDENT, columns());
        let words = Style::new().for_stderr().bold().apply_to(words.trim_end()).to_string();
        // A prompt of several lines would leave all but the last behind when something is printed above it.
        let (above, last) = words.rsplit_once('\n').unwrap_or(("", &words));
        let above = if above.is_empty() { String::new() } else { format!("{above}\n") };
        let lines = if lines.is_empty() { String::new() } else { format!("{lines}\n") };
        let _ = write!(std::io::stderr(), "{ERASE_LINE}{lines}{above}{last} ");
        *prompt = Some(format!("{last} "));
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
        // Questions are shown, or reported, in their own way.
        let is_question = matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_)));
        if !is_question && saying.weight == Weight::Kept {
            self.print(&lines(&saying, columns().min(WIDTH_MAX)));
        }
    }

    fn delta(&self, delta: &Delta) {
        self.track(|tracker| tracker.hear(delta));
    }

    fn stopping(&self, signal: &str) {
        self.track(Tracker::stop);
        let note = format!("{INDENT}{signal}: stopping cleanly; once more stops at once");
        self.print(&Style::new().for_stderr().yellow().apply_to(note).to_string());
    }

    fn waits(&self, question: &ApprovalQuestion) {
        let name = question.short_id();
        let left = left_in_words(question.wait(), SystemClock.now(), true);
        let facts = [
            ("why", visible(&question.why)),
            ("left", left),
            ("yes", format!("provost approve {name}")),
            ("no", format!("provost deny {name}")),
        ];
        self.print(&in_lines(question, &facts, Extent::Fitting, "provost approvals shows all"));
    }

    fn ask(&self, question: &ApprovalQuestion, extent: Extent, prompt: &str) {
        let facts = facts(question, SystemClock.now());
        let lines = in_lines(question, &facts, extent, "v and Enter shows all");
        self.print_and_ask(&format!("\n{lines}"), prompt);
    }

    fn prompt(&self, words: &str, prompt: &str) {
        let words = if words.is_empty() { String::new() } else { wrapped(&safe(words), "    ", columns()) };
        self.print_and_ask(&Style::new().for_stderr().yellow().apply_to(words).to_string(), prompt);
    }

    fn asked(&self) {
        if self.prompt().take().is_some() {
            let _ = write!(std::io::stderr(), "{ERASE_LINE}");
            self.bar.reset();
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn note(&self, words: &str) {
        let words = wrapped(&safe(words), "    ", columns().min(WIDTH_MAX));
        self.print(&Style::new().for_stderr().dim().apply_to(words).to_string());
    }

    fn close(&self) {
        if self.prompt().take().is_some() {
            let _ = write!(std::io::stderr(), "{ERASE_LINE}");
        }
        self.bar.finish_and_clear();
    }
}

/// A question: its tool, the call, and what there is to know besides.
fn in_lines(question: &ApprovalQuestion, facts: &[(&str, String)], extent: Extent, more: &str) -> String {
    let (plain, (rows, columns)) = (Style::new().for_stderr(), Term::stderr().size());
    let lines_max = match extent {
        Extent::Fitting => usize::from(rows).saturating_sub(QUESTION_LINES).max(CALL_LINES_MIN),
        Extent::Whole => usize::MAX,
    };
    let width = usize::from(columns).saturating_sub(NAME_WIDTH).max(1);
    let mark = plain.clone().yellow().bold().apply_to("?").to_string();
    let tool = plain.clone().bold().apply_to(visible(&question.tool)).to_string();
    let who = asker(question).as_deref().map(|who| format!("{who} │ ")).unwrap_or_default();
    let who = plain.clone().cyan().apply_to(who);
    let mut lines = vec![format!("{INDENT}{mark} may it? {who}{tool}")];
    let call = call_in_full(question, Room { width, lines_max }, more);
    lines.extend(call.into_iter().map(|line| format!("    {line}")));
    for (name, text) in facts {
        let indent = " ".repeat(4 + NAME_WIDTH + 1);
        let text = wrapped(text, &indent, usize::from(columns));
        let name = plain.clone().dim().apply_to(format!("    {name:<NAME_WIDTH$} "));
        lines.push(format!("{name}{}", text.trim_start()));
    }
    lines.join("\n")
}

/// The lines of a saying, marked, coloured and wrapped to `width`; each begins with its agent, unless that is the
/// root.
fn lines(saying: &Saying, width: usize) -> String {
    let Some(who) = &saying.who else { return text(saying, width) };
    let who = format!("{INDENT}{who} │");
    let text = text(saying, width.saturating_sub(measure_text_width(&who)));
    let who = Style::new().for_stderr().cyan().apply_to(who).to_string();
    let lines = text.trim_start_matches('\n').lines();
    lines
        .map(|line| format!("{who}{}", line.strip_prefix(' ').unwrap_or(line)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn text(saying: &Saying, width: usize) -> String {
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
        Tag::Goal => ("◎", plain.clone().cyan()),
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

    #[test]
    fn what_a_sub_agent_says_stands_behind_its_name_on_every_line() {
        console::set_colors_enabled_stderr(false);
        let who = Some("3 reviewer".to_owned());
        let said = Saying::kept(Tag::Agent, "I'll look around first.\n\nThen more.").of(who.clone());
        let failed = Saying::kept(Tag::Failed, "shell cargo test --workspace (12.3s)").of(who);
        let shown = [lines(&said, 34), lines(&failed.with(["exit status 101".to_owned()]), 34)].join("\n");
        let shown = shown.lines().map(|line| format!("|{line}\n")).collect::<String>();
        expect![[r#"
            |  3 reviewer │ I'll look around
            |  3 reviewer │ first.
            |  3 reviewer │ 
            |  3 reviewer │ Then more.
            |  3 reviewer │ ✗ shell cargo test
            |  3 reviewer │   --workspace
            |  3 reviewer │   (12.3s)
            |  3 reviewer │     exit status
            |  3 reviewer │     101
        "#]]
        .assert_eq(&shown);
    }
}
