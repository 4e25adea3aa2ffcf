//! Finds the simple commands in a script, without running or expanding anything.
//!
//! It prefers to find too many commands: a wrongly found command only makes a ruling stricter. So it covers little
//! grammar, but all that determines where a command begins: quotes, comments, here-documents, substitutions,
//! separators and the few reserved words. Where bash and dash differ, or the text is ambiguous, it returns
//! [`Unclear`] instead of guessing. Time is linear in the length of the script except for the bounded nesting; the
//! recursion is bounded too.

mod word;

use super::super::glob::HOLE;
use super::facts::Facts;

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
pub(super) struct Part {
    /// Its words, including leading assignments.
    pub(super) words: Vec<Word>,
    /// Words and redirections as written, in their order.
    pub(super) written: Vec<String>,
    /// Whether its output goes to a file.
    pub(super) writes: bool,
    /// It contained `&>`, after which dash begins a new command and bash doesn't.
    split_in_dash: bool,
}

impl Part {
    fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    fn in_front(&self) -> bool {
        self.words.iter().all(|word| word.assigns)
    }
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
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
pub(super) fn scan(text: &str, parts: &mut Vec<Part>, facts: &mut Facts) -> Read<()> {
    if text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        facts.doubt("it holds control characters, which shells use for themselves");
    }
    let mut scan = Scan { text, at: 0, depth: 0, pending: Vec::new(), outer_pending: 0, parts, facts };
    scan.list(End::Text).map(|_| ())
}

struct Scan<'t, 'p> {
    text: &'t str,
    at: usize,
    depth: usize,
    /// Here-documents whose bodies begin after the next newline.
    pending: Vec<HereDoc>,
    /// How many of them began outside of the parentheses that are being read.
    outer_pending: usize,
    parts: &'p mut Vec<Part>,
    facts: &'p mut Facts,
}

