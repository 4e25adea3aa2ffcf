//! Edges of control: hooks with awkward pipes, paths that hide, questions that stay open across kills and
//! suspensions.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::control::{entries, lawful, log};
use crate::support::{Done, Scene, gone, json, line_in, until};

const ONE: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - text: all done
";

fn scene(script: &str, settings: &str) -> Scene {
    Scene::scripted(script).with_settings(settings).trusted()
}

fn hook(event: &str, command: &str, more: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\nname = \"guard\"\ncommand = '''{command}'''\n{more}\n")
}

fn effects(scene: &Scene) -> String {
    fs::read_to_string(scene.path("work/effects")).unwrap_or_default()
}

/// The open approval requests.
fn waiting(scene: &Scene) -> Vec<Value> {
    scene.provost(&["approvals", "--json"]).stdout.lines().map(json).collect()
}

fn names(scene: &Scene) -> Vec<String> {
    waiting(scene).iter().map(|question| question["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn check(done: &Done, status: i32) {
    assert_eq!(done.status, status, "{done:?}");
}

#[test]
fn a_hook_that_reads_nothing_is_no_failure_however_long_the_question() {
    let content = "0123456789abcdef".repeat(20_000);
    let script = format!(
        "answers:\n  - tools: [{{ write_file: {{ path: big, content: '{content}' }} }}]\n  - text: done\n"
    );
    for contract in ["provost", "claude"] {
        let scene = scene(&script, &hook("pre_tool_call", "exit 0", &format!("contract = \"{contract}\"")));
        check(&scene.provost(&["run", "x"]), 0);
        assert_eq!(fs::read_to_string(scene.path("work/big")).unwrap().len(), content.len(), "{contract}");
        let decided = entries(&log(&scene), "hooks_decided")[0]["reports"][0]["decision"].clone();
        assert_eq!(decided, "continue", "{contract}");
    }
}

#[test]
fn a_hook_that_floods_both_pipes_is_drained_and_cut() {
    let flood =
        "head -c 3000000 /dev/zero | tr '\\0' x >&2 & head -c 3000000 /dev/zero | tr '\\0' y; wait; exit 2";
    let scene = scene(ONE, &hook("pre_tool_call", flood, ""));
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "");
    let log = log(&scene);
    let reason = entries(&log, "hooks_decided")[0]["reports"][0]["decision"]["deny"].as_str().unwrap().len();
    assert!(reason > 100 && reason <= 64 * 1024, "{reason}");
}

#[test]
fn what_a_hook_leaves_behind_delays_nothing_and_is_ended() {
    let leaves = "sleep 60 & echo $! > left.pid; exit 0";
    for contract in ["provost", "claude"] {
        let scene = scene(ONE, &hook("pre_tool_call", leaves, &format!("contract = \"{contract}\"")));
        let began = Instant::now();
        check(&scene.provost(&["run", "x"]), 0);
        assert!(began.elapsed() < Duration::from_secs(4), "{contract}: {:?}", began.elapsed());
        assert_eq!(effects(&scene), "one\n", "{contract}");
        gone(line_in(&scene.path("work/left.pid")).trim());
    }
}

#[test]
fn a_reason_that_is_no_text_is_shown_as_well_as_it_can_be() {
    let scene = scene(ONE, &hook("pre_tool_call", r"printf 'no \377\376 way'; exit 2", ""));
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 0);
    assert!(ran.stderr.contains("no \u{fffd}\u{fffd} way"), "{ran:?}");
}

#[test]
fn a_hook_has_no_terminal_and_its_own_session() {
    let probe = "(: < /dev/tty) 2>/dev/null && echo tty > tty; ps -o sid= -p $$ > sid; echo $$ > pid; exit 0";
    let scene = scene(ONE, &hook("pre_tool_call", probe, ""));
    check(&scene.provost(&["run", "x"]), 0);
    assert!(!scene.path("work/tty").exists());
    let own = fs::read_to_string(scene.path("work/sid")).unwrap();
    let mine = std::process::Command::new("ps")
        .args(["-o", "sid=", "-p", &std::process::id().to_string()])
        .output()
        .unwrap();
    assert_ne!(own.trim(), String::from_utf8_lossy(&mine.stdout).trim());
}

/// Writes to `path` where `secret` is denied; returns the content of the secret file afterwards.
fn written_to(path: &str) -> String {
    let scene = after_writing_to(path);
    fs::read_to_string(scene.path("work/secret/.env")).unwrap()
}

fn after_writing_to(path: &str) -> Scene {
    let scene = Scene::scripted("answers: []")
        .with_settings("[permissions]\ndeny = [\"write_file(secret/**)\", \"edit_file(secret/**)\"]\n");
    scene.write("work/secret/.env", "KEY=1\n");
    symlink("secret", scene.path("work/link")).unwrap();
    symlink(scene.path("work/secret"), scene.path("work/far")).unwrap();
    symlink("round", scene.path("work/round")).unwrap();
    let path = path.replace("ABS", scene.path("work").canonicalize().unwrap().to_str().unwrap());
    let call = format!("write_file: {{ path: {path}, content: gone }}");
    scene.write("work/agent.yaml", &format!("answers:\n  - tools: [{{ {call} }}]\n  - text: done\n"));
    check(&scene.provost(&["run", "x"]), 0);
    scene
}

