//! A tree of agents in three slots, one of which yields to another.

use provost_engine::agent_tool;
use provost_event::{Budget, Isolation, Priority, RunPolicy, SubAgentPolicy};
use serde_json::{Value, json};

use super::{calls, done, mark, note, shell};
use crate::kill_matrix::scenario::{Say, SubAgent};

const SLOTS: u32 = 3;
/// The priorities of the sub-agents, which are also their names.
const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::Critical];

/// The answers of sub-agents, by their goals.
pub(in crate::kill_matrix) const SUB_AGENTS: &[SubAgent] = &[
    ("Keep the small notes.", small),
    ("Look after the large notes.", large),
    ("Keep the notes of the fire.", fire),
];

/// The answers of a sub-agent that fails once.
pub(in crate::kill_matrix) const FAILING: &[SubAgent] = &[("Keep the notes of the flood.", flood)];

/// Adds the sub-agents, one for each priority, and a tool for each.
pub(in crate::kill_matrix) fn policy(policy: &mut RunPolicy) {
    policy.spawn.max_agents = SLOTS;
    policy.spawn.max_depth = 4;
    let tools = PRIORITIES.map(|priority| agent_tool(priority.name(), "It keeps notes."));
    policy.agent.tools.extend(tools);
    let agent = &policy.agent;
    let sub_agent = |priority: Priority| SubAgentPolicy {
        name: priority.name().to_owned(),
        agent: agent.clone(),
        priority,
        budget: Budget::default(),
        ask_timeout_ms: None,
        isolation: Isolation::Shared,
    };
    policy.agents = PRIORITIES.map(sub_agent).into();
}

fn ask(priority: Priority, goal: &str) -> (&'static str, Value) {
    (priority.name(), json!({ "goal": goal }))
}

/// The root starts two sub-agents, and then makes a call itself.
pub(in crate::kill_matrix) fn root(answers: u32) -> Say {
    match answers {
        0 => calls(vec![
            ask(Priority::Low, "Keep the small notes."),
            ask(Priority::Normal, "Look after the large notes."),
        ]),
        1 => calls(vec![note("of the root")]),
        _ => done(),
    }
}

/// It has many turns, and yields in the middle of them.
fn small(answers: u32) -> Say {
    match answers {
        0..8 => calls(vec![note(&format!("small {answers}")), mark(&format!("small {answers}"))]),
        _ => done(),
    }
}

/// It starts when all slots are taken.
fn large(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("large")]),
        1 => calls(vec![ask(Priority::Critical, "Keep the notes of the fire.")]),
        2 => calls(vec![shell("large")]),
        _ => done(),
    }
}

/// The root starts an agent that fails once.
pub(in crate::kill_matrix) fn has_one_restarted(answers: u32) -> Say {
    match answers {
        0 => calls(vec![ask(Priority::Normal, "Keep the notes of the flood."), mark("beside it")]),
        1 => calls(vec![note("after it")]),
        _ => done(),
    }
}

/// One turn of calls that can't be made is a failure, after which an agent is restarted within milliseconds.
pub(in crate::kill_matrix) fn restarting(policy: &mut RunPolicy) {
    policy.agent.limits.failed_turns_max = 1;
    policy.agent.limits.retry.backoff_base_ms = 3;
    self::policy(policy);
}

fn flood(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("flood 0"), shell("flood")]),
        1 => calls(vec![("no_such_tool", json!({}))]),
        2 => calls(vec![note("flood 2"), mark("flood")]),
        _ => done(),
    }
}

fn fire(answers: u32) -> Say {
    match answers {
        0 => Say::FailsOnce(Box::new(calls(vec![note("fire")]))),
        _ => done(),
    }
}
