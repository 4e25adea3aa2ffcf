//! Interactive programs: real ones, at real terminals.

use std::time::Duration;

use provost_event::{ActorKey, EffectId, Json, RunId, Seq, SessionId, ToolStatus};
use provost_harness::{Tool, ToolContext, ToolOutput};
use provost_tools::Terminal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::Fixture;

/// A tool, and the session that calls it.
struct TerminalFixture {
    fixture: Fixture,
    tool: Terminal,
    context: ToolContext,
}

impl TerminalFixture {
    fn new() -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        Self { fixture, tool: Terminal::new(), context }
    }

    async fn call(&self, input: Value) -> ToolOutput {
        self.tool.call(&Json::of(&input).unwrap(), &self.context).await
    }

    async fn ok(&self, input: Value) -> String {
        let output = self.call(input).await;
        assert_eq!(output.status, ToolStatus::Ok, "{}", output.text);
        output.text
    }

    async fn fails(&self, input: Value, status: ToolStatus) -> String {
        let output = self.call(input).await;
        assert_eq!(output.status, status, "{}", output.text);
        output.text
    }

    /// The number of processes in the workspace.
    fn left(&self) -> usize {
        let here = self.fixture.root();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|entry| {
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&here))
            })
            .count()
    }

    async fn until_nothing_left(&self) {
        let began = std::time::Instant::now();
        while self.left() > 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "something is left");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn an_interpreter_is_started_used_over_several_calls_and_ends() {
    let terminals = TerminalFixture::new();
    let started =
        terminals.ok(json!({"action": "start", "command": "python3 -q", "rows": 12, "cols": 60})).await;
    assert!(started.starts_with("[`python3 -q`: waiting for input") && started.ends_with(">>>"), "{started}");
    let sum = terminals.ok(json!({"action": "send", "text": "x = 20 + 22"})).await;
    assert!(sum.ends_with(">>> x = 20 + 22\n>>>"), "{sum}");
    let shown = terminals.ok(json!({"action": "send", "text": "print(x)"})).await;
    assert!(shown.ends_with("42\n>>>"), "{shown}");
    assert_eq!(terminals.ok(json!({"action": "read"})).await, shown);
    let ended = terminals.ok(json!({"action": "send", "keys": ["Ctrl-D"]})).await;
    assert!(ended.starts_with("[`python3 -q` has ended: exit status 0]"), "{ended}");
    terminals.until_nothing_left().await;
    // Its name is free again, and now denotes the new program.
    let again = terminals.ok(json!({"action": "start", "command": "cat; exit 3"})).await;
    assert!(again.contains("(the screen is blank)"), "{again}");
    let stopped = terminals.ok(json!({"action": "stop"})).await;
    assert!(stopped.starts_with("[`cat; exit 3` has ended:"), "{stopped}");
    let none = terminals.fails(json!({"action": "read"}), ToolStatus::Rejected).await;
    assert_eq!(none, "there is no terminal `main`: none runs; `start` begins one");
}

#[tokio::test]
async fn a_question_is_told_and_answered() {
    let terminals = TerminalFixture::new();
    let script = "read -p 'Delete everything? [y/N] ' answer; echo; echo \"you said $answer\"; read -r more";
    let asked = terminals.ok(json!({"action": "start", "command": script})).await;
    assert!(
        asked.contains("blocked (approval)") && asked.contains("it asks: Delete everything? [y/N]"),
        "{asked}"
    );
    let answered = terminals.ok(json!({"action": "send", "text": "n"})).await;
    assert!(answered.contains("you said n"), "{answered}");
}

#[tokio::test]
async fn nothing_is_typed_into_a_prompt_for_a_password() {
    let terminals = TerminalFixture::new();
    let script = "read -rs -p 'Password: ' secret; echo; echo \"got ${#secret} letters\"; read -r more";
    let asked = terminals.ok(json!({"action": "start", "command": script})).await;
    assert!(asked.contains("asks for a password"), "{asked}");
    for input in [
        json!({"action": "send", "text": "hunter2"}),
        json!({"action": "send", "text": "hunter2", "submit": false}),
        json!({"action": "send", "keys": ["h", "Enter"]}),
        json!({"action": "send", "text": "", "submit": true}),
        json!({"action": "send", "text": "x", "keys": ["Ctrl-C"]}),
    ] {
        let refused = terminals.fails(input, ToolStatus::Error).await;
        assert!(refused.contains("reads a password"), "{refused}");
    }
    let shown = terminals.ok(json!({"action": "read", "wait_ms": 0})).await;
    assert!(shown.ends_with("\nPassword:"), "{shown}");
    let stopped = terminals.ok(json!({"action": "send", "keys": ["Ctrl-C"]})).await;
    assert!(stopped.contains("has ended"), "{stopped}");
}

