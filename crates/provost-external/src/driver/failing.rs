//! An agent's own failure, read from what it shows: its class decides whether the prompt is given again.

use std::sync::LazyLock;

use provost_event::{ErrorClass, ModelFailure};
use regex::RegexSet;

use super::{OwnWords, TerminalDriver};

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
        r"(?i)\b401\b|unauthori[sz]ed|(?:incorrect|invalid|missing|wrong|expired) (?:api.?key|token|credentials?)|invalid_api_key|api key (?:not valid|not found|is missing)|AuthenticationError|not able to authenticate|authentication (?:failed|error)|please run /login|token has expired",
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

impl TerminalDriver {
    /// The next exchange gives a prompt to go on.
    pub(crate) fn try_again(&mut self) {
        self.own_words = Some(OwnWords { text: TRY_AGAIN.to_owned(), unless_worked: None });
    }

    /// The turn has ended by this failure; if it may pass, the next exchange gives a prompt to go on.
    pub(super) fn turn_failed(&mut self, words: &str) -> ModelFailure {
        let class = class_of(words);
        if class.may_retry() {
            self.try_again();
        }
        let message = format!("`{}` has failed: {words}", self.policy.program);
        ModelFailure::new(class, self.redactor.redact(&message).into_owned())
    }
}
