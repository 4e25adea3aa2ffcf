//! What a judge is told.

use super::Inquiry;

/// Its instructions: the same for every goal.
pub(super) const fn system() -> &'static str {
    "You judge whether a goal is reached."
}

/// The question, with the evidence.
pub(super) fn question(inquiry: &Inquiry<'_>) -> String {
    format!("The condition: {}", inquiry.condition)
}
