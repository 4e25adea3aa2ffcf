//! Lines of a stream, each with a limit.

use std::convert::Infallible;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::Piped;

const BUFFER_BYTES: usize = 64 * 1024;
/// Bytes kept of a line beyond the limit.
const BEGIN_BYTES: usize = 200;

/// Reads the lines of `pipe`.
pub(super) struct Lines<P> {
    pipe: BufReader<P>,
    line: Vec<u8>,
    /// Bytes of the present line, including those beyond the limit.
    bytes: u64,
    bytes_max: usize,
    has_ended: bool,
}

impl<P: AsyncRead + Unpin> Lines<P> {
    pub(super) fn new(pipe: P, bytes_max: usize) -> Self {
        let pipe = BufReader::with_capacity(BUFFER_BYTES, pipe);
        Self { pipe, line: Vec::new(), bytes: 0, bytes_max, has_ended: false }
    }

    /// The next line; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Piped> {
        while !self.has_ended {
            let (taken, is_whole) = match self.pipe.fill_buf().await {
                Ok(chunk) => take(chunk, &mut self.line, self.bytes_max),
                Err(error) => {
                    tracing::warn!(%error, "a child's output could not be read to its end");
                    (0, false)
                }
            };
            self.has_ended = taken == 0;
            self.pipe.consume(taken);
            let length = if is_whole { taken.saturating_sub(1) } else { taken };
            self.bytes = self.bytes.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
            if is_whole || (self.has_ended && self.bytes > 0) {
                return Some(self.finish());
            }
        }
        None
    }

    /// Reads and drops until cancelled.
    pub(super) async fn discard(&mut self) -> Infallible {
        while self.next().await.is_some() {}
        std::future::pending().await
    }

    fn finish(&mut self) -> Piped {
        let (line, bytes) = (std::mem::take(&mut self.line), std::mem::take(&mut self.bytes));
        if u64::try_from(line.len()).is_ok_and(|kept| kept < bytes) {
            let begin = line.get(..BEGIN_BYTES).unwrap_or(&line);
            return Piped::TooLong { bytes, begin: String::from_utf8_lossy(begin).into_owned() };
        }
        Piped::Line(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned())
    }
}

/// Adds the part of `chunk` that belongs to the line, within the limit. Returns how many bytes were taken, and
/// whether the line is complete.
fn take(chunk: &[u8], line: &mut Vec<u8>, bytes_max: usize) -> (usize, bool) {
    let end = chunk.iter().position(|byte| *byte == b'\n');
    let piece = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
    let room = bytes_max.saturating_sub(line.len());
    line.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
    match end {
        Some(at) => (at.saturating_add(1), true),
        None => (chunk.len(), false),
    }
}
