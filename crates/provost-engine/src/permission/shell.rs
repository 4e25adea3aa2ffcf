//! What a shell command runs, as far as its text shows: its simple commands, and those in their arguments, each in
//! all the forms that a pattern may match.

mod facts;
mod files;
mod plain;
mod program;
mod reach;
mod runner;
mod scan;
mod variable;

use std::path::Path;

pub use files::ScriptNames;
use reach::Reach;

use super::glob::{Glob, HOLE};

/// Maximum bytes of a command that are read; a longer one is unclear.
pub(super) const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// The program that reads a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A shell that is started for it.
    NewShell,
    /// The program at a terminal, in which earlier input still has effect.
    Terminal,
}

/// A script with its commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// All its text, without blanks at its ends.
    pub(super) whole: String,
    /// Its simple commands, in their order, those of substitutions first; after each one those in its arguments.
    pub(super) commands: Vec<Command>,
    /// Why it may run more than these.
    pub(super) unclear: Option<&'static str>,
    /// The files that it names as scripts.
    pub(super) scripts: ScriptNames,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// As written, with blanks normalized, without its redirections.
    pub(super) words: String,
    /// The same with redirections.
    pub(super) written: String,
    /// Whether its output goes to a file.
    pub(super) writes: bool,
    /// The commands that have it in their arguments, the outermost first.
    pub(super) within: Vec<Within>,
    /// Why it can't be read: then it has no words, and only a pattern that matches the argument in question covers
    /// it.
    pub(super) unread: Option<&'static str>,
    /// Without quotes, leading assignments and folders; with holes.
    forms: Vec<String>,
    /// Names of programs that it may run, as far as is known.
    perhaps: Vec<String>,
}

/// A place in the arguments of another command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Within {
    /// The index of the command in the script.
    pub(super) command: usize,
    /// Where the text that matches the inner command ends in the words of the outer one.
    pub(super) end: usize,
}

impl Script {
    /// Parses `text`; where it runs, relative paths are relative to a folder in `workspace`.
    pub(super) fn read(text: &str, reader: Reader, workspace: &Path) -> Self {
        let whole = text.trim().to_owned();
        let unclear = match () {
            () if text.len() > COMMAND_BYTES_MAX => Some("it is longer than what is read of a command"),
            () if text.contains('\0') => Some("it holds a NUL character"),
            () => None,
        };
        if unclear.is_some() {
            return Self { whole, unclear, scripts: ScriptNames::unread(text), ..Self::default() };
        }
        let mut reach = Reach::new(workspace, reader);
        reach.script(text, &[], 0);
        reach.note_repositories();
        if reader == Reader::Terminal && text.contains(['!', '^']) {
            reach.doubt("a shell at a terminal may put in earlier commands");
        }
        reach.scripts.end(text);
        let unclear = reach.facts.unclear(reader == Reader::NewShell);
        Self { whole, commands: reach.commands, unclear, scripts: reach.scripts }
    }
}

impl Script {
    /// A command as written; if an argument can't be read, the reason and the command that contains it.
    pub(super) fn words_of(&self, command: &Command) -> String {
        let text = match (
            command.unread,
            command.within.last().and_then(|within| self.commands.get(within.command)),
        ) {
            (None, _) => format!("`{}`", command.written),
            (Some(why), Some(outer)) => format!("`{}` ({why})", outer.written),
            (Some(why), None) => why.to_owned(),
        };
        text.replace(HOLE, "…")
    }
}

impl Command {
    /// Whether `glob` covers it as written; a redirection to a file only if the glob contains one.
    fn is_covered_by(&self, glob: &ShellGlob) -> bool {
        self.named_by(glob).is_some()
    }

    /// The length of the prefix of its words that `glob` contains literally; `None` if it isn't covered.
    fn named_by(&self, glob: &ShellGlob) -> Option<usize> {
        if self.unread.is_some() {
            return None;
        }
        let plain = glob.named(&self.words).filter(|_| !self.writes);
        plain.or_else(|| {
            let named = glob.named(&self.written).filter(|_| glob.has('>'))?;
            let same = self.words.bytes().zip(self.written.bytes()).take_while(|(one, other)| one == other);
            Some(named.min(same.count()))
        })
    }
}

fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(" ")
}

/// A glob over simple commands: blanks are normalized, and a ` *` at its end also matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellGlob {
    exact: Glob,
    /// With blanks normalized, if that makes a difference.
    even: Option<Glob>,
    /// Without the ` *` at its end.
    bare: Option<Glob>,
    /// Whether it contains more than one simple command.
    joins: bool,
}

