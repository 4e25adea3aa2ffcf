//! Holds the line that is being written until its content is known, and masks it then.
//!
//! The text is checked as it will appear on the screen: without escape sequences, with blanks where the cursor
//! jumps to the right. All held parts are in one queue with their times, so that events stay in order.

use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;

use crate::Mask;
use crate::screen::csi::Csi;
use crate::screen::scan::{BACKSPACE, Piece, Scanner};

/// Maximum bytes held of one line.
const LINE_BYTES_MAX: usize = 8 * 1_024;
/// Maximum bytes held while a private key is incomplete.
const KEY_BYTES_MAX: usize = 32 * 1_024;
/// The widest jump, in columns, that is replaced by that many blanks; a wider one counts as this many blanks.
const BLANKS_MAX: u16 = 4;
/// Fewer invisible bytes, such as those of colours, aren't checked.
const SECRET_BYTES_MIN: usize = 12;
const KEY_START: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";

/// An event whose text is final.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) at: Duration,
    pub(super) code: char,
    pub(super) data: String,
}

/// A held part.
#[derive(Debug)]
enum Part {
    /// This many bytes of the line's text.
    Text(Duration, usize),
    /// A jump to the right, and the number of blanks for it in the line's text.
    Jump(Duration, Vec<u8>, usize),
    /// Bytes that aren't visible on the screen.
    Unseen(Duration, Vec<u8>),
    /// Another event in between.
    Event(Released),
}

#[derive(Default)]
pub(super) struct RedactingBuffer {
    mask: Option<Mask>,
    scanner: Scanner,
    parts: Vec<Part>,
    line: String,
    bytes: usize,
    /// The position of the next text, as far as jumps define it; row numbers only distinguish rows.
    row: u32,
    col: u32,
    released: Vec<Released>,
}

impl RedactingBuffer {
    pub(super) fn new(mask: Option<Mask>) -> Self {
        Self { mask, ..Self::default() }
    }

    /// Takes the final events.
    pub(super) fn take(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }

    /// Whether nothing is held.
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The time of the oldest held part.
    pub(super) fn waits_since(&self) -> Option<Duration> {
        self.parts.first().map(|part| match part {
            Part::Text(at, _)
            | Part::Jump(at, ..)
            | Part::Unseen(at, _)
            | Part::Event(Released { at, .. }) => *at,
        })
    }

    pub(super) fn event(&mut self, at: Duration, code: char, data: &str) {
        let event = Released { at, code, data: data.to_owned() };
        if self.is_empty() {
            self.released.push(event);
        } else {
            self.bytes += event.data.len();
            self.parts.push(Part::Event(event));
            self.limit();
        }
    }

    pub(super) fn output(&mut self, at: Duration, text: &str) {
        if self.mask.is_none() {
            return self.put(at, text.as_bytes());
        }
        let mut rest = text.as_bytes();
        let mut scanner = std::mem::take(&mut self.scanner);
        while !rest.is_empty() {
            let (piece, len) = scanner.next(rest);
            let (raw, behind) = rest.split_at(len.min(rest.len()));
            self.piece(at, &piece, raw);
            rest = behind;
        }
        self.scanner = scanner;
    }

    fn piece(&mut self, at: Duration, piece: &Piece<'_>, raw: &[u8]) {
        match piece {
            Piece::Text([BACKSPACE]) => {
                self.release_all();
                self.unseen(at, raw);
                self.col = self.col.saturating_sub(1);
            }
            Piece::Text(text) => String::from_utf8_lossy(text)
                .split_inclusive(['\n', '\r'])
                .for_each(|line| self.text(at, line)),
            Piece::Csi(sequence) => self.csi(at, sequence, raw),
            Piece::Escape(sequence) => {
                self.unseen(at, raw);
                if !matches!(sequence, [_, b'(' | b')', ..] | [_, b'=' | b'>' | b'\\']) {
                    self.release_all();
                }
            }
            Piece::Shift(_) | Piece::Osc(..) | Piece::Dcs(_) | Piece::Nothing => self.unseen(at, raw),
        }
    }

