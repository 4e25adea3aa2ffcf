//! The requests to the owner of a terminal, and the ending of its program.

use std::sync::Arc;

use provost_event::{Exit, WindowSize};
use tokio::sync::oneshot;

use super::super::device::{Device, Order};
use super::super::ending::Next;
use super::super::options::{PtyError, PtySignal, QuitPlan};
use super::super::shared::{Ask, Keys, Typed};
use super::super::watcher::{WatcherKind, WatcherQueue};
use super::{SIGKILL, Terminal};

impl<D: Device> Terminal<D> {
    pub(super) fn answer(&mut self, ask: Ask) {
        // The caller may be gone.
        match ask {
            Ask::Resize(size, answer) => drop(answer.send(self.resize(size))),
            Ask::Signal(signal, answer) => drop(answer.send(self.signal(signal))),
            Ask::View(answer) => {
                drop(answer.send(self.reader.view(self.size, self.last_output)));
            }
            Ask::Sample(answer) => drop(answer.send(self.device.sample(None))),
            Ask::Watch(kind, answer) => self.begin_watch(kind, answer),
            Ask::Reply(bytes) => {
                self.queries.answered();
                self.reply(&bytes);
            }
            Ask::Repaint(queue) => queue.repaint(self.size, Vec::new(), self.reader.snapshot()),
            Ask::End(plan) => {
                let next = self.ending.ask(self.began.elapsed(), plan);
                if let Some(next) = next {
                    self.carry_out(next);
                }
            }
        }
    }

    fn resize(&mut self, size: WindowSize) -> Result<(), PtyError> {
        if !self.shared.is_running() {
            return Err(PtyError::Ended);
        }
        let size = WindowSize::new(size.rows, size.cols);
        let now = self.began.elapsed();
        // The screen first: the program paints for its new window afterwards.
        self.reader.resize(now, size);
        self.size = size;
        self.device
            .resize(size)
            .map_err(|source| PtyError::Refused { attempt: "take another size", source })?;
        self.record(|recorder| recorder.resize(now, size));
        for watcher in self.watchers.iter().filter(|watcher| watcher.kind() == WatcherKind::Copy) {
            watcher.spoil();
        }
        self.unsettled = Some((self.unsettled.map_or(now, |(first, _)| first), now));
        self.pass_on_events();
        Ok(())
    }

    fn signal(&mut self, signal: PtySignal) -> Result<(), PtyError> {
        if !self.shared.is_running() {
            return Err(PtyError::Ended);
        }
        let sent = self.device.signal(signal).ok_or(PtyError::NoSuchSignal { signal })?;
        sent.map_err(|source| PtyError::Refused { attempt: "pass on a signal", source })
    }

    /// The snapshot and its position in the output are taken at once: no output is lost or doubled in between.
    fn begin_watch(&mut self, kind: WatcherKind, answer: oneshot::Sender<Arc<WatcherQueue>>) {
        let queue = Arc::new(WatcherQueue::new(kind));
        let is_terminal = kind == WatcherKind::Terminal;
        let scrollback = if is_terminal { self.reader.scrollback() } else { Vec::new() };
        queue.repaint(self.size, scrollback, self.reader.snapshot());
        if is_terminal {
            queue.add(&self.queries.terminal_came(self.began.elapsed()));
        }
        if self.shared.status.borrow().is_gone {
            queue.close();
        } else {
            self.watchers.push(Arc::clone(&queue));
        }
        drop(answer.send(queue));
    }

    pub(super) fn carry_out(&mut self, next: Next) {
        match next {
            // Quit keys would answer an open question: with a return, often by consent.
            Next::Type(_) | Next::EndInput if self.reader.asks() => self.ask_to_end_now(),
            Next::Type(keys) => self.type_own(keys.into_bytes()),
            Next::EndInput => {
                let modes = self.device.line_modes().filter(|modes| modes.canonical);
                match modes.and_then(|modes| modes.end_of_input) {
                    Some(key) => self.type_own(vec![key]),
                    None => self.ask_to_end_now(),
                }
            }
            Next::HangUp => self.device.order(Order::HangUp),
            Next::Kill => self.device.order(Order::Kill),
            Next::Force => self.device.force(),
            Next::GiveUp => {
                tracing::warn!("a killed process is still there; its guard stays with it");
                if self.shared.is_running() {
                    self.exited(Exit::Signal(SIGKILL));
                }
                self.finish();
            }
        }
    }

    /// A program that doesn't read line by line takes the end of input for a key: there is nothing to wait for.
    fn ask_to_end_now(&mut self) {
        let now = self.began.elapsed();
        if let Some(next) = self.ending.ask(now, QuitPlan::default()) {
            self.carry_out(next);
        }
    }

    fn type_own(&mut self, bytes: Vec<u8>) {
        let (done, _unused) = oneshot::channel();
        self.typing.add(Typed { keys: Keys::Input(bytes), check: None, is_dropped: Arc::default(), done });
        self.go_on_typing();
    }
}
