//! A provider's key that a model, a tool or a provider repeats is in nothing that Provost keeps or shows.

use std::fs;
use std::path::Path;

use crate::exec::holding;
use crate::model_server::{ModelServer, refusal};
use crate::support::{Done, Scene, done};

const KEY: &str = "sk-canary-0123456789abcdef";
/// The masks: Provost's, and the adapter's in a provider's messages.
const MASKS: [&str; 2] = ["[secret]", "[key]"];

fn with_key(scene: &Scene, args: &[&str]) -> Done {
    done(&scene.command(args).env("ANTHROPIC_API_KEY", KEY).output().unwrap())
}

/// A run of `answers`, with every kind of record enabled.
fn run(answers: &str) -> (Scene, Done) {
    let scene = Scene::scripted(answers);
    let trace = scene.path("state/trace.jsonl");
    scene.write("home/.config/provost/config.toml", &format!("[trace]\nfile = {trace:?}\n"));
    let ran = with_key(&scene, &["run", "x", "--json"]);
    (scene, ran)
}

/// The key is in no file of the state folder, and in no output about the run; the mask is in its log.
#[track_caller]
fn check_masked(what: &str, scene: &Scene) {
    assert_eq!(holding(&scene.path("state"), KEY), Vec::<String>::new(), "{what}");
    for args in [
        &["logs", "last"][..],
        &["logs", "last", "--json"],
        &["logs", "last", "--view"],
        &["show", "last"],
        &["show", "last", "--json"],
        &["explain", "last"],
        &["export", "last"],
    ] {
        // Without the key in the environment: the text was masked when it was written.
        let printed = scene.provost(args);
        assert_eq!(printed.status, 0, "{what}, {args:?}: {printed:?}");
        assert!(
            !printed.stdout.contains(KEY) && !printed.stderr.contains(KEY),
            "{what}, {args:?}: {printed:?}"
        );
    }
    let log = scene.provost(&["export", "last"]).stdout;
    assert!(MASKS.iter().any(|mask| log.contains(mask)), "{what}: {log}");
}

#[test]
fn a_key_that_a_model_repeats_is_masked_in_what_it_says_and_calls() {
    let halves = KEY.split_at(9);
    let (first, second) = halves;
    for (what, answers) in [
        ("in a text", format!("answers: [{{ text: 'the key is {KEY}, I think' }}]")),
        ("over two deltas", format!("answers: [{{ text: ['the key is {first}', '{second}, I think'] }}]")),
        ("with a control sequence in it", format!("answers: [{{ text: \"it is {first}\\e[0m{second}\" }}]")),
        ("with a NUL in it", format!("answers: [{{ text: \"it is {first}\\0{second}\" }}]")),
        ("as a tool's name", format!("answers: [{{ tools: [{{ 'use_{KEY}': {{}} }}] }}, {{ text: done }}]")),
        ("in a thought", format!("answers: [{{ thinking: 'it is {KEY}', text: done }}]")),
        (
            "in a call",
            format!("answers: [{{ tools: [{{ shell: {{ command: 'echo {KEY}' }} }}] }}, {{ text: done }}]"),
        ),
        (
            "in a call that can't be read",
            format!(
                "answers: [{{ tools: [{{ name: shell, malformed: '{{\"command\": \"echo {KEY}' }}] }}, {{ text: done }}]"
            ),
        ),
        (
            "in the name of a file that isn't there",
            format!("answers: [{{ tools: [{{ read_file: {{ path: '{KEY}' }} }}] }}, {{ text: done }}]"),
        ),
        (
            "in a plan",
            format!(
                "answers: [{{ tools: [{{ update_plan: {{ items: [{{ text: 'use {KEY}', status: open }}] }} }}] }}, {{ text: done }}]"
            ),
        ),
    ] {
        let (scene, ran) = run(&answers);
        assert_eq!(ran.status, 0, "{what}: {ran:?}");
        check_masked(what, &scene);
    }
}

