//! A command's output as a person would see it in the end.

/// `text` without escape sequences, with the last frame of lines that were drawn again and again (progress bars), and
/// without characters that a backspace removed.
pub(crate) fn plain(text: &str) -> String {
    if !text.contains(['\u{1b}', '\r', '\u{8}', '\u{7}']) {
        return text.to_owned();
    }
    let erased = anstream::adapter::strip_str(&without_erased(text)).to_string();
    let mut out = String::with_capacity(erased.len());
    for line in erased.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        out.push_str(last_frame(line));
        out.push_str(end);
    }
    out
}

/// What is left of a line after its last carriage return that something follows.
fn last_frame(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or_default()
}

fn without_erased(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{8}' if !out.ends_with('\n') => drop(out.pop()),
            '\u{8}' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn the_end_of_what_was_drawn_is_left() {
        let cases = [
            ("a\nb\n", "a\nb\n"),
            ("\u{1b}[1;31merror\u{1b}[0m: x\n", "error: x\n"),
            ("\u{1b}]0;title\u{7}text", "text"),
            (" 10 %\r 50 %\r100 %\ndone\n", "100 %\ndone\n"),
            (" 10 %\r100 %\r\n", "100 %\n"),
            ("dos\r\nlines\r\n", "dos\nlines\n"),
            ("\r\u{1b}[KBuilding 1/2\r\u{1b}[KBuilding 2/2", "Building 2/2"),
            ("N\u{8}NA\u{8}AME", "NAME"),
            ("\u{8}\u{8}x", "x"),
            ("grüße \u{1b}[2Kschön", "grüße schön"),
            ("tab\tstays", "tab\tstays"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
