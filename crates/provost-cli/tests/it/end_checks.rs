//! What an agent is asked before its end counts, from outside.

use std::fs;

use serde_json::Value;

use crate::support::{Done, Scene, json, until};

const CHECKED: &str = "final_check = true\n";

/// A test that fails until the file `fixed` is there; a PASS over it; a second answer to the question; then the end.
const PASS_OVER_A_FAILED_TEST: &str = r#"
answers:
  - tools:
      - update_plan: { items: [{ text: repair it, status: in_progress }] }
  - tools: [{ shell: { command: "test -e fixed" } }]
  - tools: [{ write_file: { path: notes.txt, content: "x" } }]
  - text: "It works.\n\nVERDICT: PASS"
  - expect: { contains: "Repair the parser\n" }
    tools: [{ shell: { command: "touch fixed; test -e fixed" } }]
  - text: "It works now.\n\nVERDICT: PASS"
"#;

fn checked(script: &str, more: &str) -> Scene {
    Scene::scripted(script).with_settings(&format!("{CHECKED}{more}"))
}

fn items(scene: &Scene) -> Vec<(String, String)> {
    let logs = scene.provost(&["logs", "last", "--json"]);
    assert_eq!(logs.status, 0, "{logs:?}");
    let records = logs.stdout.lines().map(json).collect::<Vec<Value>>();
    let items = records.iter().filter(|record| record["type"] == "system_item");
    items
        .map(|item| (item["item"].as_str().unwrap_or("other").to_owned(), item["body"].to_string()))
        .collect()
}

fn kinds(scene: &Scene) -> Vec<String> {
    items(scene).into_iter().map(|(kind, _)| kind).collect()
}

#[track_caller]
fn ended(done: &Done, stdout: &str) {
    assert_eq!((done.status, done.stdout.as_str()), (0, stdout), "{done:?}");
}

#[test]
fn an_answer_without_a_call_and_a_verdict_is_asked_once_to_go_on_or_to_close() {
    let scene = checked(
        "answers:\n  - text: I'll look at the code now and then fix it.\n  - tools: [{ shell: { command: touch fixed } }]\n  \
         - text: Fixed.\n",
        "",
    );
    let ran = scene.provost(&["run", "Fix it"]);
    ended(&ran, "Fixed.\n");
    assert!(ran.stderr.contains("asked to go on or to close"), "{ran:?}");
    assert!(scene.path("work/fixed").exists());
    assert_eq!(kinds(&scene), ["end_question"]);
}

#[test]
fn a_script_is_asked_only_where_the_settings_say_so() {
    let scene = Scene::scripted("answers: [{ text: I'll look at the code now. }]");
    ended(&scene.provost(&["run", "Fix it"]), "I'll look at the code now.\n");
    assert_eq!(kinds(&scene), [""; 0]);
}

#[test]
fn a_comment_is_no_end() {
    let script = "answers:\n  - { text: Now I look., stop: commentary }\n  - { text: And now I fix it., stop: commentary }\n  \
                  - text: Fixed.\n";
    let scene = Scene::scripted(script);
    ended(&scene.provost(&["run", "Fix it"]), "Fixed.\n");
    assert_eq!(kinds(&scene), ["answer_again", "answer_again"]);
}

#[test]
fn the_first_pass_over_a_failed_test_is_asked_for_proof_and_the_second_ends() {
    let scene = checked(PASS_OVER_A_FAILED_TEST, "");
    ended(&scene.provost(&["run", "Repair the parser"]), "It works now.\n\nVERDICT: PASS\n");
    let items = items(&scene);
    let [(kind, body)] = &items[..] else { panic!("one item: {items:?}") };
    assert_eq!(kind, "final_check");
    for fact in [
        "Repair the parser",
        "`test -e fixed` ended with exit status 1",
        "No command was run after these files were written: notes.txt.",
        "This step of your plan is open: repair it",
    ] {
        assert!(body.contains(fact), "{fact}: {body}");
    }
}

#[test]
fn a_command_that_has_succeeded_since_and_files_that_were_run_are_not_held_against_the_claim() {
    let script = "answers:\n  - tools: [{ shell: { command: test -e notes.txt } }]\n  - tools: [{ write_file: { path: notes.txt, \
                  content: x } }]\n  - tools: [{ shell: { command: test -e notes.txt } }]\n  - text: 'VERDICT: PASS'\n  \
                  - text: 'Still. VERDICT: PASS'\n";
    let scene = checked(script, "");
    ended(&scene.provost(&["run", "Repair it"]), "Still. VERDICT: PASS\n");
    let items = items(&scene);
    assert!(items.len() == 1 && !items[0].1.contains("What the log of your work says"), "{items:?}");
}

