//! The view of a run at a terminal: lines that stay, and below them what goes on, a status line, and the line that is
//! typed.

mod area;
mod lines;
mod screen;
mod stream;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use console::{Style, Term};
use provost_engine::RunState;
use provost_event::{ActorKey, ConversationEntry, Delta, DeltaKind, Entry, GateEntry, Record};
use provost_harness::{Clock as _, SystemClock};

use super::entry::Sayer;
use super::question::{Extent, Room, call_in_full, facts};
use super::safe::visible;
use super::saying::Saying;
use super::tracker::{ROOT, Tracker};
use super::wait::left_in_words;
use super::{Detail, View, safe};
use crate::questions::asker;
use crate::typing::Typing;
use area::Area;
use lines::{GUTTER, lines, wrapped};
use provost_view::ApprovalQuestion;
use screen::Screen;
use stream::{Rest, Stream};

/// Columns of text; wider lines are hard to read.
const WIDTH_MAX: usize = 100;
/// How often the area below the lines is drawn again, and text that is being written is added.
const TICK: Duration = Duration::from_millis(100);
const INDENT: &str = "   ";
/// Lines that a question needs besides its call, and those that a call gets on the smallest terminal.
const QUESTION_LINES: usize = 9;
const CALL_LINES_MIN: usize = 5;
/// Columns of the names of facts.
const NAME_WIDTH: usize = 7;

pub(super) struct Live {
    state: Arc<Mutex<State>>,
    typing: Option<Arc<Typing>>,
}

/// Whether the area is drawn again.
#[derive(PartialEq, Eq)]
enum Ticking {
    On,
    Over,
}

struct State {
    screen: Screen,
    sayer: Sayer,
    tracker: Tracker,
    stream: Stream,
    detail: Detail,
    /// The prompt of an open question, in the last lines in place of the line for messages.
    prompt: Option<String>,
    typing: Option<Arc<Typing>>,
    is_closed: bool,
}

impl Live {
    pub(super) fn new(sayer: Sayer, before: Option<&RunState>, detail: Detail) -> Self {
        let (poke, poked) = sync_channel(1);
        // One that waits is enough.
        let typing = Typing::begin(move || {
            let _ = poke.try_send(());
        })
        .map(Arc::new);
        let state = State {
            screen: Screen::default(),
            sayer,
            tracker: Tracker::new(before),
            stream: Stream::default(),
            detail,
            prompt: None,
            typing: typing.clone(),
            is_closed: false,
        };
        let state = Arc::new(Mutex::new(state));
        let ticked = state.clone();
        std::thread::spawn(move || {
            loop {
                // Without a user who types there is no wake-up.
                if poked.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected) {
                    std::thread::sleep(TICK);
                }
                if locked(&ticked).tick() == Ticking::Over {
                    return;
                }
            }
        });
        Self { state, typing }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn columns() -> usize {
    usize::from(Term::stderr().size().1)
}

fn width() -> usize {
    columns().min(WIDTH_MAX)
}

impl State {
    /// Prints lines for good.
    fn print(&mut self, lines: &str) {
        let area = if self.is_closed { Vec::new() } else { self.area() };
        self.screen.draw(lines, area, columns());
    }

    fn tick(&mut self) -> Ticking {
        if self.is_closed {
            return Ticking::Over;
        }
        let lines = self.stream.take_lines(INDENT, width());
        let lines = self.with_turn(lines);
        self.print(&lines.join("\n"));
        Ticking::On
    }

    /// The lines, of which the first of an answer begins with the number of the turn.
    fn with_turn(&mut self, mut lines: Vec<String>) -> Vec<String> {
        if let Some(first) = lines.first_mut()
            && self.tracker.begins_answer()
        {
            let number = format!("{:>2} ", self.tracker.turn());
            let rest = first.get(GUTTER..).unwrap_or_default().to_owned();
            *first = format!("\n{}{rest}", Style::new().for_stderr().dim().apply_to(number));
        }
        lines
    }

    fn area(&self) -> Vec<String> {
        let (rows, columns) = Term::stderr().size();
        let area = Area {
            tracker: &self.tracker,
            open_line: self.stream.open_line(INDENT, width()),
            prompt: self.prompt.as_deref(),
            typed: self.typing.as_deref().map(Typing::line),
            rows: usize::from(rows),
            columns: usize::from(columns),
        };
        area.lines()
    }

