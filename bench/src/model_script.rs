//! The model server's answers to a conversation, encoded in its address.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;

/// One conversation's answers: first, if it starts agents, an answer that starts all of them; then calls of the
/// tool; then a text. As a part of a path: `CALLS`, `CALLS@EACH_MS`, `AGENT*NUMBER+CALLS`,
/// `AGENT*NUMBER+CALLS@EACH_MS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// The tool that starts an agent, and how many are started at once.
    pub(crate) ask: Option<(String, usize)>,
    /// Answers that call the tool.
    pub(crate) calls: usize,
    /// How long each answer takes to come.
    pub(crate) each_ms: u64,
}

/// What comes next in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// This many agents by this name.
    Agents(&'a str, usize),
    /// A call of the tool.
    Call,
    LastText,
}

impl Script {
    /// What follows `results` results.
    pub(crate) fn next(&self, results: usize) -> Next<'_> {
        let asked = self.ask.as_ref().map_or(0, |(_, number)| *number);
        match &self.ask {
            Some((agent, number)) if results < asked => Next::Agents(agent, *number),
            _ if results < asked + self.calls => Next::Call,
            _ => Next::LastText,
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((agent, number)) = &self.ask {
            write!(f, "{agent}*{number}+")?;
        }
        write!(f, "{}@{}", self.calls, self.each_ms)
    }
}

impl FromStr for Script {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (ask, rest) = text.split_once('+').map_or((None, text), |(ask, rest)| (Some(ask), rest));
        let ask = ask.map(|ask| {
            let (agent, number) = ask.split_once('*').context("no number of agents")?;
            anyhow::Ok((agent.to_owned(), number.parse()?))
        });
        let (calls, each_ms) = rest.split_once('@').unwrap_or((rest, "0"));
        Ok(Self { ask: ask.transpose()?, calls: calls.parse()?, each_ms: each_ms.parse()? })
    }
}
