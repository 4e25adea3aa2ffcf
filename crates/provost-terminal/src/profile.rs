//! What is known of a program's screens, as data (TOML).
//!
//! ```toml
//! name = "codex"
//! kind = "agent"                 # or "plain": the kernel tells that it reads, the rules tell what
//! inherits = "generic"           # whose rules are tried after its own
//! settle_ms = 60                 # a frame counts once nothing was painted for so long
//! submit_ms = 6000               # after a prompt was submitted: so long without a working mark, then the turn counts as done
//! stalled_ms = 120000            # a working mark that shows no life for so long
//!
//! [program]
//! commands = ["codex", "@openai/codex"]   # a file's name, or a piece of its path, also of a script's
//! screen = ['^>_ OpenAI Codex']           # rows by which it is known on a screen
//! relays = ['^\[\S+\] \d+:']              # last rows of programs that only pass another one's screen on
//!
//! [start]
//! unattended = ["--ask-for-approval", "untrusted"]
//! [resume]
//! last = ["resume", "--last"]
//! session = ["resume", "{session}"]
//! [channel]
//! format = "codex-exec"          # or "acp", "stream-json"
//! args = ["exec", "--json"]
//! [keys]
//! submit = "\r"
//! interrupt = "\u001b"
//! approve_once = "y"             # where a question's own options couldn't be read
//! approve_always = "p"
//! deny = "\u001b"
//! [[quit]]
//! keys = "/quit"
//! wait_ms = 300
//!
//! [[rules]]
//! id = "approval.command"
//! event = "approval"             # approval question auth waiting password working idle error
//! ask = "command"                # command edit read network tool trust other
//! region = "end"                 # where its last pattern is looked for, see below
//! end = 1                        # end: among how many of the last rows that aren't blank
//! rows = ['^Would you like to run', '^\W*1\. ', 'enter to confirm']
//! span = 30                      # from the first row matched to the last, at most
//! unless = ['^• Working']        # no row of the region, nor between those matched, may match
//! gate = "none"                  # what the kernel has to say: none, keys (reads or may), read, hidden, raw, drawn
//! subject = '^\$ (.+)'           # what it is about, see below
//! subject_until = '^\W*1\. '     # the row below that
//! question = '\?$'               # the row that is the question; the first row matched, if absent
//! options = "menu"               # read from the screen: menu (rows), letters ([y/N]), buttons (<Yes>  <No>); or given as [[rules.choices]]
//! stable_ms = 100
//! confidence = 90
//! ```
//!
//! Patterns see rows without the frame's lines and blanks at both ends. `rows` match in this order, gaps between them are
//! allowed; the last one has to match in the region:
//! - `cursor`: what stands left of the cursor on its line (wrapped lines joined), with nothing right of it;
//! - `row`: the whole row that the cursor is in;
//! - `end`: one of the last `end` rows that aren't blank;
//! - `above`: any row between the last prompt's and the cursor's; only for `error`.
//!
//! What a question is about is text that permissions decide by: it is one row that is all there, or nothing, and then a
//! person is asked. `subject` alone is a row whose group 1 is the text, the lowest one. With `subject_until` it is where the
//! text begins: a row with a group, or several patterns in order, below the last of which it begins. It goes to the last row
//! that matches `subject_until`, or, where that is several patterns in order, to the first of these rows.

mod answer;
mod options;
mod parse;
mod rule;
mod shipped;
mod subject;

use std::path::Path;

use regex::Regex;

pub use answer::{Keys, QuitStep, StreamFormat, StructuredChannel};
pub(crate) use rule::{Gate, Match, Region, Rule, RuleEvent, bare};

/// What is known of a program.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What kind of program it is.
    pub kind: ProgramKind,
    /// Arguments for running it while nobody looks.
    pub unattended: Vec<String>,
    /// How a session of it is taken up again.
    pub resume: Resume,
    /// Its structured stream, if it has one.
    pub channel: Option<StructuredChannel>,
    /// What to type.
    pub keys: Keys,
    /// How it is asked to end, in order.
    pub quit: Vec<QuitStep>,
    /// Its text, as it was read.
    pub source: String,
    pub(crate) settle_ms: u64,
    pub(crate) submit_ms: u64,
    pub(crate) stalled_ms: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) relays: Vec<Regex>,
    commands: Vec<String>,
    screen: Vec<Regex>,
}

/// What kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// It has a composer, works by itself, and asks.
    Agent,
    /// Anything else.
    Plain,
}

