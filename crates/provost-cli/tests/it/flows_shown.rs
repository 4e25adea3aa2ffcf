//! The output about a flow: its steps in `show`, and commands about one agent where there is no first agent.

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::on_terminal::on_terminal;
use crate::support::{Running, Scene, gone, json, line_in, until};

/// The script of each step, by its goal. `build` has a sub-agent, which never ends by itself.
const SCRIPT: &str = r#"
answers: [{ text: "no agent was meant" }]
agents:
  - goal: plan it
    answers:
      - tools: [{ shell: { command: "true" } }]
      - text: It is planned.
  - goal: build it
    answers:
      - tools: [{ spawn_agent: { name: helper, goal: help out } }]
  - goal: help out
    answers:
      - tools: [{ shell: { command: "trap '' TERM; echo $$ > started; while true; do sleep 0.1; done" } }]
  - goal: check it
    answers: [{ text: "It is bad.\nVERDICT: FAIL" }]
"#;

const FLOW: &str = r#"
[flow]
name = "release"

[[flow.steps]]
name = "plan"
goal = "plan it"

[[flow.steps]]
name = "check"
needs = ["plan"]
goal = "check it"
on_failure = "skip"
retry = 1

[[flow.steps]]
name = "sign"
needs = ["check"]
goal = "sign it"

[[flow.steps]]
name = "ship"
needs = ["build", "sign"]
goal = "ship it"

[[flow.steps]]
name = "build"
needs = ["check", "plan"]
goal = "build it"
"#;

/// A flow of which `build` and its sub-agent work.
fn at_work(flow: &str) -> (Scene, Running, String) {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", flow);
    let running = scene.start(&["flow", "run", "flow.toml"]);
    let pid = line_in(&scene.path("work/started"));
    (scene, running, pid)
}

fn check_has_failed(scene: &Scene) {
    let log = || scene.provost(&["logs", "last"]).stdout;
    until("check has failed for good", || log().contains("step check has failed").then_some(()));
}

/// The same, except that `build` doesn't need `check`, and `sign` needs `build`.
fn apart_from_check() -> String {
    FLOW.replace("needs = [\"check\", \"plan\"]", "needs = [\"plan\"]")
        .replace("needs = [\"check\"]", "needs = [\"build\"]")
        .replace("needs = [\"build\", \"sign\"]", "needs = [\"build\", \"check\"]")
}

/// The lines of a page from the tree's heads on, without the parts that vary.
fn tree(page: &str) -> String {
    let lines = page.lines().skip_while(|line| !line.starts_with("STEP"));
    let number = |part: &str| part.parse::<u32>().is_ok();
    let cut = |line: &str| {
        let parts = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
        let parts = parts.map(|part| if number(part) { "N" } else { part }).take(3);
        parts.collect::<Vec<_>>().join(" | ") + "\n"
    };
    lines.take_while(|line| !line.is_empty()).map(cut).collect()
}

#[track_caller]
fn check_tree(page: &str, expected: Expect) {
    expected.assert_eq(&tree(page));
}

#[test]
fn show_has_each_step_with_how_it_stands_and_its_helpers_below() {
    let (scene, running, pid) = at_work(&apart_from_check());
    check_has_failed(&scene);
    let page = scene.provost(&["show", "last"]);
    check_tree(
        &page.stdout,
        expect![[r#"
        STEP | AGENT | STATE
        plan | N | done
        check | N | failed: verdict FAIL
        sign | waits for build | normal
        ship | skipped because of check | ship it
        build | N | at work
        └ helper | N | working
    "#]],
    );
    assert!(page.stdout.contains("1 tool call, by all agents"), "{page:?}");
    let whole = json(&scene.provost(&["show", "last", "--json"]).stdout);
    let step = |step: &Value| {
        format!("{} {} {} {}", step["step"], step["state"], step["agent"].is_u64(), step["attempt"])
    };
    let steps = whole["steps"].as_array().unwrap().iter().map(step).collect::<Vec<_>>();
    expect![[r#"
        "plan" "done" true 1
        "check" "failed" true 2
        "sign" "waiting" false 1
        "ship" "skipped" false 1
        "build" "at work" true 1"#]]
    .assert_eq(&steps.join("\n"));
    assert_eq!(whole["tool_calls"], 1);
    let followed = on_terminal(&scene, &["show", "last", "-f"], &[("ship", "!kill -9 $(cat started)")]);
    assert!(followed.stdout.contains("STEP"), "{followed:?}");
    drop(running);
    gone(&pid);
}

#[test]
fn a_message_to_a_workflow_needs_a_number() {
    let (scene, running, pid) = at_work(&apart_from_check());
    let refused = scene.provost(&["say", "last", "hello"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    let run = scene.last_run();
    let stable = refused.stderr.replace(&run, "RUN");
    assert!(stable.contains("error: run RUN is a workflow, and no one agent stands for it"), "{stable}");
    assert!(stable.contains("build") && stable.contains("helper"), "{stable}");
    assert!(stable.contains("hint: provost say RUN.") && !stable.contains(".0"), "{stable}");
    for command in
        [&["say", "last.0", "hello"][..], &["pause", "last.0"], &["explain", "last.0"], &["logs", "last.0"]]
    {
        let refused = scene.provost(command);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(!refused.stderr.contains("0 to"), "{refused:?}");
    }
    let hint = stable.lines().find_map(|line| line.strip_prefix("hint: provost say RUN.")).unwrap();
    let number = hint.split(' ').next().unwrap();
    let said = scene.provost(&["say", &format!("{run}.{number}"), "hello"]);
    assert_eq!(said.status, 0, "{said:?}");
    check_has_failed(&scene);
    assert_eq!(scene.provost(&["cancel", "last"]).status, 0);
    running.end();
    gone(&pid);
    let page = scene.provost(&["show", "last"]);
    check_tree(
        &page.stdout,
        expect![[r#"
        STEP | AGENT | STATE
        plan | N | done
        check | N | failed: verdict FAIL
        sign | never begun | sign it
        ship | skipped because of check | ship it
        build | N | cancelled by provost cancel
        └ helper | N | cancelled by provost cancel
    "#]],
    );
}

#[test]
fn what_needs_a_failed_step_says_so() {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", FLOW);
    assert_eq!(scene.provost(&["flow", "run", "flow.toml"]).status, 1);
    let page = scene.provost(&["show", "last"]);
    check_tree(
        &page.stdout,
        expect![[r#"
        STEP | AGENT | STATE
        plan | N | done
        check | N | failed: verdict FAIL
        sign | skipped because of check | sign it
        ship | skipped because of check | ship it
        build | skipped because of check | build it
    "#]],
    );
}

#[test]
fn the_status_line_counts_steps_and_no_agent_that_is_not_there() {
    let scene = Scene::scripted(SCRIPT);
    let only = "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"a\"\ngoal = \"help out\"\n";
    scene.write("work/flow.toml", only);
    let shown = on_terminal(
        &scene,
        &["flow", "run", "flow.toml"],
        &[("0 of 1 step done", ""), ("● working", "!provost_pid=$(cat started); kill -9 $provost_pid")],
    );
    assert!(!shown.stdout.contains("at work ·"), "{shown:?}");
}
