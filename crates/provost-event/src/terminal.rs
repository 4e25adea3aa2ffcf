//! A program at a terminal: what it is and may, and what was noticed there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Outcome, Seq};

/// Somebody else's program that an agent consists of, instead of a model and tools of Provost's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalPolicy {
    /// The program, as it is found in `PATH`, or its path.
    pub program: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that it gets besides those that any child gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of Provost's own environment that it gets as well, by name: what they hold stands in no log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<String>,
    /// The profile that says what its screens mean.
    pub profile: String,
    /// By what it is spoken to.
    #[serde(default)]
    pub channel: Channel,
    /// Its window, when nobody is attached.
    #[serde(default)]
    pub size: WindowSize,
    /// Whether the goal is typed in as its first prompt; else its arguments say what it shall do, or a person does.
    pub submits_goal: bool,
    /// Whether a person works at it: it is over when the program ends, not when a prompt is done with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// Whether no recording is made of its terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
    /// How long it may wait for somebody, or show no sign of life, before the session rests; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// By what a program is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Its structured stream where its profile names one and the program has it, else the terminal.
    #[default]
    Auto,
    /// A pseudo-terminal.
    Terminal,
    /// Its structured stream; it is an error if its profile names none.
    Structured,
}

/// A terminal's window in character cells; neither side is ever 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowSize {
    /// Rows, from 1.
    pub rows: u16,
    /// Columns, from 1.
    pub cols: u16,
}

impl WindowSize {
    /// A window of at least one cell.
    #[must_use]
    pub fn new(rows: u16, cols: u16) -> Self {
        Self { rows: rows.max(1), cols: cols.max(1) }
    }

    /// The largest window that fits both.
    #[must_use]
    pub fn smallest(self, other: Self) -> Self {
        Self::new(self.rows.min(other.rows), self.cols.min(other.cols))
    }
}

impl Default for WindowSize {
    fn default() -> Self {
        Self { rows: 40, cols: 120 }
    }
}

/// What the program at a terminal does, as far as there is evidence for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalState {
    /// It was started and has shown nothing yet that says more.
    #[default]
    Starting,
    /// It is busy.
    Working,
    /// An agent's composer is ready for a prompt.
    Idle,
    /// It asks for consent, an answer to a question of its own, or a login, and goes on only then.
    Blocked(Blocker),
    /// It reads what somebody is to type: a prompt, a field, a menu, a pager.
    WaitingForInput,
    /// It reads a secret.
    Password,
    /// It says that it works, and has shown no sign of life for long.
    Stalled,
    /// It is about to end.
    Exiting,
    /// It has ended.
    Exited,
    /// Nothing says what it does.
    Unknown,
}

/// What a blocked program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Consent to an action.
    Approval,
    /// An answer to a question.
    Question,
    /// A login.
    Auth,
}

/// What kind of action consent is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// A command is to be run.
    Command,
    /// A file is to be made or changed.
    Edit,
    /// A file is to be read.
    Read,
    /// Something is to be fetched from the network.
    Network,
    /// A tool of the program's own, or of a server that it talks to, is to be called.
    Tool,
    /// A folder is to be trusted.
    Trust,
    /// Anything else, also what couldn't be read from the screen.
    Other,
}

/// One way to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOption {
    /// As the screen has it.
    pub label: String,
    /// The keys that choose it, as they are sent (`y`, `\r`, `\u{1b}[B`).
    pub keys: String,
    /// What choosing it means.
    pub meaning: OptionMeaning,
}

/// What choosing an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionMeaning {
    /// Yes, this time.
    ApproveOnce,
    /// Yes, and don't ask about its like again.
    ApproveAlways,
    /// No.
    Deny,
    /// Something else.
    Other,
}

/// A program's question for consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalAsk {
    /// Names the question, and what of the screen an answer is bound to: the same words asked once more have another.
    pub fingerprint: String,
    /// What for.
    pub kind: AskKind,
    /// The question, in the screen's words.
    pub question: String,
    /// The command, path, address or tool that it is about; absent where that couldn't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The ways to answer, in the screen's order.
    pub options: Vec<AskOption>,
    /// The option that a plain return chooses, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<usize>,
}

impl TerminalAsk {
    /// The first option with this meaning.
    #[must_use]
    pub fn option(&self, meaning: OptionMeaning) -> Option<&AskOption> {
        self.options.iter().find(|option| option.meaning == meaning)
    }
}

/// What has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionScope {
    /// What an agent was last asked for.
    Turn,
    /// The program.
    Process,
}

/// How a process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this.
    Code(i32),
    /// It was ended by this signal's number.
    Signal(i32),
    /// Nobody saw it end: Provost itself was gone.
    Unseen,
}

impl Exit {
    /// Whether it says that all went well.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unseen => f.write_str("nobody saw how"),
        }
    }
}

