//! Programs of small languages in arguments: `awk` and `sed`.

use super::{At, Reach, Word};
use crate::permission::glob::HOLE;

/// Maximum letters in a program of `sed` that may be its command `e`.
const EXECUTES_MAX: usize = 256;

const CODE: &str = "the program in its arguments may run commands or write files";

pub(super) fn awk(reach: &mut Reach, index: usize, at: At<'_>) {
    let mut place = 0;
    while let Some(word) = at.arguments.get(place) {
        let value = word.value.as_str();
        match value {
            "--" => {
                place += 1;
                break;
            }
            "-F" | "-v" => {
                // If the value expands to several words, the second one is the program.
                if at.arguments.get(place + 1).is_some_and(|word| word.splits) {
                    return code(reach, index, at, place + 1);
                }
                place += 2;
            }
            "--re-interval" | "--posix" | "--traditional" | "--csv" | "-P" | "-b" | "--version" => place += 1,
            _ if (value.starts_with("-F") || value.starts_with("-v")) && !word.splits => place += 1,
            _ if value.starts_with('-') => return code(reach, index, at, place),
            _ => break,
        }
    }
    let Some(program) = at.arguments.get(place) else { return };
    if !is_tame_awk(program) {
        code(reach, index, at, place);
        if runs_unseen(&program.value) {
            reach.doubt("which command its program runs shows only when it runs");
        }
    }
    // GNU sed also takes options after its program.
    for (offset, word) in at.arguments.iter().enumerate().skip(place + 1) {
        if word.value.starts_with('-') && word.value.len() > 1 {
            reach.unread(CODE, at, offset);
        }
    }
}

pub(super) fn sed(reach: &mut Reach, index: usize, at: At<'_>) {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut only_operands = false;
    let mut place = 0;
    while let Some(word) = at.arguments.get(place) {
        let value = word.value.as_str();
        let here = place;
        place += 1;
        if !only_operands && super::may_be_option(word) {
            reach.unread("what the shell puts in may be an option that runs a command", at, here);
        }
        if only_operands || !value.starts_with('-') || value == "-" {
            operands.push((here, value.to_owned()));
            continue;
        }
        match value {
            "--" => only_operands = true,
            "-e" | "-ne" | "-En" | "-Ee" | "-re" | "-nEe" | "-nre" | "--expression" => {
                scripts.push((place, at.value(place).unwrap_or_default().to_owned()));
                place += 1;
            }
            "--quiet" | "--silent" | "--posix" | "--debug" | "--sandbox" | "--regexp-extended"
            | "--separate" | "--unbuffered" | "--null-data" | "--in-place" | "--version" | "--help" => {}
            "-l" => {
                if at.arguments.get(place).is_some_and(|word| word.splits) {
                    return code(reach, index, at, place);
                }
                place += 1;
            }
            _ => match sed_letters(value) {
                Some(None) => {}
                Some(Some(script)) => scripts.push((here, script.to_owned())),
                None => return code(reach, index, at, here),
            },
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.into_iter().next());
    }
    for (here, script) in scripts {
        let splits = at.arguments.get(here).is_some_and(|word| word.splits);
        if splits || !Sed::is_tame(&script) {
            // Its command `e` without an argument, and the flag `e`, run what it reads.
            if script.split([';', '\n', '}']).any(|part| part.trim_end().ends_with('e')) {
                reach.doubt("a script in it shows only when it runs");
            }
            code(reach, index, at, here);
        }
    }
}

/// The argument at `place` is a program that isn't understood.
fn code(reach: &mut Reach, index: usize, at: At<'_>, place: usize) {
    for (place, word) in at.arguments.iter().enumerate() {
        reach.names(index, &word.value.replace('/', " "));
        if at.program.ends_with("sed") {
            // Its command `e` needs no blank before the command that it runs.
            for (_, behind) in
                word.value.match_indices('e').take(EXECUTES_MAX).map(|(at, _)| word.value.split_at(at))
            {
                let name = behind.get(1..).unwrap_or_default().split(|c: char| !c.is_alphanumeric()).next();
                reach.names(index, name.unwrap_or_default());
            }
        }
        let file = match word.value.strip_prefix("-f") {
            Some("") => at.arguments.get(place + 1).map(|word| word.value.as_str()),
            attached => attached,
        };
        let elsewhere = |file: &str| {
            file == "-" || file.starts_with("/dev/") || file.starts_with("/proc/") || file.contains(HOLE)
        };
        if file.is_some_and(elsewhere) {
            reach.doubt("a program in it is read from elsewhere");
        }
    }
    if at.value(place).is_some_and(|program| program.starts_with(HOLE)) {
        reach.doubt("a program in it shows only when it runs");
    }
    reach.scripts.note_text(at.value(place).unwrap_or_default());
    reach.unread(CODE, at, place);
}

/// The script attached to option letters, if there is one; `None` if a letter is unknown.
fn sed_letters(value: &str) -> Option<Option<&str>> {
    let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    for (index, letter) in letters.char_indices() {
        let behind = letters.get(index + 1..).unwrap_or_default();
        match letter {
            'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
            // The rest is a suffix.
            'i' => return Some(None),
            'e' if !behind.is_empty() => return Some(Some(behind)),
            _ => return None,
        }
    }
    Some(None)
}

