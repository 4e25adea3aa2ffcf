//! Writes and reads a child's pipes while another task waits for the child.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, Captured};
use crate::log_file::LogWriter;

/// How long a stream may stay open after all known processes that held it are gone.
const OPEN_AFTER_END_MAX: Duration = Duration::from_secs(2);

const CHUNK_BYTES: usize = 64 * 1024;

/// Writes `input` and closes the pipe. A reader that closes its end early is no error; stops once `ended` is
/// cancelled.
pub(crate) async fn feed(pipe: Option<impl AsyncWrite + Unpin>, input: &[u8], ended: &CancellationToken) {
    let Some(mut pipe) = pipe else { return };
    let written = ended.run_until_cancelled(pipe.write_all(input)).await;
    if let Some(Err(error)) = written {
        tracing::debug!(%error, "the child did not take all of its standard input");
    }
}

/// What is kept of a stream.
pub(crate) struct Kept<'l> {
    /// Bytes kept in memory.
    pub(crate) bytes_max: usize,
    /// Gets all of it.
    pub(crate) log: Option<&'l mut LogWriter>,
    /// Is shown all of it as it comes.
    pub(crate) watch: Option<OutputWatch<'l>>,
}

/// Is shown the output of a child as it is read, in pieces that end anywhere. Must not block.
pub type OutputWatch<'w> = &'w (dyn Fn(&[u8]) + Sync);

/// Reads until the stream ends, or until [`OPEN_AFTER_END_MAX`] after `ended` is cancelled.
pub(crate) async fn drain(
    pipe: Option<impl AsyncRead + Unpin>,
    kept: Kept<'_>,
    ended: &CancellationToken,
) -> Captured {
    let Kept { bytes_max, mut log, watch } = kept;
    let mut capture = Capture::new(bytes_max);
    if let Some(pipe) = pipe {
        let keep = |chunk: &[u8]| {
            capture.add(chunk);
            if let Some(log) = &mut log {
                log.add(chunk);
            }
            if let Some(watch) = watch {
                watch(chunk);
            }
        };
        tokio::select! {
            biased;
            () = read_to_end(pipe, keep) => {}
            () = long_ended(ended) => tracing::warn!("a child is gone, but another process holds its output open"),
        }
    }
    capture.finish()
}

async fn read_to_end(mut pipe: impl AsyncRead + Unpin, mut keep: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) => return,
            Ok(count) => keep(buffer.get(..count).unwrap_or_default()),
            Err(error) => return tracing::warn!(%error, "a child's output could not be read to its end"),
        }
    }
}

async fn long_ended(ended: &CancellationToken) {
    ended.cancelled().await;
    tokio::time::sleep(OPEN_AFTER_END_MAX).await;
}
