//! The program `provost`: reads settings, wires the harness, shows what happens, exits.
//!
//! | file | what lives there |
//! |---|---|
//! | `commands/` | the command line: one command each |
//! | `cli.rs`, `cli/` | the arguments of commands |
//! | `completing.rs` | what shells may complete an argument with |
//! | `wiring.rs` | from settings to models, backend and harness |
//! | `drive.rs`, `signals.rs` | working on a run until it is suspended or ends, and what interrupts that |
//! | `questions.rs`, `answering.rs` | which calls need approval, and giving the answer |
//! | `asking.rs`, `asking/` | asking for consent on the terminal |
//! | `messages.rs` | messages that the user types to the agent |
//! | `typing.rs`, `typing/` | what the user types while a run works: answers, and messages to the agent |
//! | `attached.rs`, `attached/` | a person's terminal that is connected to a program |
//! | `watcher.rs` | which records a view is shown, and in which order |
//! | `render/` | from records to what people and programs see |
//! | `reports.rs` | reports on a run to the surrounding terminal |
//! | `input.rs` | standard input that was not asked for |
//! | `output.rs` | standard output and error, and lost output |
//! | `exit.rs` | exit statuses, errors and hints |

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic when the stream is closed or full")]

mod answering;
mod asking;
mod attached;
mod cli;
mod commands;
mod completing;
mod drive;
mod exit;
mod input;
mod locale;
mod messages;
mod names;
mod output;
mod questions;
mod render;
mod reports;
mod server;
mod signals;
mod stands_for;
mod typing;
mod unattended;
mod watcher;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Such a process has one purpose, and one thread.
    provost_sandbox::run_step_if_asked();
    wiring::hide_secrets();
    if completing::answer() {
        return ExitCode::SUCCESS;
    }
    provost_process::be_untraceable();
    // A log that reaches the limit ends a run with an error, not Provost without a word.
    provost_process::outlive_file_size_limit();
    // Children of a guard that was killed by what it guards are reparented to this process, which ends them.
    provost_process::adopt_orphans();
    match commands::Cli::try_parse() {
        Ok(cli) => exit::report(commands::run(cli)),
        Err(answer) => exit::usage(&answer),
    }
}
