//! `provost man`: the manual page, its commands' pages one after the other.

use clap::CommandFactory as _;
use clap_mangen::Man;

use super::Cli;
use super::print;
use crate::exit::Exit;

pub(super) fn man() -> anyhow::Result<Exit> {
    let mut program = Cli::command();
    program.build();
    let mut page = Vec::new();
    Man::new(program.clone()).render(&mut page)?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = Man::new(command.clone());
        man.render_title(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    print(&String::from_utf8(page)?)?;
    Ok(Exit::Done)
}
