//! `pause`, `resume`, `cancel`, `say` and `reprioritize` on one agent of a tree, also while another process works
//! on the run.

use std::fs;

use serde_json::Value;

use crate::support::{Done, Running, Scene, gone, json, line_in, until};

/// Lets sub-agents of the root start agents.
pub(crate) const DEEP: &str = "[spawn]\nmax_depth = 2\n";

/// The root has two sub-agents; the first has one itself. Each waits for a file of its own.
pub(crate) const TEAM: &str = "
answers:
  - tools:
      - spawn_agent: { goal: lead the others, name: lead }
      - spawn_agent: { goal: work beside, name: beside }
  - text: all are back
agents:
  - goal: lead the others
    answers:
      - tools: [{ spawn_agent: { goal: work below, name: below } }]
      - text: led
  - goal: work beside
    answers:
      - tools: [{ shell: { command: 'echo $$ > beside.pid; until test -e go-beside; do sleep 0.01; done' } }]
      - text: beside is done
  - goal: work below
    answers:
      - tools: [{ shell: { command: 'echo $$ > below.pid; until test -e go-below; do sleep 0.01; done' } }]
      - text: below is done
";

pub(crate) fn team_at_work(scene: &Scene) -> (Running, [String; 2]) {
    let running = scene.start(&["run", "team"]);
    let pids = ["beside.pid", "below.pid"].map(|name| line_in(&scene.path(&format!("work/{name}"))));
    (running, pids)
}

/// The agent with this name, as `show` has it.
pub(crate) fn agent(scene: &Scene, name: &str) -> Value {
    let shown = scene.provost(&["show", "last", "--json"]);
    let agents = json(shown.stdout.trim())["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("{name}: {shown:?}"))
}

/// Its name in commands.
fn of_last(scene: &Scene, name: &str) -> String {
    format!("last.{}", agent(scene, name)["agent"])
}

#[track_caller]
fn check(scene: &Scene, args: &[&str], status: i32, words: &str) {
    let Done { status: found, stdout, stderr } = scene.provost(args);
    assert_eq!((scene.stable(&format!("{stdout}{stderr}")).as_str(), found), (words, status));
}

fn is_empty(scene: &Scene) -> bool {
    ["go-beside", "go-below"].iter().all(|name| !scene.path(&format!("work/{name}")).exists())
}

#[test]
fn an_agent_and_those_below_it_rest_and_go_on_while_the_others_work() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, [_, below]) = team_at_work(&scene);
    let lead = of_last(&scene, "lead");
    let done = scene.provost(&["pause", &lead]);
    assert_eq!(done.status, 0, "{done:?}");
    assert!(
        done.stdout.contains("(lead) of run") && done.stdout.contains("suspended: paused by"),
        "{done:?}"
    );
    gone(&below);
    assert_eq!(agent(&scene, "below")["state"], "suspended");
    assert_eq!(agent(&scene, "beside")["state"], "working");
    fs::remove_file(scene.path("work/below.pid")).unwrap();
    assert!(is_empty(&scene));
    let on = scene.provost(&["resume", &lead]);
    assert_eq!(on.status, 0, "{on:?}");
    scene.write("work/go-below", "");
    scene.write("work/go-beside", "");
    let ended = running.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "all are back\n"), "{ended:?}");
}

#[test]
fn cancel_of_an_agent_ends_those_below_it_and_their_processes() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, [_, below]) = team_at_work(&scene);
    let lead = of_last(&scene, "lead");
    let done = scene.provost(&["cancel", &lead]);
    assert!(done.status == 0 && done.stdout.contains("has ended: cancelled by provost cancel"), "{done:?}");
    gone(&below);
    until("the one below has ended", || (agent(&scene, "below")["state"] == "done").then_some(()));
    let again = scene.provost(&["cancel", &lead]);
    assert!(again.status == 2 && again.stderr.contains("has ended: cancelled by"), "{again:?}");
    assert_eq!(agent(&scene, "beside")["state"], "working");
    scene.write("work/go-beside", "");
    assert_eq!(running.end().stdout, "all are back\n");
}

