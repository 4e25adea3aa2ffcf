//! A model that doesn't answer: how long it is retried, which fallback is called in its place, and when the
//! session is suspended.

use provost_event::{
    Elapsed, ErrorClass, ModelChange, ModelChanged, ModelFailure, ModelPolicy, ModelTrouble,
    OutageWaitChanged, Outcome, PauseReason, ProviderAwaited, Retry, RetryCause, Timestamp, TroubleCause,
    Usage,
};
use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::{Deciding, SessionState};
use crate::RunEvent;
use crate::retry::retry_delay_ms;
use crate::session::{model_call, segment, yielding};

/// The wait between two tries while the session counts as suspended, unless the provider has named a time.
pub(super) const PROBE_MS: u64 = 300_000;
/// An outage of at least this duration is reported, and the wait from then on isn't worked time.
const UNTOLD_MS: u64 = 10_000;
/// After this number of calls in a row without any event the next may be silent for longer.
const SILENT_CALLS: u32 = 2;
const SILENT_PATIENCE: u32 = 3;

/// The model that is called, and its failures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Models {
    /// The model that a later change names in place of the policy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    named: Option<Box<ModelPolicy>>,
    /// The number of the fallback in use, from 1; 0 if none is.
    fallback: u32,
    /// When the last call was made.
    called_at: Elapsed,
    /// Failed attempts at the current answer.
    failed_attempts: u32,
    /// Empty answers in a row.
    empty_answers: u32,
    /// The models before the fallback in use, and why each gave no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tried: Vec<ModelTrouble>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<Outage>,
    /// The value that a later change sets in place of the policy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage_max_ms: Option<u64>,
}

/// Failed calls in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Outage {
    /// When the first was made.
    began: Elapsed,
    /// When the current model's patience began.
    since: Elapsed,
    /// Calls in a row without any event.
    silent: u32,
    /// Whether a call of the current model whose connection broke before an answer began has been charged.
    #[serde(default)]
    is_charged: bool,
    /// When patience ended.
    suspended_at: Option<Elapsed>,
}

/// What the decision on a failed call depends on besides the failure.
#[derive(Debug, Clone, Copy)]
struct FailureFacts<'a> {
    assignment: &'a Assignment,
    now: Elapsed,
    /// The end of the time limit on the agent's work, if there is one.
    work_ends: Option<Elapsed>,
    /// Random bits, for the length of the wait.
    entropy: u64,
}

/// What follows a call that isn't retried any more.
enum AfterPatience {
    /// This fallback is called; it has this number, from 1.
    Fallback { number: u32, to: Box<ModelPolicy> },
    /// The session counts as suspended, and retries after this wait.
    Wait { delay_ms: u64 },
    /// The session is suspended.
    Suspend,
}

impl Models {
    pub(super) const fn called(&mut self, at: Elapsed) {
        self.called_at = at;
    }

    /// The agent's answer has come.
    pub(super) const fn answered(&mut self) {
        self.aside_answered();
        self.empty_answers = 0;
    }

    /// An answer that is no part of the conversation has come.
    pub(super) const fn aside_answered(&mut self) {
        self.outage = None;
        self.failed_attempts = 0;
    }

    pub(super) const fn retried(&mut self, retry: &Retry) {
        match &retry.cause {
            RetryCause::Failed { class, .. } => self.failed(retry, *class),
            RetryCause::EmptyAnswer => self.empty_answers = self.empty_answers.saturating_add(1),
            RetryCause::UselessSummary { .. } => self.failed_attempts = 0,
            RetryCause::Compacted | RetryCause::Interrupted => {}
        }
    }

    const fn failed(&mut self, retry: &Retry, class: ErrorClass) {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        let called_at = self.called_at;
        let mut outage = match self.outage {
            Some(outage) => outage,
            None => Outage {
                began: called_at,
                since: called_at,
                silent: 0,
                is_charged: false,
                suspended_at: None,
            },
        };
        outage.is_charged |= is_broken_connection(class) && retry.usage.total() > 0;
        outage.silent = if matches!(class, ErrorClass::Silent) { outage.silent.saturating_add(1) } else { 0 };
        if retry.suspended && outage.suspended_at.is_none() {
            outage.suspended_at = Some(outage.began.plus_ms(retry.outage_ms));
        }
        self.outage = Some(outage);
    }

