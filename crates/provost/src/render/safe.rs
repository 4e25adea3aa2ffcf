//! Makes text of strangers safe to print on a terminal.

/// `text` without escape sequences, control characters and marks that change the direction of writing; line ends and
/// tabs stay.
pub(crate) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                // A carriage return alone would let the rest of the line hide its beginning.
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            _ if c.is_control() || turns_direction(c) => {}
            _ => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some(c) if ('\u{20}'..='\u{7e}').contains(c) => {
            // Intermediate bytes, then the final one.
            while chars.next_if(|c| ('\u{20}'..='\u{2f}').contains(c)).is_some() {}
            chars.next_if(|c| ('\u{30}'..='\u{7e}').contains(c));
        }
        Some(_) | None => {}
    }
}

/// Up to the final byte; a sequence that breaks off takes nothing of the text after it.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// Up to the terminator (BEL or ST), or the line's end if there is none.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Marks that reorder text, so that what is read isn't what is there.
const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(safe(text), expected, "{text:?}");
    }

    #[test]
    fn plain_text_stays() {
        check("a\tb\nç 漢 🙂\n", "a\tb\nç 漢 🙂\n");
        check("", "");
    }

    #[test]
    fn escape_sequences_go_whole() {
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}after", "after");
        check("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{9b}2Jcleared \u{9d}52;c;stolen\u{9c}not", "cleared not");
        check("\u{1b}Pq#0\u{1b}\\x \u{1b}(By \u{1b}cz", "x y z");
        check("\u{1b}", "");
        check("\u{1b}[", "");
        check("\u{1b}[1;", "");
    }

    #[test]
    fn an_unfinished_string_ends_with_its_line() {
        check("a\u{1b}]0;never ended\nb", "a\nb");
    }

    #[test]
    fn other_controls_and_direction_marks_go() {
        check("a\u{8}b\u{7}c\u{0}d\u{7f}e\u{85}f", "abcdef");
        check("user\u{202e}gpj.exe\u{2066}", "usergpj.exe");
        check("50%\rdone\r\n", "50%\ndone\n");
    }

    #[test]
    fn nothing_of_a_sequence_is_left_however_it_is_cut() {
        let text = "x\u{1b}[38;5;1my\u{1b}]0;t\u{7}z\u{9b}1Kw";
        for (at, _) in text.char_indices() {
            let kept = safe(&text[..at]);
            assert!(!kept.contains(char::is_control), "{kept:?}");
        }
    }
}
