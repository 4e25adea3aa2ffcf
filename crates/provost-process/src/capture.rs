//! The kept part of a stream: its head and its tail, for any length.

use std::collections::VecDeque;

/// Holds the beginning and the end of one stream of a child.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    total_bytes: u64,
}

impl Captured {
    /// Returns how many bytes were written in all.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns how many bytes between head and tail were dropped.
    pub fn bytes_left_out(&self) -> u64 {
        self.total_bytes - self.head.len() as u64 - self.tail.len() as u64
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }

    /// Returns the first bytes; everything but the tail when nothing was left out.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the last bytes, after those left out.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Returns the text, with U+FFFD for what isn't UTF-8, and with a line `[N bytes left out]` in the middle if
    /// something was dropped. A character cut by the dropping counts as left out.
    pub fn to_text_lossy(&self) -> String {
        if self.bytes_left_out() == 0 {
            return String::from_utf8_lossy(&[self.head(), self.tail()].concat()).into_owned();
        }
        let (head, tail) = (without_cut_end(&self.head), without_cut_start(&self.tail));
        let left_out = self.total_bytes - head.len() as u64 - tail.len() as u64;
        let head = String::from_utf8_lossy(head);
        let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{line_end}[{left_out} bytes left out]\n{}", String::from_utf8_lossy(tail))
    }
}

/// Drops the last bytes if they begin a character they don't finish.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let from_last_start = bytes.iter().rev().take(4).position(|byte| !is_continuation(*byte));
    let Some(continuations) = from_last_start else { return bytes };
    let Some((whole, last)) = bytes.split_at_checked(bytes.len() - continuations - 1) else { return bytes };
    let cut = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if cut { whole } else { bytes }
}

/// Drops the first bytes if they end a character that began before them.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let continuations = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    bytes.get(continuations..).unwrap_or_default()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Collects a [`Captured`] chunk by chunk, within a fixed number of bytes.
#[derive(Clone)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_bytes_max: usize,
    tail: VecDeque<u8>,
    tail_bytes_max: usize,
    total_bytes: u64,
}

impl Capture {
    pub(crate) fn new(keep_bytes_max: usize) -> Self {
        let head_bytes_max = keep_bytes_max / 2;
        Self {
            head: Vec::new(),
            head_bytes_max,
            tail: VecDeque::new(),
            tail_bytes_max: keep_bytes_max - head_bytes_max,
            total_bytes: 0,
        }
    }

    pub(crate) fn add(&mut self, chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        let room = self.head_bytes_max - self.head.len();
        let (for_head, rest) = chunk.split_at_checked(room).unwrap_or((chunk, &[]));
        self.head.extend_from_slice(for_head);
        let for_tail = rest.get(rest.len().saturating_sub(self.tail_bytes_max)..).unwrap_or_default();
        let too_many = (self.tail.len() + for_tail.len()).saturating_sub(self.tail_bytes_max);
        self.tail.drain(..too_many);
        self.tail.extend(for_tail);
    }

    pub(crate) fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), total_bytes: self.total_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::{Capture, Captured};

    fn capture(keep_bytes_max: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(keep_bytes_max);
        for chunk in chunks {
            capture.add(chunk);
        }
        capture.finish()
    }

    /// For any chunks, the result equals that of the whole text cut by hand.
    #[test]
    fn head_and_tail_equal_a_naive_cut_for_every_size_and_chunking() {
        let text: Vec<u8> = (0..40).collect();
        for length in 0..=text.len() {
            for keep in 0..=text.len() + 1 {
                for step in 1..=length.max(1) {
                    let chunks: Vec<&[u8]> = text[..length].chunks(step).collect();
                    let captured = capture(keep, &chunks);
                    let head = length.min(keep / 2);
                    let tail = (length - head).min(keep - keep / 2);
                    assert_eq!(captured.head(), &text[..head], "{length} {keep} {step}");
                    assert_eq!(captured.tail(), &text[length - tail..length], "{length} {keep} {step}");
                    assert_eq!(captured.bytes_left_out(), (length - head - tail) as u64);
                    assert_eq!(captured.is_empty(), length == 0);
                }
            }
        }
    }

    #[test]
    fn text_has_no_line_when_nothing_was_left_out_and_no_character_is_split_at_the_seam() {
        assert_eq!(capture(6, &["äöü".as_bytes()]).to_text_lossy(), "äöü");
        assert_eq!(capture(7, &["äöü".as_bytes()]).to_text_lossy(), "äöü");
        assert_eq!(capture(0, &[]).to_text_lossy(), "");
    }

    #[test]
    fn text_names_the_left_out_bytes_on_a_line_of_its_own() {
        assert_eq!(capture(4, &[b"abcdefgh"]).to_text_lossy(), "ab\n[4 bytes left out]\ngh");
        assert_eq!(capture(4, &[b"a\ncdefgh"]).to_text_lossy(), "a\n[4 bytes left out]\ngh");
        assert_eq!(capture(0, &[b"abc"]).to_text_lossy(), "[3 bytes left out]\n");
    }

    #[test]
    fn cut_characters_count_as_left_out() {
        for keep in 2..16 {
            let text = capture(keep, &["€𝄞ä€𝄞ä€𝄞ä".as_bytes()]).to_text_lossy();
            assert!(!text.contains('\u{fffd}'), "{keep}: {text}");
            let kept: usize = text.chars().filter(|c| !c.is_ascii()).map(char::len_utf8).sum();
            assert!(text.contains(&format!("[{} bytes left out]", 27 - kept)), "{keep}: {text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(capture(99, &[b"a\xff\xfeb"]).to_text_lossy(), "a\u{fffd}\u{fffd}b");
        assert_eq!(capture(2, &[b"\xff\xff\xff"]).to_text_lossy(), "\u{fffd}\n[1 bytes left out]\n\u{fffd}");
    }
}
