//! The port to trace sinks: a sequence of events, each of them one JSON object.

use std::sync::Arc;

use provost_event::{ActorKey, ChainContext, Delta, Record, Timestamp};

/// A sink for one run's trace.
///
/// Events arrive in order, on a thread of its own, which may block: no task waits for it. Events that arrive
/// faster than they are handled are queued; when the queue is full the oldest are dropped, and the next event says
/// how many. A panic or an error is logged and counted, and the run continues. Register it with
/// [`Observers::with_trace`](crate::Observers::with_trace):
///
/// ```
/// use provost_harness::{ObserverOptions, Observers, TraceError, TraceEvent, TraceSink};
///
/// struct Errors;
///
/// impl TraceSink for Errors {
///     fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
///         eprintln!("{}", event.to_json()?);
///         Ok(())
///     }
/// }
///
/// let observers = Observers::new().with_trace("errors", ObserverOptions::default(), |_run| Box::new(Errors));
/// # drop(observers);
/// ```
pub trait TraceSink: Send {
    /// Handles an event.
    ///
    /// # Errors
    /// A message for the log; later events still arrive.
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError>;

    /// Called when the queue is empty, and at the end: write buffered output here.
    ///
    /// # Errors
    /// A message for the log.
    fn flush(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}

/// Why a trace event couldn't be handled.
pub type TraceError = Box<dyn std::error::Error + Send + Sync>;

/// Discards all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl TraceSink for NoTrace {
    fn event(&mut self, _: &TraceEvent) -> Result<(), TraceError> {
        Ok(())
    }
}

/// One event of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// Its time.
    pub at: Timestamp,
    /// The event's name by [`ObserverEventKind::name`](crate::ObserverEventKind::name); `LOST` for missing events.
    pub name: &'static str,
    /// The actor it happened to.
    pub actor: ActorKey,
    /// The actor's position among the agents of the run.
    pub chain: ChainContext,
    /// Its span: a run is `RUN`, an agent `RUN.NUMBER`, below that `/turn-N`, and in a turn `/llm-CALL` and
    /// `/tool-CALL`.
    pub span: String,
    /// The parent span; `None` for the run.
    pub parent_span: Option<String>,
    /// Its content.
    pub body: TraceBody,
}

/// The content of a trace event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceBody {
    /// A committed entry.
    Entry(Arc<Record>),
    /// A piece of an answer that isn't committed yet.
    Delta(Arc<Delta>),
    /// This many events before this one are missing.
    Lost(u64),
}

impl TraceEvent {
    /// The event as a JSON object on one line. Secrets are not removed.
    ///
    /// Its fields, in this order; later versions may add fields, but none changes its meaning or is removed:
    ///
    /// | field | content |
    /// |---|---|
    /// | `ts_ms` | when, in milliseconds since 1970 |
    /// | `event` | its name, such as `TOOL_START` |
    /// | `run` | the run |
    /// | `session` | the agent; absent for events of the run as a whole |
    /// | `chain` | `chain_id` (the run's), `parent` (the parent agent, or null), `depth` (0 for the root), `agent_name` (of a configured
    /// sub-agent, or null) |
    /// | `span` | its span |
    /// | `parent_span` | the parent span; absent for the run |
    /// | `seq`, `entry` | for a committed entry: its position in its log, and its `type` and own fields, as in the
    /// log |
    /// | `delta` | for an uncommitted piece: `kind` and `bytes`; the text follows with the answer |
    /// | `count` | for `LOST`: how many events are missing before this one |
    ///
    /// # Errors
    /// When an entry has no JSON form; no current entry can fail.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let run = self.actor.run();
        let mut line = format!(r#"{{"ts_ms":{},"event":"{}","run":"{run}""#, self.at.0, self.name);
        if let ActorKey::Session(session) = self.actor {
            line.push_str(&format!(r#","session":"{session}""#));
        }
        let (chain, span) = (serde_json::to_string(&self.chain)?, serde_json::to_string(&self.span)?);
        line.push_str(&format!(r#","chain":{chain},"span":{span}"#));
        if let Some(parent) = &self.parent_span {
            line.push_str(&format!(r#","parent_span":{}"#, serde_json::to_string(parent)?));
        }
        line.push_str(&match &self.body {
            TraceBody::Entry(record) => entry(record)?,
            TraceBody::Delta(delta) => piece(delta)?,
            TraceBody::Lost(count) => format!(r#","count":{count}"#),
        });
        line.push('}');
        // JSON in its original form may contain line ends, which can only be between tokens.
        Ok(if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line })
    }
}

fn entry(record: &Record) -> Result<String, serde_json::Error> {
    let body = record.entry.body()?;
    let fields = body.strip_prefix('{').filter(|fields| *fields != "}");
    let fields = fields.map_or_else(|| "}".to_owned(), |fields| format!(",{fields}"));
    Ok(format!(r#","seq":{},"entry":{{"type":"{}"{fields}"#, record.seq, record.entry.kind()))
}

/// Without its text: a secret may be split between two pieces and not be recognized.
fn piece(delta: &Delta) -> Result<String, serde_json::Error> {
    let kind = serde_json::to_string(&delta.kind)?;
    Ok(format!(r#","delta":{{"kind":{kind},"bytes":{}}}"#, delta.text.len()))
}
