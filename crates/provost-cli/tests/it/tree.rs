//! Trees of agents from outside: no process is left when they are cancelled or their worker is killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::control::{entries, lawful, log};
use crate::support::{Running, Scene, until};

const AGENTS: usize = 8;
/// The processes of each agent's command: itself, a fork, and one in a session of its own.
const PROCESSES: usize = 3 * AGENTS;
/// How long a command may take to end, and additional time for a busy machine.
const GRACE: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(3);

/// All its processes ignore a request to end.
const STUBBORN: &str = "
trap '' TERM HUP INT
stay='trap \"\" TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done'
sh -c \"$stay\" &
setsid sh -c \"$stay\" &
echo $$ >> pids
while :; do sleep 1; done
";

/// Eight working agents, each in a command that ignores a request to end, and their parent.
fn stubborn() -> (Scene, Running) {
    let spawns =
        (1..=AGENTS).map(|n| format!("      - spawn_agent: {{ goal: stubborn {n} }}\n")).collect::<String>();
    let command = serde_json::to_string(STUBBORN).unwrap();
    let script = format!(
        "answers:\n  - tools:\n{spawns}  - text: never\nagents:\n  - goal: stubborn\n    answers:\n      - tools: [{{ shell: {{ command: {command} }} }}]\n      - text: never\n"
    );
    let scene = Scene::scripted(&script).with_settings("[spawn]\nmax_agents = 9\n");
    let running = scene.start(&["run", "x"]);
    until("all are at work", || {
        let pids = fs::read_to_string(scene.path("work/pids")).unwrap_or_default();
        (pids.lines().count() == PROCESSES).then_some(())
    });
    assert!(at_work_in(&scene.path("work")).len() >= PROCESSES);
    (scene, running)
}

/// The processes that have `folder` as their working directory; zombies have none.
fn at_work_in(folder: &Path) -> BTreeSet<u32> {
    let folder = folder.canonicalize().unwrap();
    let number = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse::<u32>().ok();
    let processes = fs::read_dir("/proc").unwrap().filter_map(number);
    let is_there = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
    processes.filter(is_there).collect()
}

/// Waits until no process has the scene's folder as its working directory; returns how long that took since
/// `began`.
fn all_gone(scene: &Scene, began: Instant) -> Duration {
    until("all processes are gone", || at_work_in(&scene.path("work")).is_empty().then(|| began.elapsed()))
}

#[test]
fn a_cancel_from_another_process_leaves_nothing_of_eight_agents_commands() {
    let (scene, running) = stubborn();
    let began = Instant::now();
    let cancelled = scene.provost(&["cancel", "last"]);
    assert_eq!(cancelled.status, 0, "{cancelled:?}");
    assert_eq!(running.end().status, 130, "cancelled");
    let took = all_gone(&scene, began);
    assert!(took < GRACE + SLACK, "{took:?}");
    println!("all gone after {took:?}");
    let log = log(&scene);
    lawful(&log);
    assert_eq!(entries(&log, "ended").len(), 1 + 1 + AGENTS, "the run, its root, and each agent");
    let finished = entries(&log, "agent_finished").into_iter().map(|entry| entry["child"].as_str().unwrap());
    assert_eq!(finished.filter(|agent| !agent.ends_with(".0")).count(), AGENTS);
}

#[test]
fn nothing_of_eight_agents_commands_outlives_a_kill_of_the_worker() {
    let (scene, running) = stubborn();
    let began = Instant::now();
    running.kill();
    let took = all_gone(&scene, began);
    assert!(took < GRACE + SLACK, "{took:?}");
    println!("all gone after {took:?}");
}
