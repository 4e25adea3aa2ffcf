//! What an agent requests from another agent, and whether it may: never more than it has itself.

use std::fmt;

use provost_event::{
    AgentAskedAgain, AgentSpawned, Brief, Budget, ChainContext, Isolation, Json, Priority, Seq, SessionId,
    SlotAssignment, SubAgentPolicy, ToolStatus,
};
use serde::Deserialize;

use super::agent_policy::AgentPolicies;
use super::agents::Agent;
use super::spawn::Acquired;
use super::{AgentNumber, Ledger};

/// Maximum characters of the name that an agent gives to a sub-agent.
const NAME_CHARS_MAX: usize = 40;

/// A call by which an agent requests another.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentCall<'a> {
    /// The session of the requesting agent.
    pub(super) parent: SessionId,
    /// The entry of its log that started the call.
    pub(super) call: Seq,
    pub(super) tool: &'a str,
    pub(super) input: &'a Json,
}

/// A request that is granted.
#[derive(Debug)]
pub(super) enum GrantedRequest {
    /// A new agent.
    New(Box<AgentSpawned>),
    /// An agent that has delivered its result works again, in its own session.
    Again(AgentAskedAgain),
}

/// A call for an agent that was refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// The status of the call.
    pub(super) status: ToolStatus,
    /// The reason, as text for the requesting agent.
    pub(super) why: String,
}

impl Refused {
    const fn rejected(why: String) -> Self {
        Self { status: ToolStatus::Rejected, why }
    }

    const fn error(why: String) -> Self {
        Self { status: ToolStatus::Error, why }
    }
}

/// An agent that another agent requests.
#[derive(Debug)]
struct NewAgent {
    brief: Brief,
    priority: Priority,
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
struct EarlierAgent {
    agent: AgentNumber,
    goal: String,
    priority: Priority,
}

/// Whether a call names an earlier agent.
fn names_agent(input: &Json) -> bool {
    let named = input.read::<serde_json::Value>().ok().and_then(|value| value.get("agent").cloned());
    named.is_some_and(|agent| !agent.is_null())
}

/// The requests of a run's agents for other agents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requests<'a> {
    pub(super) policies: AgentPolicies<'a>,
    pub(super) ledger: &'a Ledger,
    /// No agent begins any more.
    pub(super) run_is_stopping: bool,
}

