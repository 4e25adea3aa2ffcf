//! An open span.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use provost_event::{ChainContext, MicroDollars, Timestamp, Usage};

use crate::names;

/// Maximum events of one span; later ones are only counted.
const EVENTS_MAX: usize = 128;

/// An operation that hasn't ended. It is kept here and passed to the SDK when it ends, because the SDK's own spans
/// have random ids.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    pub(crate) id: SpanId,
    pub(crate) parent: SpanId,
    pub(crate) started: Timestamp,
    pub(crate) kind: SpanKind,
    attributes: Vec<KeyValue>,
    events: Vec<Event>,
    events_dropped: u32,
    status: Status,
}

impl OpenSpan {
    pub(crate) fn new(id: SpanId, parent: SpanId, started: Timestamp) -> Self {
        Self {
            id,
            parent,
            started,
            kind: SpanKind::Internal,
            attributes: Vec::new(),
            events: Vec::new(),
            events_dropped: 0,
            status: Status::Unset,
        }
    }

    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(key, value));
    }

    /// Sets its position among the agents of the run.
    pub(crate) fn stands(&mut self, chain: &ChainContext) {
        self.set(names::CHAIN, chain.chain.to_string());
        self.set(names::CHAIN_DEPTH, i64::from(chain.depth));
        if let Some(parent) = chain.parent {
            self.set(names::CHAIN_PARENT, parent.to_string());
        }
    }

    /// It failed, with this kind of error, of a fixed set.
    pub(crate) fn fail(&mut self, kind: impl Into<Value>) {
        self.set(names::ERROR_TYPE, kind);
        self.status = Status::Error { description: Cow::Borrowed("") };
    }

    pub(crate) fn event(&mut self, name: &'static str, at: Timestamp, attributes: Vec<KeyValue>) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(Event::new(name, moment(at), attributes, 0));
        } else {
            self.events_dropped = self.events_dropped.saturating_add(1);
        }
    }

    pub(crate) fn end(
        self,
        name: impl Into<Cow<'static, str>>,
        at: Timestamp,
        place: &SpanScope,
    ) -> SpanData {
        let sampled = TraceFlags::SAMPLED;
        let mut events = SpanEvents::default();
        events.events = self.events;
        events.dropped_count = self.events_dropped;
        SpanData {
            span_context: SpanContext::new(place.trace, self.id, sampled, false, TraceState::NONE),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: self.kind,
            name: name.into(),
            start_time: moment(self.started),
            end_time: moment(at.max(self.started)),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events,
            links: SpanLinks::default(),
            status: self.status,
            instrumentation_scope: place.scope.clone(),
        }
    }
}

/// The trace and parent of spans.
#[derive(Debug, Clone)]
pub(crate) struct SpanScope {
    pub(crate) trace: TraceId,
    pub(crate) scope: InstrumentationScope,
}

/// Tokens as the conventions count them: input includes cache reads and writes.
pub(crate) fn set_usage(span: &mut OpenSpan, usage: Usage) {
    span.set(names::INPUT_TOKENS, whole(usage.prompt_tokens()));
    span.set(names::OUTPUT_TOKENS, whole(usage.output_tokens));
    let parts = [
        (names::CACHE_READ_TOKENS, usage.cache_read_tokens),
        (names::CACHE_WRITE_TOKENS, usage.cache_write_tokens),
        (names::REASONING_TOKENS, usage.reasoning_tokens),
    ];
    for (key, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
        span.set(key, whole(tokens));
    }
}

/// A count as the protocol's integer.
pub(crate) fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Money as the protocol's number; for display, not for sums.
#[expect(clippy::cast_precision_loss, reason = "exact below nine thousand million dollars")]
pub(crate) fn dollars(cost: MicroDollars) -> f64 {
    cost.0 as f64 / 1e6
}

fn moment(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at.0)).unwrap_or(SystemTime::UNIX_EPOCH)
}
