//! `shell`: output, endings, environment.

use std::time::{Duration, Instant};

use expect_test::expect;
use provost_event::{Json, ToolStatus};
use provost_harness::Tool;
use provost_tools::Shell;
use serde_json::json;

use crate::fixture::{Fixture, call_in};

/// Whether a process runs with `mark` as an argument.
pub(crate) fn runs(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes()))
}

#[tokio::test]
async fn output_comes_merged_and_a_failure_says_its_status_last() {
    let fixture = Fixture::new();
    let ok = expect![[r#"
        Ok
        one
        two
        three
    "#]];
    fixture.check("shell", json!({"command": "echo one; echo two >&2\necho three"}), ok).await;
    let silent = expect![[r#"
        Ok
        [no output]
    "#]];
    fixture.check("shell", json!({"command": "true", "description": "nothing"}), silent).await;
    let failed = expect![[r#"
        Error
        half
        exit status 3
    "#]];
    fixture.check("shell", json!({"command": "printf half; exit 3"}), failed).await;
    let signalled = expect![[r#"
        Error
        ended by signal 9
    "#]];
    fixture.check("shell", json!({"command": "kill -9 $$"}), signalled).await;
    let unknown = expect![[r#"
        Error
        /usr/bin/bash: line 1: no_such_program_here: command not found
        exit status 127
    "#]];
    fixture.check("shell", json!({"command": "no_such_program_here"}), unknown).await;
    let syntax = expect![[r#"
        Error
        /usr/bin/bash: eval: line 1: syntax error near unexpected token `then'
        /usr/bin/bash: eval: line 1: `if then'
        exit status 2
    "#]];
    fixture.check("shell", json!({"command": "if then"}), syntax).await;
    let empty = expect![[r#"
        Rejected
        `command` is empty: there is nothing to run
    "#]];
    fixture.check("shell", json!({"command": " \n"}), empty).await;
}

#[tokio::test]
async fn quotes_and_documents_reach_the_shell_as_they_are() {
    let command =
        "cat <<'END'\nit's \"here\" $HOME `x` \\n\nEND\nprintf '%s|' a 'b c' \"d'e\"; echo \"$# $0\"";
    let output = Fixture::new().call("shell", json!({"command": command})).await;
    let expected = expect![[r#"
        it's "here" $HOME `x` \n
        a|b c|d'e|0 /usr/bin/bash"#]];
    expected.assert_eq(&output.text);
}

#[tokio::test]
async fn the_options_a_command_sets_are_its_own() {
    let fixture = Fixture::new();
    let traced = expect![[r#"
        Error
        ++ echo hi
        hi
        ++ false
        exit status 1
    "#]];
    fixture.check("shell", json!({"command": "set -eux; echo hi; false; echo not"}), traced).await;
    let trap = expect![[r#"
        Error
        bye
        exit status 4
    "#]];
    fixture.check("shell", json!({"command": "trap 'echo bye >&2' EXIT; (exit 4)"}), trap).await;
}

#[tokio::test]
async fn a_timeout_ends_everything_and_says_after_how_long() {
    let fixture = Fixture::new();
    let mark = format!("987.{}", std::process::id());
    let command = format!("echo started; (setsid sleep {mark} &) ; sleep {mark}");
    let began = Instant::now();
    let output = fixture.call("shell", json!({"command": command, "timeout_secs": 1})).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let expected = expect![[r#"
        TimedOut
        started
        timed out after 1 s: the command and everything it started was ended
    "#]];
    expected.assert_eq(&fixture.shown(&output));
    assert!(!runs(&mark));
}

#[tokio::test]
async fn a_timeout_may_only_be_shortened() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    context.timeout = Duration::from_millis(500);
    let output = call_in(&context, "shell", json!({"command": "sleep 100", "timeout_secs": 50})).await;
    assert_eq!(output.status, ToolStatus::TimedOut);
    assert!(output.text.starts_with("timed out after 0.5 s"), "{}", output.text);
}

#[tokio::test]
async fn a_time_above_the_maximum_is_shortened_and_the_answer_says_so() {
    let fixture = Fixture::new();
    let output = fixture.call("shell", json!({"command": "echo hi", "timeout_secs": 86_400})).await;
    assert_eq!(output.text, "hi\n[timeout_secs 86400 is above the maximum: 600 counted]");
    let output = fixture.call("shell", json!({"command": "echo hi", "timeout_secs": 600})).await;
    assert_eq!(output.text, "hi");
    let output =
        fixture.call("terminal", json!({"action": "start", "command": "true", "wait_ms": 900_000})).await;
    assert!(
        output.text.ends_with("[wait_ms 900000 is above the maximum: 120000 counted]"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn cancelling_ends_everything() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mark = format!("986.{}", std::process::id());
    let cancel = async {
        // The file shows that the command runs.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !fixture.path("started").exists() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        context.cancel.cancel();
    };
    let command = format!("echo partly; : > started; sleep {mark}");
    let (output, ()) = tokio::join!(call_in(&context, "shell", json!({"command": command})), cancel);
    let expected = expect![[r#"
        Cancelled
        partly
        cancelled: the command and everything it started was ended
    "#]];
    expected.assert_eq(&fixture.shown(&output));
    assert!(!runs(&mark));
}

#[tokio::test]
async fn what_is_left_in_the_background_ends_with_the_call() {
    let mark = format!("985.{}", std::process::id());
    let began = Instant::now();
    let command = format!("sleep {mark} & nohup setsid sleep {mark} >/dev/null 2>&1 & echo done");
    let output = Fixture::new().call("shell", json!({"command": command})).await;
    assert_eq!((output.status, output.text.as_str()), (ToolStatus::Ok, "done"));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!runs(&mark));
}

#[tokio::test]
async fn git_waits_for_no_editor() {
    let fixture = Fixture::new();
    // The repository's editor would wait for ever, as one does without input.
    let repository = "git init -q && git config user.name a && git config user.email a@example.org && \
        git config core.editor 'sleep 600; true' && git config sequence.editor 'sleep 600; true' && \
        git commit -q --allow-empty -m one && git commit -q --allow-empty -m two";
    let made = fixture.call("shell", json!({"command": repository})).await;
    assert_eq!(made.status, ToolStatus::Ok, "{}", made.text);
    let output =
        fixture.call("shell", json!({"command": "git commit --allow-empty", "timeout_secs": 10})).await;
    assert_eq!(output.status, ToolStatus::Error, "{}", output.text);
    assert!(output.text.contains("empty commit message"), "{}", output.text);
    for command in ["git commit --amend --allow-empty", "git rebase -i HEAD~1", "git log", "git diff HEAD~1"]
    {
        let output = fixture.call("shell", json!({"command": command, "timeout_secs": 10})).await;
        assert_eq!(output.status, ToolStatus::Ok, "{command}: {}", output.text);
    }
    let other = fixture.call("shell", json!({"command": "$EDITOR x || $VISUAL x || echo neither"})).await;
    assert_eq!(other.text, "neither");
}

#[tokio::test]
async fn a_variable_that_is_passed_on_is_seen_as_it_is() {
    let fixture = Fixture::new();
    // Cargo sets it for tests; git's variables aren't inherited.
    let input = Json::of(&json!({"command": "echo \"<$EDITOR|$CARGO_MANIFEST_DIR>\""})).unwrap();
    let folder = env!("CARGO_MANIFEST_DIR");
    let own = Shell::new().call(&input, &fixture.context()).await;
    assert_eq!(own.text, format!("<false|{folder}>"));
    let passed = Shell::new().with_env(["EDITOR"]).call(&input, &fixture.context()).await;
    let editor = std::env::var("EDITOR").unwrap_or_else(|_| "false".to_owned());
    assert_eq!(passed.text, format!("<{editor}|{folder}>"));
}

#[tokio::test]
async fn progress_bars_and_colours_are_left_out_of_the_output() {
    let command = r"printf ' 10 %%\r 60 %%\r100 %%\n\033[1;31merror\033[0m: x\r\n'";
    let output = Fixture::new().call("shell", json!({"command": command})).await;
    assert_eq!(output.text, "100 %\nerror: x");
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_long_commands_are_refused() {
    let fixture = Fixture::new();
    let output =
        fixture.call("shell", json!({"command": "echo first; yes | head -c 20000000; echo last"})).await;
    assert!(output.text.starts_with("first\n") && output.text.ends_with("\nlast"));
    assert!(output.text.contains("bytes left out]"));
    assert!(output.text.len() < provost_tools::SHELL_KEEP_BYTES_MAX + 100);
    let too_long = expect![[r#"
        Rejected
        `command` is too long (195.3 KB; at most about 128.0 KB): write it to a file with write_file and run that
    "#]];
    fixture.check("shell", json!({"command": "x".repeat(200_000)}), too_long).await;
    let output = fixture.call("shell", json!({"command": format!(": {}", "x".repeat(130_000))})).await;
    assert_eq!(output.status, ToolStatus::Ok, "{}", output.text);
}
