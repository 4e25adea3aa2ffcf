//! A model that doesn't answer: how long it is retried, which fallback is called in its place, and when the
//! session is suspended.

use provost_event::{
    Elapsed, ErrorClass, ModelChange, ModelChanged, ModelFailure, ModelPolicy, ModelTrouble,
    OutageWaitChanged, Outcome, PauseReason, ProviderAwaited, Retry, RetryCause, Timestamp, TroubleCause,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, SessionState};
use crate::RunEvent;
use crate::retry::retry_delay_ms;

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
pub(super) struct ModelSelection {
    /// The model that a later change names in place of the policy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    named: Option<Box<ModelPolicy>>,
    /// The number of the fallback in use, from 1; 0 if none is.
    fallback: u32,
    /// When the last call was made.
    called_at: Elapsed,
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<Outage>,
    /// The value that a later change sets in place of the policy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outage_max_ms: Option<u64>,
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
    /// When patience ended.
    suspended_at: Option<Elapsed>,
}

impl ModelSelection {
    pub(super) const fn called(&mut self, at: Elapsed) {
        self.called_at = at;
    }

    pub(super) const fn answered(&mut self) {
        self.outage = None;
    }

    pub(super) fn resumed(&mut self) {
        self.outage = None;
        self.fallback = 0;
    }

    pub(super) fn retried(&mut self, retry: &Retry) {
        let RetryCause::Failed { class, .. } = &retry.cause else { return };
        let called_at = self.called_at;
        let new = Outage { began: called_at, since: called_at, silent: 0, suspended_at: None };
        let outage = self.outage.get_or_insert(new);
        outage.silent = if *class == ErrorClass::Silent { outage.silent.saturating_add(1) } else { 0 };
        if retry.suspended && outage.suspended_at.is_none() {
            outage.suspended_at = Some(outage.began.plus_ms(retry.outage_ms));
        }
    }

    /// Returns to the policy's own model.
    pub(super) fn forget_model(&mut self) {
        self.named = None;
        self.resumed();
    }

    /// The model that a later change has named.
    pub(super) fn named(&self) -> Option<&ModelPolicy> {
        self.named.as_deref()
    }

    /// The factor on the usual time that the next call may be without any event.
    pub(super) fn patience(&self) -> u32 {
        let silent = self.outage.map_or(0, |outage| outage.silent);
        if silent >= SILENT_CALLS { SILENT_PATIENCE } else { 1 }
    }

    /// When the first of the failed calls in a row was made.
    fn began(&self) -> Elapsed {
        self.outage.map_or(self.called_at, |outage| outage.began)
    }

    fn suspended_at(&self) -> Option<Elapsed> {
        self.outage?.suspended_at
    }
}

impl Deciding<'_> {
    /// Retries the call, as long as patience lasts.
    pub(super) fn try_again(&mut self, failure: ModelFailure) {
        let asked = &self.state.asked;
        let now = self.step.now().elapsed;
        let attempts = self.state.counters.failed_attempts.saturating_add(1);
        let delay_ms = retry_delay_ms(attempts, failure.retry_after_ms, self.entropy);
        let since = asked.outage.map_or(asked.called_at, |outage| outage.since);
        let due = now.plus_ms(delay_ms);
        let is_late = self.state.ends.is_some_and(|ends| due > ends.work);
        let is_over = due.since_ms(since) > self.state.assignment.limits().model_patience_ms;
        if is_late || is_over || asked.suspended_at().is_some() {
            return self.give_up(failure);
        }
        self.wait_for_provider(failure, delay_ms, false);
    }

    /// Retries are over: a fallback is called, or the session is suspended.
    pub(super) fn give_up(&mut self, failure: ModelFailure) {
        let trouble = self.state.trouble(&failure);
        if let Some((number, to)) = self.state.next_fallback() {
            let (call, usage) = (self.state.counters.calls, failure.usage);
            let mut retry = Retry::at_once(call, cause_of(failure), usage);
            retry.outage_ms = self.step.now().elapsed.since_ms(self.state.asked.began());
            self.commit(retry);
            let from = trouble.model.clone();
            let why = ModelChange::Fallback { number, trouble };
            self.commit(ModelChanged { from, to: Box::new(to), why });
            return self.next_call();
        }
        match self.state.next_try_ms(&failure, self.step.now().elapsed) {
            Some(delay_ms) => self.wait_for_provider(failure, delay_ms, true),
            None => self.finish_segment(Outcome::Paused { why: PauseReason::Model(Box::new(trouble)) }),
        }
    }

    fn wait_for_provider(&mut self, failure: ModelFailure, delay_ms: u64, suspended: bool) {
        let now = self.step.now();
        let until = now.at.plus_ms(delay_ms);
        let outage_ms = now.elapsed.since_ms(self.state.asked.began());
        let trouble = self.state.trouble(&failure);
        let (call, usage) = (self.state.counters.calls, failure.usage);
        self.commit(Retry { call, cause: cause_of(failure), delay_ms, usage, outage_ms, suspended });
        self.open(now.timer(delay_ms));
        self.tell_of_outage(trouble, until, outage_ms.saturating_add(delay_ms), suspended);
        // No agent waits for the slot until the provider is available.
        self.yielded();
    }

    /// Reports to the run that no work is done until then, if that matters.
    pub(super) fn tell_of_outage(
        &mut self,
        trouble: ModelTrouble,
        until: Timestamp,
        lasts_ms: u64,
        suspended: bool,
    ) {
        if suspended || lasts_ms >= UNTOLD_MS {
            let session = self.state.session;
            let awaited = ProviderAwaited { session, trouble, until, suspended };
            self.tell_run(RunEvent::AwaitsProvider(Box::new(awaited)));
        }
    }

    /// A suspended session begins each further try with its first model.
    pub(super) fn try_first_model_again(&mut self) {
        if self.state.asked.fallback == 0 || self.state.asked.suspended_at().is_none() {
            return;
        }
        let from = self.state.model().map(|model| model.name.clone()).unwrap_or_default();
        if let Some(to) = self.state.first_model().cloned() {
            self.commit(ModelChanged { from, to: Box::new(to), why: ModelChange::Returned });
        }
    }

    /// Suspends the session for the model's error, or for a request that doesn't suit it.
    pub(super) fn suspend(&mut self, class: ErrorClass, message: impl Into<String>) {
        let trouble = self.state.trouble(&ModelFailure::new(class, message));
        self.finish_segment(Outcome::Paused { why: PauseReason::Model(Box::new(trouble)) });
    }

    pub(super) fn retune(&mut self, model: Option<Box<ModelPolicy>>, outage_max_ms: Option<u64>, by: &str) {
        let by = by.to_owned();
        if let Some(to) = model.filter(|_| !self.state.assignment.is_external()) {
            let from = self.state.model().map(|model| model.name.clone()).unwrap_or_default();
            self.commit(ModelChanged { from, to, why: ModelChange::Asked { by: by.clone() } });
        }
        if let Some(outage_max_ms) = outage_max_ms {
            self.commit(OutageWaitChanged { outage_max_ms, by });
        }
    }
}

