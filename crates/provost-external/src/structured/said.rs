//! What a program's stream says, whatever it is written in.

use provost_event::{MicroDollars, TerminalAsk, Usage};

/// One thing that a stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Its name for the session; by that it can be taken up again.
    Session(String),
    /// The session that was to be taken up isn't there; another has begun. Why.
    Lost(String),
    /// It won't work at all. Why.
    Unfit(String),
    /// It has taken the prompt and works.
    Begun,
    /// A piece of its answer.
    Text(String),
    /// The next piece belongs to another message.
    Break,
    /// It asks for consent.
    Ask(TerminalAsk),
    /// It no longer asks what has this fingerprint.
    Withdrawn(String),
    /// The model that answers.
    Model(String),
    /// What it has consumed.
    Used(Used),
    /// What it says that cost.
    Cost(Cost),
    /// A failure, after which it goes on.
    Error(String),
    /// It is done with the prompt.
    Done(Done),
}

/// What was consumed, by what the figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    /// One call of its model, beside others.
    Call(Usage),
    /// All of the present prompt.
    Prompt(Usage),
    /// All since the session's beginning.
    Session(Usage),
}

/// Money, by what the figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// All that this process has spent.
    Process(MicroDollars),
    /// All since the session's beginning.
    Session(MicroDollars),
}

/// How it is done with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// It did what it could.
    Whole,
    /// It was stopped before, or stopped at a limit of its own. Which.
    Short(String),
    /// It failed. Why.
    Failed(String),
}

/// What a line comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// What it says, in order.
    pub(super) said: Vec<Said>,
    /// Lines that answer it.
    pub(super) replies: Vec<String>,
    /// It isn't of this format.
    pub(super) is_nonsense: bool,
}

impl Heard {
    pub(super) fn nonsense() -> Self {
        Self { is_nonsense: true, ..Self::default() }
    }
}

impl FromIterator<Said> for Heard {
    fn from_iter<I: IntoIterator<Item = Said>>(said: I) -> Self {
        Self { said: said.into_iter().collect(), ..Self::default() }
    }
}

impl From<Said> for Heard {
    fn from(said: Said) -> Self {
        std::iter::once(said).collect()
    }
}
