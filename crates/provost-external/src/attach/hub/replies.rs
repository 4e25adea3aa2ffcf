//! What of a terminal's input are its replies to the program's queries, and what a person typed.

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// The key F3 with modifiers, `CSI 1 ; 2 R` to `CSI 1 ; 16 R`, looks like a report of the cursor in the first row.
const MODIFIERS: std::ops::RangeInclusive<u16> = 2..=16;

/// Input, in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SplitInput {
    pub(super) replies: Vec<u8>,
    pub(super) keys: Vec<u8>,
}

/// Follows a terminal's input. A reply of several reads is known by its beginning.
#[derive(Debug, Default)]
pub(super) struct ReplySplitter {
    within: Within,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    /// A reply that a string terminator ends.
    Reply,
    /// Pasted text.
    Paste,
}

impl SplitInput {
    /// Input without replies.
    pub(super) const fn of_keys(keys: Vec<u8>) -> Self {
        Self { replies: Vec::new(), keys }
    }
}

impl ReplySplitter {
    pub(super) fn split(&mut self, bytes: Vec<u8>) -> SplitInput {
        if self.within == Within::Nothing && !bytes.contains(&ESCAPE) {
            return SplitInput::of_keys(bytes);
        }
        let mut input = SplitInput::default();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (length, is_reply) = self.next(rest);
            let (piece, after) = rest.split_at(length.clamp(1, rest.len()));
            if is_reply { &mut input.replies } else { &mut input.keys }.extend_from_slice(piece);
            rest = after;
        }
        input
    }

    /// The length of the next piece, and whether it is a reply.
    fn next(&mut self, rest: &[u8]) -> (usize, bool) {
        match self.within {
            Within::Reply => {
                let (length, is_whole) = string_end(rest);
                if is_whole {
                    self.within = Within::Nothing;
                }
                (length, true)
            }
            Within::Paste => match find(rest, PASTE_END) {
                Some(at) => {
                    self.within = Within::Nothing;
                    (at + PASTE_END.len(), false)
                }
                None => (rest.len(), false),
            },
            Within::Nothing if rest.first() != Some(&ESCAPE) => {
                (rest.iter().position(|byte| *byte == ESCAPE).unwrap_or(rest.len()), false)
            }
            Within::Nothing if rest.starts_with(PASTE_BEGIN) => {
                self.within = Within::Paste;
                (PASTE_BEGIN.len(), false)
            }
            Within::Nothing => match (rest.get(1), rest.get(2)) {
                (Some(b'['), _) => control(rest),
                // Without the next byte these are keys with Alt.
                (Some(b']'), Some(b'0'..=b'9' | b'l' | b'L'))
                | (Some(b'P'), Some(b'0' | b'1' | b'!' | b'>'))
                | (Some(b'_'), Some(b'G')) => {
                    self.within = Within::Reply;
                    (2, true)
                }
                _ => (1, false),
            },
        }
    }
}

/// A control sequence, and whether it is a reply.
fn control(bytes: &[u8]) -> (usize, bool) {
    let body = bytes.get(2..).unwrap_or_default();
    let parameters = body.iter().take_while(|byte| matches!(byte, 0x30..=0x3f)).count();
    let intermediates = body.iter().skip(parameters).take_while(|byte| matches!(byte, 0x20..=0x2f)).count();
    let length = 2 + parameters + intermediates + 1;
    let Some(last) = body.get(parameters + intermediates) else { return (bytes.len(), false) };
    let (parameters, rest) = body.split_at(parameters);
    let intermediate = rest.first().filter(|byte| matches!(byte, 0x20..=0x2f));
    let private = parameters.first().filter(|byte| matches!(byte, b'<'..=b'?'));
    let is_reply = match (last, private, intermediate) {
        // Device attributes, status, modes, keyboard flags, other keys, graphics.
        (b'c', Some(b'?' | b'>'), None) | (b'n', _, None) | (b'y', _, Some(b'$')) => true,
        (b'u' | b'S', Some(b'?'), None) | (b'm', Some(b'>'), None) | (b't' | b'x', None, None) => true,
        (b'R', Some(b'?'), None) => true,
        (b'R', None, None) => !is_modified_key(parameters),
        _ => false,
    };
    (length, is_reply)
}

