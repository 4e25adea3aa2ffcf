//! The observer of one run: the run's own span, and the assignment of entries to agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanId;
use provost_event::{
    ActorKey, AgentEntry, BudgetCharged, BudgetEntry, ChainContext, Entry, LifecycleEntry, MicroDollars,
    Outcome, Record, RunId, Seq, SessionId, Timestamp, Usage,
};
use provost_harness::{ObservedBody, Observer, ObserverError, ObserverEvent};

use crate::handoff;
use crate::ids::{root_span_id, span_id, trace_id};
use crate::names;
use crate::session::{Context, Session, set_outcome};
use crate::span::{OpenSpan, SpanScope, dollars, set_usage, whole};
use crate::telemetry::Shared;

/// The harness gives all observers two seconds to finish.
const FINISH_MAX: Duration = Duration::from_millis(1500);

pub(crate) struct RunObserver {
    run: RunId,
    context: Context,
    /// The run's span, from its start or resumption to its suspension or end.
    segment: Option<OpenSpan>,
    /// How and when the run was suspended or ended, while agents are still on their way to the same.
    stopped_with: Option<(Outcome, Timestamp)>,
    usage: Usage,
    cost: MicroDollars,
    sessions: BTreeMap<SessionId, Session>,
    /// The last entry of each log: one entry may be passed as several events.
    seen: BTreeMap<ActorKey, Seq>,
    last: Timestamp,
}

impl RunObserver {
    pub(crate) fn new(run: RunId, shared: Arc<Shared>) -> Self {
        let place = SpanScope { trace: trace_id(run), scope: shared.pipeline.scope.clone() };
        Self {
            run,
            context: Context { shared, place },
            segment: None,
            stopped_with: None,
            usage: Usage::default(),
            cost: MicroDollars::default(),
            sessions: BTreeMap::new(),
            seen: BTreeMap::new(),
            last: Timestamp::default(),
        }
    }

    fn record(&mut self, record: &Record, chain: &ChainContext, call: Option<Seq>) {
        if self.seen.get(&record.actor).is_some_and(|seen| *seen >= record.seq) {
            return;
        }
        self.seen.insert(record.actor, record.seq);
        match record.actor {
            ActorKey::Run(_) => self.on_run(record),
            ActorKey::Session(session) => {
                let parent = self.parent(session, chain, call);
                self.on_session(session, record, chain, parent);
            }
        }
        self.rest();
    }

    fn on_run(&mut self, record: &Record) {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => {
                let goal = self.context.shared.sieve.text(&started.goal);
                let span = self.open(record, SpanId::INVALID);
                if let Some(goal) = goal {
                    span.set(names::GOAL, goal);
                }
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                let parent = root_span_id(self.run);
                self.open(record, parent);
            }
            Entry::Budget(BudgetEntry::Charged(charged)) => self.charged(charged),
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => {
                let limit = exhausted.exhausted;
                let attributes = vec![
                    KeyValue::new("provost.budget.dimension", names::word(&limit.dimension)),
                    KeyValue::new("provost.budget.used", whole(limit.used)),
                    KeyValue::new("provost.budget.limit", whole(limit.limit)),
                ];
                self.event("provost.budget.exhausted", record.at, attributes);
            }
            entry @ Entry::Agent(
                AgentEntry::Spawned(_)
                | AgentEntry::AskedAgain(_)
                | AgentEntry::Finished(_)
                | AgentEntry::YieldRequested(_)
                | AgentEntry::Suspended(_),
            ) => {
                if let Some((name, attributes)) = handoff::told(entry, &self.context.shared.sieve) {
                    self.event(name, record.at, attributes);
                }
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.stopped_with = Some((paused.outcome.clone(), record.at))
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => {
                self.stopped_with = Some((ended.outcome.clone(), record.at))
            }
            _ => {}
        }
    }

    fn on_session(&mut self, session: SessionId, record: &Record, chain: &ChainContext, parent: SpanId) {
        let state = self.sessions.entry(session).or_insert_with(|| Session::new(session));
        state.stands(chain.clone());
        state.on(record, parent, &self.context);
    }

