//! Reports to the surrounding terminal besides what people read: program status (OSC 7501), progress (OSC 9;4) and
//! title, for users who watch many terminals. All of it is reset at the end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use provost_config::Settings;
use provost_event::{
    ActorKey, Blocker, Delta, Entry, GateEntry, LifecycleEntry, Outcome, Record, RunId, Seq, SessionId,
    TerminalEntry, TerminalEvent, TerminalState,
};

use crate::attached::Asides;
use crate::render::{Extent, View, one_line};
use crate::typing::Typing;
use crate::unattended::is_in_background;
use provost_runtime::Bell;
use provost_view::ApprovalQuestion;

/// Columns of a goal in a title.
const TITLE_WIDTH: usize = 60;

/// The view, which also reports if the settings ask for it and the terminal understands it. Reports go to standard
/// error, or into `asides` where a program has the terminal.
pub(crate) fn reporting(view: Box<dyn View>, settings: &Settings, asides: Option<Asides>) -> Box<dyn View> {
    if !settings.terminal_reports {
        return view;
    }
    match bell(asides) {
        Some(bell) => {
            let tell = Box::new(move |text: &str| bell(text));
            Box::new(Reporting { view, reporter: Mutex::new(Reporter::new(tell)) })
        }
        None => view,
    }
}

/// Writes sequences that paint nothing to standard error, or into `asides` where a program has the terminal; `None` if
/// no terminal would understand them.
pub(crate) fn bell(asides: Option<Asides>) -> Option<Bell> {
    let term = std::env::var_os("TERM");
    let is_dumb = term.is_none_or(|term| term.is_empty() || term == "dumb");
    if is_dumb || is_in_background() || !std::io::stderr().is_terminal() {
        return None;
    }
    Some(match asides {
        Some(asides) => Arc::new(move |text: &str| asides.say(text)),
        // A failed write doesn't stop the run.
        None => Arc::new(|text: &str| drop(std::io::stderr().write_all(text.as_bytes()))),
    })
}

/// Writes a report to the terminal.
type Tell = Box<dyn Fn(&str) + Send>;

/// A view, and who reports.
struct Reporting {
    view: Box<dyn View>,
    reporter: Mutex<Reporter>,
}

