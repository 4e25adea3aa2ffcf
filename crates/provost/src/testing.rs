//! For tests of programs that embed agents: without a model, a clock or a disk.
//!
//! Code that takes an [`AgentRunner`] instead of an [`Agent`] can be tested with a [`FakeAgent`]; code that shall see a
//! real run, with a [`ScriptedModel`], a [`SimulatedClock`] and a [`MemoryStore`].

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use provost_event::{MicroDollars, Outcome, RunId};

pub use provost_backend::MemoryStore;
pub use provost_harness::SimulatedClock;
pub use provost_llm::ScriptedModel;

use crate::{Agent, Error, Finished};

/// What runs goals: an [`Agent`], or a test double.
#[async_trait]
pub trait AgentRunner: Send + Sync {
    /// As [`Agent::run`].
    ///
    /// # Errors
    /// As [`Agent::run`].
    async fn run(&self, goal: &str) -> Result<Finished, Error>;
}

#[async_trait]
impl AgentRunner for Agent {
    async fn run(&self, goal: &str) -> Result<Finished, Error> {
        Self::run(self, goal).await
    }
}

/// Answers goals with prepared results, in order, and keeps the goals. The last result is repeated.
///
/// ```
/// use provost::testing::{AgentRunner, FakeAgent};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), provost::Error> {
/// let agent = FakeAgent::new().completes("fixed").fails("no idea");
/// assert_eq!(agent.run("fix the bug").await?.text, "fixed");
/// assert!(!agent.run("and the next").await?.is_completed());
/// assert_eq!(agent.goals(), ["fix the bug", "and the next"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FakeAgent {
    results: Mutex<VecDeque<FakeResult>>,
    goals: Mutex<Vec<String>>,
}

#[derive(Debug, Clone)]
struct FakeResult {
    outcome: Outcome,
    text: String,
}

impl FakeAgent {
    /// An agent that completes every goal without a word.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes the next goal with this text.
    #[must_use]
    pub fn completes(self, text: impl Into<String>) -> Self {
        self.ends(Outcome::UNVERIFIED, text)
    }

    /// Fails at the next goal with this message.
    #[must_use]
    pub fn fails(self, message: impl Into<String>) -> Self {
        let class = provost_event::ErrorClass::NoAnswer;
        self.ends(Outcome::Failed { class, message: message.into() }, "")
    }

    /// Ends the next goal with this outcome and text.
    #[must_use]
    pub fn ends(mut self, outcome: Outcome, text: impl Into<String>) -> Self {
        let result = FakeResult { outcome, text: text.into() };
        self.results.get_mut().unwrap_or_else(PoisonError::into_inner).push_back(result);
        self
    }

    /// The goals so far.
    #[must_use]
    pub fn goals(&self) -> Vec<String> {
        self.goals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl AgentRunner for FakeAgent {
    async fn run(&self, goal: &str) -> Result<Finished, Error> {
        self.goals.lock().unwrap_or_else(PoisonError::into_inner).push(goal.to_owned());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let last = if results.len() > 1 { results.pop_front() } else { results.front().cloned() };
        let empty = || FakeResult { outcome: Outcome::UNVERIFIED, text: String::new() };
        let FakeResult { outcome, text } = last.unwrap_or_else(empty);
        let cost = MicroDollars(0);
        Ok(Finished { run: RunId::new(), outcome, text, tokens: 0, cost, is_estimated: false })
    }
}