impl SessionState {
    /// The model that is called.
    #[must_use]
    pub fn model(&self) -> Option<&ModelPolicy> {
        let first = self.first_model()?;
        let place = self.asked.fallback.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| first.fallbacks.get(place)).or(Some(first))
    }

    fn first_model(&self) -> Option<&ModelPolicy> {
        self.asked.named.as_deref().or_else(|| self.assignment.policy().map(|policy| &policy.model))
    }

    /// The next fallback, with its number from 1.
    fn next_fallback(&self) -> Option<(u32, ModelPolicy)> {
        let place = usize::try_from(self.asked.fallback).ok()?;
        let next = self.first_model()?.fallbacks.get(place)?;
        Some((self.asked.fallback.saturating_add(1), next.clone()))
    }

    fn trouble(&self, failure: &ModelFailure) -> ModelTrouble {
        let request = failure.request_id.as_ref().map(|id| format!(" [request {id}]")).unwrap_or_default();
        ModelTrouble {
            model: self.model().map(|model| model.name.clone()).unwrap_or_default(),
            class: failure.class,
            message: format!("{}{request}", failure.message),
            hint: failure.hint.clone(),
        }
    }

    pub(super) fn outage_max_ms(&self) -> u64 {
        self.asked.outage_max_ms.unwrap_or(self.assignment.limits().outage_max_ms)
    }

    /// Milliseconds after which a suspended session retries its model; `None` if it doesn't.
    fn next_try_ms(&self, failure: &ModelFailure, now: Elapsed) -> Option<u64> {
        let helps = match failure.class.cause() {
            TroubleCause::Provider => true,
            TroubleCause::Quota => failure.retry_after_ms.is_some(),
            TroubleCause::Key
            | TroubleCause::Address
            | TroubleCause::ModelUnknown
            | TroubleCause::Request
            | TroubleCause::Answer => false,
        };
        let waited_ms = self.asked.suspended_at().map_or(0, |since| now.since_ms(since));
        let left_ms = self.outage_max_ms().saturating_sub(waited_ms);
        let wait_ms = failure.retry_after_ms.unwrap_or(PROBE_MS).max(1);
        (helps && left_ms > 0 && wait_ms <= left_ms.max(PROBE_MS)).then(|| wait_ms.min(left_ms))
    }

    pub(super) fn model_changed(&mut self, changed: &ModelChanged, now: Elapsed) {
        match &changed.why {
            ModelChange::Asked { .. } => {
                self.asked.named = Some(changed.to.clone());
                self.asked.resumed();
            }
            ModelChange::Fallback { number, .. } => self.asked.fallback = *number,
            ModelChange::Returned => self.asked.fallback = 0,
        }
        if let Some(outage) = &mut self.asked.outage {
            // Another model has its full patience.
            outage.since = now;
            outage.silent = 0;
        }
        self.counters.failed_attempts = 0;
        self.compactions.forget_refusals();
    }
}

fn cause_of(failure: ModelFailure) -> RetryCause {
    let ModelFailure { class, message, status, request_id, .. } = failure;
    RetryCause::Failed { class, message, status, request_id }
}