/// Something that happened at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalEvent {
    /// The program was started.
    Started {
        /// As it was called.
        command: Vec<String>,
        /// Its process number.
        pid: u32,
        /// By what it is spoken to.
        channel: Channel,
        /// Where its recording is; absent where none is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recording: Option<PathBuf>,
    },
    /// It does something else than before.
    State(TerminalState),
    /// It asks for consent.
    ApprovalRequest(TerminalAsk),
    /// It reads what somebody is to type.
    WaitingForInput {
        /// The line that it prompts with.
        prompt: String,
    },
    /// It reads a secret.
    PasswordPrompt {
        /// The line that it prompts with.
        prompt: String,
    },
    /// A failure became visible.
    Error {
        /// The line that says so.
        line: String,
    },
    /// Something came to its end.
    Completion {
        /// What.
        scope: CompletionScope,
        /// Whether it went well, as far as known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        succeeded: Option<bool>,
    },
    /// An agent's composer is ready.
    Idle,
    /// The program wants somebody's attention.
    Notification {
        /// In its words; empty for a bell.
        text: String,
    },
    /// A prompt was typed in and taken.
    Submitted {
        /// Which.
        text: String,
        /// The last entry whose words it has heard by that.
        through: Seq,
    },
    /// A question was answered, and the answer has taken effect.
    Answered {
        /// Which question.
        fingerprint: String,
        /// The option chosen, in the screen's words.
        choice: String,
    },
    /// Somebody's terminal is attached.
    Attached {
        /// Who.
        by: String,
    },
    /// It no longer is.
    Detached {
        /// Who.
        by: String,
    },
    /// The program has ended. What it left running is being ended; before its session rests, nothing is left.
    Exited {
        /// How.
        exit: Exit,
    },
}

impl std::fmt::Display for TerminalState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Blocked(Blocker::Approval) => "blocked (approval)",
            Self::Blocked(Blocker::Question) => "blocked (question)",
            Self::Blocked(Blocker::Auth) => "blocked (login)",
            Self::WaitingForInput => "waiting for input",
            Self::Password => "asking for a password",
            Self::Stalled => "stalled",
            Self::Exiting => "exiting",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        })
    }
}

impl std::fmt::Display for TerminalEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Started { command, pid, .. } => {
                write!(f, "started as process {pid}: {}", command.join(" "))
            }
            Self::State(state) => write!(f, "{state}"),
            Self::ApprovalRequest(ask) => {
                write!(f, "asks: {}", ask.subject.as_ref().unwrap_or(&ask.question))
            }
            Self::WaitingForInput { prompt } => write!(f, "waits for input: {prompt}"),
            Self::PasswordPrompt { prompt } => write!(f, "asks for a password: {prompt}"),
            Self::Error { line } => write!(f, "error: {line}"),
            Self::Completion { scope: CompletionScope::Turn, .. } => {
                f.write_str("done with what it was asked for")
            }
            Self::Completion { scope: CompletionScope::Process, .. } => f.write_str("the program is done"),
            Self::Idle => f.write_str("ready for a prompt"),
            Self::Notification { text } if text.is_empty() => f.write_str("rings"),
            Self::Notification { text } => write!(f, "says: {text}"),
            Self::Submitted { text, .. } => write!(f, "was told: {text}"),
            Self::Answered { choice, .. } => write!(f, "was answered: {choice}"),
            Self::Attached { by } => write!(f, "{by} is attached"),
            Self::Detached { by } => write!(f, "{by} is no longer attached"),
            Self::Exited { exit } => write!(f, "ended ({exit})"),
        }
    }
}

/// What an observation was made from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// The process has ended.
    Exit,
    /// What Provost itself typed.
    Input,
    /// The terminal's modes and what the kernel says of the processes at it.
    Kernel,
    /// What the program reports of itself.
    Signal,
    /// A rule of the profile matched the screen.
    Screen,
    /// Nothing changed for a while; never by itself.
    Quiet,
}

/// One reason for an observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalEvidence {
    /// Where it comes from.
    pub source: EvidenceSource,
    /// What it is, in a few words (`rule approval.command`, `OSC 7501 state=blocked`, `echo off`).
    pub what: String,
}

/// An entry: something happened at an external agent's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalNoted {
    /// What.
    pub event: TerminalEvent,
    /// How sure that is, in hundredths.
    pub confidence: u8,
    /// What it was made from, the deciding one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<TerminalEvidence>,
}

impl TerminalNoted {
    /// Something that Provost did or saw for certain.
    #[must_use]
    pub const fn certain(event: TerminalEvent) -> Self {
        Self { event, confidence: 100, evidence: Vec::new() }
    }
}

/// An entry: the program at the session's terminal is about to be ended, because the session is about to rest or end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalEnding {
    /// What the session shall come to.
    pub outcome: Outcome,
}
