//! The steps of a workflow: which of them can begin, and what follows when an attempt ends.

mod check;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    Dimension, Elapsed, FlowPolicy, LimitOwner, OnStepFailure, Outcome, Priority, StepEnd, StepEnded,
    Timestamp, Verdict, Verification,
};
use serde::{Deserialize, Serialize};

pub use check::{FlowProblem, check_flow};

use super::AgentNumber;
use crate::decision_time::DecisionTime;
use crate::retry::{RetryTracker, retry_delay_ms};

/// Maximum bytes of a step's final text that are kept for the steps that depend on it.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// The index of a step in its workflow, from 0.
pub type StepNumber = usize;

/// The status of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepStatus {
    /// Its dependencies aren't done.
    Waiting,
    /// It can begin.
    Ready,
    /// This agent works on it, or is queued for a slot.
    AtWork(AgentNumber),
    /// It has failed, and is retried at this time.
    Later(StepWait),
    /// It is done.
    Done,
    /// It has failed for good.
    Failed(Outcome),
    /// It has failed, and a person must decide how to continue.
    Asks(Outcome),
    /// One of its dependencies, direct or not, has failed.
    Skipped,
}

/// The wait before a step is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepWait {
    /// Its end by the run's elapsed time, which counts.
    pub ready: Elapsed,
    /// Its end by the wall clock, for display.
    pub due: Timestamp,
}

/// The end of an attempt at a step.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// The outcome of its agent.
    pub outcome: &'a Outcome,
    /// The final text of its agent.
    pub text: &'a str,
    /// When it ended.
    pub at: Timestamp,
    /// Random bits for the wait before the next attempt.
    pub entropy: u64,
}

/// The steps of a workflow, rebuilt from its run's log. A step is ready when all its dependencies are done. Each
/// change takes time logarithmic in the number of steps, plus linear in the number of dependents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTracker {
    steps: Vec<FlowStepState>,
    by_name: BTreeMap<String, StepNumber>,
    ready: BTreeSet<(Reverse<Priority>, StepNumber)>,
    later: BTreeSet<(StepWait, StepNumber)>,
    asks: BTreeSet<StepNumber>,
    /// Steps that are neither done nor skipped nor failed for good.
    open: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FlowStepState {
    name: String,
    needs: Vec<StepNumber>,
    needed_by: Vec<StepNumber>,
    /// The number of entries in `needs` that aren't done.
    missing: usize,
    /// The number of entries in `needed_by` that may still read its text.
    readers: usize,
    priority: Priority,
    then: OnStepFailure,
    standing: StepStatus,
    retries: RetryTracker,
    /// The agents that have attempted it since it was begun, or since the workflow was resumed.
    attempts: Vec<AgentNumber>,
    text: String,
    /// What has verified that it is done; nothing while it isn't.
    verification: Verification,
}

/// The agent number under which a step's own [`RetryTracker`] counts.
const ITSELF: AgentNumber = 0;

impl StepTracker {
    /// The steps of `flow`, none begun. A step with an unknown dependency never becomes ready; [`check_flow`]
    /// reports it.
    #[must_use]
    pub fn new(flow: &FlowPolicy) -> Self {
        let numbered = flow.steps.iter().enumerate();
        let by_name = numbered.map(|(number, step)| (step.name.clone(), number)).collect::<BTreeMap<_, _>>();
        let step = |policy: &provost_event::StepPolicy| {
            let needs = policy.needs.iter().filter_map(|need| by_name.get(need).copied());
            FlowStepState {
                name: policy.name.clone(),
                needs: needs.collect::<BTreeSet<_>>().into_iter().collect(),
                needed_by: Vec::new(),
                missing: policy.needs.iter().collect::<BTreeSet<_>>().len(),
                readers: 0,
                priority: policy.priority,
                then: policy.on_failure,
                standing: StepStatus::Waiting,
                retries: RetryTracker::new(policy.attempts_max.saturating_sub(1)),
                attempts: Vec::new(),
                text: String::new(),
                verification: Verification::None,
            }
        };
        let mut tracker = Self {
            steps: flow.steps.iter().map(step).collect(),
            by_name: BTreeMap::new(),
            ready: BTreeSet::new(),
            later: BTreeSet::new(),
            asks: BTreeSet::new(),
            open: flow.steps.len(),
        };
        tracker.by_name = by_name;
        tracker.link();
        tracker
    }

