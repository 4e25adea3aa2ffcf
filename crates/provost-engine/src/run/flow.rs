//! The steps of a flow: which of them can be done now, and what follows when an attempt at one is over.

mod check;
mod perform;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    Dimension, Elapsed, FlowPolicy, LimitOwner, OnStepFailure, Outcome, Priority, StepEnd, StepEnded,
    Timestamp, Verdict, Verification,
};
use serde::{Deserialize, Serialize};

pub use check::{FlowProblem, check_flow};

use super::AgentNumber;
use crate::moment::Moment;
use crate::retry::{RetryTracker, retry_delay_ms};

/// Bytes of what a step's agent said last that are kept for those who need the step.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// A step's place in its flow, from 0.
pub type StepNumber = usize;

/// How a step of a flow stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepStanding {
    /// Others must be done before it.
    Waiting,
    /// It can be begun.
    Ready,
    /// This agent works on it, or waits in the line for a slot to do so.
    AtWork(AgentNumber),
    /// It has failed, and is tried again at this time.
    Later(StepWait),
    /// It is done.
    Done,
    /// It has failed for good.
    Failed(Outcome),
    /// It has failed, and somebody must say how to go on.
    Asks(Outcome),
    /// A step that it needs, directly or not, has failed.
    Skipped,
}

/// How long a step waits before it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepWait {
    /// Until then by the run's elapsed time, which counts.
    pub ready: Elapsed,
    /// Until then by the wall clock, for people.
    pub due: Timestamp,
}

/// How an attempt at a step ended.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// How its agent ended.
    pub outcome: &'a Outcome,
    /// What that one said last.
    pub text: &'a str,
    /// When.
    pub at: Timestamp,
    /// Fresh random bits, for the wait before the next attempt.
    pub entropy: u64,
}

/// The steps of a flow, rebuilt from its run's log. A step is ready when all that it needs are done; each change takes
/// logarithmic time in the number of steps, and what depends on the step besides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTracker {
    steps: Vec<Step>,
    by_name: BTreeMap<String, StepNumber>,
    ready: BTreeSet<(Reverse<Priority>, StepNumber)>,
    later: BTreeSet<(StepWait, StepNumber)>,
    asks: BTreeSet<StepNumber>,
    /// Steps that are neither done nor skipped nor failed for good.
    open: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    name: String,
    needs: Vec<StepNumber>,
    needed_by: Vec<StepNumber>,
    /// Of `needs`, those that aren't done.
    missing: usize,
    /// Of `needed_by`, those that may still want its text.
    readers: usize,
    priority: Priority,
    then: OnStepFailure,
    standing: StepStanding,
    retries: RetryTracker,
    /// The agents that have tried it since it was begun, or since somebody had the flow go on.
    attempts: Vec<AgentNumber>,
    text: String,
    /// What has confirmed that it is done; nothing while it isn't.
    verification: Verification,
}

/// The name under which a step's own [`RetryTracker`] counts.
const ITSELF: AgentNumber = 0;

impl StepTracker {
    /// The steps of `flow`, none begun. One that needs what isn't there never becomes ready; [`check_flow`] finds such.
    #[must_use]
    pub fn new(flow: &FlowPolicy) -> Self {
        let numbered = flow.steps.iter().enumerate();
        let by_name = numbered.map(|(number, step)| (step.name.clone(), number)).collect::<BTreeMap<_, _>>();
        let step = |policy: &provost_event::StepPolicy| {
            let needs = policy.needs.iter().filter_map(|need| by_name.get(need).copied());
            Step {
                name: policy.name.clone(),
                needs: needs.collect::<BTreeSet<_>>().into_iter().collect(),
                needed_by: Vec::new(),
                missing: policy.needs.iter().collect::<BTreeSet<_>>().len(),
                readers: 0,
                priority: policy.priority,
                then: policy.on_failure,
                standing: StepStanding::Waiting,
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
                self.change(number, StepStanding::Ready);
            }
        }
    }