/// Arguments that take up a session again; empty where there is no way.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resume {
    /// The last one.
    pub last: Vec<String>,
    /// A certain one; `{session}` stands for its name.
    pub session: Vec<String>,
}

/// Why a text is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It isn't TOML, or has fields that no profile has.
    #[error("profile `{name}`: {message}")]
    Malformed {
        /// Which.
        name: String,
        /// Why, with the line.
        message: String,
    },
    /// A rule that can't be followed.
    #[error("profile `{name}`, line {line}: rule `{rule}`: {message}")]
    Rule {
        /// Which profile.
        name: String,
        /// Where the rule begins, from 1.
        line: usize,
        /// Its id.
        rule: String,
        /// What is wrong with it.
        message: String,
    },
    /// It inherits from one that isn't shipped.
    #[error("profile `{name}` inherits from `{inherits}`, which isn't one of: {shipped}")]
    UnknownParent {
        /// Which.
        name: String,
        /// From whom.
        inherits: String,
        /// Those there are.
        shipped: String,
    },
}

impl Profile {
    /// Reads a profile; `name` is told in errors, and its name where the text gives none.
    ///
    /// # Errors
    /// If the text is no profile.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        parse::parse(name, text)
    }

    /// Those that come with Provost, the generic one last.
    #[must_use]
    pub fn shipped() -> Vec<Self> {
        shipped::NAMES.iter().filter_map(|name| Self::named(name)).collect()
    }

    /// The shipped one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        shipped::profile(name).cloned()
    }

    /// The shipped one that knows this command; the generic one if none does.
    #[must_use]
    pub fn for_command(program: &str, args: &[String]) -> Self {
        let known = shipped::known(|commands| is_one_of(commands, program, args));
        known.cloned().unwrap_or_else(Self::generic)
    }

    /// Whether it is for this command: by the program's file name or path, or by those of the script or package that
    /// an interpreter or a package runner (node, python, npx, uvx, env and their like) is given.
    #[must_use]
    pub fn is_for(&self, program: &str, args: &[String]) -> bool {
        is_one_of(&self.commands, program, args)
    }

    /// Whether one of these rows shows that this program painted them.
    #[must_use]
    pub fn is_on(&self, rows: &[String]) -> bool {
        self.screen.iter().any(|pattern| rows.iter().any(|row| pattern.is_match(rule::bare(row))))
    }

    fn generic() -> Self {
        Self::named(shipped::GENERIC).unwrap_or_else(|| Self::bare(shipped::GENERIC))
    }

    fn bare(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: ProgramKind::Plain,
            unattended: Vec::new(),
            resume: Resume::default(),
            channel: None,
            keys: Keys::default(),
            quit: Vec::new(),
            source: String::new(),
            settle_ms: parse::SETTLE_MS,
            submit_ms: parse::SUBMIT_MS,
            stalled_ms: parse::STALLED_MS,
            rules: Vec::new(),
            relays: Vec::new(),
            commands: Vec::new(),
            screen: Vec::new(),
        }
    }
}

fn is_one_of(commands: &[String], program: &str, args: &[String]) -> bool {
    let script = args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-') && !arg.contains('='));
    knows(commands, program) || (runs_others(program) && script.take(2).any(|arg| knows(commands, arg)))
}

fn knows(commands: &[String], program: &str) -> bool {
    let file = stem(program);
    let is = |command: &String| {
        if command.contains('/') { program.contains(command.as_str()) } else { file == command }
    };
    commands.iter().any(is)
}

/// A file's name without its folder, version (`codex@1.2`) and the endings that scripts and programs have.
fn stem(program: &str) -> &str {
    let file = Path::new(program).file_name().and_then(|file| file.to_str()).unwrap_or(program);
    let file = file.split_once('@').map_or(file, |(name, _)| if name.is_empty() { file } else { name });
    [".exe", ".cmd", ".js", ".mjs", ".cjs", ".py", ".sh"]
        .iter()
        .find_map(|ending| file.strip_suffix(ending))
        .unwrap_or(file)
}

fn runs_others(program: &str) -> bool {
    const RUNNERS: [&str; 17] = [
        "node", "nodejs", "bun", "bunx", "deno", "npx", "npm", "pnpm", "pnpx", "yarn", "python", "python3",
        "uv", "uvx", "pipx", "env", "nice",
    ];
    let file = stem(program);
    RUNNERS.contains(&file) || file.starts_with("python3.")
}
