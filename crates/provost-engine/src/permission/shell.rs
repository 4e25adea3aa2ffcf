//! What a shell command runs, as far as its text tells: its simple commands, each in all the forms that a pattern
//! may name it by.

mod scan;
mod wrap;

use scan::{Part, Word};
use wrap::{STARTS_MAX, Wrap, starts, wrap_of};

use super::glob::{Glob, HOLE};

/// Bytes of a command that are read; a longer one is unclear.
pub(super) const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// How deep commands may stand in the arguments of commands.
const WRAPS_MAX: usize = 8;

/// Commands looked at in the arguments of others, in all of a script.
const RUNS_MAX: usize = 128;

/// Bytes of all forms of a script's commands together: what patterns are compared to.
const FORM_BYTES_MAX: usize = 6 * COMMAND_BYTES_MAX;

/// A script, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// All its text, without blanks at its ends.
    pub(super) whole: String,
    /// Its simple commands, in the order in which they stand, those of substitutions first.
    pub(super) commands: Vec<Command>,
    /// Why it may run more than these.
    pub(super) unclear: Option<&'static str>,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// As it is written, blanks evened out, without its redirections.
    pub(super) words: String,
    /// The same with them.
    pub(super) written: String,
    /// Whether its output goes to a file.
    pub(super) writes: bool,
    /// Without quotes, without assignments and folders in front, and what its arguments run; with holes.
    pub(super) forms: Vec<String>,
}

impl Script {
    /// Takes `text` apart.
    pub(super) fn read(text: &str) -> Self {
        let whole = text.trim().to_owned();
        let unclear = match () {
            () if text.len() > COMMAND_BYTES_MAX => Some("it is longer than what is read of a command"),
            () if text.contains('\0') => Some("it holds a NUL character"),
            () => None,
        };
        if unclear.is_some() {
            return Self { whole, commands: Vec::new(), unclear };
        }
        let mut parts = Vec::new();
        let mut forms = Forms { all: Vec::new(), bytes: 0, runs: 0, unclear: None };
        forms.unclear = scan::scan(text, &mut parts).err().map(|unclear| unclear.0);
        let commands = parts.iter().map(|part| Command::new(part, &mut forms)).collect();
        Self { whole, commands, unclear: forms.unclear }
    }
}

impl Command {
    fn new(part: &Part, forms: &mut Forms) -> Self {
        let words = joined(part.words.iter().map(|word| word.raw.as_str()));
        let written = part.written.join(" ");
        forms.add(&words);
        forms.add(&written);
        forms.command(without_assignments(&part.words), 0);
        Self { words, written, writes: part.writes, forms: std::mem::take(&mut forms.all) }
    }

    /// Whether `glob` covers it as it is written, a redirection to a file only where the glob speaks of one.
    pub(super) fn is_covered_by(&self, glob: &ShellGlob) -> bool {
        (!self.writes && glob.matches(&self.words)) || (glob.has('>') && glob.matches(&self.written))
    }
}

/// Collects the forms of one command after the other; the limits are those of the whole script.
struct Forms {
    all: Vec<String>,
    bytes: usize,
    runs: usize,
    unclear: Option<&'static str>,
}

impl Forms {
    fn doubt(&mut self, why: &'static str) {
        self.unclear.get_or_insert(why);
    }

    fn add(&mut self, form: &str) {
        if self.all.iter().any(|known| known == form) {
            return;
        }
        if self.bytes + form.len() > FORM_BYTES_MAX {
            return self.doubt("it runs too much through others");
        }
        self.bytes += form.len();
        self.all.push(form.to_owned());
    }

    /// The forms of the command of these words, and of those that it runs.
    fn command(&mut self, words: &[Word], depth: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        // Where options may take a value or not there are several places to begin at, at each step.
        self.runs += usize::from(depth > 0);
        if self.runs > RUNS_MAX {
            return self.doubt("it runs too many commands through others");
        }
        if !first.plain {
            self.doubt("which command it runs shows only when it runs");
        }
        let program = first.value.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let rest = || arguments.iter().map(|word| word.value.as_str());
        self.add(&joined(std::iter::once(first.value.as_str()).chain(rest())));
        if program != first.value {
            self.add(&joined(std::iter::once(program.as_str()).chain(rest())));
        }
        let Some(wrap) = wrap_of(&program) else { return };
        if depth >= WRAPS_MAX {
            return self.doubt("it runs commands through too many others");
        }
        self.wrapped(wrap, &program, arguments, depth + 1);
    }