fn is_modified_key(parameters: &[u8]) -> bool {
    let text = std::str::from_utf8(parameters).unwrap_or_default();
    match text.split_once(';') {
        Some(("1", modifiers)) => modifiers.parse().is_ok_and(|modifiers| MODIFIERS.contains(&modifiers)),
        Some(_) => false,
        None => true,
    }
}

/// Where a string ends, with its terminator, and whether it does.
fn string_end(bytes: &[u8]) -> (usize, bool) {
    let end = bytes.iter().position(|byte| matches!(*byte, BELL | ESCAPE));
    match end.map(|at| (at, bytes.get(at), bytes.get(at + 1))) {
        Some((at, Some(&BELL), _)) => (at + 1, true),
        Some((at, _, Some(b'\\'))) => (at + 2, true),
        // An escape in a piece's last byte is the first of the terminator; another one begins something else.
        Some((at, _, None)) => (at + 1, false),
        Some((at, ..)) => (at, true),
        None => {
            let is_rest_of_end = bytes.first() == Some(&b'\\');
            if is_rest_of_end { (1, true) } else { (bytes.len(), false) }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::ReplySplitter;

    /// The input as it is split when it comes in these reads: replies, then keys.
    fn split(reads: &[&str]) -> (String, String) {
        let mut splitter = ReplySplitter::default();
        let (mut replies, mut keys) = (String::new(), String::new());
        for read in reads {
            let input = splitter.split(Vec::from(read.as_bytes()));
            replies.push_str(&String::from_utf8_lossy(&input.replies));
            keys.push_str(&String::from_utf8_lossy(&input.keys));
        }
        (replies, keys)
    }

    #[test]
    fn replies_are_told_from_keys() {
        for reply in [
            "\u{1b}[?62;22c",
            "\u{1b}[>41;390;0c",
            "\u{1b}P!|00000000\u{1b}\\",
            "\u{1b}P>|tmux 3.3a\u{1b}\\",
            "\u{1b}[12;40R",
            "\u{1b}[?12;40R",
            "\u{1b}[0n",
            "\u{1b}[?997;1n",
            "\u{1b}[?7u",
            "\u{1b}[?2026;2$y",
            "\u{1b}[4;600;800t",
            "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}",
            "\u{1b}]4;1;rgb:cd/00/00\u{1b}\\",
            "\u{1b}P1+r524742=382f382f38\u{1b}\\",
            "\u{1b}_Gi=31;OK\u{1b}\\",
        ] {
            assert_eq!(split(&[&format!("a{reply}b")]), (reply.to_owned(), "ab".to_owned()), "{reply:?}");
        }
    }

    #[test]
    fn keys_stay_keys() {
        for keys in [
            "\u{1b}",
            "\u{1b}[A",
            "\u{1b}OP",
            "\u{1b}[1;5R",
            "\u{1b}[97;5u",
            "\u{1b}[<0;3;4M",
            "\u{1b}[I",
            "\u{1b}]",
            "\u{1b}P",
            "\u{1b}x",
            "\u{1b}[200~\u{1b}[?62c\u{1b}[201~",
            "ä\u{1b}\u{1b}[D",
        ] {
            assert_eq!(split(&[keys]), (String::new(), keys.to_owned()), "{keys:?}");
        }
    }

    #[test]
    fn a_reply_in_several_reads_is_one() {
        let (replies, keys) = split(&["\u{1b}]11;rgb:ff", "ff/ffff/ffff\u{1b}", "\\k"]);
        assert_eq!((replies.as_str(), keys.as_str()), ("\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\", "k"));
    }
}
