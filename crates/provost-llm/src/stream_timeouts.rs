//! How long to wait for the next piece of an answer.

use provost_event::{Elapsed, ErrorClass};

use crate::ModelLimits;

/// When a call counts as stalled, given what has arrived so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamTimeouts {
    limits: ModelLimits,
    /// The factor on the usual time without events.
    times: u32,
    asked_at: Elapsed,
    first_at: Option<Elapsed>,
    bytes_at: Option<Elapsed>,
    token_at: Option<Elapsed>,
    said_at: Option<Elapsed>,
}

impl StreamTimeouts {
    pub(crate) const fn since(asked_at: Elapsed, limits: ModelLimits, times: u32) -> Self {
        Self { limits, times, asked_at, first_at: None, bytes_at: None, token_at: None, said_at: None }
    }

    /// Any bytes arrived, at least a ping.
    pub(crate) const fn bytes(&mut self, at: Elapsed) {
        if self.first_at.is_none() {
            self.first_at = Some(at);
        }
        self.bytes_at = Some(at);
    }

    /// A piece of the answer arrived.
    pub(crate) const fn token(&mut self, at: Elapsed) {
        self.token_at = Some(at);
    }

    /// Everything but the usage arrived.
    pub(crate) const fn said(&mut self, at: Elapsed) {
        if self.said_at.is_none() {
            self.said_at = Some(at);
        }
    }

    /// When the call counts as stalled, and the error for it.
    pub(crate) fn due(&self) -> (Elapsed, Stall) {
        let ModelLimits { first_event_ms, gap_ms, quiet_ms, trailer_ms, .. } = self.limits;
        if let Some(said) = self.said_at {
            let stall = (ErrorClass::Stalled, "the answer's end didn't come", trailer_ms);
            return (said.plus_ms(trailer_ms), stall);
        }
        let (Some(first), Some(bytes)) = (self.first_at, self.bytes_at) else {
            let wait_ms = first_event_ms.saturating_mul(self.times.max(1).into());
            return (self.asked_at.plus_ms(wait_ms), (ErrorClass::Silent, "nothing came", wait_ms));
        };
        let gap = (bytes.plus_ms(gap_ms), (ErrorClass::Stalled, "the answer stopped coming", gap_ms));
        let quiet_since = self.token_at.unwrap_or(first);
        let words = "nothing came but signs of life";
        let quiet = (quiet_since.plus_ms(quiet_ms), (ErrorClass::Stalled, words, quiet_ms));
        if quiet.0 < gap.0 { quiet } else { gap }
    }
}

/// The class of a stall, what didn't arrive, and for how many milliseconds.
pub(crate) type Stall = (ErrorClass, &'static str, u64);

#[cfg(test)]
mod tests {
    use provost_event::{Elapsed, ErrorClass};

    use super::StreamTimeouts;
    use crate::ModelLimits;

    fn patience(times: u32) -> StreamTimeouts {
        let limits = ModelLimits { first_event_ms: 60, gap_ms: 50, quiet_ms: 600, ..ModelLimits::default() };
        StreamTimeouts::since(Elapsed(1000), limits, times)
    }

    #[test]
    fn a_ping_is_a_sign_of_life_before_the_first_token() {
        let mut patience = patience(1);
        assert_eq!((patience.due().0, patience.due().1.0), (Elapsed(1060), ErrorClass::Silent));
        patience.bytes(Elapsed(1059));
        assert_eq!((patience.due().0, patience.due().1.0), (Elapsed(1109), ErrorClass::Stalled));
    }

    #[test]
    fn a_stream_without_a_byte_may_take_longer_to_begin() {
        assert_eq!(patience(3).due().0, Elapsed(1180));
    }

    #[test]
    fn pings_put_off_the_end_of_a_gap() {
        let mut patience = patience(1);
        patience.bytes(Elapsed(1010));
        patience.token(Elapsed(1010));
        assert_eq!(patience.due().0, Elapsed(1060));
        patience.bytes(Elapsed(1050));
        assert_eq!(patience.due().0, Elapsed(1100));
    }

    #[test]
    fn pings_alone_dont_keep_a_call_alive_for_ever() {
        let mut patience = patience(1);
        patience.bytes(Elapsed(1010));
        patience.bytes(Elapsed(1600));
        assert_eq!(patience.due().0, Elapsed(1610));
        patience.token(Elapsed(1600));
        assert_eq!(patience.due().0, Elapsed(1650));
    }
}