    fn wrapped(&mut self, wrap: Wrap, program: &str, arguments: &[Word], depth: usize) {
        match wrap {
            Wrap::Command { .. } if program == "command" && asks_only(arguments) => {}
            Wrap::Command { valued, operands, adds } => {
                for start in self.starts(arguments, valued, operands) {
                    let words = arguments.get(start..).unwrap_or_default();
                    if adds {
                        let unknown = Word { value: HOLE.to_string(), ..Word::default() };
                        self.command(&[words, &[unknown]].concat(), depth);
                    } else {
                        self.command(words, depth);
                    }
                }
            }
            Wrap::Find => self.find(arguments, depth),
            Wrap::Eval => self.script(arguments, depth),
            Wrap::Shell => self.shell(arguments, depth),
            Wrap::Trap => {
                let first = arguments.iter().position(|word| word.value != "--").unwrap_or(arguments.len());
                self.script(arguments.get(first..=first).unwrap_or_default(), depth);
            }
            Wrap::Alias => self.alias(arguments, depth),
            Wrap::Su => {
                let at = arguments.iter().position(|word| ["-c", "--command"].contains(&word.value.as_str()));
                if let Some(at) = at {
                    self.script(arguments.get(at + 1..=at + 1).unwrap_or_default(), depth);
                }
                if let Some(script) = arguments.iter().find_map(|word| word.value.strip_prefix("--command="))
                {
                    self.text(script, depth);
                }
            }
            Wrap::Env => self.env(arguments, depth),
            Wrap::Script { valued, operands } => {
                for start in self.starts(arguments, valued, operands) {
                    let words = arguments.get(start..).unwrap_or_default();
                    let skips = usize::from(words.first().is_some_and(|word| word.value == "-c"));
                    self.script(words.get(skips..).unwrap_or_default(), depth);
                }
            }
        }
    }

    fn starts(&mut self, arguments: &[Word], valued: &str, operands: usize) -> Vec<usize> {
        let starts = starts(arguments, valued, operands);
        if starts.len() > STARTS_MAX {
            self.doubt("where a command in it begins can't be told");
        }
        starts
    }

    /// Words that a shell joins and reads anew.
    fn script(&mut self, words: &[Word], depth: usize) {
        self.text(&joined(words.iter().map(|word| word.value.as_str())), depth);
    }

    fn text(&mut self, script: &str, depth: usize) {
        if script.contains(HOLE) {
            self.doubt("a script in it shows only when it runs");
        }
        let mut parts = Vec::new();
        if let Err(unclear) = scan::scan(script, &mut parts) {
            self.doubt(unclear.0);
        }
        for part in parts {
            self.add(&joined(part.words.iter().map(|word| word.raw.as_str())));
            self.add(&part.written.join(" "));
            self.command(without_assignments(&part.words), depth);
        }
    }

    fn shell(&mut self, arguments: &[Word], depth: usize) {
        let mut has_script = false;
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let value = word.value.as_str();
            if value == "-" || value == "--" || !value.starts_with(['-', '+']) {
                break;
            }
            if matches!(value, "--version" | "--help") {
                return;
            }
            has_script |= value.starts_with('-') && !value.starts_with("--") && value.contains('c');
            at += if ["-o", "+o", "-O", "+O", "--rcfile", "--init-file"].contains(&value) { 2 } else { 1 };
        }
        if arguments.get(at).is_some_and(|word| ["-", "--"].contains(&word.value.as_str())) {
            at += 1;
        }
        match arguments.get(at) {
            Some(script) if has_script => self.script(std::slice::from_ref(script), depth),
            Some(file) if file.plain && !file.value.starts_with("/dev/") => {}
            _ => self.doubt("a shell in it reads its commands from elsewhere"),
        }
    }

    fn alias(&mut self, arguments: &[Word], depth: usize) {
        for (_, script) in arguments.iter().filter_map(|word| word.value.split_once('=')) {
            self.doubt("an alias in it gives words another meaning");
            self.text(script, depth);
        }
    }

    fn env(&mut self, arguments: &[Word], depth: usize) {
        for (at, word) in arguments.iter().enumerate() {
            let value = word.value.as_str();
            let attached = value.strip_prefix("--split-string=").or_else(|| {
                let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
                letters.split_once('S').map(|(_, rest)| rest)
            });
            let first = attached.or_else(|| (value == "--split-string").then_some(""));
            if let Some(first) = first {
                let rest = arguments.get(at + 1..).unwrap_or_default();
                let texts = std::iter::once(first).chain(rest.iter().map(|word| word.value.as_str()));
                return self.text(joined(texts).trim(), depth);
            }
            if !value.starts_with('-') {
                break;
            }
        }
        for start in self.starts(arguments, "uC", 0) {
            self.command(arguments.get(start..).unwrap_or_default(), depth);
        }
    }

    fn find(&mut self, arguments: &[Word], depth: usize) {
        const RUNS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
        for (at, _) in arguments.iter().enumerate().filter(|(_, word)| RUNS.contains(&word.value.as_str())) {
            let behind = arguments.get(at + 1..).unwrap_or_default();
            let end = behind.iter().position(|word| [";", "+"].contains(&word.value.as_str()));
            let words: Vec<Word> = behind
                .iter()
                .take(end.unwrap_or(behind.len()))
                .map(|word| Word { value: word.value.replace("{}", &HOLE.to_string()), ..word.clone() })
                .map(|word| Word { plain: word.plain && !word.value.contains(HOLE), ..word })
                .collect();
            self.command(&words, depth);
        }
    }
}

