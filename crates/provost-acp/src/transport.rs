//! Lines in and out, with limits: a message of the protocol is a line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{Sink, Stream};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

/// Bytes of a message of the editor. A longer one is answered as an invalid request.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Stands for a message that was too long: JSON, and no request.
const TOO_LONG: &str = "\"the message was longer than 8 MiB\"";
/// Updates that are on their way to the editor.
const UPDATES_MAX: usize = 256;

/// The editor's messages.
pub(crate) fn incoming(
    input: impl AsyncRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    futures::stream::unfold(BufReader::new(input), |mut input| async move {
        let line = next_message(&mut input).await.transpose()?;
        Some((line, input))
    })
}

/// The next line that isn't empty; `None` at the end.
async fn next_message(input: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let read = input.fill_buf().await?;
        let is_end = read.is_empty();
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        is_too_long |= line.len().saturating_add(part.len()) > MESSAGE_BYTES_MAX;
        if is_too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let taken = part.len() + usize::from(end.is_some());
        input.consume(taken);
        if !is_end && end.is_none() {
            continue;
        }
        if is_too_long {
            return Ok(Some(TOO_LONG.to_owned()));
        }
        if !line.trim_ascii().is_empty() {
            // What isn't UTF-8 is no JSON either, and is answered as such.
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
        if is_end {
            return Ok(None);
        }
        line.clear();
    }
}

/// Messages to the editor. `way` is told of each that was written.
pub(crate) fn outgoing(
    output: impl AsyncWrite + Send + Unpin + 'static,
    way: Arc<OnTheWay>,
) -> Pin<Box<dyn Sink<String, Error = io::Error> + Send>> {
    Box::pin(futures::sink::unfold(output, move |mut output, mut line: String| {
        let way = way.clone();
        async move {
            line.push('\n');
            output.write_all(line.as_bytes()).await?;
            output.flush().await?;
            way.written();
            Ok::<_, io::Error>(output)
        }
    }))
}

/// How many updates are on their way to the editor. Answers that are written count as one, too: there are few.
#[derive(Default)]
pub(crate) struct OnTheWay {
    updates: AtomicUsize,
    has_room: Notify,
}

impl OnTheWay {
    /// Waits until another update may be sent, and counts it.
    pub(crate) async fn enter(&self) {
        loop {
            let room = self.has_room.notified();
            if self.updates.load(Ordering::Relaxed) < UPDATES_MAX {
                self.updates.fetch_add(1, Ordering::Relaxed);
                return;
            }
            room.await;
        }
    }

    fn written(&self) {
        let less = |updates: usize| Some(updates.saturating_sub(1));
        let _ = self.updates.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.has_room.notify_one();
    }
}