#[test]
fn a_key_in_a_tools_output_is_masked_before_it_is_shown() {
    let (first, second) = KEY.split_at(9);
    let command = format!("printf '%s%s\\n' {first} {second}");
    let command = command.replace('\'', "''");
    let (scene, ran) =
        run(&format!("answers: [{{ tools: [{{ shell: {{ command: '{command}' }} }}] }}, {{ text: done }}]"));
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.stdout.contains(KEY), "{ran:?}");
    check_masked("in a tool's output", &scene);
}

#[test]
fn a_key_that_a_provider_repeats_in_an_error_is_masked() {
    let server = ModelServer::plain(vec![refusal(
        400,
        &format!("{{\"error\":{{\"message\":\"no such key: {KEY}\"}}}}"),
    )]);
    let scene = Scene::new();
    let address = format!("http://127.0.0.1:{}/v1", server.port);
    scene.write(
        "home/.config/provost/config.toml",
        &format!("[providers.mine]\nbase_url = \"{address}\"\napi_key_env = \"ANTHROPIC_API_KEY\"\n"),
    );
    scene.write("work/provost.toml", "[agent]\nmodel = \"mine/x\"\n");
    let ran = with_key(&scene, &["run", "x", "--allow-unpriced"]);
    assert!(ran.status != 0 && ran.stderr.contains("no such key"), "{ran:?}");
    assert!(!ran.stderr.contains(KEY), "{ran:?}");
    check_masked("in a provider's error", &scene);
}

#[test]
fn a_key_that_a_program_shows_at_its_terminal_is_masked_in_log_and_recording() {
    let (first, second) = KEY.split_at(9);
    let scene = Scene::new();
    let script = format!("printf '%s%s is the key\\n' {first} {second}");
    let ran = with_key(&scene, &["exec", "--unattended", "--", "sh", "-c", &script]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(holding(&scene.path("state"), KEY), Vec::<String>::new());
    assert!(has_recording(&scene.path("state")), "else this shows nothing");
}

/// Wherever a row of the screen ends.
#[test]
fn a_key_that_goes_on_in_the_next_row_of_a_terminal_is_masked() {
    let (first, second) = KEY.split_at(9);
    let rows = (56..136).step_by(8).map(|pad| format!("printf '%{pad}s%s%s\\n' x {first} {second}; "));
    let scene = Scene::new();
    let ran = with_key(&scene, &["exec", "--unattended", "--", "sh", "-c", &rows.collect::<String>()]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    let said = log.lines().find(|line| line.contains("assistant_message")).unwrap();
    assert!(said.matches("[secret]").count() > 6, "{said}");
    for part in KEY.as_bytes().windows(10).map(|part| std::str::from_utf8(part).unwrap()) {
        assert!(!said.contains(part), "{part}: {said}");
    }
}

fn has_recording(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() { has_recording(&path) } else { path.extension().is_some_and(|end| end == "cast") }
    })
}

/// A command that prints the key, which is nowhere in one piece.
fn printing_key() -> String {
    let (first, second) = KEY.split_at(9);
    format!("printf '%s%s' {first} {second}")
}

#[test]
fn a_key_that_a_stop_hook_prints_is_masked_whatever_it_says_with_it() {
    let print = printing_key();
    for (what, status, stream) in [
        ("blocks", 2, ""),
        ("blocks on standard error", 2, " >&2"),
        ("halts", 3, ""),
        ("fails", 1, ""),
        ("is broken", 126, " >&2"),
    ] {
        let scene = Scene::scripted("answers: [{ text: done }, { text: done }, { text: done }]");
        let check =
            format!("[[stop_hooks]]\nname = \"check\"\ncommand = \"{print}{stream}; exit {status}\"\n");
        let scene = scene.with_settings(&check).trusted();
        let ran = with_key(&scene, &["run", "x"]);
        assert_ne!(ran.status, 0, "{what}: {ran:?}");
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{what}: {ran:?}");
        check_masked(what, &scene);
    }
}

