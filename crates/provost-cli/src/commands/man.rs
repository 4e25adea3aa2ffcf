//! `provost man`: a manual page for each command.

use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use super::Cli;
use super::{print, shown};
use crate::cli::ManArgs;
use crate::exit::{Exit, Refusal};

pub(super) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &args.dir {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", shown(folder)))?;
        write_all(&program, "", folder)?;
        return Ok(Exit::Done);
    }
    let mut command = &program;
    let mut name = "provost".to_owned();
    for word in &args.command {
        let none =
            || Refusal::new(format!("there is no command `{name} {word}`"), "`provost help` lists them");
        command = command.find_subcommand(word).ok_or_else(none)?;
        name = format!("{name}-{word}");
    }
    print(&String::from_utf8(page(command, &name)?)?)?;
    Ok(Exit::Done)
}

/// Writes the page of `command` and those of its own commands. `above` is what stands in front of its name.
fn write_all(command: &Command, above: &str, folder: &Path) -> anyhow::Result<()> {
    let name = format!("{above}{}", command.get_name());
    let file = folder.join(format!("{name}.1"));
    std::fs::write(&file, page(command, &name)?).with_context(|| format!("can't write {}", shown(&file)))?;
    command.get_subcommands().try_for_each(|inner| write_all(inner, &format!("{name}-"), folder))
}

fn page(command: &Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page)?;
    Ok(page)
}
