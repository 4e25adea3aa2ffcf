//! The meaning of a provider's error, independent of the provider.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use provost_event::{ErrorClass, ModelFailure, Timestamp};
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};

/// A provider's error in its own format, from a response's body or the middle of a stream.
#[derive(Debug, Default)]
pub(crate) struct ErrorDetails {
    /// The class of the provider's error type, if that is known.
    pub(crate) class: Option<ErrorClass>,
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
    /// The requested wait in milliseconds, if the body has it.
    pub(crate) retry_after_ms: Option<u64>,
}

/// Parses an error's body; `None` if it isn't in the provider's format.
pub(crate) type ReadError = fn(&str) -> Option<ErrorDetails>;

/// Maximum characters of the provider's request id.
const REQUEST_ID_CHARS_MAX: usize = 200;

/// Phrases of providers for a request that exceeds the model's window.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "context length",
    "context limit",
    "context size",
    "context window",
    "contextwindowexceeded",
    "maximum context",
    "maximum prompt length",
    "model token limit",
    "too many input tokens",
    "exceeds max length",
    "exceeds the maximum number of tokens",
    "but model only supports up to",
    "request payload size exceeds the limit",
    "reduce the length of the messages",
];

/// Whether an error means that the conversation no longer fits.
pub(crate) fn says_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    TOO_LONG.iter().any(|words| message.contains(words))
}

/// Phrases of providers for used-up credit, which some report as invalid requests.
const QUOTA_USED_UP: &[&str] = &["credit balance is too low", "insufficient balance", "insufficient credit"];

/// Whether an error means that the credit is used up.
pub(crate) fn says_quota_used_up(message: &str) -> bool {
    let message = message.to_lowercase();
    QUOTA_USED_UP.iter().any(|words| message.contains(words))
}

/// Phrases of providers for a limit of a day's requests or tokens, and the abbreviations of such limits.
const DAILY: &[&str] = &[
    "per day",
    "per-day",
    "perday",
    "daily limit",
    "daily quota",
    "daily request",
    "daily token",
    "daily rate",
];
const DAILY_SHORT: &[&str] = &["rpd", "tpd"];
/// The wait until a day's limit is asked about again where the provider names none.
const RENEWAL_MS: u64 = 300_000;

/// Whether a rate limit is one of a day, which waiting for seconds doesn't help.
pub(crate) fn says_daily(message: &str) -> bool {
    let message = message.to_lowercase();
    let mut words = message.split(|c: char| !c.is_alphanumeric());
    let is_shorter =
        ["per minute", "per min", "per second", "(rpm)", "(tpm)"].iter().any(|one| message.contains(one));
    !is_shorter
        && (DAILY.iter().any(|one| message.contains(one)) || words.any(|word| DAILY_SHORT.contains(&word)))
}

/// The wait in a text such as "Please try again in 7m12.5s", in milliseconds; 5 minutes without one.
pub(crate) fn wait_said(message: &str) -> u64 {
    let said = message.split_once("try again in ").map(|(_, said)| said).unwrap_or_default();
    let said = said.split_whitespace().next().unwrap_or_default();
    let mut ms = 0.0;
    let mut rest = said;
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') {
        let (number, unit) = rest.split_at(end);
        let Ok(number) = number.parse::<f64>() else { break };
        let units = [("ms", 1.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1_000.0)];
        let Some((name, each)) = units.into_iter().find(|(name, _)| unit.starts_with(name)) else { break };
        ms += number * each;
        rest = unit.strip_prefix(name).unwrap_or_default();
    }
    let wait = Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default();
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)).filter(|ms| *ms > 0).unwrap_or(RENEWAL_MS)
}

/// The class of an HTTP error: by the status if it is specific, else by the provider's own error.
pub(crate) fn class_of(status: u16, said: Option<ErrorClass>) -> ErrorClass {
    match status {
        401 => ErrorClass::Unauthorized,
        402 => ErrorClass::QuotaUsedUp,
        403 => said.filter(|class| *class == ErrorClass::QuotaUsedUp).unwrap_or(ErrorClass::Forbidden),
        404 => ErrorClass::NotFound,
        408 | 409 => ErrorClass::Server,
        413 => ErrorClass::ContextTooLong,
        429 => said.filter(|class| *class == ErrorClass::QuotaUsedUp).unwrap_or(ErrorClass::RateLimited),
        529 => ErrorClass::Overloaded,
        200..=299 => said.unwrap_or(ErrorClass::MalformedResponse),
        300..=399 => ErrorClass::Redirected,
        500.. => said.filter(|class| class.may_retry()).unwrap_or(ErrorClass::Server),
        _ => said.unwrap_or(ErrorClass::InvalidRequest),
    }
}

/// The wait that a provider requests: `retry-after-ms`, or `Retry-After` as seconds or as a date (RFC 9110,
/// 10.2.3). A date in the past means no wait. `None` if there is no valid header.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|value| value.parse().ok()) {
        return Some(ms);
    }
    let value = text(RETRY_AFTER.as_str())?;
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    if let Some(wait) = seconds {
        return Some(ms(wait));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let since = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Timestamp(ms(since)).since_ms(now))
}

/// The error and what caused it, from the outside in.
pub(crate) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(Some(error as &(dyn StdError + 'static)), |&error| error.source())
}

/// The message of the innermost cause. The outer ones contain the address with all its parts.
pub(crate) fn cause_of(error: &reqwest::Error) -> String {
    causes(error).skip(1).last().map_or_else(|| "unknown cause".to_owned(), ToString::to_string)
}

/// A call that ended because nothing arrived for a time, with the words for what was missing.
pub(crate) fn stalled((class, what, after_ms): (ErrorClass, &str, u64)) -> ModelFailure {
    let mut message = format!("{what} for ");
    // Writing to a String can't fail.
    let _ = if after_ms.is_multiple_of(1000) {
        write!(message, "{} s", after_ms / 1000)
    } else {
        write!(message, "{after_ms} ms")
    };
    ModelFailure::new(class, message)
}

/// The provider's request id.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let value: &HeaderValue = headers.get("request-id").or_else(|| headers.get("x-request-id"))?;
    value.to_str().ok().map(|id| shorten(id, REQUEST_ID_CHARS_MAX))
}

/// The first `chars_max` characters of `text`, with a mark if it was cut.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// `text` with every run of white space replaced by one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use provost_event::Timestamp;
    use reqwest::header::HeaderMap;

    use super::{retry_after_ms, shorten};

    #[track_caller]
    fn check(name: &'static str, value: &str, expected: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        // Sun, 06 Nov 1994 08:49:37 GMT
        assert_eq!(retry_after_ms(&headers, Timestamp(784_111_777_000)), expected, "{name}: {value}");
    }

    #[test]
    fn a_wish_to_wait_is_read_in_every_form() {
        check("retry-after", "7", Some(7000));
        check("retry-after", " 0 ", Some(0));
        check("retry-after", "1.5", Some(1500));
        check("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000));
        check("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0));
        check("retry-after-ms", "250", Some(250));
    }

    #[test]
    fn a_wish_that_makes_no_sense_is_none() {
        for value in ["", "-1", "soon", "NaN", "inf", "1e300"] {
            check("retry-after", value, None);
        }
    }

    #[test]
    fn a_text_is_shortened_between_characters() {
        assert_eq!(shorten("grün", 4), "grün");
        assert_eq!(shorten("grüne", 3), "grü…");
        assert_eq!(shorten("x", 0), "…");
    }
}
