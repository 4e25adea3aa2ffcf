//! Ids of traces and spans. They are derived from positions in the log, so a process that resumes a run uses the
//! same trace and first span as the processes before it.

use opentelemetry::trace::{SpanId, TraceId};
use provost_event::{ActorKey, RunId, Seq};

/// The trace of a run.
pub(crate) fn trace_id(run: RunId) -> TraceId {
    TraceId::from_bytes(digest("provost trace", &run.to_string()))
}

/// The span that an entry opens.
pub(crate) fn span_id(actor: ActorKey, seq: Seq) -> SpanId {
    SpanId::from_bytes(digest("provost span", &format!("{actor}#{seq}")))
}

/// A span that begins with an entry because its own beginning wasn't seen.
pub(crate) fn stand_in_id(actor: ActorKey, seq: Seq) -> SpanId {
    SpanId::from_bytes(digest("provost stand-in", &format!("{actor}#{seq}")))
}

/// The first span of a run, the root of all others.
pub(crate) fn root_span_id(run: RunId) -> SpanId {
    span_id(run.into(), Seq::START.next())
}

fn digest<const BYTES: usize>(what: &str, name: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut hasher = blake3::Hasher::new();
    hasher.update(what.as_bytes()).update(&[0]).update(name.as_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
