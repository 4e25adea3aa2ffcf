//! How the program ends: exit statuses, and errors printed once with what to do about them.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use provost_backend::TransferError;
use provost_config::{ConfigError, Problems};
use provost_event::{Outcome, Verdict, Verification};
use provost_harness::{BackendError, HarnessError};
use provost_runtime::RuntimeError;

pub(crate) use provost_runtime::Refusal;

use crate::output::{self, tell_raw};
use crate::render::{hanging, safe, visible};

/// An exit status with its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Completed, verified or not.
    Done,
    /// Failed.
    Failed,
    /// Wrong usage or settings.
    Usage,
    /// A budget ended it.
    Budget,
    /// It waits for the user.
    Waiting,
    /// A hook aborted it.
    Aborted,
    /// Interrupted or cancelled.
    Cancelled,
    /// That of a program that was run in its place.
    Status(u8),
}

impl Exit {
    /// The status of a run with this `outcome`.
    pub(crate) const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed { verdict: None | Some(Verdict::Pass), .. } => Self::Done,
            Outcome::Completed { verdict: Some(Verdict::Fail | Verdict::Partial), .. }
            | Outcome::Failed { .. } => Self::Failed,
            Outcome::BudgetExhausted(_) => Self::Budget,
            Outcome::Blocked { .. } | Outcome::Paused { .. } => Self::Waiting,
            Outcome::Aborted { .. } => Self::Aborted,
            Outcome::Cancelled { .. } => Self::Cancelled,
        }
    }

    /// The status of a program that ended so, as a shell has it; `None` for success, and where it wasn't seen.
    pub(crate) fn of_program(exit: provost_event::Exit) -> Option<Self> {
        let status = match exit {
            provost_event::Exit::Code(0) | provost_event::Exit::Unseen => return None,
            provost_event::Exit::Code(code) => code,
            provost_event::Exit::Signal(signal) => signal.saturating_add(128),
        };
        Some(u8::try_from(status).map_or(Self::Failed, Self::Status))
    }

    /// The status of a run with this `outcome` where only what was verified counts as done.
    pub(crate) fn of_verified(outcome: &Outcome) -> Self {
        match (Self::of(outcome), outcome.verification()) {
            (Self::Done, Some(Verification::None | Verification::Ignored { .. })) => Self::Failed,
            (exit, _) => exit,
        }
    }

    const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Budget => 3,
            Self::Waiting => 4,
            Self::Aborted => 5,
            Self::Cancelled => 130,
            Self::Status(status) => status,
        }
    }
}

/// Prints an error, if there is one, and gives the exit status.
pub(crate) fn report(result: anyhow::Result<Exit>) -> ExitCode {
    let exit = match result {
        Ok(exit) => exit,
        Err(error) if is_loss(&error) => Exit::Failed,
        Err(error) => {
            tell_raw(&message(&error));
            exit_of(&error)
        }
    };
    ExitCode::from(unless_lost(exit).status())
}

/// Prints what the command line's reader answers in place of a command: help, or what is wrong.
pub(crate) fn usage(answer: &clap::Error) -> ExitCode {
    if answer.use_stderr() {
        // Where it can't be written the exit status still reports it.
        let plain = answer.render().to_string();
        let shown = plain.lines().map(|line| format!("{}\n", visible(line))).collect::<String>();
        if shown == plain {
            let _ = answer.print();
        } else {
            tell_raw(&shown);
        }
        return ExitCode::from(Exit::Usage.status());
    }
    let text = answer.render();
    let text = if console::colors_enabled() { text.ansi().to_string() } else { text.to_string() };
    // A loss is remembered.
    let _ = output::write(text.as_bytes());
    ExitCode::from(unless_lost(Exit::Done).status())
}

/// Lost output is a failure, whatever the result of the work. A reader that closed the pipe early gets no message.
fn unless_lost(exit: Exit) -> Exit {
    let Some(loss) = output::lost() else { return exit };
    if !loss.by_reader() {
        output::tell_of_loss("");
    }
    if exit == Exit::Done { Exit::Failed } else { exit }
}

/// Whether the error is a failed write to standard output, which is reported separately.
fn is_loss(error: &anyhow::Error) -> bool {
    let Some(loss) = output::lost() else { return false };
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| loss.is(error)))
}

