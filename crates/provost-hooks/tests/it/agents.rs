//! Sub-agents: their starts, stops and ends, and the calls that spawn them.

use expect_test::{Expect, expect};
use provost_engine::WantedAgent;
use provost_event::{HookContract, HookPolicy, Priority};
use provost_harness::HookAgent;
use serde_json::json;

use crate::stage::{Stage, check, claude, own, shown};

/// An agent with a call for the configured sub-agent `reviewer`.
fn asks_for_a_reviewer() -> Stage {
    let mut stage = Stage::new();
    stage.tool = "reviewer";
    stage.input = json!({ "goal": "look at the diff" });
    stage.output = "It is fine.".into();
    stage.wanted = Some(WantedAgent {
        agent: Some("reviewer".to_owned()),
        name: "reviewer".to_owned(),
        goal: "look at the diff".to_owned(),
        priority: Some(Priority::High),
        depth: 1,
    });
    stage
}

/// An agent with a call for a copy of itself.
fn asks_for_its_like() -> Stage {
    let mut stage = Stage::new();
    stage.tool = "spawn_agent";
    stage.input = json!({ "goal": "find the bug", "name": "finder", "max_turns": 4 });
    stage.wanted = Some(WantedAgent {
        agent: None,
        name: "finder".to_owned(),
        goal: "find the bug".to_owned(),
        priority: None,
        depth: 1,
    });
    stage
}

/// A sub-agent of that configuration.
fn sub_agent(name: Option<&str>) -> Stage {
    let mut stage = Stage::new();
    stage.agent = HookAgent { parent: Some(Stage::root()), depth: 1, name: name.map(str::to_owned) };
    stage
}

async fn told(stage: &Stage, hook: HookPolicy, failed: bool, expected: Expect) {
    let hook = HookPolicy { program: claude("stop", "cat > told.json").program, ..hook };
    stage.ask_about(&hook, failed).await;
    let told: serde_json::Value = serde_json::from_str(&stage.file("told.json")).expect("JSON");
    let mut fields = told.as_object().expect("an object").iter().collect::<Vec<_>>();
    fields.retain(|(name, _)| !matches!(name.as_str(), "cwd" | "run_id" | "turn"));
    fields.sort_by_key(|(name, _)| *name);
    expected.assert_eq(&fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>());
}

