//! `record:` and `replay:`: a run's answers recorded in a file and replayed, without a key.

use crate::model_server::{ModelServer, refusal};
use crate::support::Scene;

const USER_FILE: &str = "home/.config/provost/config.toml";

/// A stream with these deltas.
fn stream(deltas: &[&str], finish: &str) -> String {
    let chunk = |delta: &&str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
    };
    let chunks = deltas.iter().map(chunk).collect::<String>();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{chunks}\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}],\"usage\":{{\"prompt_tokens\":10,\"completion_tokens\":2}}}}\n\n\
         data: [DONE]\n\n"
    )
}

fn call(id: &str, command: &str) -> String {
    let arguments = serde_json::json!({ "command": command }).to_string();
    serde_json::json!({"tool_calls": [{"index": 0, "id": id, "type": "function",
        "function": {"name": "shell", "arguments": arguments}}]})
    .to_string()
}

/// The log of the last run without the parts that differ from run to run.
fn log(scene: &Scene) -> String {
    let lines = scene.provost(&["logs", "last"]).stdout;
    let kept =
        |line: &&str| !["budget_", "run_started", "session_started"].iter().any(|kind| line.contains(kind));
    lines.lines().filter(kept).map(|line| format!("{}\n", scene.stable(&line[21..]))).collect()
}

#[test]
fn a_recorded_run_is_played_again_without_a_key_and_no_secret_is_in_the_file() {
    let secret = "sk-secret-key-0123456789";
    let answers = vec![
        refusal(500, r#"{"error":{"message":"hiccup"}}"#),
        stream(
            &[r#"{"content":"Let me see."}"#, &call("c1", &format!("echo {secret} > leaked; echo out"))],
            "tool_calls",
        ),
        stream(
            &[&call("c2", "echo ghp_0123456789abcdefghijklmnopqrstuvwxyz; cat leaked | wc -l")],
            "tool_calls",
        ),
        stream(&[r#"{"content":"All "}"#, r#"{"content":"done."}"#], "stop"),
    ];
    let server = ModelServer::plain(answers);
    let scene = Scene::new();
    scene
        .write(USER_FILE, &format!("[providers.mine]\nbase_url = \"http://127.0.0.1:{}/v1\"\n", server.port));
    let args = ["run", "look", "--model", "record:tape.jsonl=mine/big"];
    let recorded = scene.command(&args).env("MINE_API_KEY", secret).output().unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    assert_eq!(String::from_utf8(recorded.stdout).unwrap(), "All done.\n");
    let recorded_log = log(&scene);
    let tape = std::fs::read_to_string(scene.path("work/tape.jsonl")).unwrap();
    assert!(!tape.contains("sk-secret") && !tape.contains("ghp_0123"), "{tape}");
    std::fs::remove_file(scene.path("work/leaked")).unwrap();
    let replayed = scene.provost(&["run", "look", "--model", "replay:tape.jsonl"]);
    assert_eq!((replayed.status, replayed.stdout.as_str()), (0, "All done.\n"), "{replayed:?}");
    assert!(scene.path("work/leaked").exists(), "the tools are real");
    let hidden = recorded_log
        .replace(secret, "[secret]")
        .replace("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "[secret]");
    let replayed_log = log(&scene).replace("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "[secret]");
    assert_eq!(replayed_log, hidden);
    // The last answer has no verdict: it is asked once more, and so it is when it is replayed.
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn what_cant_be_recorded_or_replayed_says_why() {
    let scene = Scene::new();
    let refused = |model: &str| {
        let done = scene.provost(&["run", "x", "--model", model]);
        assert_eq!(done.status, 2, "{done:?}");
        scene.stable(&done.stderr)
    };
    assert!(refused("record:tape.jsonl").contains("write record:FILE=PROVIDER/MODEL"));
    assert!(refused("record:tape.jsonl=anthropic/claude-sonnet-4-5").contains("set ANTHROPIC_API_KEY"));
    assert!(refused("replay:none.jsonl").contains("none.jsonl"));
    scene.write("work/notes.txt", "not a recording\n");
    assert!(refused("replay:notes.txt").contains("notes.txt"));
}
