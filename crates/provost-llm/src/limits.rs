//! Limits on the time and size of an answer.

/// The limits of one model call. Time is in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Until the connection is made; then the call fails as `transport`. Default 10 s.
    pub connect_ms: u64,
    /// From the request until the first event, pings included. Then it fails as `silent`. Default 120 s.
    pub first_event_ms: u64,
    /// Without any event, pings included, after the first; then it fails as `stalled`. Default 120 s.
    pub gap_ms: u64,
    /// Without any event except pings: a model that thinks without showing it. Then it fails as `stalled`. Default
    /// 30 min.
    pub quiet_ms: u64,
    /// From the end of an answer's text until its usage arrives, in formats that send it afterwards; then the
    /// answer counts without it. Default 2 s.
    pub trailer_ms: u64,
    /// From the end of an answer until that of its stream, which is needed to reuse the connection. A connection
    /// that takes longer is closed; the answer counts. Default 0.5 s.
    pub drain_ms: u64,
    /// Bytes of an answer on the wire; more is `malformed`. Default 16 MiB.
    pub answer_bytes_max: usize,
    /// Bytes of one event of the stream; more is `malformed`. Default 4 MiB.
    pub event_bytes_max: usize,
    /// Bytes read of an error's body; the rest is ignored. Default 64 KiB.
    pub error_body_bytes_max: usize,
    /// Characters kept of a provider's error message. Default 1000.
    pub message_chars_max: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connect_ms: 10_000,
            first_event_ms: 120_000,
            gap_ms: 120_000,
            quiet_ms: 1_800_000,
            trailer_ms: 2_000,
            drain_ms: 500,
            answer_bytes_max: 16 * 1024 * 1024,
            event_bytes_max: 4 * 1024 * 1024,
            error_body_bytes_max: 64 * 1024,
            message_chars_max: 1000,
        }
    }
}
