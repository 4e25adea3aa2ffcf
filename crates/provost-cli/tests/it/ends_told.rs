//! What a run that isn't done as a whole says at its end, in the list of runs and on its page.

use crate::support::{Scene, json};

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

#[test]
fn an_agent_that_ends_at_its_limit_without_words_leaves_an_account_to_the_one_that_asked() {
    let script = r#"
answers:
  - tools: [{ worker: { goal: build it } }]
  - text: "So it is."
    expect: { tool_result: [{ contains: ["Turn budget", "Files written: a.txt, b.txt", "1 of 2 steps of its plan done", "in progress: test"] }] }
agents:
  - goal: build it
    answers:
      - tools: [{ write_file: { path: a.txt, content: x } }, { write_file: { path: b.txt, content: x } }]
      - tools: [{ update_plan: { items: [{ text: write, status: done }, { text: test, status: in_progress }] } }]
      - tools: [{ shell: { command: "true" } }]
"#;
    let scene = Scene::scripted(script)
        .with_settings("\n[[agents]]\nname = \"worker\"\ndescription = \"works\"\nmax_turns = 3\n");
    let done = scene.provost(&["run", "see to it"]);
    assert_eq!(done.stdout, "So it is.\n", "{done:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(!log.contains("It said nothing"), "{log}");
}

#[test]
fn a_long_outcome_names_the_command_that_shows_all_of_it_with_the_run_s_id() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: done }, { text: done }]")
        .with_settings("\n[[stop_hooks]]\nname = \"lint\"\ncommand = \"seq 200; exit 1\"\n")
        .trusted();
    let done = scene.provost(&["run", "x"]);
    assert_eq!(done.status, 4, "{done:?}");
    let run = scene.last_run();
    let command = format!("provost show {run} --json");
    for text in [&done.stderr, &scene.provost(&["show", "last"]).stdout] {
        assert!(text.contains(&command) && !text.contains("show RUN"), "{text}");
    }
    let whole = scene.provost(&["show", &run, "--json"]).stdout;
    assert!(whole.contains("blocked"), "{whole}");
}

#[test]
fn a_step_that_is_tried_again_shows_what_counts_for_the_limit_beside_it() {
    let scene = Scene::scripted(SCRIPT);
    let flow = FLOW.replace("\"check it\"\n", "\"check it\"\nbudget.tokens = 50000\nretry = 1\n");
    scene.write("work/flow.toml", &flow);
    let step = || {
        let whole = json(&scene.provost(&["show", "last", "--json"]).stdout);
        let step = &whole["steps"][1];
        (
            step["tokens"].as_u64().unwrap(),
            step["attempt"].as_u64().unwrap(),
            step["agents"].as_array().unwrap().len(),
        )
    };
    assert_eq!(scene.provost(&["flow", "run", "flow.toml"]).status, 1);
    let (tokens, attempt, agents) = step();
    assert_eq!((attempt, agents), (2, 2), "both attempts draw from the step's budget");
    assert_eq!(scene.provost(&["resume", "last"]).status, 1);
    let (again, attempt, agents) = step();
    assert_eq!((attempt, agents), (2, 4), "the budget has begun anew");
    assert_eq!(again, tokens, "what was spent before the resume doesn't count for it");
    let page = scene.provost(&["show", "last"]).stdout;
    let line = page.lines().find(|line| line.starts_with("check")).unwrap();
    let shown = format!("{}.{}k/50.0k", tokens / 1_000, tokens % 1_000 / 100);
    assert!(line.contains(&shown), "{tokens}: {line}");
}

#[test]
fn an_answer_that_stays_cut_off_is_not_done_and_a_resume_continues_it() {
    let cut = "  - { text: \"again \", stop: output_cap }\n".repeat(4);
    let scene = Scene::scripted(&format!("answers:\n{cut}  - text: and the end\n"));
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 4, "{ran:?}");
    let why = "the model's answer is cut off by the limit on its length";
    assert!(ran.stderr.contains(why) && ran.stderr.contains("raise output_tokens_max"), "{ran:?}");
    let listed = scene.provost(&["ps"]).stdout;
    assert!(listed.contains("suspended") && listed.contains("cut off"), "{listed}");
    let resumed = scene.provost(&["resume", "last"]);
    let whole = format!("{}and the end\n", "again ".repeat(4));
    assert_eq!((resumed.status, resumed.stdout), (0, whole), "{}", resumed.stderr);
}
