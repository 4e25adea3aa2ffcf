//! Cuts an output for the model.

use crate::BLOB_URI;
use provost_event::Seq;

/// The remaining parts of a text that is too long: its beginning and its end, cut between characters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut<'a> {
    head: &'a str,
    tail: &'a str,
    left_out_bytes: usize,
}

/// Removes the middle of `text` so that `bytes_max` bytes remain; `None` if it fits.
pub(crate) fn cut_middle(text: &str, bytes_max: usize) -> Option<Cut<'_>> {
    if text.len() <= bytes_max {
        return None;
    }
    let head_end = text.floor_char_boundary(bytes_max / 2);
    let tail_start = text.ceil_char_boundary(text.len().saturating_sub(bytes_max.saturating_sub(head_end)));
    let (head, tail) = (text.get(..head_end)?, text.get(tail_start..)?);
    Some(Cut { head, tail, left_out_bytes: tail_start.saturating_sub(head_end) })
}

impl Cut<'_> {
    /// The parts with a line between them that says what is missing and where the whole is.
    pub(crate) fn with_note(&self, whole: Option<Seq>) -> String {
        let left_out = self.left_out_bytes;
        let note = match whole {
            Some(call) => {
                format!(
                    "{left_out} bytes left out; read_file and search take the whole as path \"{BLOB_URI}{call}\""
                )
            }
            None => format!("{left_out} bytes left out"),
        };
        format!("{}\n[… {note} …]\n{}", self.head, self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, cut_middle};

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(cut_middle("", 0), None);
        assert_eq!(cut_middle("abcd", 4), None);
    }

    #[test]
    fn the_middle_goes_between_characters() {
        assert_eq!(cut_middle("abcdef", 4), Some(Cut { head: "ab", tail: "ef", left_out_bytes: 2 }));
        assert_eq!(cut_middle("aéééb", 4), Some(Cut { head: "a", tail: "éb", left_out_bytes: 4 }));
        assert_eq!(cut_middle("ab", 0), Some(Cut { head: "", tail: "", left_out_bytes: 2 }));
    }

    #[test]
    fn the_note_counts_every_byte_that_is_missing() {
        for max in 0..40 {
            let text = "añb🙂".repeat(6);
            if let Some(cut) = cut_middle(&text, max) {
                assert!(cut.head.len() + cut.tail.len() <= max);
                assert_eq!(cut.head.len() + cut.tail.len() + cut.left_out_bytes, text.len());
            }
        }
    }
}
