//! `provost flow`: a workflow from a file, through the real program.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::support::{Done, Running, Scene, gone, json, line_in};

/// The script of each step, by its goal.
const SCRIPT: &str = r#"
answers: [{ text: "no agent was meant" }]
agents:
  - goal: write the notes
    answers:
      - tools: [{ shell: { command: "echo plan >> effects" } }]
      - text: The plan is to do it.
  - goal: build it
    answers:
      - tools: [{ shell: { command: "echo build >> effects" } }]
      - text: It is built.
  - goal: describe it
    answers: [{ text: It is described. }]
  - goal: ship it
    answers:
      - expect: { contains: ["It is built.", "It is described."] }
        text: It is shipped.
"#;

const FLOW: &str = r#"
[flow]
name = "release"

[[flow.steps]]
name = "ship"
needs = ["build", "describe"]
goal = "ship it"

[[flow.steps]]
name = "plan"
goal = "write the notes"

[[flow.steps]]
name = "build"
needs = ["plan"]
goal = "build it"

[[flow.steps]]
name = "describe"
needs = ["plan"]
goal = "describe it"
"#;

fn scene(flow: &str) -> Scene {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", flow);
    scene
}

/// A flow of these steps.
fn steps(steps: &str) -> String {
    format!("[flow]\nname = \"f\"\n\n{steps}")
}

/// The entries of a kind in the newest run's log, in the order in which they were made.
fn entries(scene: &Scene, kind: &str) -> Vec<Value> {
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    log.lines().map(json).filter(|entry| entry["type"] == kind).collect()
}

/// The steps' ends, a word each.
fn ends(scene: &Scene) -> Vec<String> {
    let ends = entries(scene, "step_ended");
    let word =
        |end: &Value| format!("{} {}", end["step"].as_str().unwrap(), end["end"]["kind"].as_str().unwrap());
    ends.iter().map(word).collect()
}

fn effects(scene: &Scene) -> String {
    fs::read_to_string(scene.path("work/effects")).unwrap_or_default()
}

#[track_caller]
fn ok(done: &Done) {
    assert_eq!(done.status, 0, "{done:?}");
}

#[test]
fn a_flow_runs_its_steps_in_the_order_of_their_needs() {
    let scene = scene(FLOW);
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    ok(&done);
    assert_eq!(done.stdout, "It is shipped.\n");
    assert_eq!(effects(&scene), "plan\nbuild\n");
    let ends = ends(&scene);
    assert_eq!((ends[0].as_str(), ends[3].as_str(), ends.len()), ("plan done", "ship done", 4));
    for command in
        [&["ps"][..], &["show", "last"], &["show", "last", "--json"], &["explain", "last"], &["cost"]]
    {
        ok(&scene.provost(command));
    }
    assert!(scene.provost(&["ps"]).stdout.contains("release"));
    let again = scene.provost(&["resume", "last"]);
    assert_eq!(again.status, 2, "{again:?}");
}

#[test]
fn several_last_steps_are_told_each_under_its_name() {
    let last = steps(
        "[[flow.steps]]\nname = \"one\"\ngoal = \"build it\"\n\n[[flow.steps]]\nname = \"two\"\ngoal = \"describe it\"\n",
    );
    let done = scene(&last).provost(&["flow", "run", "flow.toml", "--max-agents", "1"]);
    ok(&done);
    assert_eq!(done.stdout, "## one\n\nIt is built.\n\n## two\n\nIt is described.\n");
}

#[test]
fn json_prints_every_entry_and_nothing_else() {
    let done = scene(FLOW).provost(&["flow", "run", "flow.toml", "--json"]);
    ok(&done);
    let kinds = done.stdout.lines().map(|line| json(line)["type"].as_str().unwrap().to_owned());
    let kinds = kinds.collect::<Vec<_>>();
    assert_eq!(kinds.iter().filter(|kind| *kind == "session_started").count(), 4);
    assert_eq!(kinds.iter().filter(|kind| *kind == "step_ended").count(), 4);
    assert_eq!(kinds.last().map(String::as_str), Some("ended"));
}

#[test]
fn a_step_may_be_for_a_configured_agent_with_a_model_of_its_own() {
    let flow = steps("[[flow.steps]]\nname = \"look\"\nagent = \"reader\"\ngoal = \"build it\"\n");
    let scene = scene(&flow).with_settings(
        "[[agents]]\nname = \"reader\"\ndescription = \"reads\"\nmodel = \"script:reader.yaml\"\ntools = [\"read_file\"]\n",
    );
    scene.write("work/reader.yaml", "answers: [{ expect: { offers: [read_file] }, text: I have read it. }]");
    let done = scene.provost(&["flow", "run", "flow.toml", "--max-agents", "1"]);
    ok(&done);
    assert_eq!(done.stdout, "I have read it.\n");
}

