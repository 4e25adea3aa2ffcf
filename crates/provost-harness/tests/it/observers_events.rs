//! Which entries are which events.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use provost_event::{ActorKey, Entry, Record, RunId, Seq, SessionId, Timestamp};
use provost_harness::{ObservedBody, ObserverOptions, Observers, observe_with};

const RUN: RunId = RunId::from_entropy(7);

/// One entry of each kind and variant: whose, what, and its fields.
const ENTRIES: &[(&str, &str, &str)] = &[
    ("session", "session_started", r#"{"goal":"g","policy":POLICY}"#),
    ("run", "run_started", r#"{"goal":"g","policy":{"budget":{},"agent":POLICY}}"#),
    ("session", "user_message", r#"{"content":[],"by":"me"}"#),
    ("session", "system_item", r#"{"item":"reminder","body":"b","origin":"engine"}"#),
    ("session", "model_called", r#"{"turn":1,"call":1,"attempt":1,"output_tokens_max":9}"#),
    ("session", "retry", r#"{"call":1,"cause":"empty_answer","delay_ms":0,"usage":{}}"#),
    ("session", "model_called", r#"{"turn":1,"call":2,"attempt":2,"output_tokens_max":9}"#),
    ("session", "model_called", r#"{"turn":1,"call":3,"attempt":1,"output_tokens_max":9}"#),
    (
        "session",
        "assistant_message",
        r#"{"turn":1,"call":3,"content":[],"usage":{},"model":"m","stop":"end_turn"}"#,
    ),
    ("session", "hooks_asked", r#"{"about":{"call":{"call":"c"}}}"#),
    ("session", "hooks_decided", r#"{"asked":3,"reports":[REPORT"continue"},REPORT"allow"}]}"#),
    ("session", "hooks_decided", r#"{"asked":3,"reports":[REPORT"continue"},REPORT{"deny":"no"}}]}"#),
    ("session", "hooks_decided", r#"{"asked":3,"reports":[REPORT{"failed":"it"}}]}"#),
    ("session", "permission_decided", r#"{"call":"c","permission":"allow","why":"w"}"#),
    ("session", "permission_decided", r#"{"call":"c","permission":"ask","why":"w"}"#),
    ("session", "permission_decided", r#"{"call":"c","permission":"deny","why":"w"}"#),
    (
        "session",
        "approval_requested",
        r#"{"call":"c","tool":"t","input":{},"why":"w","pattern":"t","due":9}"#,
    ),
    ("session", "approval_resolved", r#"{"asked":3,"answer":{"deny":{}},"by":"me"}"#),
    ("session", "tool_started", r#"{"call":"c","tool":"t","input":{}}"#),
    ("session", "tool_finished", r#"{"call":"c","tool":"t","status":"ok","output":"o","duration_ms":1}"#),
    ("session", "tool_finished", r#"{"call":"c","tool":"t","status":"denied","output":"o","duration_ms":1}"#),
    ("session", "turn_ended", r#"{"turn":1,"tool_calls":1}"#),
    ("session", "model_called", r#"{"turn":2,"call":4,"attempt":1,"output_tokens_max":9}"#),
    (
        "session",
        "compacted",
        r#"{"how":"emergency","through":3,"summary":"s","tokens_before":9,"tokens_after":1}"#,
    ),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT"allow"}]}"#),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT{"block":"b"}}]}"#),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT{"halt":"h"}}]}"#),
    ("session", "stop_requested", r#"{"outcome":OUTCOME}"#),
    ("run", "budget_reserved", r#"{"session":"SESSION","call":1,"tokens":9,"cost":1,"output_tokens_max":9}"#),
    ("run", "budget_charged", r#"{"session":"SESSION","call":1,"turn":1,"usage":{}}"#),
    ("run", "budget_exhausted", r#"{"session":"SESSION","dimension":"tokens","used":9,"limit":8}"#),
    ("session", "paused", r#"{"outcome":OUTCOME}"#),
    ("run", "paused", r#"{"outcome":OUTCOME}"#),
    ("session", "resumed", r#"{"cause":"interrupted"}"#),
    ("run", "resumed", r#"{"cause":"interrupted"}"#),
    ("session", "ended", r#"{"outcome":OUTCOME}"#),
    ("run", "ended", r#"{"outcome":OUTCOME}"#),
];

const POLICY: &str = r#"{"model":{"name":"m","output_tokens_max":9},"system_prompt":"","tools":[],"workspace":"/",
    "limits":LIMITS,"stop_hooks":[],"pace":"free"}"#;

fn entry(kind: &str, body: &str) -> Entry {
    let limits = serde_json::to_string(&provost_event::Limits::default()).expect("JSON");
    let body = body
        .replace("POLICY", POLICY)
        .replace("LIMITS", &limits)
        .replace("REPORT", r#"{"hook":"h","moment":"pre_tool_call","duration_us":1,"decision":"#)
        .replace("VERDICT", r#"{"name":"h","duration_ms":1,"verdict":"#)
        .replace("OUTCOME", r#"{"kind":"cancelled","by":"me"}"#)
        .replace("SESSION", &SessionId::root(RUN).to_string());
    Entry::from_body(kind, &body).expect("a kind").unwrap_or_else(|error| panic!("{kind} {body}: {error}"))
}

/// The events of all entries, each with its entry's place in `ENTRIES`.
async fn told_of_all() -> Vec<(usize, &'static str)> {
    let (told, telling) = channel();
    let told = Mutex::new(told);
    let make = move |_| {
        let told = told.lock().expect("told").clone();
        observe_with(move |event| {
            let ObservedBody::Entry(record) = &event.body else { panic!("{event:?}") };
            Ok(told.send((usize::try_from(record.seq.0)?, event.kind.name()))?)
        })
    };
    let run = Observers::new().with("names", ObserverOptions::default(), make).of_run(RUN);
    for (index, (actor, kind, body)) in ENTRIES.iter().enumerate() {
        let actor = match *actor {
            "run" => ActorKey::Run(RUN),
            _ => ActorKey::Session(SessionId::root(RUN)),
        };
        let seq = Seq(u64::try_from(index).expect("few"));
        run.record(&Arc::new(Record { actor, seq, at: Timestamp(0), entry: entry(kind, body) }));
    }
    run.finish().await;
    telling.try_iter().collect()
}

#[tokio::test]
async fn entries_are_told_as_the_events_they_are() {
    let events = told_of_all().await;
    let lines = ENTRIES.iter().enumerate().map(|(index, (actor, kind, body))| {
        let of_this = events.iter().filter(|(place, _)| *place == index);
        let mut names = of_this.map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
        if names.is_empty() {
            names.push_str("nobody is told");
        }
        let body = if ENTRIES.iter().filter(|one| one.1 == *kind && one.0 == *actor).count() > 1 {
            *body
        } else {
            ""
        };
        format!("{actor} {kind} {body}").trim_end().to_owned() + " → " + &names + "\n"
    });
    expect![[r#"
        session session_started → SESSION_START
        run run_started → RUN_START FLOW_START
        session user_message → nobody is told
        session system_item → nobody is told
        session model_called {"turn":1,"call":1,"attempt":1,"output_tokens_max":9} → TURN_START LLM_START
        session retry → LLM_END
        session model_called {"turn":1,"call":2,"attempt":2,"output_tokens_max":9} → LLM_START
        session model_called {"turn":1,"call":3,"attempt":1,"output_tokens_max":9} → LLM_START
        session assistant_message → LLM_END
        session hooks_asked → nobody is told
        session hooks_decided {"asked":3,"reports":[REPORT"continue"},REPORT"allow"}]} → nobody is told
        session hooks_decided {"asked":3,"reports":[REPORT"continue"},REPORT{"deny":"no"}}]} → GUARDRAIL_TRIP
        session hooks_decided {"asked":3,"reports":[REPORT{"failed":"it"}}]} → GUARDRAIL_TRIP
        session permission_decided {"call":"c","permission":"allow","why":"w"} → nobody is told
        session permission_decided {"call":"c","permission":"ask","why":"w"} → GUARDRAIL_TRIP
        session permission_decided {"call":"c","permission":"deny","why":"w"} → GUARDRAIL_TRIP
        session approval_requested → APPROVAL
        session approval_resolved → APPROVAL
        session tool_started → TOOL_START
        session tool_finished {"call":"c","tool":"t","status":"ok","output":"o","duration_ms":1} → TOOL_END
        session tool_finished {"call":"c","tool":"t","status":"denied","output":"o","duration_ms":1} → TOOL_END GUARDRAIL_TRIP
        session turn_ended → TURN_END
        session model_called {"turn":2,"call":4,"attempt":1,"output_tokens_max":9} → TURN_START LLM_START
        session compacted → COMPACTION
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT"allow"}]} → nobody is told
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT{"block":"b"}}]} → GUARDRAIL_TRIP
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT{"halt":"h"}}]} → GUARDRAIL_TRIP
        session stop_requested → nobody is told
        run budget_reserved → BUDGET
        run budget_charged → BUDGET
        run budget_exhausted → BUDGET
        session paused → nobody is told
        run paused → FLOW_END
        session resumed → nobody is told
        run resumed → FLOW_START
        session ended → SESSION_END
        run ended → FLOW_END RUN_END
    "#]].assert_eq(&lines.collect::<String>());
    let missing = Entry::KINDS.iter().filter(|kind| !ENTRIES.iter().any(|one| one.1 == **kind));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new());
}