    fn record(&mut self, record: &Record) {
        self.tracker.note(record);
        let is_of_root = matches!(record.actor, ActorKey::Session(session) if session.agent == ROOT);
        let saying = self.sayer.say(record);
        if is_of_root && matches!(record.entry, Entry::Conversation(ConversationEntry::AssistantMessage(_))) {
            return self.answered(saying);
        }
        if is_of_root && matches!(record.entry, Entry::Model(_)) {
            self.cut_short();
        }
        // Questions are shown, or reported, in their own way.
        let is_question = matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_)));
        if !is_question && self.detail.shows(saying.weight) {
            self.print(&lines(&saying, width()));
        }
    }

    /// An answer is complete: what was streamed of it stays, and the rest follows.
    fn answered(&mut self, saying: Saying) {
        let is_shown = self.detail.shows(saying.weight);
        let (taken, rest) = self.stream.finish(saying.text(), INDENT, width());
        let taken = self.with_turn(taken);
        let mut all = taken;
        match rest {
            Rest::All if is_shown => {
                let text = wrapped(saying.text(), INDENT, width());
                let fresh = text.lines().map(str::to_owned).collect();
                all.extend(self.with_turn(fresh));
            }
            Rest::Only(text) if !text.trim().is_empty() => all.push(wrapped(text.trim(), INDENT, width())),
            Rest::All | Rest::Only(_) => {}
        }
        if all.is_empty() { self.print("") } else { self.print(&all.join("\n")) }
    }

    /// What was streamed is all that comes of an answer.
    fn cut_short(&mut self) {
        if self.stream.is_empty() {
            return;
        }
        let (taken, _) = self.stream.finish("", INDENT, width());
        let taken = self.with_turn(taken);
        let note = Style::new().for_stderr().dim().apply_to(format!("{INDENT}… the answer broke off"));
        self.print(&format!("{}\n{note}", taken.join("\n")));
    }
}

impl View for Live {
    fn record(&self, record: &Record) {
        self.state().record(record);
    }

    fn delta(&self, delta: &Delta) {
        let mut state = self.state();
        state.tracker.hear(delta);
        let is_of_turn = delta.session.agent == ROOT && state.tracker.is_in_turn();
        if delta.kind == DeltaKind::Text && is_of_turn {
            state.stream.add(&delta.text);
        }
    }

    fn stopping(&self, signal: &str) {
        let mut state = self.state();
        state.tracker.stop();
        let note = format!("{INDENT}{signal}: stopping cleanly; once more stops at once");
        state.print(&Style::new().for_stderr().yellow().apply_to(note).to_string());
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
        let lines = in_lines(question, &facts, Extent::Fitting, "provost approvals shows all");
        self.state().print(&lines);
    }

    fn ask(&self, question: &ApprovalQuestion, extent: Extent, prompt: &str) {
        let facts = facts(question, SystemClock.now());
        let lines = in_lines(question, &facts, extent, "v and Enter shows all");
        let mut state = self.state();
        state.prompt = Some(prompt.to_owned());
        state.print(&format!("\n{lines}"));
    }

    fn prompt(&self, words: &str, prompt: &str) {
        let words = if words.is_empty() { String::new() } else { wrapped(&safe(words), "    ", columns()) };
        let words = if words.is_empty() {
            words
        } else {
            Style::new().for_stderr().yellow().apply_to(words).to_string()
        };
        let mut state = self.state();
        state.prompt = Some(prompt.to_owned());
        state.print(&words);
    }

    fn asked(&self) {
        let mut state = self.state();
        state.prompt = None;
        state.print("");
    }

    fn note(&self, words: &str) {
        let words = wrapped(&safe(words), "    ", width());
        self.state().print(&Style::new().for_stderr().dim().apply_to(words).to_string());
    }

    fn typing(&self) -> Option<Arc<Typing>> {
        self.typing.clone()
    }

    fn close(&self) {
        let unsent = self.typing.as_deref().and_then(Typing::end);
        let mut state = self.state();
        if !state.is_closed {
            state.cut_short();
            state.is_closed = true;
            state.prompt = None;
            state.screen.clear(columns());
        }
        if let Some(unsent) = unsent {
            let note = wrapped(&format!("not sent: {}", visible(&unsent)), "    ", width());
            state.print(&Style::new().for_stderr().dim().apply_to(note).to_string());
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
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
    lines.extend(call.into_iter().map(|line| format!("     {line}")));
    for (name, text) in facts {
        let indent = " ".repeat(5 + NAME_WIDTH + 1);
        let text = wrapped(text, &indent, usize::from(columns));
        let name = plain.clone().dim().apply_to(format!("     {name:<NAME_WIDTH$} "));
        lines.push(format!("{name}{}", text.trim_start()));
    }
    lines.join("\n")
}
