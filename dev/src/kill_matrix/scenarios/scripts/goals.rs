//! Claims that a judge rejects and confirms, and a judge that can't be reached at first.

use provost_engine::judged_spawn_tool;
use provost_event::{GoalPolicy, ModelPolicy, RunPolicy};
use serde_json::json;

use super::{calls, done, note, stop_hook};
use crate::kill_matrix::scenario::{JUDGE, Say, SubAgent};

const PART: &str = "Keep the notes of the second half.";

pub(in super::super) const SUB_AGENTS: &[SubAgent] = &[(PART, claims)];

/// Claims twice that it is done: once too early for its stop hook and once too early for its judge.
pub(in super::super) fn claims(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("a")]),
        1 => Say::Text("I am done.".to_owned()),
        2 => calls(vec![note("b")]),
        3 => Say::Text("Now I am done.".to_owned()),
        4 => calls(vec![note("c")]),
        _ => done(),
    }
}

pub(in super::super) fn delegates(answers: u32) -> Say {
    let task = json!({ "goal": PART, "done_when": "All notes of the second half are kept." });
    match answers {
        0 => calls(vec![("spawn_agent", task), note("d")]),
        _ => done(),
    }
}

fn verdict(achieved: bool) -> Say {
    let verdict = json!({
        "achieved": achieved,
        "reasoning": "That is what the notes show.",
        "confidence": 0.9,
        "suggestions": ["keep another note"],
    });
    Say::Text(verdict.to_string())
}

/// A judge that times out, then gives no verdict, and then rejects.
pub(in super::super) fn judge(answers: u32) -> Say {
    match answers {
        0 => Say::Limited,
        1 => Say::Text("It looks good to me.".to_owned()),
        2 => verdict(false),
        _ => verdict(true),
    }
}

/// A judge that rejects at an interval and at the limit.
pub(in super::super) fn patient_judge(answers: u32) -> Say {
    verdict(answers >= 2)
}

fn goal() -> Box<GoalPolicy> {
    Box::new(GoalPolicy::new("All notes are kept.", ModelPolicy::new(JUDGE, 300)))
}

pub(in super::super) fn policy(policy: &mut RunPolicy) {
    policy.agent.goal = Some(goal());
    let command = "grep -q '\"tool_calls\":[2-9]' || { echo 'a note is missing'; exit 2; }";
    policy.agent.stop_hooks = vec![stop_hook(command)];
}

pub(in super::super) fn limited(policy: &mut RunPolicy) {
    policy.agent.goal = Some(Box::new(GoalPolicy { verify_every: Some(2), ..*goal() }));
    policy.agent.limits.turns_max = 3;
}

pub(in super::super) fn judged_agent(policy: &mut RunPolicy) {
    policy.agent.tools.push(judged_spawn_tool());
    policy.judging = Some(goal());
}
