//! Floods of lines: lines that scroll off within one piece of output aren't painted.
//!
//! Scrolled lines aren't kept. So of many lines in one piece only the last ones are visible afterwards, and of
//! those before them only the colours that are still in force matter. Nothing else is left out: the screen after a
//! piece is the same, to the cell.

/// A shorter piece isn't worth the check.
const PIECE_BYTES_MIN: usize = 12 * 1024;

const ESCAPE: u8 = 0x1b;

/// The part of a piece to paint: colours, then text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScrolledRest<'a> {
    pub(super) colours: Vec<u8>,
    pub(super) text: &'a [u8],
}

/// Leaves out what scrolls off a screen of `rows` rows that scrolls as a whole; `None` if that is little, or if
/// the piece has anything but lines of text and their colours.
pub(super) fn without_what_scrolls_off(piece: &[u8], rows: u16) -> Option<ScrolledRest<'_>> {
    if piece.len() < PIECE_BYTES_MIN {
        return None;
    }
    // From any cursor position, `rows` lines bring it to the last row, and as many again scroll all rows away.
    let place = start_of_last_lines(piece, usize::from(rows) * 2)?;
    let (before, text) = piece.split_at(place);
    if before.len() < piece.len() / 4 || colours_of(text).is_none() {
        return None;
    }
    Some(ScrolledRest { colours: colours_of(before)?, text })
}

/// Where the last `lines` lines begin: after a return and a line feed.
fn start_of_last_lines(piece: &[u8], lines: usize) -> Option<usize> {
    let mut end = piece.len();
    for _ in 0..=lines {
        end = loop {
            let feed = piece.get(..end)?.iter().rposition(|byte| *byte == b'\n')?;
            if feed.checked_sub(1).and_then(|before| piece.get(before)) == Some(&b'\r') {
                break feed;
            }
            end = feed;
        };
    }
    Some(end + 1)
}

/// The colours in force at the end, if `bytes` has only text, line ends and colours.
fn colours_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut colours = Vec::new();
    let mut rest = bytes;
    while let Some(place) = rest.iter().position(|byte| !is_text(*byte)) {
        let sequence = rest.get(place..)?;
        let parameters = sequence.strip_prefix(&[ESCAPE, b'['])?;
        let length = parameters.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
        let (parameters, after) = parameters.split_at(length);
        if after.first() != Some(&b'm') {
            return None;
        }
        // Resets all earlier settings.
        if parameters.is_empty() || parameters == b"0" {
            colours.clear();
        }
        rest = after.get(1..)?;
        colours.extend_from_slice(sequence.get(..sequence.len() - rest.len())?);
    }
    Some(colours)
}

/// Whether the byte is part of a character, or ends a line. Two-byte controls begin with 0xc2.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t' | 0x80..=0xc1 | 0xc3..)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use provost_event::WindowSize;

    use super::*;
    use crate::Screen;

    fn line() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ -~]{0,30}",
            1 => "[äö€漢🙂]{1,5}",
            1 => Just("\t".to_owned()),
            2 => (0_u8..50).prop_map(|number| format!("\x1b[{number}m")),
            1 => Just("\x1b[m".to_owned()),
            1 => (0_u8..=255).prop_map(|number| format!("\x1b[38;5;{number};4m")),
        ];
        let end = prop_oneof![8 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r"), 1 => Just("")];
        (prop::collection::vec(part, 0..6), end).prop_map(|(parts, end)| parts.concat() + end)
    }

    fn check(before: &str, flood: &str, size: WindowSize) {
        let (mut at_once, mut bit_by_bit) = (Screen::new(size), Screen::new(size));
        at_once.feed(before.as_bytes());
        at_once.feed(flood.as_bytes());
        bit_by_bit.feed(before.as_bytes());
        for bytes in flood.as_bytes().chunks(PIECE_BYTES_MIN / 3) {
            bit_by_bit.feed(bytes);
        }
        assert_eq!(at_once.rows(), bit_by_bit.rows());
        assert_eq!(at_once.cursor(), bit_by_bit.cursor());
        assert_eq!(
            String::from_utf8_lossy(&at_once.snapshot()),
            String::from_utf8_lossy(&bit_by_bit.snapshot())
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn a_flood_comes_to_the_same_screen_as_its_pieces(
            before in prop::collection::vec(line(), 0..20),
            lines in prop::collection::vec(line(), 20..60),
            rows in 1_u16..30,
            cols in 1_u16..60,
            region in prop_oneof![4 => Just(""), 1 => Just("\x1b[2;4r"), 1 => Just("\x1b[?6h"), 1 => Just("\x1b[?1049h")],
        ) {
            let flood = lines.concat().repeat(60);
            check(&(before.concat() + region), &flood, WindowSize { rows, cols });
        }
    }

    #[test]
    fn colours_set_long_before_are_still_in_force() {
        for colours in ["\x1b[38;5;9;4m", "\x1b[1m\x1b[31m", "\x1b[7m\x1b[0m\x1b[3m", "\x1b[7m\x1b[m"] {
            let flood = colours.to_owned() + &"a line of text\r\n".repeat(2000);
            check("", &flood, WindowSize { rows: 10, cols: 20 });
        }
    }

    #[test]
    fn most_of_a_flood_is_left_out() {
        let flood = "\x1b[1;32mline\x1b[0m of text\r\n\x1b[31m".repeat(1000);
        let rest = without_what_scrolls_off(flood.as_bytes(), 24).unwrap();
        assert_eq!(rest.colours, b"\x1b[0m");
        assert_eq!(rest.text.len(), "\x1b[31m\x1b[1;32mline\x1b[0m of text\r\n".len() * 48 + 5);
        for other in ["\x1b[2J", "\x1b[5n", "\x07", "\x08", "\x1b7", "\x0b", "\u{9b}", "\x1b[38;5m\x1b["] {
            assert_eq!(without_what_scrolls_off((flood.clone() + other).as_bytes(), 24), None, "{other:?}");
            assert_eq!(
                without_what_scrolls_off((other.to_owned() + &flood).as_bytes(), 24),
                None,
                "{other:?}"
            );
        }
        assert_eq!(without_what_scrolls_off("line of text".repeat(2000).as_bytes(), 24), None);
    }
}
