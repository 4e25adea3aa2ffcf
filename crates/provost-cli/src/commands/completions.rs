//! `provost completions`: for shells.

use clap::CommandFactory as _;

use super::Cli;
use super::print;
use crate::exit::Exit;

pub(super) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "provost", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
