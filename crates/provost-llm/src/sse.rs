//! Server-sent events, from pieces cut anywhere.
//!
//! The rules are those of the HTML standard, section 9.2.6, but stricter: the text must be UTF-8, and an event has
//! a maximum size. Only `data` is used, since the providers' data includes the type; other fields and comments are
//! ignored. An event that is incomplete at the stream's end is dropped.

use std::collections::VecDeque;

/// Why bytes aren't a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    #[error("an event of the stream is longer than {max} bytes")]
    TooLong { max: usize },
    #[error("the stream isn't UTF-8")]
    NotText,
}

/// Parses events.
pub(crate) struct Sse {
    event_bytes_max: usize,
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a CR whose LF may follow.
    after_cr: bool,
    /// No line has ended yet: the first one may begin with a byte order mark.
    at_start: bool,
}

impl Sse {
    pub(crate) const fn new(event_bytes_max: usize) -> Self {
        Self { event_bytes_max, line: Vec::new(), data: None, after_cr: false, at_start: true }
    }

    /// Parses the next piece of the stream and adds the data of each complete event to `events`.
    pub(crate) fn push(&mut self, piece: &[u8], events: &mut VecDeque<String>) -> Result<(), SseError> {
        let mut rest = piece;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = rest.split_at(at);
            self.add(line)?;
            rest = match end {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.after_cr = end == b"\r";
            self.end_line(events)?;
        }
        self.add(rest)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held.saturating_add(bytes.len()) > self.event_bytes_max {
            return Err(SseError::TooLong { max: self.event_bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut VecDeque<String>) -> Result<(), SseError> {
        let line = std::str::from_utf8(&self.line).map_err(|_| SseError::NotText)?;
        let line = if self.at_start { line.trim_start_matches('\u{feff}') } else { line };
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if line.is_empty() {
            events.extend(self.data.take());
        } else if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            }
        }
        self.line.clear();
        self.at_start = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{Sse, SseError};

    fn read(pieces: &[&[u8]]) -> Result<Vec<String>, SseError> {
        let (mut sse, mut events) = (Sse::new(64), VecDeque::new());
        for piece in pieces {
            sse.push(piece, &mut events)?;
        }
        Ok(events.into())
    }

    #[track_caller]
    fn check(stream: &str, expected: &[&str]) {
        for at in 0..=stream.len() {
            let (a, b) = stream.as_bytes().split_at(at);
            assert_eq!(read(&[a, b]).unwrap(), expected, "cut at {at}");
        }
        let bytes = stream.as_bytes().chunks(1).collect::<Vec<_>>();
        assert_eq!(read(&bytes).unwrap(), expected, "byte by byte");
    }

    #[test]
    fn every_line_ending_ends_a_line_wherever_the_stream_is_cut() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\rdata: b\n\r\n", &["a", "b"]);
    }

    #[test]
    fn comments_other_fields_and_a_byte_order_mark_are_passed_over() {
        check("\u{feff}data: a\n\n", &["a"]);
        check(": hello\nevent: x\nid: 1\nretry: 5\ndata:a\n\n:\n\n", &["a"]);
    }

    #[test]
    fn data_lines_are_joined_and_lose_one_space_each() {
        check("data: a\ndata:  b\ndata\ndata:c\n\n", &["a\n b\n\nc"]);
        check("data: a\r\ndata: b\r\n\r\n", &["a\nb"]);
        check("data: grüße\n\n", &["grüße"]);
    }

    #[test]
    fn an_event_without_its_empty_line_is_none() {
        check("data: a\n\ndata: b\n", &["a"]);
        check("data: a", &[]);
        check("", &[]);
    }

    #[test]
    fn an_event_of_the_largest_size_is_read_and_one_byte_more_is_refused() {
        let line = format!("data: {}\n\n", "x".repeat(58));
        assert_eq!(read(&[line.as_bytes()]).unwrap().len(), 1);
        let line = format!("data: {}\n\n", "x".repeat(59));
        assert_eq!(read(&[line.as_bytes()]), Err(SseError::TooLong { max: 64 }));
        let lines = "data: 12345678\n".repeat(8);
        assert_eq!(read(&[lines.as_bytes()]), Err(SseError::TooLong { max: 64 }));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(read(&[b"data: \xff\n\n"]), Err(SseError::NotText));
    }

    proptest! {
        #[test]
        fn cuts_dont_matter_and_nothing_panics(
            words in prop::collection::vec(
                prop::sample::select(vec!["data: a", "data:", "ü", ":", "event: x", "\n", "\r", "\r\n", "\u{feff}"]),
                0..24,
            ),
            cut in 1..9_usize,
        ) {
            let stream = words.concat();
            let whole = read(&[stream.as_bytes()]);
            let pieces = read(&stream.as_bytes().chunks(cut).collect::<Vec<_>>());
            if let (Ok(whole), Ok(pieces)) = (&whole, &pieces) {
                prop_assert_eq!(whole, pieces);
            }
            prop_assert_eq!(whole.is_ok(), pieces.is_ok());
        }
    }
}
