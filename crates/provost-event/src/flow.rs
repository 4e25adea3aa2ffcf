//! Flows: work that is laid out beforehand, in steps that wait for each other.

use serde::{Deserialize, Serialize};

use crate::{Budget, Outcome, Priority, SessionId, StopHookPolicy, Timestamp, Verification};

/// The steps of a run without a root agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPolicy {
    /// What it is called.
    pub name: String,
    /// Its steps, in the order in which they were written; that they can be done in some order is checked before.
    pub steps: Vec<StepPolicy>,
}

/// One step of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPolicy {
    /// Its name, unique within the flow.
    pub name: String,
    /// The steps that must be done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The configured sub-agent that does it; one like the run's own agent if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it is to reach.
    pub goal: String,
    /// Who must agree before it is done, in order, besides those of its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_hooks: Vec<StopHookPolicy>,
    /// Attempts at it, the first included; at least 1.
    pub attempts_max: u32,
    /// Restarts in a row of an agent of it that fails; as many as that agent has anyway if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts_max: Option<u32>,
    /// What becomes of the flow when the last attempt has failed.
    #[serde(default)]
    pub on_failure: OnStepFailure,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// What it may spend of the run's budget, all attempts together.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// What becomes of a flow when a step has failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStepFailure {
    /// It fails: what is at work is stopped.
    #[default]
    Abort,
    /// The steps that need this one are skipped, the others go on.
    Skip,
    /// It rests until somebody has it go on; then the step is tried again.
    Ask,
}

/// An attempt at a step of a flow is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnded {
    /// The step's name.
    pub step: String,
    /// The agent that tried.
    pub child: SessionId,
    /// Which attempt it was, from 1; counted anew when somebody has had the flow go on.
    pub attempt: u32,
    /// What came of it.
    pub end: StepEnd,
}

/// What came of an attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepEnd {
    /// The step is done.
    Done {
        /// What its agent said last, for the steps that need it; the middle of a long text is left out.
        text: String,
        /// Whether anything but the agent has confirmed it.
        #[serde(flatten)]
        verification: Verification,
    },
    /// It is tried again.
    Again {
        /// How the attempt ended.
        outcome: Outcome,
        /// After this wait, in milliseconds.
        delay_ms: u64,
        /// When that is over by the wall clock.
        due: Timestamp,
    },
    /// It has failed.
    Failed {
        /// How the last attempt ended.
        outcome: Outcome,
        /// What becomes of the flow.
        then: OnStepFailure,
        /// The steps that need it, directly or not, and that are skipped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
    },
}
