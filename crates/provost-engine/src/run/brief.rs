//! What an agent requests from another agent, and what the new agent gets: never more than its parent has.

use std::fmt;

use provost_event::{
    Access, AgentPolicy, Brief, Budget, GoalPolicy, Isolation, Json, PermissionPolicy, Priority, SessionId,
    SpawnBudget, StepMode, SubAgentPolicy, ToolSpec, ToolSubject,
};
use serde::Deserialize;
use serde_json::json;

use super::agent::Agent;
use super::{AgentNumber, RunState};

/// The tool that requests an agent like the calling one.
pub const SPAWN_TOOL: &str = "spawn_agent";
/// Its names in the hook scripts of other agent programs.
pub const SPAWN_ALIASES: [&str; 2] = ["Agent", "Task"];

/// The description of the argument that names an agent.
const AGAIN: &str = "Goes on with an earlier agent of this tool (`RUN.2` in its result).";

/// Maximum bytes of an agent's final text in its report to the requesting agent.
const REPORT_BYTES_MAX: usize = 32 * 1024;
/// Maximum characters of the name that an agent gives to a sub-agent.
const NAME_CHARS_MAX: usize = 40;

/// The tool by which an agent requests another agent like itself.
#[must_use]
pub fn spawn_tool() -> ToolSpec {
    spawn_tool_with(&spawn_schema())
}

/// The same, for a policy with judges that can verify a sub-agent's goal.
#[must_use]
pub fn judged_spawn_tool() -> ToolSpec {
    let mut schema = spawn_schema();
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        let words = "What must be true before it counts as done: an independent judge checks that against the evidence.";
        properties.insert("done_when".to_owned(), json!({"type": "string", "description": words}));
    }
    spawn_tool_with(&schema)
}

fn spawn_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "goal": {
                "type": "string",
                "description": "What the agent is to reach, with all it needs to know: it sees nothing of this conversation."
            },
            "agent": {"type": "string", "description": AGAIN},
            "name": {"type": "string", "description": "A short label for it."},
            "instructions": {"type": "string", "description": "What it is told besides, as part of its system prompt."},
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The tools it may use, of those you have. All of them if left out."
            },
            "priority": {"type": "string", "enum": ["background", "low", "normal"]},
            "max_turns": {"type": "integer", "minimum": 1},
            "isolation": {
                "type": "string",
                "enum": ["shared", "worktree"],
                "description": "`worktree`: it works in a git worktree of its own, on a branch of its own; `shared`, the default: in your folder."
            }
        },
        "required": ["goal"],
        "additionalProperties": false
    })
}

fn spawn_tool_with(schema: &serde_json::Value) -> ToolSpec {
    let description = "Has another agent work on a part of your task, and returns what it said last. It has your \
                       model and tools, and works in your folder unless you say otherwise. Several calls in one \
                       answer run side by side.";
    let aliases = SPAWN_ALIASES.map(str::to_owned).to_vec();
    ToolSpec { aliases, ..tool(SPAWN_TOOL, description, schema) }
}

/// The tool by which an agent requests the configured sub-agent `name`.
#[must_use]
pub fn agent_tool(name: &str, description: &str) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "goal": {
                "type": "string",
                "description": "What it is to reach, with all it needs to know: it sees nothing of this conversation."
            },
            "agent": {"type": "string", "description": AGAIN}
        },
        "required": ["goal"],
        "additionalProperties": false
    });
    tool(name, description, &schema)
}

fn tool(name: &str, description: &str, schema: &serde_json::Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: Json::parse(schema.to_string()).unwrap_or_else(|_| Json::empty_object()),
        access: Access::Delegates,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        summary_field: Some("goal".to_owned()),
        idempotent: false,
        timeout_ms: 0,
        output_bytes_max: REPORT_BYTES_MAX,
    }
}

/// An agent that another agent requests.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) brief: Brief,
    pub(super) priority: Priority,
}

/// The arguments of a call that requests an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpawnArguments {
    goal: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    tools: Option<Vec<String>>,
    #[serde(default)]
    priority: Option<Priority>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(default)]
    isolation: Option<Isolation>,
    #[serde(default)]
    done_when: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedByName {
    goal: String,
}

/// An agent as a call names it; models sometimes pass its number as a JSON number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NamedAgent {
    Number(AgentNumber),
    Name(String),
}

impl fmt::Display for NamedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name.trim()),
        }
    }
}

