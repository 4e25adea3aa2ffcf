//! The character sets that a program can select: ASCII, and DEC's line drawing, used by dialogs and frames.

/// Which of the two sets are line drawing, and which one is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Charsets {
    draws: [bool; 2],
    is_shifted: bool,
}

impl Charsets {
    /// `ESC ( X` and `ESC ) X`; others designate sets that aren't supported.
    pub(crate) const fn designate(&mut self, slot: u8, set: u8) {
        let draws = set == b'0';
        match slot {
            b'(' => self.draws[0] = draws,
            b')' => self.draws[1] = draws,
            _ => {}
        }
    }

    /// SO and SI.
    pub(crate) const fn shift(&mut self, is_shifted: bool) {
        self.is_shifted = is_shifted;
    }

    /// Whether letters are line drawing now.
    pub(crate) const fn is_drawing(self) -> bool {
        if self.is_shifted { self.draws[1] } else { self.draws[0] }
    }

    /// The sequences that restore this state on a reset terminal.
    pub(crate) fn painted(self) -> String {
        let mut sequences = String::new();
        for (draws, sequence) in self.draws.into_iter().zip(["\x1b(0", "\x1b)0"]) {
            sequences.push_str(if draws { sequence } else { "" });
        }
        sequences.push_str(if self.is_shifted { "\x0e" } else { "" });
        sequences
    }
}

/// The line drawing character in place of an ASCII one.
pub(crate) const fn drawn(c: char) -> char {
    match c {
        '_' => '\u{a0}',
        '`' => '◆',
        'a' => '▒',
        'b' => '␉',
        'c' => '␌',
        'd' => '␍',
        'e' => '␊',
        'f' => '°',
        'g' => '±',
        'h' => '␤',
        'i' => '␋',
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'o' => '⎺',
        'p' => '⎻',
        'q' => '─',
        'r' => '⎼',
        's' => '⎽',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'y' => '≤',
        'z' => '≥',
        '{' => 'π',
        '|' => '≠',
        '}' => '£',
        '~' => '·',
        _ => c,
    }
}
