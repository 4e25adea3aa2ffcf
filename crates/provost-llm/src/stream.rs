//! A provider's answer as it arrives: events from a response's body, with timeouts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{ErrorClass, ModelFailure};
use provost_harness::Clock;
use reqwest::Response;

use crate::ModelLimits;
use crate::failure::{cause_of, request_id, stalled};
use crate::sse::Sse;
use crate::stream_timeouts::StreamTimeouts;

/// The events of one answer. Dropping it before the end closes an HTTP/1.1 connection, or ends an HTTP/2 stream.
pub(crate) struct EventStream {
    response: Response,
    sse: Sse,
    ready: VecDeque<String>,
    received_bytes: usize,
    patience: StreamTimeouts,
    limits: ModelLimits,
    clock: Arc<dyn Clock>,
}

impl EventStream {
    pub(crate) fn new(
        response: Response,
        patience: StreamTimeouts,
        limits: ModelLimits,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let sse = Sse::new(limits.event_bytes_max);
        Self { response, sse, ready: VecDeque::new(), received_bytes: 0, patience, limits, clock }
    }

    /// The next event's data; `None` once the stream has ended without an error.
    ///
    /// # Errors
    /// `Stalled`; `Cut` if the connection broke; `MalformedResponse` if it isn't a stream of events or is too large.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, ModelFailure> {
        loop {
            if let Some(data) = self.ready.pop_front() {
                return Ok(Some(data));
            }
            let (due, stall) = self.patience.due();
            let chunk = tokio::select! {
                biased;
                chunk = self.response.chunk() => chunk.map_err(|error| broken(&error))?,
                () = self.clock.sleep_until(due) => return Err(stalled(stall)),
            };
            let Some(chunk) = chunk else { return Ok(None) };
            self.patience.bytes(self.clock.monotonic());
            self.received_bytes = self.received_bytes.saturating_add(chunk.len());
            if self.received_bytes > self.limits.answer_bytes_max {
                return Err(malformed(format!(
                    "the answer is longer than {} bytes",
                    self.limits.answer_bytes_max
                )));
            }
            self.sse.push(&chunk, &mut self.ready).map_err(|error| malformed(error.to_string()))?;
        }
    }

    /// The last event had a piece of the answer.
    pub(crate) fn token(&mut self) {
        self.patience.token(self.clock.monotonic());
    }

    /// The answer is complete except for its usage.
    pub(crate) fn said(&mut self) {
        self.patience.said(self.clock.monotonic());
    }

    /// Reads the rest after the answer, so that the connection can be reused; gives up after a while.
    pub(crate) async fn drain(mut self) {
        let limit = Duration::from_millis(self.limits.drain_ms);
        tokio::select! {
            biased;
            () = async { while let Ok(Some(_)) = self.response.chunk().await {} } => {}
            () = self.clock.sleep(limit) => {}
        }
    }

    /// `failure` with the provider's request id, if it has none of its own.
    pub(crate) fn named(&self, mut failure: ModelFailure) -> ModelFailure {
        failure.request_id = failure.request_id.or_else(|| request_id(self.response.headers()));
        failure
    }
}

fn broken(error: &reqwest::Error) -> ModelFailure {
    ModelFailure::new(ErrorClass::Cut, format!("the connection broke in the middle: {}", cause_of(error)))
}

pub(crate) fn malformed(message: impl Into<String>) -> ModelFailure {
    ModelFailure::new(ErrorClass::MalformedResponse, message)
}