    /// Text of one line, with its end if it has one.
    fn text(&mut self, at: Duration, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(since, len)) if *since == at => *len += text.len(),
            _ => self.parts.push(Part::Text(at, text.len())),
        }
        self.line.push_str(text);
        self.bytes += text.len();
        self.col = self.col.saturating_add(u32::try_from(text.width()).unwrap_or(u32::MAX));
        if text.ends_with('\r') {
            self.col = 0;
        }
        if text.ends_with('\n') {
            self.row = self.row.saturating_add(1);
            self.col = 0;
        }
        if text.ends_with('\n') && !self.is_in_key() {
            self.release_all();
        }
        self.limit();
    }

    /// Whether a private key has begun and not ended.
    fn is_in_key(&self) -> bool {
        self.line
            .rfind(KEY_START)
            .is_some_and(|start| !self.line.get(start..).is_some_and(|key| key.contains(KEY_END)))
    }

    fn unseen(&mut self, at: Duration, raw: &[u8]) {
        self.bytes += raw.len();
        match self.parts.last_mut() {
            // A string in several parts is checked as a whole.
            Some(Part::Unseen(_, bytes)) => bytes.extend_from_slice(raw),
            _ => self.parts.push(Part::Unseen(at, raw.to_vec())),
        }
        self.limit();
    }

    /// A jump to the right within the row keeps the line together; any other ends it.
    fn csi(&mut self, at: Duration, sequence: &[u8], raw: &[u8]) {
        let Some(csi) = sequence.get(2..).and_then(Csi::parse) else { return self.unseen(at, raw) };
        let (row, col) = (self.row, self.col);
        let count = u32::from(csi.count(0));
        let to = match csi.name.as_str() {
            "C" | "a" => (row, col.saturating_add(count)),
            "D" => (row, col.saturating_sub(count)),
            "G" | "`" => (row, count - 1),
            "H" | "f" => (count - 1, u32::from(csi.count(1)) - 1),
            "A" | "F" => (row.saturating_sub(count), if csi.name == "F" { 0 } else { col }),
            "B" | "e" | "E" => (row.saturating_add(count), if csi.name == "E" { 0 } else { col }),
            "d" => (count - 1, col),
            "J" | "L" | "M" | "S" | "T" | "r" | "u" => {
                self.unseen(at, raw);
                return self.release_all();
            }
            _ => return self.unseen(at, raw),
        };
        (self.row, self.col) = to;
        match to {
            there if there == (row, col) => self.unseen(at, raw),
            (same_row, right) if same_row == row && right > col && raw.len() == sequence.len() => {
                let blanks = usize::try_from((right - col).min(u32::from(BLANKS_MAX))).unwrap_or(1);
                self.line.push_str(&" ".repeat(blanks));
                self.bytes += raw.len();
                self.parts.push(Part::Jump(at, raw.to_vec(), blanks));
                self.limit();
            }
            _ => {
                self.unseen(at, raw);
                self.release_all();
            }
        }
    }

    /// Releases what exceeds the limit, up to the last blank, so that no word is split.
    fn limit(&mut self) {
        let max = if self.is_long_key() { KEY_BYTES_MAX } else { LINE_BYTES_MAX };
        if self.bytes <= max {
            return;
        }
        let end = self.line.rfind([' ', '\t', '\n', '\r']).map_or(0, |blank| blank + 1);
        let end = if self.line.len() - end > LINE_BYTES_MAX / 2 { self.line.len() } else { end };
        self.release(end);
    }

    fn is_long_key(&self) -> bool {
        self.bytes > LINE_BYTES_MAX && self.is_in_key()
    }

    /// Releases everything.
    pub(super) fn release_all(&mut self) {
        self.release(self.line.len());
    }

    /// Releases the first `end` bytes of the line, and the other parts before and among them.
    fn release(&mut self, end: usize) {
        let parts = std::mem::take(&mut self.parts);
        let line = std::mem::take(&mut self.line);
        self.bytes = 0;
        let (first, rest) = line.split_at_checked(end).unwrap_or((&line, ""));
        let change = Change::of(first, self.mask.as_ref());
        let mut from = 0;
        let mut parts = parts.into_iter();
        for part in parts.by_ref() {
            let len = part.text_len();
            if from + len > end {
                self.split(part, end - from, &change.put(first, from..end));
                break;
            }
            self.release_part(part, &change.put(first, from..from + len));
            from += len;
        }
        self.line.push_str(rest);
        self.bytes += rest.len();
        self.parts.extend(parts);
        self.bytes += self.parts.iter().map(Part::unseen_len).sum::<usize>();
    }

    /// Releases the first part of a split one; the rest stays held.
    fn split(&mut self, part: Part, kept: usize, text: &str) {
        let (Part::Text(at, len) | Part::Jump(at, _, len)) = part else { return };
        self.put(at, text.as_bytes());
        self.parts.push(Part::Text(at, len - kept));
    }

    fn release_part(&mut self, part: Part, text: &str) {
        match part {
            Part::Text(at, _) => self.put(at, text.as_bytes()),
            // Blanks that were changed are text now.
            Part::Jump(at, _, len) if text.len() != len || !text.bytes().all(|b| b == b' ') => {
                self.put(at, text.as_bytes())
            }
            Part::Jump(at, raw, _) => self.put(at, &raw),
            Part::Unseen(at, raw) if raw.len() < SECRET_BYTES_MIN => self.put(at, &raw),
            Part::Unseen(at, raw) => {
                let raw = String::from_utf8_lossy(&raw);
                let masked = self.mask.as_ref().map_or(raw.clone(), |mask| mask(&raw));
                self.put(at, masked.as_bytes());
            }
            Part::Event(event) => self.released.push(event),
        }
    }

    fn put(&mut self, at: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        match self.released.last_mut() {
            Some(last) if last.at == at && last.code == 'o' => last.data.push_str(&text),
            _ => self.released.push(Released { at, code: 'o', data: text.into_owned() }),
        }
    }
}

