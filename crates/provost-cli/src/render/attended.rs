//! The view of a run whose program has this terminal: nothing is drawn over what it shows. Afterwards, lines.

use std::sync::atomic::{AtomicBool, Ordering};

use provost_event::Record;

use super::entry::Sayer;
use super::plain::Plain;
use super::{Attached, Detail, View};
use provost_view::ApprovalQuestion;

pub(super) struct Attended {
    plain: Plain,
    is_ours: AtomicBool,
}

impl Attended {
    pub(super) const fn new(sayer: Sayer) -> Self {
        Self { plain: Plain::new(sayer, Detail::Usual), is_ours: AtomicBool::new(false) }
    }

    fn ours(&self) -> Option<&Plain> {
        self.is_ours.load(Ordering::Acquire).then_some(&self.plain)
    }
}

impl View for Attended {
    fn record(&self, record: &Record) {
        // Its lines depend on earlier records: it takes in all of them.
        match self.ours() {
            Some(plain) => plain.record(record),
            None => self.plain.hear(record),
        }
    }

    fn stopping(&self, signal: &str) {
        self.ours().into_iter().for_each(|plain| plain.stopping(signal));
    }

    fn waits(&self, question: &ApprovalQuestion) {
        self.ours().into_iter().for_each(|plain| plain.waits(question));
    }

    fn note(&self, words: &str) {
        self.ours().into_iter().for_each(|plain| plain.note(words));
    }

    fn attached(&self, attached: Attached) {
        self.is_ours.store(attached == Attached::Gone, Ordering::Release);
    }
}
