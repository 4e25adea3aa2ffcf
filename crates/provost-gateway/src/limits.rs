//! The gateway's limits.

use std::time::Duration;

/// The limits of the gateway. What exceeds one is refused with an error in the provider's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Connections at once, of all programs; further ones wait. Default 2,048.
    pub connections_max: usize,
    /// Requests of one program at once; further ones get status 429. Default 1,024.
    pub requests_max: usize,
    /// Bytes of a request's body; a longer one gets status 413. Default 32 MiB.
    pub request_bytes_max: usize,
    /// Bytes of all bodies of requests that are held at once; further ones get status 429. Default 256 MiB.
    pub held_bytes_max: usize,
    /// The time for a request's body to arrive. Default 60 s.
    pub request_time: Duration,
    /// The time for a request to get its budget, while calls of the same program hold it. Default 10 min.
    pub budget_time: Duration,
    /// The time without a byte of an answer; then it counts as cut. Default 30 min.
    pub gap: Duration,
    /// Bytes of an answer that are kept to read or to record it. Default 16 MiB.
    pub answer_bytes_max: usize,
    /// Pieces of an answer that wait for a slow program, before the provider has to wait too. Default 8.
    pub pieces_max: usize,
    /// Requested tools of an answer in the log. Default 32.
    pub tools_max: usize,
    /// Bytes of a requested tool's arguments in the log. Default 2 KiB.
    pub tool_bytes_max: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            connections_max: 2_048,
            requests_max: 1_024,
            request_bytes_max: 32 * 1024 * 1024,
            held_bytes_max: 256 * 1024 * 1024,
            request_time: Duration::from_secs(60),
            budget_time: Duration::from_secs(600),
            gap: Duration::from_secs(1_800),
            answer_bytes_max: 16 * 1024 * 1024,
            pieces_max: 8,
            tools_max: 32,
            tool_bytes_max: 2 * 1024,
        }
    }
}
