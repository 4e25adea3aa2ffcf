//! A session's log in the form of the transcripts that existing scripts read.

mod claude;
mod codex;
mod tools;

use jiff::tz::TimeZone;
use provost_event::{HookContract, SessionId, Timestamp};
use provost_harness::{HookTranscript, LogTranscript};

use claude::ClaudeTranscript;
use codex::CodexTranscript;

/// The transcript of `session` that hooks of `contract` read, from its first entry on.
pub(crate) fn transcript(contract: HookContract, session: SessionId) -> Box<dyn HookTranscript> {
    match contract {
        HookContract::Provost => Box::new(LogTranscript),
        HookContract::Claude => Box::new(ClaudeTranscript::new(session)),
        HookContract::Codex => Box::new(CodexTranscript::new(session)),
    }
}

/// A time as scripts parse it: UTC, with milliseconds.
fn time(at: Timestamp) -> String {
    let at = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let at = at.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
