//! Reading a verdict out of a model's answer.

use provost_event::{Confidence, SupervisorError, SupervisorVerdict};
use serde::Deserialize;

/// Characters of an answer that is no verdict which are kept.
const RAW_CHARS_MAX: usize = 500;

#[derive(Deserialize)]
struct Raw {
    achieved: bool,
    reasoning: String,
    #[serde(default)]
    confidence: f64,
    #[serde(default)]
    suggestions: Vec<String>,
}

/// The verdict in `answer`.
///
/// # Errors
/// [`SupervisorError::Parse`] with the beginning of what was said.
pub fn parse_verdict(answer: &str) -> Result<SupervisorVerdict, SupervisorError> {
    let raw: Raw = serde_json::from_str(answer.trim())
        .map_err(|_| SupervisorError::Parse(answer.chars().take(RAW_CHARS_MAX).collect()))?;
    let Raw { achieved, reasoning, confidence, suggestions } = raw;
    Ok(SupervisorVerdict { achieved, reasoning, confidence: Confidence::of(confidence), suggestions })
}