#[test]
fn what_is_said_to_one_agent_is_heard_by_it_alone() {
    let script = TEAM.replace(
        "      - text: beside is done",
        "      - expect: { contains: skip the docs }\n        text: beside is done",
    );
    let script = script.replace(
        "      - text: below is done",
        "      - expect: { not_contains: skip the docs }\n        text: below is done",
    );
    let scene = Scene::scripted(&script).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let beside = of_last(&scene, "beside");
    let number = agent(&scene, "beside")["agent"].clone();
    let words = format!(
        "said to agent {number} (beside) of run RUN: skip the docs\nthe agent gets it before its next model call\n"
    );
    check(&scene, &["say", &beside, "skip", "the docs"], 0, &words);
    scene.write("work/go-beside", "");
    scene.write("work/go-below", "");
    assert_eq!(running.end().stdout, "all are back\n");
}

#[test]
fn who_isnt_there_is_told_with_who_is() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    for command in ["pause", "cancel", "resume"] {
        let done = scene.provost(&[command, "last.9"]);
        assert_eq!(done.status, 2, "{done:?}");
        assert!(done.stderr.contains("has no agent 9") && done.stderr.contains("0 root"), "{done:?}");
        assert!(done.stderr.contains("lead") && done.stderr.contains("beside"), "{done:?}");
    }
    let words =
        "error: `last.x` names no agent: `x` is no number\nhint: e.g. RUN.1; `provost show RUN` draws them\n";
    check(&scene, &["pause", "last.x"], 2, words);
    let words = "error: `last` names a run, and a priority is an agent's\nhint: e.g. provost reprioritize RUN.1 high\n";
    check(&scene, &["reprioritize", "last", "high"], 2, words);
    let unclear = scene.provost(&["reprioritize", "last.1", "urgent"]);
    assert!(unclear.status == 2 && unclear.stderr.contains("background, low, normal, high"), "{unclear:?}");
    let limits = scene.provost(&["resume", "last.1", "--tokens", "5"]);
    assert!(limits.status == 2 && limits.stderr.contains("a limit of the whole run"), "{limits:?}");
    let beside = of_last(&scene, "beside");
    let same = scene.provost(&["reprioritize", &beside, "normal"]);
    assert!(same.stdout.contains("has priority normal already"), "{same:?}");
    let other = scene.provost(&["reprioritize", &beside, "low"]);
    assert!(other.stdout.contains("has priority low now, and is at work"), "{other:?}");
    assert_eq!(agent(&scene, "beside")["priority"], "low");
    let done = scene.provost(&["resume", &beside]);
    assert!(done.status == 0 && done.stdout.contains("is at work already"), "{done:?}");
    running.kill();
}

/// One slot besides the root's, and two agents for it.
const CROWD: &str = "
answers:
  - tools:
      - spawn_agent: { goal: come first, name: first }
      - spawn_agent: { goal: come second, name: second }
  - text: both are done
agents:
  - goal: come first
    answers:
      - tools: [{ shell: { command: 'echo $$ > first.pid; until test -e go; do sleep 0.01; done' } }]
      - text: done
  - goal: come second
    answers: [{ text: done }]
";

#[test]
fn an_agent_in_the_line_is_told_of_and_can_be_taken_out() {
    let scene = Scene::scripted(CROWD).with_settings("[spawn]\nmax_agents = 2\n");
    let running = scene.start(&["run", "crowd"]);
    line_in(&scene.path("work/first.pid"));
    until("an agent waits", || (agent(&scene, "second")["state"] == "queued").then_some(()));
    let said = scene.provost(&["say", "last.2", "hello"]);
    assert!(said.status == 2 && said.stderr.contains("hasn't begun"), "{said:?}");
    let resumed = scene.provost(&["resume", "last.2"]);
    assert!(resumed.status == 0 && resumed.stdout.contains("begins when there is a slot"), "{resumed:?}");
    let cancelled = scene.provost(&["cancel", "last.2"]);
    assert!(cancelled.stdout.contains("agent 2 (second) of run"), "{cancelled:?}");
    assert!(cancelled.stdout.contains("has ended: cancelled by"), "{cancelled:?}");
    scene.write("work/go", "");
    assert_eq!(running.end().stdout, "both are done\n");
}

