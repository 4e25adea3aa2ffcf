//! What a structured stream is written in. Readers are pure: lines in, what they say and what answers them out.

use provost_terminal::{StreamFormat, StructuredChannel};

use super::acp::Acp;
use super::codex::CodexExec;
use super::said::Heard;
use super::stream_json::StreamJson;

/// What a reader is told of the program that was started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening<'a> {
    /// The folder that it works in.
    pub(super) folder: &'a str,
    /// Its name for the session that is to be taken up again.
    pub(super) session: Option<&'a str>,
    /// Makes names of questions differ from those of earlier programs.
    pub(super) pid: u32,
}

/// Speaks with one program.
pub(super) trait Format: Send + Sync {
    /// The lines to begin with.
    fn open(&mut self) -> Vec<String>;

    /// Whether it can be given a prompt.
    fn is_ready(&self) -> bool;

    /// What `line` comes to.
    fn read(&mut self, line: &str) -> Heard;

    /// The lines that give it a prompt.
    fn prompt(&mut self, text: &str) -> Vec<String>;

    /// Consents, this time, to what is asked under this name.
    fn approve(&mut self, fingerprint: &str) -> Result<Reply, NoReply>;

    /// Refuses it.
    fn refuse(&mut self, fingerprint: &str, reason: &str) -> Result<Reply, NoReply>;

    /// The lines that stop what it does; none where only its end does that.
    fn interrupt(&mut self) -> Vec<String>;
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// The line that gives it.
    pub(super) line: String,
    /// What was chosen, in the program's words.
    pub(super) choice: String,
}

/// Why a question can't be answered so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoReply {
    /// It isn't asked, or no longer.
    NotAsked,
    /// The program offers no consent for this one time.
    NotOffered,
}

/// How long a process of the program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// For one prompt, which is all of its input.
    Prompt,
    /// Until it is ended.
    Session,
}

/// How long a process serves that writes this format.
pub(super) const fn life(format: StreamFormat) -> Life {
    match format {
        StreamFormat::CodexExec => Life::Prompt,
        StreamFormat::Acp | StreamFormat::StreamJson => Life::Session,
    }
}

/// Whether the program asks for consent by this stream: where it doesn't, it decides by itself, and neither permissions
/// nor hooks nor people see what it is about to do.
pub(super) fn asks(channel: &StructuredChannel) -> bool {
    match channel.format {
        StreamFormat::CodexExec => false,
        StreamFormat::Acp => true,
        StreamFormat::StreamJson => {
            channel.args.iter().any(|arg| arg.starts_with("--permission-prompt-tool"))
        }
    }
}

/// The arguments that make the program speak, and take up `session` again where that is done by arguments.
pub(super) fn arguments(channel: &StructuredChannel, session: Option<&str>) -> Vec<String> {
    let more: &[&str] = match (channel.format, session) {
        // The prompt comes by standard input: an argument has a limit, and may look like an option.
        (StreamFormat::CodexExec, None) => &["-"],
        (StreamFormat::CodexExec, Some(session)) => &["resume", session, "-"],
        (StreamFormat::StreamJson, Some(session)) => &["--resume", session],
        (StreamFormat::StreamJson, None) | (StreamFormat::Acp, _) => &[],
    };
    channel.args.iter().cloned().chain(more.iter().map(|arg| (*arg).to_owned())).collect()
}

/// A reader of this format.
pub(super) fn reader(format: StreamFormat, opening: Opening<'_>) -> Box<dyn Format> {
    match format {
        StreamFormat::CodexExec => Box::new(CodexExec::new(opening)),
        StreamFormat::Acp => Box::new(Acp::new(opening)),
        StreamFormat::StreamJson => Box::new(StreamJson::new()),
    }
}