#[test]
fn a_key_that_a_hook_prints_is_masked_whatever_it_decides() {
    let print = printing_key();
    let long = format!("i=0; while [ $i -lt 500 ]; do {print}; i=$((i+1)); done");
    for (what, event, command) in [
        ("denies a call", "pre_tool_call", format!("{print} >&2; exit 2")),
        ("fails", "pre_tool_call", format!("{print} >&2; exit 1")),
        ("says more than is kept", "pre_tool_call", format!("({long}) >&2; exit 2")),
        ("objects to a result", "post_tool_call", format!("{print} >&2; exit 2")),
        ("refuses the prompt", "prompt_submit", format!("{print} >&2; exit 2")),
        ("refuses the stop", "stop", format!("{print} >&2; exit 2")),
    ] {
        let answers = "answers: [{ tools: [list_dir] }, { text: done }, { text: done }, { text: done }]";
        let hook = format!("[[hooks]]\nevent = \"{event}\"\ncommand = \"{command}\"\n");
        let scene = Scene::scripted(answers).with_settings(&hook).trusted();
        let ran = with_key(&scene, &["run", "x"]);
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{what}: {ran:?}");
        check_masked(what, &scene);
    }
}

/// A key in a file, though a variable stands before it; a variable that fills a hook's header, whatever its name.
#[test]
fn keys_in_files_and_in_headers_of_hooks_are_masked() {
    let command = "cat key; for i in acme; do echo $i-auth-7777; done";
    let scene = Scene::scripted(&format!(
        "answers: [{{ tools: [{{ shell: {{ command: '{command}' }} }}] }}, {{ text: done }}]"
    ));
    scene.write("work/key", "acme-file-5555\n");
    let file = scene.path("work/key");
    scene.write(
        "home/.config/provost/config.toml",
        &format!(
            "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"ACME_MINE\"\napi_key_file = {file:?}\n\
             [[hooks]]\nevent = \"session_start\"\nurl = \"http://127.0.0.1:9/x\"\n\
             headers = {{ Authorization = \"Bearer $ACME_AUTH\" }}\nallowed_env = [\"ACME_AUTH\"]\n"
        ),
    );
    let mut command = scene.command(&["run", "x"]);
    let ran = done(
        &command.env("ACME_MINE", "acme-mine-3333").env("ACME_AUTH", "acme-auth-7777").output().unwrap(),
    );
    assert_eq!(ran.status, 0, "{ran:?}");
    let log = scene.provost(&["export", "last"]).stdout;
    assert!(log.contains("[secret]\\n[secret]"), "{log}");
    for key in ["acme-file-5555", "acme-auth-7777"] {
        assert_eq!(holding(&scene.path("state"), key), Vec::<String>::new());
    }
}

#[test]
fn values_of_headers_are_masked_whatever_the_headers_name() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'for i in plain; do echo $i-hook-7777 $i-tele,4444 $i-tele%2C4444; done' } }] }, { text: done }]",
    );
    scene.write(
        "home/.config/provost/config.toml",
        "[trace]\notlp_endpoint = \"http://127.0.0.1:9\"\notlp_headers_env = \"COLLECTOR\"\n\
         [[hooks]]\nevent = \"session_start\"\nurl = \"http://127.0.0.1:9/x\"\n\
         headers = { X-Of = \"${ACME}\" }\nallowed_env = [\"ACME\"]\n",
    );
    let mut command = scene.command(&["run", "x"]);
    command.env("ACME", "plain-hook-7777").env("COLLECTOR", "x-of=plain-tele%2C4444");
    let ran = done(&command.output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
    let log = scene.provost(&["export", "last"]).stdout;
    assert!(log.contains("[secret] [secret] [secret]"), "{log}");
    for value in ["plain-hook-7777", "plain-tele,4444", "plain-tele%2C4444"] {
        assert_eq!(holding(&scene.path("state"), value), Vec::<String>::new(), "{value}");
    }
}
