//! A tool call.

use opentelemetry::KeyValue;
use provost_event::{Record, Timestamp, ToolFinished, ToolStarted, ToolStatus};

use crate::content::Sieve;
use crate::ids::span_id;
use crate::names;
use crate::session::{Caller, Context};
use crate::span::OpenSpan;

#[derive(Debug)]
pub(crate) struct ToolSpan {
    span: OpenSpan,
    tool: String,
    /// A refused call has no beginning of its own.
    was_run: bool,
}

impl ToolSpan {
    pub(crate) fn begin(record: &Record, started: &ToolStarted, caller: Caller, sieve: &Sieve) -> Self {
        let mut tool = Self::new(record, (&started.tool, &started.call.0), caller, sieve);
        tool.was_run = true;
        if let Some(arguments) = sieve.json(&started.input) {
            tool.span.set(names::TOOL_ARGUMENTS, arguments);
        }
        if started.again {
            tool.span.set("provost.tool.again", true);
        }
        tool
    }

    /// A call of which only the result was seen: it wasn't run, or began before the run was resumed.
    pub(crate) fn unseen(record: &Record, finished: &ToolFinished, caller: Caller, sieve: &Sieve) -> Self {
        let mut tool = Self::new(record, (&finished.tool, &finished.call.0), caller, sieve);
        tool.was_run = matches!(finished.status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut);
        tool.span.started = Timestamp(record.at.0.saturating_sub(finished.duration_ms));
        tool
    }

    fn new(record: &Record, (tool, call): (&str, &str), caller: Caller, sieve: &Sieve) -> Self {
        let tool = sieve.label(tool);
        let mut span = OpenSpan::new(span_id(record.actor, record.seq), caller.span, record.at);
        span.set(names::OPERATION, names::EXECUTE_TOOL);
        span.set(names::TOOL_NAME, tool.clone());
        span.set(names::TOOL_TYPE, "function");
        span.set(names::TOOL_CALL, sieve.label(call));
        caller.named(&mut span);
        Self { span, tool, was_run: false }
    }

    pub(crate) fn finish(mut self, finished: &ToolFinished, at: Timestamp, context: &Context) {
        let error = finished.status.is_error().then(|| names::word(&finished.status));
        // The model invents names of tools that don't exist, without a limit.
        if self.was_run {
            let mut of = vec![KeyValue::new(names::TOOL_NAME, self.tool.clone())];
            of.extend(error.clone().map(|kind| KeyValue::new(names::ERROR_TYPE, kind)));
            context.shared.pipeline.instruments.tool_took(finished.duration_ms, &of);
        }
        if let Some(kind) = error {
            self.span.fail(kind);
        }
        if let Some(output) = context.shared.sieve.text(&finished.output) {
            self.span.set(names::TOOL_RESULT, output);
        }
        self.end(at, context);
    }

    /// Its result will never be known.
    pub(crate) fn unfinished(mut self, at: Timestamp, context: &Context) {
        self.span.set(names::UNFINISHED, true);
        self.end(at, context);
    }

    fn end(self, at: Timestamp, context: &Context) {
        context.ended(self.span, format!("{} {}", names::EXECUTE_TOOL, self.tool), at);
    }
}
