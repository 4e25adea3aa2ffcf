//! Hooks that have a call made with other arguments: which checks the other call passes, and how often.

use expect_test::expect;
use provost_engine::{Effect, SessionEvent};
use provost_event::{
    ApprovalAnswer, ApprovalScope, Entry, GateEntry, HookDecision as Say, HookPoint as At, HookReport,
    HookTrigger, Json, RunPolicy, ToolEntry, ToolStatus,
};

use crate::world::{World, guard, guarded, report, without_hooks};

const YES: ApprovalAnswer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };

/// A report of the hook `hook` that proposes `input`.
fn proposes(hook: &str, decision: Say, input: &str) -> HookReport {
    let replacement = Some(Json::parse(input.to_owned()).expect("JSON"));
    HookReport { hook: hook.to_owned(), replacement, ..report(At::PreToolCall, decision) }
}

fn answer(world: &mut World, reports: Vec<HookReport>) {
    let (seq, _) = world.hook_calls().first().cloned().expect("a hook call");
    world.session_event(SessionEvent::HooksAnswered { seq, reports, scripts: None });
}

/// The arguments of the tool that runs.
fn made(world: &World) -> Vec<String> {
    let run = |effect: &Effect| match effect {
        Effect::RunTool(run) => Some(run.input.text().to_owned()),
        _ => None,
    };
    world.open.values().filter_map(run).collect()
}

/// The first result.
fn result(world: &World) -> (ToolStatus, String) {
    let found = world.session_log().iter().find_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some((finished.status, finished.output.clone())),
        _ => None,
    });
    found.expect("a result")
}

fn two_hooks() -> RunPolicy {
    let mut policy = guarded(&[At::PreToolCall, At::PreToolCall]);
    policy.agent.hooks[0].name = "writer".to_owned();
    policy
}

