//! How long a finding has to last before it counts, and when one that looks like the one just answered is new.

use std::time::Duration;

use super::claim::ReportedActivity;
use super::finding::{Finding, Kind, Takes};
use super::read::FrameReader;
use crate::profile::ProgramKind;

/// A question that stays on the screen after its answer counts as repeated only after this long: an agent takes a
/// while to remove it.
const ANSWERED_STAYS: Duration = Duration::from_millis(1200);
/// The same for prompts that take single keys, without output since: not every key is echoed.
const ANSWERED_SILENT: Duration = Duration::from_millis(400);
/// The same for all other prompts without output since: the program may not have read the answer yet.
const ANSWERED_UNSEEN: Duration = Duration::from_millis(2500);
/// After a command of the program itself (`/help`) a composer counts as ready again after this long; after a
/// prompt once signs of work were seen, or after `submit_ms` of the profile.
const COMMAND_TAKES: Duration = Duration::from_millis(1000);
/// How long a composer has to last then, without signs of work.
const SUBMIT_SILENT: Duration = Duration::from_millis(1500);
/// How long a composer has to last after a prompt for which the program has called no model: its first call may come late.
const CALL_COMES: Duration = Duration::from_secs(20);
/// How long a composer has to last after an answer outside of a turn (a trust dialog at the start).
const ANSWER_TAKES: Duration = Duration::from_millis(500);
/// How long an agent's first screen has to last: dialogs may follow it.
const START_TAKES: Duration = Duration::from_millis(1000);
/// How many transcript changes end that wait.
const TURN_GROWTHS: u32 = 2;

impl FrameReader<'_> {
    /// How long a finding has to last.
    pub(super) fn must_stand(&self, finding: &Finding) -> Duration {
        let is_said = self.claim_of(ReportedActivity::Idle).is_some();
        if finding.kind == Kind::Idle && self.has_called_no_model() {
            return finding.stable.max(CALL_COMES);
        }
        if finding.kind != Kind::Idle || finding.is_prompt || is_said || self.turn.worked {
            return finding.stable;
        }
        let least = match (self.turn.submitted, self.answered) {
            (true, _) if self.turn.is_stopped => ANSWER_TAKES,
            (true, _) if self.turn.is_command => COMMAND_TAKES,
            (true, _) => SUBMIT_SILENT,
            (false, Some(_)) => ANSWER_TAKES,
            (false, None) => START_TAKES,
        };
        finding.stable.max(least)
    }

    /// Whether a prompt was submitted for which the program has called no model and shows no work: nothing was done. Only
    /// known where its calls are counted.
    pub(super) fn has_called_no_model(&self) -> bool {
        let calls = self.kernel.and_then(|(_, sample)| sample.model_calls);
        let is_told = self.turn.submitted && !self.turn.is_command && !self.turn.is_stopped;
        let has_shown = self.turn.has_shown_work || self.claim_of(ReportedActivity::Idle).is_some();
        is_told && !has_shown && calls.is_some() && calls == self.turn.calls_before
    }

    /// When a finding that looks like the one just answered counts as new.
    pub(super) fn not_before(&self, finding: &Finding) -> Duration {
        let Some(answered) = self.answered else { return Duration::ZERO };
        let is_same = answered.key == finding.key && !answered.has_vanished;
        let is_silent = self.clock.output.is_none_or(|output| output < answered.at);
        match (finding.kind, self.profile.kind) {
            (Kind::Working, _) => Duration::ZERO,
            (Kind::Idle, _) if finding.is_prompt => Duration::ZERO,
            (Kind::Idle, _) if self.turn.worked || self.claim_of(ReportedActivity::Idle).is_some() => {
                Duration::ZERO
            }
            // The prompt's echo and more text: the turn has begun, though no rule shows that.
            (Kind::Idle, _) if self.turn.growths >= TURN_GROWTHS => Duration::ZERO,
            (Kind::Idle, _) if self.turn.submitted && !self.turn.is_stopped && !self.turn.is_command => {
                answered.at + Duration::from_millis(self.profile.submit_ms)
            }
            (Kind::Idle, _) => Duration::ZERO,
            (_, ProgramKind::Agent) if is_same => answered.at + ANSWERED_STAYS,
            (_, ProgramKind::Plain) if is_silent && finding.takes == Takes::EveryKey => {
                answered.at + ANSWERED_SILENT
            }
            (_, ProgramKind::Plain) if is_silent => answered.at + ANSWERED_UNSEEN,
            (_, ProgramKind::Plain) if is_same && finding.takes == Takes::Keys => {
                answered.at + ANSWERED_STAYS
            }
            _ => Duration::ZERO,
        }
    }
}
