//! A program at a terminal: its policy, and the events there.

mod activity;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{Metering, Outcome, Seq};
pub use activity::{ProgramActivity, ProgramCall, ProgramChange};

/// An external agent: a program that takes the place of a model and Provost's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalPolicy {
    /// The program: a name in `PATH`, or a path.
    pub program: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that it gets besides the default ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of Provost's own environment that it gets as well, by name: their values appear in no log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<String>,
    /// The profile that interprets its screens.
    pub profile: String,
    /// The channel to it.
    #[serde(default)]
    pub channel: Channel,
    /// Its window while no terminal is attached.
    #[serde(default)]
    pub size: WindowSize,
    /// Whether the goal is typed in as its first prompt; otherwise its arguments or a person give it its task.
    pub submits_goal: bool,
    /// Whether a person works at it: then the session ends with the program, not with a prompt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attended: bool,
    /// Whether its terminal isn't recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unrecorded: bool,
    /// Maximum time that it waits for input or shows no activity before the session is suspended; unlimited if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How its usage becomes known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metering: Metering,
}

impl ExternalPolicy {
    /// This program without arguments, with the screens of this profile, driven unattended: its goal is typed in, and
    /// nothing limits how long it waits.
    #[must_use]
    pub fn new(program: impl Into<String>, profile: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            passes: Vec::new(),
            profile: profile.into(),
            channel: Channel::default(),
            size: WindowSize::default(),
            submits_goal: true,
            attended: false,
            unrecorded: false,
            idle_ms: None,
            metering: Metering::default(),
        }
    }
}

/// The channel to a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Its structured stream if its profile declares one and the program supports it, otherwise the terminal.
    #[default]
    Auto,
    /// A pseudo-terminal.
    Terminal,
    /// Its structured stream; an error if its profile declares none.
    Structured,
    /// The standard streams of the command that runs it, where that passes them on; otherwise a pseudo-terminal.
    Streams,
}

/// A terminal's window size in character cells; neither dimension is ever 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// What the program at a terminal does, as far as there is evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalState {
    /// It was started, and there is no evidence of more yet.
    #[default]
    Starting,
    /// It is busy.
    Working,
    /// An agent's composer is ready for a prompt.
    Idle,
    /// It waits for consent, an answer to a question of its own, or a login.
    Blocked(Blocker),
    /// It reads input: a prompt, a field, a menu, a pager.
    WaitingForInput,
    /// It reads a secret.
    Password,
    /// It claims to work, and has shown no activity for a long time.
    Stalled,
    /// It is about to end.
    Exiting,
    /// It has ended.
    Exited,
    /// Unknown.
    Unknown,
}

/// What a blocked program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Consent to an action.
    Approval,
    /// An answer to a question.
    Question,
    /// A login.
    Auth,
}

/// The kind of action that needs consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Running a command.
    Command,
    /// Creating or changing a file.
    Edit,
    /// Creating or changing several files: the subject has a path a line.
    Edits,
    /// Reading a file.
    Read,
    /// Fetching from the network.
    Network,
    /// Calling a tool of the program, or of a server that it uses.
    Tool,
    /// Trusting a folder.
    Trust,
    /// Anything else, including what couldn't be read from the screen.
    Other,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskOption {
    /// Its label on the screen.
    pub label: String,
    /// The keys that choose it, as sent (`y`, `\r`, `\u{1b}[B`).
    pub keys: String,
    /// Its meaning.
    pub meaning: OptionMeaning,
}

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionMeaning {
    /// Yes, this time.
    ApproveOnce,
    /// Yes, and don't ask about similar actions again.
    ApproveAlways,
    /// No.
    Deny,
    /// Something else.
    Other,
}

/// A program's request for consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalAsk {
    /// Identifies the question, and the part of the screen that an answer is bound to: the same words asked again
    /// have another one.
    pub fingerprint: String,
    /// The kind of action.
    pub kind: AskKind,
    /// The question, as on the screen.
    pub question: String,
    /// The command, path, address or tool that it is about; absent if that couldn't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The options, in the screen's order.
    pub options: Vec<AskOption>,
    /// The option that the Enter key chooses, if any.
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

