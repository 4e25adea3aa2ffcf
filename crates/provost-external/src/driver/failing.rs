//! An agent's own failure, read from what it shows: its class decides whether the prompt is given again.

use std::sync::LazyLock;

use provost_event::{ErrorClass, ModelFailure};
use provost_process::TerminalView;
use provost_terminal::ProgramKind;
use regex::RegexSet;

use super::{TerminalDriver, TerminalStatus};

/// The prompt after a failure that may pass.
pub(crate) const TRY_AGAIN: &str =
    "Your last request to the model failed. Go on where you left off with what you were asked for.";

/// What failures of providers say, the most specific first. The patterns and the classes are in the same order.
static CLASSES: [(ErrorClass, &str); 10] = [
    (
        ErrorClass::QuotaUsedUp,
        r"(?i)insufficient[_ ]quota|quota (?:has been |is )?(?:exceeded|used up|exhausted)|exceeded your (?:current )?quota|credit balance|billing|usage limit|out of credits|payment required|\b402\b",
    ),
    (ErrorClass::RateLimited, r"(?i)\b429\b|rate.?limit|too many requests|resource.?exhausted"),
    (
        ErrorClass::Unauthorized,
        r"(?i)\b401\b|unauthori[sz]ed|(?:incorrect|invalid|missing|wrong|expired) (?:x-)?(?:api.?key|token|credentials?)|invalid_api_key|api key (?:not valid|not found|is missing)|AuthenticationError|not able to authenticate|authentication.(?:failed|error)|please run /login|token has expired",
    ),
    (ErrorClass::Forbidden, r"(?i)\b403\b|forbidden|permission_?denied|PermissionDeniedError"),
    (ErrorClass::Overloaded, r"(?i)\b529\b|overloaded|at capacity|high demand"),
    (
        ErrorClass::NotFound,
        r"(?i)\b404\b|model.{0,40}(?:not found|does not exist|not supported)|NotFoundError",
    ),
    (
        ErrorClass::Server,
        r"(?i)\b50[0-9]\b|\b52[0-8]\b|internal ?server ?error|server ?error|bad gateway|service ?unavailable|gateway time|InternalServerError",
    ),
    (
        ErrorClass::Transport,
        r"(?i)connection (?:refused|reset|error|closed|failed|timed out|aborted)|ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|network (?:error|is unreachable)|socket hang up|stream disconnected|error sending request|timed? ?out|APIConnectionError|unable to connect|could not connect|premature close",
    ),
    (ErrorClass::InvalidRequest, r"(?i)\b400\b|\b422\b|invalid.?request|BadRequestError|bad request"),
    (ErrorClass::Refusal, r"(?i)content.?(?:policy|filter)|flagged as"),
];

static PATTERNS: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(CLASSES.iter().map(|(_, pattern)| pattern)).ok());

/// The class of a failure that a program reports in its own words.
pub(crate) fn class_of(words: &str) -> ErrorClass {
    let first = PATTERNS.as_ref().and_then(|patterns| patterns.matches(words).iter().next());
    first.and_then(|at| CLASSES.get(at)).map_or(ErrorClass::Program, |(class, _)| *class)
}

/// The class of a failure of a program that may have to be started anew, or is a shell: nothing is repeated.
pub(super) fn class_of_plain(words: &str) -> ErrorClass {
    let class = class_of(words);
    if class.may_retry() { ErrorClass::Program } else { class }
}

/// The failure with which a program's output ends, among those that the detector has seen: the last row with letters.
pub(super) fn failure_at_end(rows: &[String], seen: Option<&str>) -> Option<String> {
    let last = rows.iter().rev().find(|row| row.chars().any(char::is_alphanumeric))?;
    seen.filter(|error| !error.is_empty() && last.contains(error)).map(str::to_owned)
}

impl TerminalDriver {
    /// The next exchange gives a prompt to go on.
    pub(crate) fn try_again(&mut self) {
        self.tell_later(TRY_AGAIN);
    }

    /// The failure that an unattended program shows in its last row before it reads the next prompt.
    pub(super) fn plain_failure(&self, standing: &TerminalStatus, view: &TerminalView) -> Option<String> {
        let is_own = self.profile.kind == ProgramKind::Plain && !self.policy.attended;
        let above = view.rows.get(..usize::from(view.cursor.row)).unwrap_or_default();
        failure_at_end(above, standing.error.as_deref()).filter(|_| is_own)
    }

    /// The turn has ended by this failure; if it may pass, the next exchange gives a prompt to go on.
    pub(super) fn turn_failed(&mut self, words: &str) -> ModelFailure {
        let class = match self.profile.kind {
            ProgramKind::Agent => class_of(words),
            ProgramKind::Plain => class_of_plain(words),
        };
        if class.may_retry() {
            self.try_again();
        }
        let message = format!("`{}` has failed: {words}", self.policy.program);
        ModelFailure::new(class, self.redactor.redact(&message).into_owned())
    }
}