    fn link(&mut self) {
        let pairs = self.steps.iter().enumerate();
        let pairs = pairs.flat_map(|(number, step)| step.needs.iter().map(move |need| (*need, number)));
        for (need, number) in pairs.collect::<Vec<_>>() {
            if let Some(step) = self.steps.get_mut(need) {
                step.needed_by.push(number);
                step.readers = step.readers.saturating_add(1);
            }
        }
        for number in 0..self.steps.len() {
            if self.steps.get(number).is_some_and(|step| step.missing == 0) {
                self.change(number, StepStatus::Ready);
            }
        }
    }

    /// The number of the step with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<StepNumber> {
        self.by_name.get(name).copied()
    }

    /// The status of a step; absent if there is no step of this number.
    #[must_use]
    pub fn standing(&self, step: StepNumber) -> Option<&StepStatus> {
        self.steps.get(step).map(|step| &step.standing)
    }

    /// All steps by name, in the order of the workflow.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StepStatus)> {
        self.steps.iter().map(|step| (step.name.as_str(), &step.standing))
    }

    /// The step to begin next, if any: of those that are ready or whose wait is over, the one of highest priority,
    /// then the first.
    #[must_use]
    pub fn next(&self, now: Elapsed) -> Option<StepNumber> {
        let waited = self.later.iter().take_while(|(wait, _)| wait.ready <= now);
        let waited =
            waited.filter_map(|(_, number)| Some((Reverse(self.steps.get(*number)?.priority), *number)));
        waited.chain(self.ready.first().copied()).min().map(|(_, number)| number)
    }

    /// When the first wait before another attempt is over.
    #[must_use]
    pub fn first_due(&self) -> Option<Elapsed> {
        self.later.first().map(|(wait, _)| wait.ready)
    }

    /// Whether all steps are done, skipped, or failed for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Whether all steps are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.steps.iter().all(|step| step.standing == StepStatus::Done)
    }

    /// The first step that needs a person's decision, and its outcome.
    #[must_use]
    pub fn asks(&self) -> Option<(&str, &Outcome)> {
        let step = self.asks.first().and_then(|number| self.steps.get(*number))?;
        match &step.standing {
            StepStatus::Asks(outcome) => Some((&step.name, outcome)),
            _ => None,
        }
    }

    /// The agents that have attempted a step so far, the latest last.
    #[must_use]
    pub fn attempts(&self, step: StepNumber) -> &[AgentNumber] {
        self.steps.get(step).map(|step| step.attempts.as_slice()).unwrap_or_default()
    }

    /// The final texts of the dependencies of `step`, each with its name, in the order of the workflow; long texts
    /// without their middle.
    pub fn told(&self, step: StepNumber) -> impl Iterator<Item = (&str, &str)> {
        let needs = self.steps.get(step).map(|step| step.needs.as_slice()).unwrap_or_default();
        needs
            .iter()
            .filter_map(|need| self.steps.get(*need))
            .map(|need| (need.name.as_str(), need.text.as_str()))
    }

    /// What has verified the whole workflow: every step must be verified, and one that failed or was skipped never
    /// is.
    #[must_use]
    pub fn verification(&self) -> Verification {
        Verification::of_all(self.steps.iter().map(|step| step.verification.clone()))
    }

    /// The steps that are done and on which no other depends, each with the agent that did it, in the order of the
    /// workflow.
    pub fn results(&self) -> impl Iterator<Item = (&str, AgentNumber)> {
        let last = self.steps.iter().filter(|step| step.needed_by.is_empty());
        let last = last.filter(|step| step.standing == StepStatus::Done);
        last.filter_map(|step| Some((step.name.as_str(), *step.attempts.last()?)))
    }

    /// Records that `agent` was requested for a step.
    pub fn began(&mut self, step: StepNumber, agent: AgentNumber) {
        if let Some(known) = self.steps.get_mut(step) {
            known.attempts.push(agent);
            self.change(step, StepStatus::AtWork(agent));
        }
    }

    /// What follows from the end of an attempt, before [`ended`](Self::ended) records it: the step is done,
    /// retried while it has attempts left, or failed. An attempt that a person or a hook has ended, or that has
    /// used up its own budget, isn't retried. If the agent's own outcome says that its work hasn't passed, the
    /// attempt has failed.
    #[must_use]
    pub fn after(&self, step: StepNumber, attempt: &Attempt<'_>) -> Option<StepEnd> {
        let known = self.steps.get(step)?;
        let outcome = attempt.outcome.clone();
        if let Some(verification) = outcome.verification().filter(|_| is_success(&outcome)) {
            let text = shortened(attempt.text);
            return Some(StepEnd::Done { text, verification: verification.clone() });
        }
        let mut retries = known.retries.clone();
        if may_be_tried_again(&outcome) && retries.should_retry(ITSELF) {
            let delay_ms = retry_delay_ms(retries.attempts(ITSELF), None, attempt.entropy);
            return Some(StepEnd::Again { outcome, delay_ms, due: attempt.at.plus_ms(delay_ms) });
        }
        let skipped = match known.then {
            OnStepFailure::Skip => self.below(step).into_iter(),
            OnStepFailure::Abort | OnStepFailure::Ask => BTreeSet::new().into_iter(),
        };
        let skipped = skipped.filter_map(|number| self.steps.get(number));
        let skipped = skipped.filter(|step| !step.standing.is_over()).map(|step| step.name.clone()).collect();
        Some(StepEnd::Failed { outcome, then: known.then, skipped })
    }

    /// Records the end of an attempt, at `now` of the run's elapsed time.
    pub fn ended(&mut self, ended: &StepEnded, now: Elapsed) {
        let Some(number) = self.find(&ended.step) else { return };
        match &ended.end {
            StepEnd::Done { text, verification } => self.done(number, text, verification),
            StepEnd::Again { delay_ms, due, .. } => {
                if let Some(step) = self.steps.get_mut(number) {
                    step.retries.should_retry(ITSELF);
                }
                self.change(number, StepStatus::Later(StepWait { ready: now.plus_ms(*delay_ms), due: *due }));
            }
            StepEnd::Failed { outcome, then: OnStepFailure::Ask, .. } => {
                self.change(number, StepStatus::Asks(outcome.clone()));
            }
            StepEnd::Failed { outcome, skipped, .. } => {
                self.close(number, StepStatus::Failed(outcome.clone()));
                for name in skipped {
                    if let Some(number) = self.find(name) {
                        self.close(number, StepStatus::Skipped);
                    }
                }
            }
        }
    }

    fn done(&mut self, number: StepNumber, text: &str, verification: &Verification) {
        self.close(number, StepStatus::Done);
        let Some(step) = self.steps.get_mut(number) else { return };
        step.verification = verification.clone();
        if step.readers > 0 {
            step.text = text.to_owned();
        }
        for next in step.needed_by.clone() {
            let Some(next_step) = self.steps.get_mut(next) else { continue };
            next_step.missing = next_step.missing.saturating_sub(1);
            if next_step.missing == 0 && next_step.standing == StepStatus::Waiting {
                self.change(next, StepStatus::Ready);
            }
        }
    }

    /// A step is over for this segment. Texts that only a done step would have read are dropped.
    fn close(&mut self, number: StepNumber, standing: StepStatus) {
        let Some(step) = self.steps.get(number).filter(|step| !step.standing.is_over()) else { return };
        let needs = step.needs.clone();
        let is_done = standing == StepStatus::Done;
        self.change(number, standing);
        self.open = self.open.saturating_sub(1);
        for need in needs.into_iter().filter(|_| is_done) {
            if let Some(need) = self.steps.get_mut(need) {
                need.readers = need.readers.saturating_sub(1);
                if need.readers == 0 {
                    need.text = String::new();
                }
            }
        }
    }

    /// The waits continue, corrected by the wall clock for the time in which no process held the run.
    pub(super) fn waits_go_on(&mut self, now: DecisionTime) {
        for (wait, number) in std::mem::take(&mut self.later) {
            let ready = now.remaining_wait(wait.due, wait.ready);
            self.change(number, StepStatus::Later(StepWait { ready, ..wait }));
        }
    }

    /// The workflow was resumed: steps that have failed and need a decision are tried again, with all their
    /// attempts.
    pub fn resumed(&mut self) {
        for number in self.asks.clone() {
            if let Some(step) = self.steps.get_mut(number) {
                step.retries.reset(ITSELF);
                step.attempts.clear();
            }
            self.change(number, StepStatus::Ready);
        }
    }

    /// The workflow was resumed after its end: steps that failed, were skipped, or were stopped with their agents
    /// are to be done again. `is_live` returns whether an agent's work isn't over.
    pub fn reopened(&mut self, is_live: impl Fn(AgentNumber) -> bool) {
        for number in 0..self.steps.len() {
            let Some(step) = self.steps.get_mut(number) else { continue };
            let was_over = match &step.standing {
                StepStatus::Failed(_) | StepStatus::Skipped => true,
                StepStatus::AtWork(agent) if !is_live(*agent) => false,
                _ => continue,
            };
            step.retries.reset(ITSELF);
            step.attempts.clear();
            let can_begin = step.missing == 0;
            self.open = self.open.saturating_add(usize::from(was_over));
            self.change(number, if can_begin { StepStatus::Ready } else { StepStatus::Waiting });
        }
    }

    /// Another policy applies to the same steps: their priorities, attempts, and what follows a failure.
    pub fn policy_changed(&mut self, flow: &FlowPolicy) {
        for policy in &flow.steps {
            let Some(number) = self.find(&policy.name) else { continue };
            let Some(step) = self.steps.get_mut(number) else { continue };
            let was_ready = self.ready.remove(&(Reverse(step.priority), number));
            step.priority = policy.priority;
            step.then = policy.on_failure;
            step.retries.limit(ITSELF, policy.attempts_max.saturating_sub(1));
            if was_ready {
                self.ready.insert((Reverse(step.priority), number));
            }
        }
    }

    /// The steps that depend on `step`, directly or not.
    fn below(&self, step: StepNumber) -> BTreeSet<StepNumber> {
        let mut found = BTreeSet::new();
        let mut next = vec![step];
        while let Some(step) = next.pop().and_then(|number| self.steps.get(number)) {
            next.extend(step.needed_by.iter().filter(|number| found.insert(**number)));
        }
        found
    }

    fn change(&mut self, number: StepNumber, standing: StepStatus) {
        let Some(step) = self.steps.get_mut(number) else { return };
        match std::mem::replace(&mut step.standing, standing.clone()) {
            StepStatus::Ready => drop(self.ready.remove(&(Reverse(step.priority), number))),
            StepStatus::Later(wait) => drop(self.later.remove(&(wait, number))),
            StepStatus::Asks(_) => drop(self.asks.remove(&number)),
            _ => {}
        }
        match standing {
            StepStatus::Ready => drop(self.ready.insert((Reverse(step.priority), number))),
            StepStatus::Later(wait) => drop(self.later.insert((wait, number))),
            StepStatus::Asks(_) => drop(self.asks.insert(number)),
            _ => {}
        }
    }
}

