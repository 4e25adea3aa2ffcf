//! Starts a child under its guard: pipes, control channel, spawn.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};

use crate::registry::{self, Registered};
use crate::{ChildSpec, Ending, Streams, guard};

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

/// Starts `spec.program` and returns once it executes. Blocks; needs the context of a tokio runtime.
pub(crate) fn start(spec: &ChildSpec) -> io::Result<Started> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.cwd).env_clear().envs(spec.env.iter().cloned());
    let stdin = set_stdin(&mut command, &spec.stdin)?;
    let (stdout, stderr) = set_output(&mut command, spec.streams)?;
    let (ours, guards) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let control = Control(UnixStream::from_std(ours)?);
    guard::install(command.as_std_mut(), guards, guard::StandardInput::Stream);
    let guard = registry::spawn(|| command.spawn(), |guard| guard.id().unwrap_or_default())?;
    // `command` goes out of scope here and closes our copies of the child's and the guard's ends.
    Ok(Started { guard, control, stdin, stdout, stderr })
}

/// Without input the child reads the null device: some programs take a pipe as input to search.
fn set_stdin(command: &mut Command, input: &[u8]) -> io::Result<Option<Sender>> {
    if input.is_empty() {
        command.stdin(Stdio::null());
        return Ok(None);
    }
    let (reader, writer) = io::pipe()?;
    command.stdin(reader);
    Sender::from_owned_fd(OwnedFd::from(writer)).map(Some)
}

fn set_output(command: &mut Command, streams: Streams) -> io::Result<(Receiver, Option<Receiver>)> {
    let (reader, writer) = io::pipe()?;
    let stdout = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let stderr = match streams {
        Streams::Merged => {
            command.stderr(writer.try_clone()?);
            None
        }
        Streams::Apart => {
            let (reader, writer) = io::pipe()?;
            command.stderr(writer);
            Some(Receiver::from_owned_fd(OwnedFd::from(reader))?)
        }
    };
    command.stdout(writer);
    Ok((stdout, stderr))
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
