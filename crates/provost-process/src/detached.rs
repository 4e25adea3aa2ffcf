//! A program that outlives this process: no guard ends it.

use std::fmt;
use std::fs::File;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use crate::launch::HeardOutput;
use crate::{Launch, ProcessIdentity, SpawnError};

/// Maximum bytes of the first line.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// No input and no error output; of the standard output one line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstLine {
    /// How long the line is waited for.
    pub within: Duration,
}

/// A detached program that has said its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// Which process it is.
    pub process: ProcessIdentity,
    /// Its first line; empty if it ended without one.
    pub line: String,
}

impl fmt::Display for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process.pid)
    }
}

/// Starts a program in a session of its own, without a guard, and waits for the first line that it writes. It outlives
/// this process, however that ends, and is no leftover of it. [`Launch::confinement`] has no effect. The program must
/// not write to its standard output after that line.
///
/// # Errors
/// When it couldn't be started, or said nothing in time: then it is ended. Always where processes have no start times
/// (off Linux).
///
/// # Cancellation
/// Not cancel safe: a program that is being started may go on.
///
/// # Panics
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn start_detached(launch: Launch<FirstLine>) -> Result<Detached, SpawnError> {
    let error = |source: io::Error| SpawnError::new(&launch, source);
    let mut child = crate::launch::start_apart_from_this(&launch, HeardOutput::Standard).map_err(error)?;
    let process = child.id().and_then(ProcessIdentity::of);
    let Some((process, stdout)) = process.zip(child.stdout.take()) else {
        // Without a start time it couldn't be told from a later process, so it isn't left running.
        let _ = child.start_kill();
        return Err(error(io::ErrorKind::Unsupported.into()));
    };
    let mut line = String::new();
    let mut stdout = BufReader::new(stdout.take(LINE_BYTES_MAX));
    match timeout(launch.stdio.within, stdout.read_line(&mut line)).await {
        Ok(Ok(_)) => Ok(Detached { process, line: line.trim_end().to_owned() }),
        Ok(Err(source)) => {
            end(process).await;
            Err(error(source))
        }
        Err(_) => {
            end(process).await;
            Err(error(io::ErrorKind::TimedOut.into()))
        }
    }
}

/// Bytes for its standard input, which is then closed; the error output is that of this process until the program gives
/// it up; of the standard output one line is read.
#[derive(Clone)]
pub struct OpeningLine {
    /// The input.
    pub input: Vec<u8>,
}

/// Leaves out the input: it may hold secrets.
impl fmt::Debug for OpeningLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpeningLine").field("input_bytes", &self.input.len()).finish()
    }
}

/// A program in a session of its own that this process has started and waits for. It outlives this process.
pub struct BackgroundProcess {
    process: ProcessIdentity,
    child: tokio::process::Child,
    input: Vec<u8>,
}

/// Starts a program in a session of its own, without a guard. [`Launch::confinement`] has no effect.
///
/// # Errors
/// When it couldn't be started. Always where processes have no start times (off Linux).
///
/// # Panics
/// Outside of a tokio runtime with I/O enabled.
pub fn start_in_background(launch: Launch<OpeningLine>) -> Result<BackgroundProcess, SpawnError> {
    let error = |source: io::Error| SpawnError::new(&launch, source);
    let mut child =
        crate::launch::start_apart_from_this(&launch, HeardOutput::StandardBesideOwnErrors).map_err(error)?;
    match child.id().and_then(ProcessIdentity::of) {
        Some(process) => Ok(BackgroundProcess { process, child, input: launch.stdio.input }),
        None => {
            // Without a start time it couldn't be told from a later process, so it isn't left running.
            let _ = child.start_kill();
            Err(error(io::ErrorKind::Unsupported.into()))
        }
    }
}

impl BackgroundProcess {
    /// Which process it is.
    #[must_use]
    pub const fn process(&self) -> ProcessIdentity {
        self.process
    }

    /// Passes its input on and waits for its line; empty if it closed its output without one. Once.
    ///
    /// # Errors
    /// When the pipe to it fails.
    ///
    /// # Cancellation
    /// The line is lost.
    pub async fn line(&mut self) -> io::Result<String> {
        if let Some(mut stdin) = self.child.stdin.take() {
            match stdin.write_all(&self.input).await {
                // It has ended, and says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written?,
            }
        }
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
        }
        Ok(line.trim_end().to_owned())
    }

    /// Waits for its end and returns its exit status; `None` if a signal ended it.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Cancellation
    /// May be called again.
    pub async fn wait(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.wait().await?.code())
    }
}

/// No input; standard output and error are a file.
#[derive(Debug)]
pub struct IntoFile {
    /// The file, open for appending.
    pub file: File,
}

/// Starts a program in a session of its own, without a guard, whose output goes to a file. It outlives this process,
/// however that ends, and is no leftover of it. [`Launch::confinement`] has no effect.
///
/// # Errors
/// When it couldn't be started. Always where processes have no start times (off Linux).
///
/// # Panics
/// Outside of a tokio runtime with I/O enabled.
pub fn start_into_file(launch: &Launch<IntoFile>) -> Result<ProcessIdentity, SpawnError> {
    let error = |source: io::Error| SpawnError::new(launch, source);
    let file = launch.stdio.file.try_clone().map_err(error)?;
    let mut child = crate::launch::start_apart_from_this(launch, HeardOutput::InFile(file)).map_err(error)?;
    child.id().and_then(ProcessIdentity::of).ok_or_else(|| {
        // Without a start time it couldn't be told from a later process, so it isn't left running.
        let _ = child.start_kill();
        error(io::ErrorKind::Unsupported.into())
    })
}

/// No input and no output; of the error output it is heard what comes in the first moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstErrors {
    /// How long that moment is.
    pub within: Duration,
}

/// How a program fared in its first moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It goes on.
    GoesOn,
    /// It has ended.
    Ended {
        /// Whether it says that it succeeded.
        succeeded: bool,
        /// What it wrote to its error output; of more than 4 KiB the beginning.
        errors: String,
    },
}

/// Starts a program in a session of its own, without a guard, and waits for a moment whether it ends. It outlives this
/// process, however that ends, and is no leftover of it. [`Launch::confinement`] has no effect. What it writes to its
/// error output later can't be written, so the program must bear that.
///
/// # Errors
/// When it couldn't be started.
///
/// # Cancellation
/// The program goes on.
///
/// # Panics
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn start_on_its_own(launch: Launch<FirstErrors>) -> Result<Begun, SpawnError> {
    let error = |source: io::Error| SpawnError::new(&launch, source);
    let mut child = crate::launch::start_apart_from_this(&launch, HeardOutput::Errors).map_err(error)?;
    let mut bytes = Vec::new();
    let ended = async {
        if let Some(stderr) = child.stderr.take() {
            let mut heard = stderr.take(LINE_BYTES_MAX);
            heard.read_to_end(&mut bytes).await?;
            // More must not stand in its way.
            drop(heard);
        }
        child.wait().await
    };
    match timeout(launch.stdio.within, ended).await {
        Err(_) => Ok(Begun::GoesOn),
        Ok(status) => Ok(Begun::Ended {
            succeeded: status.map_err(error)?.success(),
            errors: String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        }),
    }
}

async fn end(process: ProcessIdentity) {
    // Whether it could be ended changes nothing: the caller is told that it failed.
    let _ = tokio::task::spawn_blocking(move || process.end_tree()).await;
}
