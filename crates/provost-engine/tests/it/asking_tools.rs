//! Results that are more than output: tools for the agent, and questions to the user.

use expect_test::expect;
use provost_engine::{SessionEvent, ToolResult, ToolRun};
use provost_event::{ApprovalAnswer, CallFacts, CallQuestion, Json, ToolSpec, ToolStatus};

use crate::world::{World, without_hooks};

fn result(output: &str) -> ToolResult {
    ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: CallFacts::default(),
        status: ToolStatus::Ok,
        output: output.to_owned(),
        images: Vec::new(),
        whole: None,
        duration_ms: 5,
        memory: None,
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).expect("JSON")
}

fn question() -> CallQuestion {
    CallQuestion {
        message: "Which branch?".to_owned(),
        schema: json(r#"{"type":"object","properties":{"branch":{"type":"string"}},"required":["branch"]}"#),
        state: json(r#""sealed""#),
    }
}

fn done(world: &mut World, result: ToolResult) {
    let (seq, _) = world.tools().first().cloned().expect("a tool runs");
    world.session_event(SessionEvent::ToolDone { seq, result });
}

/// A world in which a call has asked.
fn asked() -> World {
    let mut world = World::start(without_hooks());
    world.call(&[("read", "{}")]);
    world.news();
    done(&mut world, ToolResult { asks: Some(Box::new(question())), ..result("") });
    world
}

#[test]
fn a_tool_s_question_waits_for_the_user_and_the_call_is_made_again_with_the_answer() {
    let mut world = asked();
    assert!(world.tools().is_empty(), "nothing runs while it is asked");
    let open = world.approvals();
    assert_eq!(open.first().and_then(|open| open.question.as_deref()), Some(&question()));
    world.resolve(ApprovalAnswer::Answered { content: json(r#"{"branch":"main"}"#) });
    let run = running(&world);
    let answer = run.answer.expect("an answer");
    assert_eq!(
        (answer.state.text(), answer.content.as_ref().map(Json::text)),
        (r#""sealed""#, Some(r#"{"branch":"main"}"#))
    );
    done(&mut world, result("done"));
    assert!(world.thinking().is_some(), "the turn goes on");
}

#[test]
fn agreeing_to_a_tool_s_question_gives_no_fields_and_counts_once() {
    let mut world = asked();
    let pattern = Some("read".to_owned());
    world.resolve(ApprovalAnswer::Allow { scope: provost_event::ApprovalScope::Run, pattern });
    assert_eq!(running(&world).answer.expect("an answer").content, None);
    done(&mut world, ToolResult { asks: Some(Box::new(question())), ..result("") });
    assert_eq!(world.approvals().len(), 1, "another question is asked anew");
}

#[test]
fn a_tool_s_question_that_is_denied_ends_the_call() {
    let mut world = asked();
    world.news();
    world.resolve(ApprovalAnswer::Deny { reason: "no".to_owned() });
    expect![[r#"
        approval_resolved #5 Deny { reason: "no" } by a person
        tool_finished c1 Denied: Denied by a person: no
        turn_ended
        model_called turn 2 call 2 attempt 1
          → #9 call model (turn 2, cap 1000)
    "#]]
    .assert_eq(&world.news());
    assert!(world.tools().is_empty() && world.thinking().is_some());
}

#[test]
fn a_tool_may_give_its_agent_tools_from_the_next_turn_on() {
    let mut world = World::start(without_hooks());
    world.call(&[("read", "{}"), ("read", r#"{"a":1}"#)]);
    let new = ToolSpec::new("mcp__git__log", "", Json::empty_object());
    done(&mut world, ToolResult { tools: vec![new.clone()], ..result("found") });
    let has = |world: &World| world.session().policy().is_some_and(|policy| policy.tools.contains(&new));
    assert!(!has(&world), "calls of this answer are made with the tools that it was given with");
    done(&mut world, result("ok"));
    assert!(has(&world));
    world.read_back();
    assert!(has(&world), "the log says so");
    world.call(&[("mcp__git__log", "{}")]);
    assert_eq!(world.tools().first().map(|(_, name)| name.clone()).as_deref(), Some("mcp__git__log"));
}

/// The call that runs.
fn running(world: &World) -> ToolRun {
    world.tool_runs().into_iter().next().expect("a tool runs")
}