/// Posts a request while the process that works on the run is stopped, and kills that process.
fn killed_behind(scene: &Scene, command: &str, name: &str, more: &[&str]) -> Done {
    let (running, pids) = team_at_work(scene);
    let name = of_last(scene, name);
    let args = [&[command, name.as_str()], more].concat();
    running.signal("STOP");
    let wish = scene.start(&args);
    // That of the stopped process, and that of the one that waits for its decision.
    let sockets = || std::fs::read_dir(scene.path("state/wake")).unwrap().count();
    until("the wish waits for a decision", || (sockets() == 2).then_some(()));
    running.kill();
    pids.iter().for_each(|pid| gone(pid));
    let done = wish.end();
    assert_eq!(done.status, 0, "{done:?}");
    done
}

fn let_go(scene: &Scene) {
    ["go-beside", "go-below"].iter().for_each(|name| scene.write(&format!("work/{name}"), ""));
}

#[test]
fn a_cancel_outlives_the_process_that_was_to_hear_it() {
    for name in ["beside", "lead"] {
        let scene = Scene::scripted(TEAM).with_settings(DEEP);
        let done = killed_behind(&scene, "cancel", name, &[]);
        let recorded = done.stdout.contains("is to end\nno process works on the run now");
        // An idle agent has ended at once, and its sub-agents are cancelled.
        assert!(recorded || name == "lead", "{done:?}");
        let_go(&scene);
        let ended = scene.provost(&["resume", "last"]);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "all are back\n"), "{ended:?}");
        assert_eq!(agent(&scene, name)["outcome_text"], "cancelled by provost cancel");
        assert_eq!(agent(&scene, "below")["outcome"]["kind"] == "cancelled", name == "lead");
    }
}

#[test]
fn a_pause_outlives_it_too() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let done = killed_behind(&scene, "pause", "beside", &[]);
    assert!(done.stdout.contains("is to be suspended\nno process works on the run now"), "{done:?}");
    let_go(&scene);
    let suspended = scene.provost(&["resume", "last"]);
    assert_eq!(suspended.status, 4, "it is suspended when nothing else is left to do: {suspended:?}");
    assert_eq!(agent(&scene, "beside")["outcome_text"], "paused by provost pause");
    assert_eq!(agent(&scene, "lead")["state"], "done");
    let alone = scene.provost(&["resume", &of_last(&scene, "beside")]);
    assert!(alone.status == 2 && alone.stderr.contains("is suspended with the whole run"), "{alone:?}");
    assert_eq!(scene.provost(&["resume", "last"]).stdout, "all are back\n");
}

#[test]
fn words_and_a_priority_outlive_it_too() {
    for (command, word) in [("say", "hello"), ("reprioritize", "low")] {
        let scene = Scene::scripted(TEAM).with_settings(DEEP);
        killed_behind(&scene, command, "beside", &[word]);
        let_go(&scene);
        assert_eq!(scene.provost(&["resume", "last"]).stdout, "all are back\n");
        let log = scene.provost(&["logs", "last", "--json"]).stdout;
        assert!(log.contains(r#""text":"hello""#) || log.contains(r#""type":"reprioritized""#), "{log}");
    }
}

#[test]
fn on_an_interrupted_run_a_wish_is_recorded_and_acknowledged_as_such() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, pids) = team_at_work(&scene);
    running.kill();
    pids.iter().for_each(|pid| gone(pid));
    let beside = of_last(&scene, "beside");
    let done = scene.provost(&["cancel", &beside]);
    assert!(done.status == 0 && done.stdout.contains("recorded: "), "{done:?}");
    assert!(done.stdout.contains("it does so with: provost resume"), "{done:?}");
    let said = scene.provost(&["say", "last.1", "hello"]);
    assert!(
        said.stdout.contains("no process holds the run; the agent gets it with: provost resume"),
        "{said:?}"
    );
    scene.write("work/go-below", "");
    let ended = scene.provost(&["resume", "last"]);
    assert_eq!(ended.stdout, "all are back\n", "{ended:?}");
    assert_eq!(agent(&scene, "beside")["outcome_text"], "cancelled by provost cancel");
}
