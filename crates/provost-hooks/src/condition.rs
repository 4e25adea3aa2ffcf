//! Conditions: a permission pattern that a call must match besides the matcher.

use provost_engine::Pattern;

use crate::point::rules;
use crate::question::HookQuery;

/// Whether the call meets `condition`. At a hook point that isn't about one call no condition holds.
///
/// # Errors
/// When the condition is invalid, in words.
pub(crate) fn holds(condition: &str, asked: HookQuery<'_>) -> Result<bool, String> {
    let Some(call) = asked.call().filter(|_| rules(asked.point).is_about_a_call) else { return Ok(false) };
    let condition = asked.located(condition);
    Ok(read(&condition)?.touches(&call.tool, &call.input, &asked.question.workspace))
}

/// Parses a condition from the settings.
///
/// # Errors
/// The problem, in words.
pub(crate) fn read(condition: &str) -> Result<Pattern, String> {
    Pattern::parse(condition).map_err(|error| format!("its `if` can't be read: {error}"))
}