impl Reporting {
    fn reports(&self, what: impl FnOnce(&mut Reporter)) {
        what(&mut self.reporter.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl View for Reporting {
    fn record(&self, record: &Record) {
        self.view.record(record);
        self.reports(|reporter| reporter.note(record));
    }

    fn delta(&self, delta: &Delta) {
        self.view.delta(delta);
    }

    fn stopping(&self, signal: &str) {
        self.view.stopping(signal);
    }

    fn waits(&self, question: &ApprovalQuestion) {
        self.view.waits(question);
        self.reports(|reporter| reporter.opened(question.session, question.asked));
    }

    fn ask(&self, question: &ApprovalQuestion, extent: Extent, prompt: &str) {
        self.view.ask(question, extent, prompt);
        self.reports(|reporter| reporter.opened(question.session, question.asked));
    }

    fn prompt(&self, words: &str, prompt: &str) {
        self.view.prompt(words, prompt);
    }

    fn asked(&self) {
        self.view.asked();
    }

    fn note(&self, words: &str) {
        self.view.note(words);
    }

    fn typing(&self) -> Option<std::sync::Arc<Typing>> {
        self.view.typing()
    }

    fn attached(&self, is_attached: crate::render::Attached) {
        self.view.attached(is_attached);
    }

    fn close(&self) {
        self.view.close();
        self.reports(Reporter::clear);
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        self.reports(Reporter::clear);
    }
}

/// The last report to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Working,
    /// For this kind of thing.
    Blocked(&'static str),
    Idle,
    Done,
    Error,
}

/// The status of a run, as far as it is reported to a terminal.
struct Reporter {
    tell: Tell,
    goal: String,
    open: BTreeSet<(ActorKey, Seq)>,
    /// What programs of the run wait for, by agent.
    waiting: std::collections::BTreeMap<ActorKey, &'static str>,
    told: Option<Status>,
}

impl Reporter {
    fn new(tell: Tell) -> Self {
        Self { tell, goal: String::new(), open: BTreeSet::new(), waiting: Default::default(), told: None }
    }

    fn note(&mut self, record: &Record) {
        let actor = record.actor;
        match (&record.entry, actor) {
            (Entry::Lifecycle(LifecycleEntry::RunStarted(started)), _) => {
                self.goal = one_line(&started.goal, TITLE_WIDTH);
            }
            (Entry::Lifecycle(LifecycleEntry::Paused(paused)), ActorKey::Run(run)) => {
                return self.suspended(run, &paused.outcome);
            }
            (Entry::Lifecycle(LifecycleEntry::Ended(ended)), ActorKey::Run(run)) => {
                return self.suspended(run, &ended.outcome);
            }
            (
                Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)),
                ActorKey::Session(_),
            ) => self.forget(actor),
            (Entry::Gate(GateEntry::ApprovalRequested(_)), _) => drop(self.open.insert((actor, record.seq))),
            (Entry::Gate(GateEntry::ApprovalResolved(resolved)), _) => {
                self.open.remove(&(actor, resolved.asked));
            }
            (Entry::Terminal(TerminalEntry::Noted(noted)), _) => self.note_program(actor, &noted.event),
            _ => {}
        }
        self.tell_now();
    }

    fn note_program(&mut self, actor: ActorKey, event: &TerminalEvent) {
        let waits = match event {
            TerminalEvent::WaitingForInput { .. } | TerminalEvent::State(TerminalState::WaitingForInput) => {
                "input"
            }
            TerminalEvent::PasswordPrompt { .. } | TerminalEvent::State(TerminalState::Password) => {
                "password"
            }
            TerminalEvent::State(TerminalState::Blocked(Blocker::Auth)) => "login",
            TerminalEvent::State(TerminalState::Blocked(Blocker::Question)) => "question",
            TerminalEvent::State(TerminalState::Blocked(Blocker::Approval)) => "permission",
            TerminalEvent::State(_)
            | TerminalEvent::Idle
            | TerminalEvent::Submitted { .. }
            | TerminalEvent::Answered { .. }
            | TerminalEvent::Exited { .. } => {
                self.waiting.remove(&actor);
                return;
            }
            _ => return,
        };
        self.waiting.insert(actor, waits);
    }

    fn opened(&mut self, session: SessionId, asked: Seq) {
        self.open.insert((session.into(), asked));
        self.tell_now();
    }

    fn forget(&mut self, actor: ActorKey) {
        self.open.retain(|(of, _)| *of != actor);
        self.waiting.remove(&actor);
    }

    fn suspended(&mut self, _: RunId, outcome: &Outcome) {
        self.open.clear();
        self.waiting.clear();
        self.tell(match outcome {
            Outcome::Completed { .. } => Status::Done,
            Outcome::Failed { .. } | Outcome::Aborted { .. } => Status::Error,
            Outcome::BudgetExhausted(_)
            | Outcome::Blocked { .. }
            | Outcome::Paused { .. }
            | Outcome::Cancelled { .. } => Status::Idle,
        });
    }

    fn tell_now(&mut self) {
        let waits = || self.waiting.values().next().copied();
        let kind = if self.open.is_empty() { waits() } else { Some("permission") };
        self.tell(kind.map_or(Status::Working, Status::Blocked));
    }

    fn tell(&mut self, status: Status) {
        if self.told == Some(status) {
            return;
        }
        let mut text = String::new();
        if self.told.is_none() {
            // Makes the terminal save its present title.
            text.push_str("\u{1b}[22;2t");
        }
        self.told = Some(status);
        let (state, kind) = status.of_program();
        let kind = kind.map(|kind| format!(":kind={kind}")).unwrap_or_default();
        let _ = write!(text, "\u{1b}]7501;state={state}:app=provost{kind}\u{1b}\\");
        let _ = write!(text, "\u{1b}]9;4;{}\u{1b}\\", status.of_progress());
        let _ = write!(text, "\u{1b}]2;{}\u{1b}\\", self.title(state));
        (self.tell)(&text);
    }

    fn title(&self, state: &str) -> String {
        let words = if self.goal.is_empty() { String::new() } else { format!(": {}", self.goal) };
        let title = format!("provost {state}{words}");
        title.chars().filter(|c| !c.is_control()).collect()
    }

    /// Resets what was reported.
    fn clear(&mut self) {
        if self.told.take().is_some() {
            (self.tell)("\u{1b}]7501;state=clear\u{1b}\\\u{1b}]9;4;0\u{1b}\\\u{1b}]2;\u{1b}\\\u{1b}[23;2t");
        }
    }
}

impl Status {
    const fn of_program(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Working => ("working", None),
            Self::Blocked(kind) => ("blocked", Some(kind)),
            Self::Idle => ("idle", None),
            Self::Done => ("done", None),
            Self::Error => ("error", None),
        }
    }

    /// A state and its value: going on without a known end, waiting, wrong, or none.
    const fn of_progress(self) -> &'static str {
        match self {
            Self::Working => "3",
            Self::Blocked(_) => "4;100",
            Self::Error => "2;100",
            Self::Idle | Self::Done => "0",
        }
    }
}
