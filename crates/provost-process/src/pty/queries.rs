//! Which replies a program gets to its queries: those of a person's terminal while one is attached, else those of the
//! reader of its screen.

use std::time::Duration;

/// Maximum bytes of withheld replies, and of queries for a terminal that is to come.
const WITHHELD_BYTES_MAX: usize = 16 * 1024;

/// A terminal that leaves this soon after a query has perhaps not answered it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answering {
    Reader,
    /// A terminal that is expected until this time, since the program's start.
    TerminalToCome(Duration),
    Terminal,
}

pub(super) struct Queries {
    answering: Answering,
    /// The reader's replies to queries that a terminal is to answer.
    withheld: Vec<u8>,
    withheld_at: Duration,
    /// The queries of a terminal that is to come.
    asked: Vec<u8>,
}

impl Queries {
    /// A terminal is expected until `awaited`.
    pub(super) fn new(awaited: Duration) -> Self {
        let answering =
            if awaited.is_zero() { Answering::Reader } else { Answering::TerminalToCome(awaited) };
        Self { answering, withheld: Vec::new(), withheld_at: Duration::ZERO, asked: Vec::new() }
    }

    /// Takes queries and the reader's replies to them; returns the replies to type now.
    pub(super) fn take(
        &mut self,
        now: Duration,
        queries: impl FnOnce() -> Vec<u8>,
        replies: Vec<u8>,
    ) -> Vec<u8> {
        match self.answering {
            Answering::Reader => return replies,
            Answering::TerminalToCome(_) => {
                let queries = queries();
                if self.asked.len() + queries.len() <= WITHHELD_BYTES_MAX {
                    self.asked.extend(queries);
                }
            }
            Answering::Terminal => self.forget_old(now),
        }
        if self.withheld.len() + replies.len() <= WITHHELD_BYTES_MAX {
            self.withheld.extend(replies);
        }
        self.withheld_at = now;
        Vec::new()
    }

    /// A terminal has come; returns the queries that have waited for it.
    pub(super) fn terminal_came(&mut self, now: Duration) -> Vec<u8> {
        self.answering = Answering::Terminal;
        self.withheld_at = now;
        std::mem::take(&mut self.asked)
    }

    /// The terminal has answered.
    pub(super) fn answered(&mut self) {
        self.withheld.clear();
    }

    /// Whether a terminal answers.
    pub(super) fn has_terminal(&self) -> bool {
        self.answering == Answering::Terminal
    }

    /// The last terminal has left; returns the replies to type in its place.
    pub(super) fn terminal_left(&mut self, now: Duration) -> Vec<u8> {
        self.answering = Answering::Reader;
        self.forget_old(now);
        std::mem::take(&mut self.withheld)
    }

    /// When [`due`](Self::due) has replies.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.answering {
            Answering::TerminalToCome(until) => Some(until),
            Answering::Reader | Answering::Terminal => None,
        }
    }

    /// The replies to type because no terminal has come.
    pub(super) fn due(&mut self, now: Duration) -> Vec<u8> {
        if self.deadline().is_none_or(|until| now < until) {
            return Vec::new();
        }
        self.answering = Answering::Reader;
        self.asked = Vec::new();
        std::mem::take(&mut self.withheld)
    }

    fn forget_old(&mut self, now: Duration) {
        if now.saturating_sub(self.withheld_at) > ANSWERS_WITHIN {
            self.withheld.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Queries};

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn queries_wait_for_the_terminal_that_is_to_come_and_no_longer() {
        let mut queries = Queries::new(at(1_000));
        assert_eq!(queries.take(at(10), || b"q".to_vec(), b"r".to_vec()), b"");
        assert_eq!(queries.terminal_came(at(20)), b"q");
        assert_eq!(queries.take(at(30), Vec::new, b"s".to_vec()), b"");
        assert_eq!(queries.due(at(2_000)), b"");
        let mut queries = Queries::new(at(1_000));
        assert_eq!(queries.take(at(10), || b"q".to_vec(), b"r".to_vec()), b"");
        assert_eq!(queries.due(at(999)), b"");
        assert_eq!(queries.due(at(1_000)), b"r");
        assert_eq!(queries.take(at(1_001), Vec::new, b"s".to_vec()), b"s");
    }

    #[test]
    fn what_a_terminal_that_left_has_not_answered_is_answered_in_its_place() {
        let mut queries = Queries::new(Duration::ZERO);
        queries.terminal_came(at(0));
        queries.take(at(10), Vec::new, b"r".to_vec());
        assert_eq!(queries.terminal_left(at(500)), b"r");
        queries.terminal_came(at(600));
        queries.take(at(700), Vec::new, b"r".to_vec());
        queries.answered();
        assert_eq!(queries.terminal_left(at(800)), b"");
        queries.terminal_came(at(900));
        queries.take(at(1_000), Vec::new, b"r".to_vec());
        assert_eq!(queries.terminal_left(at(9_000)), b"", "the program no longer waits for it");
    }
}
