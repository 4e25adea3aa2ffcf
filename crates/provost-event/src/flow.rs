//! Workflows: a DAG of steps.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Budget, Outcome, Priority, SessionId, StopHookPolicy, Timestamp, Verification};

/// A workflow: a run without a root agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPolicy {
    /// Its name.
    pub name: String,
    /// The file that it was read from, absolute; absent if it wasn't read from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Its steps, in the order of the file. The graph has been checked for cycles.
    pub steps: Vec<StepPolicy>,
}

impl FlowPolicy {
    /// A workflow of these steps that was read from no file. Their graph must have no cycles.
    #[must_use]
    pub fn new(name: impl Into<String>, steps: Vec<StepPolicy>) -> Self {
        Self { name: name.into(), file: None, steps }
    }
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepPolicy {
    /// Its name, unique within the workflow.
    pub name: String,
    /// The steps that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The configured sub-agent that performs it; a copy of the run's own agent if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its goal.
    pub goal: String,
    /// Stop hooks that must allow its end, in order, besides those of its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_hooks: Vec<StopHookPolicy>,
    /// Attempts at it, the first included; at least 1.
    pub attempts_max: u32,
    /// Maximum consecutive restarts of its agent after failures; the agent's own maximum if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts_max: Option<u32>,
    /// What happens to the workflow after the last attempt has failed.
    #[serde(default)]
    pub on_failure: OnStepFailure,
    /// Its priority.
    #[serde(default)]
    pub priority: Priority,
    /// Its share of the run's budget, for all attempts together.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

impl StepPolicy {
    /// A step that depends on no other, performed once by a copy of the run's own agent, with the run's whole budget.
    #[must_use]
    pub fn new(name: impl Into<String>, goal: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            needs: Vec::new(),
            agent: None,
            goal: goal.into(),
            stop_hooks: Vec::new(),
            attempts_max: 1,
            restarts_max: None,
            on_failure: OnStepFailure::default(),
            priority: Priority::default(),
            budget: Budget::default(),
        }
    }
}

/// What happens to a workflow after a step has failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnStepFailure {
    /// The workflow fails: running steps are stopped.
    #[default]
    Abort,
    /// The steps that depend on this one are skipped, the others continue.
    Skip,
    /// The workflow is suspended until it is resumed; then the step is retried.
    Ask,
}

/// An attempt at a workflow step has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepEnded {
    /// The step's name.
    pub step: String,
    /// The agent of this attempt.
    pub child: SessionId,
    /// The attempt, from 1; starts over when the workflow is resumed.
    pub attempt: u32,
    /// Its result.
    pub end: StepEnd,
}

/// The result of an attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepEnd {
    /// The step is done.
    Done {
        /// The agent's last message, for the steps that depend on this one; the middle of a long text is left out.
        text: String,
        /// Whether anything besides the agent has confirmed it.
        #[serde(flatten)]
        verification: Verification,
    },
    /// The step is retried.
    Again {
        /// The outcome of the attempt.
        outcome: Outcome,
        /// The wait before the retry, in milliseconds.
        delay_ms: u64,
        /// When the wait ends by the wall clock.
        due: Timestamp,
    },
    /// The step has failed.
    Failed {
        /// The outcome of the last attempt.
        outcome: Outcome,
        /// What happens to the workflow.
        then: OnStepFailure,
        /// The steps that depend on it, directly or not, and are skipped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
    },
}
