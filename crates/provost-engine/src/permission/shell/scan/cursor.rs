//! A position in a script.

/// A position in a script.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    /// In bytes.
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Skips `text` if it comes next. Returns whether it did.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let takes = self.rest().starts_with(text);
        if takes {
            self.at += text.len();
        }
        takes
    }
}
