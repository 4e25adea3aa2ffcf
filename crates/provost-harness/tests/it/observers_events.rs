//! The events of each entry, and the agent's position in each.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use provost_event::{
    ActorKey, ChainContext, Delta, DeltaKind, Elapsed, Entry, Record, RunId, Seq, SessionId, Timestamp,
};
use provost_harness::{
    MemoryTrace, ObservedBody, ObserverEvent, ObserverEventKind, ObserverOptions, Observers, RunObservers,
    TraceBody, TraceEvent, observe_with,
};

const RUN: RunId = RunId::from_entropy(7);

/// One entry of each kind and variant: actor, kind, and its fields.
const ENTRIES: &[(&str, &str, &str)] = &[
    ("session", "session_started", r#"{"goal":"g","policy":POLICY}"#),
    (
        "run",
        "run_started",
        r#"{"goal":"g","policy":{"budget":{},"agent":POLICY,"flow":{"name":"f","steps":[]}}}"#,
    ),
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
    (
        "session",
        "model_called",
        r#"{"turn":3,"call":5,"attempt":1,"purpose":"summary","output_tokens_max":9}"#,
    ),
    (
        "session",
        "compacted",
        r#"{"how":"summary","through":3,"summary":"s","call":ASIDE,"tokens_before":9,"tokens_after":1}"#,
    ),
    ("session", "model_called", r#"{"turn":3,"call":6,"attempt":1,"output_tokens_max":9}"#),
    (
        "session",
        "model_called",
        r#"{"turn":4,"call":7,"attempt":1,"purpose":"final_summary","output_tokens_max":9}"#,
    ),
    ("session", "final_summary_finished", r#"{"text":"t","call":ASIDE}"#),
    ("session", "final_summary_finished", r#"{"call":ASIDE,"problem":"p"}"#),
    ("session", "final_summary_finished", r#"{"problem":"p"}"#),
    ("session", "snapshot", r#"{"layout":1,"state":{}}"#),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT"continue"}]}"#),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT{"deny":"b"}}]}"#),
    ("session", "stop_verdicts", r#"{"turn":1,"evidence":"e","reports":[VERDICT{"abort":"h"}}]}"#),
    ("session", "goal_check_started", r#"{"trigger":"claim","turn":1,"generation":1}"#),
    (
        "session",
        "goal_judged",
        r#"{"generation":1,"judge":"j","answer":{"failed":{"timeout":9}},"call":ASIDE,"duration_ms":1}"#,
    ),
    (
        "session",
        "goal_verdict",
        r#"{"trigger":"claim","turn":1,"generation":1,"finding":{"unverified":{"why":"w"}}}"#,
    ),
    (
        "session",
        "goal_verdict",
        r#"{"trigger":"claim","turn":1,"generation":1,"finding":{"not_achieved":{"reasoning":"r"}}}"#,
    ),
    (
        "session",
        "goal_verdict",
        r#"{"trigger":"claim","turn":1,"generation":1,"finding":{"achieved":{"confidence":1.0,"reasoning":"r"}}}"#,
    ),
    ("session", "stop_check_cut_short", r#"{"turn":1,"reports":[VERDICT"continue"}]}"#),
    ("run", "processes_left", "{}"),
    ("session", "goal_cleared", r#"{"by":"me"}"#),
    ("session", "stop_requested", r#"{"outcome":OUTCOME}"#),
    ("run", "budget_reserved", r#"{"session":"SESSION","call":1,"tokens":9,"cost":1,"output_tokens_max":9}"#),
    ("run", "budget_charged", r#"{"session":"SESSION","call":1,"turn":1,"usage":{}}"#),
    ("run", "budget_exhausted", r#"{"session":"SESSION","dimension":"tokens","used":9,"limit":8}"#),
    ("run", "agent_spawned", r#"{"child":"SESSION","depth":1,"brief":BRIEF,"priority":"low","slot":"free"}"#),
    (
        "run",
        "agent_asked_again",
        r#"{"child":"SESSION","parent":"SESSION","call":1,"text":"t","turns_max":1,"priority":"low","slot":"free"}"#,
    ),
    ("run", "agent_started", r#"{"child":"SESSION"}"#),
    ("run", "agent_yield_requested", r#"{"child":"SESSION"}"#),
    ("run", "agent_suspended", r#"{"child":"SESSION","outcome":OUTCOME}"#),
    ("run", "agent_resume_requested", r#"{"child":"SESSION","by":"me"}"#),
    ("run", "agent_finished", r#"{"child":"SESSION","outcome":OUTCOME}"#),
    ("run", "reprioritized", r#"{"agent":"SESSION","priority":"high","by":"me"}"#),
    ("run", "step_ended", r#"{"step":"s","child":"SESSION","attempt":1,"end":{"kind":"done","text":"t"}}"#),
    ("session", "tools_changed", r#"{"removed":["t"],"by":"me"}"#),
    ("session", "yield_requested", r#"{"due":9}"#),
    ("session", "sub_agent_suspended", r#"{"started":3,"outcome":OUTCOME}"#),
    ("session", "sub_agent_resumed", r#"{"started":3}"#),
    ("session", "worktree_made", r#"{"repository":"/r","commit":"c"}"#),
    ("session", "worktree_asked", r#"{"outcome":OUTCOME}"#),
    ("session", "worktree_found", r#"{"left":{"kind":"removed"}}"#),
    ("session", "terminal_noted", r#"{"event":"idle","confidence":97}"#),
    ("session", "terminal_ending", r#"{"outcome":OUTCOME}"#),
    (
        "session",
        "external_model_called",
        r#"{"turn":1,"call":1,"purpose":"external","request":"a","model":"m","wire":"openai-chat","output_tokens_max":5}"#,
    ),
    (
        "session",
        "external_model_queued",
        r#"{"request":"b","model":"m","wire":"openai-chat","input_tokens":1,"output_tokens_max":5}"#,
    ),
    ("session", "external_model_refused", r#"{"request":"b","model":"m","wire":"openai-chat"}"#),
    (
        "session",
        "external_model_answered",
        r#"{"call":1,"purpose":"external","request":"a","model":"m","usage":{},"duration_ms":1}"#,
    ),
    (
        "session",
        "service_noted",
        r#"{"name":"web","supervisor":{"pid":2,"started":3},"event":{"ended":{"how":"has ended","by_agent":false}}}"#,
    ),
    (
        "run",
        "provider_awaited",
        r#"{"session":"000000000001.0","trouble":{"model":"other/model","class":"quota_used_up","message":"its message"},"until":8200000,"suspended":true}"#,
    ),
    ("run", "outage_wait_changed", r#"{"outage_max_ms":0,"by":"a person"}"#),
    (
        "run",
        "run_policy_changed",
        r#"{"by":"a person","policy":{"budget":{},"agent":{"model":{"name":"m","output_tokens_max":1},"system_prompt":"","tools":[],"workspace":"/w","limits":{},"stop_hooks":[],"step_mode":"free"}}}"#,
    ),
    (
        "session",
        "agent_policy_changed",
        r#"{"by":"a person","policy":{"model":{"name":"m","output_tokens_max":1},"system_prompt":"","tools":[],"workspace":"/w","limits":{},"stop_hooks":[],"step_mode":"free"}}"#,
    ),
    (
        "run",
        "agent_retry_scheduled",
        r#"{"agent":"000000000001.1","outcome":{"kind":"failed","class":"program","message":"it crashed"},"attempt":1,"attempts_max":3,"delay_ms":7,"due":1000007}"#,
    ),
    ("run", "forked", r#"{"from":"00000000000a.0","at":3,"hash":"abc","to":"00000000000b"}"#),
    (
        "session",
        "model_changed",
        r#"{"from":"script:test","to":{"name":"other/model","output_tokens_max":500},"why":{"fallback":{"number":1,"trouble":{"model":"script:test","class":"unauthorized","message":"its message"}}}}"#,
    ),
    ("session", "paused", r#"{"outcome":OUTCOME}"#),
    ("run", "paused", r#"{"outcome":OUTCOME}"#),
    ("session", "resumed", r#"{"cause":"interrupted"}"#),
    ("run", "resumed", r#"{"cause":"interrupted"}"#),
    ("session", "ended", r#"{"outcome":OUTCOME}"#),
    ("run", "ended", r#"{"outcome":OUTCOME}"#),
];

const POLICY: &str = r#"{"model":{"name":"m","output_tokens_max":9},"system_prompt":"","tools":[],"workspace":"/",
    "limits":LIMITS,"stop_hooks":[],"step_mode":"free"}"#;

fn entry(kind: &str, body: &str) -> Entry {
    let limits = serde_json::to_string(&provost_event::Limits::default()).expect("JSON");
    let body = body
        .replace("POLICY", POLICY)
        .replace("LIMITS", &limits)
        .replace("REPORT", r#"{"hook":"h","point":"pre_tool_call","duration_us":1,"decision":"#)
        .replace("VERDICT", r#"{"hook":"h","point":"stop","duration_us":1,"decision":"#)
        .replace("ASIDE", r#"{"call":5,"usage":{},"model":"m"}"#)
        .replace("BRIEF", r#"{"name":"n","goal":"g"}"#)
        .replace("OUTCOME", r#"{"kind":"cancelled","by":"me"}"#)
        .replace("SESSION", &SessionId::root(RUN).to_string());
    Entry::from_body(kind, &body).expect("a kind").unwrap_or_else(|error| panic!("{kind} {body}: {error}"))
}

/// Reports the entries from this index on, with `session` as the agent.
fn tell_from(first: usize, run: &RunObservers, session: SessionId) {
    for (index, (actor, kind, body)) in ENTRIES.iter().enumerate().skip(first) {
        let actor = if *actor == "run" { ActorKey::Run(RUN) } else { ActorKey::Session(session) };
        let seq = Seq(u64::try_from(index).expect("few"));
        run.record(&Arc::new(Record {
            actor,
            seq,
            at: Timestamp(0),
            elapsed: Elapsed::default(),
            entry: entry(kind, body),
        }));
    }
}

/// The events of all entries, each with its entry's index in `ENTRIES`.
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
    tell_from(0, &run, SessionId::root(RUN));
    run.finish().await;
    telling.try_iter().collect()
}

/// Each entry with its events, a line each.
fn table(events: &[(usize, &'static str)]) -> String {
    let lines = ENTRIES.iter().enumerate().map(|(index, (actor, kind, body))| {
        let of_this = events.iter().filter(|(place, _)| *place == index);
        let mut names = of_this.map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
        if names.is_empty() {
            names.push_str("no event");
        }
        let body = if ENTRIES.iter().filter(|one| one.1 == *kind && one.0 == *actor).count() > 1 {
            *body
        } else {
            ""
        };
        format!("{actor} {kind} {body}").trim_end().to_owned() + " → " + &names + "\n"
    });
    lines.collect()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table, whole")]
async fn entries_are_told_as_the_events_they_are() {
    expect![[r#"
        session session_started → SESSION_START
        run run_started → RUN_START FLOW_START
        session user_message → no event
        session system_item → no event
        session model_called {"turn":1,"call":1,"attempt":1,"output_tokens_max":9} → TURN_START LLM_START
        session retry → LLM_END
        session model_called {"turn":1,"call":2,"attempt":2,"output_tokens_max":9} → LLM_START
        session model_called {"turn":1,"call":3,"attempt":1,"output_tokens_max":9} → LLM_START
        session assistant_message → LLM_END
        session hooks_asked → no event
        session hooks_decided {"asked":3,"reports":[REPORT"continue"},REPORT"allow"}]} → no event
        session hooks_decided {"asked":3,"reports":[REPORT"continue"},REPORT{"deny":"no"}}]} → GUARDRAIL_TRIP
        session hooks_decided {"asked":3,"reports":[REPORT{"failed":"it"}}]} → GUARDRAIL_TRIP
        session permission_decided {"call":"c","permission":"allow","why":"w"} → no event
        session permission_decided {"call":"c","permission":"ask","why":"w"} → no event
        session permission_decided {"call":"c","permission":"deny","why":"w"} → GUARDRAIL_TRIP
        session approval_requested → APPROVAL
        session approval_resolved → APPROVAL GUARDRAIL_TRIP
        session tool_started → TOOL_START
        session tool_finished {"call":"c","tool":"t","status":"ok","output":"o","duration_ms":1} → TOOL_END
        session tool_finished {"call":"c","tool":"t","status":"denied","output":"o","duration_ms":1} → TOOL_START TOOL_END
        session turn_ended → TURN_END
        session model_called {"turn":2,"call":4,"attempt":1,"output_tokens_max":9} → TURN_START LLM_START
        session compacted {"how":"emergency","through":3,"summary":"s","tokens_before":9,"tokens_after":1} → COMPACTION
        session model_called {"turn":3,"call":5,"attempt":1,"purpose":"summary","output_tokens_max":9} → TURN_START LLM_START
        session compacted {"how":"summary","through":3,"summary":"s","call":ASIDE,"tokens_before":9,"tokens_after":1} → LLM_END COMPACTION
        session model_called {"turn":3,"call":6,"attempt":1,"output_tokens_max":9} → LLM_START
        session model_called {"turn":4,"call":7,"attempt":1,"purpose":"final_summary","output_tokens_max":9} → LLM_START
        session final_summary_finished {"text":"t","call":ASIDE} → LLM_END
        session final_summary_finished {"call":ASIDE,"problem":"p"} → LLM_END
        session final_summary_finished {"problem":"p"} → no event
        session snapshot → no event
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT"continue"}]} → no event
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT{"deny":"b"}}]} → GUARDRAIL_TRIP
        session stop_verdicts {"turn":1,"evidence":"e","reports":[VERDICT{"abort":"h"}}]} → GUARDRAIL_TRIP
        session goal_check_started → no event
        session goal_judged → LLM_END
        session goal_verdict {"trigger":"claim","turn":1,"generation":1,"finding":{"unverified":{"why":"w"}}} → GUARDRAIL_TRIP
        session goal_verdict {"trigger":"claim","turn":1,"generation":1,"finding":{"not_achieved":{"reasoning":"r"}}} → GUARDRAIL_TRIP
        session goal_verdict {"trigger":"claim","turn":1,"generation":1,"finding":{"achieved":{"confidence":1.0,"reasoning":"r"}}} → no event
        session stop_check_cut_short → no event
        run processes_left → no event
        session goal_cleared → no event
        session stop_requested → no event
        run budget_reserved → BUDGET
        run budget_charged → BUDGET
        run budget_exhausted → BUDGET
        run agent_spawned → HANDOFF STEP_START
        run agent_asked_again → HANDOFF
        run agent_started → BUDGET
        run agent_yield_requested → BUDGET
        run agent_suspended → BUDGET
        run agent_resume_requested → BUDGET
        run agent_finished → HANDOFF
        run reprioritized → BUDGET
        run step_ended → STEP_END
        session tools_changed → no event
        session yield_requested → no event
        session sub_agent_suspended → no event
        session sub_agent_resumed → no event
        session worktree_made → no event
        session worktree_asked → no event
        session worktree_found → no event
        session terminal_noted → TERMINAL
        session terminal_ending → no event
        session external_model_called → LLM_START
        session external_model_queued → no event
        session external_model_refused → no event
        session external_model_answered → LLM_END
        session service_noted → no event
        run provider_awaited → no event
        run outage_wait_changed → no event
        run run_policy_changed → no event
        session agent_policy_changed → no event
        run agent_retry_scheduled → BUDGET
        run forked → no event
        session model_changed → no event
        session paused → no event
        run paused → FLOW_END RUN_END
        session resumed → no event
        run resumed → RUN_START FLOW_START
        session ended → SESSION_END
        run ended → FLOW_END RUN_END
    "#]].assert_eq(&table(&told_of_all().await));
}

/// What an observer is told of these entries of a session.
async fn told_of(entries: &[(&str, &str)]) -> String {
    let (told, telling) = channel();
    let told = Mutex::new(told);
    let make = move |_| {
        let told = told.lock().expect("told").clone();
        observe_with(move |event| Ok(told.send(event.kind.name())?))
    };
    let run = Observers::new().with("names", ObserverOptions::default(), make).of_run(RUN);
    for (seq, (kind, body)) in (1..).zip(entries) {
        run.record(&Arc::new(Record {
            actor: ActorKey::Session(SessionId::root(RUN)),
            seq: Seq(seq),
            at: Timestamp(0),
            elapsed: Elapsed::default(),
            entry: entry(kind, body),
        }));
    }
    run.finish().await;
    telling.try_iter().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn each_call_has_a_start_and_an_end_and_each_denial_one_trip() {
    let asked_for = (
        "assistant_message",
        r#"{"turn":1,"call":1,"content":[{"tool_call":{"id":"c","name":"t","input":{}}}],"usage":{},"model":"m","stop":"tool_use"}"#,
    );
    let question = ("permission_decided", r#"{"call":"c","permission":"ask","why":"w"}"#);
    let requested =
        ("approval_requested", r#"{"call":"c","tool":"t","input":{},"why":"w","pattern":"t","due":9}"#);
    let allowed = ("approval_resolved", r#"{"asked":3,"answer":{"allow":{"scope":"once"}},"by":"me"}"#);
    let refused = ("approval_resolved", r#"{"asked":3,"answer":{"deny":{}},"by":"me"}"#);
    let forbidden = ("permission_decided", r#"{"call":"c","permission":"deny","why":"w"}"#);
    let by_hook = ("hooks_decided", r#"{"asked":2,"reports":[REPORT{"deny":"no"}}]}"#);
    let hook_asks = ("hooks_decided", r#"{"asked":2,"reports":[REPORT{"ask":"is it?"}}]}"#);
    let started = ("tool_started", r#"{"call":"c","tool":"t","input":{}}"#);
    let done = ("tool_finished", r#"{"call":"c","tool":"t","status":"ok","output":"o","duration_ms":1}"#);
    let denied =
        ("tool_finished", r#"{"call":"c","tool":"t","status":"denied","output":"o","duration_ms":1}"#);
    let rejected =
        ("tool_finished", r#"{"call":"c","tool":"t","status":"rejected","output":"o","duration_ms":0}"#);
    let unmade =
        ("tool_finished", r#"{"call":"c","tool":"t","status":"cancelled","output":"o","duration_ms":0}"#);
    let unknown =
        ("tool_finished", r#"{"call":"c","tool":"t","status":"unknown","output":"o","duration_ms":0}"#);
    for (entries, told) in [
        (&[asked_for, started, done][..], "LLM_END TOOL_START TOOL_END"),
        (
            &[asked_for, question, requested, allowed, started, done],
            "LLM_END APPROVAL APPROVAL TOOL_START TOOL_END",
        ),
        (
            &[asked_for, hook_asks, requested, allowed, started, done],
            "LLM_END APPROVAL APPROVAL TOOL_START TOOL_END",
        ),
        (
            &[asked_for, question, requested, refused, denied],
            "LLM_END APPROVAL APPROVAL GUARDRAIL_TRIP TOOL_START TOOL_END",
        ),
        (&[asked_for, forbidden, denied], "LLM_END GUARDRAIL_TRIP TOOL_START TOOL_END"),
        (&[asked_for, by_hook, denied], "LLM_END GUARDRAIL_TRIP TOOL_START TOOL_END"),
        (&[asked_for, started, denied], "LLM_END TOOL_START TOOL_END GUARDRAIL_TRIP"),
        (&[asked_for, rejected], "LLM_END TOOL_START TOOL_END"),
        (&[asked_for, unmade], "LLM_END TOOL_START TOOL_END"),
        // An earlier process has told of its start, or of its question.
        (&[unknown], "TOOL_END"),
        (&[refused, denied], "APPROVAL GUARDRAIL_TRIP TOOL_START TOOL_END"),
    ] {
        assert_eq!(told_of(entries).await, told, "{entries:?}");
    }
}

#[test]
fn the_table_has_every_kind_of_entry() {
    let missing = Entry::KINDS.iter().filter(|kind| !ENTRIES.iter().any(|one| one.1 == **kind));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new());
}

fn of_helper(parent: SessionId, depth: u32) -> ChainContext {
    let agent_name = Some(format!("helper-{depth}").into());
    ChainContext { parent: Some(parent), depth, agent_name, ..ChainContext::root(RUN) }
}

/// Reports a chain of three agents, and then all entries and a piece of an answer of the last of them.
fn tell_of_a_chain(run: &RunObservers) -> ChainContext {
    let agent = |agent| SessionId { run: RUN, agent };
    for (parent, depth) in [(0, 1), (1, 2)] {
        let body = format!(
            r#"{{"goal":"g","policy":POLICY,"parent":"{}","depth":{depth},"agent":"helper-{depth}"}}"#,
            agent(parent)
        );
        let started = entry("session_started", &body);
        let actor = agent(depth).into();
        run.record(&Arc::new(Record {
            actor,
            seq: Seq(1),
            at: Timestamp(0),
            elapsed: Elapsed::default(),
            entry: started,
        }));
    }
    // Except the first: the last agent has started already.
    tell_from(1, run, agent(2));
    run.delta(Timestamp(0), &Delta { session: agent(2), kind: DeltaKind::Text, text: "t".into() });
    of_helper(agent(1), 2)
}

fn place_of(actor: ActorKey, last: ChainContext) -> ChainContext {
    match actor {
        ActorKey::Run(run) => ChainContext::root(run),
        ActorKey::Session(session) if session.agent == 1 => of_helper(SessionId::root(RUN), 1),
        ActorKey::Session(_) => last,
    }
}

#[tokio::test]
async fn every_kind_of_event_says_where_in_the_chain_of_agents_it_stands() {
    let (sees, seen) = channel::<Arc<ObserverEvent>>();
    let sees = Mutex::new(sees);
    let make = move |_| {
        let sees = sees.lock().expect("sees").clone();
        observe_with(move |event| Ok(sees.send(event.clone())?))
    };
    let trace = MemoryTrace::new();
    let run = Observers::new()
        .with("eyes", ObserverOptions::default(), make)
        .with_trace("trace", ObserverOptions::default(), trace.sink())
        .of_run(RUN);
    let last = tell_of_a_chain(&run);
    run.finish().await;
    let (seen, traced) = (seen.try_iter().collect::<Vec<_>>(), trace.events());
    for event in &seen {
        assert_eq!(event.chain, place_of(event.actor, last.clone()), "{event:?}");
    }
    let kinds = seen.iter().map(|event| event.kind).collect::<BTreeSet<_>>();
    let silent = ObserverEventKind::ALL.iter().filter(|kind| !kinds.contains(kind)).collect::<Vec<_>>();
    assert!(silent.is_empty(), "nothing emits these: {silent:?}");
    assert_eq!(traced.len(), seen.len());
    for (event, observed) in traced.iter().zip(&seen) {
        assert_eq!((&event.chain, event.name), (&observed.chain, observed.kind.name()));
        let line = event.to_json().expect("JSON");
        let json = serde_json::from_str::<serde_json::Value>(&line).expect("JSON");
        assert_eq!(json["chain"], serde_json::to_value(&observed.chain).expect("JSON"), "{line}");
    }
}

#[tokio::test]
async fn agents_keep_their_places_when_a_run_goes_on() {
    let trace = MemoryTrace::new();
    let run = Observers::new().with_trace("trace", ObserverOptions::default(), trace.sink()).of_run(RUN);
    let last = tell_of_a_chain(&run);
    run.finish().await;
    let before = trace.events().len();
    run.begin();
    let delta =
        |agent| Delta { session: SessionId { run: RUN, agent }, kind: DeltaKind::Text, text: "t".into() };
    (0..4).for_each(|agent| run.delta(Timestamp(0), &delta(agent)));
    run.finish().await;
    let places = trace.events()[before..].iter().map(|event| event.chain.clone()).collect::<Vec<_>>();
    let root = ChainContext::root(RUN);
    let child = root.child_of(SessionId::root(RUN), 1).expect("allowed");
    assert_eq!(
        places,
        [root, of_helper(SessionId::root(RUN), 1), last, child],
        "one of which nothing is known counts as the root's"
    );
}

#[test]
fn a_trace_event_is_one_object_with_these_fields() {
    let (session, chain) = (SessionId { run: RUN, agent: 3 }, ChainContext::root(RUN));
    let chain = chain.child_of(SessionId::root(RUN), 4).expect("allowed");
    let record = |entry| {
        Arc::new(Record {
            actor: session.into(),
            seq: Seq(5),
            at: Timestamp(9),
            elapsed: Elapsed::default(),
            entry,
        })
    };
    let event = |name, body| TraceEvent {
        at: Timestamp(9),
        name,
        actor: session.into(),
        chain: chain.clone(),
        span: format!("{session}/turn-1"),
        parent_span: Some(session.to_string()),
        body,
    };
    let entry = entry("turn_ended", r#"{"turn":1,"tool_calls":0}"#);
    let piece = Delta { session, kind: DeltaKind::Thinking, text: "hmm".into() };
    let of_run = TraceEvent {
        actor: RUN.into(),
        chain: ChainContext::root(RUN),
        span: RUN.to_string(),
        parent_span: None,
        ..event("LOST", TraceBody::Lost(7))
    };
    let events = [
        event("TURN_END", TraceBody::Entry(record(entry))),
        event("LLM_DELTA", TraceBody::Delta(Arc::new(piece))),
        of_run,
    ];
    let lines = events.iter().map(|event| event.to_json().expect("JSON") + "\n").collect::<String>();
    expect![[r#"
        {"ts_ms":9,"event":"TURN_END","run":"000000000007","session":"000000000007.3","chain":{"chain_id":"000000000007","parent":"000000000007.0","depth":1,"agent_name":null},"span":"000000000007.3/turn-1","parent_span":"000000000007.3","seq":5,"entry":{"type":"turn_ended","turn":1,"tool_calls":0}}
        {"ts_ms":9,"event":"LLM_DELTA","run":"000000000007","session":"000000000007.3","chain":{"chain_id":"000000000007","parent":"000000000007.0","depth":1,"agent_name":null},"span":"000000000007.3/turn-1","parent_span":"000000000007.3","delta":{"kind":"thinking","bytes":3}}
        {"ts_ms":9,"event":"LOST","run":"000000000007","chain":{"chain_id":"000000000007","parent":null,"depth":0,"agent_name":null},"span":"000000000007","count":7}
    "#]].assert_eq(&lines);
}
