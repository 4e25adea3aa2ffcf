//! How a part of the log looks to a model that gets a shortened form of it.

use provost_event::Seq;

/// Bytes that are kept of a cut result.
const CUT_BYTES: usize = 1_000;
/// Bytes of a result at the beginning of its line.
const LINE_BYTES: usize = 80;
/// A result that isn't longer than this is never shortened.
const SHORT_BYTES: usize = 240;

/// A tool's result, as its shorter forms need it.
#[derive(Debug, Clone, Copy)]
pub struct ResultText<'a> {
    /// The entry of the result.
    pub entry: Seq,
    /// The original output for the model.
    pub output: &'a str,
    /// Images that came with it.
    pub images: usize,
}

impl ResultText<'_> {
    /// The result as one line; `None` if that isn't shorter.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        if self.output.len() <= SHORT_BYTES && self.images == 0 {
            return None;
        }
        let begin = self.output.get(..self.output.floor_char_boundary(LINE_BYTES)).unwrap_or_default();
        let begin = begin.split_whitespace().collect::<Vec<_>>().join(" ");
        let images = match self.images {
            0 => String::new(),
            1 => " and a picture".to_owned(),
            count => format!(" and {count} pictures"),
        };
        let more = if self.output.len() > LINE_BYTES { " …" } else { "" };
        let bytes = self.output.len();
        Some(format!("[left out: {bytes} bytes{images}, entry {}; they begin: {begin}{more}]", self.entry))
    }

    /// The beginning and the end of the result; `None` if that isn't shorter. Its images stay.
    #[must_use]
    pub fn cut(&self) -> Option<String> {
        let text = self.output;
        if text.len() <= CUT_BYTES + SHORT_BYTES {
            return None;
        }
        let head = text.get(..text.floor_char_boundary(CUT_BYTES / 2))?;
        let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(CUT_BYTES / 2))..)?;
        let left_out = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
        Some(format!("{head}\n[… {left_out} bytes left out, entry {} …]\n{tail}", self.entry))
    }
}

/// The note in place of an image that was sent and later left out.
#[must_use]
pub fn image_line(entry: Seq) -> String {
    format!("[a picture, left out; entry {entry}]")
}
