//! The protocol between an attached terminal and Provost: frames of a length, a kind and a payload.

use std::io;

use provost_event::{Exit, TerminalState, WindowSize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The protocol version; both sides must have the same.
pub(crate) const VERSION: u32 = 1;

/// Maximum bytes of a frame; a snapshot of the largest window is smaller.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum bytes of a frame from a client: a longer paste is split into several frames.
pub(super) const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;
const READ_BYTES: usize = 16 * 1024;

/// What an attached terminal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// See the output and type.
    Control,
    /// See the output.
    Watch,
    /// See the screen once; the log doesn't name it.
    Look,
}

impl Role {
    /// Whether the log names who has it.
    pub(super) const fn is_noted(self) -> bool {
        match self {
            Self::Control | Self::Watch => true,
            Self::Look => false,
        }
    }
}

/// What shows the program's output to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Display {
    /// A terminal. If it may type it gets the scrollback, misses no output, and answers the program's queries.
    Terminal,
    /// A copy of the screen, which answers nothing.
    Copy,
}

/// The client's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The client's protocol version.
    pub version: u32,
    /// The role it requests.
    pub role: Role,
    /// Its window size; absent if it shouldn't count.
    pub size: Option<WindowSize>,
    /// The name that the log shows for it.
    pub name: String,
    /// What shows the output.
    pub display: Display,
}

impl Hello {
    /// A hello of this protocol version, for a copy of the screen.
    #[must_use]
    pub fn new(role: Role, size: Option<WindowSize>, name: impl Into<String>) -> Self {
        Self { version: VERSION, role, size, name: name.into(), display: Display::Copy }
    }

    /// A hello of this protocol version, for a terminal.
    #[must_use]
    pub fn of_terminal(role: Role, size: Option<WindowSize>, name: impl Into<String>) -> Self {
        Self { display: Display::Terminal, ..Self::new(role, size, name) }
    }
}

/// The program that a terminal is attached to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The program.
    pub program: String,
    /// Its state.
    pub state: TerminalState,
}

/// A frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromClient {
    Hello(Hello),
    /// Keys, as its terminal sends them.
    Input(Vec<u8>),
    Resize(WindowSize),
    /// Requests a repaint of the whole screen.
    Repaint,
    Detach,
}

/// A frame to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachUpdate {
    /// The client is attached.
    Welcome(Welcome),
    /// The whole screen with the modes in force, for a reset terminal; earlier output is stale.
    Screen {
        /// The window size, which is the smallest of the attached terminals.
        size: WindowSize,
        /// What has scrolled off, a row a line, to be shown before. Empty except in a terminal's first screen.
        scrollback: Vec<u8>,
        /// The bytes to write to the terminal.
        bytes: Vec<u8>,
    },
    /// Output of the program since the last frame.
    Output(Vec<u8>),
    /// The program's state has changed.
    State(TerminalState),
    /// The program has ended; no frame follows.
    Gone(Option<Exit>),
    /// The client is refused; no frame follows.
    Refused(String),
}

/// A message that is sent as a frame.
pub(super) trait Message: Sized {
    fn encode(&self) -> io::Result<(u8, Vec<u8>)>;
    fn decode(kind: u8, payload: &[u8]) -> io::Result<Self>;
}

impl Message for FromClient {
    fn encode(&self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Hello(hello) => (b'h', json(hello)?),
            Self::Input(bytes) => (b'i', bytes.clone()),
            Self::Resize(size) => (b'z', json(size)?),
            Self::Repaint => (b'p', Vec::new()),
            Self::Detach => (b'd', Vec::new()),
        })
    }

    fn decode(kind: u8, payload: &[u8]) -> io::Result<Self> {
        match kind {
            b'h' => parsed(payload).map(Self::Hello),
            b'i' => Ok(Self::Input(payload.to_vec())),
            b'z' => {
                parsed::<WindowSize>(payload).map(|size| Self::Resize(WindowSize::new(size.rows, size.cols)))
            }
            b'p' => Ok(Self::Repaint),
            b'd' => Ok(Self::Detach),
            _ => Err(unknown(kind)),
        }
    }
}

