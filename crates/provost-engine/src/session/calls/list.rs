//! The tool calls of one answer, in its order.

use std::collections::BTreeSet;

use provost_event::{CallId, Json, Seq};
use serde::{Deserialize, Serialize};

use super::approve::LateApproval;
use super::call::{CallStage, TrackedCall};

/// The tool calls of the last answer, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::session) struct AnswerCalls(pub(super) Vec<TrackedCall>);

impl AnswerCalls {
    pub(super) fn update(&mut self, id: &CallId, change: impl FnOnce(&mut TrackedCall)) {
        if let Some(call) = self.0.iter_mut().find(|call| call.id == *id) {
            change(call);
        }
    }

    pub(super) fn set_stage(&mut self, id: &CallId, stage: CallStage) {
        self.update(id, |call| call.stage = stage);
    }

    pub(super) fn set_suspended(&mut self, entry: Seq, is_suspended: bool) {
        for call in &mut self.0 {
            if let CallStage::Delegated { started, suspended } = &mut call.stage
                && *started == entry
            {
                *suspended = is_suspended;
            }
        }
    }

    /// Whether the last answer has none.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&self, id: &CallId) -> Option<&TrackedCall> {
        self.0.iter().find(|call| &call.id == id)
    }

    /// The running calls, with the entry that started each.
    pub(super) fn running(&self) -> impl Iterator<Item = (&TrackedCall, Seq)> {
        self.0.iter().filter_map(|call| Some((call, call.stage.running()?)))
    }

    /// The effects of the running calls.
    pub(in crate::session) fn running_effects(&self) -> impl Iterator<Item = Seq> {
        self.running().map(|(_, seq)| seq)
    }

    /// Whether a call is running.
    pub(in crate::session) fn is_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// Whether an agent works for one of them.
    pub(in crate::session) fn are_delegated(&self) -> bool {
        self.0.iter().any(|call| call.stage.is_delegated())
    }

    /// Whether every call has its result, and hooks have been called about it.
    pub(in crate::session) fn are_done(&self) -> bool {
        self.0.iter().all(|call| call.stage == CallStage::Done)
    }

    /// Calls without a result.
    pub(super) fn without_result(&self) -> Vec<TrackedCall> {
        self.0.iter().filter(|call| !call.stage.has_result()).cloned().collect()
    }

    /// The same by id, with tool and arguments.
    pub(in crate::session) fn unanswered(&self) -> impl Iterator<Item = (&CallId, &str, &Json)> {
        let open = self.0.iter().filter(|call| !call.stage.has_result());
        open.map(|call| (&call.id, call.tool.as_str(), &call.input))
    }

    /// The tool of the last call.
    pub(super) fn last_tool(&self) -> &str {
        self.0.last().map(|call| call.tool.as_str()).unwrap_or_default()
    }

    /// The timers of the open approval questions.
    pub(in crate::session) fn approval_timers(&self) -> BTreeSet<Seq> {
        self.0.iter().filter_map(|call| call.stage.approval_timer()).collect()
    }

    /// The calls that a sub-agent works for.
    pub(super) fn delegated(&self) -> Vec<TrackedCall> {
        self.0.iter().filter(|call| call.stage.is_delegated()).cloned().collect()
    }

    /// The call that this entry has requested an agent for.
    pub(super) fn delegated_by(&self, entry: Seq) -> Option<&TrackedCall> {
        let is_by =
            |stage: CallStage| matches!(stage, CallStage::Delegated { started, .. } if started == entry);
        self.0.iter().find(|call| is_by(call.stage))
    }

    /// The questions that expire with `timer`.
    pub(super) fn approving_until(&self, timer: Seq) -> Vec<LateApproval> {
        let late = self.0.iter().filter_map(|call| match call.stage {
            CallStage::Approving { asked, timer: found } if found == timer => {
                Some(LateApproval { asked, tool: call.tool.clone() })
            }
            _ => None,
        });
        late.collect()
    }

    /// Whether nothing can proceed before a suspended sub-agent does.
    pub(super) fn wait_for_sub_agents(&self) -> bool {
        let mut open = self.0.iter().map(|call| call.stage).filter(|stage| !stage.has_result());
        // A call that hasn't begun would conflict with the suspended ones.
        self.0.iter().any(|call| call.stage.is_suspended())
            && open.all(|stage| stage.is_suspended() || stage == CallStage::Pending)
    }
}
