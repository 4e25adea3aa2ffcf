//! `provost completions`: for shells.

use clap_complete::env::Shells;

use super::print;
use crate::completing::VARIABLE;
use crate::exit::{Exit, Refusal};

pub(super) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let (name, shells) = (shell.to_string(), Shells::builtins());
    let unknown = || Refusal::new(format!("there are no completions for {name}"), "");
    let shell = shells.completer(&name).ok_or_else(unknown)?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "provost", "provost", "provost", &mut script)?;
    print(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
