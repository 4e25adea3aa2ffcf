//! Converts observer events to trace events.

mod spans;

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{ChainContext, RunId, Timestamp};

use self::spans::Spans;
use crate::{ObservedBody, Observer, ObserverError, ObserverEvent, TraceBody, TraceEvent, TraceSink};

/// An observer that passes the events of `run` to `sink`.
pub(super) fn observer(run: RunId, sink: Box<dyn TraceSink>) -> Box<dyn Observer> {
    Box::new(Tracer { run, sink, spans: Spans::new(run), lost: 0, last: Timestamp::default() })
}

struct Tracer {
    run: RunId,
    sink: Box<dyn TraceSink>,
    spans: Spans,
    /// Events missing before the next one.
    lost: u64,
    last: Timestamp,
}

impl Tracer {
    fn event(&mut self, event: &ObserverEvent) -> TraceEvent {
        let (span, parent_span) = self.spans.place(event);
        let body = match &event.body {
            ObservedBody::Entry(record) => TraceBody::Entry(record.clone()),
            ObservedBody::Delta(delta) => TraceBody::Delta(delta.clone()),
        };
        let ObserverEvent { kind, at, actor, .. } = *event;
        let chain = event.chain.clone();
        TraceEvent { at, name: kind.name(), actor, chain, span, parent_span, body }
    }

    /// Reports missing events, with the time of the last known event.
    fn tell_lost(&mut self) -> Result<(), ObserverError> {
        let count = std::mem::take(&mut self.lost);
        if count == 0 {
            return Ok(());
        }
        self.sink.event(&TraceEvent {
            at: self.last,
            name: "LOST",
            actor: self.run.into(),
            chain: ChainContext::root(self.run),
            span: self.run.to_string(),
            parent_span: None,
            body: TraceBody::Lost(count),
        })
    }
}

#[async_trait]
impl Observer for Tracer {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        self.last = event.at;
        let lost = self.tell_lost();
        let event = self.event(event);
        let told = self.sink.event(&event);
        lost.and(told)
    }

    async fn lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
    }

    async fn idle(&mut self) -> Result<(), ObserverError> {
        self.sink.flush()
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        let lost = self.tell_lost();
        let flushed = self.sink.flush();
        lost.and(flushed)
    }
}
