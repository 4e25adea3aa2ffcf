//! `provost gateway` in pipes and scripts: the program has the streams, signals and exit status that it has without it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use crate::gateway_provider::{GatewayProvider, KEY};
use crate::support::{Scene, done, gone, json, line_in, until};
use crate::terminal::AtTerminal;

fn scene(provider: &GatewayProvider) -> Scene {
    let scene = Scene::new();
    scene.write("home/.config/provost/config.toml", &provider.settings());
    scene.write("client.py", include_str!("gateway_client.py"));
    scene
}

/// `provost gateway` with these arguments, and with pipes.
fn gateway(scene: &Scene, args: &[&str]) -> Command {
    let mut command = scene.command(&[&["gateway"], args].concat());
    command.env("NEAR_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn shell(scene: &Scene, script: &str) -> Output {
    gateway(scene, &["--", "sh", "-c", script]).output().unwrap()
}

/// Bytes of every value, without line ends for long, that are no text in any encoding.
fn odd_bytes() -> Vec<u8> {
    (0..300_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

#[test]
fn in_a_pipe_the_programs_input_output_and_errors_are_its_own_byte_for_byte() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let mut running =
        gateway(&scene, &["--", "sh", "-c", r"cat; printf '\377\000 wrong\r\n' >&2; test ! -t 2; echo $?"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
    let mut input = running.stdin.take().unwrap();
    let writing = std::thread::spawn(move || input.write_all(&odd_bytes()));
    let output = running.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    let expected = [odd_bytes().as_slice(), b"0\n"].concat();
    assert!(output.stdout == expected, "{} bytes of {}", output.stdout.len(), expected.len());
    assert_eq!(output.stderr, b"\xff\0 wrong\r\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_program_that_is_given_no_input_sees_its_end_and_one_whose_reader_leaves_gets_a_broken_pipe() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    // Without an end of its input it would wait for ever.
    let output = shell(&scene, "read line || echo none");
    assert_eq!(output.stdout, b"none\n", "{output:?}");

    let mut running = gateway(&scene, &["--", "yes"]).spawn().unwrap();
    let mut first = [0; 2];
    running.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"y\n");
    assert_eq!(running.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn the_exit_status_is_that_of_the_program_with_nothing_added_to_what_it_says() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    for (script, status) in [("echo no >&2; exit 7", 7), ("echo no >&2; kill -9 $$", 137)] {
        let output = shell(&scene, script);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b""[..], &b"no\n"[..]),
            "{script}"
        );
    }
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!(shown["program"]["channel"], "streams", "{shown}");
}

#[test]
fn what_the_program_leaves_running_ends_with_it() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let script = "setsid sh -c 'echo $$ > left; exec sleep 1000' & while [ ! -e go ]; do sleep 0.05; done";
    let running = Scene::spawn(gateway(&scene, &["--", "sh", "-c", script]));
    let left = line_in(&scene.path("work/left"));
    scene.write("work/go", "");
    let ended = running.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    gone(&left);
}

#[test]
fn signals_are_forwarded_and_the_third_request_to_end_ends_the_run() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let script = "trap 'echo user >> heard' USR1; trap 'echo int >> heard' INT; trap 'echo term >> heard' TERM; \
                  echo ready > ready; while :; do sleep 0.05; done";
    let heard = |word: &str| {
        until(&format!("the program hears {word}"), || {
            fs::read_to_string(scene.path("work/heard")).ok().filter(|heard| heard.contains(word))
        });
    };
    let running = Scene::spawn(gateway(&scene, &["--", "sh", "-c", script]));
    line_in(&scene.path("work/ready"));
    running.signal("USR1");
    heard("user");
    running.signal("INT");
    heard("int");
    running.signal("TERM");
    heard("term");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.status, 130, "{ended:?}");
    let listed = json(scene.provost(&["ps", "--json", "-n", "1"]).stdout.trim());
    assert_eq!(listed["status"], "paused", "{listed}");
}

#[test]
fn a_signal_that_the_program_does_not_handle_ends_it_as_without_the_gateway() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let running = Scene::spawn(gateway(&scene, &["--", "sh", "-c", "echo ready > ready; exec sleep 1000"]));
    line_in(&scene.path("work/ready"));
    running.signal("TERM");
    let ended = running.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (128 + 15, ""), "{ended:?}");
}

#[test]
fn the_budget_ends_a_program_in_a_pipe_and_the_reason_follows_what_it_said() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let client = scene.path("client.py").display().to_string();
    let args = ["--usd", "0.01", "--", "python3", &client, "messages", "100"];
    let ended = done(&gateway(&scene, &args).output().unwrap());
    assert_eq!(ended.status, 3, "{ended:?}");
    assert!(ended.stdout.contains("refused: 400"), "{ended:?}");
    assert!(ended.stderr.contains("provost resume"), "{ended:?}");
    let cost = json(scene.provost(&["cost", "last", "--json"]).stdout.trim());
    assert!(cost["total"]["cost_micro_usd"].as_u64().unwrap() <= 10_000, "{cost}");

    let run = scene.last_run();
    let mut again = scene.command(&["resume", &run, "--usd", "1"]);
    let resumed = done(&again.env("NEAR_KEY", KEY).output().unwrap());
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "answered: 100\n"), "{resumed:?}");
}

#[test]
fn with_json_the_programs_output_goes_to_standard_error() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let output = gateway(&scene, &["--json", "--", "sh", "-c", "cat; echo said; exit 4"]).output().unwrap();
    let output = done(&output);
    assert_eq!((output.status, output.stderr.as_str()), (4, "said\n"), "{output:?}");
    assert!(output.stdout.lines().all(|line| line.starts_with('{')), "{output:?}");
}

#[test]
fn at_a_terminal_the_program_has_one_of_its_own_and_its_exit_status_counts_too() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!(
        "{provost} gateway -- sh -c 'test -t 0 && test -t 1 && test -t 2 && echo all; exit 7'; echo status $?"
    );
    let mut terminal = AtTerminal::with(&scene, &script, &[("NEAR_KEY", KEY)]);
    terminal.hears("all");
    terminal.hears("status 7");
}

#[test]
fn where_only_the_input_is_a_terminal_the_program_reads_it_and_its_output_is_the_pipe() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!(
        "echo ready; {provost} gateway -- sh -c 'read line; echo got $line; test -t 0; echo in $?; test -t 1; echo out $?' \
         > out.txt 2> err.txt; echo status $?"
    );
    let mut terminal = AtTerminal::with(&scene, &script, &[("NEAR_KEY", KEY)]);
    terminal.hears("ready");
    terminal.types("words\n");
    terminal.hears("status 0");
    let out = fs::read_to_string(scene.path("work/out.txt")).unwrap();
    assert_eq!(out, "got words\nin 0\nout 1\n");
    assert_eq!(fs::read_to_string(scene.path("work/err.txt")).unwrap(), "");
}