#[test]
fn a_pass_without_an_act_and_a_fail_end_at_once() {
    let read = "answers:\n  - tools: [{ read_file: { path: agent.yaml } }]\n  - text: 'VERDICT: PASS'\n";
    let scene = checked(read, "");
    ended(&scene.provost(&["run", "Look"]), "VERDICT: PASS\n");
    assert_eq!(kinds(&scene), [""; 0]);
    let failed = "answers:\n  - tools: [{ shell: { command: 'false' } }]\n  - text: 'VERDICT: FAIL'\n";
    let scene = checked(failed, "");
    let ran = scene.provost(&["run", "Look"]);
    assert_eq!((ran.status, kinds(&scene)), (1, Vec::new()), "{ran:?}");
}

#[test]
fn where_a_judge_or_a_stop_hook_checks_the_claim_there_is_no_final_check() {
    let script = "answers:\n  - tools: [{ shell: { command: touch fixed } }]\n  - text: 'VERDICT: PASS'\n";
    let judged = checked(script, "[goal]\ncondition = \"It is fixed.\"\njudge = \"script:judge.yaml\"\n");
    judged.write(
        "work/judge.yaml",
        "verdicts:\n  - achieved: true\n    reasoning: It is.\n    confidence: 0.9\n",
    );
    ended(&judged.provost(&["run", "Fix it"]), "VERDICT: PASS\n");
    assert_eq!(kinds(&judged), [""; 0]);
    let hooked = checked(script, "[[stop_hooks]]\nname = \"test\"\ncommand = \"test -e fixed\"\n").trusted();
    ended(&hooked.provost(&["run", "Fix it"]), "VERDICT: PASS\n");
    assert_eq!(kinds(&hooked), [""; 0]);
}

#[test]
fn the_last_turn_is_not_questioned() {
    let scene = checked("answers: [{ text: Looked. }]", "max_turns = 1\n");
    ended(&scene.provost(&["run", "Look"]), "Looked.\n");
}

#[test]
fn a_run_killed_after_the_question_neither_repeats_nor_skips_it() {
    let script = "answers:\n  - tools: [{ shell: { command: touch fixed } }]\n  - text: 'VERDICT: PASS'\n  \
                  - { delay_ms: 3000, text: 'Proved. VERDICT: PASS' }\n";
    let scene = checked(script, "");
    let running = scene.start(&["run", "Fix it"]);
    until("the question is in the log", || {
        let logs = scene.provost(&["logs", "last", "--json"]);
        logs.stdout.contains("\"final_check\"").then_some(())
    });
    running.kill();
    let quick = fs::read_to_string(scene.path("work/agent.yaml")).unwrap().replace("3000", "1");
    scene.write("work/agent.yaml", &quick);
    let resumed = scene.provost(&["resume", "last"]);
    ended(&resumed, "Proved. VERDICT: PASS\n");
    assert_eq!(kinds(&scene).iter().filter(|kind| *kind == "final_check").count(), 1);
}

#[test]
fn commands_in_the_background_and_at_a_terminal_count_for_the_final_check() {
    let seen = "{ jobs: { job: job1, wait_secs: 30 } }";
    for (call, then, fact) in [
        (
            "{ shell: { command: 'echo no; exit 3', background: true } }",
            seen,
            "`echo no; exit 3` ended with exit status 3",
        ),
        ("{ shell: { command: 'sleep 600', background: true } }", "{ list_dir: {} }", "job1 (`sleep 600`)"),
        (
            "{ terminal: { action: start, command: 'echo no; exit 4' } }",
            "{ list_dir: {} }",
            "`echo no; exit 4` ended with exit status 4",
        ),
    ] {
        let script = format!(
            "answers:\n  - tools: [{call}]\n  - tools: [{then}]\n  - text: 'VERDICT: PASS'\n  - text: 'VERDICT: PASS'\n"
        );
        let scene = checked(&script, "");
        ended(&scene.provost(&["run", "Repair it"]), "VERDICT: PASS\n");
        let items = items(&scene);
        assert!(items.len() == 1 && items[0].1.contains(fact), "{fact}: {items:?}");
    }
}
