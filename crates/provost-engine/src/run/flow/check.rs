//! Whether a workflow is valid.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use provost_event::FlowPolicy;

use super::StepNumber;

/// Why a workflow is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowProblem {
    /// It has no steps.
    #[error("the workflow has no steps")]
    NoSteps,
    /// Two steps have the same name.
    #[error("there are two steps named `{name}`")]
    DoubledStep {
        /// The second.
        step: StepNumber,
        /// The name.
        name: String,
    },
    /// A step's name is empty.
    #[error("step {} has no name", step + 1)]
    Nameless {
        /// Which.
        step: StepNumber,
    },
    /// A step's goal is empty.
    #[error("step `{name}` has no goal")]
    NoGoal {
        /// Which.
        step: StepNumber,
        /// Its name.
        name: String,
    },
    /// A step has no attempts.
    #[error("step `{name}` is never tried: it needs at least one attempt")]
    NoAttempts {
        /// Which.
        step: StepNumber,
        /// Its name.
        name: String,
    },
    /// A step depends on one that doesn't exist.
    #[error("step `{name}` needs `{need}`, and there is no such step")]
    UnknownNeed {
        /// Which.
        step: StepNumber,
        /// Its name.
        name: String,
        /// The dependency.
        need: String,
    },
    /// A step names a sub-agent that doesn't exist.
    #[error("step `{name}` is for agent `{agent}`, and there is no such agent")]
    UnknownAgent {
        /// Which.
        step: StepNumber,
        /// Its name.
        name: String,
        /// The agent.
        agent: String,
    },
    /// The dependencies form a cycle.
    #[error("the steps need each other: {}", names.join(" → "))]
    Cycle {
        /// The first of them.
        step: StepNumber,
        /// Each step, followed by the one that it depends on; the first is repeated at the end.
        names: Vec<String>,
    },
}

/// Returns all problems of `flow` with sub-agents of these names; empty if it is valid. Cycles are looked for only
/// if there are no other problems, and only the first is reported.
#[must_use]
pub fn check_flow(flow: &FlowPolicy, agents: &[&str]) -> Vec<FlowProblem> {
    if flow.steps.is_empty() {
        return vec![FlowProblem::NoSteps];
    }
    let mut names = BTreeMap::new();
    let mut problems = Vec::new();
    for (step, policy) in flow.steps.iter().enumerate() {
        let name = policy.name.clone();
        if name.trim().is_empty() {
            problems.push(FlowProblem::Nameless { step });
            continue;
        }
        match names.entry(name.clone()) {
            Entry::Vacant(place) => drop(place.insert(step)),
            Entry::Occupied(_) => problems.push(FlowProblem::DoubledStep { step, name }),
        }
    }
    for (step, policy) in flow.steps.iter().enumerate() {
        let name = || policy.name.clone();
        if policy.goal.trim().is_empty() {
            problems.push(FlowProblem::NoGoal { step, name: name() });
        }
        if policy.attempts_max == 0 {
            problems.push(FlowProblem::NoAttempts { step, name: name() });
        }
        let unknown = policy.needs.iter().filter(|need| !names.contains_key(*need));
        problems.extend(unknown.map(|need| FlowProblem::UnknownNeed {
            step,
            name: name(),
            need: need.clone(),
        }));
        let agent = policy.agent.iter().filter(|name| !agents.contains(&name.as_str()));
        problems.extend(agent.map(|agent| FlowProblem::UnknownAgent {
            step,
            name: name(),
            agent: agent.clone(),
        }));
    }
    if problems.is_empty() {
        problems.extend(cycle(flow, &names));
    }
    problems
}

/// The first cycle in the dependencies.
fn cycle(flow: &FlowPolicy, names: &BTreeMap<String, StepNumber>) -> Option<FlowProblem> {
    let needs = |step: StepNumber| {
        let needs = flow.steps.get(step).map(|step| step.needs.as_slice()).unwrap_or_default();
        needs.iter().filter_map(|need| names.get(need).copied())
    };
    let mut is_clear = BTreeSet::new();
    for first in 0..flow.steps.len() {
        // The path from the first step to the current one, each with the dependencies still to visit.
        let mut way = vec![(first, needs(first).collect::<Vec<_>>())];
        while let Some((step, left)) = way.last_mut() {
            let Some(need) = left.pop() else {
                is_clear.insert(*step);
                way.pop();
                continue;
            };
            if let Some(begin) = way.iter().position(|(step, _)| *step == need) {
                let cycle = way.iter().skip(begin).map(|(step, _)| *step).chain([need]);
                let name = |step: StepNumber| flow.steps.get(step).map(|step| step.name.clone());
                return Some(FlowProblem::Cycle { step: need, names: cycle.filter_map(name).collect() });
            }
            if !is_clear.contains(&need) {
                way.push((need, needs(need).collect()));
            }
        }
    }
    None
}
