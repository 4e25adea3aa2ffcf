//! One way to start a program: what to start, what it is connected to, and what it is confined by.

#[cfg(not(unix))]
#[path = "launch/portable.rs"]
mod platform;
#[cfg(unix)]
#[path = "launch/unix.rs"]
mod platform;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use provost_event::WindowSize;

pub(crate) use platform::*;
#[cfg(unix)]
pub use platform::{run_attached, run_helper};

/// Which output of a program that outlives this process is heard.
#[derive(Debug)]
pub(crate) enum HeardOutput {
    Standard,
    /// The error output is that of this process.
    StandardBesideOwnErrors,
    Errors,
    /// None: both outputs are this file.
    InFile(std::fs::File),
}

/// A program to start. `C` is what it is connected to: [`Stdio`] for [`run`](crate::run), [`OpenPipes`] for
/// [`PipedChild`](crate::PipedChild), [`OwnStreams`] for [`OwnStreamsChild`](crate::OwnStreamsChild), [`AtTerminal`] for [`PtySupervisor`](crate::PtySupervisor).
#[derive(Clone)]
pub struct Launch<C = Stdio> {
    /// The program: a path, or a name looked up in the `PATH` of `env`. A relative path starts at `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing is inherited. See [`allowed_env`](crate::allowed_env).
    pub env: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// What its standard streams are connected to.
    pub stdio: C,
    /// What it is confined by.
    pub confinement: Confinement,
}

/// Leaves out the values of the environment: they may hold secrets.
impl<C: fmt::Debug> fmt::Debug for Launch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env_names", &names)
            .field("cwd", &self.cwd)
            .field("stdio", &self.stdio)
            .field("confinement", &self.confinement)
            .finish()
    }
}

/// The standard streams of a program that is run to its end.
#[derive(Clone)]
pub struct Stdio {
    /// Bytes for its standard input, which is then closed. Empty: the null device. It needn't read them.
    pub input: Vec<u8>,
    /// Whether standard output and error are one stream.
    pub streams: Streams,
}

/// Leaves out the input: it may hold secrets.
impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("input_bytes", &self.input.len())
            .field("streams", &self.streams)
            .finish()
    }
}

/// Whether standard output and standard error are one stream or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Both in [`Finished::stdout`](crate::Finished::stdout), in the order of writing;
    /// [`Finished::stderr`](crate::Finished::stderr) stays empty.
    Merged,
    /// One field each.
    Apart,
}

/// A pipe for each standard stream, open as long as the program is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenPipes;

/// The standard streams of this process: what the program reads and writes, this process doesn't see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnStreams {
    /// Where its standard output goes.
    pub output: OwnOutput,
}

/// A stream of this process for the standard output of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnOutput {
    /// Standard output.
    Output,
    /// Standard error: this process has its standard output for itself.
    Errors,
}

/// A terminal of its own for all standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtTerminal {
    /// The initial window size.
    pub size: WindowSize,
}

/// What confines a program and all that it starts. On Unix that is at least a guard, which ends them; on other
/// platforms there are no guards, and the first two variants are the same.
#[derive(Debug, Clone, Default)]
pub enum Confinement {
    /// All that this process has the rights to: on Linux, with those of root, a guard that is the first process of
    /// a process namespace, so that the program can't reach it; otherwise as [`Guard`](Self::Guard).
    #[default]
    Strongest,
    /// A guard in the namespace of this process: a program of the same user can stop or kill it.
    Guard,
    /// The program in a box, below a guard as with [`Strongest`](Self::Strongest).
    Boxed(Arc<dyn ProgramBox>),
}

impl Confinement {
    /// What is started: `command` itself, or what runs it in its box.
    pub(crate) fn enclosed<C>(&self, launch: &Launch<C>) -> io::Result<BoxedCommand> {
        let command = BoxedCommand {
            program: launch.program.clone(),
            args: launch.args.clone(),
            env: launch.env.clone(),
            cwd: launch.cwd.clone(),
            #[cfg(unix)]
            descriptors: Vec::new(),
        };
        match self {
            Self::Boxed(program_box) => program_box.enclose(command),
            Self::Strongest | Self::Guard => Ok(command),
        }
    }
}

/// Confines programs by starting another program that runs them.
pub trait ProgramBox: fmt::Debug + Send + Sync {
    /// Returns what is started in the place of `command`. Called once for each start, on a thread that may block.
    ///
    /// # Errors
    /// When the box can't be made; then nothing is started.
    fn enclose(&self, command: BoxedCommand) -> io::Result<BoxedCommand>;
}

/// A program as it is handed to a [`ProgramBox`], and what that makes of it.
#[derive(Debug)]
pub struct BoxedCommand {
    /// The program: a path, or a name looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// Descriptors that it inherits, under their present numbers.
    #[cfg(unix)]
    pub descriptors: Vec<std::os::fd::OwnedFd>,
}