/// Whether a program of `awk` runs a command that isn't a text in it, or passes its output to a shell.
fn runs_unseen(program: &str) -> bool {
    let calls = program.match_indices("system").any(|(at, name)| {
        let behind = program.get(at + name.len()..).unwrap_or_default().trim_start();
        let argument = behind.strip_prefix('(').unwrap_or(behind).trim_start();
        literal(argument).is_none_or(|(_, behind)| !behind.trim_start().starts_with(')'))
    });
    let printed = program.find("print").unwrap_or(program.len());
    let pipes = program.match_indices('|').any(|(at, pipe)| {
        let (before, behind) = program.split_at(at);
        let behind = behind.strip_prefix(pipe).unwrap_or_default().trim_start_matches('&').trim_start();
        if behind.starts_with("getline") {
            return !before.trim_end().ends_with('"');
        }
        let is_or = behind.starts_with('|') || before.ends_with('|');
        at > printed && !is_or && literal(behind).is_none_or(|(command, _)| is_shell(command))
    });
    calls || pipes
}

/// The content of the string literal that `text` begins with, and what is behind it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let (content, behind) = text.strip_prefix('"')?.split_once('"')?;
    (!content.ends_with('\\')).then_some((content, behind))
}

/// Whether a command reads commands from its input.
fn is_shell(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    name.is_empty()
        || name.ends_with("sh")
        || matches!(name, "xargs" | "parallel" | "env" | "." | "source" | "exec")
}

/// Whether a program of `awk` only reads and prints.
fn is_tame_awk(word: &Word) -> bool {
    let text = word.value.as_str();
    let words = ["system", "getline", "@", "\\\n"];
    if text.contains(HOLE) || word.splits || words.iter().any(|word| text.contains(word)) {
        return false;
    }
    // `>` and `|` after a `print` redirect its output; before all of them they can't.
    let printed = text.find("print").map_or("", |at| text.get(at..).unwrap_or_default());
    !printed.contains(['|', '>'])
}

/// A parser of `sed` programs; what it doesn't understand isn't tame.
struct Sed<'t> {
    rest: &'t str,
}

impl Sed<'_> {
    fn is_tame(script: &str) -> bool {
        !script.contains(HOLE) && Sed { rest: script }.commands().is_some()
    }

    fn commands(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == ';' || c == '}');
            if self.rest.is_empty() {
                return Some(());
            }
            self.address()?;
            if self.take(",") {
                self.skip(|c| matches!(c, ' ' | '+' | '~'));
                self.address()?;
            }
            self.skip(|c| matches!(c, ' ' | '!'));
            self.command()?;
        }
    }

    fn address(&mut self) -> Option<()> {
        if self.take("$") {
            return Some(());
        }
        if self.rest.starts_with('/') {
            self.delimited('/')?;
            self.skip(|c| matches!(c, 'I' | 'M'));
        } else if let Some(behind) = self.rest.strip_prefix('\\') {
            let delimiter = behind.chars().next().filter(char::is_ascii_punctuation)?;
            self.rest = behind;
            self.delimited(delimiter)?;
            self.skip(|c| matches!(c, 'I' | 'M'));
        } else {
            self.skip(|c| c.is_ascii_digit() || c == '~');
        }
        self.skip(|c| c == ' ');
        Some(())
    }

    fn command(&mut self) -> Option<()> {
        let command = self.rest.chars().next()?;
        self.rest = self.rest.get(command.len_utf8()..)?;
        match command {
            '{' => return Some(()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' => self.skip(|c| c.is_ascii_digit() || c == ' '),
            's' => {
                self.substitution()?;
                self.skip(|c| c.is_ascii_digit() || "gpIiMm".contains(c));
            }
            'y' => self.substitution()?,
            'b' | 't' | 'T' => self.skip(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ')),
            // Some versions end a label at a blank, and read a command after it.
            ':' => {
                self.skip(|c| matches!(c, ' ' | '\t'));
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            }
            // The rest of the line is text, or the name of a file.
            'a' | 'i' | 'c' | 'r' | 'R' | '#' => {
                let line = self.rest.split('\n').next().unwrap_or_default();
                let goes_on = line.ends_with('\\') || line.contains(['}', ';']);
                if goes_on {
                    return None;
                }
                self.rest = self.rest.get(line.len()..)?;
            }
            _ => return None,
        }
        self.skip(|c| c == ' ');
        let ends = self.rest.is_empty() || self.rest.starts_with([';', '\n', '}', '#']);
        ends.then_some(())
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self
            .rest
            .chars()
            .next()
            .filter(|c| c.is_ascii_graphic() && !matches!(c, '\\' | ';' | '{' | '}'))?;
        self.delimited(delimiter)?;
        self.past(delimiter)
    }

    /// Skips the delimiter, and the text up to the next one.
    fn delimited(&mut self, delimiter: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(delimiter)?;
        self.past(delimiter)
    }

    fn past(&mut self, delimiter: char) -> Option<()> {
        let mut escaped = false;
        for (index, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                // In a class a delimiter is literal in some versions, and ends it in others; so does the end of a
                // line.
                '\n' => return None,
                _ if c == delimiter => {
                    let behind = index + c.len_utf8();
                    let passed = self.rest.get(..index)?;
                    let in_class = passed
                        .rfind('[')
                        .is_some_and(|open| !passed.get(open + 1..).unwrap_or_default().contains(']'));
                    if in_class {
                        return None;
                    }
                    self.rest = self.rest.get(behind..)?;
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }

    fn take(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    fn skip(&mut self, skips: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skips);
    }
}
