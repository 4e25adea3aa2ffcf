//! `[notify]`: each state is told of once, whichever process works on the run, and a notifier that fails hurts none.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::approvals::waiting;
use crate::on_terminal::raw_on_terminal;
use crate::support::{Scene, json, until};

const PUBLISH: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: 'It is published. VERDICT: PASS'
";
const DONE: &str = "answers: [{ text: 'VERDICT: PASS' }]";

/// A scene whose user is told by a command, which adds each notification to a file.
fn told_by_command(script: &str, more: &str) -> Scene {
    let scene = Scene::scripted(script).with_settings("[permissions]\nask = [\"shell\"]\n");
    let told = scene.path("told");
    let settings = format!("[notify]\ncommand = \"cat >> '{0}'; echo >> '{0}'\"\n{more}", told.display());
    scene.write("home/.config/provost/config.toml", &settings);
    scene
}

fn told(scene: &Scene) -> Vec<Value> {
    let text = fs::read_to_string(scene.path("told")).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(json).collect()
}

fn events(scene: &Scene) -> Vec<String> {
    told(scene).iter().map(|told| told["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_question_is_told_of_once_also_when_another_process_goes_on_with_the_run() {
    let scene = told_by_command(PUBLISH, "");
    let (running, name) = waiting(&scene);
    until("it is told", || (events(&scene) == ["approval"]).then_some(()));
    let first = &told(&scene)[0];
    assert_eq!(first["question"], name.replace(".0#", "#"));
    assert_eq!(first["title"], "Provost: needs you");
    assert!(first["text"].as_str().unwrap().contains("echo published >> effects"), "{first}");
    running.kill();
    let again = scene.start(&["resume", "last"]);
    until("it is worked on", || {
        (json(scene.provost(&["ps", "--json"]).stdout.trim())["status"] == "needs approval").then_some(())
    });
    assert_eq!(scene.provost(&["approve"]).status, 0);
    assert_eq!(again.end().status, 0);
    assert_eq!(events(&scene), ["approval", "finished"]);
}

#[test]
fn what_is_suspended_failed_and_near_its_limit_is_told_of() {
    let script = "
answers:
  - { tools: [{ read_file: { path: a } }], usage: { input: 8500, output: 100 } }
  - { text: 'VERDICT: PASS', usage: { input: 10, output: 10 } }
";
    let scene = told_by_command(script, "");
    let ran = scene.provost(&["run", "x", "--tokens", "10000"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    assert_eq!(events(&scene), ["budget", "suspended"]);
    let text = told(&scene)[0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("% of its limit of 10,000 tokens is used"), "{text}");
    assert_eq!(scene.provost(&["resume", "last", "--tokens", "100000"]).status, 0);
    assert_eq!(events(&scene), ["budget", "suspended", "finished"], "a higher limit is another state");
    let failing = told_by_command("answers: [{ expect: { contains: not there }, text: x }]", "");
    assert_eq!(failing.provost(&["run", "x"]).status, 1);
    assert_eq!(events(&failing), ["failed"]);
}

#[test]
fn only_what_is_asked_for_is_told_of() {
    let scene = told_by_command(DONE, "on = [\"approval\", \"failed\"]\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    assert_eq!(events(&scene), Vec::<String>::new());
}

#[test]
fn a_notifier_that_fails_or_hangs_is_said_and_hurts_nothing() {
    for (command, said) in [
        ("echo no mail here >&2; exit 4", "notify.command: sh ended with exit status 4: no mail here"),
        ("sleep 60", "notify.command: sh was ended: it may take 5 s"),
    ] {
        let scene = Scene::scripted(DONE);
        let settings = format!("[notify]\ncommand = \"{command}\"\n");
        scene.write("home/.config/provost/config.toml", &settings);
        let ran = scene.provost(&["run", "x"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.stderr.contains(&format!("warning: not notified: {said}")), "{ran:?}");
    }
}

#[test]
fn a_webhook_gets_it_with_its_headers_and_no_secret_is_in_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut bytes = [0; 4_096];
        while !String::from_utf8_lossy(&request).ends_with('}') {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0);
            request.extend_from_slice(&bytes[..count]);
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let scene = Scene::scripted(DONE);
    let settings =
        format!("[notify]\nwebhook = \"http://{address}/in\"\nwebhook_headers_env = \"NOTIFY_HEADERS\"\n");
    scene.write("home/.config/provost/config.toml", &settings);
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let mut command = scene.command(&["run", &format!("use {key} for it")]);
    command.env("NOTIFY_HEADERS", "authorization=Bearer%20open").env("ANTHROPIC_API_KEY", key);
    let ran = crate::support::done(&command.output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
    let request = server.join().unwrap();
    assert!(request.contains("authorization: Bearer open"), "{request}");
    assert!(request.contains("\"event\":\"finished\"") && !request.contains(key), "{request}");
}

#[test]
fn a_projects_file_may_not_name_what_is_run_or_sent_to() {
    for setting in ["command = \"true\"", "webhook = \"http://127.0.0.1:1\"", "desktop = \"osc9\""] {
        let scene = Scene::scripted(DONE).with_settings(&format!("[notify]\n{setting}\n"));
        let ran = scene.provost(&["run", "x"]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stderr.contains("notify."), "{ran:?}");
    }
}

#[test]
fn a_terminal_is_told_by_a_sequence_that_paints_nothing() {
    for (desktop, begin) in
        [("osc9", "\u{1b}]9;Provost: finished. the"), ("osc777", "\u{1b}]777;notify;Provost: finished;the")]
    {
        let scene = Scene::scripted(DONE);
        let settings = format!("[notify]\ndesktop = \"{desktop}\"\n");
        scene.write("home/.config/provost/config.toml", &settings);
        let provost = env!("CARGO_BIN_EXE_provost");
        let ran = raw_on_terminal(&scene, &[provost, "run", "the\u{7} goal"], &[]);
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.stdout.contains(begin), "{ran:?}");
    }
}