    /// The parent of an agent's span: that of the call that started it, even if another process exported that; or
    /// the parent agent's, or the run's.
    fn parent(&self, session: SessionId, chain: &ChainContext, call: Option<Seq>) -> SpanId {
        if let (Some(asking), Some(call)) = (chain.parent, call) {
            return span_id(asking.into(), call);
        }
        let asking = chain.parent.filter(|other| *other != session);
        let asking = asking.and_then(|other| self.sessions.get(&other));
        let segment = || self.segment.as_ref().map_or(root_span_id(self.run), |span| span.id);
        asking.and_then(Session::span_id).unwrap_or_else(segment)
    }

    fn open(&mut self, record: &Record, parent: SpanId) -> &mut OpenSpan {
        // Agents may have begun already: their logs may be passed before the run's.
        if self.segment.is_some() {
            self.close_all(record.at);
        }
        let mut span = OpenSpan::new(span_id(record.actor, record.seq), parent, record.at);
        let stood_in = root_span_id(self.run);
        self.sessions.values_mut().for_each(|session| session.moved(stood_in, span.id));
        span.set(names::RUN, self.run.to_string());
        span.stands(&ChainContext::root(self.run));
        self.segment.insert(span)
    }

    fn charged(&mut self, charged: &BudgetCharged) {
        self.usage += charged.usage;
        self.cost += charged.cost.unwrap_or_default();
        if charged.purpose.is_beside() {
            // They have no spans: a program's own calls are part of its exchange, and a hook's of its question.
            return;
        }
        let session = charged.session;
        let session = self.sessions.entry(session).or_insert_with(|| Session::new(session));
        session.charged(charged, &self.context);
    }

    fn event(&mut self, name: &'static str, at: Timestamp, attributes: Vec<KeyValue>) {
        if let Some(span) = &mut self.segment {
            span.event(name, at, attributes);
        }
    }

    /// Closes all spans of a suspended run, once all its known agents are suspended too: their logs may be passed
    /// after the run's.
    fn rest(&mut self) {
        if self.stopped_with.is_some() && self.sessions.values().all(Session::is_suspended) {
            self.close_all(self.last);
        }
    }

    /// Closes everything: with the run's outcome if it is suspended or ended, else as unfinished.
    fn close_all(&mut self, at: Timestamp) {
        let stopped_with = self.stopped_with.take();
        let at = stopped_with.as_ref().map_or(at, |(_, stopped_at)| *stopped_at);
        for mut session in std::mem::take(&mut self.sessions).into_values() {
            if let Some((outcome, _)) = &stopped_with {
                session.segment_ended(outcome, at, &self.context);
            }
            session.close_all(at, &self.context);
        }
        if let Some(mut span) = self.segment.take() {
            match &stopped_with {
                Some((outcome, _)) => set_outcome(&mut span, outcome, &self.context.shared.sieve),
                None => span.set(names::UNFINISHED, true),
            }
            self.end(span, at);
        }
    }

    fn end(&mut self, mut span: OpenSpan, at: Timestamp) {
        set_usage(&mut span, std::mem::take(&mut self.usage));
        span.set(names::COST, dollars(std::mem::take(&mut self.cost)));
        self.context.ended(span, "provost.run", at);
    }
}

#[async_trait]
impl Observer for RunObserver {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        self.last = self.last.max(event.at);
        if let ObservedBody::Entry(record) = &event.body {
            self.record(record, &event.chain, event.call);
        }
        Ok(())
    }

    async fn lost(&mut self, count: u64) {
        let attributes = vec![KeyValue::new("provost.observer.lost", whole(count))];
        self.event("provost.observer.lost", self.last, attributes);
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        self.close_all(self.last);
        if self.context.shared.pipeline.flush(FINISH_MAX) {
            return Ok(());
        }
        Err("the last spans and metrics were not taken in by the collector in time".into())
    }
}
