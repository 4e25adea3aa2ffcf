//! Knowledge of a program's screens, as data (TOML).
//!
//! ```toml
//! name = "codex"
//! kind = "agent"                 # or "plain": the kernel shows that it reads, the rules show what
//! inherits = "generic"           # the profile whose rules are tried after its own
//! version = 1                    # of the profile
//! tested = "0.171.0"             # the program's version that it was last checked with
//! settle_ms = 60                 # a frame counts after this long without output
//! submit_ms = 6000               # a turn counts as done after this long without a working mark
//! stalled_ms = 120000            # a working mark that doesn't change for this long
//!
//! [program]
//! commands = ["codex", "@openai/codex"]   # a file's name, or a piece of its path, also of a script's
//! screen = ['^>_ OpenAI Codex']           # rows that identify it on a screen
//! relays = ['^\[\S+\] \d+:']              # last rows of programs that show another program's screen
//!
//! [start]
//! unattended = ["--ask-for-approval", "untrusted"]
//! private = { AGENT_HUB = "hub.json" }   # variables that name a file or (with `/` at its end) a folder of each run's own
//! [resume]
//! last = ["resume", "--last"]
//! session = ["resume", "{session}"]
//! [[channels]]                   # how it is driven, in this order of preference
//! format = "codex-app-server"    # or "acp", "stream-json", "terminal"; the terminal is the last one if it isn't named
//! args = ["app-server"]
//! command_titles = false         # acp: the title of a call that runs a command is that command
//! [channels.options]             # if present: its own options that have an effect there; with others, the next channel is taken
//! "--model" = ["-c", "model={value}"]
//! [gateway]                      # how it is pointed to the model gateway
//! family = "openai"              # or "anthropic", "gemini", "any"
//! args = ["-c", 'model_provider="provost"']   # before its own; {url}, {token} and {folder} are filled in
//! env = { OPENAI_API_KEY = "{token}" }
//! files = { "settings.json" = "…" }   # written into {folder} before it starts
//! [sandbox]                      # what it needs in a sandbox of Provost's
//! args = ["-c", 'sandbox_mode="danger-full-access"']   # before its own; its own sandbox doesn't nest
//! env = { GEMINI_SANDBOX = "false" }
//! folders = { CODEX_HOME = "codex" }   # private where its calls go through the gateway: variable and name
//! [keys]
//! submit = "\r"
//! interrupt = "\u001b"
//! approve_once = "y"             # if a question's options couldn't be parsed
//! approve_always = "p"
//! deny = "\u001b"
//! [composer]
//! waits = ['^Waiting for startup']   # rows that say that a returned prompt waits until the program can take it
//! line_mode = false              # the terminal may be in line mode while it reads keys: its modes don't tell where the program is
//! [said]
//! message = '^• '                # the first row of the agent's messages
//! end = '^Tokens: '              # a row that only a complete answer leaves behind it
//! skip = ['^⚠ ']                 # rows that are no part of what it says
//! [[quit]]
//! keys = "/quit"
//! wait_ms = 300
//!
//! [[rules]]
//! id = "approval.command"
//! event = "approval"             # approval question auth waiting password working idle error
//! ask = "command"                # command edit read network tool trust other
//! region = "end"                 # where its last pattern has to match, see below
//! end = 1                        # end: how many of the last rows that aren't blank
//! rows = ['^Would you like to run', '^\W*1\. ', 'enter to confirm']
//! span = 30                      # from the first row matched to the last, at most
//! unless = ['^• Working']        # no row of the region, nor between those matched, may match
//! gate = "none"                  # required kernel reading: none, keys (reads or may), read, hidden, raw, drawn
//! subject = '^\$ (.+)'           # its subject, see below
//! subject_until = '^\W*1\. '     # the row below that
//! question = '\?$'               # the question's row; by default the first row matched
//! options = "menu"               # parsed from the screen: menu (rows), letters ([y/N]), buttons (<Yes>  <No>); or given as [[rules.choices]]
//! input = "text"                 # or "choice": a key or an item is read, so that no prompt is typed there
//! stable_ms = 100
//! confidence = 90
//! ```
//!
//! Patterns match rows without frame lines and blanks at both ends. `rows` match in this order, with gaps allowed;
//! the last one has to match in the region:
//! - `cursor`: the text left of the cursor on its line (wrapped lines joined), if the rest of the line is blank;
//! - `row`: the whole row of the cursor;
//! - `end`: one of the last `end` rows that aren't blank;
//! - `above`: any row between the last prompt's and the cursor's; only for `error`;
//! - `status`: one of the last two rows, on the alternate screen, if it is new; only for `error`;
//! - `last`: one of the last rows of a program that ends with a failure; only for `error`.
//!
//! Permissions are decided by a question's subject: it is one complete row, or absent, and then an approver
//! decides. `subject` alone is the lowest row that matches; its first group that takes part in the match is the text. With `subject_until` it is
//! where the text begins: a row with a group, or several patterns in order, with the text beginning below the last
//! of them. The text ends at the last row that matches `subject_until`, or, if that is several patterns in order,
//! at the first of these rows. Below a text without `subject_until` stands only what the rule's `rows` match, each once, up
//! to the menu: anything else may be the rest of a text with a line break. `subject_one_line = true` says that the program's
//! texts have none: then a row of a file's changes may follow.

