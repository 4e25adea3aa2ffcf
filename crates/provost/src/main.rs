//! The program `provost`: reads settings, wires the harness, shows what happens, exits.
//!
//! | file | what lives there |
//! |---|---|
//! | `cli.rs` | the command line |
//! | `commands/` | one command each |
//! | `settings/` | the settings: declared once, read in layers, documented from the declaration |
//! | `wiring.rs` | from settings to models, home and harness |
//! | `drive.rs`, `signals.rs` | working on a run until it rests, and what interrupts that |
//! | `watcher.rs` | which records a view is shown, and in which order |
//! | `render/` | from records to what people and programs see |
//! | `exit.rs` | exit statuses, errors and hints |

mod cli;
mod commands;
mod drive;
mod exit;
mod render;
mod settings;
mod signals;
mod watcher;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    exit::report(commands::run(cli))
}
