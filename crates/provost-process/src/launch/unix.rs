//! Starts a program below its guard. The only place on Unix that does.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Confinement, HeardOutput, Launch, OwnOutput, OwnStreams};
use crate::guard::{self, StandardInput};
use crate::registry::{self, Registered};

/// The child's ends of its standard streams.
pub(crate) struct ChildEnds {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

impl ChildEnds {
    /// Those of this process.
    pub(crate) fn own(streams: OwnStreams) -> Self {
        let stdout = match streams.output {
            OwnOutput::Output => Stdio::inherit(),
            OwnOutput::Errors => io::stderr().into(),
        };
        Self { stdin: Stdio::inherit(), stdout, stderr: Stdio::inherit() }
    }
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

/// Starts a program that outlives this process, with a pipe for one of its outputs only. Needs the context of a tokio
/// runtime, which reaps it.
pub(crate) fn start_apart_from_this<C>(
    launch: &Launch<C>,
    heard: HeardOutput,
) -> io::Result<tokio::process::Child> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd).env_clear().envs(launch.env.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match heard {
        HeardOutput::Standard => command.stdout(Stdio::piped()),
        HeardOutput::StandardBesideOwnErrors => {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit())
        }
        HeardOutput::Errors => command.stderr(Stdio::piped()),
        HeardOutput::InFile(file) => command.stdout(file.try_clone()?).stderr(file),
    };
    guard::detach(&mut command);
    let mut command = tokio::process::Command::from(command);
    registry::spawn_detached(|| command.spawn())
}

/// Runs a short helper to its end, without input and output, below a guard in the namespace of this process. It
/// inherits `descriptors`, under their present numbers. Blocks, at most for `limit`; then the helper is killed.
///
/// # Errors
/// When it can't be started, takes longer, or fails: then with the end of its error output.
pub fn run_helper(launch: &Launch<()>, descriptors: Vec<OwnedFd>, limit: Duration) -> io::Result<()> {
    let (mut words, stderr) = io::pipe()?;
    let ends = ChildEnds { stdin: Stdio::null(), stdout: Stdio::null(), stderr: stderr.into() };
    let mut prepared = prepare(launch, ends, StandardInput::Stream)?;
    guard::hand_down(&mut prepared.command, &descriptors);
    let mut guard =
        registry::spawn(|| prepared.command.spawn(), std::process::Child::id, prepared.placement)?;
    // Our copies of the helper's ends.
    drop((prepared.command, descriptors));
    let mut control = prepared.control;
    control.set_read_timeout(Some(limit))?;
    let mut told = [0; 8];
    let heard = control.read_exact(&mut told);
    drop(control);
    let ended = guard.wait();
    guard.strike_out();
    ended?;
    heard.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
    let [.., a, b, c, d] = told;
    if i32::from_ne_bytes([a, b, c, d]) == 0 {
        return Ok(());
    }
    let mut said = String::new();
    words.read_to_string(&mut said)?;
    Err(io::Error::other(said.trim().to_owned()))
}

/// Runs a program to its end with the standard streams of this process, and returns its exit status as a shell has it.
/// Blocks. All that it started has ended then; with this process it ends too.
///
/// # Errors
/// When it can't be started, or its guard was killed.
pub fn run_attached(launch: &Launch<()>) -> io::Result<i32> {
    let ends = ChildEnds::own(OwnStreams { output: OwnOutput::Output });
    let mut prepared = prepare(launch, ends, StandardInput::Stream)?;
    let mut guard =
        registry::spawn(|| prepared.command.spawn(), std::process::Child::id, prepared.placement)?;
    drop(prepared.command);
    let mut told = [0; 8];
    let heard = prepared.control.read_exact(&mut told);
    drop(prepared.control);
    guard.wait()?;
    guard.strike_out();
    heard?;
    let [.., a, b, c, d] = told;
    let status = std::process::ExitStatus::from_raw(i32::from_ne_bytes([a, b, c, d]));
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

struct Prepared {
    command: Command,
    control: UnixStream,
    placement: guard::Placement,
    /// Kept open until the program executes.
    _descriptors: Vec<OwnedFd>,
}

fn prepare<C>(launch: &Launch<C>, ends: ChildEnds, input: StandardInput) -> io::Result<Prepared> {
    let enclosed = launch.confinement.enclosed(launch)?;
    let mut command = Command::new(&enclosed.program);
    command.args(&enclosed.args).current_dir(&enclosed.cwd).env_clear().envs(enclosed.env);
    command.stdin(ends.stdin).stdout(ends.stdout).stderr(ends.stderr);
    let (control, guards) = UnixStream::pair()?;
    let placement = launch.confinement.placement();
    guard::install(&mut command, guards, input, placement);
    guard::hand_down(&mut command, &enclosed.descriptors);
    Ok(Prepared { command, control, placement, _descriptors: enclosed.descriptors })
}

impl Confinement {
    fn placement(&self) -> guard::Placement {
        match self {
            Self::Strongest | Self::Boxed(_) if guard::namespaces_are_there() => {
                guard::Placement::OwnNamespace
            }
            Self::Strongest | Self::Guard | Self::Boxed(_) => guard::Placement::Shared,
        }
    }
}
