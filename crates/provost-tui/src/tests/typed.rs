//! What keys do.

use std::time::Duration;

use crossterm::event::KeyCode;
use provost_event::{CallQuestion, Dimension, Json, RunId, ToolSpec};
use provost_harness::{Tool, ToolContext, ToolOutput};

use super::stage::Stage;
use crate::app::Screen;
use crate::host::Start;
use crate::keys;

const PUBLISH: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - tools: [{ shell: { command: echo two >> effects } }]
  - text: 'VERDICT: PASS'
";
const DONE: &str = "answers: [{ text: 'VERDICT: PASS' }]";

async fn asking(columns: u16, rows: u16, script: &str) -> Stage {
    let mut stage = Stage::new(columns, rows);
    let agent = stage.agent("work", script).builtin_tools().ask("shell");
    stage.asks(1, "publish it", agent).await;
    stage.read().await;
    stage
}

/// Reads until the screen shows this.
async fn sees(stage: &mut Stage, text: &str) {
    for _ in 0..2_000 {
        stage.read().await;
        if stage.screen().contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never saw {text}:\n{}", stage.screen());
}

#[tokio::test]
async fn a_question_is_answered_by_a_key_once_it_has_been_in_view() {
    let mut stage = asking(80, 24, PUBLISH).await;
    stage.keys("a").await;
    assert_eq!(stage.app.screen, Screen::Inbox);
    assert!(stage.screen().contains("echo one >> effects"), "{}", stage.screen());
    stage.keys("a").await;
    assert!(stage.screen().contains("has just come up"), "{}", stage.screen());
    stage.pass(600);
    stage.keys("a").await;
    assert!(stage.screen().contains("approved once"), "{}", stage.screen());
    sees(&mut stage, "echo two >> effects").await;
    stage.keys("a").await;
    assert!(stage.screen().contains("has just come up"), "a key for the first one answers no second");
    stage.pass(600);
    stage.keys("dnot today\n").await;
    stage.running.remove(0).finish().await.unwrap();
    let effects = std::fs::read_to_string(stage.path("work/effects")).unwrap();
    assert_eq!(effects, "one\n");
}

#[tokio::test]
async fn always_shows_the_pattern_and_wants_enter() {
    let mut stage = asking(80, 24, PUBLISH).await;
    stage.keys("a").await;
    stage.pass(600);
    stage.keys("A").await;
    assert!(stage.screen().contains("always allow shell(echo one >> effects)"), "{}", stage.screen());
    stage.keys("y").await;
    assert!(stage.host.kept.lock().unwrap().is_empty());
    stage.keys("\n").await;
    assert_eq!(*stage.host.kept.lock().unwrap(), ["shell(echo one >> effects)"]);
    assert!(stage.screen().contains("kept in your settings"), "{}", stage.screen());
}

#[tokio::test]
async fn what_is_longer_than_the_screen_is_answered_after_its_end_was_in_view() {
    let long = (1..60).map(|n| format!("echo {n}")).collect::<Vec<_>>().join("; \\n");
    let script = format!("answers: [{{ tools: [{{ shell: {{ command: \"{long}\" }} }}] }}, {{ text: ok }}]");
    let mut stage = asking(80, 24, &script).await;
    stage.keys("a").await;
    stage.pass(600);
    stage.keys("a").await;
    assert!(stage.screen().contains("v shows the whole text"), "{}", stage.screen());
    stage.keys("v        ").await;
    assert!(stage.screen().contains("echo 59"), "{}", stage.screen());
    stage.keys("a").await;
    assert!(stage.screen().contains("approved once"), "{}", stage.screen());
}

#[tokio::test]
async fn a_reason_for_a_question_that_was_answered_elsewhere_denies_no_other() {
    let mut stage = asking(80, 24, PUBLISH).await;
    stage.keys("a").await;
    stage.pass(600);
    stage.keys("dtoo ear").await;
    let control = stage.running[0].control("somebody else");
    let open = control.approvals().await.unwrap();
    control.approve(&open[0]).await.unwrap();
    sees(&mut stage, "echo two >> effects").await;
    stage.keys("\n").await;
    assert_eq!(control.approvals().await.unwrap().len(), 1, "the second question is open");
}

#[tokio::test]
async fn pasted_text_does_nothing_but_where_a_line_is_typed() {
    let mut stage = asking(80, 24, PUBLISH).await;
    stage.keys("a").await;
    stage.pass(600);
    keys::paste(&mut stage.app, "a\na\na");
    assert!(stage.screen().contains("pasted text does nothing here"), "{}", stage.screen());
    stage.keys("s").await;
    keys::paste(&mut stage.app, "mind\nthe tests");
    assert!(stage.screen().contains("mind the tests"), "{}", stage.screen());
    let control = stage.running[0].control("x");
    assert_eq!(control.approvals().await.unwrap().len(), 1);
}

#[tokio::test]
async fn rows_stay_where_they_are_while_keys_are_typed_but_a_new_question_comes_up() {
    let mut stage = Stage::new(80, 24);
    let agent = stage.agent("work", DONE);
    stage.ran(1, "the first", agent).await;
    let agent = stage.agent("work", DONE);
    stage.ran(2, "the second", agent).await;
    stage.read().await;
    stage.pass(10_000);
    stage.keys("j").await;
    let agent = stage.agent("work", DONE);
    stage.ran(3, "the third", agent).await;
    stage.read().await;
    let shown = stage.screen();
    assert!(!shown.contains("the third") && shown.contains("▌✓ • the first"), "{shown}");
    let agent = stage.agent("work", PUBLISH).builtin_tools().ask("shell");
    stage.asks(4, "the fourth", agent).await;
    stage.read().await;
    let shown = stage.screen();
    assert!(shown.contains("NEEDS YOU 1") && shown.contains("the third"), "{shown}");
    assert!(shown.contains("▌✓ • the first"), "the selection stays with its run: {shown}");
}

#[tokio::test]
async fn a_finished_run_that_was_opened_is_idle() {
    let mut stage = Stage::new(80, 24);
    let agent = stage.agent("work", DONE);
    stage.ran(1, "the first", agent).await;
    stage.read().await;
    assert!(stage.screen().contains("FINISHED, NOT LOOKED AT 1"));
    stage.keys("\n\u{1b}").await;
    stage.pass(5_000);
    stage.read().await;
    let shown = stage.screen();
    assert!(shown.contains("▸ IDLE 1") && !shown.contains("FINISHED"), "{shown}");
    stage.keys("o").await;
    assert!(stage.screen().contains("the first"));
}

#[tokio::test]
async fn runs_are_started_resumed_and_forked_by_keys() {
    let mut stage = Stage::new(80, 24);
    let script =
        "answers: [{ tools: [{ read_file: { path: a } }], usage: { input: 900, output: 90 } }, { text: no }]";
    let agent = stage.agent("work", script).builtin_tools().allow("read_file");
    stage.ran(1, "the first", agent.budget(provost::Budget::default().tokens(1_000))).await;
    stage.read().await;
    stage.keys("p").await;
    assert!(stage.screen().contains("resume with this much more tokens"), "{}", stage.screen());
    stage.keys("\n").await;
    assert!(stage.screen().contains("say how much more"), "{}", stage.screen());
    stage.keys("p5000\n").await;
    stage.keys("nMake it so\n").await;
    stage.keys("n\tThere too\n").await;
    stage.keys("fanother way\n").await;
    let run = RunId::from_entropy(1);
    let started = stage.host.started.lock().unwrap().clone();
    let more = Some((Dimension::Tokens, "5000".to_owned()));
    let there = stage.path("work");
    assert_eq!(
        started,
        [
            Start::Resume { run, text: String::new(), more },
            Start::Run { goal: "Make it so".to_owned(), folder: "/work/here".into() },
            Start::Run { goal: "There too".to_owned(), folder: there },
            Start::Fork {
                session: provost_event::SessionId::root(run),
                at: None,
                text: "another way".to_owned()
            },
        ]
    );
}

#[tokio::test]
async fn a_message_a_pause_and_a_cancel_reach_the_run() {
    let mut stage = asking(80, 24, PUBLISH).await;
    stage.keys("smind the tests\n").await;
    assert!(stage.screen().contains("said to agent 0"), "{}", stage.screen());
    stage.keys("x").await;
    assert!(stage.screen().contains("cancel \"publish it\"? Enter does it"), "{}", stage.screen());
    stage.keys("\u{1b}").await;
    assert!(stage.running[0].control("x").approvals().await.unwrap().len() == 1);
    stage.keys("x\n").await;
    let finished = stage.running.remove(0).finish().await.unwrap();
    assert_eq!(finished.outcome.word(), "cancelled");
}

#[tokio::test]
async fn a_filter_looks_at_folded_runs_too() {
    let mut stage = Stage::new(80, 24);
    for (number, goal) in [(1, "Upgrade the docs"), (2, "Port the importer")] {
        let agent = stage.agent("work", DONE);
        stage.ran(number, goal, agent).await;
    }
    stage.clock.advance_ms(48 * 60 * 60 * 1_000);
    stage.read().await;
    assert!(!stage.screen().contains("Port the importer"));
    stage.keys("/port").await;
    let shown = stage.screen();
    assert!(shown.contains("Port the importer") && !shown.contains("Upgrade"), "{shown}");
    stage.press(KeyCode::Esc).await;
    assert!(!stage.screen().contains("Port the importer"));
}

/// A tool that asks which branch, and answers with what it was given.
struct Asking(ToolSpec);

impl Asking {
    fn new() -> Self {
        let schema = Json::parse("{\"type\":\"object\"}".to_owned()).unwrap();
        Self(ToolSpec::new("mcp__s__delete", "Deletes a branch.", schema))
    }
}

#[async_trait::async_trait]
impl Tool for Asking {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, context: &ToolContext) -> ToolOutput {
        match &context.answer {
            Some(answer) => {
                let given = answer.content.as_ref().map(|content| content.text().to_owned());
                std::fs::write(context.workspace.join("given"), given.unwrap_or_default()).unwrap();
                ToolOutput::ok("deleted")
            }
            None => {
                let schema = serde_json::json!({ "type": "object", "required": ["branch", "how"], "properties": {
                    "branch": { "type": "string", "title": "Branch" },
                    "how": { "type": "string", "enum": ["merged", "all"], "default": "merged" },
                    "times": { "type": "integer", "minimum": 1 } } });
                let asks = Box::new(CallQuestion {
                    message: "The MCP server s asks: Which <branch>?".to_owned(),
                    schema: Json::of(&schema).unwrap(),
                    state: Json::empty_object(),
                });
                ToolOutput { asks: Some(asks), ..ToolOutput::ok("") }
            }
        }
    }
}

