//! A child that is run to its end: its pipes, and the channel to its guard.

use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Child;

use crate::launch::{self, ChildEnds, Guarded};
use crate::registry::Registered;
use crate::{Ending, Launch, Streams};

pub(crate) use crate::guard::Order;

pub(crate) const SIGKILL: i32 = 9;

/// A started child: its guard and its pipes. Dropping it ends the child.
pub(crate) struct Started {
    pub(crate) guard: Registered<Child>,
    pub(crate) control: Control,
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Option<Receiver>,
}

/// Starts the program and returns once it executes. Blocks; needs the context of a tokio runtime.
pub(crate) fn start(launch: &Launch) -> io::Result<Started> {
    let (stdin_end, stdin) = input(&launch.stdio.input)?;
    let (stdout_end, stdout) = output()?;
    let (stderr_end, stderr) = match launch.stdio.streams {
        Streams::Merged => (stdout_end.try_clone()?, None),
        Streams::Apart => {
            let (end, stderr) = output()?;
            (end, Some(stderr))
        }
    };
    let ends = ChildEnds { stdin: stdin_end, stdout: stdout_end.into(), stderr: stderr_end.into() };
    let Guarded { guard, control } = launch::start(launch, ends)?;
    Ok(Started { guard, control: Control(control), stdin, stdout, stderr })
}

/// Without input the child reads the null device: some programs take a pipe as input to search.
fn input(bytes: &[u8]) -> io::Result<(Stdio, Option<Sender>)> {
    if bytes.is_empty() {
        return Ok((Stdio::null(), None));
    }
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), Some(Sender::from_owned_fd(OwnedFd::from(writer))?)))
}

fn output() -> io::Result<(PipeWriter, Receiver)> {
    let (reader, writer) = io::pipe()?;
    Ok((writer, Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

/// Our end of the channel to the guard. Closing it makes the guard kill everything.
pub(crate) struct Control(UnixStream);

impl Control {
    /// Waits for the child's exit; `None` if its guard was killed before. Not cancel safe: not to be called again
    /// after a drop.
    pub(crate) async fn exit(&mut self) -> Option<Ending> {
        let (mut number, mut status) = ([0; 4], [0; 4]);
        let told = async {
            self.0.read_exact(&mut number).await?;
            self.0.read_exact(&mut status).await
        };
        if told.await.is_err() {
            return None;
        }
        let status = ExitStatus::from_raw(i32::from_ne_bytes(status));
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, signal) => Ending::Signalled(signal.unwrap_or(SIGKILL)),
        })
    }

    /// Sends an order; does nothing if the guard is gone.
    pub(crate) async fn order(&mut self, order: Order) {
        if let Err(error) = self.0.write_all(&[order.byte()]).await {
            tracing::trace!(%error, "the guard is already gone");
        }
    }

    /// Waits until the guard is gone, and with it all processes below it. Cancel safe.
    pub(crate) async fn gone(&mut self) {
        let mut rest = [0; 4];
        while self.0.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    }
}
