//! Starts a program below its guard. The only place on Unix that does.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use super::{Confinement, Launch};
use crate::guard::{self, StandardInput};
use crate::registry::{self, Registered};

/// The child's ends of its standard streams.
pub(crate) struct ChildEnds {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// A guard whose program executes, and our end of the channel to it. Closing that makes the guard kill everything.
pub(crate) struct Guarded<C, S> {
    pub(crate) guard: Registered<C>,
    pub(crate) control: S,
}

/// Starts a program with pipes and returns once it executes. Blocks; needs the context of a tokio runtime.
pub(crate) fn start<C>(
    launch: &Launch<C>,
    ends: ChildEnds,
) -> io::Result<Guarded<tokio::process::Child, tokio::net::UnixStream>> {
    let prepared = prepare(launch, ends, StandardInput::Stream)?;
    prepared.control.set_nonblocking(true)?;
    let control = tokio::net::UnixStream::from_std(prepared.control)?;
    // The command goes out of scope with the call, which closes our copies of the child's and the guard's ends.
    let mut command = tokio::process::Command::from(prepared.command);
    let pid = |guard: &tokio::process::Child| guard.id().unwrap_or_default();
    let guard = registry::spawn(|| command.spawn(), pid, prepared.placement)?;
    Ok(Guarded { guard, control })
}

/// Starts a program at a terminal and returns once it executes. Blocks.
pub(crate) fn start_at_terminal<C>(
    launch: &Launch<C>,
    ends: ChildEnds,
) -> io::Result<Guarded<std::process::Child, UnixStream>> {
    let mut prepared = prepare(launch, ends, StandardInput::Terminal)?;
    let pid = std::process::Child::id;
    let guard = registry::spawn(|| prepared.command.spawn(), pid, prepared.placement)?;
    Ok(Guarded { guard, control: prepared.control })
}

/// Starts a program that outlives this process, with a pipe for its standard output only. Needs the context of a tokio
/// runtime, which reaps it.
pub(crate) fn start_apart_from_this<C>(launch: &Launch<C>) -> io::Result<tokio::process::Child> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd).env_clear().envs(launch.env.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    guard::detach(&mut command);
    let mut command = tokio::process::Command::from(command);
    registry::spawn_detached(|| command.spawn())
}

struct Prepared {
    command: Command,
    control: UnixStream,
    placement: guard::Placement,
}

fn prepare<C>(launch: &Launch<C>, ends: ChildEnds, input: StandardInput) -> io::Result<Prepared> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd).env_clear().envs(launch.env.iter().cloned());
    command.stdin(ends.stdin).stdout(ends.stdout).stderr(ends.stderr);
    let (control, guards) = UnixStream::pair()?;
    let placement = launch.confinement.placement();
    guard::install(&mut command, guards, input, placement);
    Ok(Prepared { command, control, placement })
}

impl Confinement {
    fn placement(self) -> guard::Placement {
        match self {
            Self::Strongest if guard::namespaces_are_there() => guard::Placement::OwnNamespace,
            Self::Strongest | Self::Guard => guard::Placement::Shared,
        }
    }
}