/// Whether `command` only tells what a name stands for.
fn asks_only(arguments: &[Word]) -> bool {
    arguments.first().is_some_and(|word| matches!(word.value.as_str(), "-v" | "-V"))
}

fn without_assignments(words: &[Word]) -> &[Word] {
    let first = words.iter().position(|word| !word.assigns).unwrap_or(words.len());
    words.get(first..).unwrap_or_default()
}

fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(" ")
}

/// A glob over simple commands: blanks are evened out, and a ` *` at its end also stands for nothing at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellGlob {
    exact: Glob,
    /// With blanks evened out, where that makes a difference.
    even: Option<Glob>,
    /// Without the ` *` at its end.
    bare: Option<Glob>,
    /// Whether it speaks of more than one simple command.
    joins: bool,
}

impl ShellGlob {
    /// Reads a pattern's text.
    pub(super) fn new(text: &str) -> Self {
        use super::glob::{Step, steps_of};
        let text = text.trim();
        let mut steps = steps_of(text);
        if let [.., colon @ Step::Is(':'), Step::Star] = steps.as_mut_slice() {
            *colon = Step::Is(' ');
        }
        let mut even = evened(&steps);
        let differs = even != steps;
        let even_glob = differs.then(|| Glob::of(even.clone()));
        let bare = match even.as_slice() {
            [.., Step::Is(' '), Step::Star] => {
                even.truncate(even.len().saturating_sub(2));
                Some(Glob::of(even))
            }
            _ => None,
        };
        let exact = Glob::of(steps);
        let joins = ['|', ';', '&', '\n'].into_iter().any(|c| exact.has(c));
        Self { exact, even: even_glob, bare, joins }
    }

    /// The one text that it stands for, if it stands for no other.
    pub(super) fn literal(&self) -> Option<&str> {
        self.exact.literal()
    }

    fn has(&self, c: char) -> bool {
        self.exact.has(c)
    }

    /// Characters that stand for themselves.
    pub(super) fn literal_chars(&self) -> usize {
        self.exact.literal_chars()
    }

    fn globs(&self) -> impl Iterator<Item = &Glob> {
        [Some(&self.exact), self.even.as_ref(), self.bare.as_ref()].into_iter().flatten()
    }

    fn matches(&self, text: &str) -> bool {
        self.globs().any(|glob| glob.matches(text))
    }

    /// Whether it names a command of `script`, or a command that one of them runs.
    pub(super) fn touches(&self, script: &Script) -> bool {
        self.touches_whole(script) || script.commands.iter().any(|one| self.touches_command(one))
    }

    /// Whether it speaks of several commands at once and names `script`.
    pub(super) fn touches_whole(&self, script: &Script) -> bool {
        self.joins && self.matches(&script.whole)
    }

    /// Whether it names `command`, or one that it runs.
    pub(super) fn touches_command(&self, command: &Command) -> bool {
        command.forms.iter().any(|form| self.matches(form))
    }

    /// Whether it would name `command`, or one that it runs, if what isn't known of it were the worst.
    pub(super) fn may_touch_command(&self, command: &Command) -> bool {
        let unsure = || command.forms.iter().filter(|form| form.contains(HOLE));
        unsure().any(|form| self.globs().any(|glob| glob.may_match(form)))
    }
}

/// Makes one space of each run of blanks outside of quotes.
fn evened(steps: &[super::glob::Step]) -> Vec<super::glob::Step> {
    use super::glob::Step;
    let (mut even, mut quote, mut escaped) = (Vec::with_capacity(steps.len()), None, false);
    for step in steps {
        let Step::Is(c) = *step else {
            even.push(*step);
            continue;
        };
        let blank = matches!(c, ' ' | '\t') && quote.is_none() && !escaped;
        if blank && even.last() == Some(&Step::Is(' ')) {
            continue;
        }
        even.push(if blank { Step::Is(' ') } else { *step });
        quote = match quote {
            None if matches!(c, '\'' | '"') && !escaped => Some(c),
            Some(open) if open == c && !escaped => None,
            same => same,
        };
        escaped = c == '\\' && !escaped && quote != Some('\'');
    }
    even
}