impl ShellGlob {
    /// Reads a pattern's text.
    pub(super) fn new(text: &str) -> Self {
        use super::glob::{GlobStep, steps_of};
        let text = text.trim();
        let mut steps = steps_of(text);
        if let [.., colon @ GlobStep::Is(':'), GlobStep::Star] = steps.as_mut_slice() {
            *colon = GlobStep::Is(' ');
        }
        let mut even = evened(&steps);
        let differs = even != steps;
        let even_glob = differs.then(|| Glob::of(even.clone()));
        let bare = match even.as_slice() {
            [.., GlobStep::Is(' '), GlobStep::Star] => {
                even.truncate(even.len().saturating_sub(2));
                Some(Glob::of(even))
            }
            _ => None,
        };
        let exact = Glob::of(steps);
        let joins = ['|', ';', '&', '\n'].into_iter().any(|c| exact.has(c));
        Self { exact, even: even_glob, bare, joins }
    }

    /// The only text that it matches, if there is just one.
    pub(super) fn literal(&self) -> Option<&str> {
        self.exact.literal()
    }

    fn has(&self, c: char) -> bool {
        self.exact.has(c)
    }

    /// The number of literal characters.
    pub(super) fn literal_chars(&self) -> usize {
        self.exact.literal_chars()
    }

    fn globs(&self) -> impl Iterator<Item = &Glob> {
        [Some(&self.exact), self.even.as_ref(), self.bare.as_ref()].into_iter().flatten()
    }

    fn matches(&self, text: &str) -> bool {
        self.globs().any(|glob| glob.matches(text))
    }

    /// The length of the prefix of `text` that it contains literally, if it matches.
    fn named(&self, text: &str) -> Option<usize> {
        self.globs().filter(|glob| glob.matches(text)).map(Glob::prefix_bytes).max()
    }

    /// Which of `commands` it covers: those that it matches, and those in the arguments of a matched one at a
    /// position that it contains literally.
    pub(super) fn covers(&self, commands: &[Command]) -> Vec<bool> {
        let named: Vec<Option<usize>> = commands.iter().map(|command| command.named_by(self)).collect();
        let names = |within: &Within| {
            named.get(within.command).copied().flatten().is_some_and(|named| named >= within.end)
        };
        commands.iter().map(|one| one.is_covered_by(self) || one.within.iter().any(names)).collect()
    }

    /// The program that it begins with, if it is literal.
    fn program(&self) -> Option<&str> {
        let text = self.even.as_ref().unwrap_or(&self.exact).prefix();
        let (first, rest) = text.split_once(' ').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let whole = rest.is_some() || self.exact.literal().is_some();
        (whole && !first.is_empty()).then(|| first.rsplit('/').next().unwrap_or_default())
    }

    /// Whether it matches a command of `script`, or a command that one of them runs.
    pub(super) fn touches(&self, script: &Script) -> bool {
        self.touches_whole(script) || script.commands.iter().any(|one| self.touches_command(one))
    }

    /// Whether it contains several commands and matches `script`.
    pub(super) fn touches_whole(&self, script: &Script) -> bool {
        self.joins && self.matches(&script.whole)
    }

    /// Whether it matches `command`, or one that it runs.
    pub(super) fn touches_command(&self, command: &Command) -> bool {
        command.forms.iter().any(|form| self.matches(form))
    }

    /// Whether it may match `command`, or one that it runs, given what is unknown about it.
    pub(super) fn may_touch_command(&self, command: &Command) -> bool {
        if self.program().is_some_and(|name| command.perhaps.iter().any(|known| known == name)) {
            return true;
        }
        let unsure = || command.forms.iter().filter(|form| form.contains(HOLE));
        unsure().any(|form| self.globs().any(|glob| glob.may_match(form)))
    }
}

/// Replaces each run of blanks outside of quotes by one space.
fn evened(steps: &[super::glob::GlobStep]) -> Vec<super::glob::GlobStep> {
    use super::glob::GlobStep;
    let mut even = Vec::with_capacity(steps.len());
    let mut quote = None;
    let mut escaped = false;
    for step in steps {
        let GlobStep::Is(c) = *step else {
            even.push(*step);
            continue;
        };
        let blank = matches!(c, ' ' | '\t') && quote.is_none() && !escaped;
        if blank && even.last() == Some(&GlobStep::Is(' ')) {
            continue;
        }
        even.push(if blank { GlobStep::Is(' ') } else { *step });
        quote = match quote {
            None if matches!(c, '\'' | '"') && !escaped => Some(c),
            Some(open) if open == c && !escaped => None,
            same => same,
        };
        escaped = c == '\\' && !escaped && quote != Some('\'');
    }
    even
}