impl StepStatus {
    /// Whether its status is final for this segment.
    const fn is_over(&self) -> bool {
        match self {
            Self::Done | Self::Failed(_) | Self::Skipped => true,
            Self::Waiting | Self::Ready | Self::AtWork(_) | Self::Later(_) | Self::Asks(_) => false,
        }
    }
}

const fn is_success(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { verdict: None | Some(Verdict::Pass), .. })
}

/// Whether another attempt may have another outcome, and neither a person nor a hook has ended this one.
const fn may_be_tried_again(outcome: &Outcome) -> bool {
    if outcome.may_restart() {
        // The agent has used up its restarts.
        return false;
    }
    match outcome {
        Outcome::Cancelled { .. } | Outcome::Aborted { .. } => false,
        Outcome::BudgetExhausted(exhausted) => {
            matches!((exhausted.dimension, exhausted.owner), (Dimension::Turns, LimitOwner::Agent))
        }
        Outcome::Completed { .. }
        | Outcome::Blocked { .. }
        | Outcome::Paused { .. }
        | Outcome::Failed { .. } => true,
    }
}

/// The text without its middle, if it is too long.
fn shortened(text: &str) -> String {
    let text = text.trim();
    cut(text, TEXT_BYTES_MAX)
}

/// The beginning and the end of a text that has more than `bytes_max` bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(bytes_max / 2)).unwrap_or_default();
    let tail =
        text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes_max / 2))..).unwrap_or_default();
    let left_out = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}
