//! Reports of a program that weren't taken yet.

use std::collections::VecDeque;

use crate::Signal;

/// Maximum queued reports; the oldest is dropped.
const SIGNALS_MAX: usize = 256;

/// Reports in order, including those of the library.
#[derive(Debug, Default)]
pub(crate) struct SignalQueue {
    signals: VecDeque<Signal>,
}

impl SignalQueue {
    /// Adjacent bells count as one.
    pub(crate) fn push(&mut self, signal: Signal) {
        if signal == Signal::Bell && self.signals.back() == Some(&Signal::Bell) {
            return;
        }
        if self.signals.len() >= SIGNALS_MAX {
            self.signals.pop_front();
        }
        self.signals.push_back(signal);
    }

    pub(crate) fn take(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals).into()
    }
}

impl vt100::Callbacks for SignalQueue {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }
}
