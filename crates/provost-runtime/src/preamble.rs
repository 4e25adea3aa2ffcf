//! What the agents of a new run are told before their goals.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Zoned;
use provost_config::{Folders, Settings, Skills};
use provost_event::{AgentPolicy, ModelPolicy, RunPolicy, SandboxMode, counted};
use provost_harness::{
    HostFacts, ProjectRules, RULES_BYTES_MAX, Sandbox, confine_own_git, environment, preamble, project_rules,
    skills_preamble,
};

use crate::{StateDir, Variables};

/// The tool that gives agents the texts of skills.
pub(crate) const SKILL_TOOL: &str = "skill";
/// The user's own file of rules, beside the settings.
const USERS_RULES: &str = "AGENTS.md";
/// Tokens of requests that a model must have room for to be told where it works: what is told must leave room for a
/// conversation.
const ROOM_TOKENS_MIN: u64 = 12_000;
/// Tokens of room for each byte of project rules: a byte is about a quarter of a token, and they may take a sixteenth of
/// the room.
const ROOM_PER_BYTE: u64 = 4;

/// Where files for agents are.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Where the agents work.
    pub workspace: &'a Path,
    /// The user's own folders.
    pub folders: &'a Folders,
}

/// `policy` with what its agents are told before their goals, and notices about that. An external agent looks around
/// by itself.
pub async fn with_preamble(
    mut policy: RunPolicy,
    places: Places<'_>,
    settings: &Settings,
    variables: &Variables,
) -> (RunPolicy, Vec<String>) {
    let Some(room) = smallest_room(&policy) else { return (policy, Vec::new()) };
    let is_told = settings.environment && room >= ROOM_TOKENS_MIN;
    // Kept as long as git looks.
    let _sandbox = (settings.sandbox.mode != SandboxMode::Off).then(|| {
        let state = StateDir::new(settings, places.folders, |_| {});
        let sandbox: Arc<dyn Sandbox> = Arc::new(state.sandbox(variables.clone()));
        confine_own_git(&sandbox);
        sandbox
    });
    let place =
        if is_told { environment(places.workspace, facts(&policy, variables)).await } else { String::new() };
    let rules = rules(places, settings, room);
    policy.agent.preamble = preamble(&place, &rules);
    let told = rules.files.iter().map(|file| file.text.len()).sum::<usize>();
    policy.agent.folder_rules_bytes =
        rules_bytes(settings, room).saturating_sub(u64::try_from(told).unwrap_or(u64::MAX));
    (policy, rules.notices)
}

/// `policy` with what its agents are told of these skills before their goals; without skills, or where a model has no
/// room for them, no agent has the tool for them.
#[must_use]
pub fn with_skills(mut policy: RunPolicy, skills: &Skills) -> RunPolicy {
    let has_room = smallest_room(&policy).is_some_and(|room| room >= ROOM_TOKENS_MIN);
    let usable = skills.usable.iter().filter(|_| has_room);
    let text = skills_preamble(usable.map(|skill| (skill.name.as_str(), skill.description.as_str())));
    if text.is_empty() {
        without_skills(&mut policy);
        return policy;
    }
    let parts = [policy.agent.preamble.as_str(), &text];
    let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    policy.agent.preamble = parts.join("\n\n");
    policy
}

/// Takes the tool for skills from all agents.
pub(crate) fn without_skills(policy: &mut RunPolicy) {
    let others = policy.agents.iter_mut().map(|agent| &mut agent.agent);
    for agent in std::iter::once(&mut policy.agent).chain(others) {
        agent.tools.retain(|tool| tool.name != SKILL_TOOL);
    }
}

/// The rules for agents, as the settings have it, for models with this much room.
fn rules(places: Places<'_>, settings: &Settings, room: u64) -> ProjectRules {
    let bytes_max = usize::try_from(rules_bytes(settings, room)).unwrap_or(RULES_BYTES_MAX);
    if bytes_max == 0 {
        return ProjectRules::default();
    }
    project_rules(places.workspace, users_rules(places.folders).as_deref(), bytes_max)
}

/// The rules for agents, as the settings have it, for models with enough room.
pub fn rules_of(places: Places<'_>, settings: &Settings) -> ProjectRules {
    rules(places, settings, u64::MAX)
}

/// Maximum bytes of rules, those of sub-folders included.
fn rules_bytes(settings: &Settings, room: u64) -> u64 {
    if settings.project_rules { (room / ROOM_PER_BYTE).min(RULES_BYTES_MAX as u64) } else { 0 }
}

fn users_rules(folders: &Folders) -> Option<PathBuf> {
    Some(folders.user_file.parent()?.join(USERS_RULES))
}

/// The least room that a model of the run's native agents has for requests; `None` if it has no native agents.
fn smallest_room(policy: &RunPolicy) -> Option<u64> {
    let room = |model: &ModelPolicy| {
        let window = model.window_tokens.unwrap_or(u64::MAX);
        window.saturating_sub(u64::from(model.output_tokens_max).min(window / 2))
    };
    let agents = std::iter::once(&policy.agent).chain(policy.agents.iter().map(|agent| &agent.agent));
    let native = agents.filter(|agent: &&AgentPolicy| agent.external.is_none());
    native.flat_map(|agent| std::iter::once(&agent.model).chain(&agent.model.fallbacks)).map(room).min()
}

fn facts(policy: &RunPolicy, variables: &Variables) -> HostFacts {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
    HostFacts {
        date: Zoned::now().strftime("%F (%A)").to_string(),
        user: variable("USER").or_else(|| variable("LOGNAME")),
        path: variable("PATH").unwrap_or_default(),
        limits: limits(policy),
    }
}

fn limits(policy: &RunPolicy) -> String {
    let turns = [policy.agent.limits.turns_limit(), policy.budget.turns].into_iter().flatten().min();
    let parts = [
        turns.map(|turns| counted(turns.into(), "turn")),
        policy.budget.tokens.map(|tokens| counted(tokens, "token")),
        policy.budget.money.map(|money| money.to_string()),
        policy.budget.wall_time_ms.map(duration),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A duration in at most two units.
fn duration(ms: u64) -> String {
    let (secs, mins, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{secs}.{}s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{mins}m{:02}s", secs % 60),
        3_600_000..86_400_000 => format!("{hours}h{:02}m", mins % 60),
        _ => format!("{}d{:02}h", hours / 24, hours % 24),
    }
}
