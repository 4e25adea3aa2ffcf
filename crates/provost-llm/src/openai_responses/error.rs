//! The formats of errors, OpenAI's and those of compatible servers.

use provost_event::{ErrorClass, ModelFailure};
use serde::Deserialize;

use crate::failure::{ErrorDetails, class_of, says_too_long};

/// An error: its fields, or only a message.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WireError {
    Fields { r#type: Option<String>, code: Option<Code>, message: Option<String> },
    Words(String),
}

/// A name, or an HTTP status as a number or in digits.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Code {
    Status(u16),
    Word(String),
}

impl WireError {
    /// The error in the common format.
    pub(super) fn said(self) -> ErrorDetails {
        let (kind, code, message) = match self {
            Self::Fields { r#type, code, message } => (r#type.unwrap_or_default(), code, message),
            Self::Words(message) => (String::new(), None, Some(message)),
        };
        let (word, status) = match code {
            None => (String::new(), None),
            Some(Code::Status(status)) => (status.to_string(), Some(status)),
            Some(Code::Word(word)) => (word.clone(), word.parse::<u16>().ok()),
        };
        let by_status = status.filter(|status| *status >= 400).map(|status| class_of(status, None));
        let class = class_of_word(&word).or_else(|| class_of_word(&kind)).or(by_status);
        let own = if word.is_empty() { kind } else { word };
        let message = message.filter(|message| !message.trim().is_empty()).unwrap_or(own);
        let class = match class {
            None | Some(ErrorClass::InvalidRequest | ErrorClass::Server) if says_too_long(&message) => {
                Some(ErrorClass::ContextTooLong)
            }
            class => class,
        };
        let may_wait = class.is_none_or(ErrorClass::may_retry);
        let retry_after_ms = if may_wait { wait_ms(&message) } else { None };
        ErrorDetails { class, message, request_id: None, retry_after_ms }
    }

    /// The failure of an answer that had begun.
    pub(super) fn failure(self) -> ModelFailure {
        let ErrorDetails { class, message, retry_after_ms, .. } = self.said();
        let class = class.unwrap_or(ErrorClass::Server);
        let message =
            if message.is_empty() { "the provider failed and doesn't say why".to_owned() } else { message };
        ModelFailure { retry_after_ms, ..ModelFailure::new(class, message) }
    }
}

/// The class of an error's code or type.
fn class_of_word(word: &str) -> Option<ErrorClass> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" => ErrorClass::ContextTooLong,
        "usage_not_included"
        | "permission_error"
        | "unsupported_country_region_territory"
        | "PermissionDeniedError" => ErrorClass::Forbidden,
        "rate_limit_exceeded" | "rate_limit_error" | "RateLimitError" => ErrorClass::RateLimited,
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => ErrorClass::QuotaUsedUp,
        "server_is_overloaded" | "slow_down" | "overloaded" | "overloaded_error" => ErrorClass::Overloaded,
        "invalid_api_key" | "authentication_error" | "AuthenticationError" => ErrorClass::Unauthorized,
        "model_not_found" | "not_found_error" | "NotFoundError" => ErrorClass::NotFound,
        "content_filter" | "content_policy_violation" | "cyber_policy" => ErrorClass::Refusal,
        "server_error" | "internal_error" | "api_error" | "InternalServerError" => ErrorClass::Server,
        "invalid_request_error" | "invalid_prompt" | "unsupported_value" | "BadRequestError" => {
            ErrorClass::InvalidRequest
        }
        _ => return None,
    })
}

/// The requested wait in the message, which is its only place in the middle of a stream: `try again in 1.898s`,
/// `28ms`, `6m0s`.
fn wait_ms(message: &str) -> Option<u64> {
    let message = message.to_ascii_lowercase();
    let mut rest = message.split_once("try again in ")?.1;
    let mut ms = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let Ok(number) = number.parse::<f64>() else { return ms };
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        let unit_s = match unit {
            "ms" => 0.001,
            "s" | "second" | "seconds" => 1.0,
            "m" | "minute" | "minutes" => 60.0,
            "h" => 3600.0,
            _ => return ms,
        };
        let wait = std::time::Duration::try_from_secs_f64(number * unit_s).ok()?;
        ms = Some(ms.unwrap_or(0_u64).saturating_add(u64::try_from(wait.as_millis()).ok()?));
        rest = next;
    }
}

/// The error whose fields are in the event itself, with `type` only marking it as an error.
pub(super) fn flat(data: &str) -> WireError {
    #[derive(Deserialize)]
    struct Event {
        code: Option<Code>,
        message: Option<String>,
    }
    match serde_json::from_str(data) {
        Ok(Event { code, message }) => WireError::Fields { r#type: None, code, message },
        Err(_) => WireError::Words(String::new()),
    }
}

/// Parses an error's body: `{"error": …}`, the error alone, or a web framework's `{"detail": …}`.
pub(super) fn read_error(body: &str) -> Option<ErrorDetails> {
    #[derive(Deserialize)]
    struct Body {
        error: Option<WireError>,
        r#type: Option<String>,
        code: Option<Code>,
        message: Option<String>,
        detail: Option<Detail>,
    }
    let body: Body = serde_json::from_str(body).ok()?;
    let error = match (body.error, body.detail) {
        (Some(WireError::Words(words)), _) => {
            WireError::Fields { r#type: body.r#type, code: body.code, message: Some(words) }
        }
        (Some(error), _) => error,
        (None, Some(detail)) => WireError::Words(detail.words()),
        (None, None) => WireError::Fields { r#type: body.r#type, code: body.code, message: body.message },
    };
    Some(error.said()).filter(|said| !said.message.is_empty())
}

/// `FastAPI`'s error for an invalid request.
#[derive(Deserialize)]
#[serde(untagged)]
enum Detail {
    Words(String),
    Fields(Vec<Field>),
}

#[derive(Deserialize)]
struct Field {
    msg: String,
    #[serde(default)]
    loc: Vec<serde_json::Value>,
}

impl Detail {
    fn words(self) -> String {
        let step = |step: &serde_json::Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
        let place = |field: &Field| field.loc.iter().map(step).collect::<Vec<_>>().join(".");
        match self {
            Self::Words(words) => words,
            Self::Fields(fields) => fields
                .iter()
                .map(|field| format!("{}: {}", place(field), field.msg))
                .collect::<Vec<_>>()
                .join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wait_ms;

    #[test]
    fn a_wish_to_wait_is_found_in_words() {
        for (message, expected) in [
            ("Rate limit reached. Please try again in 1.898s. Visit …", Some(1898)),
            ("Please try again in 28ms.", Some(28)),
            ("Please try again in 6m0s.", Some(360_000)),
            ("Try again in 35 seconds", Some(35_000)),
            ("Please try again in a moment", None),
            ("Please try again in 5", None),
            ("Please try again in 1e400 s", None),
            ("slow down", None),
        ] {
            assert_eq!(wait_ms(message), expected, "{message}");
        }
    }
}
