//! The behavior of a session, as scripts.

use expect_test::{Expect, expect};
use provost_engine::{RunEvent, SessionEvent};
use provost_event::{
    BlobId, Block, Budget, ConversationEntry, Entry, ErrorClass, Image, ImageKind, ItemKind, LifecycleEntry,
    MicroDollars, ModelEntry, Outcome, Purpose, RunPolicy, StopHookVerdict, StopReason, ToolStatus, Usage,
};

use crate::world::{World, policy, without_hooks};

fn check(policy: RunPolicy, script: impl FnOnce(&mut World), expected: Expect) -> World {
    let mut world = World::start(policy);
    world.news();
    script(&mut world);
    expected.assert_eq(&world.news());
    world
}

fn block(reason: &str) -> StopHookVerdict {
    StopHookVerdict::Block(reason.to_owned())
}

#[test]
fn a_turn_with_a_tool_and_a_verified_end() {
    check(
        policy(),
        |w| {
            w.call(&[("read", "{}")]);
            w.finish_first("text");
            w.say("I am done. VERDICT: PASS");
            w.hook(StopHookVerdict::Allow, "e");
        },
        expect![[r#"
            assistant_message ToolUse 1 blocks
            tool_started c1
            tool_finished c1 Ok: text
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message EndTurn 1 blocks
            stop_verdicts Allow
            turn_ended
            ended: completed (verdict PASS), verified
        "#]],
    );
}

#[test]
fn reads_run_side_by_side_and_results_keep_the_order_of_the_calls() {
    check(
        policy(),
        |w| {
            w.call(&[("read", "{}"), ("read", "{\"a\":1}"), ("shell", "{}")]);
            let second = w.tools()[1].0;
            w.finish(second, ToolStatus::Ok, "second");
        },
        expect![[r#"
            assistant_message ToolUse 3 blocks
            tool_started c1
            tool_started c2
              → #4 run read {}
              → #5 run read {"a":1}
        "#]],
    );
    check(
        policy(),
        |w| {
            w.call(&[("read", "{}"), ("read", "{\"a\":1}"), ("shell", "{}")]);
            let second = w.tools()[1].0;
            w.finish(second, ToolStatus::Ok, "second");
            w.finish_first("first");
        },
        expect![[r#"
            assistant_message ToolUse 3 blocks
            tool_started c1
            tool_started c2
            tool_finished c1 Ok: first
            tool_finished c2 Ok: second
            tool_started c3
              → #8 run shell {}
        "#]],
    );
}

#[test]
fn writes_run_side_by_side_only_where_their_paths_cannot_meet() {
    let running = |calls: &[(&str, &str)]| {
        let mut world = World::start(policy());
        world.call(calls);
        world.tools().len()
    };
    let edit = |path: &str| format!("{{\"path\":\"{path}\"}}");
    let both = |one: &str, two: &str| running(&[("edit", &edit(one)), ("edit", &edit(two))]);
    assert_eq!(both("a/x", "a/y"), 2);
    assert_eq!(both("a/x", "./a//x"), 1);
    assert_eq!(both("a", "a/x"), 1);
    assert_eq!(both("a/x", "../w/a/x"), 1, "a path that climbs may lead anywhere");
    assert_eq!(both("/w/a", "b"), 1, "an absolute path may be the same place");
    assert_eq!(
        running(&[("edit", "{}"), ("edit", &edit("a"))]),
        1,
        "a write without a path may touch anything"
    );
    assert_eq!(running(&[("read", "{}"), ("edit", &edit("a"))]), 1);
    assert_eq!(running(&[("shell", "{}"), ("read", "{}")]), 1);
}

#[test]
fn a_call_that_cannot_be_run_gets_an_error_that_helps() {
    check(
        policy(),
        |w| w.call(&[("reed", "{}"), ("dance", "{}")]),
        expect![[r#"
            assistant_message ToolUse 2 blocks
            tool_finished c1 Rejected: There is no tool `reed`. Did you mean `read`?
            tool_finished c2 Rejected: There is no tool `dance`. There are: edit, read, shell.
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #7 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn a_failed_call_is_made_again_four_times_in_all() {
    check(
        policy(),
        |w| {
            w.fail(ErrorClass::Overloaded, None);
            w.tick();
            w.fail(ErrorClass::RateLimited, Some(7_000));
            w.tick();
            w.fail(ErrorClass::Cut, None);
            w.tick();
            w.fail(ErrorClass::Server, None);
        },
        expect![[r#"
            retry Failed { class: Overloaded, message: "its message", status: None, request_id: None } in 350 ms
            model_called turn 1 call 2 attempt 2
            retry Failed { class: RateLimited, message: "its message", status: None, request_id: None } in 7000 ms
            model_called turn 1 call 3 attempt 3
            retry Failed { class: Cut, message: "its message", status: None, request_id: None } in 1100 ms
            model_called turn 1 call 4 attempt 4
            retry Failed { class: Server, message: "its message", status: None, request_id: None } in 2100 ms
              → #9 timer
        "#]],
    );
}

#[test]
fn waits_are_jittered_under_a_ceiling_that_doubles() {
    let mut world = World::start(policy());
    world.entropy = u64::MAX;
    let mut waits = Vec::new();
    for _ in 0..3 {
        world.fail(ErrorClass::Transport, None);
        world.tick();
    }
    for record in world.session_log() {
        if let Entry::Model(ModelEntry::Retried(retry)) = &record.entry {
            waits.push(retry.delay_ms);
        }
    }
    assert!(waits.iter().zip([500, 1_000, 2_000]).all(|(wait, ceiling)| *wait <= ceiling), "{waits:?}");
}

#[test]
fn a_provider_that_asks_for_more_time_than_there_is_ends_the_run_at_once() {
    let mut policy = policy();
    policy.budget.wall_time_ms = Some(60_000);
    check(
        policy,
        |w| w.fail(ErrorClass::RateLimited, Some(3_600_000)),
        expect![[r#"
            paused: the provider limits the rate of requests (script:test): its message (asks to wait 1 h 0 min); resume when it answers again, or resume with --model and another provider's model
        "#]],
    );
}

#[test]
fn what_the_provider_refuses_is_not_tried_again() {
    check(
        policy(),
        |w| w.fail(ErrorClass::Unauthorized, None),
        expect![[r#"
            paused: the provider refuses the key (script:test): its message; set a valid key, then resume
        "#]],
    );
}

#[test]
fn an_empty_answer_is_asked_again_twice() {
    check(
        policy(),
        |w| {
            w.answer(vec![], StopReason::EndTurn);
            w.answer(vec![], StopReason::EndTurn);
            w.answer(vec![], StopReason::EndTurn);
        },
        expect![[r#"
            retry EmptyAnswer in 0 ms
            system_item AnswerAgain
            model_called turn 1 call 2 attempt 1
            retry EmptyAnswer in 0 ms
            system_item AnswerAgain
            model_called turn 1 call 3 attempt 1
            paused: the model gives no usable answer (script:test): the model gave an empty answer 3 times in a row; resume with a message that says what to do instead, or with --model
        "#]],
    );
}

#[test]
fn an_answer_that_is_still_cut_off_after_three_continuations_suspends_the_run_and_a_resume_continues_it() {
    let text = |t: &str| vec![provost_event::Block::Text(t.to_owned())];
    check(
        policy(),
        |w| {
            for piece in ["one ", "two ", "three ", "four"] {
                w.answer(text(piece), StopReason::OutputCap);
            }
            w.run_event(RunEvent::Resume {
                agent: None,
                by: "me".to_owned(),
                budget: Budget::default(),
                turns_max: None,
                text: None,
            });
            w.answer(text("five"), StopReason::EndTurn);
        },
        expect![[r#"
            assistant_message OutputCap 1 blocks
            system_item Continue
            model_called turn 1 call 2 attempt 1
            assistant_message OutputCap 1 blocks
            system_item Continue
            model_called turn 1 call 3 attempt 1
            assistant_message OutputCap 1 blocks
            system_item Continue
            model_called turn 1 call 4 attempt 1
            assistant_message OutputCap 1 blocks
            paused: the model's answer is cut off by the limit on its length (script:test): also after it was continued 3 times; a resume continues it; raise output_tokens_max, or resume with a message that asks for less
            resumed
            system_item Continue
            model_called turn 1 call 5 attempt 1
            assistant_message EndTurn 1 blocks
              → #17 check stop: "one two three fourfive"
        "#]],
    );
}

#[test]
fn an_answer_that_thinking_used_up_is_asked_for_again_with_twice_the_cap_as_far_as_the_model_allows() {
    let thought = || Block::Thinking { text: "Hm".into(), signature: None, wire: None, prefix: None };
    let mut limited = policy();
    limited.agent.model.output_tokens_limit = Some(3_000);
    let mut world = World::start(limited);
    let mut caps = vec![world.cap()];
    for _ in 0..2 {
        world.answer(vec![thought()], StopReason::OutputCap);
        caps.push(world.cap());
    }
    assert_eq!(caps, [1_000, 2_000, 3_000]);
    assert!(said(&world).contains("The limit is higher now"));
    world.answer(vec![thought()], StopReason::OutputCap);
    assert_eq!(world.cap(), 3_000);
    assert!(said(&world).contains("more briefly"));
    world.call(&[("read", "{}")]);
    world.finish_first("text");
    assert_eq!(world.cap(), 1_000);
}

/// What the agent was told last.
fn said(world: &World) -> String {
    let items = world.session_log().iter().rev();
    let mut said = items.filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::SystemItem(item)) => Some(item.body.to_string()),
        _ => None,
    });
    said.next().unwrap()
}

#[test]
fn a_refusal_is_an_outcome() {
    let text = vec![provost_event::Block::Text("I won't.".to_owned())];
    check(
        policy(),
        |w| w.answer(text, StopReason::Refusal),
        expect![[r#"
            assistant_message Refusal 1 blocks
            turn_ended
            paused: the model's provider reports a refusal (script:test): I won't.; resume with a message that says what to do instead, or with --model
        "#]],
    );
}

#[test]
fn the_same_call_with_the_same_result_is_noticed_and_then_suspended() {
    let mut policy = policy();
    policy.agent.limits.turns_max = 50;
    check(
        policy,
        |w| {
            for _ in 0..10 {
                w.call(&[("read", "{}")]);
                w.finish_first("same");
            }
        },
        expect![[r#"
            assistant_message ToolUse 1 blocks
            tool_started c1
            tool_finished c1 Ok: same
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c2
            tool_finished c2 Ok: same
            turn_ended
            model_called turn 3 call 3 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c3
            tool_finished c3 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 4 call 4 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c4
            tool_finished c4 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 5 call 5 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c5
            tool_finished c5 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 6 call 6 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c6
            tool_finished c6 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 7 call 7 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c7
            tool_finished c7 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 8 call 8 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c8
            tool_finished c8 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 9 call 9 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c9
            tool_finished c9 Ok: same
            system_item RepeatedCallNotice
            turn_ended
            model_called turn 10 call 10 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c10
            tool_finished c10 Ok: same
            turn_ended
            paused: repeated call: the same `read` call gave the same result 10 times in a row
        "#]],
    );
}

#[test]
fn twelve_turns_without_a_call_that_succeeds_suspend_and_a_resume_counts_from_the_start() {
    let mut policy = policy();
    policy.agent.limits.turns_max = 50;
    let mut world = World::start(policy);
    for n in 0..12 {
        assert_eq!(world.outcome(), None, "{n}");
        let told = world.session_log().iter().filter(
            |record| matches!(&record.entry, Entry::Conversation(ConversationEntry::SystemItem(item)) if item.item == ItemKind::FailedCallsNotice),
        );
        assert_eq!(told.count(), usize::from(n >= 5));
        world.call(&[("shell", &format!("{{\"n\":{n}}}"))]);
        let seq = world.tools()[0].0;
        world.finish(seq, ToolStatus::Error, "no");
    }
    let paused = world.outcome().expect("it is suspended");
    assert_eq!(
        paused.to_string(),
        "no tool call succeeded in 12 turns in a row: each was rejected, denied or failed"
    );
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
    world.call(&[("shell", "{}")]);
    let seq = world.tools()[0].0;
    world.finish(seq, ToolStatus::Error, "no");
    assert_eq!(world.outcome(), None, "one such turn after the resume");
}

#[test]
fn a_stop_hook_sends_the_agent_back_with_its_reason() {
    check(
        policy(),
        |w| {
            w.say("done");
            w.hook(block("two tests fail"), "e1");
            w.say("now it is. VERDICT: PASS");
            w.hook(StopHookVerdict::Allow, "e2");
        },
        expect![[r#"
            assistant_message EndTurn 1 blocks
            stop_verdicts Block("two tests fail")
            system_item StopBlocked
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message EndTurn 1 blocks
            stop_verdicts Allow
            turn_ended
            ended: completed (verdict PASS), verified
        "#]],
    );
}

#[test]
fn the_same_block_on_unchanged_evidence_ends_as_blocked() {
    let mut world = World::start(policy());
    world.say("done");
    world.hook(block("no"), "same");
    world.say("really done");
    world.hook(block("no"), "same");
    assert_eq!(world.outcome(), Some(Outcome::Blocked { reasons: vec!["tests: no".to_owned()] }));

    let mut world = World::start(policy());
    world.say("done");
    world.hook(block("no"), "same");
    world.call(&[("read", "{}")]);
    world.finish_first("x");
    world.say("really done");
    world.hook(block("no"), "same");
    assert_eq!(world.outcome(), None, "the log changed in between");
}

#[test]
fn eight_blocks_in_all_end_as_blocked() {
    let mut world = World::start(policy());
    for n in 0..8 {
        assert_eq!(world.outcome(), None);
        world.say("done");
        world.hook(block(&format!("reason {n}")), &format!("evidence {n}"));
    }
    assert!(matches!(world.outcome(), Some(Outcome::Blocked { .. })));
}

#[test]
fn a_halt_aborts_and_an_error_does_not_block() {
    let mut world = World::start(policy());
    world.say("done");
    world.hook(StopHookVerdict::Halt("stop it".to_owned()), "e");
    let aborted = Outcome::Aborted { hook: "tests".to_owned(), reason: "stop it".to_owned() };
    assert_eq!(world.outcome(), Some(aborted));

    let mut world = World::start(policy());
    world.say("done");
    world.hook(StopHookVerdict::Error("not found".to_owned()), "e");
    let checks = vec!["tests".to_owned()];
    let verification = provost_event::Verification::Ignored { checks };
    assert_eq!(world.outcome(), Some(Outcome::Completed { verdict: None, verification }));
}

#[test]
fn turns_used_up_are_a_rest_and_more_turns_go_on() {
    let mut policy = without_hooks();
    policy.agent.limits.turns_max = 1;
    let mut world = check(
        policy,
        |w| {
            w.call(&[("read", "{}")]);
            w.finish_first("x");
            w.say("that far");
        },
        expect![[r#"
            assistant_message ToolUse 1 blocks
            tool_started c1
            tool_finished c1 Ok: x
            turn_ended
            stop_requested: Turn budget of the agent used up: 1 of 1
            model_called turn 1 call 2 attempt 1 for FinalSummary
            final_summary_finished: that far
            paused: Turn budget of the agent used up: 1 of 1
        "#]],
    );
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".into(),
        budget: Budget::default(),
        turns_max: Some(2),
        text: None,
    });
    world.say("done");
    assert_eq!(world.outcome(), Some(Outcome::UNVERIFIED));
    assert!(matches!(
        world.run_log().last().expect("entries").entry,
        Entry::Lifecycle(LifecycleEntry::Ended(_))
    ));
}

#[test]
fn a_token_budget_lowers_the_cap_and_then_refuses_the_call() {
    let mut policy = without_hooks();
    policy.budget.tokens = Some(1_700);
    let mut world = World::start(policy);
    let mut caps = Vec::new();
    while world.outcome().is_none() {
        caps.push(world.cap());
        if world.calls_model_for(Purpose::FinalSummary) {
            world.say("so far");
        } else {
            world.call(&[("read", &format!("{{\"n\":{}}}", caps.len()))]);
            world.finish_first("x");
        }
    }
    // From the second call on enough is kept back for the final summary.
    expect!["[1000, 387, 304, 1000]"].assert_eq(&format!("{caps:?}"));
    expect!["Token budget too small to go on: 300 of 1,700 used; the next call needs about 479 tokens, 991 are kept for the final summary; 1,400 are left"].assert_eq(&world.outcome().expect("a rest").to_string());
}

#[test]
fn a_money_budget_binds_too() {
    let mut policy = without_hooks();
    policy.budget.money = Some(MicroDollars(1_500));
    let mut world = World::start(policy);
    while !world.calls_model_for(Purpose::FinalSummary) {
        world.call(&[("read", "{}")]);
        world.finish_first("x");
    }
    world.say("so far");
    let outcome = world.outcome().expect("a rest").to_string();
    expect!["Money budget too small to go on: $0.0002 of $0.0015 used; the next call needs about $0.0005, $0.0010 is kept for the final summary; $0.0013 is left"].assert_eq(&outcome);
}

#[test]
fn the_run_s_time_is_up_wherever_it_is() {
    let mut policy = policy();
    policy.budget.wall_time_ms = Some(10_000);
    check(
        policy,
        |w| {
            w.call(&[("shell", "{}")]);
            w.tick();
            let seq = w.tools()[0].0;
            assert!(w.aborted.iter().any(|id| id.1 == seq), "the tool is told to stop");
            w.finish(seq, ToolStatus::Cancelled, "stopped");
            w.say("that far");
        },
        expect![[r#"
            assistant_message ToolUse 1 blocks
            tool_started c1
            stop_requested: Time budget used up: 9.0 s of 10.0 s
            tool_finished c1 Cancelled: stopped
            turn_ended
            model_called turn 1 call 2 attempt 1 for FinalSummary
            final_summary_finished: that far
            paused: Time budget used up: 9.0 s of 10.0 s
        "#]],
    );
}

#[test]
fn time_between_a_rest_and_a_resume_does_not_count() {
    let mut policy = policy();
    policy.budget.wall_time_ms = Some(10_000);
    let mut world = World::start(policy);
    world.advance(4_000);
    world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
    world.fail(ErrorClass::Aborted, None);
    assert!(world.timers().is_empty(), "no deadline while it is suspended");
    world.advance(1_000_000);
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
    let (_, _, due) = world.timers()[0];
    // A tenth of all the time is kept for the final summary.
    assert_eq!(due.0, crate::time::BEGIN.0 + 4_000 + 1_000_000 + 6_000 - 1_000);
}

#[test]
fn pause_stops_what_is_in_flight_and_resume_goes_on() {
    check(
        policy(),
        |w| {
            w.call(&[("shell", "{}"), ("read", "{}")]);
            w.run_event(RunEvent::Pause { agent: None, by: "me".into() });
            let seq = w.tools()[0].0;
            w.finish(seq, ToolStatus::Cancelled, "stopped");
            w.run_event(RunEvent::Resume {
                agent: None,
                by: "me".into(),
                budget: Budget::default(),
                turns_max: None,
                text: None,
            });
        },
        expect![[r#"
            assistant_message ToolUse 2 blocks
            tool_started c1
            stop_requested: paused by me
            tool_finished c1 Cancelled: stopped
            tool_finished c2 Cancelled: Not run: the agent was stopped before this call's turn came.
            turn_ended
            paused: paused by me
            resumed
            model_called turn 2 call 2 attempt 1
              → #11 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn cancel_beats_pause_and_nothing_but_a_resume_follows_it() {
    let mut world = World::start(policy());
    world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
    world.run_event(RunEvent::Cancel { agent: None, by: "boss".into() });
    world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
    world.fail(ErrorClass::Aborted, None);
    assert_eq!(world.outcome(), Some(Outcome::Cancelled { by: "boss".into() }));
    let length = world.session_log().len();
    world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
    world.run_event(RunEvent::Cancel { agent: None, by: "me".into() });
    world.run_event(RunEvent::Say { agent: 0, text: "hello".into(), by: "me".into() });
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert_eq!(world.session_log().len(), length, "nothing after the end");
}

#[test]
fn after_a_crash_an_idempotent_tool_runs_again_and_another_counts_as_unknown() {
    check(
        policy(),
        |w| {
            w.call(&[("read", "{}")]);
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
            w.finish_first("again");
            w.call(&[("shell", "{}")]);
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
        },
        expect![[r#"
            assistant_message ToolUse 1 blocks
            tool_started c1
            resumed
            tool_started c1 again
            tool_finished c1 Ok: again
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c2
            resumed
            tool_finished c2 Unknown: Provost was interrupted while this ran. Whether and how far it took effect is unknown: look before you do it again.
            turn_ended
            model_called turn 3 call 3 attempt 1
              → #15 call model (turn 3, cap 1000)
        "#]],
    );
}

#[test]
fn a_crash_during_a_model_call_makes_it_again_and_three_pause() {
    check(
        policy(),
        |w| {
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
            w.run_event(RunEvent::Recover { fresh: Vec::new() });
        },
        expect![[r#"
            resumed
            retry Interrupted in 0 ms
            model_called turn 1 call 2 attempt 1
            resumed
            retry Interrupted in 0 ms
            model_called turn 1 call 3 attempt 1
            resumed
            stop_requested: the same turn was interrupted 3 times
            retry Interrupted in 0 ms
            paused: the same turn was interrupted 3 times
        "#]],
    );
}

#[test]
fn a_wish_to_stop_survives_a_crash() {
    let mut world = World::start(policy());
    world.call(&[("shell", "{}")]);
    world.run_event(RunEvent::Cancel { agent: None, by: "me".into() });
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert_eq!(world.outcome(), Some(Outcome::Cancelled { by: "me".into() }));
}

#[test]
fn what_a_person_says_is_heard_before_the_agent_may_stop() {
    check(
        without_hooks(),
        |w| {
            w.run_event(RunEvent::Say { agent: 0, text: "one more thing".into(), by: "me".into() });
            w.say("done");
        },
        expect![[r#"
            user_message
            assistant_message EndTurn 1 blocks
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #6 call model (turn 2, cap 1000)
        "#]],
    );
}

#[test]
fn a_stepped_session_waits_to_be_asked_for_each_turn() {
    let mut policy = without_hooks();
    policy.agent.step_mode = provost_event::StepMode::Stepped;
    check(
        policy,
        |w| {
            assert_eq!(w.thinking(), None);
            w.session_event(SessionEvent::Proceed { turn: 2 });
            assert_eq!(w.thinking(), None, "not that turn");
            w.session_event(SessionEvent::Proceed { turn: 1 });
            w.session_event(SessionEvent::Proceed { turn: 1 });
            w.call(&[("read", "{}")]);
            w.finish_first("x");
        },
        expect![[r#"
            model_called turn 1 call 1 attempt 1
            assistant_message ToolUse 1 blocks
            tool_started c1
            tool_finished c1 Ok: x
            turn_ended
        "#]],
    );
}

fn picture(name: &str) -> Image {
    Image { kind: ImageKind::Png, blob: BlobId(name.into()), bytes: 1_000 }
}

fn last_summary(world: &World) -> String {
    let summary = world.session_log().iter().rev().find_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::Compacted(compacted)) => Some(compacted.summary.clone()),
        _ => None,
    });
    summary.expect("it was compacted")
}

#[test]
fn a_summary_counts_the_pictures_that_are_left_out_and_those_left_out_before() {
    let mut world = World::start_with(vec![picture("a"), picture("b")], without_hooks());
    world.usage = Usage::default();
    let look = |world: &mut World, name: &str| {
        world.call(&[("read", &format!("{{\"of\":\"{name}\"}}"))]);
        let seq = world.tools()[0].0;
        world.finish_with(seq, ToolStatus::Ok, &"what there is ".repeat(200), vec![picture(name)]);
    };
    look(&mut world, "c");
    look(&mut world, "d");
    world.fail(ErrorClass::ContextTooLong, None);
    // The newest image fits: it stays.
    let first = last_summary(&world);
    assert!(first.contains("\nPictures left out with it: 3. Those in files can be read again.\n"), "{first}");
    look(&mut world, "e");
    world.fail(ErrorClass::ContextTooLong, None);
    let second = last_summary(&world);
    assert!(second.contains("\nPictures left out with it: 4."), "{second}");
}

#[test]
fn a_summary_without_pictures_left_out_does_not_speak_of_any() {
    let mut world = World::start(without_hooks());
    world.call(&[("read", "{}")]);
    world.finish_first(&"x".repeat(3_000));
    world.fail(ErrorClass::ContextTooLong, None);
    let summary = last_summary(&world);
    assert!(!summary.contains("ictures"), "{summary}");
}

#[test]
fn a_conversation_that_is_too_long_is_shortened_once() {
    let long = "x".repeat(3_000);
    let mut world = World::start(without_hooks());
    for n in 0..4 {
        world.call(&[("read", &format!("{{\"n\":{n}}}"))]);
        world.finish_first(&long);
    }
    world.news();
    world.fail(ErrorClass::ContextTooLong, None);
    expect![[r#"
        retry Compacted in 0 ms
        compacted (emergency) through 17 (1088 → 709 tokens)
        model_called turn 5 call 6 attempt 1
          → #25 call model (turn 5, cap 1000)
    "#]]
    .assert_eq(&world.news());
    world.fail(ErrorClass::ContextTooLong, None);
    expect![[r#"
        paused: request refused (script:test): its message (also after leaving out everything that can be left out); resume with --model and another model
    "#]]
    .assert_eq(&world.news());
}

#[test]
fn the_last_turn_is_announced_once_and_again_when_there_are_more() {
    let mut policy = without_hooks();
    policy.agent.limits.turns_max = 2;
    let mut world = World::start(policy);
    world.call(&[("read", "{}")]);
    world.finish_first("x");
    world.fail(ErrorClass::Cut, None);
    world.tick();
    world.call(&[("read", "{}")]);
    world.finish_first("y");
    world.say("that far");
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".into(),
        budget: Budget::default(),
        turns_max: Some(4),
        text: None,
    });
    world.call(&[("read", "{}")]);
    world.finish_first("z");
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message ToolUse 1 blocks
        tool_started c1
        tool_finished c1 Ok: x
        turn_ended
        system_item LastTurn
        model_called turn 2 call 2 attempt 1
        retry Failed { class: Cut, message: "its message", status: None, request_id: None } in 350 ms
        model_called turn 2 call 3 attempt 2
        assistant_message ToolUse 1 blocks
        tool_started c2
        tool_finished c2 Ok: y
        turn_ended
        stop_requested: Turn budget of the agent used up: 2 of 2
        model_called turn 2 call 4 attempt 1 for FinalSummary
        final_summary_finished: that far
        paused: Turn budget of the agent used up: 2 of 2
        resumed
        system_item LimitNotice { dimension: Turns, percent: 50 }
        model_called turn 3 call 5 attempt 1
        assistant_message ToolUse 1 blocks
        tool_started c3
        tool_finished c3 Ok: z
        turn_ended
        system_item LastTurn
        model_called turn 4 call 6 attempt 1
          → #27 call model (turn 4, cap 1000)
    "#]]
    .assert_eq(&world.news());
}