/// What has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionScope {
    /// The last prompt of an agent.
    Turn,
    /// The program.
    Process,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: Provost itself wasn't running.
    Unseen,
}

impl Exit {
    /// Whether it indicates success.
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
            Self::Unseen => f.write_str("unseen"),
        }
    }
}

/// An event at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalEvent {
    /// The program was started.
    Started {
        /// The command line.
        command: Vec<String>,
        /// Its process id.
        pid: u32,
        /// The channel to it.
        channel: Channel,
        /// The path of its recording; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recording: Option<PathBuf>,
    },
    /// Its state changed.
    State(TerminalState),
    /// It asks for consent.
    ApprovalRequest(TerminalAsk),
    /// It reads input.
    WaitingForInput {
        /// Its prompt line.
        prompt: String,
    },
    /// It reads a secret.
    PasswordPrompt {
        /// Its prompt line.
        prompt: String,
    },
    /// An error became visible.
    Error {
        /// The line with the error.
        line: String,
    },
    /// Something completed.
    Completion {
        /// What completed.
        scope: CompletionScope,
        /// Whether it succeeded, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        succeeded: Option<bool>,
    },
    /// An agent's composer is ready.
    Idle,
    /// The program sent a notification.
    Notification {
        /// Its text; empty for a bell.
        text: String,
    },
    /// The program reports what it did or plans to do.
    Activity(ProgramActivity),
    /// A prompt was typed in and accepted.
    Submitted {
        /// The prompt.
        text: String,
        /// The last entry whose message it includes.
        through: Seq,
    },
    /// A question was answered, and the answer took effect.
    Answered {
        /// The question.
        fingerprint: String,
        /// The chosen option, as on the screen.
        choice: String,
    },
    /// A terminal was attached.
    Attached {
        /// By whom.
        by: String,
    },
    /// It was detached.
    Detached {
        /// By whom.
        by: String,
    },
    /// The program has ended. Its remaining processes are being terminated; before its session is suspended, none
    /// is left.
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
            Self::Activity(activity) => write!(f, "{activity}"),
            Self::Submitted { text, .. } => write!(f, "was told: {text}"),
            Self::Answered { choice, .. } => write!(f, "was answered: {choice}"),
            Self::Attached { by } => write!(f, "{by} is attached"),
            Self::Detached { by } => write!(f, "{by} is no longer attached"),
            Self::Exited { exit } => write!(f, "ended ({exit})"),
        }
    }
}

/// The source of an observation, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// The process ended.
    Exit,
    /// Input that Provost typed.
    Input,
    /// The terminal's modes, and the kernel's view of its processes.
    Kernel,
    /// A report by the program.
    Signal,
    /// A rule of the profile matched the screen.
    Screen,
    /// Nothing changed for a while; never sufficient alone.
    Quiet,
}

/// A piece of evidence for an observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalEvidence {
    /// Its source.
    pub source: EvidenceSource,
    /// A short description (`rule approval.command`, `OSC 7501 state=blocked`, `echo off`).
    pub what: String,
}

/// An entry: an event at an external agent's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalNoted {
    /// The event.
    pub event: TerminalEvent,
    /// Its confidence, in percent.
    pub confidence: u8,
    /// Its evidence, the deciding piece first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<TerminalEvidence>,
}

impl TerminalNoted {
    /// An event that Provost caused or observed with certainty.
    #[must_use]
    pub const fn certain(event: TerminalEvent) -> Self {
        Self { event, confidence: 100, evidence: Vec::new() }
    }
}

/// An entry: the program at the session's terminal is about to be terminated because the session is about to be
/// suspended or end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalEnding {
    /// The session's coming outcome.
    pub outcome: Outcome,
}
