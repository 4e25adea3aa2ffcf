//! How long to wait for the next piece of an answer.

use provost_event::Timestamp;

use crate::ModelLimits;

/// When a call has stalled, as of what has come so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    limits: ModelLimits,
    asked_at: Timestamp,
    bytes_at: Option<Timestamp>,
    token_at: Option<Timestamp>,
    said_at: Option<Timestamp>,
}

impl Patience {
    pub(crate) const fn since(asked_at: Timestamp, limits: ModelLimits) -> Self {
        Self { limits, asked_at, bytes_at: None, token_at: None, said_at: None }
    }

    /// Something came, if only a ping.
    pub(crate) const fn bytes(&mut self, at: Timestamp) {
        self.bytes_at = Some(at);
    }

    /// A piece of the answer came.
    pub(crate) const fn token(&mut self, at: Timestamp) {
        self.token_at = Some(at);
    }

    /// All was said but what it took.
    pub(crate) const fn said(&mut self, at: Timestamp) {
        if self.said_at.is_none() {
            self.said_at = Some(at);
        }
    }

    /// When the call counts as stalled, and in which words.
    pub(crate) fn due(&self) -> (Timestamp, &'static str, u64) {
        let ModelLimits { first_token_ms, gap_ms, quiet_ms, trailer_ms, .. } = self.limits;
        if let Some(said) = self.said_at {
            return (said.plus_ms(trailer_ms), "the answer's end didn't come", trailer_ms);
        }
        match (self.token_at, self.bytes_at) {
            (None, _) => (self.asked_at.plus_ms(first_token_ms), "no answer began", first_token_ms),
            (Some(token), bytes) => {
                let gap = (bytes.unwrap_or(token).plus_ms(gap_ms), "the answer stopped coming", gap_ms);
                let quiet = (token.plus_ms(quiet_ms), "nothing came but signs of life", quiet_ms);
                if quiet.0 < gap.0 { quiet } else { gap }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use provost_event::Timestamp;

    use super::Patience;
    use crate::ModelLimits;

    fn patience() -> Patience {
        let limits = ModelLimits { first_token_ms: 60, gap_ms: 50, quiet_ms: 600, ..ModelLimits::default() };
        Patience::since(Timestamp(1000), limits)
    }

    #[test]
    fn pings_dont_put_off_the_first_token() {
        let mut patience = patience();
        patience.bytes(Timestamp(1059));
        assert_eq!(patience.due().0, Timestamp(1060));
    }

    #[test]
    fn pings_put_off_the_end_of_a_gap() {
        let mut patience = patience();
        patience.token(Timestamp(1010));
        patience.bytes(Timestamp(1010));
        assert_eq!(patience.due().0, Timestamp(1060));
        patience.bytes(Timestamp(1050));
        assert_eq!(patience.due().0, Timestamp(1100));
    }

    #[test]
    fn pings_alone_dont_keep_a_call_alive_for_ever() {
        let mut patience = patience();
        patience.token(Timestamp(1010));
        patience.bytes(Timestamp(1600));
        assert_eq!(patience.due().0, Timestamp(1610));
    }
}
