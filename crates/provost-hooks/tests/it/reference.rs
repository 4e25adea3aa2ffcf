//! The reference of the events of the contract, made by asking: `docs/hook-events.md` is what this finds.

use std::fmt::Write as _;

use expect_test::expect_file;
use provost_event::{
    HookDecision, HookModel, HookModelWork, HookPoint, HookPolicy, HookProgram, ModelPolicy,
};
use provost_harness::{HookAnswer, HookPrograms as _};
use provost_hooks::{UnknownEvent, hook_point_of};
use serde_json::Value;

use crate::stage::{Stage, claude};

/// All events of the contract.
const EVENTS: [&str; 31] = [
    "SessionStart",
    "Setup",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "MessageDisplay",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "TaskCreated",
    "TaskCompleted",
    "Stop",
    "StopFailure",
    "TeammateIdle",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
    "Elicitation",
    "ElicitationResult",
];

/// Fields of every event.
const COMMON: [&str; 6] =
    ["session_id", "provost_session", "transcript_path", "cwd", "hook_event_name", "run_id"];

const HEAD: &str = "# Events of hooks with Claude Code's contract

The input of each event of `contract = \"claude\"`, and the effect of each answer; `contract = \"codex\"` has the same events.
The test `the_page_of_events_says_what_the_code_does` of `provost-hooks` generates this page by calling hooks: run it with
`UPDATE_EXPECT=1` after a change. [Hooks](hooks.md) says when each event comes.

Every event has `session_id`, `provost_session`, `transcript_path`, `cwd`, `hook_event_name` and `run_id`; in a sub-agent
also `agent_id`, `agent_type`, `agent_parent` and `agent_depth`. Ids of sessions and agents are UUIDs; `provost_session` is
the agent as Provost names it.

| the answer | means |
|---|---|
| denied | the call, the prompt, the compaction or the stop doesn't happen, for the hook's reason |
| suspended | the run is suspended |
| ends | the run ends |
| to the model | the text is added for the model |
| noted | the answer decides nothing; the note is shown to the user and is in the log |
| nothing | the answer is ignored silently, as in Claude Code |
| no answer | the hook's `on_failure` decides; its default is to continue |

";

fn of(answer: &HookAnswer) -> String {
    let decision = match &answer.decision {
        HookDecision::Continue => None,
        HookDecision::Allow => Some("allowed, unless a rule asks or denies".to_owned()),
        HookDecision::Ask(_) => Some("a person is asked".to_owned()),
        HookDecision::Deny(_) => Some("denied".to_owned()),
        HookDecision::Pause(_) => Some("suspended".to_owned()),
        HookDecision::Abort(_) => Some("ends".to_owned()),
        HookDecision::Failed(why) | HookDecision::Broken(why) => Some(format!("no answer: {why}")),
        HookDecision::TimedOut(_) => Some("no answer".to_owned()),
    };
    let told = (!answer.reminders.is_empty()).then(|| "to the model".to_owned());
    let other = answer.replacement.as_ref().map(|_| "another call is made".to_owned());
    let parts = decision.into_iter().chain(told).chain(other).collect::<Vec<_>>();
    match (parts.is_empty(), &answer.note) {
        (true, Some(_)) => "noted".to_owned(),
        (true, None) => "nothing".to_owned(),
        (false, _) => parts.join(", "),
    }
}

async fn answer(event: &str, script: &str) -> String {
    let stage = Stage::new();
    let hook = claude(event, script);
    let question = stage.question(hook.point, event == "PostToolUseFailure");
    assert!(stage.hooks.wants(&hook, &question, hook.point));
    of(&stage.ask_about(&hook, event == "PostToolUseFailure").await)
}

async fn says(event: &str, json: &str) -> String {
    answer(event, &format!("cat > /dev/null; echo '{json}'")).await
}

/// What an answer of a hook that is a model means.
fn judged(event: &str, text: &str, continue_on_block: bool) -> String {
    let stage = Stage::new();
    let model = HookModel {
        prompt: "Is it fine?".to_owned(),
        model: ModelPolicy::new("a/model", 100),
        work: HookModelWork::Answers,
        continue_on_block,
    };
    let hook = HookPolicy { program: Some(HookProgram::Model(Box::new(model))), ..claude(event, "true") };
    let question = stage.question(hook.point, event == "PostToolUseFailure");
    let answer = of(&stage.hooks.read(&hook, &question, hook.point, text));
    if answer.starts_with("no answer") { "no answer".to_owned() } else { answer }
}