fn message(error: &anyhow::Error) -> String {
    let mut text = match problems_of(error) {
        Some(Problems(problems)) => problems
            .iter()
            .map(|problem| format!("error: {}\n", hanging(&safe(&problem.to_string()), "  ")))
            .collect(),
        None => format!("error: {}\n", hanging(&safe(&chain(error)), "  ")),
    };
    if let Some(hint) = hint(error) {
        text.push_str(&format!("hint: {}\n", hanging(&safe(&hint), "  ")));
    }
    text
}

/// The same in one line, without the word that it is one.
pub(crate) fn in_one_line(error: &anyhow::Error) -> String {
    let text = message(error);
    let lines = text.lines().map(|line| line.trim().trim_start_matches("error: "));
    lines.collect::<Vec<_>>().join("; ")
}

/// Whether what was asked for can't be done as it is, and nothing failed.
pub(crate) fn is_refusal(error: &anyhow::Error) -> bool {
    exit_of(error) == Exit::Usage
}

/// All causes in one line, each once.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

/// What is wrong with settings, if that is the error.
fn problems_of(error: &anyhow::Error) -> Option<&Problems> {
    let of_config = config_error(error).and_then(|error| match error {
        ConfigError::Problems(problems) => Some(problems),
        _ => None,
    });
    let of_runtime = || match error.downcast_ref() {
        Some(RuntimeError::Problems(problems)) => Some(problems),
        _ => None,
    };
    of_config.or_else(of_runtime).or_else(|| error.downcast_ref())
}

fn config_error(error: &anyhow::Error) -> Option<&ConfigError> {
    match error.downcast_ref() {
        Some(RuntimeError::Config(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn refusal(error: &anyhow::Error) -> Option<&Refusal> {
    match error.downcast_ref() {
        Some(RuntimeError::Refused(refusal)) => Some(refusal),
        _ => error.downcast_ref(),
    }
}

fn exit_of(error: &anyhow::Error) -> Exit {
    let is_usage = matches!(
        config_error(error),
        Some(ConfigError::NoSettings { .. } | ConfigError::UnknownProfile { .. })
    );
    if is_usage || problems_of(error).is_some() || refusal(error).is_some() {
        return Exit::Usage;
    }
    match error.downcast_ref::<HarnessError>() {
        Some(
            HarnessError::UnknownPrice { .. }
            | HarnessError::UnknownRun(_)
            | HarnessError::DoubledHook { .. }
            | HarnessError::Flow(_),
        ) => Exit::Usage,
        _ => Exit::Failed,
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(refusal) = refusal(error) {
        return refusal.hint().map(str::to_owned);
    }
    if let Some(hint) = config_error(error).and_then(ConfigError::hint) {
        return Some(hint.to_owned());
    }
    if error.chain().any(is_incomplete_export) {
        return Some("`provost import --incomplete` takes what is in it".to_owned());
    }
    match backend_error(error)? {
        BackendError::Held { run, .. } => {
            Some(format!("follow it with `provost logs {run} -f`, or stop that process"))
        }
        BackendError::Undecided { run, .. } => Some(format!(
            "it may be stopped or overloaded: try again, or end it together with the run: `provost cancel {run} --force`"
        )),
        BackendError::Unanswered { run, .. } => Some(format!(
            "see `provost logs {run}` before you try again; `provost cancel {run} --force` ends that process and the run"
        )),
        BackendError::Conflict { actor } => {
            Some(format!("see `provost ps`; `provost logs {} -f` follows it", actor.run()))
        }
        BackendError::Unreadable { actor, .. } => {
            let run = actor.run();
            Some(format!(
                "what stands before it can be read: `provost logs {run}`, `provost export {run}`; `provost doctor --store` checks the rest"
            ))
        }
        _ => None,
    }
}

/// Whether an import failed for what its file hasn't got.
fn is_incomplete_export(cause: &(dyn Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref::<TransferError>(),
        Some(TransferError::Incomplete { .. } | TransferError::Damaged { .. } | TransferError::Cut { .. })
    )
}

fn backend_error(error: &anyhow::Error) -> Option<&BackendError> {
    error.chain().find_map(|cause| {
        let inside = match cause.downcast_ref::<HarnessError>() {
            Some(HarnessError::Backend(cause)) => Some(cause),
            _ => None,
        };
        inside.or_else(|| cause.downcast_ref::<BackendError>())
    })
}