impl Message for AttachUpdate {
    fn encode(&self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Welcome(welcome) => (b'w', json(welcome)?),
            Self::Screen { size, scrollback, bytes } => {
                let mut payload = Vec::with_capacity(2 * LENGTH_BYTES + scrollback.len() + bytes.len());
                payload.extend(size.rows.to_be_bytes());
                payload.extend(size.cols.to_be_bytes());
                payload.extend(u32::try_from(scrollback.len()).unwrap_or(u32::MAX).to_be_bytes());
                payload.extend(scrollback);
                payload.extend(bytes);
                (b's', payload)
            }
            Self::Output(bytes) => (b'o', bytes.clone()),
            Self::State(state) => (b't', json(state)?),
            Self::Gone(exit) => (b'g', json(exit)?),
            Self::Refused(why) => (b'r', why.clone().into_bytes()),
        })
    }

    fn decode(kind: u8, payload: &[u8]) -> io::Result<Self> {
        match kind {
            b'w' => parsed(payload).map(Self::Welcome),
            b's' => screen(payload),
            b'o' => Ok(Self::Output(payload.to_vec())),
            b't' => parsed(payload).map(Self::State),
            b'g' => parsed(payload).map(Self::Gone),
            b'r' => Ok(Self::Refused(String::from_utf8_lossy(payload).into_owned())),
            _ => Err(unknown(kind)),
        }
    }
}

fn screen(payload: &[u8]) -> io::Result<AttachUpdate> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "a screen without a size or its scrollback");
    let ([a, b, c, d], rest) = payload.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    let (scrollback, bytes) = rest.split_at_checked(length).ok_or_else(cut)?;
    Ok(AttachUpdate::Screen {
        size: WindowSize::new(u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
        scrollback: scrollback.to_vec(),
        bytes: bytes.to_vec(),
    })
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn parsed<T: DeserializeOwned>(payload: &[u8]) -> io::Result<T> {
    serde_json::from_slice(payload).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn unknown(kind: u8) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a frame of the unknown kind {kind}"))
}

/// Reads frames. A partly read frame is kept when the future is dropped.
pub(super) struct FrameReader<R> {
    from: R,
    held: Vec<u8>,
    frame_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// A reader of client frames, which have the smaller limit.
    pub(super) const fn of_client(from: R) -> Self {
        // One byte for the kind, and room for frames that aren't input.
        Self { from, held: Vec::new(), frame_bytes_max: INPUT_BYTES_MAX + 1 }
    }

    pub(super) const fn of_server(from: R) -> Self {
        Self { from, held: Vec::new(), frame_bytes_max: FRAME_BYTES_MAX }
    }

    /// The next message; `None` at the end.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn next<M: Message>(&mut self) -> io::Result<Option<M>> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            self.held.reserve(READ_BYTES);
            if self.from.read_buf(&mut self.held).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn whole<M: Message>(&mut self) -> io::Result<Option<M>> {
        let Some((length, rest)) = self.held.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length == 0 || length > self.frame_bytes_max {
            let message = format!("a frame of {length} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let Some((kind, payload)) = rest.get(..length).and_then(<[u8]>::split_first) else { return Ok(None) };
        let message = M::decode(*kind, payload)?;
        self.held.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

/// Writes one message as a frame.
///
/// # Cancellation
/// Not safe: part of the frame may have been written.
pub(super) async fn write<M: Message>(to: &mut (impl AsyncWrite + Unpin), message: &M) -> io::Result<()> {
    let (kind, payload) = message.encode()?;
    let too_long =
        || io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {} bytes", payload.len()));
    let length = u32::try_from(payload.len() + 1).map_err(|_| too_long())?;
    if payload.len() >= FRAME_BYTES_MAX {
        return Err(too_long());
    }
    let mut frame = Vec::with_capacity(LENGTH_BYTES + 1 + payload.len());
    frame.extend(length.to_be_bytes());
    frame.push(kind);
    frame.extend(payload);
    to.write_all(&frame).await?;
    to.flush().await
}
