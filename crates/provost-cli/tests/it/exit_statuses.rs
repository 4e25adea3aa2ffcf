//! Every exit status of `run`, really produced.

use crate::support::Scene;

#[track_caller]
fn check(scene: &Scene, flags: &[&str], status: i32, said: &str) {
    let ran = scene.provost(&[&["run", "reach the goal"], flags].concat());
    assert_eq!(ran.status, status, "{ran:?}");
    assert!(ran.stderr.contains(said), "`{said}` isn't in {}", ran.stderr);
}

const DONE: &str = "answers: [{ text: done }]";
const TWO_TURNS: &str = "answers: [{ text: looking, tools: [list_dir] }, { text: done }]";

#[test]
fn done_is_0() {
    check(&Scene::scripted(DONE), &[], 0, "completed, not verified · 1 turn");
    let passed = "answers: [{ text: 'done. VERDICT: PASS' }]";
    check(&Scene::scripted(passed), &[], 0, "completed (verdict PASS), not verified · 1 turn");
}

#[test]
fn failed_is_1() {
    let unexpected = "answers: [{ expect: { contains: nothing like it }, text: done }]";
    check(&Scene::scripted(unexpected), &[], 1, "the script doesn't fit the conversation");
    check(&Scene::scripted("answers: [{ text: 'VERDICT: FAIL' }]"), &[], 1, "completed (verdict FAIL)");
    check(&Scene::scripted("answers: [{ text: 'VERDICT: PARTIAL' }]"), &[], 1, "completed (verdict PARTIAL)");
}

#[test]
fn wrong_usage_is_2() {
    let scene = Scene::scripted(DONE);
    assert_eq!(scene.provost(&["run", "x", "--nonsense"]).status, 2);
    assert_eq!(scene.provost(&["nonsense"]).status, 2);
    assert_eq!(scene.provost(&[]).status, 2);
    check(&scene, &["--model", "unknown/nothing"], 2, "error: --model: agent.model: there is no provider");
    check(&scene, &["--dir", "nowhere"], 2, "error: nowhere is no folder");
    let ran = scene.provost(&["run", "  "]);
    assert_eq!((ran.status, ran.stderr.lines().next()), (2, Some("error: the goal is empty")));
}

#[test]
fn a_spent_budget_is_3() {
    let scene = Scene::scripted(TWO_TURNS);
    check(&scene, &["--max-turns", "1"], 3, "Turn budget of the run used up: 1 of 1");
    check(&scene, &["--tokens", "2000"], 3, "Token budget");
    let slow = "answers: [{ tools: [{ shell: { command: sleep 60 } }] }, { text: done }]";
    check(&Scene::scripted(slow), &["--wall-time", "1s"], 3, "Time budget");
}

#[test]
fn waiting_is_4() {
    let repeated = format!("answers: [{}]", ["{ tools: [list_dir] }"; 10].join(", "));
    check(&Scene::scripted(&repeated), &[], 4, "repeated call");
    let blocked = Scene::scripted("answers: [{ text: done }, { text: done }]").with_settings(
        "[limits]\nstop_blocks = 1\n[[stop_hooks]]\nname = \"no\"\ncommand = \"echo not yet; exit 2\"\n",
    );
    check(&blocked.trusted(), &[], 4, "blocked: ");
}

#[test]
fn aborted_by_a_hook_is_5() {
    let scene = Scene::scripted(DONE)
        .with_settings("[[stop_hooks]]\nname = \"guard\"\ncommand = \"echo never; exit 3\"\n");
    check(&scene.trusted(), &[], 5, "aborted by guard: never");
}
