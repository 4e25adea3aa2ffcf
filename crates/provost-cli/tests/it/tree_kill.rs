//! Trees of agents across kill -9 of the process that works on them: resumed, the same end, the same invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::control::{entries, lawful, log};
use crate::support::{Scene, until};

const SLOTS: usize = 4;
/// Effects of an undisturbed run.
const EFFECTS: usize = 3 * 3 + 1 + 2;

/// Three low-priority agents and a busy one fill more than the slots; a critical one preempts a low one.
const SETTINGS: &str = "
[spawn]
max_agents = 4
max_depth = 2

[[agents]]
name = \"patient\"
description = \"For what can wait.\"
priority = \"background\"

[[agents]]
name = \"urgent\"
description = \"For what can't.\"
priority = \"critical\"
";

fn script() -> String {
    let effect = |name: &str| format!("shell: {{ command: echo {name} >> effects; sleep 0.05 }}");
    let turns = |name: &str, count: usize| {
        (0..count)
            .map(|n| format!("      - tools: [{{ {} }}]\n", effect(&format!("{name}-{n}"))))
            .collect::<String>()
    };
    let patient = |n: usize| {
        let (turns, text) = (turns(&format!("patient-{n}"), 3), format!("patient {n} is done"));
        format!("  - goal: patient {n}\n    answers:\n{turns}      - text: {text}\n")
    };
    let asks = (1..=3).map(|n| format!("      - patient: {{ goal: patient {n} }}\n")).collect::<String>();
    let busy = turns("busy", 1).replacen("- tools", "- text: hurry\n        tools", 1);
    format!(
        "answers:\n  - tools:\n      - spawn_agent: {{ goal: busy }}\n{asks}  - text: all is done\nagents:\n{}  - goal: busy\n    answers:\n{busy}      - tools: [{{ urgent: {{ goal: fire 1 }} }}, {{ urgent: {{ goal: fire 2 }} }}]\n      - text: busy is done\n{}",
        (1..=3).map(patient).collect::<String>(),
        (1..=2)
            .map(|n| format!(
                "  - goal: fire {n}\n    answers:\n{}      - text: fire {n} is out\n",
                turns(&format!("fire-{n}"), 1)
            ))
            .collect::<String>()
    )
}

fn scene() -> Scene {
    Scene::scripted(&script()).with_settings(SETTINGS)
}

fn effects(scene: &Scene) -> Vec<String> {
    let text = fs::read_to_string(scene.path("work/effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The agents' final answers, by their goals.
fn last_texts(log: &[Value]) -> BTreeMap<String, String> {
    let goals = entries(log, "session_started");
    let goals = goals.into_iter().map(|entry| (entry["actor"].to_string(), entry["goal"].to_string()));
    let goals = goals.collect::<BTreeMap<_, _>>();
    let mut texts = BTreeMap::new();
    for message in entries(log, "assistant_message") {
        let texts_of_it = message["content"].as_array().unwrap().iter().filter_map(|block| block.get("text"));
        texts
            .extend(texts_of_it.map(|text| (goals[&message["actor"].to_string()].clone(), text.to_string())));
    }
    texts
}

/// The laws of a tree, by the run's log alone. Returns how often an agent was preempted.
#[track_caller]
fn tree_is_lawful(log: &[Value]) -> usize {
    let root = log.iter().find(|entry| entry["type"] == "session_started").unwrap()["actor"].clone();
    let (mut at_work, mut waits) = (BTreeSet::from([root.to_string()]), BTreeSet::new());
    let (mut yielded, mut finished, mut at) = (0, BTreeSet::new(), Value::Null);
    let run = log.iter().filter(|entry| !entry["actor"].as_str().unwrap().contains('.'));
    for entry in run {
        // Entries of one decision have the same time.
        if entry["at_ms"] != at {
            assert!(
                at_work.len() == SLOTS || waits.is_empty(),
                "before {entry}: {waits:?} wait, {at_work:?} work"
            );
        }
        at = entry["at_ms"].clone();
        let child = entry["child"].to_string();
        match entry["type"].as_str().unwrap() {
            "agent_spawned" => assert!(waits.insert(child), "{entry}"),
            "agent_started" => {
                assert!(waits.remove(&child) && at_work.insert(child), "{entry}");
                assert!(at_work.len() <= SLOTS, "{entry}: {at_work:?}");
            }
            "agent_suspended" => {
                assert!(entry["outcome"]["why"]["preempted"].is_object(), "{entry}");
                assert!(at_work.remove(&child) && waits.insert(child), "{entry}");
                yielded += 1;
            }
            "agent_finished" => {
                assert_eq!(entry["outcome"]["kind"], "completed", "{entry}");
                assert!(at_work.remove(&child) && finished.insert(child), "{entry}");
            }
            _ => {}
        }
    }
    assert!(waits.is_empty(), "never went on: {waits:?}");
    assert_eq!(finished.len(), entries(log, "agent_spawned").len());
    yielded
}

/// A run whose worker is killed as soon as there are this many effects; each time another one continues.
#[track_caller]
fn killed_at(moments: &[usize], undisturbed: &BTreeMap<String, String>) {
    let scene = scene();
    let mut args = ["run", "x"];
    for moment in moments {
        let running = scene.start(&args);
        until("it has come so far", || (effects(&scene).len() >= *moment).then_some(()));
        running.kill();
        args = ["resume", "last"];
    }
    let done = scene.provost(&args);
    assert_eq!(done.status, 0, "{moments:?}: {done:?}");
    let log = log(&scene);
    lawful(&log);
    tree_is_lawful(&log);
    assert_eq!(&last_texts(&log), undisturbed, "{moments:?}");
    let done = effects(&scene);
    assert_eq!(
        done.iter().collect::<BTreeSet<_>>().len(),
        done.len(),
        "{moments:?}: nothing twice in {done:?}"
    );
    let finished = entries(&log, "tool_finished");
    let unknown = finished.iter().filter(|entry| entry["status"] == "unknown").count();
    assert!(done.len() + unknown >= EFFECTS, "{moments:?}: {unknown} unknown, and {done:?}");
}

#[test]
fn a_tree_whose_worker_is_killed_comes_to_the_same_end() {
    let scene = scene();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let log = log(&scene);
    lawful(&log);
    assert!(tree_is_lawful(&log) > 0, "an agent yields");
    assert_eq!(effects(&scene).len(), EFFECTS);
    let undisturbed = last_texts(&log);
    assert_eq!(undisturbed.len(), 7, "{undisturbed:?}");
    killed_at(&[2, 6], &undisturbed);
    killed_at(&[1, 9], &undisturbed);
}
