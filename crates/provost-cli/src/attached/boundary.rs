//! Where a report may be inserted into a program's output: between characters and escape sequences, not within
//! one.

/// How far a stream of a terminal has come.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    within: Within,
    /// Bytes of a character that are yet to come.
    character: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    Escape,
    Control,
    Text,
    TextEscape,
}

impl Boundary {
    /// Whether a report may be inserted now.
    pub(super) fn is_between(&self) -> bool {
        self.within == Within::Nothing && self.character == 0
    }

    /// Takes in what the program wrote.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    fn step(&mut self, byte: u8) {
        const CANCEL: [u8; 2] = [0x18, 0x1a];
        if CANCEL.contains(&byte) {
            *self = Self::default();
            return;
        }
        self.within = match (self.within, byte) {
            (Within::Nothing, 0x1b) | (Within::Escape | Within::Control, 0x1b) => Within::Escape,
            (Within::Nothing, _) => {
                self.character = match byte {
                    0xc0..=0xdf => 1,
                    0xe0..=0xef => 2,
                    0xf0..=0xf7 => 3,
                    0x80..=0xbf => self.character.saturating_sub(1),
                    _ => 0,
                };
                Within::Nothing
            }
            (Within::Escape, b'[') => Within::Control,
            (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::Text,
            (Within::Escape, 0x20..=0x2f) => Within::Escape,
            (Within::Escape, _) | (Within::Control, 0x40..=0x7e) => Within::Nothing,
            (Within::Control, _) => Within::Control,
            (Within::Text, 0x07) | (Within::TextEscape, b'\\') => Within::Nothing,
            (Within::Text | Within::TextEscape, 0x1b) => Within::TextEscape,
            (Within::Text | Within::TextEscape, _) => Within::Text,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::Boundary;

    #[test]
    fn nothing_is_said_within_a_sequence_or_a_character() {
        let pieces = [
            "a",
            "\u{1b}[31m",
            "é",
            "\u{1b}]2;tïtle\u{1b}\\",
            "漢",
            "\u{1b}(B",
            "\u{1b}P1$r\u{1b}\\",
            "\u{1b}]2;x\u{7}",
            "😀",
        ];
        let mut boundary = Boundary::default();
        for piece in pieces {
            for byte in piece.as_bytes() {
                assert!(boundary.is_between() == std::ptr::eq(byte, &piece.as_bytes()[0]), "in {piece:?}");
                boundary.take(&[*byte]);
            }
            assert!(boundary.is_between(), "behind {piece:?}");
        }
        boundary.take(b"\x1b]7501;state=work");
        assert!(!boundary.is_between());
        boundary.take(b"ing\x1b");
        assert!(!boundary.is_between());
        boundary.take(b"\\");
        assert!(boundary.is_between());
    }
}
