//! What a model is writing, for other processes of the user that watch the run: pieces of answers that aren't committed yet.
//!
//! The process that works on a run serves them on a Unix socket. Nothing of it is stored, and nothing waits for a reader: one
//! that is too slow is disconnected, and reads the answer in the log.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::BoxStream;
use provost_event::{
    ActorKey, ConversationEntry, Delta, DeltaKind, Entry, ModelEntry, Purpose, Record, RunId, Seq, SessionId,
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// Pieces that wait for a reader before it counts as too slow.
const WAITING_MAX: usize = 1_024;
/// Readers at the same time; more are disconnected.
const READERS_MAX: usize = 32;
/// Bytes of an answer that are kept for readers that come later.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivePiece {
    /// The agent's number.
    pub agent: u32,
    /// The entry of the agent's log that called the model.
    pub call: Seq,
    /// Text or reasoning.
    pub kind: DeltaKind,
    /// Bytes of the same kind of this answer before it.
    pub at: u64,
    /// The piece.
    pub text: String,
}

/// Where the process that works on `run` serves its pieces, in this folder.
#[must_use]
pub fn live_socket(folder: &Path, run: RunId) -> PathBuf {
    folder.join(format!("{run}.sock"))
}

/// What the models of a run are writing. Told of entries and pieces in the order of
/// [`HarnessCallback`](crate::HarnessCallback), it never blocks.
pub struct LivePieces {
    calls: Mutex<HashMap<SessionId, LiveCall>>,
    pieces: broadcast::Sender<Arc<LivePiece>>,
}

/// A call that is being answered.
struct LiveCall {
    call: Seq,
    text: String,
    thinking: String,
}

impl Default for LivePieces {
    fn default() -> Self {
        Self { calls: Mutex::default(), pieces: broadcast::channel(WAITING_MAX).0 }
    }
}

impl LivePieces {
    fn calls(&self) -> MutexGuard<'_, HashMap<SessionId, LiveCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an entry.
    pub fn record(&self, record: &Record) {
        let ActorKey::Session(session) = record.actor else { return };
        match &record.entry {
            Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::default() => {
                let call = LiveCall { call: record.seq, text: String::new(), thinking: String::new() };
                self.calls().insert(session, call);
            }
            Entry::Model(ModelEntry::Called(called)) if called.purpose.is_beside() => {}
            Entry::Model(ModelEntry::Called(_) | ModelEntry::Retried(_))
            | Entry::Conversation(ConversationEntry::AssistantMessage(_)) => {
                self.calls().remove(&session);
            }
            _ => {}
        }
    }

    /// Takes in a piece.
    pub fn delta(&self, delta: &Delta) {
        let mut calls = self.calls();
        let Some(call) = calls.get_mut(&delta.session) else { return };
        let LiveCall { call, text, thinking } = call;
        let so_far = match delta.kind {
            DeltaKind::Text => text,
            DeltaKind::Thinking => thinking,
            DeltaKind::Output => return,
        };
        if so_far.len().saturating_add(delta.text.len()) > KEPT_BYTES_MAX {
            return;
        }
        let piece = LivePiece {
            agent: delta.session.agent,
            call: *call,
            kind: delta.kind,
            at: so_far.len() as u64,
            text: delta.text.clone(),
        };
        so_far.push_str(&delta.text);
        // Without readers it goes nowhere.
        let _ = self.pieces.send(Arc::new(piece));
    }

    /// What was written so far of all answers, and what comes after that.
    #[cfg(unix)]
    fn subscribe(&self) -> (Vec<LivePiece>, broadcast::Receiver<Arc<LivePiece>>) {
        let calls = self.calls();
        let of = |agent: u32, call: Seq, kind: DeltaKind, text: &String| LivePiece {
            agent,
            call,
            kind,
            at: 0,
            text: text.clone(),
        };
        let so_far = calls.iter().flat_map(|(session, LiveCall { call, text, thinking })| {
            let thinking = of(session.agent, *call, DeltaKind::Thinking, thinking);
            [thinking, of(session.agent, *call, DeltaKind::Text, text)]
        });
        (so_far.filter(|piece| !piece.text.is_empty()).collect(), self.pieces.subscribe())
    }

    /// Serves readers on the socket at `path`, without end. The socket is removed when the future is dropped.
    ///
    /// # Errors
    /// When there can't be such a socket.
    #[cfg(unix)]
    pub async fn serve(&self, path: &Path) -> io::Result<()> {
        let socket = unix::Socket::bind(path)?;
        let mut readers = futures::stream::FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = socket.accept() => {
                    if let Some(stream) = accepted?.filter(|_| readers.len() < READERS_MAX) {
                        readers.push(unix::send(stream, self.subscribe()));
                    }
                }
                Some(()) = futures::StreamExt::next(&mut readers) => {}
            }
        }
    }

    /// There are no such sockets here: returns only with an error.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(unix))]
    pub async fn serve(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The pieces that are served on the socket at `path`, until the process that serves it ends.
///
/// # Errors
/// When nothing serves it.
#[cfg(unix)]
pub async fn live_pieces(path: &Path) -> io::Result<BoxStream<'static, LivePiece>> {
    unix::receive(path).await
}

/// The pieces that are served on the socket at `path`: none here.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub async fn live_pieces(_: &Path) -> io::Result<BoxStream<'static, LivePiece>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use futures::StreamExt as _;
    use futures::stream::{self, BoxStream};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::broadcast;

    use super::LivePiece;

    /// Bytes of a line that is read: a piece in JSON.
    const LINE_BYTES_MAX: u64 = 8 * super::KEPT_BYTES_MAX as u64;

    /// A socket for processes of this user, which is removed in the end.
    pub(super) struct Socket {
        listener: UnixListener,
        path: PathBuf,
        user: u32,
    }

    impl Socket {
        pub(super) fn bind(path: &Path) -> io::Result<Self> {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            // One that a killed process left: only the process that holds the run binds it.
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            let user = std::fs::metadata(path)?.uid();
            Ok(Self { listener, path: path.to_owned(), user })
        }

        /// The next reader; nothing for a process of another user, which is disconnected.
        pub(super) async fn accept(&self) -> io::Result<Option<UnixStream>> {
            let (stream, _) = self.listener.accept().await?;
            Ok(stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user).then_some(stream))
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Sends pieces until the reader is gone or too slow.
    pub(super) async fn send(
        mut stream: UnixStream,
        (so_far, mut pieces): (Vec<LivePiece>, broadcast::Receiver<Arc<LivePiece>>),
    ) {
        for piece in &so_far {
            if write(&mut stream, piece).await.is_err() {
                return;
            }
        }
        while let Ok(piece) = pieces.recv().await {
            if write(&mut stream, &piece).await.is_err() {
                return;
            }
        }
    }

    async fn write(stream: &mut UnixStream, piece: &LivePiece) -> io::Result<()> {
        let mut line = serde_json::to_vec(piece)?;
        line.push(b'\n');
        stream.write_all(&line).await
    }

    pub(super) async fn receive(path: &Path) -> io::Result<BoxStream<'static, LivePiece>> {
        let stream = BufReader::new(UnixStream::connect(path).await?);
        let pieces = stream::unfold(stream, |mut stream| async move {
            let mut line = Vec::new();
            let read = (&mut stream).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await.ok()?;
            let piece = (read > 0).then(|| serde_json::from_slice(&line).ok()).flatten()?;
            Some((piece, stream))
        });
        Ok(pieces.boxed())
    }
}
