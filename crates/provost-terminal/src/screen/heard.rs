//! What a screen has heard of a program and hasn't been asked for yet.

use std::collections::VecDeque;

use crate::Signal;

/// The most reports that wait; the oldest gives way.
const SIGNALS_MAX: usize = 256;

/// Reports in their order, also those of the library underneath.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    signals: VecDeque<Signal>,
}

impl Heard {
    /// Bells in a row are one.
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

impl vt100::Callbacks for Heard {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }
}
