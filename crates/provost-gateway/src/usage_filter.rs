//! Hides the usage that the gateway has asked for, and the program hasn't, from a stream of Chat Completions.

use serde_json::Value;

use crate::json::Members;

/// Bytes of one event; a longer one passes unchanged.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Passes events on without their usage.
#[derive(Debug, Default)]
pub(crate) struct UsageFilter {
    held: Vec<u8>,
}

impl UsageFilter {
    /// The complete events among what has arrived, without their usage.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(bytes.len());
        while let Some(end) = end_of_event(&self.held) {
            let event = self.held.drain(..end).collect::<Vec<_>>();
            out.extend(without_usage(event));
        }
        if self.held.len() > EVENT_BYTES_MAX {
            out.append(&mut self.held);
        }
        out
    }

    /// What is left at the end of the stream.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.held
    }
}

/// The end of the first event, behind its empty line.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let ends: [&[u8]; 3] = [b"\n\n", b"\r\n\r\n", b"\r\r"];
    let find =
        |end: &[u8]| bytes.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    ends.into_iter().filter_map(find).min()
}

fn without_usage(event: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&event) else { return event };
    let Some(data) = text.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim) else {
        return event;
    };
    let Ok(members) = Members::of(data) else { return event };
    if members.get("usage").is_none() {
        return event;
    }
    let choices = members.get("choices").and_then(|text| serde_json::from_str::<Value>(text).ok());
    if choices.is_some_and(|choices| choices.as_array().is_some_and(Vec::is_empty)) {
        return Vec::new();
    }
    text.replacen(data, &members.without("usage"), 1).into_bytes()
}
