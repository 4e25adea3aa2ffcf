//! How conversations are kept within the model's window. The room of most tests is 9,000 tokens.

use expect_test::expect;
use provost_engine::{Effect, RunEvent, SessionEvent};
use provost_event::{
    BlobId, Block, Budget, Compacted, CompactionKind, ConversationEntry, Entry, ErrorClass,
    HookDecision as Say, HookPoint as At, Image, ImageKind, Json, ModelEntry, Outcome, PauseReason, Purpose,
    RunPolicy, StopReason, ToolEntry, ToolStatus, Usage,
};

use crate::view::View;
use crate::world::{World, guarded, without_hooks};

type Does = fn(&mut World);

/// Words of about this number of tokens.
fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

fn start(mut policy: RunPolicy) -> World {
    policy.agent.limits.turns_max = 1_000;
    let mut world = World::start(policy);
    world.usage = Usage::default();
    world
}

/// A turn with a read of something new.
fn read(world: &mut World, tokens: usize) {
    let of = world.session_log().len();
    world.call(&[("read", &format!("{{\"of\":{of}}}"))]);
    world.finish_first(&words(tokens));
}

/// A turn with a text of the agent, which can't be trimmed.
fn tell(world: &mut World, tokens: usize) {
    let of = world.session_log().len();
    let call = provost_event::ToolCall {
        id: format!("t{of}").as_str().into(),
        name: "read".to_owned(),
        input: Json::parse(format!("{{\"of\":{of}}}")).expect("JSON"),
        malformed: None,
    };
    world.answer(vec![Block::Text(words(tokens)), Block::ToolCall(call)], StopReason::ToolUse);
    world.finish_first("ok");
}

fn compactions(world: &World) -> Vec<Compacted> {
    let compacted = |entry: &Entry| match entry {
        Entry::Conversation(ConversationEntry::Compacted(compacted)) => Some(compacted.clone()),
        _ => None,
    };
    world.session_log().iter().filter_map(|record| compacted(&record.entry)).collect()
}

fn kinds(world: &World) -> Vec<CompactionKind> {
    compactions(world).into_iter().map(|compacted| compacted.how).collect()
}

fn last(world: &World) -> Compacted {
    compactions(world).last().expect("it was compacted").clone()
}

/// A world that waits for a summary.
fn summing_up(policy: RunPolicy) -> World {
    let mut world = start(policy);
    while !world.calls_model_for(Purpose::Summary) {
        tell(&mut world, 400);
    }
    world
}

