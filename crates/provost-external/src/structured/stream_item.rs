//! The events of a program's stream, independent of its format.

use provost_event::{MicroDollars, TerminalAsk, Usage};

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// The program's id of its session, to resume it by.
    Session(String),
    /// The session to resume doesn't exist; a new one has begun. The reason.
    Lost(String),
    /// The program can't work at all. The reason.
    Unfit(String),
    /// It has taken the prompt and works.
    Begun,
    /// A piece of its answer.
    Text(String),
    /// The next piece belongs to another message.
    Break,
    /// It asks for consent.
    Ask(TerminalAsk),
    /// It has withdrawn the question with this fingerprint.
    Withdrawn(String),
    /// The model it uses.
    Model(String),
    /// Its usage.
    Used(Used),
    /// The cost that it reports.
    Cost(Cost),
    /// A failure, after which it continues.
    Error(String),
    /// It is done with the prompt.
    Done(Done),
}

/// Usage, by the period that the figure covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    /// One of several model calls.
    Call(Usage),
    /// The present prompt.
    Prompt(Usage),
    /// The whole session.
    Session(Usage),
}

/// Cost, by the period that the figure covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// This process.
    Process(MicroDollars),
    /// The whole session.
    Session(MicroDollars),
}

/// How it is done with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// Completed.
    Whole,
    /// Stopped early, by an interrupt or a limit of its own. The reason.
    Short(String),
    /// Failed. The reason.
    Failed(String),
}

/// The result of parsing a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedLine {
    /// Its events, in order.
    pub(super) said: Vec<StreamItem>,
    /// The lines to reply with.
    pub(super) replies: Vec<String>,
    /// The line isn't of this format.
    pub(super) is_nonsense: bool,
}

impl ParsedLine {
    pub(super) fn malformed() -> Self {
        Self { is_nonsense: true, ..Self::default() }
    }
}

impl FromIterator<StreamItem> for ParsedLine {
    fn from_iter<I: IntoIterator<Item = StreamItem>>(said: I) -> Self {
        Self { said: said.into_iter().collect(), ..Self::default() }
    }
}

impl From<StreamItem> for ParsedLine {
    fn from(said: StreamItem) -> Self {
        std::iter::once(said).collect()
    }
}
