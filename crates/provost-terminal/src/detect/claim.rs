//! What a program says of itself (OSC 7501). Anything that is printed can say it, so it is a claim.

use std::time::Duration;

use provost_event::{EvidenceSource, TerminalEvent};

use super::{Detector, evidence};

/// The last thing that was claimed.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) at: Duration,
    pub(super) state: Claimed,
    /// `state=blocked kind=permission`
    pub(super) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    Working,
    Blocked,
    Idle,
}

impl Detector {
    pub(super) fn claimed(&mut self, at: Duration, fields: &[(String, String)]) {
        // Who reports its own state takes each key by itself. While the terminal works by the line something else is
        // in front: a file with such a sequence in it is being printed.
        if self.kernel.is_some_and(|(_, sample)| sample.canonical == Some(true)) {
            return;
        }
        let state = fields.iter().find(|(name, _)| name == "state").map(|(_, value)| value.as_str());
        let words: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let words = format!("OSC 7501 {}", words.join(" "));
        let claimed = match state {
            Some("working") => Claimed::Working,
            Some("blocked") => Claimed::Blocked,
            Some("idle" | "done") => Claimed::Idle,
            Some("error") => {
                let why = evidence(EvidenceSource::Signal, words.clone());
                return self.note(at, TerminalEvent::Error { line: words }, 70, why);
            }
            _ => {
                self.claim = None;
                return;
            }
        };
        self.claim = Some(Claim { at, state: claimed, words });
    }

    /// What is claimed since the last answer, if anything.
    pub(super) fn claim_of(&self, state: Claimed) -> Option<&Claim> {
        let since = self.answered.as_ref().map_or(Duration::ZERO, |answered| answered.at);
        self.claim.as_ref().filter(|claim| claim.state == state && claim.at >= since)
    }
}
