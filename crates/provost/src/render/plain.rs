//! Lines without control codes, each with a stable prefix: for files, pipes and CI.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use provost_event::Record;

use super::View;
use super::entry::Sayer;
use super::saying::{Saying, Tag, Weight};
use super::words::hanging;

pub(super) struct Plain {
    sayer: Mutex<Sayer>,
}

impl Plain {
    pub(super) fn new() -> Self {
        Self { sayer: Mutex::default() }
    }
}

impl View for Plain {
    fn record(&self, record: &Record) {
        let saying = self.sayer.lock().unwrap_or_else(PoisonError::into_inner).say(record);
        if saying.weight != Weight::Detail {
            // Nobody reads it any more, then: the run is what matters.
            let _ = std::io::stderr().write_all(lines(&saying).as_bytes());
        }
    }

    fn stopping(&self, signal: &str) {
        let _ = writeln!(std::io::stderr(), "provost: {signal}: stopping cleanly; once more stops at once");
    }
}

/// The prefix, then the text; further lines are indented.
fn lines(saying: &Saying) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = writeln!(out, "{}: {}", prefix(saying.tag), hanging(saying.text(), "  "));
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
    }
}
