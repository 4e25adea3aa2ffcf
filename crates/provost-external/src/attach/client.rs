//! The client side of attaching.

use std::io;
use std::path::Path;

use provost_event::{SessionId, WindowSize};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::AttachError;
use super::socket_path::SocketPath;
use super::wire::{self, AttachUpdate, FrameReader, FromClient, Hello, INPUT_BYTES_MAX, Welcome};

/// The output half of an attached terminal.
pub struct Attached {
    frames: FrameReader<OwnedReadHalf>,
}

/// The input half of an attached terminal. Dropping it doesn't detach; dropping both halves does.
pub struct AttachedInput {
    to: OwnedWriteHalf,
}

/// Attaches to the program of `session`, whose sockets are below `folder`
/// ([`DriversOptions::folder`](crate::DriversOptions)). The first frame is the whole screen.
///
/// # Errors
/// [`AttachError::NotThere`] while no program runs for it: the call may be repeated. [`AttachError::Refused`].
///
/// # Cancellation
/// Safe: the terminal isn't attached then.
pub async fn attach(
    folder: &Path,
    session: SessionId,
    hello: Hello,
) -> Result<(Welcome, Attached, AttachedInput), AttachError> {
    let socket_path = SocketPath::of(folder, session);
    let stream = connect(&socket_path, session).await?;
    let (from, mut to) = stream.into_split();
    wire::write(&mut to, &FromClient::Hello(hello)).await.map_err(failed("say who attaches"))?;
    let mut attached = Attached { frames: FrameReader::of_server(from) };
    match attached.next().await? {
        Some(AttachUpdate::Welcome(welcome)) => Ok((welcome, attached, AttachedInput { to })),
        Some(AttachUpdate::Refused(why)) => Err(AttachError::Refused { why }),
        // The program ended at the same time.
        Some(AttachUpdate::Gone(_)) | None => {
            Err(AttachError::NotThere { session, path: socket_path.path() })
        }
        Some(AttachUpdate::Screen { .. } | AttachUpdate::Output(_) | AttachUpdate::State(_)) => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "no welcome came first");
            Err(AttachError::Failed { attempt: "attach to the terminal", source })
        }
    }
}

async fn connect(socket_path: &SocketPath, session: SessionId) -> Result<UnixStream, AttachError> {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    let not_there = || AttachError::NotThere { session, path: socket_path.path() };
    let connected = match socket_path.address() {
        Ok(address) => UnixStream::connect(&address.path).await,
        Err(error) => Err(error),
    };
    connected.map_err(|source| match source.kind() {
        // Refused: the process that made the socket is gone.
        NotFound | ConnectionRefused => not_there(),
        _ => AttachError::Failed { attempt: "connect to the terminal's socket", source },
    })
}

fn failed(attempt: &'static str) -> impl Fn(io::Error) -> AttachError {
    move |source| AttachError::Failed { attempt, source }
}

impl Attached {
    /// Waits for the next frame. `None` at the end, which is after [`AttachUpdate::Gone`], or when Provost is gone.
    ///
    /// # Errors
    /// When the socket fails.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<Option<AttachUpdate>, AttachError> {
        match self.frames.next().await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            shown => shown.map_err(failed("read from the terminal's socket")),
        }
    }
}

impl AttachedInput {
    /// Sends these bytes as keyboard input. They are ignored for a terminal that only watches.
    ///
    /// # Errors
    /// When the socket fails.
    ///
    /// # Cancellation
    /// Not safe: nothing more can be sent then.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), AttachError> {
        for piece in bytes.chunks(INPUT_BYTES_MAX) {
            self.say(&FromClient::Input(piece.to_vec())).await?;
        }
        Ok(())
    }

    /// Reports a new window size.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn resize(&mut self, size: WindowSize) -> Result<(), AttachError> {
        self.say(&FromClient::Resize(size)).await
    }

    /// Requests a repaint of the whole screen.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn repaint(&mut self) -> Result<(), AttachError> {
        self.say(&FromClient::Repaint).await
    }

    /// Detaches. Output ends soon after.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn detach(&mut self) -> Result<(), AttachError> {
        self.say(&FromClient::Detach).await
    }

    async fn say(&mut self, message: &FromClient) -> Result<(), AttachError> {
        wire::write(&mut self.to, message).await.map_err(failed("write to the terminal's socket"))
    }
}
