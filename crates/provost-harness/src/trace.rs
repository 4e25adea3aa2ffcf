//! The port to where traces go: one event after the other, each of them one JSON object.

use std::sync::Arc;

use provost_event::{ActorKey, ChainContext, Delta, Record, Timestamp};

/// Where one run's trace goes.
///
/// It is told in order, on a thread of its own, and may block there: nobody waits for it. What comes faster than it
/// is taken in waits in a queue; when that is full the oldest events are lost, and the next one says how many. A
/// panic or an error is logged and counted, and the run goes on. It is given to a harness by
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
    /// Takes in what happened.
    ///
    /// # Errors
    /// Words for the log; it goes on being told.
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError>;

    /// Is told that no other event waits, or that none comes any more: the time to write what was held back.
    ///
    /// # Errors
    /// Words for the log.
    fn flush(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}

/// Why a trace event couldn't be taken in.
pub type TraceError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps nothing.
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
    /// When.
    pub at: Timestamp,
    /// The event's name, as [`ObservedKind::name`](crate::ObservedKind::name) has it; `LOST` where some are missing.
    pub name: &'static str,
    /// To whom it happened.
    pub actor: ActorKey,
    /// Where that stands among the agents of the run.
    pub chain: ChainContext,
    /// What it belongs to: a run as `RUN`, an agent as `RUN.NUMBER`, below that `/turn-N`, and in a turn
    /// `/llm-CALL` and `/tool-CALL`.
    pub span: String,
    /// What that belongs to in its turn; `None` for the run.
    pub parent_span: Option<String>,
    /// What exactly.
    pub body: TraceBody,
}

/// What exactly happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceBody {
    /// This was committed.
    Entry(Arc<Record>),
    /// This was said and isn't committed yet.
    Delta(Arc<Delta>),
    /// So many events before this one are missing.
    Lost(u64),
}

impl TraceEvent {
    /// The event as a JSON object on one line. Secrets are not taken out.
    ///
    /// Its fields, in this order; later versions may add some, but none changes its meaning or goes away:
    ///
    /// | field | what |
    /// |---|---|
    /// | `ts_ms` | when, in milliseconds since 1970 |
    /// | `event` | its name, such as `TOOL_START` |
    /// | `run` | the run |
    /// | `session` | the agent; absent for what happens to the run as a whole |
    /// | `chain` | `chain_id` (the run's), `parent` (the agent that asked for this one, or null), `depth` (0 for the root) |
    /// | `span` | what it belongs to |
    /// | `parent_span` | what that belongs to; absent for the run |
    /// | `seq`, `entry` | of what was committed: its place in its log, and its `type` and own fields, as the log has them |
    /// | `delta` | of what isn't committed: `kind` and `bytes`; the text follows with the answer |
    /// | `count` | of `LOST`: how many events are missing before this one |
    ///
    /// # Errors
    /// When an entry has no JSON form; none of today's can fail.
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
        // JSON kept as it came may have line ends, which in JSON can only stand between tokens.
        Ok(if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line })
    }
}

fn entry(record: &Record) -> Result<String, serde_json::Error> {
    let body = record.entry.body()?;
    let fields = body.strip_prefix('{').filter(|fields| *fields != "}");
    let fields = fields.map_or_else(|| "}".to_owned(), |fields| format!(",{fields}"));
    Ok(format!(r#","seq":{},"entry":{{"type":"{}"{fields}"#, record.seq, record.entry.kind()))
}

/// Without its text: a secret may be cut between two pieces, where nobody would find it.
fn piece(delta: &Delta) -> Result<String, serde_json::Error> {
    let kind = serde_json::to_string(&delta.kind)?;
    Ok(format!(r#","delta":{{"kind":{kind},"bytes":{}}}"#, delta.text.len()))
}
