//! Finds the simple commands in a script, without running or expanding anything.
//!
//! It prefers to find too many commands: a wrongly found command only makes a ruling stricter. So it covers little
//! grammar, but all that determines where a command begins: quotes, comments, here-documents, substitutions,
//! separators and the few reserved words. Where bash and dash differ, or the text is ambiguous, it returns
//! [`Unclear`] instead of guessing. Time is linear in the length of the script except for the bounded nesting; the
//! recursion is bounded too.

mod cursor;
mod redirection;
mod reserved;
mod word;

use super::super::glob::HOLE;
use super::facts::Facts;
use cursor::Cursor;

/// Maximum nesting of substitutions, subshells and quotes.
const DEPTH_MAX: usize = 48;

/// Maximum number of simple commands in a script.
const PARTS_MAX: usize = 512;

/// Why a script can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclear(pub(super) &'static str);

type Read<T> = Result<T, Unclear>;

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// As written.
    pub(super) raw: String,
    /// Without its quotes, with holes for expansions of the shell.
    pub(super) value: String,
    /// Whether nothing in it is quoted or expanded, so that it may be a reserved word.
    pub(super) bare: bool,
    /// Whether its value is its text: it has neither holes nor globs.
    pub(super) plain: bool,
    /// Whether it sets a variable when it precedes a command.
    pub(super) assigns: bool,
    /// Whether the shell may expand it to several words, or to none.
    pub(super) splits: bool,
}

/// A simple command as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Its words, including leading assignments.
    pub(super) words: Vec<Word>,
    /// Words and redirections as written, in their order.
    pub(super) written: Vec<String>,
    /// Whether its output goes to a file.
    pub(super) writes: bool,
    /// It contained `&>`, after which dash begins a new command and bash doesn't.
    split_in_dash: bool,
}

impl SimpleCommand {
    fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    fn in_front(&self) -> bool {
        self.words.iter().all(|word| word.assigns)
    }
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListEnd {
    Text,
    Paren,
    /// At the end of a clause of `case`, or at its `esac`.
    Clause,
    Esac,
}

#[derive(Debug, Clone)]
struct HereDoc {
    delimiter: String,
    literal: bool,
    strips_tabs: bool,
}

/// Adds the simple commands of `text` to `parts`, including those in substitutions, and the facts about variables
/// to `facts`; what was found before an error stays.
pub(super) fn scan(text: &str, parts: &mut Vec<SimpleCommand>, facts: &mut Facts) -> Read<()> {
    if text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        facts.doubt("it holds control characters, which shells use for themselves");
    }
    let mut scan = ScriptScan {
        cursor: Cursor::new(text),
        depth: 0,
        pending: Vec::new(),
        outer_pending: 0,
        parts,
        facts,
    };
    scan.list(ListEnd::Text).map(|_| ())
}

struct ScriptScan<'t, 'p> {
    cursor: Cursor<'t>,
    depth: usize,
    /// Here-documents whose bodies begin after the next newline.
    pending: Vec<HereDoc>,
    /// How many of them began outside of the parentheses that are being read.
    outer_pending: usize,
    parts: &'p mut Vec<SimpleCommand>,
    facts: &'p mut Facts,
}

