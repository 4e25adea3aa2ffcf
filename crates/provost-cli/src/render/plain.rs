//! Lines without control codes, each with a stable prefix: for files, pipes and CI.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use provost_event::{Entry, GateEntry, Record};
use provost_harness::{Clock as _, SystemClock};

use super::entry::Sayer;
use super::question::{Extent, Room, call_in_full, facts};
use super::safe::visible;
use super::saying::{ChangedLine, Saying, Tag, Weight};
use super::wait::left_in_words;
use super::words::hanging;
use super::{Detail, View, safe};
use crate::output::tell_raw;
use crate::questions::asker;
use provost_view::ApprovalQuestion;

/// Columns of a call; a reader of the lines may wrap them once more.
const CALL_WIDTH: usize = 100;
/// Lines of a call whose approval is asked elsewhere.
const CALL_LINES_MAX: usize = 20;

pub(super) struct Plain {
    sayer: Mutex<Sayer>,
    detail: Detail,
}

impl Plain {
    pub(super) const fn new(sayer: Sayer, detail: Detail) -> Self {
        Self { sayer: Mutex::new(sayer), detail }
    }

    /// Takes a record in without showing it.
    pub(super) fn hear(&self, record: &Record) {
        let _ = self.sayer.lock().unwrap_or_else(PoisonError::into_inner).say(record);
    }
}

impl View for Plain {
    fn record(&self, record: &Record) {
        let saying = self.sayer.lock().unwrap_or_else(PoisonError::into_inner).say(record);
        // Questions are shown, or reported, in their own way.
        let is_question = matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_)));
        let is_shown = saying.weight != Weight::Detail || self.detail == Detail::Everything;
        if !is_question && is_shown {
            tell_raw(&lines(&saying));
        }
    }

    fn stopping(&self, signal: &str) {
        self.note(&format!("{signal}: stopping cleanly; once more stops at once"));
    }

    fn waits(&self, question: &ApprovalQuestion) {
        print_waiting(question);
    }

    fn ask(&self, question: &ApprovalQuestion, extent: Extent, prompt: &str) {
        let lines_max = if extent == Extent::Whole { usize::MAX } else { CALL_LINES_MAX };
        let facts = facts(question, SystemClock.now());
        let facts = facts.iter().map(|(name, text)| format!("{name}: {text}"));
        print_question(question, lines_max, "v and Enter shows all", facts.chain([prompt.to_owned()]));
    }

    fn prompt(&self, words: &str, prompt: &str) {
        let lines = [words, prompt].into_iter().filter(|line| !line.is_empty());
        let lines =
            lines.map(|line| format!("approval: {}\n", hanging(&safe(line), "  "))).collect::<String>();
        tell_raw(&lines);
    }

    fn note(&self, words: &str) {
        tell_raw(&format!("provost: {}\n", hanging(&safe(words), "  ")));
    }
}

/// Says that a question waits for an answer, and how to give it.
pub(super) fn print_waiting(question: &ApprovalQuestion) {
    let name = question.short_id();
    let left = left_in_words(question.wait(), SystemClock.now(), true);
    let facts = [
        format!("why: {}", visible(&question.why)),
        format!("provost approve {name}"),
        format!("provost deny {name}"),
        format!("left: {left}"),
    ];
    print_question(question, CALL_LINES_MAX, "provost approvals", facts);
}

fn print_question(
    question: &ApprovalQuestion,
    lines_max: usize,
    more: &str,
    facts: impl IntoIterator<Item = String>,
) {
    let room = Room { width: CALL_WIDTH, lines_max };
    let call = call_in_full(question, room, more);
    let who = asker(question).as_deref().map(|who| format!("{who} │ ")).unwrap_or_default();
    let mut out = format!("approval: may it? {who}{}\n", visible(&question.tool));
    for line in call.into_iter().chain(facts) {
        let _ = writeln!(out, "  {line}");
    }
    // In one write, so that nothing else comes between its lines.
    tell_raw(&out);
}

/// The prefix, then the text; further lines are indented. Each line begins with its agent, unless that is the
/// root.
fn lines(saying: &Saying) -> String {
    let text = text(saying);
    match &saying.who {
        None => text,
        Some(who) => text.lines().map(|line| format!("{}\n", format!("{who} │ {line}").trim_end())).collect(),
    }
}

fn text(saying: &Saying) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = writeln!(out, "{}: {}", prefix(saying.tag), hanging(saying.text(), "  "));
    for line in saying.changes() {
        let _ = match line {
            ChangedLine::Added { number, text } => writeln!(out, "  {number:>4} + {text}"),
            ChangedLine::Removed { number, text } => writeln!(out, "  {number:>4} - {text}"),
            ChangedLine::More(count) => writeln!(out, "  … {count} more lines"),
        };
    }
    for line in saying.more() {
        let _ = writeln!(out, "  {}", hanging(line, "  "));
    }
    out
}

const fn prefix(tag: Tag) -> &'static str {
    match tag {
        Tag::Run => "run",
        Tag::Agent => "agent",
        Tag::User => "user",
        Tag::Provost | Tag::Detail => "provost",
        Tag::Tool => "tool",
        Tag::Ok => "ok",
        Tag::Failed => "failed",
        Tag::HooksAgree | Tag::HooksObject => "hooks",
        Tag::Asks => "approval",
        Tag::Retry => "retry",
        Tag::Budget => "budget",
        Tag::Goal => "goal",
    }
}