fn exhausted(world: &World) -> String {
    match world.outcome() {
        Some(Outcome::Paused { why: PauseReason::Model(trouble) })
            if trouble.class == ErrorClass::ContextExhausted =>
        {
            trouble.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn under_seventy_percent_nothing_is_left_out() {
    let mut world = start(without_hooks());
    while world.request_tokens < 6_000 {
        read(&mut world, 200);
        assert_eq!(kinds(&world), []);
    }
}

#[test]
fn over_seventy_percent_old_results_become_lines_and_the_newest_quarter_stays() {
    let mut world = start(without_hooks());
    let mut finished = Vec::new();
    while kinds(&world).is_empty() {
        read(&mut world, 500);
        let found =
            world.session_log().iter().filter(|r| matches!(r.entry, Entry::Tool(ToolEntry::Finished(_))));
        finished = found.map(|record| record.seq).collect::<Vec<_>>();
    }
    let trim = last(&world);
    assert_eq!(trim.how, CompactionKind::Trim);
    assert!(trim.tokens_before > 6_300 && trim.tokens_before < 7_000, "{}", trim.tokens_before);
    assert!(trim.through.is_start() && trim.summary.is_empty(), "nothing is summed up");
    let kept = finished.iter().filter(|seq| **seq > trim.lines_through).count();
    assert_eq!(kept, 4, "four results of 500 tokens are a quarter of the room");
    assert_eq!(world.request_tokens, trim.tokens_after);
}

#[test]
fn a_read_that_was_made_again_is_a_line_even_among_the_newest() {
    let mut world = start(without_hooks());
    let again = |world: &mut World, output: &str| {
        world.call(&[("read", "{\"path\":\"a\"}")]);
        world.finish_first(output);
        world
            .session_log()
            .iter()
            .rfind(|r| matches!(r.entry, Entry::Tool(ToolEntry::Finished(_))))
            .expect("it")
            .seq
    };
    tell(&mut world, 4_500);
    let first = again(&mut world, &words(1_000));
    let _ = again(&mut world, &words(1_001));
    let failed = {
        world.call(&[("read", "{\"path\":\"a\"}")]);
        let seq = world.tools()[0].0;
        world.finish(seq, ToolStatus::Error, "gone");
        world.session_log().last().expect("an entry").seq
    };
    tell(&mut world, 100);
    let trim = last(&world);
    assert_eq!(
        (trim.how, trim.superseded, trim.lines_through.is_start()),
        (CompactionKind::Trim, vec![first], true)
    );
    assert!(failed > first, "a failed read supersedes nothing");
}

#[test]
fn old_pictures_are_left_out_and_the_newest_stay() {
    let mut policy = without_hooks();
    policy.agent.model.images = true;
    let mut world = start(policy);
    let mut seen = Vec::new();
    while kinds(&world).is_empty() {
        let of = world.session_log().len();
        world.call(&[("read", &format!("{{\"of\":{of}}}"))]);
        let picture = Image { kind: ImageKind::Png, blob: BlobId("p".into()), bytes: 1_000 };
        let seq = world.tools()[0].0;
        world.finish_with(seq, ToolStatus::Ok, "a picture", vec![picture]);
        seen.push(
            world
                .session_log()
                .iter()
                .rfind(|r| matches!(r.entry, Entry::Tool(ToolEntry::Finished(_))))
                .expect("it")
                .seq,
        );
    }
    let trim = last(&world);
    assert_eq!(trim.how, CompactionKind::Trim);
    assert_eq!(
        seen.iter().filter(|seq| **seq > trim.lines_through).count(),
        1,
        "one of 1,600 tokens fits a quarter"
    );
}

#[test]
fn a_trim_that_frees_less_than_a_tenth_of_the_room_isn_t_made() {
    let mut world = start(without_hooks());
    read(&mut world, 900);
    while world.request_tokens < 7_000 {
        tell(&mut world, 400);
    }
    assert_eq!(kinds(&world), []);
}

#[test]
fn over_eighty_five_percent_the_model_sums_up_and_what_matters_stays_whatever_it_says() {
    let mut policy = without_hooks();
    policy.agent.limits.turns_max = 1_000;
    let mut world = World::start(policy);
    world.usage = Usage::default();
    world.run_event(RunEvent::Say { agent: 0, text: "keep it small".into(), by: "a person".into() });
    world.call(&[("edit", "{\"path\":\"src/a.rs\"}")]);
    let seq = world.tools()[0].0;
    world.finish_remembering(seq, "{\"open\":[\"tests\"]}");
    while !world.calls_model_for(Purpose::Summary) {
        tell(&mut world, 400);
    }
    assert!(world.request_tokens > 7_650 && world.request_tokens < 8_550, "{}", world.request_tokens);
    let newest = world.session_log().last().expect("an entry").seq;
    world.say("I have decided on X. The tests are open.");
    let summary = last(&world);
    assert_eq!(summary.how, CompactionKind::Summary);
    for kept in ["the goal", "keep it small", "{\"open\":[\"tests\"]}", "src/a.rs", "I have decided on X."] {
        assert!(summary.summary.contains(kept), "{kept}: {}", summary.summary);
    }
    assert!(summary.tokens_after < 9_000 * 40 / 100, "{}", summary.tokens_after);
    let turns_kept = world.session_log().iter().filter(|record| {
        record.seq > summary.through
            && record.seq < newest
            && matches!(record.entry, Entry::Conversation(ConversationEntry::AssistantMessage(_)))
    });
    assert_eq!(turns_kept.count(), 5, "the newest turns of 400 tokens that fit a quarter, and the last one");
    assert!(world.calls_model_for(Purpose::Turn), "and it goes on");
}

#[test]
fn a_summary_s_own_words_outlive_the_rule_that_comes_after_it() {
    let mut world = summing_up(without_hooks());
    world.say("\nWhat has happened, in your own words:\nI have decided on X.");
    assert_eq!(kinds(&world), [CompactionKind::Summary]);
    for _ in 0..2 {
        tell(&mut world, 400);
        world.fail(ErrorClass::ContextTooLong, None);
        let emergency = last(&world);
        assert_eq!(emergency.how, CompactionKind::Emergency);
        assert!(
            emergency.summary.ends_with("in your own words:\nI have decided on X."),
            "{}",
            emergency.summary
        );
        tell(&mut world, 400);
    }
}

#[test]
fn a_summary_that_fails_in_whatever_way_is_done_without() {
    let text = |text: String| vec![Block::Text(text)];
    let rows: [(&str, Does); 3] = [
        ("the request was refused", |w| w.fail(ErrorClass::InvalidRequest, None)),
        ("it was too long", |w| w.fail(ErrorClass::ContextTooLong, None)),
        ("it called a tool", |w| w.call(&[("read", "{}")])),
    ];
    let answers = [
        ("it was empty", text(" \n".to_owned()), StopReason::EndTurn),
        ("it was cut off", text("So far".to_owned()), StopReason::OutputCap),
        ("the model declined", text("No.".to_owned()), StopReason::Refusal),
        ("it was as long as what it stood for", text(words(9_000)), StopReason::EndTurn),
    ];
    let check = |what: &str, world: &World| {
        assert_eq!(kinds(world), [CompactionKind::Emergency], "{what}");
        assert!(world.calls_model_for(Purpose::Turn), "{what}: it goes on");
        let retries = world
            .session_log()
            .iter()
            .filter(|r| matches!(r.entry, Entry::Model(ModelEntry::Retried(_))))
            .count();
        assert!(retries > 0, "{what}: the log says so");
    };
    for (what, fail) in rows {
        let mut world = summing_up(without_hooks());
        fail(&mut world);
        check(what, &world);
    }
    for (what, content, stop) in answers {
        let mut world = summing_up(without_hooks());
        world.answer(content, stop);
        check(what, &world);
    }
}

#[test]
fn a_summary_that_can_t_be_paid_for_is_done_without() {
    let mut policy = without_hooks();
    // The request, the final summary after it, and a useful answer for each: two tokens short of that.
    policy.budget.tokens = Some(2 * summing_up(without_hooks()).request_tokens + 512 + 2 * 256 - 2);
    let mut world = start(policy);
    while kinds(&world).is_empty() {
        tell(&mut world, 400);
    }
    assert_eq!(kinds(&world), [CompactionKind::Emergency]);
    assert!(world.calls_model_for(Purpose::Turn));
    let summaries = world.session_log().iter().filter(
        |record| matches!(&record.entry, Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::Summary),
    );
    assert_eq!(summaries.count(), 0);
}

#[test]
fn over_ninety_five_percent_the_rule_shortens_it_at_once() {
    let mut world = start(without_hooks());
    while world.request_tokens < 5_500 {
        tell(&mut world, 400);
    }
    read(&mut world, 4_000);
    assert_eq!(kinds(&world), [CompactionKind::Emergency]);
    let emergency = last(&world);
    assert!(emergency.tokens_before > 8_550, "{}", emergency.tokens_before);
    assert!(
        emergency.cut_through.is_start() && emergency.lines_through.is_start(),
        "the newest result fits as it is"
    );
    assert!(emergency.tokens_after < 5_500, "{}", emergency.tokens_after);
}

#[test]
fn the_newest_results_are_cut_or_become_lines_before_they_are_left_out() {
    for (tokens, calls, cut, lines) in
        [(2_900, 3, true, false), (500, 20, true, false), (300, 60, false, true)]
    {
        let mut world = start(without_hooks());
        tell(&mut world, 400);
        let inputs = (0..calls).map(|n| format!("{{\"of\":{n}}}")).collect::<Vec<_>>();
        world.call(&inputs.iter().map(|input| ("read", input.as_str())).collect::<Vec<_>>());
        while !world.tools().is_empty() {
            world.finish_first(&words(tokens));
        }
        let emergency = last(&world);
        assert_eq!(emergency.how, CompactionKind::Emergency);
        let found = (!emergency.cut_through.is_start(), !emergency.lines_through.is_start());
        assert_eq!(found, (cut, lines), "{calls} results of {tokens} tokens");
    }
}

#[test]
fn words_that_fill_the_window_are_kept_as_far_as_they_fit() {
    let mut world = start(without_hooks());
    tell(&mut world, 100);
    world.run_event(RunEvent::Say {
        agent: 0,
        text: format!("begin {}", words(20_000)),
        by: "a person".into(),
    });
    tell(&mut world, 100);
    let emergency = last(&world);
    assert!(emergency.summary.contains("Said since then:\nbegin word"), "{}", emergency.summary);
    assert!(world.calls_model_for(Purpose::Turn));
}

#[test]
fn a_request_refused_as_too_long_is_shortened_and_made_once_more_and_then_it_fails() {
    // Whatever the estimate, and though something was left out for the same answer before.
    for trimmed in [false, true] {
        let mut world = start(without_hooks());
        while trimmed != kinds(&world).contains(&CompactionKind::Trim) || world.request_tokens < 2_000 {
            read(&mut world, 500);
        }
        let before = kinds(&world).len();
        world.fail(ErrorClass::ContextTooLong, None);
        assert_eq!(kinds(&world)[before..], [CompactionKind::Emergency]);
        let emergency = last(&world);
        assert!(emergency.tokens_after * 100 <= emergency.tokens_before * 95);
        assert!(world.calls_model_for(Purpose::Turn));
        world.fail(ErrorClass::ContextTooLong, None);
        let outcome = world.outcome().expect("it ended");
        assert!(
            matches!(&outcome, Outcome::Paused { why: PauseReason::Model(trouble) } if trouble.class == ErrorClass::ContextTooLong && trouble.message.starts_with("its message")),
            "{outcome}"
        );
    }
}

#[test]
fn a_summary_refused_as_too_long_leaves_the_turn_its_own_second_chance() {
    let mut world = summing_up(without_hooks());
    world.fail(ErrorClass::ContextTooLong, None);
    assert!(world.calls_model_for(Purpose::Turn));
    world.fail(ErrorClass::ContextTooLong, None);
    assert!(world.calls_model_for(Purpose::Turn));
    assert_eq!(kinds(&world), [CompactionKind::Emergency, CompactionKind::Emergency]);
    world.fail(ErrorClass::ContextTooLong, None);
    assert!(world.outcome().is_some());
}

#[test]
fn a_result_whose_request_was_refused_is_cut_and_not_left_out() {
    let mut world = start(without_hooks());
    tell(&mut world, 500);
    read(&mut world, 3_000);
    let result = world
        .session_log()
        .iter()
        .rfind(|r| matches!(r.entry, Entry::Tool(ToolEntry::Finished(_))))
        .expect("it")
        .seq;
    world.fail(ErrorClass::ContextTooLong, None);
    let emergency = last(&world);
    assert!(emergency.through < result && emergency.cut_through > result, "{emergency:?}");
}

#[test]
fn each_answer_has_its_own_second_chance() {
    let mut world = start(without_hooks());
    tell(&mut world, 1_000);
    for _ in 0..3 {
        tell(&mut world, 1_000);
        world.fail(ErrorClass::ContextTooLong, None);
        assert_eq!(world.outcome(), None);
    }
}

#[test]
fn one_refusal_ends_no_conversation_however_short() {
    for turns in 0..4 {
        let mut world = start(without_hooks());
        (0..turns).for_each(|_| read(&mut world, 10));
        world.fail(ErrorClass::ContextTooLong, None);
        assert!(world.calls_model_for(Purpose::Turn), "{turns}: {:?}", world.outcome());
        // The size that was accepted counts, also if the window is unknown.
        read(&mut world, 10);
        read(&mut world, 10);
        world.say("done");
        assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{turns}: {:?}", world.outcome());
    }
}

#[test]
fn a_first_request_that_is_too_long_twice_suspends_the_run_with_what_is_wrong() {
    let mut world = start(without_hooks());
    world.fail(ErrorClass::ContextTooLong, None);
    world.fail(ErrorClass::ContextTooLong, None);
    let Some(Outcome::Paused { why: PauseReason::Model(trouble) }) = world.outcome() else {
        panic!("{:?}", world.outcome())
    };
    let provost_event::ModelTrouble { class, message, .. } = *trouble;
    assert_eq!(class, ErrorClass::ContextTooLong, "it failed for the provider's reason");
    assert_eq!(message, "its message (also after leaving out everything that can be left out)");
}

#[test]
fn a_provider_that_refuses_what_it_counted_as_short_is_believed_no_more() {
    let mut world = start(without_hooks());
    world.usage = Usage { input_tokens: 900, ..Usage::default() };
    (0..5).for_each(|_| read(&mut world, 1_500));
    world.fail(ErrorClass::ContextTooLong, None);
    for _ in 0..20 {
        read(&mut world, 1_500);
        assert_eq!(world.outcome(), None);
    }
    let shortened = world
        .session_log()
        .iter()
        .filter(|r| matches!(r.entry, Entry::Conversation(ConversationEntry::Compacted(_))))
        .count();
    assert!(shortened > 3, "by its own estimate: {shortened}");
}

#[test]
fn an_unknown_window_is_learnt_from_the_first_refusal() {
    let mut policy = without_hooks();
    policy.agent.model.window_tokens = None;
    let mut world = start(policy);
    read(&mut world, 30_000);
    world.fail(ErrorClass::ContextTooLong, None);
    let first = last(&world);
    assert!(first.tokens_after * 100 <= first.tokens_before * 25, "{first:?}");
    for _ in 0..40 {
        read(&mut world, 4_000);
        assert_eq!(world.outcome(), None);
    }
    let asked = world
        .session_log()
        .iter()
        .filter(|r| matches!(r.entry, Entry::Conversation(ConversationEntry::Compacted(_))))
        .count();
    assert!(asked > 2, "what was refused once isn't sent again: {asked}");
}

#[test]
fn a_window_smaller_than_what_is_always_sent_ends_the_run_before_a_call() {
    for window in [0, 1, 100, 1_000] {
        let mut policy = without_hooks();
        policy.agent.system_prompt = words(2_000);
        policy.agent.model.window_tokens = Some(window);
        let world = start(policy);
        assert!(exhausted(&world).contains("too small"), "{window}");
    }
}

#[test]
fn an_answer_gets_at_most_half_of_the_window() {
    let mut policy = without_hooks();
    policy.agent.model.window_tokens = Some(4_000);
    policy.agent.model.output_tokens_max = 8_192;
    let world = start(policy);
    assert_eq!(world.cap(), 2_000);
}

#[test]
fn without_a_known_window_only_the_provider_says_when_it_is_too_long() {
    let mut policy = without_hooks();
    policy.agent.model.window_tokens = None;
    let mut world = start(policy);
    for _ in 0..20 {
        tell(&mut world, 4_000);
    }
    assert_eq!(kinds(&world), []);
    world.run_event(RunEvent::Say { agent: 0, text: words(50_000), by: "a person".into() });
    tell(&mut world, 10);
    let before = world.request_tokens;
    world.fail(ErrorClass::ContextTooLong, None);
    assert_eq!(kinds(&world), [CompactionKind::Emergency]);
    assert!(world.request_tokens < before / 2, "{before} → {}", world.request_tokens);
}

#[test]
fn reports_that_make_no_sense_don_t_end_a_run_or_let_it_grow() {
    let reports = [(0, 0), (1, 0), (1, 1_000_000_000_000), (u64::MAX, u64::MAX), (1_000_000_000, 0)];
    for (input_tokens, output_tokens) in reports {
        let mut policy = without_hooks();
        policy.agent.limits.stuck_turns = 0;
        let mut world = start(policy);
        world.usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let mut most = 0;
        for _ in 0..200 {
            if world.calls_model_for(Purpose::Summary) {
                world.say("as far as that");
            } else {
                tell(&mut world, 300);
            }
            assert_eq!(world.outcome(), None, "{input_tokens}");
            most = most.max(View::of(&world).tokens());
        }
        assert!(most < 3 * 9_000, "{input_tokens}: {most}");
        assert!(!kinds(&world).is_empty());
    }
}

#[test]
fn three_compactions_in_a_row_that_free_next_to_nothing_end_the_run() {
    let mut policy = without_hooks();
    policy.agent.system_prompt = words(8_250);
    let mut world = start(policy);
    for _ in 0..20 {
        if world.outcome().is_some() {
            break;
        }
        tell(&mut world, 60);
    }
    let message = exhausted(&world);
    assert!(message.contains("frees next to nothing") || message.contains("takes all of it"), "{message}");
    expect!["[Emergency, Emergency, Emergency]"].assert_eq(&format!("{:?}", kinds(&world)));
}

#[test]
fn a_hook_that_refuses_at_eighty_five_percent_is_asked_once_more_when_it_can_t_wait() {
    let mut world = start(guarded(&[At::PreCompact]));
    while world.hook_calls().is_empty() {
        tell(&mut world, 400);
    }
    world.answer_hook(Say::Deny("not now".into()));
    assert!(world.calls_model_for(Purpose::Turn), "it goes on as it is");
    while world.hook_calls().is_empty() {
        tell(&mut world, 150);
        assert_eq!(kinds(&world), []);
    }
    world.answer_hook(Say::Continue);
    assert_eq!(kinds(&world), [CompactionKind::Emergency]);
}

#[test]
fn a_hook_that_refuses_what_can_t_wait_ends_the_run_with_its_name() {
    let mut world = start(guarded(&[At::PreCompact]));
    while world.hook_calls().is_empty() {
        tell(&mut world, 400);
    }
    world.answer_hook(Say::Deny("not now".into()));
    while world.hook_calls().is_empty() {
        tell(&mut world, 150);
    }
    world.answer_hook(Say::Deny("never".into()));
    expect!["the window of 10000 tokens is too small for this conversation: hook guard keeps it from being shortened: never"]
        .assert_eq(&exhausted(&world));
}

#[test]
fn a_hook_asked_before_a_compaction_may_pause_abort_or_fail() {
    let asked = || {
        let mut world = start(guarded(&[At::PreCompact]));
        while world.hook_calls().is_empty() {
            tell(&mut world, 400);
        }
        world
    };
    let mut world = asked();
    world.answer_hook(Say::Pause("wait".into()));
    assert!(matches!(world.outcome(), Some(Outcome::Paused { .. })));
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
    assert_eq!(world.hook_calls().len(), 1, "it is asked again");
    let mut world = asked();
    world.answer_hook(Say::Abort("no more".into()));
    assert!(matches!(world.outcome(), Some(Outcome::Aborted { .. })));
    let mut world = asked();
    world.answer_hook(Say::Failed("it crashed".into()));
    assert!(world.calls_model_for(Purpose::Turn), "a hook that fails closed refuses");
}

#[test]
fn a_hook_s_long_reminders_after_each_compaction_don_t_keep_it_from_going_on() {
    let mut world = start(guarded(&[At::PostCompact]));
    while world.hook_calls().is_empty() {
        if world.calls_model_for(Purpose::Summary) {
            world.say("so far");
        } else {
            tell(&mut world, 400);
        }
    }
    for _ in 0..3 {
        let Some((seq, _)) = world.hook_calls().first().cloned() else { break };
        let mut said = crate::world::report(At::PostCompact, Say::Continue);
        said.reminders = vec![words(20_000)];
        world.session_event(SessionEvent::HooksAnswered { seq, reports: vec![said], scripts: None });
    }
    assert!(world.calls_model_for(Purpose::Turn));
}

#[test]
fn what_is_said_while_a_summary_is_made_is_heard_and_fits() {
    for tokens in [10, 800, 20_000] {
        let mut world = summing_up(without_hooks());
        let text = format!("listen: {}", words(tokens));
        world.run_event(RunEvent::Say { agent: 0, text, by: "a person".into() });
        let said = world.session_log().last().expect("an entry").seq;
        world.say("so far");
        assert!(world.calls_model_for(Purpose::Turn), "{tokens}");
        let compacted = last(&world);
        assert!(said > compacted.through || compacted.summary.contains("listen: word"), "{tokens}");
    }
}

#[test]
fn a_stop_while_a_summary_is_made_ends_it_and_a_resume_asks_for_it_anew() {
    let mut world = summing_up(without_hooks());
    world.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
    assert_eq!(world.aborted.len(), 1);
    world.fail(ErrorClass::Aborted, None);
    assert!(matches!(world.outcome(), Some(Outcome::Paused { .. })));
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
    assert!(world.calls_model_for(Purpose::Summary));
    world.run_event(RunEvent::Cancel { agent: None, by: "a person".into() });
    // The answer came all the same.
    world.say("so far");
    assert_eq!(world.outcome(), Some(Outcome::Cancelled { by: "a person".into() }));
}

#[test]
fn after_a_crash_while_a_summary_is_made_it_is_asked_for_again() {
    let mut world = summing_up(without_hooks());
    world.read_back();
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert!(world.calls_model_for(Purpose::Summary));
    world.say("so far");
    assert_eq!(kinds(&world), [CompactionKind::Summary]);
}

#[test]
fn a_stepped_session_is_shortened_within_the_turn_it_was_told_to_take() {
    let mut policy = without_hooks();
    policy.agent.step_mode = provost_event::StepMode::Stepped;
    let mut world = start(policy);
    let mut turn = 0;
    while kinds(&world).is_empty() {
        turn += 1;
        world.session_event(SessionEvent::Proceed { turn });
        if world.calls_model_for(Purpose::Summary) {
            world.say("so far");
        }
        tell(&mut world, 400);
    }
    assert_eq!(kinds(&world), [CompactionKind::Summary]);
    assert_eq!(world.thinking(), None, "the next turn waits");
}

#[test]
fn the_outputs_of_one_answer_s_calls_share_half_of_the_window() {
    let shares = |calls: usize, window: Option<u64>, spec: usize| {
        let mut policy = without_hooks();
        policy.agent.model.window_tokens = window;
        policy.agent.tools.iter_mut().for_each(|tool| tool.output_bytes_max = spec);
        let mut world = start(policy);
        world.call(&vec![("read", "{}"); calls]);
        let run = |effect: &Effect| match effect {
            Effect::RunTool(run) => Some(run.output_bytes_max),
            _ => None,
        };
        let shares = world.open.values().filter_map(run).collect::<Vec<_>>();
        assert_eq!(shares.len(), calls);
        assert!(shares.iter().all(|share| *share == shares[0]));
        shares[0]
    };
    let rows = [
        (1, Some(10_000), 32_768, 13_500),
        (3, Some(10_000), 32_768, 4_500),
        (20, Some(10_000), 32_768, 1_000),
        (1, Some(10_000), 500, 500),
        (1, Some(200_000), 32_768, 32_768),
        (9, None, 32_768, 32_768),
    ];
    for (calls, window, spec, share) in rows {
        assert_eq!(shares(calls, window, spec), share, "{calls} calls, {window:?}, {spec} bytes");
    }
}
