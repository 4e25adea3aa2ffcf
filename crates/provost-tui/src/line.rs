//! One line that is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Bytes of a line; what is typed or pasted beyond is left out.
const BYTES_MAX: usize = 16 * 1024;

/// A line with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    before: String,
    after: String,
}

impl Line {
    pub(crate) fn of(text: &str) -> Self {
        Self { before: text.to_owned(), after: String::new() }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    pub(crate) fn before(&self) -> &str {
        &self.before
    }

    pub(crate) fn after(&self) -> &str {
        &self.after
    }

    /// Takes in text at the cursor; line ends become blanks.
    pub(crate) fn insert(&mut self, text: &str) {
        for c in text.chars() {
            if self.before.len() + self.after.len() + c.len_utf8() > BYTES_MAX {
                return;
            }
            match c {
                '\n' | '\r' | '\t' => self.before.push(' '),
                c if c.is_control() => {}
                c => self.before.push(c),
            }
        }
    }

    /// Edits the line; false if the key doesn't edit.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => self.before.clear(),
            KeyCode::Char('k') if is_control => self.after.clear(),
            KeyCode::Char('a') if is_control => self.home(),
            KeyCode::Char('e') if is_control => self.end(),
            KeyCode::Char('w') if is_control => self.drop_word(),
            KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => return false,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => drop(self.before.pop()),
            KeyCode::Delete => drop((!self.after.is_empty()).then(|| self.after.remove(0))),
            KeyCode::Left => {
                if let Some(c) = self.before.pop() {
                    self.after.insert(0, c);
                }
            }
            KeyCode::Right => {
                if !self.after.is_empty() {
                    let c = self.after.remove(0);
                    self.before.push(c);
                }
            }
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => return false,
        }
        true
    }

    fn home(&mut self) {
        self.after.insert_str(0, &self.before);
        self.before.clear();
    }

    fn end(&mut self) {
        self.before.push_str(&self.after);
        self.after.clear();
    }

    fn drop_word(&mut self) {
        let kept = self.before.trim_end();
        let at = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.before.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut Line, code: KeyCode, modifiers: KeyModifiers) {
        assert!(line.key(KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn a_line_is_edited_where_the_cursor_is() {
        let mut line = Line::of("mind tests");
        for _ in 0..5 {
            typed(&mut line, KeyCode::Left, KeyModifiers::NONE);
        }
        line.insert("the\n");
        assert_eq!((line.before(), line.after()), ("mind the ", "tests"));
        typed(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "mind tests");
        typed(&mut line, KeyCode::Char('u'), KeyModifiers::CONTROL);
        typed(&mut line, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(line.text(), "ests");
    }

    #[test]
    fn a_paste_ends_at_the_limit_and_holds_no_controls() {
        let mut line = Line::default();
        line.insert(&"é\u{1b}".repeat(BYTES_MAX));
        assert_eq!(line.text().len(), BYTES_MAX);
        assert!(!line.text().contains('\u{1b}'));
    }
}
