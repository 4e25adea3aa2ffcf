//! What the program around the dashboard does for it.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_event::{Dimension, RunId, Seq, SessionId};
use provost_view::SeenRuns;

/// Work for a process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A new run.
    Run {
        /// The goal.
        goal: String,
        /// Where.
        folder: PathBuf,
    },
    /// A run goes on.
    Resume {
        /// The run.
        run: RunId,
        /// A message to its agent; empty for none.
        text: String,
        /// What is added to one of its limits, as `provost resume` takes it.
        more: Option<(Dimension, String)>,
    },
    /// A new run from the conversation of another one's agent.
    Fork {
        /// The agent.
        session: SessionId,
        /// The last entry of the conversation; the newest if absent.
        at: Option<Seq>,
        /// A message to the agent; empty for none.
        text: String,
    },
}

/// What the dashboard can't do by itself.
#[async_trait]
pub trait TopHost: SeenRuns {
    /// Keeps a pattern that was approved for all runs in the user's settings.
    ///
    /// # Errors
    /// Why it can't be kept, for people.
    async fn keep_approved(&self, pattern: &str) -> Result<(), String>;

    /// Starts a process that works on a run, and goes on when the dashboard ends.
    ///
    /// # Errors
    /// Why it can't be started, for people.
    async fn start(&self, start: Start) -> Result<(), String>;

    /// Connects this terminal to the program of an agent, until the user detaches or the program ends. Returns how it
    /// ended, for people. The dashboard has left the terminal before.
    ///
    /// # Errors
    /// Why it can't be shown, for people.
    async fn attach(&self, session: SessionId) -> Result<String, String>;

    /// The key that detaches from an attached program, for people.
    fn detach_key(&self) -> String;

    /// The folder in which new runs work.
    fn folder(&self) -> PathBuf;
}
