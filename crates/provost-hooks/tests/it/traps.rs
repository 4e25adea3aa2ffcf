//! Behaviour of scripts that must not hang, leak or go unnoticed.

use std::time::{Duration, Instant};

use provost_event::{HookContract, HookDecision, HookPolicy, HookProgram};
use provost_harness::HookPrograms as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, claude, own, shown};

#[tokio::test]
async fn a_question_larger_than_the_pipe_needs_no_reader() {
    let mut stage = Stage::new();
    stage.input = json!({ "command": "x".repeat(200 * 1024) });
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", "exit 0")).await), "continue");
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", "exec <&-; echo no >&2; exit 2")).await), "deny: no");
    let counts = r#"python3 -c 'import json,sys; d=json.load(sys.stdin); print(len(d["tool_input"]["command"]), file=sys.stderr); sys.exit(2)'"#;
    assert_eq!(
        shown(&stage.ask(&claude("PreToolUse", counts)).await),
        "deny: 204800",
        "and all of it is there"
    );
}

#[tokio::test]
async fn the_timeout_covers_a_question_that_is_not_read() {
    let mut stage = Stage::new();
    stage.input = json!({ "command": "x".repeat(200 * 1024) });
    let began = Instant::now();
    for contract in [HookContract::Claude, HookContract::Provost] {
        let hook = HookPolicy { timeout_ms: 200, contract, ..claude("PreToolUse", "exec sleep 600") };
        assert_eq!(shown(&stage.ask(&hook).await), "no answer: timed out after 0.2 s");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn what_it_said_before_its_time_was_over_is_thrown_away() {
    let stage = Stage::new();
    let script = r#"echo '{"decision":"block","reason":"no"}'; exec sleep 600"#;
    let hook = HookPolicy { timeout_ms: 200, ..claude("PreToolUse", script) };
    assert_eq!(shown(&stage.ask(&hook).await), "no answer: timed out after 0.2 s");
}

#[tokio::test]
async fn ten_megabytes_are_drained_and_a_cut_answer_is_none() {
    let stage = Stage::new();
    let flood = "head -c 10485760 /dev/zero | tr '\\0' x";
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", flood)).await), "continue");
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", &format!("{flood} >&2; exit 0"))).await), "continue");
    // The decision of a large answer is at its end, and whole up to 1 MiB.
    let json = |bytes: u32| {
        let reason = format!("printf '{{\"reason\":\"'; head -c {bytes} /dev/zero | tr '\\0' x");
        format!("{reason}; printf '\",\"decision\":\"block\"}}'")
    };
    for hook in [claude("PreToolUse", &json(1_000_000)), own("pre_tool_call", &json(1_000_000))] {
        let answer = shown(&stage.ask(&hook).await);
        assert!(answer.starts_with("deny: xxx") && answer.contains("998,000 characters more"), "{answer}");
    }
    let why = "its JSON answer has 1,100,032 bytes; at most 1,048,576 are read";
    let answer = shown(&stage.ask(&own("pre_tool_call", &json(1_100_000))).await);
    assert_eq!(answer, format!("failed: {why}"), "its `on_failure` decides");
    // Scripts with this contract let pass what they don't deny: what is missing may be the denial.
    let answer = shown(&stage.ask(&claude("PreToolUse", &json(1_100_000))).await);
    assert_eq!(answer, format!("deny: it can't be known what the hook decides: {why}"));
    let answer = shown(&stage.ask(&claude("Stop", &json(1_100_000))).await);
    assert_eq!(answer, format!("deny: it can't be known what the hook decides: {why}"));
    let refused = format!("{}; echo why >&2; exit 2", json(1_100_000));
    let answer = shown(&stage.ask(&claude("PreToolUse", &refused)).await);
    assert!(answer.starts_with("deny: why | note: its JSON answer has 1,100,032 bytes"), "{answer}");
}

#[tokio::test]
async fn an_answer_behind_a_megabyte_of_text_is_noted() {
    let script =
        r#"python3 -c 'print("x" * 1_200_000); print("{\"decision\":\"block\",\"reason\":\"no\"}")'"#;
    let stage = Stage::new();
    let answer = shown(&stage.ask(&claude("PreToolUse", script)).await);
    assert!(
        answer.starts_with("continue | note: its output has other text before its JSON answer"),
        "{answer}"
    );
    let answer = shown(&stage.ask(&own("pre_tool_call", script)).await);
    assert!(answer.starts_with("failed: its output has other text before its JSON answer"), "{answer}");
}

#[tokio::test]
async fn a_byte_order_mark_before_an_answer_is_skipped() {
    let stage = Stage::new();
    let json = r#"printf '\357\273\277{"decision":"block","reason":"no"}'"#;
    for hook in [claude("PreToolUse", json), own("pre_tool_call", json)] {
        assert_eq!(shown(&stage.ask(&hook).await), "deny: no");
    }
}

#[tokio::test]
async fn a_denial_without_a_reason_is_explained_by_its_message() {
    let stage = Stage::new();
    let json = r#"echo '{"decision":"block","systemMessage":"no tests"}'"#;
    for event in ["PreToolUse", "Stop", "UserPromptSubmit"] {
        let answer = shown(&stage.ask(&claude(event, json)).await);
        assert!(answer.contains("deny: no tests") || answer.contains("pause: no tests"), "{event}: {answer}");
    }
}

#[tokio::test]
async fn a_child_that_holds_the_output_open_does_not_hold_up_the_answer() {
    let stage = Stage::new();
    let began = Instant::now();
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", "sleep 600 & echo no >&2; exit 2")).await), "deny: no");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_child_that_left_the_group_and_ignores_the_wish_to_end_is_ended() {
    let stage = Stage::new();
    let script = "setsid sh -c 'trap \"\" TERM HUP INT; touch up; while :; do sleep 600; done' & \
        while ! test -e up; do :; done; exec sleep 600";
    let hook = HookPolicy { timeout_ms: 400, ..claude("PreToolUse", script) };
    assert_eq!(shown(&stage.ask(&hook).await), "no answer: timed out after 0.4 s");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn cancelling_ends_it_soon() {
    let stage = Stage::new();
    let cancel = CancellationToken::new();
    let hook = claude("PreToolUse", "touch up; exec sleep 600");
    let question = stage.question(hook.point, false);
    let asked = stage.hooks.ask(&hook, &question, hook.point, &cancel);
    let up = async {
        while !stage.work().join("up").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(asked, up);
    assert_eq!(answer.decision, HookDecision::Failed("cancelled".to_owned()));
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn there_is_no_terminal() {
    let stage = Stage::new();
    let script = "(: < /dev/tty) 2>/dev/null && echo 'a terminal' >&2 && exit 2; exit 0";
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", script)).await), "continue");
    let leads = "read -r _ _ _ _ _ session _ < /proc/self/stat; test \"$session\" -gt 0; echo \"$session $$\" >&2; exit 2";
    let answer = shown(&stage.ask(&claude("PreToolUse", leads)).await);
    let numbers: Vec<&str> = answer.trim_start_matches("deny: ").split(' ').collect();
    assert_eq!(numbers.first(), numbers.last(), "it leads a session of its own");
}

/// The environment of this process can't be changed, so this test runs itself again with an environment that has
/// secrets.
#[tokio::test]
async fn keys_and_telemetry_of_the_parent_are_not_passed_on() {
    const INNER: &str = "PROVOST_TEST_INNER";
    if std::env::var_os(INNER).is_none() {
        let name = "traps::keys_and_telemetry_of_the_parent_are_not_passed_on";
        let inner = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args([name, "--exact", "--nocapture"])
            .env(INNER, "1")
            .env("ANTHROPIC_API_KEY", "sk-secret")
            .env("OPENAI_API_KEY", "sk-secret")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "secret")
            .env("OTEL_SERVICE_NAME", "secret")
            .env("CLAUDE_PROJECT_DIR", "/somewhere/else")
            .env("LET_THROUGH", "yes")
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&inner.stdout);
        assert!(inner.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let extra =
        [("LET_THROUGH", "yes"), ("OTEL_SERVICE_NAME", "secret"), ("CLAUDE_PROJECT_DIR", "/somewhere/else")];
    let stage = Stage::with(std::sync::Arc::new(provost_harness::SystemClock), &extra, Default::default());
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", "env > env.txt")).await), "continue");
    let env = stage.file("env.txt");
    assert!(!env.contains("secret"), "{env}");
    let work = stage.work().display().to_string();
    for line in [
        "LET_THROUGH=yes".to_owned(),
        format!("CLAUDE_PROJECT_DIR={work}"),
        "CLAUDE_CODE_SESSION_ID=70704c3d-e0a7-4852-8a07-397036fb52d4".to_owned(),
        "PROVOST_SESSION_ID=000000000007.0".to_owned(),
        "PROVOST_RUN_ID=000000000007".to_owned(),
    ] {
        assert!(env.lines().any(|one| one == line), "{line} in {env}");
    }
    assert_eq!(env.matches("CLAUDE_PROJECT_DIR=").count(), 1);
}

#[tokio::test]
async fn a_shell_quotes_the_project_folder_and_a_program_without_shell_gets_it_as_one_argument() {
    let stage = Stage::new();
    stage.script("hook.sh", "#!/bin/sh\npwd >&2; echo \"$# $1 $2\" >&2; exit 2\n");
    let work = stage.work().display().to_string();
    assert!(work.contains(' '));
    let quoted = claude("PreToolUse", "\"$CLAUDE_PROJECT_DIR\"/hook.sh a 'b c'");
    assert_eq!(shown(&stage.ask(&quoted).await), format!("deny: {work}\\n2 a b c"));
    let braced = claude("PreToolUse", "\"${CLAUDE_PROJECT_DIR}/hook.sh\" \"$CLAUDE_PROJECT_DIR\"");
    assert_eq!(shown(&stage.ask(&braced).await), format!("deny: {work}\\n1 {work}"));
    let exec = |args: &[&str]| HookPolicy {
        program: Some(HookProgram::Exec {
            program: "${CLAUDE_PROJECT_DIR}/hook.sh".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        }),
        ..claude("PreToolUse", "")
    };
    let answer = shown(&stage.ask(&exec(&["${CLAUDE_PROJECT_DIR}/x", "$(id); *"])).await);
    assert_eq!(answer, format!("deny: {work}\\n2 {work}/x $(id); *"));
    assert_eq!(shown(&stage.ask(&exec(&[])).await), format!("deny: {work}\\n0"));
}

#[tokio::test]
async fn no_arguments_mean_no_shell() {
    let stage = Stage::new();
    let program = HookProgram::Exec { program: "echo no >&2; exit 2".to_owned(), args: Vec::new() };
    let answer = shown(&stage.ask(&HookPolicy { program: Some(program), ..claude("PreToolUse", "") }).await);
    assert!(answer.starts_with("deny: it can't be run: \"echo no >&2; exit 2\" was not found"), "{answer}");
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let stage = Stage::new();
    let missing = shown(&stage.ask(&claude("PreToolUse", "./none.sh")).await);
    assert!(missing.starts_with("deny: it can't be run: exit status 127: "), "{missing}");
    std::fs::write(stage.work().join("plain.txt"), "text").expect("written");
    let program = HookProgram::Exec { program: "./plain.txt".to_owned(), args: Vec::new() };
    let refused = shown(&stage.ask(&HookPolicy { program: Some(program), ..claude("PreToolUse", "") }).await);
    assert!(
        refused.starts_with("deny: it can't be run: \"./plain.txt\" could not be started in"),
        "{refused}"
    );
    std::fs::remove_dir_all(stage.work()).expect("removed");
    let gone = shown(&stage.ask(&claude("PreToolUse", "exit 0")).await);
    assert!(
        gone.starts_with("deny: it can't be run: ") && gone.contains("is not there or not a folder"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_hook_without_a_program_gives_no_answer() {
    let hook = HookPolicy { program: None, ..claude("PreToolUse", "") };
    assert_eq!(shown(&Stage::new().ask(&hook).await), "failed: its policy names no program");
}
