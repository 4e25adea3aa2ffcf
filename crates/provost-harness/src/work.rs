//! Having processes work on runs: for programs that hold no run themselves, as servers do. Each run is worked on by a
//! process of its own, which outlives the program that had it started.

mod kept_keys;
mod starts;

use std::path::PathBuf;

use async_trait::async_trait;
use provost_event::RunId;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::starts::{IDEMPOTENCY_KEY_CHARS_MAX, RunStarts, StartError};

/// Starts processes that work on runs.
#[async_trait]
pub trait StartsWork: Send + Sync {
    /// Starts a process that outlives this one, and returns once it works on the run. A new run gets the id `run`.
    ///
    /// # Errors
    /// [`NotStarted`], when the run stays as it was.
    async fn start(&self, run: RunId, work: &Work) -> Result<(), NotStarted>;
}

/// Why no process works on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStarted {
    /// The settings, the folder or the request are such that it can't be.
    Refused(String),
    /// It doesn't fit the run's state, or something failed.
    Failed(String),
}

/// Work on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum Work {
    /// On a new run.
    Start(StartRun),
    /// On one that is suspended, was interrupted or has ended.
    Resume(ResumeRun),
    /// On a new run with the conversation of another.
    Fork {
        /// The agent whose conversation it is, as `RUN` or `RUN.N`.
        from: String,
        /// The rest.
        #[serde(flatten)]
        fork: ForkRun,
    },
}

/// Limits of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkLimits {
    /// Money in US dollars, such as "5.00".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<String>,
    /// Tokens of all kinds, such as "200k".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<String>,
    /// Time worked on it, such as "2h".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<String>,
    /// Turns of all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<String>,
}

/// A new run. What is absent is as the settings of the folder say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The goal; not empty.
    #[schemars(length(min = 1, max = 32768))]
    pub goal: String,
    /// The folder to work in: an absolute path.
    pub folder: PathBuf,
    /// What judges verify before it counts as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The models that judge; the agent's own if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub judges: Vec<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Agents that may work at the same time; 1 is without sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_agents: Option<u32>,
    /// Its limits.
    #[serde(default, deserialize_with = "object")]
    pub limits: WorkLimits,
}

impl StartRun {
    /// What is wrong with it, by the member's name, if that can be told without the folder's settings.
    #[must_use]
    pub fn objection(&self) -> Option<String> {
        if self.goal.trim().is_empty() {
            return Some("goal: is empty".to_owned());
        }
        let is_folder = self.folder.is_absolute() && self.folder.is_dir();
        (!is_folder).then(|| format!("folder: {} is no absolute path of a folder", self.folder.display()))
    }
}

/// How a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumeRun {
    /// One agent, in the process that works on the run, with no other member; the whole run if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<u32>,
    /// A message to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub text: Option<String>,
    /// Another condition that judges verify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Another model from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Takes the current settings in place of those that the run was started with.
    pub with_settings: bool,
    /// What is added to its limits.
    #[serde(deserialize_with = "object")]
    pub limits: WorkLimits,
}

/// A new run from another's conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForkRun {
    /// The agent's number; the root if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<u32>,
    /// The last entry of the conversation, by its number in the agent's log; the newest if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
    /// A message to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub text: Option<String>,
    /// The folder to work in: an absolute path; the other's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Another model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its limits.
    #[serde(deserialize_with = "object")]
    pub limits: WorkLimits,
}

/// Reads an object, and not a list of its members, which the derived reader takes too.
fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let members = serde_json::Map::deserialize(deserializer)?;
    // What this says has the member's own place in front, which the reader around it doesn't know.
    serde_path_to_error::deserialize(serde_json::Value::from(members)).map_err(D::Error::custom)
}