impl<'t> Scan<'t, '_> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, text: &str) -> bool {
        let takes = self.rest().starts_with(text);
        if takes {
            self.at += text.len();
        }
        takes
    }

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
    fn inner<T>(&mut self, text: &str, read: impl FnOnce(&mut Scan<'_, '_>) -> Read<T>) -> Read<T> {
        let depth = self.depth;
        let mut scan = Scan {
            text,
            at: 0,
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
            if self.take("\\\n") {
                self.inside_newline()?;
            } else if !self.take(" ") && !self.take("\t") {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Reads commands up to `end`; returns how they ended.
    fn list(&mut self, end: End) -> Read<End> {
        let mut part = Part::default();
        loop {
            self.blanks()?;
            let Some(c) = self.peek() else {
                self.finish(&mut part)?;
                return match end {
                    End::Text => Ok(End::Text),
                    _ => Err(Unclear("something in it is never closed")),
                };
            };
            match c {
                '\n' => {
                    self.finish(&mut part)?;
                    self.newline()?;
                }
                '#' => self.comment(),
                ';' | '&' | '|' if !self.rest().starts_with("&>") => {
                    self.finish(&mut part)?;
                    if self.separator(end)? {
                        return Ok(End::Clause);
                    }
                }
                '(' => self.paren(&mut part)?,
                ')' => {
                    self.finish(&mut part)?;
                    self.bump();
                    return match end {
                        End::Paren => Ok(End::Paren),
                        _ => Err(Unclear("a parenthesis in it was never opened")),
                    };
                }
                '<' | '>' | '&' if !self.at_process() => self.redirection(&mut part, "")?,
                _ => {
                    if self.word_of(&mut part, end)? {
                        return Ok(End::Esac);
                    }
                }
            }
        }
    }

    fn at_process(&self) -> bool {
        self.rest().starts_with("<(") || self.rest().starts_with(">(")
    }

    fn finish(&mut self, part: &mut Part) -> Read<()> {
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
    fn separator(&mut self, end: End) -> Read<bool> {
        if self.take(";;&") || self.take(";;") || self.take(";&") {
            return match end {
                End::Clause => Ok(true),
                _ => Err(Unclear("`;;` stands outside of `case`")),
            };
        }
        _ = self.take("&&") || self.take("||") || self.take("|&") || self.bump().is_some();
        Ok(false)
    }

    /// A subshell, or the parentheses of a function.
    fn paren(&mut self, part: &mut Part) -> Read<()> {
        self.bump();
        if part.is_empty() {
            return match self.peek() {
                Some('(' | '\\') => Err(Unclear("`((` may be arithmetic or two subshells")),
                _ => self.in_parens(),
            };
        }
        self.blanks()?;
        let is_function = part.words.len() == 1 && part.written.len() == 1 && self.take(")");
        *part = Part::default();
        if is_function {
            Ok(())
        } else {
            Err(Unclear("a parenthesis stands in a place that isn't understood"))
        }
    }

    /// Reads commands up to the closing parenthesis; the opening one has been read.
    fn in_parens(&mut self) -> Read<()> {
        let before = std::mem::replace(&mut self.outer_pending, self.pending.len());
        self.deeper(|scan| scan.list(End::Paren))?;
        if self.pending.len() > self.outer_pending {
            return Err(Unclear("a here-document has no body before its parenthesis closes"));
        }
        self.outer_pending = before;
        Ok(())
    }

    fn newline(&mut self) -> Read<()> {
        self.bump();
        if self.outer_pending > 0 {
            return Err(Unclear("a here-document begins on a line that goes on on the next one"));
        }
        for document in std::mem::take(&mut self.pending) {
            self.body(&document)?;
        }
        Ok(())
    }

    /// Skips the body of a here-document; its substitutions are read.
    fn body(&mut self, document: &HereDoc) -> Read<()> {
        let start = self.at;
        let mut end = self.text.len();
        while self.at < self.text.len() {
            let line = self.rest().split('\n').next().unwrap_or_default();
            let line_start = self.at;
            self.at = (self.at + line.len() + 1).min(self.text.len());
            let shown = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            if shown == document.delimiter {
                end = line_start;
                break;
            }
            if !document.literal && line.ends_with('\\') {
                return Err(Unclear("a line of a here-document ends in a backslash"));
            }
        }
        if document.literal {
            return Ok(());
        }
        let body = self.text.get(start..end).unwrap_or_default();
        self.inner(body, |scan| scan.substitutions())
    }

    fn substitutions(&mut self) -> Read<()> {
        let mut value = String::new();
        while let Some(c) = self.peek() {
            match c {
                '$' => self.dollar(true, &mut value)?,
                '`' => self.backticks(true)?,
                '\\' => _ = (self.bump(), self.bump()),
                _ => _ = self.bump(),
            }
        }
        Ok(())
    }

    /// Reads a word by its role; returns whether it was the `esac` of the current clause.
    fn word_of(&mut self, part: &mut Part, end: End) -> Read<bool> {
        let mut word = self.word()?;
        if word.bare
            && word.value.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(self.peek(), Some('<' | '>'))
        {
            self.redirection(part, &word.raw)?;
            return Ok(false);
        }
        if word.value.starts_with('{') && word.value.ends_with('}') && matches!(self.peek(), Some('<' | '>'))
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
                "esac" if end == End::Clause => return self.finish(part).map(|()| true),
                "function" => return self.function_name().map(|()| false),
                "esac" | "coproc" => return Err(Unclear("a reserved word stands where it isn't understood")),
                _ => {}
            }
        }
        if part.split_in_dash {
            return Err(Unclear("shells differ in what follows `&>`"));
        }
        if part.in_front() && word.assigns && word.value.ends_with('=') && self.peek() == Some('(') {
            self.array(&mut word)?;
        }
        self.facts.see(&word, part.in_front());
        part.written.push(word.raw.clone());
        part.words.push(word);
        Ok(false)
    }

    /// Skips the options of the reserved word `time`; with other options it is the program of that name.
    fn time_is_reserved(&mut self) -> Read<bool> {
        loop {
            self.blanks()?;
            let option = ["-p", "--"].into_iter().find(|option| {
                self.rest().strip_prefix(option).is_some_and(|rest| rest.starts_with([' ', '\t', '\n']))
            });
            match option {
                Some(option) => self.at += option.len(),
                None => return Ok(self.peek() != Some('-')),
            }
        }
    }

    fn function_name(&mut self) -> Read<()> {
        self.blanks()?;
        self.some_word()?;
        self.blanks()?;
        if self.take("(") {
            self.blanks()?;
            if !self.take(")") {
                return Err(Unclear("a function's body isn't understood"));
            }
        }
        Ok(())
    }

    fn some_word(&mut self) -> Read<Word> {
        match self.word()? {
            word if word.raw.is_empty() => Err(Unclear("a word is missing")),
            word => Ok(word),
        }
    }

    /// The words between `for` and the separator or `do`: no commands, except for substitutions.
    fn for_words(&mut self) -> Read<()> {
        self.blanks()?;
        let name = self.some_word()?.value;
        self.blanks()?;
        if matches!(self.peek(), None | Some(';' | '\n' | '#')) {
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
            if matches!(self.peek(), None | Some(';' | '\n' | '#')) {
                self.facts.bind(&name, counts);
                return Ok(());
            }
            counts &= super::facts::is_number(&self.some_word()?);
        }
    }

    fn case(&mut self) -> Read<()> {
        self.blanks()?;
        self.some_word()?;
        self.lines()?;
        if !matches!(self.some_word()?, word if word.bare && word.value == "in") {
            return Err(Unclear("a `case` isn't understood"));
        }
        loop {
            self.lines()?;
            let opened = self.take("(");
            self.blanks()?;
            let first = self.some_word()?;
            if !opened && first.bare && first.value == "esac" {
                return Ok(());
            }
            self.more_patterns()?;
            if self.list(End::Clause)? == End::Esac {
                return Ok(());
            }
        }
    }

    fn more_patterns(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            match self.bump() {
                Some(')') => return Ok(()),
                Some('|') => {
                    self.blanks()?;
                    self.some_word()?;
                }
                _ => return Err(Unclear("a `case` isn't understood")),
            }
        }
    }

    /// Skips blanks, comments and empty lines.
    fn lines(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some('\n') => self.newline()?,
                Some('#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    /// The words of an array; the opening parenthesis comes next.
    fn array(&mut self, word: &mut Word) -> Read<()> {
        let start = self.at;
        self.bump();
        loop {
            self.lines()?;
            if self.take(")") {
                word.raw.push_str(self.text.get(start..self.at).unwrap_or_default());
                word.value.push(HOLE);
                return Ok(());
            }
            if self.some_word()?.value.starts_with('[') {
                self.facts.doubt("an index in it is worked out by the shell");
            }
        }
    }

    /// A redirection, after the number of its descriptor if it has one.
    fn redirection(&mut self, part: &mut Part, number: &str) -> Read<()> {
        const ALL: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">"];
        let Some(operator) = ALL.into_iter().find(|operator| self.rest().starts_with(operator)) else {
            return Err(Unclear("a redirection isn't understood"));
        };
        self.at += operator.len();
        part.split_in_dash |= operator.starts_with('&');
        let before = self.at;
        self.blanks()?;
        let gap = if self.at > before { " " } else { "" };
        let target = self.some_word()?;
        if matches!(operator, "<<" | "<<-") {
            if !target.plain || target.raw.contains('$') || target.value.contains('\n') {
                return Err(Unclear("the end of a here-document isn't understood"));
            }
            self.pending.push(HereDoc {
                delimiter: target.value,
                literal: !target.bare,
                strips_tabs: operator == "<<-",
            });
        } else {
            part.writes |= writes(operator, &target.value);
        }
        part.written.push(format!("{number}{operator}{gap}{}", target.raw));
        Ok(())
    }
}

/// Whether a redirection may change a file.
fn writes(operator: &str, target: &str) -> bool {
    if !operator.contains('>') || matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
        return false;
    }
    let is_descriptor = target.strip_suffix('-').unwrap_or(target).bytes().all(|byte| byte.is_ascii_digit());
    !(operator == ">&" && is_descriptor && !target.is_empty())
}