    /// The number of the step with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<StepNumber> {
        self.by_name.get(name).copied()
    }

    /// How a step stands; absent for a number that no step has.
    #[must_use]
    pub fn standing(&self, step: StepNumber) -> Option<&StepStanding> {
        self.steps.get(step).map(|step| &step.standing)
    }

    /// All steps by name, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StepStanding)> {
        self.steps.iter().map(|step| (step.name.as_str(), &step.standing))
    }

    /// The step that is begun next, if one can be: of those that are ready or whose wait is over the one of highest
    /// priority, of several the first.
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

    /// Whether nothing is left to do: all steps are done, skipped, or failed for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.open == 0
    }

    /// The first step that somebody must say how to go on with, and how it ended.
    #[must_use]
    pub fn asks(&self) -> Option<(&str, &Outcome)> {
        let step = self.asks.first().and_then(|number| self.steps.get(*number))?;
        match &step.standing {
            StepStanding::Asks(outcome) => Some((&step.name, outcome)),
            _ => None,
        }
    }

    /// The agents that have tried a step so far, the last one last.
    #[must_use]
    pub fn attempts(&self, step: StepNumber) -> &[AgentNumber] {
        self.steps.get(step).map(|step| step.attempts.as_slice()).unwrap_or_default()
    }

    /// What the agents said last of the steps that `step` needs, each with its name, in the order of the flow; long texts
    /// without their middle.
    pub fn told(&self, step: StepNumber) -> impl Iterator<Item = (&str, &str)> {
        let needs = self.steps.get(step).map(|step| step.needs.as_slice()).unwrap_or_default();
        needs
            .iter()
            .filter_map(|need| self.steps.get(*need))
            .map(|need| (need.name.as_str(), need.text.as_str()))
    }

    /// What has confirmed the whole flow: each step must have been, and one that failed or was skipped never is.
    #[must_use]
    pub fn verification(&self) -> Verification {
        Verification::of_all(self.steps.iter().map(|step| step.verification.clone()))
    }

    /// The steps that are done and that no other needs, each with the agent that did it, in the order of the flow.
    pub fn results(&self) -> impl Iterator<Item = (&str, AgentNumber)> {
        let last = self.steps.iter().filter(|step| step.needed_by.is_empty());
        let last = last.filter(|step| step.standing == StepStanding::Done);
        last.filter_map(|step| Some((step.name.as_str(), *step.attempts.last()?)))
    }

    /// Takes in that `agent` has been asked to do a step.
    pub fn began(&mut self, step: StepNumber, agent: AgentNumber) {
        if let Some(known) = self.steps.get_mut(step) {
            known.attempts.push(agent);
            self.change(step, StepStanding::AtWork(agent));
        }
    }

    /// What follows from the end of an attempt at a step, before that is taken in by [`ended`](Self::ended): it is done,
    /// tried again while it has attempts left, or has failed. One that somebody or a hook has ended, or that has spent
    /// its own budget, isn't tried again. An agent whose own verdict isn't that its work has passed has failed.
    #[must_use]
    pub fn after(&self, step: StepNumber, attempt: &Attempt<'_>) -> Option<StepEnd> {
        let known = self.steps.get(step)?;
        let outcome = attempt.outcome.clone();
        if let Some(verification) = outcome.verification().filter(|_| is_success(&outcome)) {
            let (text, verification) = (shortened(attempt.text), verification.clone());
            return Some(StepEnd::Done { text, verification });
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

    /// Takes in how an attempt ended, at `now` of the run's elapsed time.
    pub fn ended(&mut self, ended: &StepEnded, now: Elapsed) {
        let Some(number) = self.find(&ended.step) else { return };
        match &ended.end {
            StepEnd::Done { text, verification } => self.done(number, text, verification),
            StepEnd::Again { delay_ms, due, .. } => {
                if let Some(step) = self.steps.get_mut(number) {
                    step.retries.should_retry(ITSELF);
                }
                self.change(
                    number,
                    StepStanding::Later(StepWait { ready: now.plus_ms(*delay_ms), due: *due }),
                );
            }
            StepEnd::Failed { outcome, then: OnStepFailure::Ask, .. } => {
                self.change(number, StepStanding::Asks(outcome.clone()));
            }
            StepEnd::Failed { outcome, skipped, .. } => {
                self.close(number, StepStanding::Failed(outcome.clone()));
                for name in skipped {
                    if let Some(number) = self.find(name) {
                        self.close(number, StepStanding::Skipped);
                    }
                }
            }
        }
    }

    fn done(&mut self, number: StepNumber, text: &str, verification: &Verification) {
        self.close(number, StepStanding::Done);
        let Some(step) = self.steps.get_mut(number) else { return };
        step.verification = verification.clone();
        if step.readers > 0 {
            step.text = text.to_owned();
        }
        for next in step.needed_by.clone() {
            let Some(next_step) = self.steps.get_mut(next) else { continue };
            next_step.missing = next_step.missing.saturating_sub(1);
            if next_step.missing == 0 && next_step.standing == StepStanding::Waiting {
                self.change(next, StepStanding::Ready);
            }
        }
    }

    /// Nothing more becomes of a step in this segment. What only a step that is done would have read needn't be kept.
    fn close(&mut self, number: StepNumber, standing: StepStanding) {
        let Some(step) = self.steps.get(number).filter(|step| !step.standing.is_over()) else { return };
        let needs = step.needs.clone();
        let is_done = standing == StepStanding::Done;
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

    /// The waits go on, by what the wall clock says of the time in which no process held the run.
    pub(super) fn waits_go_on(&mut self, now: Moment) {
        for (wait, number) in std::mem::take(&mut self.later) {
            let ready = now.rest_of_wait(wait.due, wait.ready);
            self.change(number, StepStanding::Later(StepWait { ready, ..wait }));
        }
    }

    /// Takes in that somebody had the flow go on: what has failed and asks is tried again, with all its attempts.
    pub fn resumed(&mut self) {
        for number in self.asks.clone() {
            if let Some(step) = self.steps.get_mut(number) {
                step.retries.reset(ITSELF);
                step.attempts.clear();
            }
            self.change(number, StepStanding::Ready);
        }
    }

    /// Takes in that somebody had the flow go on after its end: what has failed, was skipped, or was stopped with its agent
    /// is to be done again. `is_live` says whether an agent's work isn't over.
    pub fn reopened(&mut self, is_live: impl Fn(AgentNumber) -> bool) {
        for number in 0..self.steps.len() {
            let Some(step) = self.steps.get_mut(number) else { continue };
            let was_over = match &step.standing {
                StepStanding::Failed(_) | StepStanding::Skipped => true,
                StepStanding::AtWork(agent) if !is_live(*agent) => false,
                _ => continue,
            };
            step.retries.reset(ITSELF);
            step.attempts.clear();
            let can_begin = step.missing == 0;
            self.open = self.open.saturating_add(usize::from(was_over));
            self.change(number, if can_begin { StepStanding::Ready } else { StepStanding::Waiting });
        }
    }

    /// The steps that need `step`, directly or not.
    fn below(&self, step: StepNumber) -> BTreeSet<StepNumber> {
        let (mut found, mut next) = (BTreeSet::new(), vec![step]);
        while let Some(step) = next.pop().and_then(|number| self.steps.get(number)) {
            next.extend(step.needed_by.iter().filter(|number| found.insert(**number)));
        }
        found
    }

    fn change(&mut self, number: StepNumber, standing: StepStanding) {
        let Some(step) = self.steps.get_mut(number) else { return };
        match std::mem::replace(&mut step.standing, standing.clone()) {
            StepStanding::Ready => drop(self.ready.remove(&(Reverse(step.priority), number))),
            StepStanding::Later(wait) => drop(self.later.remove(&(wait, number))),
            StepStanding::Asks(_) => drop(self.asks.remove(&number)),
            _ => {}
        }
        match standing {
            StepStanding::Ready => drop(self.ready.insert((Reverse(step.priority), number))),
            StepStanding::Later(wait) => drop(self.later.insert((wait, number))),
            StepStanding::Asks(_) => drop(self.asks.insert(number)),
            _ => {}
        }
    }
}

impl StepStanding {
    /// Whether nothing more becomes of it.
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

/// Whether another attempt could come to something else, and nobody has said that there shall be none.
const fn may_be_tried_again(outcome: &Outcome) -> bool {
    if outcome.may_restart() {
        // The agent has been restarted as often as it may be.
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

/// The text without the middle of it, if it is too long.
fn shortened(text: &str) -> String {
    let text = text.trim();
    cut(text, TEXT_BYTES_MAX)
}

/// The beginning and the end of a text that has more than `bytes_max`.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(bytes_max / 2)).unwrap_or_default();
    let tail =
        text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes_max / 2))..).unwrap_or_default();
    let left_out = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}
