//! The program's output, cut into whole sequences, with its queries apart: only one terminal may answer a query.

/// A longer sequence is dropped as a whole.
const SEQUENCE_BYTES_MAX: usize = 1024 * 1024;

const ESCAPE: u8 = 0x1b;
const ENQUIRY: u8 = 0x05;
const BELL: u8 = 0x07;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Escape,
    /// `ESC [`
    Control,
    /// `ESC ]`, which a bell ends too.
    Command,
    /// Any other string that ends with `ESC \`.
    String,
    /// An escape within a string, possibly its end.
    StringEnd,
}

/// Output in whole sequences and characters.
#[derive(Default)]
pub(super) struct WholeOutput {
    /// All but the queries.
    pub(super) shown: Vec<u8>,
    /// The queries, each with the number of shown bytes before it.
    queries: Vec<(usize, Vec<u8>)>,
}

impl WholeOutput {
    pub(super) fn clear(&mut self) {
        self.shown.clear();
        self.queries.clear();
    }

    /// The queries alone, in order.
    pub(super) fn queries(&self) -> Vec<u8> {
        self.queries.iter().flat_map(|(_, query)| query.iter().copied()).collect()
    }

    /// All of it, each query in its place.
    pub(super) fn with_queries(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.shown.len());
        let mut from = 0;
        for (at, query) in &self.queries {
            all.extend_from_slice(self.shown.get(from..*at).unwrap_or_default());
            all.extend_from_slice(query);
            from = *at;
        }
        all.extend_from_slice(self.shown.get(from..).unwrap_or_default());
        all
    }

    fn show(&mut self, bytes: &[u8]) {
        self.shown.extend_from_slice(bytes);
    }

    fn ask(&mut self, query: Vec<u8>) {
        self.queries.push((self.shown.len(), query));
    }
}

/// Parses a stream of output.
#[derive(Default)]
pub(super) struct LiveOutput {
    at: At,
    /// The incomplete sequence or character.
    held: Vec<u8>,
}

impl LiveOutput {
    /// Appends the complete part to `whole`; the incomplete part follows in a later call.
    pub(super) fn pass(&mut self, bytes: &[u8], whole: &mut WholeOutput) {
        let mut rest = bytes;
        if self.at == At::Text && !self.held.is_empty() {
            rest = self.finish_character(bytes, whole);
        }
        while let Some((first, after)) = rest.split_first() {
            if self.at == At::Text {
                let text_end = rest.iter().position(|byte| matches!(*byte, ESCAPE | ENQUIRY));
                let (text, others) = rest.split_at(text_end.unwrap_or(rest.len()));
                rest = others;
                if text_end.is_none() {
                    self.pass_last_text(text, whole);
                } else {
                    whole.show(text);
                    rest = self.begin(others, whole);
                }
            } else {
                self.step(*first, whole);
                rest = after;
            }
        }
    }

    /// At an escape or an enquiry.
    fn begin<'a>(&mut self, bytes: &'a [u8], whole: &mut WholeOutput) -> &'a [u8] {
        let Some((first, after)) = bytes.split_first() else { return bytes };
        if *first == ESCAPE {
            self.at = At::Escape;
            self.held.push(ESCAPE);
        } else {
            whole.ask(vec![*first]);
        }
        after
    }

    fn step(&mut self, byte: u8, whole: &mut WholeOutput) {
        if self.held.len() < SEQUENCE_BYTES_MAX {
            self.held.push(byte);
        }
        match (self.at, byte) {
            (At::Control | At::Escape, ESCAPE) | (At::StringEnd, 0x20..=0x5b | 0x5d..=0x7e) => {
                self.restart(byte, whole)
            }
            (At::Control | At::Escape | At::Command | At::String | At::StringEnd, 0x18 | 0x1a) => {
                self.end(whole)
            }
            (At::Escape, b'[') => self.at = At::Control,
            (At::Escape, b']') => self.at = At::Command,
            (At::Escape, b'P' | b'X' | b'^' | b'_') => self.at = At::String,
            (At::Escape, 0x30..=0x7e)
            | (At::Control, 0x40..=0x7e)
            | (At::Command, BELL)
            | (At::StringEnd, b'\\') => self.end(whole),
            (At::Command | At::String, ESCAPE) => self.at = At::StringEnd,
            _ => {}
        }
    }

    /// The held sequence is cut off by another one, whose bytes so far end with `byte`.
    fn restart(&mut self, byte: u8, whole: &mut WholeOutput) {
        let was_in_string = self.at == At::StringEnd;
        self.held.clear();
        self.held.push(ESCAPE);
        self.at = At::Escape;
        if was_in_string {
            self.step(byte, whole);
        }
    }

    fn end(&mut self, whole: &mut WholeOutput) {
        // The memory of a long sequence isn't kept.
        let held = std::mem::take(&mut self.held);
        if held.len() < SEQUENCE_BYTES_MAX {
            if is_query(&held) { whole.ask(held) } else { whole.show(&held) }
        }
        self.at = At::Text;
    }

    /// The end of a text may cut a character.
    fn pass_last_text(&mut self, text: &[u8], out: &mut WholeOutput) {
        let continuations = text.iter().rev().take(3).take_while(|byte| *byte & 0xc0 == 0x80).count();
        let (uncut, last) = text.split_at(text.len().saturating_sub(continuations + 1));
        let is_cut = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
        out.show(if is_cut { uncut } else { text });
        if is_cut {
            self.held.extend_from_slice(last);
        }
    }

    fn finish_character<'a>(&mut self, bytes: &'a [u8], whole: &mut WholeOutput) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if first & 0xc0 != 0x80 {
                break;
            }
            self.held.push(*first);
            rest = after;
            if !std::str::from_utf8(&self.held).is_err_and(|error| error.error_len().is_none()) {
                break;
            }
        }
        let is_cut = rest.is_empty()
            && std::str::from_utf8(&self.held).is_err_and(|error| error.error_len().is_none());
        if !is_cut {
            whole.show(&std::mem::take(&mut self.held));
        }
        rest
    }
}