impl Part {
    const fn text_len(&self) -> usize {
        match self {
            Self::Text(_, len) | Self::Jump(_, _, len) => *len,
            Self::Unseen(..) | Self::Event(_) => 0,
        }
    }

    fn unseen_len(&self) -> usize {
        match self {
            Self::Text(..) => 0,
            Self::Jump(_, raw, _) | Self::Unseen(_, raw) => raw.len(),
            Self::Event(event) => event.data.len(),
        }
    }
}

/// The change of a line by the mask: from its first to its last difference, one piece replaces another.
struct Change {
    from: usize,
    to: usize,
    instead: String,
}

impl Change {
    fn of(line: &str, mask: Option<&Mask>) -> Self {
        let masked = mask.map_or(line.into(), |mask| mask(line));
        let from = line.char_indices().zip(masked.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
        let from = from.unwrap_or(line.len().min(masked.len()));
        let (rest, masked_rest) =
            (line.get(from..).unwrap_or_default(), masked.get(from..).unwrap_or_default());
        let same = rest.chars().rev().zip(masked_rest.chars().rev()).take_while(|(a, b)| a == b);
        let same: usize = same.map(|(a, _)| a.len_utf8()).sum();
        let instead = masked_rest.get(..masked_rest.len() - same).unwrap_or_default().to_owned();
        Self { from, to: line.len() - same, instead }
    }

    /// The unmasked rest of a part of the line; the replacement stands where the change starts.
    fn put(&self, line: &str, part: std::ops::Range<usize>) -> String {
        let before = line.get(part.start..part.end.min(self.from)).unwrap_or_default();
        let behind = line.get(part.start.max(self.to)..part.end).unwrap_or_default();
        let is_behind_all = self.from == line.len() && part.end == line.len() && !part.is_empty();
        let starts_here = part.contains(&self.from) || is_behind_all;
        format!("{before}{}{behind}", if starts_here { self.instead.as_str() } else { "" })
    }
}