#[test]
fn what_a_flows_file_runs_must_be_trusted_first() {
    let flow = steps(
        "[[flow.steps]]\nname = \"b\"\ngoal = \"build it\"\nstop_hooks = [{ command = \"touch ran\" }]\n",
    );
    let scene = scene(&flow);
    let refused = scene.provost(&["flow", "run", "flow.toml"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    expect![[r#"
        error: the project's files want what you haven't agreed to
            flow.toml:7:15: runs when step b wants to stop (stop hook check-1)
                touch ran
        hint: nothing of this was done; `provost trust --flow flow.toml` in /FOLDER/work shows it and asks you
    "#]]
    .assert_eq(&scene.stable(&refused.stderr));
    assert!(!scene.path("work/ran").exists() && effects(&scene).is_empty());
    ok(&scene.provost(&["trust", "--flow", "flow.toml", "--yes"]));
    ok(&scene.provost(&["flow", "run", "flow.toml"]));
    assert!(scene.path("work/ran").exists());
    scene.write("work/flow.toml", &flow.replace("touch ran", "touch evil"));
    assert_eq!(scene.provost(&["flow", "run", "flow.toml"]).status, 2, "a change needs trust again");
    let checked = scene.provost(&["flow", "check", "flow.toml"]);
    assert!(checked.status == 0 && checked.stdout.contains("it needs your trust first"), "{checked:?}");
}

#[test]
fn a_step_that_asks_rests_the_run_until_resume_tries_it_again() {
    let flow = steps(
        "[[flow.steps]]\nname = \"b\"\ngoal = \"build it\"\non_failure = \"ask\"\nstop_hooks = [\"gate\"]\n\n\
         [[flow.steps]]\nname = \"d\"\ngoal = \"describe it\"\nneeds = [\"b\"]\n",
    );
    let scene = scene(&flow)
        .with_settings(
            "[[stop_hooks]]\nname = \"gate\"\ncommand = \"test -f open || { echo closed; exit 3; }\"\n",
        )
        .trusted();
    let paused = scene.provost(&["flow", "run", "flow.toml"]);
    assert_eq!(paused.status, 4, "{paused:?}");
    assert!(paused.stderr.contains("step `b` has failed (aborted by gate: closed)"), "{paused:?}");
    assert!(paused.stderr.contains("provost resume"), "{paused:?}");
    scene.write("work/open", "");
    let done = scene.provost(&["resume", "last"]);
    ok(&done);
    assert_eq!(done.stdout, "It is described.\n");
    assert_eq!(ends(&scene), ["b failed", "b done", "d done"]);
}

#[test]
fn a_failed_step_is_tried_again_and_then_gives_the_flow_up() {
    let scene = Scene::scripted(
        r#"
answers:
  - tools: [{ shell: { command: "echo try >> effects; test $(wc -l < effects) -ge 2" } }]
  - expect: { tool_result: { is_error: false } }
    text: It works.
"#,
    );
    let flow = |retry: u32| {
        steps(&format!("[[flow.steps]]\nname = \"b\"\ngoal = \"make it work\"\nretry = {retry}\n"))
    };
    scene.write("work/flow.toml", &flow(1));
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    ok(&done);
    assert_eq!((done.stdout.as_str(), effects(&scene).as_str()), ("It works.\n", "try\ntry\n"));
    assert_eq!(ends(&scene), ["b again", "b done"]);
    fs::remove_file(scene.path("work/effects")).unwrap();
    scene.write("work/flow.toml", &flow(0));
    let failed = scene.provost(&["flow", "run", "flow.toml"]);
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(failed.stderr.contains("a step of the workflow has failed: `b`"), "{failed:?}");
}

/// The process is killed while a step works; the resumed run continues there.
#[test]
fn a_flow_goes_on_after_its_process_was_killed() {
    let slow = SCRIPT.replace(
        "echo build >> effects",
        "echo build >> effects; echo $$ > started; while ! test -f go; do sleep 0.01; done",
    );
    let scene = Scene::scripted(&slow);
    scene.write("work/flow.toml", FLOW);
    let running = scene.start(&["flow", "run", "flow.toml"]);
    line_in(&scene.path("work/started"));
    running.kill();
    scene.write("work/go", "");
    let done = scene.provost(&["resume", "last"]);
    ok(&done);
    assert_eq!(done.stdout, "It is shipped.\n");
    assert_eq!(effects(&scene), "plan\nbuild\n", "nothing was done twice");
    assert_eq!(entries(&scene, "session_started").len(), 4);
    assert_eq!(ends(&scene).len(), 4);
}

/// The same at random moments.
#[test]
fn a_flow_survives_kills_at_any_moment() {
    for delay in [0, 30, 60, 90] {
        let scene = scene(FLOW);
        let running = scene.start(&["flow", "run", "flow.toml"]);
        std::thread::sleep(std::time::Duration::from_millis(delay));
        running.kill();
        let is_there = !scene.provost(&["ps", "--json"]).stdout.is_empty();
        let done = if is_there {
            scene.provost(&["resume", "last"])
        } else {
            scene.provost(&["flow", "run", "flow.toml"])
        };
        // Killed just after its end, it has nothing left to resume.
        assert!(done.status == 0 || done.stderr.contains("all steps of run"), "{delay} ms: {done:?}");
        let ends = ends(&scene);
        assert_eq!((ends.len(), ends[3].as_str()), (4, "ship done"), "{delay} ms");
        assert_eq!(entries(&scene, "session_started").len(), 4, "{delay} ms");
        let effects = effects(&scene);
        for word in ["plan", "build"] {
            assert!(effects.matches(word).count() <= 1, "{delay} ms: {effects}");
        }
    }
}

/// A flow whose second step is in the middle of a command that ends by itself.
fn in_the_middle() -> (Scene, Running, String) {
    let slow = SCRIPT
        .replace("echo build >> effects", "trap '' TERM; echo $$ > started; while true; do sleep 0.1; done");
    let scene = Scene::scripted(&slow);
    scene.write("work/flow.toml", FLOW);
    let running = scene.start(&["flow", "run", "flow.toml"]);
    let pid = line_in(&scene.path("work/started"));
    (scene, running, pid)
}

#[test]
fn a_flow_is_paused_from_elsewhere_and_goes_on() {
    let (scene, running, pid) = in_the_middle();
    ok(&scene.provost(&["pause", "last"]));
    let paused = running.end();
    assert_eq!(paused.status, 4, "{paused:?}");
    gone(&pid);
    let done = scene.provost(&["resume", "last"]);
    ok(&done);
    assert_eq!(done.stdout, "It is shipped.\n");
}

#[test]
fn a_flow_is_cancelled_from_elsewhere_and_nothing_of_it_is_left() {
    let (scene, running, pid) = in_the_middle();
    ok(&scene.provost(&["cancel", "last"]));
    let cancelled = running.end();
    assert_eq!(cancelled.status, 130, "{cancelled:?}");
    gone(&pid);
}

#[test]
fn the_example_works_as_it_says() {
    let scene = Scene::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flow");
    for file in fs::read_dir(example).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), scene.path("work").join(file.file_name())).unwrap();
    }
    ok(&scene.provost(&["trust", "--flow", "flow.toml", "--yes"]));
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    ok(&done);
    expect![[r#"
        ## translate

        C'est fait.

        ## announce

        Provost starts faster now and goes through flows.
    "#]]
    .assert_eq(&done.stdout);
    assert!(scene.path("work/NOTES.md").exists() && scene.path("work/NOTES.fr.md").exists());
}

#[test]
fn a_flow_that_is_right_is_told_in_an_order_in_which_it_can_be_done() {
    let checked = scene(FLOW).provost(&["flow", "check", "flow.toml"]);
    ok(&checked);
    expect![[r#"
        release: 4 steps, at most 8 at a time
          plan      or the workflow is given up
          build     after plan · or the workflow is given up
          describe  after plan · or the workflow is given up
          ship      after build, describe · or the workflow is given up
    "#]]
    .assert_eq(&checked.stdout);
}

#[track_caller]
fn wrong(flow: &str, expected: Expect) {
    let scene = scene(flow).with_settings(
        "[budget]\ntokens = 1000\n[[stop_hooks]]\nname = \"tests\"\ncommand = \"true\"\n[[agents]]\nname = \
         \"reviewer\"\ndescription = \"d\"\n",
    );
    for command in ["check", "run"] {
        let done = scene.provost(&["flow", command, "flow.toml"]);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done:?}");
        if command == "check" {
            expected.assert_eq(&scene.stable(&done.stderr));
        }
    }
}

#[test]
fn what_is_wrong_with_a_flow_is_told_with_its_place_and_what_would_be_right() {
    wrong(
        "",
        expect![[r#"
            error: flow.toml:1:1: flow: is missing; write [flow] with a name, and [[flow.steps]]
        "#]],
    );
    wrong(
        "[flow]\nname = \"f\"\n",
        expect![[r#"
            error: flow.toml:1:2: flow.steps: the workflow has no steps; write [[flow.steps]] with a name and a goal, once for each
        "#]],
    );
    wrong(
        "[flow]\nnaem = 1\n[flows]\n",
        expect![[r#"
            error: flow.toml:1:2: flow: `name` is missing; e.g. name = "release"
            error: flow.toml:2:1: flow.naem: there is no such key; did you mean `name`?
            error: flow.toml:3:2: flows: doesn't belong here; the file of a workflow has [flow] and [[flow.steps]]
        "#]],
    );
    wrong(
        &steps("[[flow.steps]]\nname = \"a\"\ngoal = \" \"\n"),
        expect![[r#"
            error: flow.toml:6:1: flow.steps.goal: step `a` has no goal; say what it is to reach
        "#]],
    );
    wrong(
        &steps(
            "[[flow.steps]]\nname = \"build\"\nneeds = [\"ship\"]\ngoal = \"g\"\n\
             [[flow.steps]]\nname = \"test\"\nneeds = [\"build\"]\ngoal = \"g\"\n\
             [[flow.steps]]\nname = \"ship\"\nneeds = [\"test\"]\ngoal = \"g\"\n",
        ),
        expect![[r#"
            error: flow.toml:6:1: flow.steps.needs: the steps need each other: build → ship → test → build; one of them must do without the other
        "#]],
    );
    wrong(
        &steps(
            "[[flow.steps]]\nname = \"build\"\nneeds = [\"biuld\"]\nagent = \"reviewr\"\ngoal = \"g\"\n\
             stop_hooks = [\"test\"]\non_failure = \"retry\"\nretry = 0\nbudget.tokens = 2000\n\
             [[flow.steps]]\nname = \"build\"\ngoal = \"g\"\n",
        ),
        expect![[r#"
            error: flow.toml:6:10: flow.steps.needs: step `build` needs `biuld`, and there is no such step; there is no other step
            error: flow.toml:7:1: flow.steps.agent: step `build` is for agent `reviewr`, and there is no such agent; did you mean `reviewer`?
            error: flow.toml:9:15: flow.steps.stop_hooks: there is no stop hook named `test`; did you mean `tests`?; a command is written { command = "…" }
            error: flow.toml:11:1: flow.steps.retry: must be at least 1 where on_failure is "retry" (is 0); raise it, or have on_failure = "abort"
            error: flow.toml:12:8: flow.steps.budget.tokens: is more than the whole run may spend (budget.tokens); lower it, or give the run more
            error: flow.toml:14:1: flow.steps.name: there are two steps named `build`; give each a name of its own
        "#]],
    );
    wrong(
        &steps(
            "[[flow.steps]]\nname = \"a/b\"\ngaol = \"g\"\nneeds = \"x\"\non_failure = \"stop\"\n\
             stop_hooks = [{ comand = \"x\" }, 7]\nbudget = { token = 1, usd = 0 }\nretry = -1\n",
        ),
        expect![[r#"
            error: flow.toml:4:1: flow.steps: `goal` is missing; e.g. goal = "Write down in PLAN.md what is to be done."
            error: flow.toml:5:1: flow.steps.name: must have only letters, digits, spaces, _, - and . (is `a/b`); e.g. name = "plan"
            error: flow.toml:6:1: flow.steps.gaol: there is no such key; did you mean `goal`?
            error: flow.toml:7:1: flow.steps.needs: must be a list in [brackets]; e.g. needs = ["…"]
            error: flow.toml:8:1: flow.steps.on_failure: must be one of abort, skip, retry, ask (is `stop`); e.g. on_failure = "ask"
            error: flow.toml:9:15: flow.steps.stop_hooks: `command` is missing; e.g. { command = "make check || exit 2" }
            error: flow.toml:9:17: flow.steps.stop_hooks.comand: there is no such key; did you mean `command`?
            error: flow.toml:9:33: flow.steps.stop_hooks: each must be the name of a stop hook, or a table with a command; e.g. { command = "make check || exit 2" }
            error: flow.toml:10:12: flow.steps.budget.token: there is no such key; did you mean `budget.tokens`?
            error: flow.toml:10:23: flow.steps.budget.usd: must be more than 0 (is 0); e.g. budget.usd = 1.50
            error: flow.toml:11:1: flow.steps.retry: must be from 0 to 100 (is -1); e.g. retry = 2
        "#]],
    );
}
