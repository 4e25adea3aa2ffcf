//! Refuses a project whose files request what the user hasn't agreed to.

use provost_config::{Project, TrustState, TrustStore, trust_in};

use crate::{Refusal, RuntimeError};

/// Refuses a project whose files request what the user hasn't agreed to.
///
/// # Errors
/// A [`Refusal`] that lists it all; or when what is trusted can't be read.
pub fn require(store: &TrustStore, project: &Project) -> Result<(), RuntimeError> {
    require_by(store, project, "provost trust")
}

/// As [`require`], where consent is given by this command.
///
/// # Errors
/// As there.
pub fn require_by(store: &TrustStore, project: &Project, command: &str) -> Result<(), RuntimeError> {
    let TrustState::Needed(needed) = trust_in(store, project)? else { return Ok(()) };
    let what = format!("the project's files want what you haven't agreed to\n{}", needed.listed());
    let command = match &project.config {
        Some(file) => format!("{command} --config {}", in_shell(&file.display().to_string())),
        None => command.to_owned(),
    };
    let hint = format!(
        "nothing of this was done; `{command}` in {} shows it and asks you",
        project.folder.display()
    );
    Err(Refusal::new(what.trim_end(), hint).into())
}

/// `text` as one word of a shell.
fn in_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
