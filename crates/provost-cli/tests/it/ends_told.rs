//! What a run that isn't done as a whole says at its end, in the list of runs and on its page.

use crate::support::Scene;

const SCRIPT: &str = r#"
answers: [{ text: "no agent has this goal" }]
agents:
  - goal: plan it
    answers: [{ text: It is planned. }]
  - goal: check it
    answers: [{ text: "It is bad.\nVERDICT: FAIL" }]
  - goal: ship it
    answers: [{ text: It is shipped. }]
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

[[flow.steps]]
name = "ship"
needs = ["check"]
goal = "ship it"
"#;

#[test]
fn a_workflow_with_a_failed_step_says_what_became_of_its_steps_and_how_to_go_on() {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", FLOW);
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    assert_eq!(done.status, 1, "a step has failed: {done:?}");
    let steps = "1 of 3 steps done, 1 failed, 1 skipped";
    let run = scene.last_run();
    let command = format!("provost resume {run}  (tries the steps again that failed or were skipped)");
    let last = done.stderr.lines().rev().take(2).collect::<Vec<_>>();
    assert!(last[1].contains(steps), "{done:?}");
    assert_eq!(last[0], format!("go on with: {command}"));

    let listed = scene.provost(&["ps"]);
    assert!(listed.stdout.contains(steps), "{listed:?}");
    let page = scene.provost(&["show", "last"]);
    assert!(page.stdout.contains(&format!(": {steps}\n")), "{page:?}");
    assert!(page.stdout.contains(&format!("go on with  {command}\n")), "{page:?}");
    let said = scene.provost(&["cancel", "last"]);
    assert!(said.stderr.contains(steps) && said.stderr.contains(&command), "{said:?}");

    scene.write("work/agent.yaml", &SCRIPT.replace("FAIL", "PASS"));
    let resumed = scene.provost(&["resume", &run]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "It is shipped.\n"), "{resumed:?}");
    let listed = scene.provost(&["ps"]);
    assert!(listed.stdout.contains("completed, not verified"), "{listed:?}");
}

#[test]
fn agents_whose_own_verdict_is_fail_are_not_counted_as_done() {
    let script = r#"
answers:
  - tools: [{ spawn_agent: { name: tester, goal: check it } }]
  - text: "The tester found it bad.\nVERDICT: FAIL"
agents:
  - goal: check it
    answers: [{ text: "It is bad.\nVERDICT: FAIL" }]
"#;
    let scene = Scene::scripted(script);
    let done = scene.provost(&["run", "see to it"]);
    assert_eq!(done.status, 1, "{done:?}");
    assert!(done.stderr.contains("completed (verdict FAIL)"), "{done:?}");
    assert!(!done.stderr.contains("(tester) is done"), "{done:?}");
    assert!(done.stderr.contains("(tester) has ended: verdict FAIL"), "{done:?}");
    let page = scene.provost(&["show", "last"]).stdout;
    assert!(page.contains("slots · 2 verdict FAIL\n"), "{page}");
    assert!(!page.contains("done"), "{page}");
    let listed = scene.provost(&["ps"]);
    assert!(listed.stdout.contains("completed (verdict FAIL)"), "{listed:?}");

    // The agent that asked may pass all the same: the end of the other one stays to be seen.
    scene.write("work/agent.yaml", &script.replace("found it bad.\\nVERDICT: FAIL", "found it bad."));
    let done = scene.provost(&["run", "see to it"]);
    assert_eq!(done.status, 0, "{done:?}");
    let last = done.stderr.lines().rev().find(|line| line.contains("completed")).unwrap();
    assert!(last.contains("1 of 2 agents: verdict FAIL"), "{last}");
    let page = scene.provost(&["show", "last"]).stdout;
    assert!(page.contains("slots · 1 done, 1 verdict FAIL\n"), "{page}");
}