    pub(super) fn changed(&mut self, changed: &ModelChanged, now: Elapsed) {
        match &changed.why {
            ModelChange::Asked { .. } => {
                self.named = Some(changed.to.clone());
                self.begin_anew();
            }
            ModelChange::Fallback { number, trouble } => {
                self.fallback = *number;
                self.tried.push(trouble.clone());
            }
            ModelChange::Returned => {
                self.fallback = 0;
                self.tried.clear();
            }
        }
        if let Some(outage) = &mut self.outage {
            // Another model has its full patience.
            outage.since = now;
            outage.silent = 0;
            outage.is_charged = false;
        }
        self.failed_attempts = 0;
    }

    pub(super) const fn outage_wait_changed(&mut self, changed: &OutageWaitChanged) {
        self.outage_max_ms = Some(changed.outage_max_ms);
    }

    /// The policy names another model: it is called in place of one that was named before.
    pub(super) fn policy_changed(&mut self) {
        self.named = None;
        self.begin_anew();
    }

    /// The session was resumed by a request.
    pub(super) fn resumed(&mut self) {
        self.begin_anew();
        self.failed_attempts = 0;
        self.empty_answers = 0;
    }

    fn begin_anew(&mut self) {
        self.outage = None;
        self.tried.clear();
        self.fallback = 0;
    }

    /// The model that a later change has named.
    pub(super) fn named(&self) -> Option<&ModelPolicy> {
        self.named.as_deref()
    }

    /// The model that is called.
    pub(super) fn current<'a>(&'a self, assignment: &'a Assignment) -> Option<&'a ModelPolicy> {
        let first = self.first(assignment)?;
        let place = self.fallback.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| first.fallbacks.get(place)).or(Some(first))
    }

    fn first<'a>(&'a self, assignment: &'a Assignment) -> Option<&'a ModelPolicy> {
        self.named.as_deref().or_else(|| assignment.policy().map(|policy| &policy.model))
    }

    /// The number of the next attempt at the current answer, from 1.
    pub(super) const fn next_attempt(&self) -> u32 {
        self.failed_attempts.saturating_add(1)
    }

    pub(super) const fn empty_answers(&self) -> u32 {
        self.empty_answers
    }

    /// The factor on the usual time that the next call may be without any event.
    pub(super) fn patience(&self) -> u32 {
        let silent = self.outage.map_or(0, |outage| outage.silent);
        if silent >= SILENT_CALLS { SILENT_PATIENCE } else { 1 }
    }

    /// What a failed call is charged with. A connection that breaks before an answer has begun leaves open whether
    /// the model worked: that is charged once, and not for each retry of an outage, which would use up the budget.
    pub(super) fn usage_of(&self, failure: &ModelFailure) -> Usage {
        let was_charged = self.outage.is_some_and(|outage| outage.is_charged);
        if was_charged && is_broken_connection(failure.class) { Usage::default() } else { failure.usage }
    }

    /// How long an outage is waited out, in milliseconds.
    pub(super) fn outage_max_ms(&self, assignment: &Assignment) -> u64 {
        self.outage_max_ms.unwrap_or(assignment.limits().outage_max_ms)
    }

    /// How long the calls have failed, in milliseconds.
    fn outage_ms(&self, now: Elapsed) -> u64 {
        now.since_ms(self.outage.map_or(self.called_at, |outage| outage.began))
    }

    fn suspended_at(&self) -> Option<Elapsed> {
        self.outage?.suspended_at
    }

    /// The wait before a failed call is made again; `None` once patience or the time limit is over.
    fn retry_delay_ms(&self, failure: &ModelFailure, facts: FailureFacts<'_>) -> Option<u64> {
        let delay_ms = retry_delay_ms(self.next_attempt(), failure.retry_after_ms, facts.entropy);
        let since = self.outage.map_or(self.called_at, |outage| outage.since);
        let due = facts.now.plus_ms(delay_ms);
        let is_late = facts.work_ends.is_some_and(|ends| due > ends);
        let is_over = due.since_ms(since) > facts.assignment.limits().model_patience_ms;
        let waits = !is_late && !is_over && self.suspended_at().is_none();
        waits.then_some(delay_ms)
    }

    fn after_patience(&self, failure: &ModelFailure, facts: FailureFacts<'_>) -> AfterPatience {
        if let Some((number, to)) = self.next_fallback(facts.assignment) {
            return AfterPatience::Fallback { number, to: Box::new(to.clone()) };
        }
        match self.next_try_ms(failure, facts) {
            Some(delay_ms) => AfterPatience::Wait { delay_ms },
            None => AfterPatience::Suspend,
        }
    }

    /// The next fallback, with its number from 1.
    fn next_fallback<'a>(&'a self, assignment: &'a Assignment) -> Option<(u32, &'a ModelPolicy)> {
        let place = usize::try_from(self.fallback).ok()?;
        let next = self.first(assignment)?.fallbacks.get(place)?;
        Some((self.fallback.saturating_add(1), next))
    }

    /// Milliseconds after which a suspended session retries its model; `None` if it doesn't.
    fn next_try_ms(&self, failure: &ModelFailure, facts: FailureFacts<'_>) -> Option<u64> {
        let helps = match failure.class.cause() {
            TroubleCause::Provider => true,
            TroubleCause::Quota => failure.retry_after_ms.is_some(),
            TroubleCause::Key
            | TroubleCause::Address
            | TroubleCause::ModelUnknown
            | TroubleCause::Request
            | TroubleCause::Answer => false,
        };
        let waited_ms = self.suspended_at().map_or(0, |since| facts.now.since_ms(since));
        let left_ms = self.outage_max_ms(facts.assignment).saturating_sub(waited_ms);
        let wait_ms = failure.retry_after_ms.unwrap_or(PROBE_MS).max(1);
        (helps && left_ms > 0 && wait_ms <= left_ms.max(PROBE_MS)).then(|| wait_ms.min(left_ms))
    }

    /// The model that a suspended session returns to before a further try, if that is another one.
    fn to_return_to<'a>(&'a self, assignment: &'a Assignment) -> Option<&'a ModelPolicy> {
        let returns = self.fallback > 0 && self.suspended_at().is_some();
        self.first(assignment).filter(|_| returns)
    }

    fn trouble(&self, failure: &ModelFailure, assignment: &Assignment) -> ModelTrouble {
        let request = failure.request_id.as_ref().map(|id| format!(" [request {id}]")).unwrap_or_default();
        // A shorter wait was waited out.
        let long = failure.retry_after_ms.filter(|wait_ms| *wait_ms > assignment.limits().model_patience_ms);
        let wait = long.map(|wait_ms| format!(" (asks to wait {})", in_minutes(wait_ms))).unwrap_or_default();
        ModelTrouble {
            model: self.current(assignment).map(|model| model.name.clone()).unwrap_or_default(),
            class: failure.class,
            message: format!("{}{request}{wait}", failure.message),
            hint: failure.hint.clone(),
            tried: self.tried.clone(),
        }
    }
}

