//! A running program with its reader: lines in, events out.

use std::collections::VecDeque;

use futures::FutureExt as _;
use provost_event::Exit;
use provost_process::{PipeClosed, Piped, PipedChild};

use super::format::Format;
use super::stream_item::StreamItem;

/// Maximum bytes of a line; a longer one is skipped.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes kept from the end of its standard error.
pub(super) const STDERR_BYTES_MAX: usize = 8 * 1024;

/// Characters of an unknown line that a message quotes.
const SHOWN_CHARS_MAX: usize = 200;

/// The next event of a program.
#[derive(Debug)]
pub(super) enum Came {
    /// An event of the stream.
    Said(StreamItem),
    /// A line without an event.
    Stirred,
    /// The program has ended, and all its output was read.
    Ended(Exit),
}

/// A program and its reader.
pub(super) struct Live {
    pub(super) child: PipedChild,
    pub(super) reader: Box<dyn Format>,
    heard: VecDeque<StreamItem>,
    replies: VecDeque<String>,
    exit: Option<Exit>,
    malformed: u64,
    last_malformed: String,
}

impl Live {
    pub(super) fn new(child: PipedChild, reader: Box<dyn Format>) -> Self {
        Self {
            child,
            reader,
            heard: VecDeque::new(),
            replies: VecDeque::new(),
            exit: None,
            malformed: 0,
            last_malformed: String::new(),
        }
    }

    /// Queues lines for its standard input.
    pub(super) async fn say(&self, lines: impl IntoIterator<Item = String>) -> Result<(), PipeClosed> {
        for line in lines {
            self.child.send(&line).await?;
        }
        Ok(())
    }

    /// The same, for lines that may be lost: a program that no longer reads is about to end, and its end is the
    /// next event.
    pub(super) async fn tell(&self, lines: impl IntoIterator<Item = String>) {
        if let Err(error) = self.say(lines).await {
            tracing::debug!(%error, "a program wasn't told");
        }
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> Came {
        loop {
            while let Some(reply) = self.replies.front() {
                if let Err(error) = self.child.send(reply).await {
                    tracing::debug!(%error, "a program's request isn't answered");
                }
                self.replies.pop_front();
            }
            if let Some(said) = self.heard.pop_front() {
                return Came::Said(said);
            }
            if let Some(exit) = self.exit {
                return Came::Ended(exit);
            }
            let piped = self.child.next().await;
            self.take(piped);
            if self.heard.is_empty() && self.exit.is_none() && self.replies.is_empty() {
                return Came::Stirred;
            }
        }
    }

    /// Reads the available lines, without waiting.
    pub(super) fn catch_up(&mut self) {
        while let (None, Some(piped)) = (self.exit, self.child.next().now_or_never()) {
            self.take(piped);
        }
    }

    /// Its exit, if that event was returned.
    pub(super) const fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Whether it has withdrawn this question; the withdrawal is then forgotten.
    pub(super) fn withdraws(&mut self, fingerprint: &str) -> bool {
        let is_it = |said: &StreamItem| matches!(said, StreamItem::Withdrawn(name) if name == fingerprint);
        let before = self.heard.len();
        self.heard.retain(|said| !is_it(said));
        self.heard.len() < before
    }

    /// Forgets a question that was withdrawn before it was passed on.
    pub(super) fn forget(&mut self, fingerprint: &str) {
        self.heard.retain(|said| !matches!(said, StreamItem::Ask(ask) if ask.fingerprint == fingerprint));
    }

    /// Its last output that may explain a failure: the end of standard error, and unknown lines.
    pub(super) fn last_output(&self) -> String {
        let mut words = self.child.stderr().trim().to_owned();
        if self.malformed > 0 {
            words = format!(
                "{words}\n({} lines weren't of its format; the last: {})",
                self.malformed, self.last_malformed
            );
        }
        words.trim().to_owned()
    }

    fn take(&mut self, piped: Piped) {
        match piped {
            Piped::Line(line) => {
                let heard = self.reader.read(&line);
                if heard.is_nonsense && !line.trim().is_empty() {
                    self.wonder(line.chars().take(SHOWN_CHARS_MAX).collect());
                }
                self.heard.extend(heard.said);
                self.replies.extend(heard.replies);
            }
            Piped::TooLong { bytes, .. } => {
                let line = format!("a line of {bytes} bytes, of which at most {LINE_BYTES_MAX} are read");
                self.heard.push_back(StreamItem::Error(format!("{line}; it was passed over")));
                self.wonder(line);
            }
            Piped::Ended(exit) => self.exit = Some(exit),
        }
    }

    fn wonder(&mut self, line: String) {
        self.malformed = self.malformed.saturating_add(1);
        self.last_malformed = line;
    }
}