mod answer;
mod boxed;
mod channel;
mod gateway;
mod options;
mod parse;
mod rule;
mod shipped;
mod subject;

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;

pub use answer::{Keys, QuitStep};
pub use boxed::SandboxedStart;
pub use channel::{ProgramChannel, StreamFormat, StructuredChannel};
pub use gateway::{GatewayFamily, GatewayRoute, RouteValues};
pub use options::consents_plainly;
pub(crate) use rule::{Gate, Match, Region, Rule, RuleEvent, bare};
pub use subject::is_seen_whole;

/// The profile of a program.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The kind of program.
    pub kind: ProgramKind,
    /// The version of the profile, from 1.
    pub version: u32,
    /// The program's version that it was last checked with; empty if that isn't known.
    pub tested: String,
    /// Arguments to run it unattended.
    pub unattended: Vec<String>,
    /// Variables that name a file, or with `/` at its end a folder, of each run's own: how sessions find a server that they
    /// would otherwise share. What such a server runs for an agent would be outside of the run.
    pub private: BTreeMap<String, String>,
    /// How to resume its sessions.
    pub resume: Resume,
    /// How it is driven, in the order of preference; the terminal is among them.
    pub channels: Vec<ProgramChannel>,
    /// How it is pointed to the model gateway, if it can be.
    pub gateway: Option<GatewayRoute>,
    /// What it needs in a sandbox of Provost's.
    pub sandbox: SandboxedStart,
    /// The keys to type.
    pub keys: Keys,
    /// How to ask it to end, in order.
    pub quit: Vec<QuitStep>,
    /// The profile's text.
    pub source: String,
    pub(crate) settle_ms: u64,
    pub(crate) submit_ms: u64,
    pub(crate) stalled_ms: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) relays: Vec<Regex>,
    /// The beginning of the agent's messages.
    pub(crate) message: Option<Regex>,
    /// A row that only a complete answer leaves behind it.
    pub(crate) message_end: Option<Regex>,
    /// Rows that are no part of what it says.
    skipped: Vec<Regex>,
    /// Rows that say that a returned prompt waits.
    waits: Vec<Regex>,
    /// Whether the terminal may be in line mode while it reads keys.
    pub(crate) may_be_in_line_mode: bool,
    commands: Vec<String>,
    screen: Vec<Regex>,
}

/// The kind of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// It has a composer, works by itself, and asks questions.
    Agent,
    /// Any other program.
    Plain,
}

/// Arguments that resume a session; empty if it can't.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resume {
    /// Resume the last session.
    pub last: Vec<String>,
    /// Resume the session with the id `{session}`.
    pub session: Vec<String>,
}

