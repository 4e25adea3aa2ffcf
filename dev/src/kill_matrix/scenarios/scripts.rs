//! The models' answers in the scenarios, and additions to the usual policies.

pub(super) mod agents;
pub(super) mod goals;
pub(super) mod programs;

use provost_event::{HookPoint, Permission, RunPolicy, Unanswered};
use serde_json::{Value, json};

use crate::kill_matrix::scenario::{Say, filler, hook, stop_hook};

/// A window in which a handful of long notes fits.
const WINDOW_TOKENS: u64 = 12_000;
/// Bytes of a long note.
const LONG: usize = 6_000;

fn note(key: &str) -> (&'static str, Value) {
    ("note", json!({ "key": key }))
}

fn long_note(key: &str) -> (&'static str, Value) {
    ("note", json!({ "key": key, "bytes": LONG }))
}

fn mark(key: &str) -> (&'static str, Value) {
    ("mark", json!({ "key": key }))
}

fn shell(key: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": format!("echo shell {key} >> ../effects.txt") }))
}

fn calls(calls: Vec<(&'static str, Value)>) -> Say {
    Say::Calls("On it.".to_owned(), calls)
}

fn done() -> Say {
    Say::Text("All notes are kept.\nVERDICT: PASS".to_owned())
}

/// Calls in parallel and in sequence, repeatable and not.
pub(super) fn tools(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("a"), mark("b"), note("c"), mark("d")]),
        1 => calls(vec![shell("e"), note("f"), shell("g")]),
        2 => {
            let plan = json!({ "items": [{ "text": "keep notes", "status": "in_progress" }] });
            let file = json!({ "path": "h.txt", "content": "h" });
            calls(vec![("update_plan", plan), ("write_file", file), mark("i")])
        }
        3 => calls(vec![note("j"), ("no_such_tool", json!({}))]),
        _ => done(),
    }
}

/// Calls, an end, and after that what a fork of it does.
pub(super) fn forked(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("a"), mark("b")]),
        1 => done(),
        2 => Say::Cut("Something else: ".to_owned()),
        _ => Say::Text("nothing.".to_owned()),
    }
}

/// An overloaded provider, an empty answer, an answer that is cut off.
pub(super) fn troubles(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("a")]),
        1 => Say::FailsOnce(Box::new(calls(vec![note("b")]))),
        2 => Say::EmptyOnce(Box::new(calls(vec![mark("c")]))),
        3 => Say::Cut("All notes ".to_owned()),
        _ => done(),
    }
}

pub(super) fn long_notes(answers: u32) -> Say {
    match answers {
        0..12 => calls(vec![long_note(&format!("n{answers}"))]),
        _ => done(),
    }
}

/// The model's own text isn't trimmed.
pub(super) fn long_words(answers: u32) -> Say {
    match answers {
        0..24 => Say::Calls(filler(&format!("w{answers}"), LONG / 2), vec![note(&format!("n{answers}"))]),
        _ => done(),
    }
}

pub(super) fn small_window(policy: &mut RunPolicy) {
    policy.agent.model.window_tokens = Some(WINDOW_TOKENS);
}

pub(super) fn compaction_hooks(policy: &mut RunPolicy) {
    small_window(policy);
    policy.agent.hooks = vec![hook(HookPoint::PreCompact, "exit 0"), hook(HookPoint::PostCompact, "exit 0")];
}

pub(super) fn compaction_refused(policy: &mut RunPolicy) {
    small_window(policy);
    policy.agent.hooks = vec![hook(HookPoint::PreCompact, "echo 'keep it all'; exit 2")];
}

pub(super) fn endless(answers: u32) -> Say {
    calls(vec![note(&format!("n{answers}")), mark(&format!("m{answers}"))])
}

/// Requests to stop three times, with calls in between.
pub(super) fn asks_to_stop(answers: u32) -> Say {
    match answers {
        1 | 3 => calls(vec![note(&format!("fix-{answers}"))]),
        0 | 2 => Say::Text("I am done.".to_owned()),
        _ => done(),
    }
}

pub(super) fn stop_hooks(policy: &mut RunPolicy) {
    let command = "grep -q '\"tool_calls\":[2-9]' || { echo 'something is missing'; exit 2; }";
    policy.agent.stop_hooks = vec![stop_hook(command)];
}

/// Calls that are allowed, and some that aren't.
pub(super) fn gated(answers: u32) -> Say {
    match answers {
        0 => calls(vec![note("a"), note("forbidden-b"), mark("c")]),
        1 => calls(vec![note("d")]),
        _ => done(),
    }
}

pub(super) fn all_hooks(policy: &mut RunPolicy) {
    let no = "if grep -q forbidden; then echo 'not that one'; exit 2; fi";
    let remind =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"mind the gap"}}'"#;
    let agree = r#"echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'"#;
    let command = |point: HookPoint| match point {
        HookPoint::PreToolCall => no.to_owned(),
        HookPoint::PostToolSuccess => remind.to_owned(),
        HookPoint::Approval => agree.to_owned(),
        _ => "exit 0".to_owned(),
    };
    policy.agent.hooks = HookPoint::ALL.iter().map(|point| hook(*point, &command(*point))).collect();
}

pub(super) fn consent(policy: &mut RunPolicy) {
    policy.agent.permissions.default = Permission::Ask;
}

pub(super) fn late_consent(policy: &mut RunPolicy) {
    consent(policy);
    policy.agent.permissions.approval_timeout_ms = 20;
    policy.agent.permissions.unanswered = Unanswered::Pause;
}

/// More than a thousand entries.
pub(super) fn many(answers: u32) -> Say {
    let call = |place: u32| {
        let key = format!("{answers}-{place}");
        if place.is_multiple_of(3) { mark(&key) } else { note(&key) }
    };
    match answers {
        0..24 => calls((0..24).map(call).collect()),
        _ => done(),
    }
}

/// Enough turns that the run's own log has more than a thousand entries too.
pub(super) fn many_turns(answers: u32) -> Say {
    match answers {
        0..510 => calls(vec![mark(&answers.to_string())]),
        _ => done(),
    }
}