#[tokio::test]
async fn keys_reach_a_full_screen_program_as_its_keyboard_sends_them() {
    let terminals = TerminalFixture::new();
    let script = "printf '\\033[?1h'; stty raw -echo; touch ready; dd bs=1 count=11 2>/dev/null | od -An -c; stty sane; read -r more";
    terminals.ok(json!({"action": "start", "command": script})).await;
    let keys = json!(["Up", "Enter", "Ctrl-X", "Alt-b", "PageDown", "q"]);
    let seen = terminals.ok(json!({"action": "send", "keys": keys})).await;
    assert!(seen.contains("033   O   A  \\r 030 033   b 033   [   6   ~"), "{seen}");
    let unknown = terminals.fails(json!({"action": "send", "keys": ["Hyper-Q"]}), ToolStatus::Rejected).await;
    assert!(unknown.starts_with("`Hyper-Q` is no key"), "{unknown}");
}

#[tokio::test]
async fn a_program_that_is_busy_is_waited_for_no_longer_than_was_said() {
    let terminals = TerminalFixture::new();
    let began = std::time::Instant::now();
    terminals
        .ok(json!({"action": "start", "command": "while :; do echo x; done >/dev/null", "wait_ms": 200}))
        .await;
    assert!(began.elapsed() < Duration::from_secs(10));
    terminals.ok(json!({"action": "stop"})).await;
    assert_eq!(terminals.left(), 0);
}

#[tokio::test]
async fn there_are_at_most_four_and_each_has_its_name() {
    let terminals = TerminalFixture::new();
    for id in ["a", "b", "c", "d"] {
        terminals.ok(json!({"action": "start", "command": "cat", "id": id, "wait_ms": 0})).await;
    }
    let fifth =
        terminals.fails(json!({"action": "start", "command": "cat", "id": "e"}), ToolStatus::Error).await;
    assert_eq!(fifth, "at most 4 terminals at once: stop one of a, b, c, d");
    let twice =
        terminals.fails(json!({"action": "start", "command": "cat", "id": "b"}), ToolStatus::Rejected).await;
    assert_eq!(twice, "terminal `b` is in use: stop it, or start this one with another `id`");
    let none = terminals.fails(json!({"action": "read"}), ToolStatus::Rejected).await;
    assert_eq!(none, "there is no terminal `main`: there is a, b, c, d; `start` begins one");
    terminals.ok(json!({"action": "stop", "id": "b"})).await;
    terminals.ok(json!({"action": "start", "command": "cat", "id": "e", "wait_ms": 0})).await;
}

#[tokio::test]
async fn they_end_with_their_session_and_no_other_session_reaches_them() {
    let terminals = TerminalFixture::new();
    let command = "setsid sleep 1000 & cat";
    terminals.ok(json!({"action": "start", "command": command, "wait_ms": 0})).await;
    let mut other = terminals.fixture.context();
    let session = SessionId { run: RunId::from_entropy(7), agent: 1 };
    other.effect = EffectId { actor: ActorKey::Session(session), seq: Seq(1) };
    let read = Json::of(&json!({"action": "read"})).unwrap();
    assert_eq!(terminals.tool.call(&read, &other).await.status, ToolStatus::Rejected);
    terminals.tool.session_over(session);
    terminals.ok(json!({"action": "read", "wait_ms": 0})).await;
    terminals.tool.session_over(SessionId::root(RunId::from_entropy(7)));
    terminals.until_nothing_left().await;
    terminals.fails(json!({"action": "read"}), ToolStatus::Rejected).await;
}

#[tokio::test]
async fn a_cancelled_start_leaves_nothing() {
    let mut terminals = TerminalFixture::new();
    let cancel = CancellationToken::new();
    terminals.context.cancel = cancel.clone();
    let input = json!({"action": "start", "command": "touch ready; while :; do :; done", "wait_ms": 60_000});
    let ready = async {
        while !terminals.fixture.path("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(terminals.call(input), ready);
    assert_eq!(output.status, ToolStatus::Cancelled);
    terminals.until_nothing_left().await;
}

#[tokio::test]
async fn it_starts_in_the_workspace_or_below_with_the_environment_that_shells_get() {
    let terminals = TerminalFixture::new();
    std::fs::create_dir(terminals.fixture.path("sub")).unwrap();
    let script = "basename \"$PWD\"; echo \"$TERM [$SECRET_FOR_TESTS]\"; stty size";
    let shown = terminals
        .ok(json!({"action": "start", "command": script, "cwd": "sub", "rows": 10, "cols": 50}))
        .await;
    assert!(shown.ends_with("sub\nxterm-256color []\n10 50"), "{shown}");
    let outside =
        terminals.fails(json!({"action": "start", "command": "pwd", "cwd": ".."}), ToolStatus::Error).await;
    assert!(outside.contains("outside of the workspace"), "{outside}");
    for (input, expected) in [
        (json!({"action": "start"}), "`start` needs `command`, the command line to run"),
        (json!({"action": "start", "command": " "}), "`start` needs `command`, the command line to run"),
        (json!({"action": "start", "command": "cat", "id": ""}), "`id` is a name of at most 40 characters"),
    ] {
        assert_eq!(terminals.fails(input, ToolStatus::Rejected).await, expected);
    }
}
