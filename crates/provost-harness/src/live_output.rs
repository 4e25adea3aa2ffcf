//! What a running tool call prints, for people who watch.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use provost_event::{Delta, DeltaKind, Seq, SessionId};

use crate::Redactor;
use crate::harness::Deltas;

/// How often changed output is reported.
const EVERY: Duration = Duration::from_millis(100);
/// Bytes kept of the end of an output: secrets are looked for in all of it, so that one of several lines is found.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// Lines of it that are reported.
const LINES_MAX: usize = 20;
/// Bytes of one reported line.
const LINE_BYTES_MAX: usize = 2_000;

/// The way of a running call's output to [`on_delta`](crate::HarnessCallback::on_delta), as
/// [`DeltaKind::Output`]. Nothing of it is stored, and observers don't get it; the call's result does both.
#[derive(Clone, Default)]
pub struct LiveOutput(Option<Arc<Reported>>);

struct Reported {
    session: SessionId,
    started: Seq,
    deltas: Arc<Deltas>,
    redactor: Arc<Redactor>,
    tail: Mutex<Tail>,
}

#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    has_changed: bool,
}

impl LiveOutput {
    /// Output that isn't reported.
    #[must_use]
    pub const fn ignored() -> Self {
        Self(None)
    }

    /// That of the call which the session's entry `started` began.
    pub(crate) fn of(session: SessionId, started: Seq, deltas: Arc<Deltas>, redactor: Arc<Redactor>) -> Self {
        let tail = Mutex::default();
        Self(Some(Arc::new(Reported { session, started, deltas, redactor, tail })))
    }

    /// Takes in a piece, which may end anywhere. It is reported soon, while [`LiveOutput::during`] runs.
    pub fn add(&self, piece: &[u8]) {
        if let Some(reported) = &self.0 {
            reported.tail().add(piece);
        }
    }

    /// Does `work`, and reports meanwhile the last lines of the output whenever it has changed, at most ten times a
    /// second, without secrets.
    ///
    /// # Cancellation
    /// That of `work`.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(reported) = &self.0 else { return work.await };
        let mut work = pin!(work);
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = ticks.tick() => reported.report(),
            }
        }
    }
}

impl Reported {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) {
        let Some(bytes) = self.tail().take_changed() else { return };
        let text = String::from_utf8_lossy(&bytes);
        // The beginning may be the rest of a secret.
        let text = self.redactor.redact_cut(&text);
        let delta = Delta { session: self.session, kind: DeltaKind::Output, text: last_lines(&text) };
        self.deltas.delta(self.started, delta);
    }
}

impl Tail {
    fn add(&mut self, piece: &[u8]) {
        let piece = piece.get(piece.len().saturating_sub(KEPT_BYTES_MAX)..).unwrap_or_default();
        let surplus = (self.bytes.len() + piece.len()).saturating_sub(KEPT_BYTES_MAX);
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.bytes.extend_from_slice(piece);
        self.has_changed |= !piece.is_empty();
    }

    fn take_changed(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.has_changed).then(|| self.bytes.clone())
    }
}

/// The last lines, long ones cut. A line that was written over by a carriage return is what was written last.
fn last_lines(text: &str) -> String {
    let mut lines = text.trim_end().lines().rev().take(LINES_MAX).map(as_seen).collect::<Vec<_>>();
    lines.reverse();
    lines.join("\n")
}

fn as_seen(line: &str) -> &str {
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    line.get(..line.floor_char_boundary(LINE_BYTES_MAX)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, Tail, last_lines};

    #[test]
    fn of_a_flood_the_end_is_kept() {
        let mut tail = Tail::default();
        assert!(tail.take_changed().is_none());
        tail.add(&vec![b'a'; 3 * KEPT_BYTES_MAX]);
        tail.add(b"the end");
        let kept = tail.take_changed().unwrap();
        assert_eq!(kept.len(), KEPT_BYTES_MAX);
        assert!(kept.ends_with(b"aathe end"));
        assert!(tail.take_changed().is_none(), "it was reported");
    }

    #[test]
    fn lines_are_as_a_terminal_would_leave_them() {
        assert_eq!(last_lines("a\r\n10%\r50%\r100%\n\n"), "a\n100%");
        assert_eq!(last_lines(&"x\n".repeat(100)), ["x"; LINES_MAX].join("\n"));
        assert_eq!(last_lines(&"é".repeat(LINE_BYTES_MAX)).len(), LINE_BYTES_MAX);
    }
}