#[test]
fn the_other_call_is_made_after_every_other_hook_was_asked_about_it_and_both_are_in_the_log() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"npm ci"}"#)]);
    answer(&mut world, vec![proposes("writer", Say::Continue, r#"{"command":"pnpm install"}"#)]);
    let (_, again) = world.hook_calls().first().cloned().expect("the other hooks are asked");
    let HookTrigger::Call { proposer, .. } = &again.about else { panic!("{again:?}") };
    assert_eq!(proposer.as_deref(), Some("writer"));
    let asked = |name: &str| {
        let hooks = two_hooks().agent.hooks;
        hooks.iter().filter(|hook| hook.name == name).any(|hook| hook.is_asked(&again.about, None))
    };
    assert_eq!((asked("writer"), asked("guard")), (false, true));
    world.answer_hook(Say::Continue);
    assert_eq!(made(&world), [r#"{"command":"pnpm install"}"#]);
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message ToolUse 1 blocks
        hooks_asked pre_tool_call
        hooks_decided #4 Continue
        hooks_asked pre_tool_call
        hooks_decided #6 Continue
        tool_started c1
          → #8 run shell {"command":"pnpm install"}
    "#]]
    .assert_eq(&world.news());
    let logged = world.session_log().iter().filter_map(|record| match &record.entry {
        Entry::Gate(GateEntry::HooksDecided(decided)) => decided.reports[0].replacement.clone(),
        Entry::Tool(ToolEntry::Started(started)) => Some(started.input.clone()),
        _ => None,
    });
    let logged = logged.map(|input| input.text().to_owned()).collect::<Vec<_>>();
    assert_eq!(logged, [r#"{"command":"pnpm install"}"#, r#"{"command":"pnpm install"}"#]);
}

#[test]
fn another_hook_denies_the_other_call() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"ls"}"#)]);
    answer(&mut world, vec![proposes("writer", Say::Allow, r#"{"command":"rm -rf /"}"#)]);
    world.answer_hook(Say::Deny("never".into()));
    assert!(made(&world).is_empty());
    assert_eq!(result(&world).0, ToolStatus::Denied);
}

#[test]
fn permissions_and_a_person_decide_on_the_other_call() {
    let mut policy = two_hooks();
    policy.agent.permissions.deny = vec!["shell(rm *)".to_owned()];
    policy.agent.permissions.ask = vec!["shell(git push *)".to_owned()];
    policy.agent.tools[2].subject = provost_event::ToolSubject::command("command");
    let with = |input: &str| {
        let mut world = World::start(policy.clone());
        world.call(&[("shell", r#"{"command":"ls"}"#)]);
        // Its own consent is about the call that it doesn't want.
        answer(&mut world, vec![proposes("writer", Say::Allow, input)]);
        world.answer_hook(Say::Continue);
        world
    };
    let denied = with(r#"{"command":"rm x"}"#);
    assert!(made(&denied).is_empty());
    assert_eq!(result(&denied).0, ToolStatus::Denied);
    let mut asked = with(r#"{"command":"git push origin"}"#);
    assert_eq!(asked.approvals()[0].input.text(), r#"{"command":"git push origin"}"#);
    asked.resolve(YES);
    assert_eq!(made(&asked), [r#"{"command":"git push origin"}"#]);
}

#[test]
fn a_hook_that_asks_for_a_person_about_its_own_proposal_gets_one() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"ls"}"#)]);
    answer(&mut world, vec![proposes("writer", Say::Ask("look".into()), r#"{"command":"ls -a"}"#)]);
    world.answer_hook(Say::Continue);
    assert_eq!(world.approvals()[0].why, "hook writer: look");
    world.resolve(YES);
    assert_eq!(made(&world), [r#"{"command":"ls -a"}"#]);
}

#[test]
fn a_second_replacement_of_a_call_denies_it_and_tells_the_model_the_arguments() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"a"}"#)]);
    answer(&mut world, vec![proposes("writer", Say::Continue, r#"{"command":"b"}"#)]);
    answer(&mut world, vec![proposes("guard", Say::Continue, r#"{"command":"c"}"#)]);
    assert!(made(&world).is_empty(), "neither is made");
    let (status, output) = result(&world);
    assert_eq!(status, ToolStatus::Denied);
    assert!(output.contains("`guard`") && output.ends_with(r#"instead: {"command":"c"}"#), "{output}");
}

#[test]
fn a_denial_beside_a_proposal_denies() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"a"}"#)]);
    let denial = report(At::PreToolCall, Say::Deny("no".into()));
    answer(&mut world, vec![proposes("writer", Say::Continue, r#"{"command":"b"}"#), denial]);
    assert!(made(&world).is_empty() && world.hook_calls().is_empty());
}

#[test]
fn of_two_proposals_the_last_counts() {
    let mut world = World::start(two_hooks());
    world.call(&[("shell", r#"{"command":"a"}"#)]);
    let both = [("writer", r#"{"command":"b"}"#), ("guard", r#"{"command":"c"}"#)];
    answer(&mut world, both.map(|(hook, input)| proposes(hook, Say::Continue, input)).into());
    world.answer_hook(Say::Continue);
    assert_eq!(made(&world), [r#"{"command":"c"}"#]);
}

#[test]
fn the_hook_that_answers_for_a_person_may_propose_a_call_that_a_person_then_allows() {
    let mut policy = without_hooks();
    policy.agent.hooks = vec![guard(At::Approval)];
    policy.agent.permissions.ask = vec!["shell".to_owned()];
    let mut world = World::start(policy);
    world.call(&[("shell", r#"{"command":"a"}"#)]);
    let said = HookReport { point: At::Approval, ..proposes("guard", Say::Allow, r#"{"command":"b"}"#) };
    answer(&mut world, vec![said]);
    // The only hook is the proposer.
    answer(&mut world, Vec::new());
    assert_eq!(world.approvals()[0].input.text(), r#"{"command":"b"}"#);
    world.resolve(YES);
    assert_eq!(made(&world), [r#"{"command":"b"}"#]);
}

#[test]
fn a_hook_that_rewrites_every_call_works_all_day() {
    let mut world = World::start(two_hooks());
    let text = "x".repeat(20_000);
    for number in 0..9 {
        world.call(&[("edit", &format!(r#"{{"path":"f{number}","content":"old"}}"#))]);
        let wanted = format!(r#"{{"path":"f{number}","content":"{text}"}}"#);
        answer(&mut world, vec![proposes("writer", Say::Continue, &wanted)]);
        world.answer_hook(Say::Continue);
        assert_eq!(made(&world), [wanted]);
        world.finish_first("written");
    }
    assert!(world.thinking().is_some(), "the agent goes on");
}