#[tokio::test]
async fn a_sub_agents_beginning_and_wish_to_stop_have_the_fields_that_scripts_know() {
    let stage = sub_agent(Some("reviewer"));
    told(
        &stage,
        claude("SubagentStart", ""),
        false,
        expect![[r#"
            agent_depth: 1
            agent_id: "5913ecda-826e-4e18-87eb-c814f39b6795"
            agent_parent: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            agent_type: "reviewer"
            hook_event_name: "SubagentStart"
            provost_session: "000000000007.3"
            session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            transcript_path: "/logs/root.jsonl"
        "#]],
    )
    .await;
    told(
        &stage,
        claude("SubagentStop", ""),
        false,
        expect![[r#"
            agent_depth: 1
            agent_id: "5913ecda-826e-4e18-87eb-c814f39b6795"
            agent_parent: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            agent_transcript_path: "/logs/session.jsonl"
            agent_type: "reviewer"
            background_tasks: []
            final_text: "All done."
            hook_event_name: "SubagentStop"
            iterations: 3
            last_assistant_message: "All done."
            permission_mode: "default"
            provost_session: "000000000007.3"
            session_crons: []
            session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            stop_hook_active: true
            stop_reason: "end_turn"
            tool_calls: 5
            tool_calls_made: 5
            transcript_path: "/logs/root.jsonl"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_sub_agents_calls_say_whose_they_are_and_our_own_contract_names_its_own_session() {
    let stage = sub_agent(Some("reviewer"));
    told(
        &sub_agent(None),
        claude("PreToolUse", ""),
        false,
        expect![[r#"
            agent_depth: 1
            agent_id: "5913ecda-826e-4e18-87eb-c814f39b6795"
            agent_parent: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            agent_type: "general-purpose"
            hook_event_name: "PreToolUse"
            permission_mode: "default"
            provost_input: {"command":"rm -rf build"}
            provost_session: "000000000007.3"
            provost_tool: "shell"
            session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            tool_input: {"command":"rm -rf build","run_in_background":false}
            tool_name: "Bash"
            tool_use_id: "call-1"
            transcript_path: "/logs/root.jsonl"
        "#]],
    )
    .await;
    // By Provost's contract a sub-agent's session is like any session.
    told(
        &stage,
        own("subagent_stop", ""),
        false,
        expect![[r#"
        agent_depth: 1
        agent_id: "000000000007.3"
        agent_parent: "000000000007.0"
        agent_transcript_path: "/logs/session.jsonl"
        agent_type: "reviewer"
        background_tasks: []
        final_text: "All done."
        hook_event_name: "SubagentStop"
        iterations: 3
        last_assistant_message: "All done."
        permission_mode: "default"
        session_crons: []
        session_id: "000000000007.3"
        stop_hook_active: true
        stop_reason: "end_turn"
        tool_calls: 5
        tool_calls_made: 5
        transcript_path: "/logs/session.jsonl"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_for_agents_come_as_calls_of_the_one_tool_that_scripts_know() {
    told(
        &asks_for_a_reviewer(),
        claude("PreToolUse", ""),
        false,
        expect![[r#"
            hook_event_name: "PreToolUse"
            permission_mode: "default"
            provost_input: {"goal":"look at the diff"}
            provost_session: "000000000007.0"
            provost_tool: "reviewer"
            session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
            tool_input: {"prompt":"look at the diff","description":"reviewer","subagent_type":"reviewer"}
            tool_name: "Agent"
            tool_use_id: "call-1"
            transcript_path: "/logs/session.jsonl"
        "#]],
    )
    .await;
    told(&asks_for_its_like(), claude("PreToolUse", ""), false, expect![[r#"
        hook_event_name: "PreToolUse"
        permission_mode: "default"
        provost_input: {"goal":"find the bug","name":"finder","max_turns":4}
        provost_session: "000000000007.0"
        provost_tool: "spawn_agent"
        session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
        tool_input: {"prompt":"find the bug","description":"finder","max_turns":4,"subagent_type":"general-purpose"}
        tool_name: "Agent"
        tool_use_id: "call-1"
        transcript_path: "/logs/session.jsonl"
    "#]]).await;
    told(&asks_for_a_reviewer(), claude("PostToolUse", ""), false, expect![[r#"
        duration_ms: 12
        hook_event_name: "PostToolUse"
        permission_mode: "default"
        provost_input: {"goal":"look at the diff"}
        provost_session: "000000000007.0"
        provost_tool: "reviewer"
        session_id: "70704c3d-e0a7-4852-8a07-397036fb52d4"
        tool_input: {"prompt":"look at the diff","description":"reviewer","subagent_type":"reviewer"}
        tool_name: "Agent"
        tool_response: {"status":"completed","prompt":"look at the diff","content":[{"type":"text","text":"It is fine."}],"totalDurationMs":12}
        tool_use_id: "call-1"
        transcript_path: "/logs/session.jsonl"
    "#]]).await;
}

#[tokio::test]
async fn our_own_events_say_which_agent_is_wanted_and_what_came_of_it() {
    told(&asks_for_a_reviewer(), own("spawn", ""), false, expect![[r#"
        hook_event_name: "Spawn"
        permission_mode: "default"
        provost_input: {"goal":"look at the diff"}
        provost_tool: "reviewer"
        session_id: "000000000007.0"
        spawn: {"agent":"reviewer","agent_type":"reviewer","name":"reviewer","goal":"look at the diff","priority":"high","depth":1}
        tool_input: {"prompt":"look at the diff","description":"reviewer","subagent_type":"reviewer"}
        tool_name: "Agent"
        tool_use_id: "call-1"
        transcript_path: "/logs/session.jsonl"
    "#]]).await;
    told(&asks_for_a_reviewer(), own("child_end", ""), false, expect![[r#"
        child: {"agent_id":"000000000007.5","agent_type":"reviewer","outcome":{"kind":"completed","verdict":null,"verification":"none"}}
        duration_ms: 12
        hook_event_name: "ChildEnd"
        permission_mode: "default"
        provost_input: {"goal":"look at the diff"}
        provost_tool: "reviewer"
        session_id: "000000000007.0"
        tool_input: {"prompt":"look at the diff","description":"reviewer","subagent_type":"reviewer"}
        tool_name: "Agent"
        tool_response: {"status":"completed","prompt":"look at the diff","content":[{"type":"text","text":"It is fine."}],"totalDurationMs":12}
        tool_use_id: "call-1"
        transcript_path: "/logs/session.jsonl"
    "#]]).await;
    told(&asks_for_its_like(), own("child_end", ""), true, expect![[r#"
        child: {"agent_id":"000000000007.5","agent_type":"general-purpose","outcome":{"kind":"completed","verdict":null,"verification":"none"}}
        duration_ms: 12
        error: "fine\n"
        hook_event_name: "ChildEnd"
        is_interrupt: false
        permission_mode: "default"
        provost_input: {"goal":"find the bug","name":"finder","max_turns":4}
        provost_tool: "spawn_agent"
        session_id: "000000000007.0"
        tool_input: {"prompt":"find the bug","description":"finder","max_turns":4,"subagent_type":"general-purpose"}
        tool_name: "Agent"
        tool_use_id: "call-1"
        transcript_path: "/logs/session.jsonl"
    "#]]).await;
}

#[test]
fn matchers_are_held_against_the_kind_of_agent() {
    let wants = |stage: &Stage, event: &str, matcher: &str, contract: HookContract| {
        let matcher = Some(matcher.to_owned());
        stage.wants(&HookPolicy { matcher, contract, ..claude(event, "exit 0") })
    };
    let (named, alike) = (asks_for_a_reviewer(), asks_for_its_like());
    let (reviewer, other) = (sub_agent(Some("reviewer")), sub_agent(None));
    for contract in [HookContract::Claude, HookContract::Provost] {
        for (stage, event, matcher) in [
            (&named, "spawn", "reviewer"),
            (&named, "spawn", "Agent"),
            (&named, "spawn", "^(?!tester$)"),
            (&named, "child_end", "review.*"),
            (&named, "PreToolUse", "Task"),
            (&named, "PreToolUse", "Agent|Bash"),
            (&named, "PostToolUse", "reviewer"),
            (&alike, "spawn", "general-purpose"),
            (&alike, "child_end", "spawn_agent"),
            (&alike, "PreToolUse", "Task"),
            (&reviewer, "SubagentStart", "reviewer"),
            (&reviewer, "SubagentStop", "tester|reviewer"),
            (&other, "SubagentStart", "general-purpose"),
            (&other, "SubagentStop", "spawn_agent"),
        ] {
            assert!(wants(stage, event, matcher, contract), "{event} {matcher} {contract:?}");
        }
        for (stage, event, matcher) in [
            (&named, "spawn", "tester"),
            (&named, "spawn", "^(?!reviewer$)"),
            (&named, "spawn", "spawn_agent"),
            (&named, "PreToolUse", "spawn_agent"),
            (&named, "PreToolUse", "general-purpose"),
            (&alike, "spawn", "reviewer"),
            (&reviewer, "SubagentStart", "general-purpose"),
            (&reviewer, "SubagentStop", "Agent"),
            (&other, "SubagentStop", "finder"),
        ] {
            assert!(!wants(stage, event, matcher, contract), "{event} {matcher} {contract:?}");
        }
    }
}

#[tokio::test]
async fn each_event_has_its_own_refusal() {
    let cases = [
        ("SubagentStart", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("SubagentStart", "echo plain", "continue"),
        (
            "SubagentStart",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"be kind"}}'"#,
            "continue | remind: be kind",
        ),
        ("SubagentStop", "echo 'no tests' >&2; exit 2", "deny: no tests"),
        ("SubagentStop", r#"echo '{"decision":"block","reason":"more"}'"#, "deny: more"),
        (
            "SubagentStop",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"SubagentStop","additionalContext":"and b"}}'"#,
            "deny: and b",
        ),
        ("SubagentStop", r#"echo '{"continue":false,"stopReason":"enough"}'"#, "abort: enough"),
        ("SubagentStop", r#"echo '{"continue":true}'"#, "continue"),
        ("spawn", "echo 'too many' >&2; exit 2", "deny: too many"),
        ("child_end", "echo 'look at it' >&2; exit 2", "continue | remind: look at it"),
    ];
    check(&cases, claude).await;
    let cases = [
        ("subagent_stop", "echo 'no tests'; exit 2", "deny: no tests"),
        ("spawn", "echo 'too many'; exit 2", "deny: too many"),
        ("spawn", "echo 'all off'; exit 3", "abort: all off"),
        ("spawn", "exit 1", "failed: exit status 1, which means neither yes nor no: it printed nothing"),
        ("child_end", "echo 'all off'; exit 3", "abort: all off"),
    ];
    check(&cases, own).await;
}

#[tokio::test]
async fn a_script_may_ask_for_the_call_as_it_is_or_propose_another() {
    let stage = asks_for_a_reviewer();
    let updated = |input: serde_json::Value| {
        let output = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": "allow", "updatedInput": input } });
        claude("PreToolUse", &format!("echo '{output}'"))
    };
    let same =
        json!({ "prompt": "look at the diff", "description": "reviewer", "subagent_type": "reviewer" });
    assert_eq!(shown(&stage.ask(&updated(same)).await), "allow");
    let answer = shown(&stage.ask(&updated(json!({ "prompt": "look at all" }))).await);
    assert_eq!(answer, r#"allow | replace: {"goal":"look at all"}"#);
}
