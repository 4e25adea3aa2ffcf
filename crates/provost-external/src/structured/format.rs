//! The formats of structured streams. Readers are pure: lines in, events and replies out.

use provost_terminal::{StreamFormat, StructuredChannel};

use super::acp::Acp;
use super::app_server::AppServer;
use super::stream_item::ParsedLine;
use super::stream_json::StreamJson;

/// The context of a reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening<'a> {
    /// The program's working folder.
    pub(super) folder: &'a str,
    /// The program's id of the session to resume.
    pub(super) session: Option<&'a str>,
    /// Distinguishes question ids from those of earlier processes.
    pub(super) pid: u32,
    /// Whether the title of a call that runs a command is that command.
    pub(super) command_titles: bool,
}

/// The reader of one program's stream.
pub(super) trait Format: Send + Sync {
    /// The lines to send first.
    fn open(&mut self) -> Vec<String>;

    /// Whether it accepts a prompt.
    fn is_ready(&self) -> bool;

    /// Parses `line`.
    fn read(&mut self, line: &str) -> ParsedLine;

    /// The lines that send a prompt.
    fn prompt(&mut self, text: &str) -> Vec<String>;

    /// Consents, for this time, to the question with this fingerprint.
    fn approve(&mut self, fingerprint: &str) -> Result<Reply, NoReply>;

    /// Refuses that question.
    fn refuse(&mut self, fingerprint: &str, reason: &str) -> Result<Reply, NoReply>;

    /// The lines that interrupt the work; none if only ending the program does that.
    fn interrupt(&mut self) -> Vec<String>;
}

/// A reply to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// The lines to send.
    pub(super) lines: Vec<String>,
    /// The chosen option, in the program's words.
    pub(super) choice: String,
    /// Whether they give the program's model the reason of a refusal, too.
    pub(super) tells_reason: bool,
}

impl Reply {
    /// One line that says nothing but the choice.
    pub(super) fn new(line: String, choice: impl Into<String>) -> Self {
        Self { lines: vec![line], choice: choice.into(), tells_reason: false }
    }
}

/// Why a question can't be answered this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoReply {
    /// It isn't asked, or no longer asked.
    NotAsked,
    /// The program offers no consent for one time.
    NotOffered,
}

/// Whether the program asks for consent by this stream: if not, it decides by itself, and no permission, hook or
/// approver sees what it is about to do.
pub(super) fn asks(channel: &StructuredChannel) -> bool {
    match channel.format {
        StreamFormat::Acp | StreamFormat::CodexAppServer => true,
        StreamFormat::StreamJson => {
            channel.args.iter().any(|arg| arg.starts_with("--permission-prompt-tool"))
        }
    }
}

/// The arguments that select the format, and resume `session` if the program takes that as an argument.
pub(super) fn arguments(channel: &StructuredChannel, session: Option<&str>) -> Vec<String> {
    let more: &[&str] = match (channel.format, session) {
        (StreamFormat::StreamJson, Some(session)) => &["--resume", session],
        (StreamFormat::StreamJson, None) | (StreamFormat::Acp | StreamFormat::CodexAppServer, _) => &[],
    };
    channel.args.iter().cloned().chain(more.iter().map(|arg| (*arg).to_owned())).collect()
}

/// The reader of this format.
pub(super) fn reader(format: StreamFormat, opening: Opening<'_>) -> Box<dyn Format> {
    match format {
        StreamFormat::Acp => Box::new(Acp::new(opening)),
        StreamFormat::CodexAppServer => Box::new(AppServer::new(opening)),
        StreamFormat::StreamJson => Box::new(StreamJson::new()),
    }
}