fn in_minutes(ms: u64) -> String {
    let minutes = ms.div_ceil(60_000);
    if minutes < 60 { format!("{minutes} min") } else { format!("{} h {} min", minutes / 60, minutes % 60) }
}

/// Retries the call, as long as patience lasts.
pub(in crate::session) fn try_again(deciding: &mut Deciding<'_>, mut failure: ModelFailure) {
    let facts = failure_facts(deciding);
    let models = &deciding.state.models;
    if let Some(delay_ms) = models.retry_delay_ms(&failure, facts) {
        return wait_for_provider(deciding, failure, delay_ms, false);
    }
    let unhurried = FailureFacts { work_ends: None, ..facts };
    if let Some(ends) = facts.work_ends
        && models.retry_delay_ms(&failure, unhurried).is_some()
    {
        let left_ms = ends.since_ms(facts.now);
        let seconds = left_ms / 1000;
        let tenths = left_ms % 1000 / 100;
        failure.message.push_str(&format!(
            " (not retried for the whole of limits.model_patience: the limit on time leaves {seconds}.{tenths} s)"
        ));
    }
    give_up(deciding, failure);
}

/// Retries are over: a fallback is called, or the session is suspended.
pub(in crate::session) fn give_up(deciding: &mut Deciding<'_>, failure: ModelFailure) {
    let trouble = deciding.state.models.trouble(&failure, &deciding.state.assignment);
    match deciding.state.models.after_patience(&failure, failure_facts(deciding)) {
        AfterPatience::Fallback { number, to } => {
            let usage = failure.usage;
            let mut retry = Retry::at_once(deciding.state.turns.model_calls(), cause_of(failure), usage);
            retry.outage_ms = deciding.state.models.outage_ms(deciding.step.now().elapsed);
            deciding.commit(retry);
            let from = trouble.model.clone();
            let trouble = ModelTrouble { tried: Vec::new(), ..trouble };
            let why = ModelChange::Fallback { number, trouble };
            deciding.commit(ModelChanged { from, to, why });
            model_call::next_call(deciding);
        }
        AfterPatience::Wait { delay_ms } => wait_for_provider(deciding, failure, delay_ms, true),
        AfterPatience::Suspend => {
            segment::finish(deciding, Outcome::Paused { why: PauseReason::Model(Box::new(trouble)) });
        }
    }
}

