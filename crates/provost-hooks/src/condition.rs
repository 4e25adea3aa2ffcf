//! Conditions: a permission pattern that a call must meet besides the matcher.

use provost_engine::Pattern;

use crate::moment::is_about_a_call;
use crate::question::Asked;

/// Whether the call that is asked about meets `condition`. At a moment that isn't about one call none does.
///
/// # Errors
/// When the condition can't be read, in words.
pub(crate) fn holds(condition: &str, asked: Asked<'_>) -> Result<bool, String> {
    let Some(call) = asked.call().filter(|_| is_about_a_call(asked.moment)) else { return Ok(false) };
    Ok(read(condition)?.touches(&call.tool, &call.input, &asked.question.workspace))
}

/// Reads a condition as it stands in settings.
///
/// # Errors
/// What can't be read about it, in words.
pub(crate) fn read(condition: &str) -> Result<Pattern, String> {
    Pattern::parse(condition).map_err(|error| format!("its `if` can't be read: {error}"))
}
