//! The text of an answer while it is written: whole lines stay, the last one is drawn again.

use super::lines::wrapped;
use crate::render::safe;

/// An answer that is being written.
#[derive(Default)]
pub(super) struct Stream {
    /// All of it so far.
    text: String,
    /// Where the paragraph begins that isn't complete.
    paragraph: usize,
    /// The lines of that paragraph that were taken.
    taken: usize,
    has_begun: bool,
}

/// What is left to show of an answer once it is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing was shown of it.
    All,
    /// Only this; it may be empty.
    Only(String),
}

impl Stream {
    /// Takes in a piece.
    pub(super) fn add(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    /// The lines that are complete and weren't taken yet.
    pub(super) fn take_lines(&mut self, indent: &str, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let open = self.text.get(self.paragraph..).unwrap_or_default();
            let end = open.find('\n');
            let paragraph = end.and_then(|end| open.get(..end)).unwrap_or(open);
            let wrapped = lines_of(paragraph, indent, width);
            let complete = if end.is_some() { wrapped.len() } else { wrapped.len().saturating_sub(1) };
            lines.extend(wrapped.into_iter().take(complete).skip(self.taken));
            self.taken = self.taken.max(complete);
            let Some(end) = end else { break };
            self.paragraph += end + 1;
            self.taken = 0;
        }
        // An answer may begin with empty lines.
        if !self.has_begun {
            let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
            lines.drain(..blank);
            self.has_begun = !lines.is_empty();
        }
        lines
    }

    /// The line that is being written; empty for none.
    pub(super) fn open_line(&self, indent: &str, width: usize) -> String {
        let open = self.text.get(self.paragraph..).unwrap_or_default();
        lines_of(open, indent, width).pop().unwrap_or_default()
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Ends the answer, whose whole text is `text`: takes the last line too, and says what is left to be shown.
    pub(super) fn finish(&mut self, text: &str, indent: &str, width: usize) -> (Vec<String>, Rest) {
        let mut lines = self.take_lines(indent, width);
        lines.extend(Some(self.open_line(indent, width)).filter(|line| !line.trim().is_empty()));
        let written = std::mem::take(self);
        if lines.is_empty() && !written.has_begun {
            return (Vec::new(), Rest::All);
        }
        let rest = behind(text, &safe(&written.text)).map(str::to_owned);
        // What was masked in the answer, or changed otherwise, is shown as it is kept.
        (lines, rest.map_or(Rest::All, Rest::Only))
    }
}

fn lines_of(paragraph: &str, indent: &str, width: usize) -> Vec<String> {
    let text = wrapped(&safe(paragraph), indent, width);
    let lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// What stands in `text` behind `start`, if it begins with that; blanks don't count.
fn behind<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let mut wanted = start.chars().filter(|c| !c.is_whitespace());
    let mut next = wanted.next();
    for (at, c) in text.char_indices() {
        match next {
            None => return text.get(at..),
            Some(_) if c.is_whitespace() => {}
            Some(expected) if expected == c => next = wanted.next(),
            Some(_) => return None,
        }
    }
    next.is_none().then_some("")
}

#[cfg(test)]
mod tests {
    use super::{Rest, Stream};

    fn stream(pieces: &[&str]) -> (Stream, Vec<String>) {
        let (mut stream, mut lines) = (Stream::default(), Vec::new());
        for piece in pieces {
            stream.add(piece);
            lines.extend(stream.take_lines("", 20));
        }
        (stream, lines)
    }

    #[test]
    fn lines_are_taken_once_they_are_complete() {
        let (mut stream, lines) =
            stream(&["\n\nI'll look ", "around first, then ru", "n the\ntests", " too"]);
        assert_eq!(lines, ["I'll look around", "first, then run the"]);
        assert_eq!(stream.open_line("", 20), "tests too");
        let all = "I'll look around first, then run the\ntests too";
        assert_eq!(stream.finish(all, "", 20), (vec!["tests too".to_owned()], Rest::Only(String::new())));
        assert!(stream.is_empty());
    }

    #[test]
    fn what_comes_behind_the_streamed_text_is_left() {
        let (mut stream, _) = stream(&["cut"]);
        let rest = stream.finish("cut [cut off by the output cap]", "", 20).1;
        assert_eq!(rest, Rest::Only(" [cut off by the output cap]".to_owned()));
    }

    #[test]
    fn an_answer_that_was_changed_is_shown_whole() {
        let (mut stream, _) = stream(&["the key is sk-1\nand more"]);
        assert_eq!(stream.finish("the key is [secret]\nand more", "", 20).1, Rest::All);
        assert_eq!(Stream::default().finish("all", "", 20), (Vec::new(), Rest::All));
    }

    #[test]
    fn sequences_that_come_in_pieces_are_inert() {
        let (mut stream, lines) = stream(&["a\u{1b}", "[31mred\u{1b}]0;t", "itle\u{7}\nb"]);
        assert_eq!(lines, ["ared"]);
        assert_eq!(stream.finish("ared\nb", "", 20).0, ["b"]);
    }
}
