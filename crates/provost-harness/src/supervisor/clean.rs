//! Texts of the log as evidence: without secrets. A judge is mostly another provider's model than the agent's, and keys
//! are nobody's business but their own provider's.

use provost_event::{Plan, PlanItem, PlanStatus, StopHookVerdict, StopReport};

use super::ChangedFiles;
use crate::Redactor;

/// Bytes of a text that a judge is shown at the least, if it is shown the text.
const LEAST_BYTES: usize = 150;

/// Takes secrets out of what becomes evidence. It comes before anything is cut, for half a secret isn't known for one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clean<'a>(&'a Redactor);

impl<'a> Clean<'a> {
    pub(super) const fn new(redactor: &'a Redactor) -> Self {
        Self(redactor)
    }

    pub(super) fn text(self, text: &str) -> String {
        self.0.redact(text).into_owned()
    }

    /// Arguments of a call, which are mostly JSON, in which secrets may be written in other ways.
    pub(super) fn arguments(self, arguments: &str) -> String {
        self.text(&self.0.redact_json(arguments))
    }

    pub(super) fn report(self, report: &StopReport) -> StopReport {
        let verdict = match &report.verdict {
            StopHookVerdict::Allow => StopHookVerdict::Allow,
            StopHookVerdict::Block(reason) => StopHookVerdict::Block(self.text(reason)),
            StopHookVerdict::Halt(reason) => StopHookVerdict::Halt(self.text(reason)),
            StopHookVerdict::Error(reason) => StopHookVerdict::Error(self.text(reason)),
            StopHookVerdict::Broken(reason) => StopHookVerdict::Broken(self.text(reason)),
            StopHookVerdict::TimedOut(ms) => StopHookVerdict::TimedOut(*ms),
        };
        let note = report.note.as_deref().map(|note| self.text(note));
        StopReport { name: self.text(&report.name), verdict, duration_ms: report.duration_ms, note }
    }

    pub(super) fn open_steps(self, plan: Plan) -> Vec<PlanItem> {
        let open = plan.items.into_iter().filter(|step| step.status != PlanStatus::Done);
        open.map(|step| PlanItem { text: self.text(&step.text), status: step.status }).collect()
    }

    pub(super) fn files(self, files: ChangedFiles) -> ChangedFiles {
        let diffstat = files.diffstat.iter().map(|line| self.text(line)).collect();
        ChangedFiles { diffstat, ..files }
    }
}

/// The part of `text` that is shown even where there is little room.
pub(super) fn least(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LEAST_BYTES)).unwrap_or_default()
}