fn specific(event: &str, fields: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{event}",{fields}}}}}"#)
}

async fn fields(event: &str) -> String {
    let Value::Object(told) = Stage::new().told(event, event == "PostToolUseFailure").await else {
        panic!("an object")
    };
    let own = told.keys().filter(|name| !COMMON.contains(&name.as_str()));
    own.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

async fn section(event: &str) -> String {
    let own = hook_point_of(event).expect("an event").name();
    let mut out = format!("## {event}\n\n`event = \"{own}\"`. Fields: {}\n\n", fields(event).await);
    let context = specific(event, r#""additionalContext":"c""#);
    let mut rows = vec![
        ("exit status 2", answer(event, "echo why >&2; exit 2").await),
        ("any other exit status without JSON", answer(event, "echo why >&2; exit 1").await),
        ("text with exit status 0", answer(event, "echo text").await),
        ("`decision: \"block\"`", says(event, r#"{"decision":"block","reason":"r"}"#).await),
        ("`continue: false`", says(event, r#"{"continue":false,"stopReason":"r"}"#).await),
        ("`systemMessage`", says(event, r#"{"systemMessage":"m"}"#).await),
        ("`additionalContext`", says(event, &context).await),
    ];
    if event == "PreToolUse" {
        for decision in ["allow", "deny", "ask", "defer"] {
            let json = specific(event, &format!(r#""permissionDecision":"{decision}""#));
            let what = match decision {
                "allow" => "`permissionDecision: \"allow\"`",
                "deny" => "`permissionDecision: \"deny\"`",
                "ask" => "`permissionDecision: \"ask\"`",
                _ => "`permissionDecision: \"defer\"`",
            };
            rows.push((what, says(event, &json).await));
        }
        rows.push((
            "`updatedInput`",
            says(event, &specific(event, r#""updatedInput":{"command":"ls"}"#)).await,
        ));
    }
    if hook_point_of(event).is_ok_and(HookPoint::takes_models) {
        rows.push(("a model's `ok: false`", judged(event, r#"{"ok":false,"reason":"r"}"#, false)));
        rows.push(("the same with `continueOnBlock`", judged(event, r#"{"ok":false,"reason":"r"}"#, true)));
        rows.push((
            "the same with `impossible: true`",
            judged(event, r#"{"ok":false,"impossible":true}"#, false),
        ));
        rows.push(("an invalid answer", judged(event, "I think so", false)));
    } else {
        rows.push(("hooks of the types `prompt` and `agent`", "not supported here".to_owned()));
    }
    if event == "PermissionRequest" {
        for (what, decision) in [
            ("`decision.behavior: \"allow\"`", r#"{"behavior":"allow"}"#),
            ("the same with `updatedInput`", r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#),
            ("`decision.behavior: \"deny\"`", r#"{"behavior":"deny","message":"m"}"#),
            ("the same with `interrupt: true`", r#"{"behavior":"deny","message":"m","interrupt":true}"#),
        ] {
            rows.push((what, says(event, &specific(event, &format!(r#""decision":{decision}"#))).await));
        }
    }
    out.push_str("| answer | effect |\n|---|---|\n");
    for (what, effect) in rows {
        let _ = writeln!(out, "| {what} | {effect} |");
    }
    out.push('\n');
    out
}

#[tokio::test]
async fn the_page_of_events_says_what_the_code_does() {
    let mut page = HEAD.to_owned();
    let mut missing = String::new();
    for event in EVENTS {
        match hook_point_of(event) {
            Ok(_) => page.push_str(&section(event).await),
            Err(UnknownEvent::NotImplemented(why)) => {
                let _ = writeln!(missing, "| {event} | {why} |");
            }
            Err(unknown) => panic!("{event}: {unknown}"),
        }
    }
    page.push_str("## Events that Provost doesn't have\n\n`provost check`, `provost trust` and the start of each run name hooks of these events.\n\n| event | why |\n|---|---|\n");
    page.push_str(&missing);
    expect_file!["../../../../docs/hook-events.md"].assert_eq(&page);
}
