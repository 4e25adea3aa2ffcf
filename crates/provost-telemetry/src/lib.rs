//! Traces and metrics of runs, sent with OpenTelemetry's protocol (OTLP over HTTP, protobuf).
//!
//! [`Telemetry`] is made once per process; [`Telemetry::observer`] returns an observer of one run. Spans and
//! metrics follow OpenTelemetry's semantic conventions for generative AI, with `provost.` names where there are
//! none:
//!
//! - `provost.run`: the root of a run's trace. A run that continues after a suspension or an interruption gets
//!   another one, below the first; the ids are derived from the run's id and positions in its logs, so both are in
//!   one trace.
//! - `invoke_agent NAME`: a segment of an agent's work. Decisions of hooks, permissions and people, compactions
//!   and final summaries are events on it.
//! - `chat MODEL`: one model call, also for compaction and final summaries (`provost.purpose`); a failed call is a
//!   span too, with `error.type`.
//! - `execute_tool TOOL`: one tool call.
//!
//! Each span has its position in the chain of agents (`provost.chain.id`, `.parent`, `.depth`).
//!
//! Content is not exported, unless [`Content::On`] is set.

mod chat;
mod content;
mod decisions;
mod goal;
mod handoff;
mod health;
mod ids;
mod metrics;
mod names;
mod observer;
mod options;
mod pipeline;
mod session;
mod span;
mod telemetry;
mod tool;
mod transport;
mod webhook;

pub use options::{Content, TelemetryError, TelemetryOptions};
pub use telemetry::{Telemetry, TelemetryHealth};
pub use webhook::post_json;