impl<'t> ScriptScan<'t, '_> {
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Unclear("it is nested too deeply"));
        }
        self.depth += 1;
        let got = read(self);
        self.depth -= 1;
        got
    }

    /// A nested script, such as the text between backticks.
    fn inner<T>(&mut self, text: &str, read: impl FnOnce(&mut ScriptScan<'_, '_>) -> Read<T>) -> Read<T> {
        let depth = self.depth;
        let mut scan = ScriptScan {
            cursor: Cursor::new(text),
            depth,
            pending: Vec::new(),
            outer_pending: 0,
            parts: self.parts,
            facts: self.facts,
        };
        scan.deeper(read)
    }

    /// A newline inside of a word: if a here-document is pending, shells differ in what comes next.
    fn inside_newline(&self) -> Read<()> {
        match self.pending.is_empty() {
            true => Ok(()),
            false => Err(Unclear("a here-document begins on a line that goes on on the next one")),
        }
    }

    fn blanks(&mut self) -> Read<()> {
        loop {
            if self.cursor.take("\\\n") {
                self.inside_newline()?;
            } else if !self.cursor.take(" ") && !self.cursor.take("\t") {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) {
        self.cursor.at += self.cursor.rest().find('\n').unwrap_or(self.cursor.rest().len());
    }

    /// Reads commands up to `end`; returns how they ended.
    fn list(&mut self, end: ListEnd) -> Read<ListEnd> {
        let mut part = SimpleCommand::default();
        loop {
            self.blanks()?;
            let Some(c) = self.cursor.peek() else {
                self.finish(&mut part)?;
                return match end {
                    ListEnd::Text => Ok(ListEnd::Text),
                    _ => Err(Unclear("something in it is never closed")),
                };
            };
            match c {
                '\n' => {
                    self.finish(&mut part)?;
                    self.newline()?;
                }
                '#' => self.comment(),
                ';' | '&' | '|' if !self.cursor.rest().starts_with("&>") => {
                    self.finish(&mut part)?;
                    if self.separator(end)? {
                        return Ok(ListEnd::Clause);
                    }
                }
                '(' => self.paren(&mut part)?,
                ')' => {
                    self.finish(&mut part)?;
                    self.cursor.bump();
                    return match end {
                        ListEnd::Paren => Ok(ListEnd::Paren),
                        _ => Err(Unclear("a parenthesis in it was never opened")),
                    };
                }
                '<' | '>' | '&' if !self.at_process() => self.redirection(&mut part, "")?,
                _ => {
                    if self.word_of(&mut part, end)? {
                        return Ok(ListEnd::Esac);
                    }
                }
            }
        }
    }

    fn at_process(&self) -> bool {
        self.cursor.rest().starts_with("<(") || self.cursor.rest().starts_with(">(")
    }

    fn finish(&mut self, part: &mut SimpleCommand) -> Read<()> {
        if part.is_empty() {
            return Ok(());
        }
        if self.parts.len() >= PARTS_MAX {
            return Err(Unclear("it has too many commands"));
        }
        self.parts.push(std::mem::take(part));
        Ok(())
    }

    /// Skips one of `;`, `&`, `|` and their doubled forms; returns whether it ends a clause of `case`.
    fn separator(&mut self, end: ListEnd) -> Read<bool> {
        if self.cursor.take(";;&") || self.cursor.take(";;") || self.cursor.take(";&") {
            return match end {
                ListEnd::Clause => Ok(true),
                _ => Err(Unclear("`;;` stands outside of `case`")),
            };
        }
        _ = self.cursor.take("&&")
            || self.cursor.take("||")
            || self.cursor.take("|&")
            || self.cursor.bump().is_some();
        Ok(false)
    }

    /// A subshell, or the parentheses of a function.
    fn paren(&mut self, part: &mut SimpleCommand) -> Read<()> {
        self.cursor.bump();
        if part.is_empty() {
            return match self.cursor.peek() {
                Some('(' | '\\') => Err(Unclear("`((` may be arithmetic or two subshells")),
                _ => self.in_parens(),
            };
        }
        self.blanks()?;
        let is_function = part.words.len() == 1 && part.written.len() == 1 && self.cursor.take(")");
        *part = SimpleCommand::default();
        if is_function {
            Ok(())
        } else {
            Err(Unclear("a parenthesis stands in a place that isn't understood"))
        }
    }

    /// Reads commands up to the closing parenthesis; the opening one has been read.
    fn in_parens(&mut self) -> Read<()> {
        let before = std::mem::replace(&mut self.outer_pending, self.pending.len());
        self.deeper(|scan| scan.list(ListEnd::Paren))?;
        if self.pending.len() > self.outer_pending {
            return Err(Unclear("a here-document has no body before its parenthesis closes"));
        }
        self.outer_pending = before;
        Ok(())
    }

    fn newline(&mut self) -> Read<()> {
        self.cursor.bump();
        if self.outer_pending > 0 {
            return Err(Unclear("a here-document begins on a line that goes on on the next one"));
        }
        for document in std::mem::take(&mut self.pending) {
            self.body(&document)?;
        }
        Ok(())
    }

    fn substitutions(&mut self) -> Read<()> {
        let mut value = String::new();
        while let Some(c) = self.cursor.peek() {
            match c {
                '$' => self.dollar(true, &mut value)?,
                '`' => self.backticks(true)?,
                '\\' => _ = (self.cursor.bump(), self.cursor.bump()),
                _ => _ = self.cursor.bump(),
            }
        }
        Ok(())
    }

    /// Reads a word by its role; returns whether it was the `esac` of the current clause.
    fn word_of(&mut self, part: &mut SimpleCommand, end: ListEnd) -> Read<bool> {
        let mut word = self.word()?;
        if word.bare
            && word.value.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(self.cursor.peek(), Some('<' | '>'))
        {
            self.redirection(part, &word.raw)?;
            return Ok(false);
        }
        if word.value.starts_with('{')
            && word.value.ends_with('}')
            && matches!(self.cursor.peek(), Some('<' | '>'))
        {
            self.facts.doubt("a redirection in it sets a variable");
        }
        if part.words.is_empty() && word.bare {
            match word.value.as_str() {
                "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "}" | "fi"
                | "done" => {
                    return Ok(false);
                }
                "time" if self.time_is_reserved()? => return Ok(false),
                "for" | "select" => return self.for_words().map(|()| false),
                "case" => return self.deeper(Self::case).map(|()| false),
                "esac" if end == ListEnd::Clause => return self.finish(part).map(|()| true),
                "function" => return self.function_name().map(|()| false),
                "esac" | "coproc" => return Err(Unclear("a reserved word stands where it isn't understood")),
                _ => {}
            }
        }
        if part.split_in_dash {
            return Err(Unclear("shells differ in what follows `&>`"));
        }
        if part.in_front() && word.assigns && word.value.ends_with('=') && self.cursor.peek() == Some('(') {
            self.array(&mut word)?;
        }
        self.facts.see(&word, part.in_front());
        part.written.push(word.raw.clone());
        part.words.push(word);
        Ok(false)
    }

    /// Skips blanks, comments and empty lines.
    fn lines(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            match self.cursor.peek() {
                Some('\n') => self.newline()?,
                Some('#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    /// The words of an array; the opening parenthesis comes next.
    fn array(&mut self, word: &mut Word) -> Read<()> {
        let start = self.cursor.at;
        self.cursor.bump();
        loop {
            self.lines()?;
            if self.cursor.take(")") {
                word.raw.push_str(self.cursor.text.get(start..self.cursor.at).unwrap_or_default());
                word.value.push(HOLE);
                return Ok(());
            }
            if self.some_word()?.value.starts_with('[') {
                self.facts.doubt("an index in it is worked out by the shell");
            }
        }
    }
}
