//! From records to what people and programs see.
//!
//! `entry.rs` says each entry in words, one function a kind; the views print them: `live.rs` on a terminal, `plain.rs`
//! elsewhere, `json.rs` for programs. Whatever comes from models and tools goes through `safe.rs`.

mod arguments;
mod entry;
mod gate;
mod json;
mod live;
mod narrow;
mod plain;
mod safe;
mod saying;
mod summary;
mod table;
mod tracker;
mod words;

use std::io::IsTerminal as _;

use provost_engine::RunState;
use provost_event::{Delta, Record};

use crate::cli::ShownArgs;

pub(crate) use entry::Sayer;
pub(crate) use safe::safe;
pub(crate) use summary::summary;
pub(crate) use table::{Cells, Table, terminal_width};
pub(crate) use words::{age, amount, duration, hanging, one_line, pictures, tokens};

/// Shows a run while it goes.
pub(crate) trait View: Send + Sync {
    /// An entry was committed.
    fn record(&self, record: &Record);

    /// A piece of an answer that isn't committed yet.
    fn delta(&self, delta: &Delta) {
        let _ = delta;
    }

    /// Somebody asked for a rest by this signal.
    fn stopping(&self, signal: &str) {
        let _ = signal;
    }

    /// Takes away what isn't meant to stay.
    fn close(&self) {}
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Lines with a status line below, on a terminal.
    Live,
    /// Lines.
    Plain,
    /// Records, on standard output.
    Json,
    /// Not at all.
    Silent,
}

impl Progress {
    /// What was asked for, and what standard error can show.
    pub(crate) fn choose(shown: ShownArgs) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let traced = std::env::var_os("PROVOST_LOG").is_some();
        match shown {
            ShownArgs { json: true, .. } => Self::Json,
            ShownArgs { quiet: true, .. } => Self::Silent,
            _ if std::io::stderr().is_terminal() && !dumb && !traced => Self::Live,
            _ => Self::Plain,
        }
    }

    /// The view; `before` is the run as it was, if it was.
    pub(crate) fn view(self, before: Option<&RunState>) -> Box<dyn View> {
        match self {
            Self::Live => Box::new(live::Live::new(before)),
            Self::Plain => Box::new(plain::Plain::new()),
            Self::Json => Box::new(json::Json),
            Self::Silent => Box::new(Silent),
        }
    }
}

struct Silent;

impl View for Silent {
    fn record(&self, _: &Record) {}
}