/// The arguments of a call that asks an earlier agent again.
#[derive(Debug, Deserialize)]
struct AskedAgain {
    agent: NamedAgent,
    goal: String,
    #[serde(default)]
    priority: Option<Priority>,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

/// An earlier agent that is asked again.
#[derive(Debug)]
pub(super) struct WantedAgain {
    pub(super) agent: AgentNumber,
    pub(super) goal: String,
    pub(super) priority: Priority,
}

/// Whether a call names an earlier agent.
pub(super) fn names_agent(input: &Json) -> bool {
    let named = input.read::<serde_json::Value>().ok().and_then(|value| value.get("agent").cloned());
    named.is_some_and(|agent| !agent.is_null())
}

impl RunState {
    /// The earlier agent that agent `asking` requests with a call of `tool`.
    ///
    /// # Errors
    /// Why it can't work again, as text for the requesting agent.
    pub(super) fn wanted_again(
        &self,
        asking: AgentNumber,
        tool: &str,
        input: &Json,
    ) -> Result<WantedAgain, String> {
        let asked =
            input.read::<AskedAgain>().map_err(|error| format!("The arguments make no sense: {error}."))?;
        if asked.goal.trim().is_empty() {
            return Err("The goal is empty: say what the agent is to reach.".to_owned());
        }
        if let Some(other) = asked.others.iter().find(|(_, value)| !value.is_null()).map(|(name, _)| name) {
            return Err(format!("An agent that goes on keeps its settings: leave `{other}` out."));
        }
        let named = asked.agent.to_string();
        let number = named.parse::<AgentNumber>().ok();
        let number = number.or_else(|| {
            let session = named.parse::<SessionId>().ok()?;
            (session.run == self.run).then_some(session.agent)
        });
        let found = number.and_then(|number| Some((number, self.agents.get(number)?)));
        let kind = self.sub_agent(tool).map(|policy| policy.name.as_str());
        let is_own = |one: &Agent| {
            one.parent == Some(asking)
                && one.brief.as_ref().is_some_and(|brief| brief.agent.as_deref() == kind)
        };
        let Some((agent, one)) = found.filter(|(_, one)| is_own(one)) else {
            return Err(format!(
                "No agent `{named}` has worked for you by `{tool}`: give its name as its result has it, or leave \
                 `agent` out for a new one."
            ));
        };
        if one.is_live() {
            return Err(format!("Agent `{named}` still works: wait for its result."));
        }
        if !one.has_begun {
            return Err(format!("Agent `{named}` never began: leave `agent` out for a new one."));
        }
        let own = self.agents.slots.priority(asking).unwrap_or_default();
        let usual = self.sub_agent(tool).map_or(own.min(Priority::Normal), |policy| policy.priority);
        let priority = asked.priority.filter(|_| kind.is_none()).unwrap_or(usual);
        if kind.is_none() && priority > own.max(Priority::Normal) {
            return Err(format!("Its priority can be {} at most.", own.max(Priority::Normal)));
        }
        Ok(WantedAgain { agent, goal: asked.goal, priority })
    }

    pub(super) fn spawn_budget(&self) -> SpawnBudget {
        self.policy.as_ref().map(|policy| policy.spawn).unwrap_or_default()
    }

    pub(super) fn sub_agent(&self, name: &str) -> Option<&SubAgentPolicy> {
        self.policy.as_ref()?.agents.iter().find(|agent| agent.name == name)
    }

    /// What agent `asking` requests with a call of `tool`.
    ///
    /// # Errors
    /// Why the request is invalid, as text for the requesting agent.
    pub(super) fn wanted(&self, asking: AgentNumber, tool: &str, input: &Json) -> Result<Wanted, String> {
        let wrong = |error: serde_json::Error| format!("The arguments make no sense: {error}.");
        let wanted = match self.sub_agent(tool) {
            Some(policy) => by_name(policy, input.read::<AskedByName>().map_err(wrong)?.goal),
            None => self.alike(asking, input.read::<SpawnArguments>().map_err(wrong)?)?,
        };
        if wanted.brief.goal.trim().is_empty() {
            return Err("The goal is empty: say what the agent is to reach.".to_owned());
        }
        if wanted.brief.isolation == Isolation::Worktree && self.worktrees().is_none() {
            return Err(
                "It can't have a git worktree of its own: the program that runs you has no folder for them."
                    .to_owned(),
            );
        }
        Ok(wanted)
    }

    /// An agent like the requesting one, with the requested goal and limits.
    fn alike(&self, asking: AgentNumber, asked: SpawnArguments) -> Result<Wanted, String> {
        let own = self.agents.slots.priority(asking).unwrap_or_default();
        let priority = asked.priority.unwrap_or(own.min(Priority::Normal));
        if priority > own.max(Priority::Normal) {
            return Err(format!("Its priority can be {} at most.", own.max(Priority::Normal)));
        }
        if asked.max_turns == Some(0) {
            return Err("It needs at least one turn: `max_turns` is 0.".to_owned());
        }
        if let Some(wanted) = &asked.tools {
            let policy = self.policy_of(asking);
            let has = |name: &String| {
                policy.as_ref().is_some_and(|policy| policy.tools.iter().any(|tool| tool.name == *name))
            };
            if let Some(unknown) = wanted.iter().find(|name| !has(name)) {
                return Err(format!("It can't have the tool `{unknown}`: you don't have it yourself."));
            }
        }
        if let Some(condition) = &asked.done_when {
            if self.policy.as_ref().is_none_or(|policy| policy.judging.is_none()) {
                return Err("No judge is configured here: leave `done_when` out.".to_owned());
            }
            if condition.trim().is_empty() {
                return Err("`done_when` is empty: say what must be true, or leave it out.".to_owned());
            }
        }
        let name = asked.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or("agent");
        let brief = Brief {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            goal: asked.goal,
            agent: None,
            instructions: asked.instructions,
            tools: asked.tools,
            budget: Budget::default(),
            turns_max: asked.max_turns,
            ask_timeout_ms: None,
            isolation: asked.isolation.unwrap_or_default(),
            done_when: asked.done_when.map(|condition| condition.trim().to_owned()),
        };
        Ok(Wanted { brief, priority })
    }

