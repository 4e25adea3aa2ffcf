//! Texts of the log as evidence, without secrets. A judge usually has another provider than the agent's model, and
//! no provider may get another provider's keys.

use provost_event::{HookReport, Plan, PlanItem, PlanStatus};

use super::{ChangedFiles, FileHunks};
use crate::Redactor;

/// Minimum bytes of a text that a judge is shown, if it is shown the text.
const LEAST_BYTES: usize = 150;

/// Removes secrets from evidence. This happens before anything is cut, as half a secret isn't recognized.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clean<'a>(&'a Redactor);

impl<'a> Clean<'a> {
    pub(super) const fn new(redactor: &'a Redactor) -> Self {
        Self(redactor)
    }

    pub(super) fn text(self, text: &str) -> String {
        self.0.redact(text).into_owned()
    }

    /// The arguments of a call, usually JSON, in which secrets may be escaped.
    pub(super) fn arguments(self, arguments: &str) -> String {
        self.text(&self.0.redact_json(arguments))
    }

    pub(super) fn report(self, report: &HookReport) -> HookReport {
        let mut report = report.clone();
        for text in report.texts_mut() {
            *text = self.text(text);
        }
        report.hook = self.text(&report.hook);
        report
    }

    pub(super) fn open_steps(self, plan: Plan) -> Vec<PlanItem> {
        let open = plan.items.into_iter().filter(|step| step.status != PlanStatus::Done);
        open.map(|step| PlanItem { text: self.text(&step.text), status: step.status }).collect()
    }

    pub(super) fn files(self, files: ChangedFiles) -> ChangedFiles {
        let diffstat = files.diffstat.iter().map(|line| self.text(line)).collect();
        let clean =
            |file: FileHunks| FileHunks { path: self.text(&file.path), hunks: self.text(&file.hunks) };
        let hunks = files.hunks.into_iter().map(clean).collect();
        ChangedFiles { diffstat, hunks, ..files }
    }
}

/// The part of `text` that is shown even if there is little room.
pub(super) fn least(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LEAST_BYTES)).unwrap_or_default()
}
