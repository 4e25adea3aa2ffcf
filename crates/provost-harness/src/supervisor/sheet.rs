//! Writing within a token limit.

use provost_engine::tokens_of;

use crate::fence::Label;

/// Bytes inspected at each end of a text before it is cut to its room.
const LOOKED_AT_BYTES: usize = 32 * 1024;
/// A text is left out rather than shown with fewer bytes than this.
const SHOWN_BYTES_MIN: usize = 40;

/// A text that never exceeds its tokens. Each appended piece must begin with a visible character and end with a
/// line end, or the tokens of the pieces wouldn't add up to those of the whole.
#[derive(Debug)]
pub(super) struct Sheet {
    text: String,
    tokens_left: u64,
}

impl Sheet {
    pub(super) const fn new(tokens_max: u64) -> Self {
        Self { text: String::new(), tokens_left: tokens_max }
    }

    /// Appends `piece`, if it fits. Returns whether it does.
    #[must_use]
    pub(super) fn put(&mut self, piece: &str) -> bool {
        let tokens = tokens_of(piece);
        let fits = tokens <= self.tokens_left;
        if fits {
            self.tokens_left -= tokens;
            self.text.push_str(piece);
        }
        fits
    }

    /// Appends a heading line after an empty line, if it fits. Returns whether it does.
    #[must_use]
    pub(super) fn put_heading(&mut self, line: &str) -> bool {
        // The empty line makes the space before the heading one character longer, which is another token at most.
        let tokens = tokens_of(line).saturating_add(1);
        let fits = tokens <= self.tokens_left;
        if fits {
            self.tokens_left -= tokens;
            self.text.push('\n');
            self.text.push_str(line);
        }
        fits
    }

    /// Has `write` append something within `tokens` of what is left.
    pub(super) fn within(&mut self, tokens: u64, write: impl FnOnce(&mut Self)) {
        let mut part = Self::new(tokens.min(self.tokens_left));
        let given = part.tokens_left;
        write(&mut part);
        self.tokens_left -= given - part.tokens_left;
        self.text.push_str(&part.text);
    }

    /// Appends `text` quoted: as much of its ends as fits, and between them a note of how much is left out.
    pub(super) fn put_ends(&mut self, label: Label, text: &str) {
        let mut bytes_max = LOOKED_AT_BYTES;
        while bytes_max >= SHOWN_BYTES_MIN {
            let tail_bytes = bytes_max / 2;
            if self.put(&ends(label, text, Ends { head: bytes_max - tail_bytes, tail: tail_bytes })) {
                return;
            }
            bytes_max = bytes_max.min(text.len()) / 3 * 2;
        }
        let _ = self.put(&left_out(text.len()));
    }

    pub(super) const fn tokens_left(&self) -> u64 {
        self.tokens_left
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Bytes shown of a text at its beginning and at its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) head: usize,
    pub(super) tail: usize,
}

/// `text` quoted, without its middle if it is longer than its ends. The omission is noted in a line of its own
/// without a label: no text can imitate that.
pub(super) fn ends(label: Label, text: &str, shown: Ends) -> String {
    if text.len() <= shown.head.saturating_add(shown.tail) {
        return label.quote(text);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(shown.head));
    let (middle, tail) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(shown.tail)));
    let mut quoted = if head.is_empty() { String::new() } else { label.quote(head) };
    quoted.push_str(&left_out(middle.len()));
    if !tail.is_empty() {
        quoted.push_str(&label.quote(tail));
    }
    quoted
}

/// `text` quoted as one line, of which at most this many bytes are shown.
pub(super) fn beginning(label: Label, text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return label.quote_line(text);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(bytes_max));
    format!("{}{}", label.quote_line(head), left_out(rest.len()))
}

fn left_out(bytes: usize) -> String {
    format!("({bytes} bytes left out here)\n")
}