#[tokio::test]
async fn what_a_tool_asks_is_answered_field_by_field() {
    let mut stage = Stage::new(100, 30);
    let script = "answers: [{ tools: [{ mcp__s__delete: {} }] }, { text: 'VERDICT: PASS' }]";
    let agent = stage.agent("work", script).tool(Asking::new());
    stage.asks(1, "delete it", agent).await;
    stage.read().await;
    stage.keys("a").await;
    stage.pass(600);
    let shown = stage.screen();
    assert!(shown.contains("asks") && shown.contains("Which <branch>?"), "{shown}");
    assert!(shown.contains("one of merged, all") && shown.contains("give no secret"), "{shown}");
    stage.keys("r").await;
    assert!(stage.screen().contains("something else each time"), "{}", stage.screen());
    stage.keys("a").await;
    assert!(stage.screen().contains("Branch (a text) ›"), "{}", stage.screen());
    stage.keys("\n").await;
    assert!(stage.screen().contains("Branch: must be a text"), "it must be given: {}", stage.screen());
    stage.keys("main\n").await;
    assert!(stage.screen().contains("Enter alone: \"merged\""), "{}", stage.screen());
    stage.keys("some\n").await;
    assert!(stage.screen().contains("how: must be one of merged, all"), "{}", stage.screen());
    stage.press(KeyCode::Esc).await;
    assert!(!stage.path("work/given").exists(), "nothing was answered");
    stage.keys("amain\n\n2\n").await;
    stage.running.remove(0).finish().await.unwrap();
    let given = std::fs::read_to_string(stage.path("work/given")).unwrap();
    assert_eq!(given, r#"{"branch":"main","how":"merged","times":2}"#);
}
