//! `[permissions]` and `[trace]`.

use expect_test::expect;
use serde_json::{Value, json as value};

use crate::settings_errors::check;
use crate::support::{Scene, json};

const USER_FILE: &str = "home/.config/provost/config.toml";

fn done() -> Scene {
    Scene::scripted("answers: [{ text: done }]")
}

/// The permissions of a run in `scene`.
#[track_caller]
fn permissions_of(scene: &Scene, env: &[(&str, &str)]) -> Value {
    let output = scene.command(&["run", "x", "--json"]).envs(env.iter().copied()).output().unwrap();
    let started = String::from_utf8(output.stdout).unwrap();
    json(started.lines().next().unwrap_or_default())["policy"]["agent"]["permissions"].clone()
}

#[test]
fn patterns_that_cant_be_are_told_where_they_stand() {
    check(
        "[permissions]\nallow = [\"read_file\",\n  \"shell(git\"]\ndeny = [\"\", 3]\nask = \"shell\"\napproved = [\"shell\"]\n",
        expect![[r#"
            provost.toml:3:3: permissions.allow: the pattern `shell(git` isn't closed: write `)` at its end; e.g. allow = ["read_file", "search", "shell(cargo *)"]
            provost.toml:4:9: permissions.deny: the pattern `` names no tool: write `tool` or `tool(PATTERN)`, or `*` for every tool; e.g. deny = ["shell(rm -rf *)", "write_file(.env)"]
            provost.toml:4:13: permissions.deny: each must be text in quotes (is 3); e.g. deny = ["shell(rm -rf *)", "write_file(.env)"]
            provost.toml:5:1: permissions.ask: must be a list of texts in [brackets] (is text); e.g. ask = ["shell(git push *)"]
            provost.toml:6:1: permissions.approved: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml
        "#]],
    );
    check(
        "[permissions]\ndefault = \"maybe\"\napproval_timeout = 5\nunanswered = \"allow\"\nalow = []\n",
        expect![[r#"
            provost.toml:2:1: permissions.default: must be one of allow, ask, deny (is `maybe`); e.g. default = "ask"
            provost.toml:3:1: permissions.approval_timeout: must be a time with its unit, in quotes (is 5); e.g. approval_timeout = "15m"
            provost.toml:4:1: permissions.unanswered: must be one of deny, pause (is `allow`); e.g. unanswered = "pause"
            provost.toml:5:1: permissions.alow: there is no such setting; did you mean `permissions.allow`?
        "#]],
    );
}

#[test]
fn a_project_may_not_say_where_traces_go() {
    check(
        "[trace]\nfile = \"trace.jsonl\"\notlp_endpoint = \"http://x\"\notlp_content = true\n",
        expect![[r#"
            provost.toml:2:1: trace.file: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_TRACE_FILE
            provost.toml:3:1: trace.otlp_endpoint: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_TRACE_OTLP_ENDPOINT
            provost.toml:4:1: trace.otlp_content: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_TRACE_OTLP_CONTENT
        "#]],
    );
}

#[test]
fn the_lists_of_all_files_add_up() {
    let scene = done();
    scene.write(
        USER_FILE,
        "[permissions]\nallow = [\"read_file\"]\ndeny = [\"shell(rm *)\"]\napproved = [\"shell(git push)\"]\n",
    );
    let scene = scene.with_settings(
        "[permissions]\ndeny = [\"write_file(.env)\"]\nask = [\"shell\"]\nunanswered = \"pause\"\n",
    );
    let expected = value!({
        "allow": ["read_file"], "ask": ["shell"], "deny": ["shell(rm *)", "write_file(.env)"],
        "approved": ["shell(git push)"], "default": "ask", "approval_timeout_ms": 3_600_000, "unanswered": "pause",
    });
    assert_eq!(permissions_of(&scene, &[]), expected);
    let variables = [("PROVOST_PERMISSIONS_DEFAULT", "deny"), ("PROVOST_PERMISSIONS_APPROVAL_TIMEOUT", "5m")];
    let changed = permissions_of(&scene, &variables);
    assert_eq!((&changed["default"], &changed["approval_timeout_ms"]), (&value!("deny"), &value!(300_000)));
    let lists = scene.command(&["check"]).env("PROVOST_PERMISSIONS_ALLOW", "shell").output().unwrap();
    assert_eq!(lists.status.code(), Some(2), "a list is no variable's");
}

#[test]
fn without_settings_everything_is_allowed() {
    assert_eq!(permissions_of(&done(), &[]), value!(null), "the log needs no word for that");
}

#[test]
fn a_trace_is_written_and_how_it_fared_is_kept() {
    let scene = done();
    let trace = scene.path("trace.jsonl");
    scene.write(USER_FILE, &format!("[trace]\nfile = \"{}\"\n", trace.display()));
    let ran = scene.provost(&["run", "x", "--json"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(json(ran.stdout.lines().next().unwrap())["policy"]["observers"], value!(["trace.file"]));
    let lines = std::fs::read_to_string(&trace).unwrap();
    assert!(
        lines.lines().all(|line| json(line)["event"].is_string()) && lines.contains("RUN_END"),
        "{lines}"
    );
    let run = scene.last_run();
    let kept = std::fs::read_to_string(scene.path(&format!("state/observers/{run}.jsonl"))).unwrap();
    let kept = json(kept.trim_end());
    assert_eq!((&kept["observer"], &kept["state"]), (&value!("trace.file"), &value!("finished")));
    assert_eq!(kept["delivered"], lines.lines().count());
    assert_eq!((&kept["lost"], &kept["failed"]), (&value!(0), &value!(0)));
}

#[test]
fn a_trace_that_cant_be_is_an_error_before_the_run() {
    let scene = done();
    scene.write(USER_FILE, "[trace]\nfile = \"/nowhere/trace.jsonl\"\n");
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("trace.file: /nowhere/trace.jsonl can't be a file"), "{ran:?}");
    scene.write(
        USER_FILE,
        "[trace]\notlp_endpoint = \"http://127.0.0.1:1\"\notlp_headers_env = \"NOT_THERE\"\n",
    );
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("trace.otlp_headers_env: NOT_THERE isn't set"), "{ran:?}");
}

#[test]
fn a_trace_that_fails_is_told_at_the_end_and_the_run_stands() {
    let scene = done();
    // Every write to it fails.
    scene.write(USER_FILE, "[trace]\nfile = \"/dev/full\"\n");
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("warning: trace.file didn't see or do all: "), "{ran:?}");
}
