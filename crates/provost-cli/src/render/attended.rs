//! The view of a run whose program has this terminal: nothing is drawn over what it shows. Afterwards, lines.

use std::sync::atomic::{AtomicBool, Ordering};

use provost_event::{Entry, Record, TerminalEntry, TerminalEvent};

use super::entry::Sayer;
use super::plain::Plain;
use super::{Attached, Detail, View};
use provost_view::ApprovalQuestion;

pub(super) struct Attended {
    plain: Plain,
    /// The program doesn't have the terminal.
    is_free: AtomicBool,
    /// The log says that the program has ended: the person has seen that, and nothing before it is news.
    has_ended: AtomicBool,
}

impl Attended {
    pub(super) const fn new(sayer: Sayer) -> Self {
        Self {
            plain: Plain::new(sayer, Detail::Usual),
            is_free: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    fn ours(&self) -> Option<&Plain> {
        let is_ours = self.is_free.load(Ordering::Acquire) && self.has_ended.load(Ordering::Acquire);
        is_ours.then_some(&self.plain)
    }
}

impl View for Attended {
    fn record(&self, record: &Record) {
        // Its lines depend on earlier records: it takes in all of them.
        match self.ours() {
            Some(plain) => plain.record(record),
            None => self.plain.hear(record),
        }
        if let Entry::Terminal(TerminalEntry::Noted(noted)) = &record.entry {
            match &noted.event {
                TerminalEvent::Started { .. } => self.has_ended.store(false, Ordering::Release),
                TerminalEvent::Exited { .. } => self.has_ended.store(true, Ordering::Release),
                _ => {}
            }
        }
    }

    fn stopping(&self, signal: &str) {
        self.ours().into_iter().for_each(|plain| plain.stopping(signal));
    }

    fn waits(&self, question: &ApprovalQuestion) {
        self.ours().into_iter().for_each(|plain| plain.waits(question));
    }

    fn note(&self, words: &str) {
        if self.is_free.load(Ordering::Acquire) {
            self.plain.note(words);
        }
    }

    fn attached(&self, attached: Attached) {
        self.is_free.store(attached == Attached::Gone, Ordering::Release);
    }
}
