//! Traces and metrics of runs, for whoever collects them by OpenTelemetry's protocol (OTLP over HTTP, protobuf).
//!
//! [`Telemetry`] is made once in a process; [`Telemetry::observer`] gives an observer of one run. Spans and metrics
//! are named by OpenTelemetry's conventions for generative AI, and by `provost.` names where there are none:
//!
//! - `provost.run`: the root of a run's trace. A run that goes on after a rest or an interruption gets another one,
//!   below the first; the ids follow from the run's id and the places in its logs, so both are in one trace.
//! - `invoke_agent NAME`: a stretch of an agent's work. What hooks, permissions and people said, compactions and
//!   last words are events on it.
//! - `chat MODEL`: one model call, also for a summary or last words (`provost.purpose`); one that failed is a span
//!   too, with `error.type`.
//! - `execute_tool TOOL`: one tool call.
//!
//! Each span says where in the chain of agents it stands (`provost.chain.id`, `.parent`, `.depth`).
//!
//! What was said is not exported, unless [`Content::On`] asks for it.

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

pub use options::{Content, TelemetryError, TelemetryOptions};
pub use telemetry::{Telemetry, TelemetryHealth};
