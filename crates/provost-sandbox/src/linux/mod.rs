//! The sandbox of Linux: `bwrap`, Landlock and a filter of system calls.

mod canary;
mod mounts;
mod plan;
mod probe;
mod program_box;
mod seccomp;
mod set_id;
mod steps;
mod sys;

use std::ffi::OsString;

use steps::OwnNetwork;

pub(crate) use canary::GREETING;
pub(crate) use probe::probe;
pub(crate) use program_box::{BoxFolder, OpenBox, ProgramBoxParts, SharedParts};

/// The hidden first argument of the program that runs a step.
pub(crate) const STEP: &str = "sandbox-step";
/// The step that looks from inside whether the box holds.
pub(crate) const CANARY: &str = "canary";
/// The step that confines itself and runs the program.
const INNER: [&str; 2] = [STEP, "inner"];

/// Runs a step of a sandbox if this process was started as one, and doesn't return then. A program that hands out
/// sandboxes calls this first thing in `main`, before it has threads.
pub fn run_step_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|first| first != STEP) {
        return;
    }
    let words = args.collect::<Vec<_>>();
    let number = |word: Option<&OsString>| word.and_then(|word| word.to_str()?.parse().ok());
    let is = |at: usize, name: &str| words.get(at).is_some_and(|word| word == name);
    let program = words.get(3..).unwrap_or_default();
    let result = match number(words.get(1)) {
        Some(socket) if is(0, "open") => {
            let named = words.get(2).and_then(|name| OwnNetwork::named(name.to_str()?));
            steps::open(socket, named.unwrap_or(OwnNetwork::Yes)).map(|()| 0)
        }
        Some(socket) if is(0, "listen") => match (number(words.get(2)), number(words.get(3))) {
            (Some(user), Some(network)) => steps::listen(socket, user, network).map(|()| 0),
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        },
        Some(port) if is(0, CANARY) => Ok(canary::run(port, words.get(2).map(OsString::as_os_str))),
        Some(plan) if is(0, "enter") && is(2, "--") => steps::enter(plan, program),
        Some(plan) if is(0, "inner") && is(2, "--") => steps::inner(plan, program),
        _ => Err(std::io::ErrorKind::InvalidInput.into()),
    };
    steps::finish(result);
}