#[test]
fn a_denied_path_is_denied_however_it_is_written() {
    for path in ["secret/.env", "./secret/.env", "secret/../secret/.env", "ABS/secret/.env", "secret//.env"] {
        assert_eq!(written_to(path), "KEY=1\n", "{path}");
    }
}

#[test]
fn and_through_a_link_too() {
    for path in ["link/.env", "link/missing/../.env", "missing/../link/.env", "far/.env"] {
        assert_eq!(written_to(path), "KEY=1\n", "{path}");
    }
}

#[test]
fn a_link_to_itself_is_refused_with_the_reason() {
    let log = log(&after_writing_to("round/.env"));
    let made = &entries(&log, "tool_finished")[0];
    assert_eq!(made["status"], "denied");
    assert_eq!(
        made["output"],
        "Not made: it can't be told where `round/.env` leads: it goes over more than 40 links."
    );
}

#[test]
fn while_a_run_has_no_holder_its_question_isnt_late() {
    let scene =
        Scene::scripted(ONE).with_settings("[permissions]\nask = [\"shell\"]\napproval_timeout = \"1s\"\n");
    let running = scene.start(&["run", "x"]);
    let name = until("a question is asked", || names(&scene).pop());
    running.kill();
    let overdue = until("its time is over", || {
        let question = waiting(&scene).pop().expect("it is still asked");
        let due = UNIX_EPOCH + Duration::from_millis(question["due_ms"].as_u64().unwrap());
        (SystemTime::now() > due).then_some(question)
    });
    assert_eq!(
        (overdue["id"].as_str(), overdue["run_status"].as_str()),
        (Some(&*name), Some("interrupted, needs approval"))
    );
    assert_eq!(names(&scene), std::slice::from_ref(&name));
    check(&scene.provost(&["approve", &name]), 0);
    check(&scene.provost(&["resume", "last"]), 0);
    assert_eq!(effects(&scene), "one\n");
    lawful(&log(&scene));
}

#[test]
fn what_is_agreed_to_for_the_run_outlives_its_process() {
    let script = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - tools: [{ shell: { command: echo one >> effects } }]
  - text: all done
";
    let scene = Scene::scripted(script).with_settings("[permissions]\nask = [\"shell\"]\n");
    let running = scene.start(&["run", "x"]);
    let name = until("a question is asked", || names(&scene).pop());
    running.kill();
    check(&scene.provost(&["approve", &name, "--for-run"]), 0);
    check(&scene.provost(&["resume", "last"]), 0);
    assert_eq!(effects(&scene), "one\none\n");
    assert_eq!(entries(&log(&scene), "approval_requested").len(), 1);
}

#[test]
fn a_question_outlives_the_runs_time_and_more_time_brings_it_back() {
    let scene = Scene::scripted(ONE)
        .with_settings("[permissions]\nask = [\"shell\"]\n[budget]\nwall_time = \"2s\"\n");
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 3);
    let name = names(&scene);
    assert_eq!(name.len(), 1, "approvals asked for stay asked: {ran:?}");
    check(&scene.provost(&["approve", &name[0]]), 0);
    let resumed = scene.provost(&["resume", "last", "--wall-time", "1m"]);
    check(&resumed, 0);
    assert_eq!(effects(&scene), "one\n");
    lawful(&log(&scene));
}

#[test]
fn two_questions_of_one_answer_are_both_kept_through_a_death() {
    let script = "
answers:
  - tools:
      - read_file: { path: provost.toml }
      - read_file: { path: agent.yaml }
  - text: all done
";
    let scene = Scene::scripted(script).with_settings("[permissions]\nask = [\"read_file\"]\n");
    let running = scene.start(&["run", "x"]);
    let both = until("both are asked", || Some(names(&scene)).filter(|names| names.len() == 2));
    check(&scene.provost(&["approve", &both[0]]), 0);
    running.kill();
    assert_eq!(names(&scene), both[1..]);
    check(&scene.provost(&["deny", &both[1], "not that one"]), 0);
    check(&scene.provost(&["resume", "last"]), 0);
    let log = log(&scene);
    lawful(&log);
    let results = entries(&log, "tool_finished");
    assert_eq!(
        (&results[0]["call"], &results[1]["call"]),
        (&"call_1_1".into(), &"call_1_2".into()),
        "{results:?}"
    );
    assert_eq!(results[1]["status"], "denied");
}

#[test]
fn an_agent_of_a_trusted_project_cant_change_what_runs_meanwhile() {
    let script = "
answers:
  - tools: [{ shell: { command: 'sed -i s/innocent/evil/ provost.toml' } }]
  - text: all done
";
    let scene = scene(script, &hook("stop", "echo innocent >> ran", ""));
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(fs::read_to_string(scene.path("work/ran")).unwrap(), "innocent\n");
    check(&scene.provost(&["run", "x"]), 2);
}