    /// The effective policy of an agent: its own, with no more than the agent above it has.
    pub(super) fn policy_of(&self, agent: AgentNumber) -> Option<AgentPolicy> {
        let run = self.policy.as_ref()?;
        let one = self.agents.get(agent)?;
        let Some(brief) = one.brief.as_ref() else {
            return Some(run.agent.clone());
        };
        // The agent of a step has no parent: it is the run's own, or restricted to what the run's own would have.
        let above = match one.parent {
            Some(parent) => AgentPolicy { stop_hooks: Vec::new(), goal: None, ..self.policy_of(parent)? },
            None => AgentPolicy { goal: None, ..run.agent.clone() },
        };
        let mut policy = match brief.agent.as_deref().and_then(|name| self.sub_agent(name)) {
            Some(named) => narrowed(named.agent.clone(), &above),
            None => above,
        };
        self.bind_to_step(agent, &mut policy);
        if let Some(tools) = &brief.tools {
            policy.tools.retain(|tool| tools.contains(&tool.name));
        }
        if one.depth >= run.spawn.max_depth {
            policy.tools.retain(|tool| tool.access != Access::Delegates);
        }
        if let Some(instructions) = &brief.instructions {
            policy.system_prompt = format!("{}\n\n{instructions}", policy.system_prompt);
        }
        if let (Some(condition), Some(judging)) = (&brief.done_when, &run.judging) {
            policy.goal = Some(Box::new(GoalPolicy { condition: condition.clone(), ..*judging.clone() }));
        }
        if let Some(worktree) = self.worktree_of(agent) {
            self.move_into(&worktree, agent, &mut policy);
        }
        self.retuned(&mut policy);
        policy.limits.turns_max = brief.turns_max.unwrap_or(u32::MAX).min(policy.limits.turns_max);
        policy.step_mode = StepMode::Free;
        Some(policy)
    }
}

/// `policy` of an agent that begins: if the agent has a goal, its system prompt gets a paragraph on it, with the
/// condition. Its sub-agents get none of that, unless they have a goal of their own.
#[must_use]
pub fn told_of_goal(mut policy: AgentPolicy) -> AgentPolicy {
    // A fork's prompt already has this paragraph, about the other run's goal.
    if let Some((before, _)) = policy.system_prompt.split_once(GOAL_IN_PROMPT) {
        policy.system_prompt = before.to_owned();
    }
    if let Some(goal) = &policy.goal {
        policy.system_prompt = format!("{}{GOAL_IN_PROMPT}{}", policy.system_prompt, goal.condition);
    }
    policy
}

/// The text between an agent's instructions and its goal.
const GOAL_IN_PROMPT: &str = "\n\nWhen you say that you are done, that is not believed but verified: independent \
    judges look at the evidence (your calls and what came of them, the files that changed, the checks that ran); what \
    you say yourself proves nothing. You are done once this is true:\n\n";

fn by_name(policy: &SubAgentPolicy, goal: String) -> Wanted {
    let brief = Brief {
        name: policy.name.clone(),
        goal,
        agent: Some(policy.name.clone()),
        instructions: None,
        tools: None,
        budget: policy.budget,
        turns_max: None,
        ask_timeout_ms: policy.ask_timeout_ms,
        isolation: policy.isolation,
        done_when: None,
    };
    Wanted { brief, priority: policy.priority }
}

/// `policy` restricted to the tools of `above` and to what its permissions allow.
fn narrowed(mut policy: AgentPolicy, above: &AgentPolicy) -> AgentPolicy {
    let is_external = policy.external.is_some();
    policy.tools.retain(|tool| {
        above.tools.iter().any(|known| known.name == tool.name)
            || (is_external && tool.access == Access::Consents)
    });
    let bounds = above.bounds.iter().chain([&above.permissions]);
    let bounds = bounds.filter(|bound| !bound.is_open() && **bound != policy.permissions);
    policy.bounds = distinct(bounds.cloned());
    policy.workspace.clone_from(&above.workspace);
    policy
}

fn distinct(policies: impl Iterator<Item = PermissionPolicy>) -> Vec<PermissionPolicy> {
    policies.fold(Vec::new(), |mut all, policy| {
        if !all.contains(&policy) {
            all.push(policy);
        }
        all
    })
}