/// Why a text is no valid profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// It isn't TOML, or has unknown fields.
    #[error("profile `{name}`: {message}")]
    Malformed {
        /// The profile's name.
        name: String,
        /// The error, with the line.
        message: String,
    },
    /// An invalid rule.
    #[error("profile `{name}`, line {line}: rule `{rule}`: {message}")]
    Rule {
        /// The profile's name.
        name: String,
        /// The line on which the rule begins, from 1.
        line: usize,
        /// The rule's id.
        rule: String,
        /// What is wrong.
        message: String,
    },
    /// It inherits from a profile that isn't shipped.
    #[error("profile `{name}` inherits from `{inherits}`, which isn't one of: {shipped}")]
    UnknownParent {
        /// The profile's name.
        name: String,
        /// The parent's name.
        inherits: String,
        /// The shipped profiles.
        shipped: String,
    },
}

impl Profile {
    /// Parses a profile; `name` is used in errors, and as its name if the text has none.
    ///
    /// # Errors
    /// If the text is no valid profile.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        parse::parse(name, text)
    }

    /// The profiles shipped with Provost, the generic one last.
    #[must_use]
    pub fn shipped() -> Vec<Self> {
        shipped::NAMES.iter().filter_map(|name| Self::named(name)).collect()
    }

    /// The shipped profile with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        shipped::profile(name).cloned()
    }

    /// The shipped profile for this command; the generic one if there is none.
    #[must_use]
    pub fn for_command(program: &str, args: &[String]) -> Self {
        let known = shipped::known(|commands| is_one_of(commands, program, args));
        known.cloned().unwrap_or_else(Self::generic)
    }

    /// The text behind the mark of a row that begins a message of the agent; `None` if it begins none.
    #[must_use]
    pub fn message_of<'a>(&self, row: &'a str) -> Option<&'a str> {
        let row = rule::bare(row);
        let mark = self.message.as_ref()?.find(row)?;
        row.get(mark.end()..)
    }

    /// Whether a row is no part of what the program says: a hint, a mark, a line of its status.
    #[must_use]
    pub fn is_no_message(&self, row: &str) -> bool {
        let row = rule::bare(row);
        let is_mark = |rule: &Rule| {
            !rule.is_inherited && matches!(rule.event, RuleEvent::Working) && rule.anchor.is_match(row)
        };
        self.skipped.iter().any(|pattern| pattern.is_match(row)) || self.rules.iter().any(is_mark)
    }

    /// Whether a row says that a prompt waits in the composer until the program can take it.
    #[must_use]
    pub fn says_prompt_waits(&self, row: &str) -> bool {
        let row = rule::bare(row);
        self.waits.iter().any(|pattern| pattern.is_match(row))
    }

    /// Whether it is for this command: by the program's file name or path, or by those of the script or package
    /// that an interpreter or a package runner (node, python, npx, uvx, env and similar) is given.
    #[must_use]
    pub fn is_for(&self, program: &str, args: &[String]) -> bool {
        is_one_of(&self.commands, program, args)
    }

    /// Its structured streams, in the order of preference.
    pub fn streams(&self) -> impl Iterator<Item = &StructuredChannel> {
        self.channels.iter().filter_map(|channel| match channel {
            ProgramChannel::Stream(stream) => Some(stream),
            ProgramChannel::Terminal => None,
        })
    }

    /// Where the program's own arguments begin in a command line, behind those of what runs it.
    #[must_use]
    pub fn own_args_from(&self, program: &str, args: &[String]) -> usize {
        if self.is_for(program, &[]) {
            return 0;
        }
        args.iter().position(|arg| knows(&self.commands, arg)).map_or(0, |place| place + 1)
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
            version: 1,
            tested: String::new(),
            message: None,
            message_end: None,
            skipped: Vec::new(),
            waits: Vec::new(),
            may_be_in_line_mode: false,
            unattended: Vec::new(),
            private: BTreeMap::new(),
            resume: Resume::default(),
            channels: vec![ProgramChannel::Terminal],
            gateway: None,
            sandbox: SandboxedStart::default(),
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

/// A file's name without its folder, version (`codex@1.2`) and the extensions of scripts and programs.
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
