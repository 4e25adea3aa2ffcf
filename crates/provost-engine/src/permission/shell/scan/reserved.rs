//! The reserved words that are followed by something other than a command: `time`, `function`, `for`, `case`.

use super::{ListEnd, Read, ScriptScan, Unclear, Word};

impl ScriptScan<'_, '_> {
    /// Skips the options of the reserved word `time`; with other options it is the program of that name.
    pub(super) fn time_is_reserved(&mut self) -> Read<bool> {
        loop {
            self.blanks()?;
            let option = ["-p", "--"].into_iter().find(|option| {
                self.cursor
                    .rest()
                    .strip_prefix(option)
                    .is_some_and(|rest| rest.starts_with([' ', '\t', '\n']))
            });
            match option {
                Some(option) => self.cursor.at += option.len(),
                None => return Ok(self.cursor.peek() != Some('-')),
            }
        }
    }

    pub(super) fn function_name(&mut self) -> Read<()> {
        self.blanks()?;
        self.some_word()?;
        self.blanks()?;
        if self.cursor.take("(") {
            self.blanks()?;
            if !self.cursor.take(")") {
                return Err(Unclear("a function's body isn't understood"));
            }
        }
        Ok(())
    }

    pub(super) fn some_word(&mut self) -> Read<Word> {
        match self.word()? {
            word if word.raw.is_empty() => Err(Unclear("a word is missing")),
            word => Ok(word),
        }
    }

    /// The words between `for` and the separator or `do`: no commands, except for substitutions.
    pub(super) fn for_words(&mut self) -> Read<()> {
        self.blanks()?;
        let name = self.some_word()?.value;
        self.blanks()?;
        if matches!(self.cursor.peek(), None | Some(';' | '\n' | '#')) {
            self.facts.bind(&name, false);
            return Ok(());
        }
        match self.some_word()? {
            word if word.bare && word.value == "do" => {
                self.facts.bind(&name, false);
                return Ok(());
            }
            word if word.bare && word.value == "in" => {}
            _ => return Err(Unclear("a `for` isn't understood")),
        }
        let mut counts = true;
        loop {
            self.blanks()?;
            if matches!(self.cursor.peek(), None | Some(';' | '\n' | '#')) {
                self.facts.bind(&name, counts);
                return Ok(());
            }
            counts &= super::super::facts::is_number(&self.some_word()?);
        }
    }

    pub(super) fn case(&mut self) -> Read<()> {
        self.blanks()?;
        self.some_word()?;
        self.lines()?;
        if !matches!(self.some_word()?, word if word.bare && word.value == "in") {
            return Err(Unclear("a `case` isn't understood"));
        }
        loop {
            self.lines()?;
            let opened = self.cursor.take("(");
            self.blanks()?;
            let first = self.some_word()?;
            if !opened && first.bare && first.value == "esac" {
                return Ok(());
            }
            self.more_patterns()?;
            if self.list(ListEnd::Clause)? == ListEnd::Esac {
                return Ok(());
            }
        }
    }

    pub(super) fn more_patterns(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            match self.cursor.bump() {
                Some(')') => return Ok(()),
                Some('|') => {
                    self.blanks()?;
                    self.some_word()?;
                }
                _ => return Err(Unclear("a `case` isn't understood")),
            }
        }
    }
}
