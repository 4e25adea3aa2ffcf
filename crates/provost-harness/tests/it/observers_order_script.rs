//! Runs from seeds: the answers of their agents, as one script, and their policies.

use fastrand::Rng;
use provost_event::{
    Budget, FlowPolicy, Permission, PermissionPolicy, Priority, RunPolicy, SpawnBudget, StepPolicy,
};

use crate::tree_stage::{act, policy};

/// The script of a run: every agent calls tools, spawns others, and asks its first one again.
pub(crate) struct Script {
    text: String,
    random: Rng,
    next: u32,
    unwritten: Vec<(u32, u32)>,
}

impl Script {
    pub(crate) fn of(seed: u64) -> String {
        let mut script =
            Self { text: String::new(), random: Rng::with_seed(seed), next: 1, unwritten: Vec::new() };
        script.text.push_str("answers:\n");
        script.write_answers("  ", 0);
        script.text.push_str("agents:\n");
        // The steps of a workflow, which may not be spawned by anyone.
        script.next = script.next.max(4);
        for step in 1..4 {
            if !script.unwritten.iter().any(|(number, _)| *number == step) {
                script.unwritten.push((step, 1));
            }
        }
        while let Some((number, depth)) = script.unwritten.pop() {
            script.text.push_str(&format!("  - goal: \"{}\"\n    answers:\n", goal(number)));
            script.write_answers("      ", depth);
            script.text.push_str("    final_summary: { text: so far, usage: { input: 40, output: 3 } }\n");
        }
        script.text
    }

    fn write_answers(&mut self, indent: &str, depth: u32) {
        let turns = self.random.u32(1..4);
        for turn in 0..turns {
            let delay = self.random.u32(0..3);
            self.text.push_str(&format!(
                "{indent}- delay_ms: {delay}\n{indent}  usage: {{ input: 90, output: 20 }}\n"
            ));
            self.text.push_str(&format!("{indent}  tools:\n"));
            for _ in 0..self.random.u32(1..4) {
                let call = self.call(depth);
                self.text.push_str(&format!("{indent}    - {call}\n"));
            }
            if depth == 0 && turn + 1 == turns {
                self.text.push_str(&format!("{indent}    - normal: {{ goal: and now, agent: \"1\" }}\n"));
            }
        }
        // More answers than segments: each of them is one end.
        for _ in 0..6 {
            self.text.push_str(&format!("{indent}- {{ text: done, usage: {{ input: 90, output: 20 }} }}\n"));
        }
    }

    fn call(&mut self, depth: u32) -> String {
        let number = self.random.u32(..);
        match self.random.u32(0..10) {
            0..3 => format!("act: {{ number: {number} }}"),
            3 => format!("asked: {{ number: {number} }}"),
            4 => format!("denied: {{ number: {number} }}"),
            5 => format!("unknown: {{ number: {number} }}"),
            _ if depth < 3 && self.next < 25 => {
                let child = self.next;
                self.next += 1;
                self.unwritten.push((child, depth + 1));
                format!(
                    "{}: {{ goal: \"{}\" }}",
                    self.random.choice(["normal", "high"]).unwrap(),
                    goal(child)
                )
            }
            _ => format!("act: {{ number: {number} }}"),
        }
    }
}

fn goal(number: u32) -> String {
    format!("task {number:04}.")
}

pub(crate) fn policy_of(seed: u64) -> RunPolicy {
    let spawn = SpawnBudget {
        max_agents: 1 + u32::try_from(seed % 4).unwrap() * 2,
        max_depth: 4,
        ..SpawnBudget::default()
    };
    let mut policy = policy(spawn, |_| Budget::default());
    let tools = ["asked", "denied"].map(|name| provost_event::ToolSpec { name: name.into(), ..act() });
    let permissions = PermissionPolicy {
        ask: vec!["asked".to_owned()],
        deny: vec!["denied".to_owned()],
        default: Permission::Allow,
        ..PermissionPolicy::default()
    };
    let agents = policy.agents.iter_mut().map(|sub_agent| &mut sub_agent.agent);
    for agent in agents.chain([&mut policy.agent]) {
        agent.tools.extend(tools.clone());
        agent.permissions = permissions.clone();
    }
    if seed % 3 == 1 {
        policy.budget.tokens = Some(1_500);
    }
    if seed % 5 == 4 {
        let step = |name: &str, number: u32, needs: &[&str]| StepPolicy {
            name: name.to_owned(),
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            agent: None,
            goal: goal(number),
            stop_hooks: Vec::new(),
            attempts_max: 2,
            restarts_max: None,
            on_failure: provost_event::OnStepFailure::default(),
            budget: Budget::default(),
            priority: Priority::Normal,
        };
        let steps = vec![step("one", 1, &[]), step("two", 2, &[]), step("three", 3, &["one"])];
        policy.flow = Some(FlowPolicy { name: "night".to_owned(), file: None, steps });
    }
    policy
}
