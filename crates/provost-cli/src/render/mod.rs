//! From records to what people and programs see.
//!
//! `entry.rs` renders each entry as text, one function a kind; the views print them: `live.rs` on a terminal,
//! `plain.rs` elsewhere, `json.rs` for programs. All text of models and tools goes through `safe.rs`.

mod agents;
mod arguments;
mod attended;
mod context;
mod entry;
mod flow;
mod gate;
mod gateway;
mod go_on;
mod goal;
mod json;
mod live;
mod model;
mod plain;
mod policy;
mod question;
mod result;
mod safe;
mod saying;
mod service;
mod status;
mod summary;
mod table;
mod terminal;
mod tracker;
mod uncertain;
mod wait;
mod words;
mod worktree;

use std::io::IsTerminal as _;
use std::sync::Arc;

use provost_engine::{Actor, RunState};
use provost_event::{ActorKey, Delta, Record};

use crate::cli::ShownArgs;
use crate::typing::Typing;
use provost_view::ApprovalQuestion;
use saying::Weight;

pub(crate) use agents::checked;
pub(crate) use arguments::call as call_in_words;
pub(crate) use context::{
    compaction_in_words, compactions_in_words, exhausted_in_words, freed, outcome_in_words,
};
pub(crate) use entry::Sayer;
pub(crate) use flow::{outcome_with_steps, run_outcome_in_words};
pub(crate) use gateway::{gateway_lines, gateway_table};
pub(crate) use go_on::{LeastLimit, ask_again, dollars, enough_more, go_on_with};
pub(crate) use goal::{failure_in_words, finding_in_words, goal_at_end, reasons, trigger_in_words};
pub(crate) use policy::change_lines;
pub(crate) use question::{
    Extent, Room, UNNAMED, answer_in_words, call_in_full, fields_in_words, outside_in_words, script_in_words,
};
pub(crate) use safe::{safe, visible, visible_json};
pub(crate) use summary::{Stopped, summary};
pub(crate) use table::{Cells, Table, terminal_width};
pub(crate) use uncertain::UncertaintyMarks;
pub(crate) use wait::{left_in_words, waited_in_words, whole_seconds};
pub(crate) use words::{
    age, amount, duration, excerpt, hanging, one_line, pictures, plural, size, span, tokens, tokens_in_short,
};

/// Shows a run while it goes.
pub(crate) trait View: Send + Sync {
    /// An entry was committed.
    fn record(&self, record: &Record);

    /// A piece of an answer that isn't committed yet.
    fn delta(&self, delta: &Delta) {
        let _ = delta;
    }

    /// A suspension was requested by this signal.
    fn stopping(&self, signal: &str) {
        let _ = signal;
    }

    /// A question is asked elsewhere: says which, and how to answer it.
    fn waits(&self, question: &ApprovalQuestion) {
        let _ = question;
    }

    /// Asks the user at this terminal a question. Until [`View::asked`] nothing is drawn over it, and `prompt`
    /// stays the last line.
    fn ask(&self, question: &ApprovalQuestion, extent: Extent, prompt: &str) {
        let _ = (question, extent, prompt);
    }

    /// Prints `words` about the question, if it has any, and asks again with another prompt.
    fn prompt(&self, words: &str, prompt: &str) {
        let _ = (words, prompt);
    }

    /// The question has its answer, or is no longer asked.
    fn asked(&self) {}

    /// Prints a note that stays.
    fn note(&self, words: &str) {
        let _ = words;
    }

    /// This terminal is a program's from now on, and nothing may be drawn over it; or it is Provost's again.
    fn attached(&self, attached: Attached) {
        let _ = attached;
    }

    /// What the user types while the run works, where that can be read.
    fn typing(&self) -> Option<Arc<Typing>> {
        None
    }

    /// Removes what is shown only meanwhile.
    fn close(&self) {}
}

/// What has this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// An external program.
    Here,
    /// Provost.
    Gone,
}

/// How much of a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What matters to a user who watches.
    Usual,
    /// Every entry, also those that only a log shows otherwise.
    Everything,
}

impl Detail {
    /// Whether a terminal with a status line shows what matters so much.
    fn shows(self, weight: Weight) -> bool {
        self == Self::Everything || weight == Weight::Kept
    }
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Lines with a status line below, on a terminal.
    Live(Detail),
    /// Lines.
    Plain(Detail),
    /// Not at all while a program has this terminal; lines afterwards.
    Attended,
    /// Not at all while a program has the streams of this command; afterwards what it doesn't tell itself.
    Passed,
    /// Records, on standard output.
    Json,
    /// Not at all.
    Silent,
}

impl Progress {
    /// What was asked for, and what standard error can show.
    pub(crate) fn choose(shown: ShownArgs) -> Self {
        let detail = if shown.verbose { Detail::Everything } else { Detail::Usual };
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let traced = std::env::var_os("PROVOST_LOG").is_some();
        match shown {
            ShownArgs { json: true, .. } => Self::Json,
            ShownArgs { quiet: true, .. } => Self::Silent,
            _ if std::io::stderr().is_terminal() && !dumb && !traced => Self::Live(detail),
            _ => Self::Plain(detail),
        }
    }

    /// The view; `before` is the run as it was, if it was.
    pub(crate) fn view(self, earlier: Option<&Earlier<'_>>) -> Box<dyn View> {
        let sayer = || earlier.map(Sayer::after).unwrap_or_default();
        match self {
            Self::Live(detail) => {
                Box::new(live::Live::new(sayer(), earlier.map(|earlier| earlier.state), detail))
            }
            Self::Plain(detail) => Box::new(plain::Plain::new(sayer(), detail)),
            Self::Attended => Box::new(attended::Attended::new(sayer())),
            Self::Json => Box::new(json::Json),
            Self::Passed | Self::Silent => Box::new(Silent),
        }
    }
}

/// A run before the part of it that is shown.
pub(crate) struct Earlier<'a> {
    pub(crate) state: &'a RunState,
    /// Its agents' sessions, as far as they may still work.
    pub(crate) sessions: Vec<(ActorKey, Actor)>,
}

struct Silent;

impl View for Silent {
    fn record(&self, _: &Record) {}

    /// A question is shown even without progress: otherwise no user would answer it.
    fn waits(&self, question: &ApprovalQuestion) {
        plain::print_waiting(question);
    }
}
