//! One line that is typed, without any terminal.

/// Bytes of one line; what is typed beyond is ignored.
const LINE_BYTES_MAX: usize = 16 * 1024;

const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;
const END_OF_INPUT: u8 = 0x04;
const KILL_LINE: u8 = 0x15;
const KILL_WORD: u8 = 0x17;
const ESCAPE: u8 = 0x1b;
/// The parameters of the sequences around what is pasted (xterm's bracketed paste).
const PASTE_BEGINS: &[u8] = b"200";
const PASTE_ENDS: &[u8] = b"201";
/// Bytes of a sequence's parameters that are kept.
const PARAMETERS_MAX: usize = 16;

/// A line that is being typed.
#[derive(Debug, Default)]
pub(super) struct Editor {
    line: String,
    /// The beginning of a character of several bytes.
    partial: Vec<u8>,
    sequence: Sequence,
    parameters: Vec<u8>,
    /// Whether what comes is pasted: then it is text, line ends too.
    is_pasted: bool,
    /// Whether the last byte was a carriage return that was pasted.
    after_return: bool,
}

/// How far a key that is sent as an escape sequence has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    #[default]
    None,
    Escape,
    Control,
}

/// What a byte has done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// The line is complete.
    Line(String),
    /// The end of the input, typed where the line is empty.
    EndOfInput,
    /// The line is another.
    Changed,
    /// Nothing.
    Ignored,
}

impl Editor {
    /// The line so far.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Takes in a byte from the keyboard. Keys that move the cursor are ignored: there is one place to type at.
    pub(super) fn take(&mut self, byte: u8) -> Edited {
        match (self.sequence, byte) {
            (Sequence::Escape, b'[' | b'O') => {
                self.parameters.clear();
                self.goes_on(Sequence::Control)
            }
            (Sequence::Control, 0x40..=0x7e) => {
                self.is_pasted = match (byte, self.parameters.as_slice()) {
                    (b'~', PASTE_BEGINS) => true,
                    (b'~', PASTE_ENDS) => false,
                    _ => self.is_pasted,
                };
                self.goes_on(Sequence::None)
            }
            (Sequence::Escape, 0x20..=0x7e) => self.goes_on(Sequence::None),
            (Sequence::Control, 0x20..=0x3f) => {
                if self.parameters.len() < PARAMETERS_MAX {
                    self.parameters.push(byte);
                }
                Edited::Ignored
            }
            (_, ESCAPE) => self.goes_on(Sequence::Escape),
            (_, byte) => {
                self.sequence = Sequence::None;
                if self.is_pasted { self.pasted(byte) } else { self.typed(byte) }
            }
        }
    }

    fn goes_on(&mut self, sequence: Sequence) -> Edited {
        self.sequence = sequence;
        Edited::Ignored
    }

    fn typed(&mut self, byte: u8) -> Edited {
        match byte {
            b'\n' | b'\r' => {
                self.partial.clear();
                Edited::Line(std::mem::take(&mut self.line))
            }
            END_OF_INPUT if self.line.is_empty() => Edited::EndOfInput,
            BACKSPACE | DELETE => {
                self.line.pop();
                Edited::Changed
            }
            KILL_LINE => {
                self.line.clear();
                Edited::Changed
            }
            KILL_WORD => {
                let kept = self.line.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.line.truncate(kept);
                Edited::Changed
            }
            b'\t' => self.adds(" "),
            0..0x20 => Edited::Ignored,
            _ => {
                self.partial.push(byte);
                self.completes()
            }
        }
    }

    /// Takes in a byte of what is pasted.
    fn pasted(&mut self, byte: u8) -> Edited {
        let is_second = byte == b'\n' && self.after_return;
        self.after_return = byte == b'\r';
        match byte {
            b'\n' if is_second => Edited::Ignored,
            b'\n' | b'\r' => self.adds("\n"),
            b'\t' => self.adds("\t"),
            0..0x20 | DELETE => Edited::Ignored,
            _ => {
                self.partial.push(byte);
                self.completes()
            }
        }
    }

    /// Adds the character whose bytes have come, once all of them have.
    fn completes(&mut self) -> Edited {
        let partial = std::mem::take(&mut self.partial);
        match std::str::from_utf8(&partial) {
            Ok(text) => self.adds(text),
            Err(error) if error.error_len().is_none() => {
                self.partial = partial;
                Edited::Ignored
            }
            Err(_) => self.adds("\u{fffd}"),
        }
    }

    fn adds(&mut self, text: &str) -> Edited {
        if self.line.len() + text.len() > LINE_BYTES_MAX {
            return Edited::Ignored;
        }
        self.line.push_str(text);
        Edited::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::{Edited, Editor, LINE_BYTES_MAX};

    fn typed(bytes: &[u8]) -> (Editor, Vec<Edited>) {
        let mut editor = Editor::default();
        let ends = bytes.iter().map(|byte| editor.take(*byte));
        let ends = ends.filter(|edited| !matches!(edited, Edited::Changed | Edited::Ignored)).collect();
        (editor, ends)
    }

    #[test]
    fn a_line_is_what_was_typed_up_to_enter() {
        let (editor, ends) = typed("hé 漢\nmore".as_bytes());
        assert_eq!(ends, [Edited::Line("hé 漢".to_owned())]);
        assert_eq!(editor.line(), "more");
    }

    #[test]
    fn it_is_corrected_as_at_a_shell() {
        assert_eq!(typed("aé\u{7f}b\u{8}c".as_bytes()).0.line(), "ac");
        assert_eq!(typed(b"one two \x17x").0.line(), "one x");
        assert_eq!(typed(b"one two\x15x").0.line(), "x");
    }

    #[test]
    fn keys_that_move_and_bytes_that_are_no_text_do_nothing() {
        assert_eq!(typed(b"a\x1b[D\x1b[1;5C\x1bOPb\x1bxc\x07").0.line(), "abc");
        assert_eq!(typed(b"a\xffb").0.line(), "a\u{fffd}b");
    }

    #[test]
    fn what_is_pasted_is_text_with_its_lines() {
        let (editor, ends) = typed(b"see: \x1b[200~one\r\n\ttwo\rthree\x04\n\x1b[201~ ok");
        assert_eq!((editor.line(), ends), ("see: one\n\ttwo\nthree\n ok", Vec::new()));
        let (editor, ends) = typed(b"\x1b[200~a\nb\x1b[201~\rc");
        assert_eq!((editor.line(), ends), ("c", vec![Edited::Line("a\nb".to_owned())]));
    }

    #[test]
    fn the_end_of_input_counts_on_an_empty_line_only() {
        assert_eq!(typed(b"a\x04\x7f\x04").1, [Edited::EndOfInput]);
    }

    #[test]
    fn a_line_has_a_limit() {
        assert_eq!(typed(&[b'a'; LINE_BYTES_MAX + 100]).0.line().len(), LINE_BYTES_MAX);
    }
}