/// Whether a terminal would answer this sequence.
fn is_query(sequence: &[u8]) -> bool {
    match sequence.split_at_checked(2) {
        Some((b"\x1b[", control)) => is_control_query(control),
        Some((b"\x1b]", command)) => is_command_query(command),
        Some((b"\x1bP", string)) => string.starts_with(b"$q") || string.starts_with(b"+q"),
        Some((b"\x1b_", string)) => {
            string.starts_with(b"G") && string.windows(3).any(|field| field == b"a=q")
        }
        _ => sequence == b"\x1bZ",
    }
}

/// Device attributes, status and position, modes, version, keyboard protocol, window reports, checksums.
fn is_control_query(control: &[u8]) -> bool {
    let Some((last, before)) = control.split_last() else { return false };
    let private = before.first().copied().filter(|byte| matches!(byte, b'<'..=b'?'));
    let intermediate = before.last().copied().filter(|byte| matches!(byte, 0x20..=0x2f));
    match (last, private, intermediate) {
        (b'c', ..)
        | (b'n', None | Some(b'?'), None)
        | (b'p' | b'w', _, Some(b'$'))
        | (b'q', Some(b'>'), _) => true,
        (b'u' | b'm' | b'S', Some(b'?'), None) | (b'x', None, None) | (b'y', _, Some(b'*')) => true,
        (b't', None, None) => {
            let first = before.split(|byte| *byte == b';').next().unwrap_or_default();
            matches!(first, b"11" | b"13" | b"14" | b"15" | b"16" | b"18" | b"19" | b"20" | b"21")
        }
        _ => false,
    }
}

/// Colours, the clipboard: a field that is a question mark asks.
fn is_command_query(command: &[u8]) -> bool {
    let body = command.strip_suffix(b"\x07").or_else(|| command.strip_suffix(b"\x1b\\")).unwrap_or(command);
    let mut fields = body.split(|byte| *byte == b';');
    let number = fields.next().unwrap_or_default();
    let answers = matches!(number, b"4" | b"5" | b"21" | b"50" | b"52" | b"60" | b"61")
        || matches!(number, [b'1', b'0'..=b'9']);
    answers && fields.any(|field| field == b"?" || field.ends_with(b"=?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: &str) {
        for step in 1..=written.len().max(1) {
            let mut live = LiveOutput::default();
            let mut whole = WholeOutput::default();
            for chunk in written.as_bytes().chunks(step) {
                live.pass(chunk, &mut whole);
            }
            assert_eq!(String::from_utf8_lossy(&whole.shown), expected, "{written:?} in steps of {step}");
        }
    }

    #[test]
    fn what_is_no_query_passes_unchanged_however_it_is_cut() {
        for text in [
            "plain ä€𝄞 text\r\n",
            "\x1b[31mred\x1b[0m \x1b[?25l\x1b[2;3H\x1b[>4;2m\x1b[>1u\x1b[<u\x1b[!p\x1b[8;40;120t\x1b[22;2t",
            "\x1b]0;title?\x07\x1b]8;;http://a/?\x1b\\link\x1b]8;;\x1b\\\x1b]11;#000000\x07\x1b]7501;state=idle\x1b\\",
            "\x1bPq#0;2;0;0;0~\x1b\\\x1b_Ga=T;AAAA\x1b\\\x1b(B\x1b7\x1b8\x1b=\x1bM",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn queries_are_apart_and_known_by_their_place() {
        for query in [
            "\x1b[c",
            "\x1b[0c",
            "\x1b[>c",
            "\x1b[=0c",
            "\x1b[5n",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[?996n",
            "\x1b[>q",
            "\x1b[>0q",
            "\x1b[?2026$p",
            "\x1b[4$p",
            "\x1b[?u",
            "\x1b[?4m",
            "\x1b[18t",
            "\x1b[14;2t",
            "\x1b[x",
            "\x1b]10;?\x07",
            "\x1b]11;?\x1b\\",
            "\x1b]4;1;?\x07",
            "\x1b]52;c;?\x07",
            "\x1bP$qm\x1b\\",
            "\x1bP+q544e\x1b\\",
            "\x1b_Gi=1,a=q;AAAA\x1b\\",
            "\x1bZ",
            "\x05",
            "\x1b[?1;1;0S",
        ] {
            let written = format!("a{query}€{query}b");
            check(&written, "a€b");
            let mut live = LiveOutput::default();
            let mut whole = WholeOutput::default();
            live.pass(written.as_bytes(), &mut whole);
            assert_eq!(String::from_utf8_lossy(&whole.with_queries()), written);
            assert_eq!(String::from_utf8_lossy(&whole.queries()), format!("{query}{query}"));
        }
    }

    #[test]
    fn broken_off_sequences_neither_stick_nor_swallow_what_follows() {
        check("\x1b]0;never\x1b[31mred", "\x1b[31mred");
        check("\x1b[3\x1b[31mred", "\x1b[31mred");
        check("a\x1bP123\x18b", "a\x1bP123\x18b");
    }
}
