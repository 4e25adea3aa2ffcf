//! A program's reports of its own state (OSC 7501). Any printed text may contain one, so it is only a claim.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use provost_event::{EvidenceSource, TerminalEvent};

use super::{Detector, evidence};
use crate::profile::ProgramKind;
use crate::signal::plain;

/// The last claim.
#[derive(Debug, Clone)]
pub(super) struct ActivityReport {
    pub(super) at: Duration,
    pub(super) state: ReportedActivity,
    /// `state=blocked kind=permission`
    pub(super) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportedActivity {
    Working,
    Blocked,
    Idle,
}

impl Detector {
    pub(super) fn claimed(&mut self, at: Duration, fields: &[(String, String)]) {
        // A program that reports its own state reads single keys. In line mode another program is in the
        // foreground: a file with such a sequence in it is being printed.
        let state = fields.iter().find(|(name, _)| name == "state").map(|(_, value)| value.as_str());
        let is_plain = self.profile.kind == ProgramKind::Plain;
        // The failure of a plain program only counts if it is the last that it reports before it ends.
        let is_failure = is_plain && state == Some("error");
        if !is_failure && self.kernel.is_some_and(|(_, sample)| sample.canonical == Some(true)) {
            self.turn.has_failed &= !is_plain;
            return;
        }
        let words: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let words = format!("OSC 7501 {}", words.join(" "));
        let claimed = match state {
            Some("working") => {
                self.turn.has_failed = false;
                ReportedActivity::Working
            }
            Some("blocked") => ReportedActivity::Blocked,
            Some("idle" | "done") => {
                self.turn.has_failed &= !is_plain;
                ReportedActivity::Idle
            }
            Some("error") => {
                let why = evidence(EvidenceSource::Signal, words.clone());
                let line = fields.iter().find_map(message_of).unwrap_or(words);
                self.turn.has_failed = self.turn.submitted || is_plain;
                return self.note(at, TerminalEvent::Error { line }, 70, why);
            }
            _ => {
                self.claim = None;
                return;
            }
        };
        self.claim = Some(ActivityReport { at, state: claimed, words });
    }
}

/// The message in a field; that of `msg` is base64.
fn message_of((name, value): &(String, String)) -> Option<String> {
    match name.as_str() {
        "message" | "reason" => Some(value.clone()),
        "msg" => {
            let text = String::from_utf8(BASE64.decode(value).ok()?).ok()?;
            Some(plain(&text)).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}
