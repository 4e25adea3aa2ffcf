//! The checks before a tool call, as scripts: hooks, permissions, approvals.

use expect_test::{Expect, expect};
use provost_engine::{HookCallDetails, RunEvent, SessionEvent};
use provost_event::{
    Access, ApprovalAnswer, ApprovalScope, Budget, EffectId, ErrorClass, HookDecision as Say,
    HookPoint as At, OnFailure, Outcome, RunPolicy, StopHookVerdict, StopReason, ToolStatus, Unanswered,
};

use crate::world::{ROOT, World, guarded, report, tool, without_hooks};

fn check(policy: RunPolicy, script: impl FnOnce(&mut World), expected: Expect) {
    let mut world = World::start(policy);
    script(&mut world);
    expected.assert_eq(&world.news());
}

fn no(reason: &str) -> Say {
    Say::Deny(reason.to_owned())
}

fn asking(tools: &[&str]) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.permissions.ask = tools.iter().map(|tool| (*tool).to_owned()).collect();
    policy
}

const YES: ApprovalAnswer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };

fn refuse() -> ApprovalAnswer {
    ApprovalAnswer::Deny { reason: "not today".to_owned() }
}

fn resume(world: &mut World) {
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
}

#[test]
fn a_session_s_hooks_are_asked_in_this_order_before_the_first_call() {
    check(
        guarded(&[At::PreLlmRequest, At::PromptSubmit, At::SessionStart]),
        |w| {
            w.answer_hook(Say::Continue);
            w.answer_hook(Say::Continue);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            hooks_asked session_start
            hooks_decided #2 Continue
            hooks_asked prompt_submit
            hooks_decided #4 Continue
            hooks_asked pre_llm_request
            hooks_decided #6 Continue
            model_called turn 1 call 1 attempt 1
              → #8 call model (turn 1, cap 1000)
        "#]],
    );
}

#[test]
fn a_refused_goal_ends_the_run_before_anything_is_asked_of_the_model() {
    check(
        guarded(&[At::PromptSubmit]),
        |w| w.answer_hook(no("rude")),
        expect![[r#"
        session_started
        hooks_asked prompt_submit
        hooks_decided #2 Deny("rude")
        stop_requested: aborted by guard: rude
        ended: aborted by guard: rude
    "#]],
    );
}

#[test]
fn a_refused_prompt_is_kept_from_the_model_and_the_run_goes_on() {
    check(
        guarded(&[At::PromptSubmit]),
        |w| {
            w.answer_hook(Say::Continue);
            w.run_event(RunEvent::Say { agent: 0, text: "psst".into(), by: "alice".into() });
            w.answer_hook(no("rude"));
            w.run_event(RunEvent::Say { agent: 0, text: "please".into(), by: "alice".into() });
            w.answer_hook(Say::Continue);
            w.say("done");
        },
        expect![[r#"
            session_started
            hooks_asked prompt_submit
            hooks_decided #2 Continue
            model_called turn 1 call 1 attempt 1
            hooks_asked prompt_submit
            hooks_decided #5 Deny("rude")
            hooks_asked prompt_submit
            hooks_decided #7 Continue
            user_message
            assistant_message EndTurn 1 blocks
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #12 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn what_is_said_before_the_end_is_waited_for() {
    check(
        guarded(&[At::PromptSubmit]),
        |w| {
            w.answer_hook(Say::Continue);
            w.run_event(RunEvent::Say { agent: 0, text: "one more".into(), by: "alice".into() });
            w.say("done");
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            hooks_asked prompt_submit
            hooks_decided #2 Continue
            model_called turn 1 call 1 attempt 1
            hooks_asked prompt_submit
            assistant_message EndTurn 1 blocks
            turn_ended
            hooks_decided #5 Continue
            user_message
            model_called turn 2 call 2 attempt 1
              → #10 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn a_denied_call_has_a_result_that_says_so_and_the_others_run() {
    check(
        guarded(&[At::PreToolCall]),
        |w| {
            w.call(&[("shell", "{}"), ("read", "{}")]);
            w.answer_hook(no("never shell"));
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            hooks_asked pre_tool_call
            hooks_decided #4 Deny("never shell")
            tool_finished c1 Denied: Denied by hook `guard`: never shell
            hooks_asked pre_tool_call
            hooks_decided #7 Continue
            tool_started c2
              → #9 run read {}
        "#]],
    );
}

#[test]
fn a_hook_that_gives_no_answer_counts_as_its_policy_says() {
    for (on_failure, status) in [(OnFailure::Deny, "Denied"), (OnFailure::Continue, "run")] {
        let mut policy = guarded(&[At::PreToolCall]);
        policy.agent.hooks[0].on_failure = on_failure;
        let mut world = World::start(policy);
        world.call(&[("shell", "{}")]);
        world.answer_hook(Say::Failed("it panicked".into()));
        let told = world.news();
        assert!(told.contains(status), "{told}");
    }
}

#[test]
fn a_hook_pauses_at_a_call_which_is_asked_about_again_when_the_run_goes_on() {
    check(
        guarded(&[At::PreToolCall]),
        |w| {
            w.call(&[("read", "{}"), ("read", "{\"b\":1}"), ("shell", "{}")]);
            w.answer_hook(Say::Continue);
            w.answer_hook(Say::Pause("look first".into()));
            w.finish_first("a");
            resume(w);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 3 blocks
            hooks_asked pre_tool_call
            hooks_asked pre_tool_call
            hooks_decided #4 Continue
            tool_started c1
            hooks_decided #5 Pause("look first")
            stop_requested: paused by hook guard: look first
            tool_finished c1 Ok: a
            paused: paused by hook guard: look first
            resumed
            hooks_asked pre_tool_call
            hooks_decided #13 Continue
            tool_started c2
              → #15 run read {"b":1}
        "#]],
    );
}

#[test]
fn a_hook_ends_the_run_at_a_call() {
    check(
        guarded(&[At::PreToolCall, At::Abort, At::SessionEnd]),
        |w| {
            w.call(&[("read", "{}"), ("shell", "{}")]);
            w.answer_hook(Say::Abort("no more".into()));
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            hooks_asked pre_tool_call
            hooks_decided #4 Abort("no more")
            stop_requested: aborted by guard: no more
            tool_finished c1 Cancelled: Not run: the agent was stopped before this call's turn came.
            tool_finished c2 Cancelled: Not run: the agent was stopped before this call's turn came.
            turn_ended
            hooks_asked notification
            hooks_decided #10 Continue
            ended: aborted by guard: no more
        "#]],
    );
}

#[test]
fn results_and_batches_are_looked_at_before_the_next_turn() {
    check(
        guarded(&[At::PostToolCall, At::PostToolBatch]),
        |w| {
            w.call(&[("read", "{}"), ("nothing", "{}")]);
            w.finish_first("a");
            w.answer_hook(Say::Continue);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            tool_started c1
            tool_finished c1 Ok: a
            hooks_asked post_tool_call
            tool_finished c2 Rejected: There is no tool `nothing`. There are: edit, read, shell.
            hooks_decided #6 Continue
            hooks_asked post_tool_batch
            hooks_decided #9 Continue
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #12 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn a_hook_s_reminder_is_an_item_that_the_next_call_sends() {
    let mut world = World::start(guarded(&[At::PreLlmRequest]));
    let (seq, _) = world.hook_calls()[0].clone();
    let mut said = report(At::PreLlmRequest, Say::Continue);
    said.reminders = vec!["mind the budget".to_owned()];
    world.session_event(SessionEvent::HooksAnswered { seq, reports: vec![said], scripts: None });
    expect![[r#"
        session_started
        hooks_asked pre_llm_request
        system_item Reminder
        hooks_decided #2 Continue
        model_called turn 1 call 1 attempt 1
          → #5 call model (turn 1, cap 1000)
    "#]]
    .assert_eq(&world.news());
}

#[test]
fn a_turn_s_end_may_pause_and_isn_t_asked_about_twice() {
    check(
        guarded(&[At::TurnEnd]),
        |w| {
            w.say("done");
            w.answer_hook(Say::Pause(String::new()));
            resume(w);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message EndTurn 1 blocks
            hooks_asked turn_end
            hooks_decided #4 Pause("")
            paused: paused by hook guard
            resumed
            turn_ended
            ended: completed, not verified
        "#]],
    );
}

/// The hook point of the open hook call and the number of tool calls that its hooks get; they have no objection.
fn tool_calls_told(world: &mut World) -> (&'static str, u32) {
    let (_, asked) = world.hook_calls().first().cloned().expect("a hook call");
    let (HookCallDetails::Request { tool_calls, .. } | HookCallDetails::Text { tool_calls, .. }) =
        asked.details
    else {
        panic!("no number of calls")
    };
    world.answer_hook(Say::Continue);
    (asked.about.points()[0].name(), tool_calls)
}

#[test]
fn hooks_get_the_calls_since_the_last_turn_without_one_and_at_the_end_all_of_them() {
    let mut policy = guarded(&[At::PreLlmRequest, At::TurnEnd, At::SessionEnd]);
    policy.agent.stop_hooks = crate::world::policy().agent.stop_hooks;
    let mut world = World::start(policy);
    assert_eq!(tool_calls_told(&mut world), ("pre_llm_request", 0));
    world.call(&[("read", "{}"), ("read", "{\"b\":1}")]);
    world.finish_first("one");
    world.finish_first("two");
    assert_eq!(tool_calls_told(&mut world), ("pre_llm_request", 2));
    world.say("done");
    assert_eq!(tool_calls_told(&mut world), ("turn_end", 2));
    assert_eq!(world.stop_check().tool_calls, 2);
    world.hook(StopHookVerdict::Block("not yet".to_owned()), "a");
    assert_eq!(tool_calls_told(&mut world), ("pre_llm_request", 0), "the agent goes on after a stop");
    world.call(&[("read", "{\"c\":1}")]);
    world.finish_first("three");
    assert_eq!(tool_calls_told(&mut world), ("pre_llm_request", 1));
    world.say("done");
    assert_eq!(tool_calls_told(&mut world), ("turn_end", 1));
    assert_eq!(world.stop_check().tool_calls, 3, "stop hooks get all calls");
    world.hook(StopHookVerdict::Allow, "b");
    // `session_end` hooks are called with the same call.
    assert_eq!(tool_calls_told(&mut world), ("notification", 3));
}

#[test]
fn a_compaction_may_be_refused() {
    check(
        guarded(&[At::PreCompact, At::PostCompact]),
        |w| {
            w.call(&[("read", "{}")]);
            w.finish_first(&"x".repeat(20_000));
            w.fail(ErrorClass::ContextTooLong, None);
            w.answer_hook(Say::Continue);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c1
            tool_finished c1 Ok: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            turn_ended
            model_called turn 2 call 2 attempt 1
            retry Compacted in 0 ms
            hooks_asked pre_compact
            hooks_decided #9 Continue
            compacted (emergency) through 0 (3442 → 290 tokens)
            hooks_asked post_compact
            hooks_decided #12 Continue
            model_called turn 2 call 3 attempt 1
              → #14 call model (turn 2, cap 1000)
        "#]],
    );
    let mut world = World::start(guarded(&[At::PreCompact]));
    world.call(&[("read", "{}")]);
    world.finish_first(&"x".repeat(20_000));
    world.fail(ErrorClass::ContextTooLong, None);
    world.answer_hook(no("keep it"));
    assert_eq!(trouble(&world), Some(ErrorClass::ContextExhausted));
}

#[test]
fn a_stop_ends_the_questions_and_the_deadline_too() {
    let mut policy = guarded(&[At::PreToolCall, At::Abort]);
    policy.budget.wall_time_ms = Some(5_000);
    check(
        policy,
        |w| {
            w.call(&[("shell", "{}")]);
            w.tick();
            w.answer_hook(Say::Failed("cancelled".into()));
            w.answer(vec![provost_event::Block::Text("that far".into())], StopReason::EndTurn);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            hooks_asked pre_tool_call
            stop_requested: Time budget used up: 4.5 s of 5.0 s
            hooks_decided #4 Failed("cancelled")
            tool_finished c1 Cancelled: Not run: the agent was stopped before this call's turn came.
            turn_ended
            model_called turn 1 call 2 attempt 1 for FinalSummary
            final_summary_finished: that far
            hooks_asked notification
            hooks_decided #11 Continue
            paused: Time budget used up: 4.5 s of 5.0 s
        "#]],
    );
}

#[test]
fn after_a_crash_the_hooks_are_asked_once_more() {
    check(
        guarded(&[At::PreToolCall]),
        |w| {
            w.call(&[("shell", "{}")]);
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            hooks_asked pre_tool_call
            resumed
            hooks_decided #4 Continue
            tool_started c1
              → #7 run shell {}
        "#]],
    );
}

#[test]
fn a_question_is_asked_and_the_call_runs_once_after_yes() {
    check(
        asking(&["shell"]),
        |w| {
            w.call(&[("shell", "{}"), ("read", "{}")]);
            w.resolve(YES);
            w.finish_first("ran");
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            permission_decided c1 Ask
            approval_requested c1: `ask shell` requires approval
            approval_resolved #5 Allow { scope: Once, pattern: None } by a person
            tool_started c1
            tool_finished c1 Ok: ran
            permission_decided c2 Allow
            tool_started c2
              → #10 run read {}
        "#]],
    );
}

#[test]
fn one_answer_counts() {
    let mut world = World::start(asking(&["shell"]));
    world.call(&[("shell", "{}")]);
    let asked = world.approvals()[0].asked;
    world.resolve(refuse());
    let before = world.session_log().len();
    world.session_event(SessionEvent::Resolve { asked, answer: YES, by: "late".into() });
    assert_eq!(world.session_log().len(), before);
    assert!(world.news().contains("Denied: Denied by a person: not today"));
}

#[test]
fn no_answer_in_time_is_a_denial() {
    check(
        asking(&["shell"]),
        |w| {
            w.call(&[("shell", "{}")]);
            w.tick();
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            permission_decided c1 Ask
            approval_requested c1: `ask shell` requires approval
            approval_resolved #5 Deny { reason: "no answer in time" } by timeout
            tool_finished c1 Denied: Denied: no answer in time.
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #9 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn or_lets_the_run_rest_with_the_question_open() {
    let mut policy = asking(&["shell"]);
    policy.agent.permissions.unanswered = Unanswered::Pause;
    check(
        policy,
        |w| {
            w.call(&[("read", "{}"), ("shell", "{}"), ("read", "{\"b\":1}")]);
            w.finish_first("a");
            w.tick();
            w.resolve(YES);
            resume(w);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 3 blocks
            permission_decided c1 Allow
            tool_started c1
            tool_finished c1 Ok: a
            permission_decided c2 Ask
            approval_requested c2: `ask shell` requires approval
            stop_requested: a `shell` call waits for approval
            paused: a `shell` call waits for approval
            approval_resolved #8 Allow { scope: Once, pattern: None } by a person
            resumed
            tool_started c2
              → #13 run shell {}
        "#]],
    );
}

#[test]
fn a_question_outlives_a_crash_and_a_pause() {
    check(
        asking(&["shell"]),
        |w| {
            w.call(&[("shell", "{}")]);
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
            w.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
            resume(w);
            w.resolve(YES);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            permission_decided c1 Ask
            approval_requested c1: `ask shell` requires approval
            resumed
            stop_requested: paused by a person
            paused: paused by a person
            resumed
            approval_resolved #5 Allow { scope: Once, pattern: None } by a person
            tool_started c1
              → #11 run shell {}
        "#]],
    );
}

#[test]
fn a_call_that_has_not_begun_is_made_after_a_crash() {
    let mut world = World::start(asking(&["shell"]));
    world.call(&[("shell", "{}")]);
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    world.resolve(YES);
    let (seq, _) = world.tools()[0];
    let fresh = vec![EffectId { actor: ROOT.into(), seq }];
    world.run_event(RunEvent::Recover { fresh });
    assert_eq!(world.tools(), [(seq, "shell".to_owned())], "under its own name");
    world.finish_first("ran");
    assert!(world.news().contains("tool_finished c1 Ok: ran"));
}

#[test]
fn a_question_has_its_whole_time_again_after_a_crash() {
    let mut world = World::start(asking(&["shell"]));
    world.call(&[("shell", "{}")]);
    let first = world.approvals()[0].due;
    world.advance(10 * 60 * 60 * 1_000);
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert!(world.approvals()[0].due > first);
    assert_eq!(world.timers().len(), 1);
    world.tick();
    assert!(world.news().contains("by timeout"));
}

#[test]
fn what_is_agreed_to_for_the_run_answers_its_like() {
    check(
        asking(&["read"]),
        |w| {
            w.call(&[("read", "{}"), ("read", "{}")]);
            let pattern = Some(w.approvals()[0].pattern.clone());
            w.resolve(ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern });
            w.finish_first("a");
            w.finish_first("b");
            w.call(&[("read", "{}")]);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            permission_decided c1 Ask
            approval_requested c1: `ask read` requires approval
            permission_decided c2 Ask
            approval_requested c2: `ask read` requires approval
            approval_resolved #5 Allow { scope: Run, pattern: Some("read({})") } by a person
            approval_resolved #7 Allow { scope: Once, pattern: None } by a person (with #5)
            tool_started c1
            tool_started c2
            tool_finished c1 Ok: a
            tool_finished c2 Ok: b
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message ToolUse 1 blocks
            permission_decided c3 Allow
            tool_started c3
              → #18 run read {}
        "#]],
    );
}

#[test]
fn the_most_restrictive_wins() {
    let denying = |mut policy: RunPolicy| {
        policy.agent.permissions.deny = vec!["shell".to_owned()];
        policy
    };
    let rows: [(&str, RunPolicy, Say, &str); 5] = [
        ("a rule's no over a hook's yes", denying(guarded(&[At::PreToolCall])), Say::Allow, "Denied"),
        ("a hook's no over no rule", guarded(&[At::PreToolCall]), no("n"), "Denied"),
        ("a hook's question over no rule", guarded(&[At::PreToolCall]), Say::Ask("q".into()), "approval"),
        (
            "a hook's end over a rule's no",
            denying(guarded(&[At::PreToolCall])),
            Say::Abort("x".into()),
            "aborted",
        ),
        ("nothing", guarded(&[At::PreToolCall]), Say::Continue, "tool_started"),
    ];
    for (what, policy, said, expected) in rows {
        let mut world = World::start(policy);
        world.call(&[("shell", "{}")]);
        world.answer_hook(said);
        let told = world.news();
        assert!(told.contains(expected), "{what}: {told}");
    }
}

#[test]
fn a_hook_s_yes_lifts_only_the_question_that_no_pattern_asks() {
    let mut by_default = guarded(&[At::PreToolCall]);
    by_default.agent.permissions.default = provost_event::Permission::Ask;
    let mut by_pattern = by_default.clone();
    by_pattern.agent.permissions.ask = vec!["shell".to_owned()];
    for (policy, asked) in [(by_default, false), (by_pattern, true)] {
        let mut world = World::start(policy);
        world.call(&[("shell", "{}")]);
        world.answer_hook(Say::Allow);
        assert_eq!(!world.approvals().is_empty(), asked);
    }
}

#[test]
fn a_hook_s_yes_doesn_t_lift_the_question_about_a_command_that_can_t_be_read() {
    let mut policy = guarded(&[At::PreToolCall]);
    policy.agent.permissions.ask = vec!["shell(rm *)".to_owned()];
    let mut world = World::start(policy);
    world.call(&[("shell", r#"{"command":"$(cat what) -rf x"}"#)]);
    world.answer_hook(Say::Allow);
    // The files that it may run are looked at first; no hook is called for that.
    world.answer_hook(Say::Continue);
    assert_eq!(world.approvals().len(), 1, "{}", world.news());
}

#[test]
fn consent_for_all_calls_that_a_rule_asks_about_doesn_t_answer_a_hook_s_question() {
    let mut policy = guarded(&[At::PreToolCall]);
    policy.agent.permissions.ask = vec!["read".to_owned()];
    let mut world = World::start(policy);
    world.call(&[("read", "{}"), ("read", "{}")]);
    world.answer_hook(Say::Continue);
    world.answer_hook(Say::Ask("this one I want a person to see".into()));
    let open = world.approvals();
    assert_eq!(open.len(), 2);
    let pattern = Some(open[0].pattern.clone());
    world.resolve(ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern });
    assert_eq!(world.approvals(), open[1..]);
}

#[test]
fn a_hook_may_approve_in_a_persons_place() {
    for (said, expected) in
        [(Say::Allow, "tool_started"), (no("n"), "Denied"), (Say::Continue, "approval_requested")]
    {
        let mut policy = guarded(&[At::Approval]);
        policy.agent.permissions.ask = vec!["shell".to_owned()];
        let mut world = World::start(policy);
        world.call(&[("shell", "{}")]);
        world.answer_hook(said);
        let told = world.news();
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_cancelled_run_at_rest_answers_all_its_calls() {
    check(
        asking(&["shell"]),
        |w| {
            w.call(&[("shell", "{}"), ("read", "{}")]);
            w.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
            w.run_event(RunEvent::Cancel { agent: None, by: "a person".into() });
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 2 blocks
            permission_decided c1 Ask
            approval_requested c1: `ask shell` requires approval
            stop_requested: paused by a person
            paused: paused by a person
            resumed
            approval_resolved #5 Deny { reason: "the agent was stopped before an answer came" } by Provost
            tool_finished c1 Cancelled: Not run: the agent was stopped before this call's turn came.
            tool_finished c2 Cancelled: Not run: the agent was stopped before this call's turn came.
            turn_ended
            ended: cancelled by a person
        "#]],
    );
}

#[test]
fn the_end_is_told_before_it_comes() {
    check(
        guarded(&[At::SessionEnd, At::Notification]),
        |w| {
            w.answer(vec![provost_event::Block::Text("done".into())], StopReason::EndTurn);
            w.answer_hook(Say::Continue);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            assistant_message EndTurn 1 blocks
            turn_ended
            stop_requested: completed, not verified
            hooks_asked notification
            hooks_decided #6 Continue
            ended: completed, not verified
        "#]],
    );
}

#[test]
fn a_late_answer_doesn_t_count_while_the_end_is_told() {
    let mut world = World::start(guarded(&[At::Abort]));
    let seq = world.thinking().expect("it thinks");
    world.fail(ErrorClass::Unauthorized, None);
    let before = world.session_log().len();
    let failure = provost_event::ModelFailure::new(ErrorClass::Cut, "late");
    world.session_event(SessionEvent::ModelFailed { seq, failure });
    assert_eq!(world.session_log().len(), before);
    world.answer_hook(Say::Continue);
    assert_eq!(trouble(&world), Some(ErrorClass::Unauthorized));
}

#[test]
fn a_matcher_that_names_other_tools_asks_no_hook() {
    let mut policy = guarded(&[At::PreToolCall]);
    policy.agent.hooks[0].matcher = Some("Write|edit".to_owned());
    let mut world = World::start(policy);
    world.call(&[("shell", "{}")]);
    assert_eq!(world.tools().len(), 1);
    world.finish_first("ok");
    world.call(&[("edit", "{}")]);
    assert_eq!(world.hook_calls().len(), 1);
    world.answer_hook(Say::Continue);
    let seq = world.tools()[0].0;
    world.finish(seq, ToolStatus::Ok, "ok");
}

#[test]
fn a_matcher_that_names_the_shell_asks_about_commands_at_a_terminal() {
    for matcher in ["Bash", "Bash|Edit", "shell"] {
        let mut policy = guarded(&[At::PreToolCall]);
        policy.agent.tools = vec![tool("terminal", Access::Anything, false)];
        policy.agent.hooks[0].matcher = Some(matcher.to_owned());
        let mut world = World::start(policy);
        world.call(&[("terminal", "{\"action\":\"start\",\"command\":\"ls\"}")]);
        assert_eq!(world.hook_calls().len(), 1, "{matcher}");
    }
}

/// The error for which the run is suspended.
fn trouble(world: &World) -> Option<ErrorClass> {
    match world.outcome() {
        Some(Outcome::Paused { why: provost_event::PauseReason::Model(trouble) }) => Some(trouble.class),
        _ => None,
    }
}
