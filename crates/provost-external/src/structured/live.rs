//! A program with its reader: lines in, what they say out.

use std::collections::VecDeque;

use futures::FutureExt as _;
use provost_event::Exit;
use provost_process::{PipeClosed, Piped, PipedChild};

use super::format::{Format, Life};
use super::said::Said;

/// Bytes of a line that is read; a longer one is passed over.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of its standard error that are kept, of its end.
pub(super) const STDERR_BYTES_MAX: usize = 8 * 1024;

/// Characters of a line that isn't understood that are told.
const SHOWN_CHARS_MAX: usize = 200;

/// What it was that came.
#[derive(Debug)]
pub(super) enum Came {
    /// It says something.
    Said(Said),
    /// It has written a line that says nothing here.
    Stirred,
    /// It has ended, and all it said was heard.
    Ended(Exit),
}

/// A program and its reader.
pub(super) struct Live {
    pub(super) child: PipedChild,
    pub(super) reader: Box<dyn Format>,
    pub(super) life: Life,
    heard: VecDeque<Said>,
    replies: VecDeque<String>,
    exit: Option<Exit>,
    nonsense: u64,
    last_nonsense: String,
}

impl Live {
    pub(super) fn new(child: PipedChild, reader: Box<dyn Format>, life: Life) -> Self {
        Self {
            child,
            reader,
            life,
            heard: VecDeque::new(),
            replies: VecDeque::new(),
            exit: None,
            nonsense: 0,
            last_nonsense: String::new(),
        }
    }

    /// Queues lines for it.
    pub(super) async fn say(&self, lines: impl IntoIterator<Item = String>) -> Result<(), PipeClosed> {
        for line in lines {
            self.child.send(&line).await?;
        }
        Ok(())
    }

    /// The same, for lines that nobody misses: whoever no longer reads is about to end, which is heard next.
    pub(super) async fn tell(&self, lines: impl IntoIterator<Item = String>) {
        if let Err(error) = self.say(lines).await {
            tracing::debug!(%error, "a program wasn't told");
        }
    }

    /// The next that comes. May be dropped and called again.
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

    /// Reads what is there, without waiting.
    pub(super) fn catch_up(&mut self) {
        while let (None, Some(piped)) = (self.exit, self.child.next().now_or_never()) {
            self.take(piped);
        }
    }

    /// How it has ended, if that was heard.
    pub(super) const fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Whether it has taken this question back; then it is forgotten.
    pub(super) fn withdraws(&mut self, fingerprint: &str) -> bool {
        let is_it = |said: &Said| matches!(said, Said::Withdrawn(name) if name == fingerprint);
        let before = self.heard.len();
        self.heard.retain(|said| !is_it(said));
        self.heard.len() < before
    }

    /// Forgets a question that it has taken back before anybody was asked.
    pub(super) fn forget(&mut self, fingerprint: &str) {
        self.heard.retain(|said| !matches!(said, Said::Ask(ask) if ask.fingerprint == fingerprint));
    }

    /// What it last wrote that tells why it failed: the end of standard error, and what wasn't understood.
    pub(super) fn last_words(&self) -> String {
        let mut words = self.child.stderr().trim().to_owned();
        if self.nonsense > 0 {
            words = format!(
                "{words}\n({} lines weren't of its format; the last: {})",
                self.nonsense, self.last_nonsense
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
            Piped::TooLong { bytes } => {
                let line = format!("a line of {bytes} bytes, of which at most {LINE_BYTES_MAX} are read");
                self.heard.push_back(Said::Error(format!("{line}; it was passed over")));
                self.wonder(line);
            }
            Piped::Ended(exit) => self.exit = Some(exit),
        }
    }

    fn wonder(&mut self, line: String) {
        self.nonsense = self.nonsense.saturating_add(1);
        self.last_nonsense = line;
    }
}
