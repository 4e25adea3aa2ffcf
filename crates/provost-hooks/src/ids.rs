//! Sessions as the scripts of other programs name them: many accept only letters, digits, `_` and `-`.

use provost_event::{HookContract, SessionId};

/// The name of a session in a contract: a UUID in those of other programs, always the same for a session.
pub(crate) fn session_name(contract: HookContract, session: SessionId) -> String {
    if contract.is_foreign() { uuid_of(&session.to_string()) } else { session.to_string() }
}

/// A text's hash in the form of a UUID.
pub(crate) fn uuid_of(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    // The digits of its version and its variant.
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}
