//! A typed client of Provost's server: what `provost serve` answers, as the types of `provost-view`.
//!
//! Each call is a connection of its own, on loopback or over the server's Unix socket. Nothing is tried again: whether a
//! request may be repeated is the caller's to know, and [`start`](Client::start) takes a key for that.
//!
//! | file | what lives there |
//! |---|---|
//! | `lib.rs` | the client and its calls |
//! | `wire.rs` | connections, requests, answers |
//! | `stream.rs` | the entries of a run as they are committed |

mod stream;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;

use provost_event::{RunId, SessionId};
use provost_view::{Approval, ConversationView, GroupedRuns, RunDetails, Spending};
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

pub use stream::{Entries, StreamedEntry};

/// Why a call has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The server isn't there, or the connection broke.
    #[error("the server at {at} can't be reached")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        source: std::io::Error,
    },
    /// It refuses, or can't do it.
    #[error("{detail}")]
    Refused {
        /// The status.
        status: u16,
        /// Why, and what would do.
        detail: String,
    },
    /// Its answer isn't understood: it is of another version.
    #[error("the server's answer isn't understood")]
    Foreign {
        /// Why.
        source: serde_json::Error,
    },
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// On loopback.
    Tcp(SocketAddr),
    /// At this Unix socket.
    Unix(PathBuf),
}

/// A server, and what is sent with each request. Cheap to clone. Its `Debug` leaves out the token.
#[derive(Clone)]
pub struct Client {
    address: ServerAddress,
    token: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A new run.
#[derive(Debug, Clone, Serialize)]
pub struct NewRun {
    /// The goal.
    pub goal: String,
    /// The folder to work in.
    pub folder: PathBuf,
    /// What judges verify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The model; as the settings say if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl NewRun {
    /// A run with this goal, as the settings of the folder say.
    #[must_use]
    pub fn new(goal: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self { goal: goal.into(), folder: folder.into(), condition: None, model: None }
    }
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The call is made, once.
    Allow,
    /// What a tool asks has this answer.
    Fields {
        /// The fields, by their names; those that aren't given have their defaults.
        fields: serde_json::Map<String, serde_json::Value>,
    },
    /// It isn't.
    Deny {
        /// What the agent is told; may be empty.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Started {
    run: RunId,
}

#[derive(Deserialize)]
struct IssuedLink {
    link: String,
}

impl Client {
    /// A client of the server at `address`, with its token.
    #[must_use]
    pub fn new(address: ServerAddress, token: impl Into<String>) -> Self {
        Self { address, token: token.into() }
    }

    /// The runs, in groups by what they need.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn groups(&self) -> Result<GroupedRuns, ClientError> {
        self.get("/v1/groups").await
    }

    /// A run with its agents.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn run(&self, run: RunId) -> Result<RunDetails, ClientError> {
        self.get(&format!("/v1/runs/{run}")).await
    }

    /// What an agent's model sees.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn conversation(&self, agent: SessionId) -> Result<ConversationView, ClientError> {
        self.get(&format!("/v1/runs/{}/conversation?agent={}", agent.run, agent.agent)).await
    }

    /// What was spent, by agent and model.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spend(&self, run: RunId) -> Result<Spending, ClientError> {
        self.get(&format!("/v1/runs/{run}/spend")).await
    }

    /// The questions that wait for an answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn approvals(&self) -> Result<Vec<Approval>, ClientError> {
        self.get("/v1/approvals").await
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with status 409 where it has its answer.
    pub async fn answer(&self, question: &Approval, answer: &Answer) -> Result<(), ClientError> {
        let (session, asked) = (question.question.session, question.question.asked.0);
        self.act(&format!("/v1/runs/{}/approvals/{}/{asked}", session.run, session.agent), answer).await
    }

    /// Starts a run, in a process of its own; with the same `key` and run only once.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with what is wrong with it.
    pub async fn start(&self, run: &NewRun, key: Option<&str>) -> Result<RunId, ClientError> {
        let started: Started = self.post("/v1/runs", run, key).await?;
        Ok(started.run)
    }

    /// Goes on with a run, in a process of its own; `text` is a message to its agent.
    ///
    /// # Errors
    /// [`ClientError::Refused`] where a process works on it already, or it can't go on.
    pub async fn resume(&self, run: RunId, text: Option<&str>) -> Result<(), ClientError> {
        self.act(&format!("/v1/runs/{run}/resume"), &json!({ "text": text })).await
    }

    /// Goes on with one agent of a run that a process works on.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with status 409 where no process works on the run, or the agent isn't suspended.
    pub async fn resume_agent(&self, agent: SessionId) -> Result<(), ClientError> {
        self.act(&format!("/v1/runs/{}/resume", agent.run), &json!({ "agent": agent.agent })).await
    }

    /// A link that signs one browser in, once, within ten minutes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn link(&self) -> Result<String, ClientError> {
        let issued: IssuedLink = self.post("/v1/links", &json!({}), None).await?;
        Ok(issued.link)
    }

    /// Sends a message to an agent.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn say(&self, agent: SessionId, text: &str) -> Result<(), ClientError> {
        self.act(&format!("/v1/runs/{}/say", agent.run), &json!({ "agent": agent.agent, "text": text })).await
    }

    /// Suspends a run.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with status 409 where it isn't working.
    pub async fn pause(&self, run: RunId) -> Result<(), ClientError> {
        self.act(&format!("/v1/runs/{run}/pause"), &json!({})).await
    }

    /// Cancels a run.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with status 409 where it has ended.
    pub async fn cancel(&self, run: RunId) -> Result<(), ClientError> {
        self.act(&format!("/v1/runs/{run}/cancel"), &json!({})).await
    }

    /// The entries of all logs of a run, in the order of their commits, behind the entry with this id; from the beginning
    /// if absent.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn entries(&self, run: RunId, after: Option<&str>) -> Result<Entries, ClientError> {
        let (connection, body) = self.open(&format!("/v1/runs/{run}/events"), after).await?;
        Ok(Entries::new(connection, body))
    }

    async fn act(&self, path: &str, body: &impl Serialize) -> Result<(), ClientError> {
        self.post::<serde::de::IgnoredAny>(path, body, None).await.map(|_| ())
    }
}