impl Requests<'_> {
    /// Whether the request of a call is granted.
    ///
    /// # Errors
    /// The status of the call, and why there is no such agent, as text for the requesting agent.
    pub(super) fn grant(&self, asked: AgentCall<'_>) -> Result<GrantedRequest, Refused> {
        match names_agent(asked.input) {
            true => self.again(asked).map(GrantedRequest::Again),
            false => self.spawned(asked).map(|spawned| GrantedRequest::New(Box::new(spawned))),
        }
    }

    fn spawned(&self, asked: AgentCall<'_>) -> Result<AgentSpawned, Refused> {
        let AgentCall { parent, call, .. } = asked;
        let NewAgent { brief, priority } = self.new_agent(asked).map_err(Refused::rejected)?;
        let agents = self.policies.agents;
        let depth_max = self.policies.run.spawn_budget().max_depth;
        let above = agents.get(parent.agent).map_or(0, Agent::depth);
        let chain = ChainContext { depth: above, ..ChainContext::root(parent.run) };
        let child = chain.child_of(parent, depth_max);
        let depth = child.map_err(|deep| Refused::error(deep.to_string()))?.depth;
        let slot = self.slot_for(parent.agent, priority)?;
        let child = agents.table().next_session();
        Ok(AgentSpawned { child, parent: Some(parent), call: Some(call), depth, brief, priority, slot })
    }

    fn again(&self, asked: AgentCall<'_>) -> Result<AgentAskedAgain, Refused> {
        let AgentCall { parent, call, .. } = asked;
        let EarlierAgent { agent, goal, priority } = self.earlier_agent(asked).map_err(Refused::rejected)?;
        let slot = self.slot_for(parent.agent, priority)?;
        let child = self.policies.agents.table().session(agent);
        // Its limit counts from here.
        let turns_max = self.policies.of(agent).map_or(0, |policy| policy.limits.turns_max);
        let turns_max = turns_max.saturating_add(self.ledger.own_turns(agent));
        Ok(AgentAskedAgain { child, parent, call, text: goal, turns_max, priority, slot })
    }

    /// How an agent that agent `asking` requests gets its slot.
    fn slot_for(&self, asking: AgentNumber, priority: Priority) -> Result<SlotAssignment, Refused> {
        if self.run_is_stopping {
            let why = "Not started: the run is being stopped.".to_owned();
            return Err(Refused { status: ToolStatus::Cancelled, why });
        }
        let agents = self.policies.agents;
        match agents.slots().would_acquire(priority) {
            Acquired::Granted => Ok(SlotAssignment::Free),
            Acquired::After(victim) => Ok(SlotAssignment::After(agents.table().session(victim))),
            // An agent that already waits for a sub-agent may wait for this one too: that sub-agent ends some
            // time.
            Acquired::Exhausted if agents.get(asking).is_some_and(|asking| asking.children() > 0) => {
                Ok(SlotAssignment::Queued)
            }
            Acquired::Exhausted => Err(Refused::error(self.no_slot(priority))),
        }
    }

    fn no_slot(&self, priority: Priority) -> String {
        let held = self.policies.agents.slots().held();
        let slots = self.policies.run.spawn_budget().slots();
        format!(
            "Not started: {held} of {slots} agents are at work (spawn.max_agents), and none of them yields to one \
             of priority {priority}. Do this part yourself, or ask again when other agents are done."
        )
    }

    /// The earlier agent that a call requests.
    ///
    /// # Errors
    /// Why it can't work again, as text for the requesting agent.
    fn earlier_agent(&self, call: AgentCall<'_>) -> Result<EarlierAgent, String> {
        let AgentCall { parent: asking, tool, input, .. } = call;
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
            (session.run == asking.run).then_some(session.agent)
        });
        let found = number.and_then(|number| Some((number, self.policies.agents.get(number)?)));
        let kind = self.policies.run.sub_agent(tool).map(|policy| policy.name.as_str());
        let is_own = |agent: &Agent| {
            agent.parent() == Some(asking.agent)
                && agent.brief().is_some_and(|brief| brief.agent.as_deref() == kind)
        };
        let Some((number, agent)) = found.filter(|(_, agent)| is_own(agent)) else {
            return Err(format!(
                "No agent `{named}` has worked for you by `{tool}`: give its name as its result has it, or leave \
                 `agent` out for a new one."
            ));
        };
        if agent.is_live() {
            return Err(format!("Agent `{named}` still works: wait for its result."));
        }
        if !agent.has_begun() {
            return Err(format!("Agent `{named}` never began: leave `agent` out for a new one."));
        }
        let own = self.policies.agents.slots().priority(asking.agent).unwrap_or_default();
        let usual =
            self.policies.run.sub_agent(tool).map_or(own.min(Priority::Normal), |policy| policy.priority);
        let priority = asked.priority.filter(|_| kind.is_none()).unwrap_or(usual);
        if kind.is_none() && priority > own.max(Priority::Normal) {
            return Err(format!("Its priority can be {} at most.", own.max(Priority::Normal)));
        }
        Ok(EarlierAgent { agent: number, goal: asked.goal, priority })
    }

    /// The new agent that a call requests.
    ///
    /// # Errors
    /// Why the request is invalid, as text for the requesting agent.
    fn new_agent(&self, call: AgentCall<'_>) -> Result<NewAgent, String> {
        let AgentCall { parent: asking, tool, input, .. } = call;
        let wrong = |error: serde_json::Error| format!("The arguments make no sense: {error}.");
        let wanted = match self.policies.run.sub_agent(tool) {
            Some(policy) => by_name(policy, input.read::<AskedByName>().map_err(wrong)?.goal),
            None => self.alike(asking, input.read::<SpawnArguments>().map_err(wrong)?)?,
        };
        if wanted.brief.goal.trim().is_empty() {
            return Err("The goal is empty: say what the agent is to reach.".to_owned());
        }
        if wanted.brief.isolation == Isolation::Worktree && self.policies.run.worktrees().is_none() {
            return Err(
                "It can't have a git worktree of its own: the program that runs you has no folder for them."
                    .to_owned(),
            );
        }
        Ok(wanted)
    }

    /// An agent like the requesting one, with the requested goal and limits.
    fn alike(&self, asking: SessionId, asked: SpawnArguments) -> Result<NewAgent, String> {
        let own = self.policies.agents.slots().priority(asking.agent).unwrap_or_default();
        let priority = asked.priority.unwrap_or(own.min(Priority::Normal));
        if priority > own.max(Priority::Normal) {
            return Err(format!("Its priority can be {} at most.", own.max(Priority::Normal)));
        }
        if asked.max_turns == Some(0) {
            return Err("It needs at least one turn: `max_turns` is 0.".to_owned());
        }
        if let Some(wanted) = &asked.tools {
            let policy = self.policies.of(asking.agent);
            let has = |name: &String| {
                policy.as_ref().is_some_and(|policy| policy.tools.iter().any(|tool| tool.name == *name))
            };
            if let Some(unknown) = wanted.iter().find(|name| !has(name)) {
                return Err(format!("It can't have the tool `{unknown}`: you don't have it yourself."));
            }
        }
        if let Some(condition) = &asked.done_when {
            if self.policies.run.get().is_none_or(|policy| policy.judging.is_none()) {
                return Err("No judge is configured here: leave `done_when` out.".to_owned());
            }
            if condition.trim().is_empty() {
                return Err("`done_when` is empty: say what must be true, or leave it out.".to_owned());
            }
        }
        let name = label(asked.name.as_deref().unwrap_or_default());
        let brief = Brief {
            name,
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
        Ok(NewAgent { brief, priority })
    }
}

/// A model's label for an agent, on one line and without control characters.
fn label(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect::<String>();
    let shown = shown.trim();
    if shown.is_empty() { "agent".to_owned() } else { shown.to_owned() }
}

fn by_name(policy: &SubAgentPolicy, goal: String) -> NewAgent {
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
    NewAgent { brief, priority: policy.priority }
}
