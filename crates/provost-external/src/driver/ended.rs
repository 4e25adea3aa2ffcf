//! What follows when a program ends by itself.

use provost_engine::Answer;
use provost_event::{ErrorClass, Exit, ModelFailure};
use provost_harness::Exchange;
use provost_terminal::{Profile, ProgramKind};

use super::failing::{class_of, class_of_plain};
use crate::consent;

/// A program that has ended by itself.
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    /// The last rows it showed, without secrets.
    pub(super) shown: String,
    pub(super) was_told: bool,
    pub(super) can_resume: bool,
    /// Whether it works by itself, so that its prompt may be given again.
    pub(super) is_agent: bool,
    /// The program's own failure, as it showed it.
    pub(super) failure: Option<String>,
}

impl Ended {
    /// A program of which only the exit is known.
    pub(crate) fn of(profile: &Profile, exit: Exit) -> Self {
        let can_resume = profile.kind == ProgramKind::Agent && !profile.resume.last.is_empty();
        let is_agent = profile.kind == ProgramKind::Agent;
        Self { exit, shown: String::new(), was_told: true, can_resume, is_agent, failure: None }
    }

    /// Whether its end is no failure.
    pub(crate) fn is_success(&self) -> bool {
        self.exit.is_success() && self.failure.is_none()
    }

    /// Whether to start it again with the next prompt.
    pub(crate) fn goes_on(&self, exchange: &Exchange<'_>) -> bool {
        self.can_resume && exchange.words.prompt().is_some()
    }

    /// The result of the exchange.
    pub(crate) fn comes_to(self, exchange: &Exchange<'_>) -> Result<Answer, ModelFailure> {
        let program = &exchange.policy.program;
        let never_told = exchange.policy.submits_goal && !self.was_told && exchange.words.prompt().is_some();
        if self.is_success() && !never_told {
            let text = match self.shown.as_str() {
                "" => format!("({program} has ended.)"),
                shown => shown.to_owned(),
            };
            return Ok(consent::text(text, program));
        }
        let why = match (self.exit, never_told) {
            (Exit::Code(0), true) => "ended before it took what it was to be told".to_owned(),
            (Exit::Code(0), false) => "has failed".to_owned(),
            (Exit::Code(code), _) => format!("ended with exit status {code}"),
            (Exit::Signal(signal), _) => format!("was ended by signal {signal}"),
            (Exit::Unseen, _) => "is gone".to_owned(),
        };
        let shown =
            if self.shown.is_empty() { String::new() } else { format!(". It showed last:\n{}", self.shown) };
        let class_of = if self.is_agent { class_of } else { class_of_plain };
        let class = self.failure.as_deref().map_or(ErrorClass::Program, class_of);
        let reason = self.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
        Err(ModelFailure::new(class, format!("`{program}` {why}{reason}{shown}")))
    }

    /// The failure when it has ended and a prompt is pending.
    pub(crate) fn cant_be_told(&self, exchange: &Exchange<'_>) -> ModelFailure {
        let program = &exchange.policy.program;
        let message = match exchange.words.prompt() {
            Some(prompt) => format!(
                "`{program}` has ended ({}), and its profile `{}` has no way to take its work up again: it can't be \
                 told this:\n{}",
                self.exit,
                exchange.policy.profile,
                exchange.redactor.redact(&prompt.text)
            ),
            None => format!("`{program}` has ended ({})", self.exit),
        };
        ModelFailure::new(ErrorClass::ProgramGone, message)
    }
}