fn failure_facts<'a>(deciding: &'a Deciding<'_>) -> FailureFacts<'a> {
    FailureFacts {
        assignment: &deciding.state.assignment,
        now: deciding.step.now().elapsed,
        work_ends: deciding.state.turns.work_ends(),
        entropy: deciding.entropy,
    }
}

fn wait_for_provider(deciding: &mut Deciding<'_>, failure: ModelFailure, delay_ms: u64, suspended: bool) {
    let now = deciding.step.now();
    let until = now.at.plus_ms(delay_ms);
    let outage_ms = deciding.state.models.outage_ms(now.elapsed);
    let trouble = deciding.state.models.trouble(&failure, &deciding.state.assignment);
    let usage = failure.usage;
    let call = deciding.state.turns.model_calls();
    deciding.commit(Retry { call, cause: cause_of(failure), delay_ms, usage, outage_ms, suspended });
    deciding.open(now.timer(delay_ms));
    tell_of_outage(deciding, trouble, until, outage_ms.saturating_add(delay_ms), suspended);
    // No agent waits for the slot until the provider is available.
    yielding::yielded(deciding);
}

/// Reports to the run that no work is done until then, if that matters.
pub(in crate::session) fn tell_of_outage(
    deciding: &mut Deciding<'_>,
    trouble: ModelTrouble,
    until: Timestamp,
    lasts_ms: u64,
    suspended: bool,
) {
    if suspended || lasts_ms >= UNTOLD_MS {
        let session = deciding.state.session;
        let awaited = ProviderAwaited { session, trouble, until, suspended };
        deciding.tell_run(RunEvent::AwaitsProvider(Box::new(awaited)));
    }
}

/// A suspended session begins each further try with its first model.
pub(in crate::session) fn try_first_model_again(deciding: &mut Deciding<'_>) {
    let Some(to) = deciding.state.models.to_return_to(&deciding.state.assignment).cloned() else { return };
    let from = deciding.state.model().map(|model| model.name.clone()).unwrap_or_default();
    deciding.commit(ModelChanged { from, to: Box::new(to), why: ModelChange::Returned });
}

/// Suspends the session for the model's error, or for a request that doesn't suit it.
pub(in crate::session) fn suspend(
    deciding: &mut Deciding<'_>,
    class: ErrorClass,
    message: impl Into<String>,
) {
    let trouble =
        deciding.state.models.trouble(&ModelFailure::new(class, message), &deciding.state.assignment);
    segment::finish(deciding, Outcome::Paused { why: PauseReason::Model(Box::new(trouble)) });
}

pub(in crate::session) fn retune(
    deciding: &mut Deciding<'_>,
    model: Option<Box<ModelPolicy>>,
    outage_max_ms: Option<u64>,
    by: &str,
) {
    let by = by.to_owned();
    if let Some(to) = model.filter(|_| !deciding.state.assignment.is_external()) {
        let from = deciding.state.model().map(|model| model.name.clone()).unwrap_or_default();
        deciding.commit(ModelChanged { from, to, why: ModelChange::Asked { by: by.clone() } });
    }
    if let Some(outage_max_ms) = outage_max_ms {
        deciding.commit(OutageWaitChanged { outage_max_ms, by });
    }
}

impl SessionState {
    /// The model that is called.
    #[must_use]
    pub fn model(&self) -> Option<&ModelPolicy> {
        self.models.current(&self.assignment)
    }
}

/// Whether a connection broke before an answer had begun.
const fn is_broken_connection(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Transport)
}

fn cause_of(failure: ModelFailure) -> RetryCause {
    let ModelFailure { class, message, status, request_id, .. } = failure;
    RetryCause::Failed { class, message, status, request_id }
}
