//! The program's output as text, kept until it is read.

use std::sync::Mutex;

use tokio::sync::Notify;

use super::locked;

/// Maximum bytes of queued output; when the limit is reached, the terminal isn't read, and the program waits as
/// soon as the terminal is full. The output of one read (64 KiB), and at the program's end the rest in the
/// terminal (at most 1 MiB), may exceed it.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// Text between the terminal's thread and its reader.
#[derive(Default)]
pub(super) struct Output {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Default)]
struct Held {
    text: String,
    /// The first bytes of an incomplete character.
    cut: Vec<u8>,
    is_closed: bool,
}

impl Output {
    pub(super) fn add(&self, bytes: &[u8]) {
        locked(&self.held).add(bytes);
        self.changed.notify_one();
    }

    pub(super) fn is_full(&self) -> bool {
        locked(&self.held).text.len() >= OUTPUT_BYTES_MAX
    }

    pub(super) fn close(&self) {
        let mut held = locked(&self.held);
        held.is_closed = true;
        if !std::mem::take(&mut held.cut).is_empty() {
            held.text.push(char::REPLACEMENT_CHARACTER);
        }
        drop(held);
        self.changed.notify_one();
    }

    /// All text since the last call, and whether the queue was full; `None` after the end.
    pub(super) async fn take(&self) -> Option<(String, bool)> {
        loop {
            {
                let mut held = locked(&self.held);
                if !held.text.is_empty() {
                    let was_full = held.text.len() >= OUTPUT_BYTES_MAX;
                    return Some((std::mem::take(&mut held.text), was_full));
                }
                if held.is_closed {
                    // For other waiting readers.
                    self.changed.notify_one();
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

impl Held {
    fn add(&mut self, bytes: &[u8]) {
        let joined;
        let bytes = if self.cut.is_empty() {
            bytes
        } else {
            self.cut.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.cut);
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_cut = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_cut {
                self.cut = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is the same for any cuts.
    #[tokio::test]
    async fn text_is_the_same_however_the_bytes_are_cut() {
        let bytes = "aä€𝄞z".bytes().chain(*b"\xff\xc3(\xf0\x9d\x84").collect::<Vec<u8>>();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let output = Output::default();
                output.add(&bytes[..first]);
                output.add(&bytes[first..second]);
                output.add(&bytes[second..]);
                output.close();
                let (text, _) = output.take().await.unwrap();
                assert_eq!(text, String::from_utf8_lossy(&bytes), "{first} {second}");
                assert!(output.take().await.is_none());
            }
        }
    }
}
