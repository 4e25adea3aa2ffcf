//! Makes untrusted text safe to show: on a terminal, and on a page.

/// `text` without escape sequences and control characters; line ends and tabs stay. What takes no room and what
/// changes the direction of writing is spelled out (`\u{200b}`, `\u{202e}`): a model reads it, so people see it.
/// Joiners and selectors of forms stay behind what isn't ASCII: many languages and pictures are written with them.
#[must_use]
pub fn safe(text: &str) -> String {
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
            _ if c.is_control() => {}
            _ if joins(c) && out.chars().next_back().is_some_and(|before| !before.is_ascii()) => out.push(c),
            _ if joins(c) || is_hidden(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}

/// `text` on one line with everything that can't be seen, or that would change what is seen, spelled out, control
/// characters and odd blanks too. The user approves all of it, so none of it may be dropped.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            _ if c.is_control() || joins(c) || is_hidden(c) || is_odd_blank(c) => {
                out.extend(c.escape_unicode())
            }
            _ => out.push(c),
        }
    }
    out
}

/// What is there without being visible, or changes what is visible.
const fn is_hidden(c: char) -> bool {
    turns_direction(c) || takes_no_room(c)
}

/// Blanks that aren't the usual one: a shell takes them for parts of a word.
const fn is_odd_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
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

/// What isn't seen, with which something can be said to a model and not to people. The separators of lines and
/// paragraphs are among it: some programs end a line there, and others don't.
const fn takes_no_room(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{2800}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Joiners, and selectors of a form of the character before.
const fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// JSON in which what a terminal would obey or not show is escaped: the same value, and fit to be looked at. Such
/// characters are in the texts of JSON only, and controls below U+0080 are escaped in every JSON.
#[must_use]
pub fn visible_json(json: &str) -> std::borrow::Cow<'_, str> {
    let is_escaped =
        |c: char| (c.is_control() && !c.is_ascii_control()) || c == '\u{7f}' || is_hidden(c) || joins(c);
    if !json.contains(is_escaped) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_escaped(c) {
            let units =
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            out.push_str(&units);
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::{safe, visible, visible_json};

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
    fn other_controls_go_and_direction_marks_are_spelled_out() {
        check("a\u{8}b\u{7}c\u{0}d\u{7f}e\u{85}f", "abcdef");
        check("user\u{202e}gpj.exe\u{2066}", "user\\u{202e}gpj.exe\\u{2066}");
        check("50%\rdone\r\n", "50%\ndone\n");
    }

    #[test]
    fn what_takes_no_room_is_spelled_out() {
        check("a\u{200b}b\u{feff}c\u{2060}d", "a\\u{200b}b\\u{feff}c\\u{2060}d");
        check("one\u{2028}two\u{2029}", "one\\u{2028}two\\u{2029}");
        check("hi\u{e0041}\u{e007f}", "hi\\u{e0041}\\u{e007f}");
        check("ls\u{200d}\u{fe0f}", "ls\\u{200d}\\u{fe0f}");
        check("\u{200d}", "\\u{200d}");
        // As they are written.
        check("می\u{200c}خواهم 👩\u{200d}🚀 ❤\u{fe0f}", "می\u{200c}خواهم 👩\u{200d}🚀 ❤\u{fe0f}");
        let once = safe("a\u{200b}\u{e0041}");
        assert_eq!(safe(&once), once);
    }

    #[test]
    fn nothing_is_left_out_of_what_is_approved() {
        assert_eq!(
            visible("ls\r\u{1b}[2Krm\u{202e}x\u{200b}\u{9b}\ty\u{a0}\u{200d}"),
            r"ls\r\u{1b}[2Krm\u{202e}x\u{200b}\u{9b}    y\u{a0}\u{200d}"
        );
        assert_eq!(visible("ç 漢 🙂"), "ç 漢 🙂");
    }

    #[test]
    fn json_says_the_same_and_shows_all_of_it() {
        let text = "a\u{9b}2J\u{85}\u{7f}\u{202e}b\u{2028}\u{200b}\u{e0041} \u{1b}[2J ç 漢 🙂 \\u{9b}";
        let json = serde_json::json!({ text: [text] }).to_string();
        let shown = visible_json(&json);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        );
        let harmless = |c: char| !c.is_control() && safe(c.encode_utf8(&mut [0; 4])) == c.to_string();
        assert!(shown.chars().all(harmless), "{shown}");
        assert!(shown.contains("\\udb40\\udc41") && shown.contains("漢 🙂"), "{shown}");
        assert!(matches!(visible_json("{\"a\":\"ç\\n\"}"), std::borrow::Cow::Borrowed(_)));
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
