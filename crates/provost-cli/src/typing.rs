//! What the user types while a run works: answers to questions, and messages to the agent.
//!
//! The terminal doesn't echo meanwhile, and gives each key at once: the line is drawn by the view, below what goes on.
//! Ctrl-C and Ctrl-Z are signals as ever. Only a process in the foreground reads.

mod editor;
#[cfg(unix)]
mod unix;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use editor::{Edited, Editor};

/// Lines that wait to be taken; a user who is faster types into the void.
const LINES_MAX: usize = 64;

/// A keyboard whose lines are taken one by one.
pub(crate) struct Typing {
    shared: Arc<Shared>,
    answers: tokio::sync::Mutex<Receiver<Option<String>>>,
    messages: tokio::sync::Mutex<Receiver<String>>,
    #[cfg(unix)]
    reading: Mutex<Option<unix::Reading>>,
}

struct Shared {
    typed: Mutex<Typed>,
    answered: Sender<Option<String>>,
    said: Sender<String>,
    changed: Box<dyn Fn() + Send + Sync>,
}

/// What is typed and not sent, and for whom it is.
#[derive(Default)]
struct Typed {
    editor: Editor,
    /// The beginning of a message that a question interrupted.
    message: Option<Editor>,
}

impl Typing {
    /// Begins to read standard input, if it is a terminal; `changed` is called whenever the line has changed.
    #[cfg(unix)]
    pub(crate) fn begin(changed: impl Fn() + Send + Sync + 'static) -> Option<Self> {
        let (answered, answers) = channel(LINES_MAX);
        let (said, messages) = channel(LINES_MAX);
        let shared = Arc::new(Shared { typed: Mutex::default(), answered, said, changed: Box::new(changed) });
        let typed = shared.clone();
        let reading = unix::Reading::begin(move |bytes| typed.take(bytes))?;
        let (answers, messages) = (tokio::sync::Mutex::new(answers), tokio::sync::Mutex::new(messages));
        Some(Self { shared, answers, messages, reading: Mutex::new(Some(reading)) })
    }

    /// No keyboard is read on this platform yet.
    #[cfg(not(unix))]
    pub(crate) fn begin(_: impl Fn() + Send + Sync + 'static) -> Option<Self> {
        None
    }

    /// What is typed and not sent.
    pub(crate) fn line(&self) -> String {
        self.shared.typed().editor.line().to_owned()
    }

    /// From now on lines are answers; what was typed before counts for nothing, and the beginning of a message waits.
    pub(crate) async fn asks(&self) {
        {
            let mut typed = self.shared.typed();
            let editor = std::mem::take(&mut typed.editor);
            typed.message.get_or_insert(editor);
        }
        let mut answers = self.answers.lock().await;
        while answers.try_recv().is_ok() {}
    }

    /// Lines are messages again.
    pub(crate) fn asked(&self) {
        let mut typed = self.shared.typed();
        if let Some(message) = typed.message.take() {
            typed.editor = message;
        }
    }

    /// The next line of an answer; `None` at the end of the input.
    ///
    /// # Cancellation
    /// Safe: an incomplete line stays.
    pub(crate) async fn answer(&self) -> Option<String> {
        self.answers.lock().await.recv().await.flatten()
    }

    /// The next message.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn message(&self) -> Option<String> {
        self.messages.lock().await.recv().await
    }

    /// Stops reading, and gives the terminal back as it was. Returns what was typed and not sent, if anything.
    pub(crate) fn end(&self) -> Option<String> {
        #[cfg(unix)]
        drop(self.reading.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.asked();
        let line = std::mem::take(&mut self.shared.typed().editor).line().trim().to_owned();
        (!line.is_empty()).then_some(line)
    }
}

impl Shared {
    fn typed(&self) -> MutexGuard<'_, Typed> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what came from the keyboard; nothing at the end of the input.
    fn take(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.sends(None);
        }
        for byte in bytes {
            let edited = self.typed().editor.take(*byte);
            match edited {
                Edited::Line(line) => self.sends(Some(line)),
                Edited::EndOfInput => self.sends(None),
                Edited::Changed | Edited::Ignored => {}
            }
        }
        (self.changed)();
    }

    /// A queue that is full means that the lines aren't taken.
    fn sends(&self, line: Option<String>) {
        let is_answer = self.typed().message.is_some();
        match line {
            line if is_answer => drop(self.answered.try_send(line)),
            Some(line) if !line.trim().is_empty() => drop(self.said.try_send(line)),
            Some(_) | None => {}
        }
    }
}
