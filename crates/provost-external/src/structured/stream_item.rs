//! The events of a program's stream, independent of its format.

use provost_event::{ErrorClass, MicroDollars, ProgramActivity, TerminalAsk, Usage};

/// Steps of a plan that are kept.
pub(super) const PLAN_ITEMS_MAX: usize = 200;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// The program's id of its session, to resume it by.
    Session(String),
    /// The session to resume doesn't exist; a new one has begun. The reason.
    Lost(String),
    /// The program can't be driven by this format. The reason.
    Unfit(String),
    /// The program can't work before a person has acted, on this channel or another. The reason.
    Locked(String),
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
    /// A remark that is no failure.
    Notice(String),
    /// What it did or plans to do, by its own account.
    Activity(ProgramActivity),
    /// The reason of a refusal didn't reach its model.
    Untold(String),
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
    /// Cut off by a limit of its own or of its model: it isn't done. The reason.
    Cut(String),
    /// Stopped because of a cancel, which a refusal may be, too.
    Cancelled,
    /// Failed, or stopped before it was done.
    Failed(Failing),
}

/// A failure of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failing {
    /// The reason, in its words.
    pub(super) why: String,
    /// What kind of failure it is, if the stream says so beside the words.
    pub(super) class: Option<ErrorClass>,
}

impl Failing {
    /// A failure that only its words describe.
    pub(super) fn said(why: impl Into<String>) -> Self {
        Self { why: why.into(), class: None }
    }

    /// A failure of this class.
    pub(super) fn of(class: ErrorClass, why: impl Into<String>) -> Self {
        Self { why: why.into(), class: Some(class) }
    }
}

/// The class of a provider's answer with this HTTP status.
pub(super) const fn class_of_status(status: u64) -> Option<ErrorClass> {
    match status {
        401 => Some(ErrorClass::Unauthorized),
        402 => Some(ErrorClass::QuotaUsedUp),
        403 => Some(ErrorClass::Forbidden),
        404 => Some(ErrorClass::NotFound),
        429 => Some(ErrorClass::RateLimited),
        529 => Some(ErrorClass::Overloaded),
        500..=599 => Some(ErrorClass::Server),
        400..=499 => Some(ErrorClass::InvalidRequest),
        _ => None,
    }
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

    /// Replies without events.
    pub(super) fn reply(line: String) -> Self {
        Self { replies: vec![line], ..Self::default() }
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
