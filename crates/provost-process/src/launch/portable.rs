//! Starts a program where there are no guards: dropping the child kills it, and nothing more. [`Confinement`](super::Confinement) without a box is the same here.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::{HeardOutput, Launch, OwnOutput, OwnStreams};

/// Starts a program with pipes for its output.
pub(crate) fn start<C>(launch: &Launch<C>, stdin: Stdio) -> io::Result<Child> {
    start_with(launch, [stdin, Stdio::piped(), Stdio::piped()])
}

/// Starts a program with the streams of this process.
pub(crate) fn start_with_own(launch: &Launch<OwnStreams>) -> io::Result<Child> {
    let stdout = match launch.stdio.output {
        OwnOutput::Output => Stdio::inherit(),
        OwnOutput::Errors => io::stderr().into(),
    };
    start_with(launch, [Stdio::inherit(), stdout, Stdio::inherit()])
}

fn start_with<C>(launch: &Launch<C>, [stdin, stdout, stderr]: [Stdio; 3]) -> io::Result<Child> {
    let enclosed = launch.confinement.enclosed(launch)?;
    Command::new(&enclosed.program)
        .args(&enclosed.args)
        .current_dir(&enclosed.cwd)
        .env_clear()
        .envs(enclosed.env)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .kill_on_drop(true)
        .spawn()
}

/// Starts a program that outlives this process. Not here: it couldn't be told from another one that has its id later.
pub(crate) fn start_apart_from_this<C>(_launch: &Launch<C>, _heard: HeardOutput) -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The parts of a program to start at a console.
#[cfg(windows)]
pub(crate) fn console_command<C>(launch: &Launch<C>) -> portable_pty::CommandBuilder {
    let mut builder = portable_pty::CommandBuilder::new(&launch.program);
    builder.args(&launch.args);
    builder.cwd(&launch.cwd);
    builder.env_clear();
    for (name, value) in &launch.env {
        builder.env(name, value);
    }
    builder
}
