//! The settings that apply, and what is wrong with them.

use provost_event::{Budget, HookPolicy, Isolation, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// The settings that apply in a folder, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedSettings {
    /// The version of the view.
    pub v: ViewVersion,
    /// Whether there are no problems.
    pub ok: bool,
    /// The settings files that were read.
    pub files: Vec<String>,
    /// Each key that has a value, with it.
    pub settings: Vec<SettingValue>,
    /// The stop hooks.
    pub stop_hooks: Vec<CheckedStopHook>,
    /// The hooks, those of other programs' files included.
    pub hooks: Vec<CheckedHook>,
    /// The agents that can be started.
    pub agents: Vec<CheckedAgent>,
    /// What of other programs' files isn't used, and why.
    pub skipped: Vec<String>,
    /// The files for agents whose content agents are told.
    pub project_rules: Vec<ProjectRulesFile>,
    /// The skills of the user and of the project.
    pub skills: Vec<CheckedSkill>,
    /// The user's consent to what the project's files request.
    pub trust: ProjectTrust,
    /// What keeps runs from starting.
    pub problems: Vec<SettingProblem>,
    /// What is probably not meant so.
    pub warnings: Vec<String>,
    /// What is valid elsewhere and unavailable here.
    pub notes: Vec<String>,
}

/// A key of the settings with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingValue {
    /// The key with its tables, such as `budget.tokens`.
    pub key: String,
    /// The value, for people; holds no secret.
    pub value: String,
    /// Where it was given: a file with line and column, a variable, a flag, or the defaults.
    pub source: String,
}

/// A stop hook of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedStopHook {
    /// Its name.
    pub name: String,
    /// The shell command that it runs.
    pub command: String,
    /// Where it was given.
    pub source: String,
}

/// A hook of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedHook {
    /// The hook.
    pub hook: HookPolicy,
    /// Where it was given.
    pub source: String,
}

/// An agent of the settings. A null setting is that of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedAgent {
    /// Its name, and that of its tool.
    pub name: String,
    /// Its description for other agents.
    pub description: String,
    /// Its model.
    pub model: Option<String>,
    /// The command of an external agent; null for a native one.
    pub program: Option<Vec<String>>,
    /// The profile of an external agent; null where its command determines it.
    pub profile: Option<String>,
    /// Its tools; null for all but those that start other agents.
    pub tools: Option<Vec<String>>,
    /// Its priority for a slot.
    pub priority: Priority,
    /// Its turns.
    pub max_turns: Option<u32>,
    /// What it and the agents below it may use.
    pub budget: Budget,
    /// How long it is waited for.
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    pub isolation: Isolation,
    /// The stop hooks that must agree before it stops.
    pub stop_hooks: Vec<String>,
    /// What must be confirmed before it counts as done; null if nothing.
    pub goal: Option<CheckedGoal>,
    /// Whether it can be started; not where the settings allow no sub-agents.
    pub offered: bool,
    /// Where it was given.
    pub source: String,
}

/// The goal of an agent of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedGoal {
    /// The condition that must be true.
    pub condition: String,
    /// The model that judges it; null for the run's judges.
    pub judge: Option<String>,
}

/// A file for agents whose content they are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRulesFile {
    /// Its path.
    pub file: String,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes that agents are told.
    pub taken: u64,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedSkill {
    /// Its file.
    pub file: String,
    /// Its name; null if it isn't used.
    pub name: Option<String>,
    /// What it is for; null if it isn't used.
    pub description: Option<String>,
    /// Why it isn't used, in words that follow the file; null if it is.
    pub skipped: Option<String>,
}

/// The user's consent to what a project's files request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTrust {
    /// Whether there is consent.
    pub state: TrustWord,
    /// The project's folder.
    pub folder: String,
    /// What its files request that needs consent.
    pub requests: Vec<TrustRequest>,
}

/// Whether there is consent to what a project's files request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustWord {
    /// The settings have problems, and consent wasn't looked up.
    Unknown,
    /// The files request nothing that needs it.
    NotNeeded,
    /// The user has trusted exactly this content.
    Trusted,
    /// `provost run` refuses until the user has trusted it.
    Needed,
}

/// Something that a project's files may not have without consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustRequest {
    /// Where it was given.
    pub source: String,
    /// What it is, and when it takes effect.
    pub what: String,
    /// The command, value or address.
    pub body: String,
    /// The file that requests it.
    pub file: String,
}

/// What is wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingProblem {
    /// Where it was given.
    pub source: String,
    /// The key with its tables; empty for a whole file.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be right; empty where `what` says it.
    pub remedy: String,
}
