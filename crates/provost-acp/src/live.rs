//! What the first agent's model is writing, shown before it is in the log. The answer's entry then shows only the rest.

use std::path::PathBuf;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_event::{DeltaKind, Seq};
use provost_harness::{LivePiece, live_pieces};
use provost_view::safe;

use crate::editor::{Text, Update};

/// Pieces of a call whose entry wasn't read yet.
const EARLY_MAX: usize = 1_024;

/// The answer that is being written.
pub(crate) struct LiveAnswer {
    socket: PathBuf,
    pieces: Option<BoxStream<'static, LivePiece>>,
    /// The newest call, and whether it has no answer.
    call: Seq,
    is_open: bool,
    early: Vec<LivePiece>,
    text: Written,
    thought: Written,
}

/// A part of an answer.
#[derive(Default)]
struct Written {
    message: String,
    /// As it was written.
    raw: String,
    /// What the editor was shown of it.
    shown: String,
    /// Whether no more can be shown before the whole is known.
    is_stuck: bool,
}

impl LiveAnswer {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            pieces: None,
            call: Seq::START,
            is_open: false,
            early: Vec::new(),
            text: Written::default(),
            thought: Written::default(),
        }
    }

    /// A model is called by entry `call`: its answer's parts are these messages. Returns what is known of them.
    pub(crate) fn called(&mut self, call: Seq, text: String, thought: String) -> Vec<Update> {
        self.call = call;
        self.is_open = true;
        self.text = Written { message: text, ..Written::default() };
        self.thought = Written { message: thought, ..Written::default() };
        let early = std::mem::take(&mut self.early);
        early.into_iter().filter_map(|piece| self.take(piece)).collect()
    }

    /// The call has its answer, or is made again.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// Connects to the process that works on the run, if there is something to come. Without one there is nothing.
    pub(crate) async fn connect(&mut self) {
        if self.is_open && self.pieces.is_none() {
            self.pieces = live_pieces(&self.socket).await.ok();
        }
    }

    /// The next piece; never returns while nothing is connected.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn next(&mut self) -> LivePiece {
        if let Some(pieces) = &mut self.pieces {
            if let Some(piece) = pieces.next().await {
                return piece;
            }
            self.pieces = None;
        }
        std::future::pending().await
    }

    /// What a piece adds to what is shown.
    pub(crate) fn take(&mut self, piece: LivePiece) -> Option<Update> {
        if piece.agent != 0 || piece.call < self.call {
            return None;
        }
        if piece.call > self.call {
            if self.early.len() < EARLY_MAX {
                self.early.push(piece);
            }
            return None;
        }
        if !self.is_open {
            return None;
        }
        match piece.kind {
            DeltaKind::Text => self.text.add(&piece).map(Update::Answered),
            DeltaKind::Thinking => self.thought.add(&piece).map(Update::Thought),
            DeltaKind::Output => None,
        }
    }

    /// An update without what was shown of it already; `None` if that is all.
    pub(crate) fn rest(&mut self, update: Update) -> Option<Update> {
        match update {
            Update::Answered(text) => self.text.rest(text).map(Update::Answered),
            Update::Thought(text) => self.thought.rest(text).map(Update::Thought),
            other => Some(other),
        }
    }
}

impl Written {
    fn add(&mut self, piece: &LivePiece) -> Option<Text> {
        if self.is_stuck || piece.at != self.raw.len() as u64 {
            self.is_stuck = true;
            return None;
        }
        self.raw.push_str(&piece.text);
        let safe = safe(&self.raw);
        let Some(new) = safe.strip_prefix(&self.shown).map(str::to_owned) else {
            self.is_stuck = true;
            return None;
        };
        self.shown = safe;
        (!new.is_empty()).then(|| Text { message: self.message.clone(), text: new })
    }

    fn rest(&mut self, whole: Text) -> Option<Text> {
        if whole.message != self.message {
            return Some(whole);
        }
        if let Some(rest) = whole.text.strip_prefix(&self.shown) {
            self.shown.clear();
            return (!rest.is_empty()).then(|| Text { text: rest.to_owned(), message: whole.message });
        }
        // Several parts of the answer are one message.
        if let Some(later) = self.shown.strip_prefix(&whole.text).map(str::to_owned) {
            self.shown = later;
            return None;
        }
        // What was shown isn't what was answered: the whole follows.
        self.shown.clear();
        Some(whole)
    }
}
