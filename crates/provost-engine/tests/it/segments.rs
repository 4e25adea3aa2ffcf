//! No end closes a log: a request begins another segment after each, and nothing else does.

use provost_engine::{Actor, Decision, Now, RunEvent, SessionEvent};
use provost_event::{
    Block, Budget, BudgetEntry, ConversationEntry, Elapsed, Entry, ErrorClass, HookDecision, HookPoint,
    ItemKind, LifecycleEntry, Outcome, ResumeCause, RunPolicy, Timestamp,
};

use crate::world::{ROOT, RUN, World, guard, report, without_hooks};

fn resume(world: &mut World, text: Option<&str>) {
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "ann".into(),
        budget: Budget::default(),
        turns_max: None,
        text: text.map(str::to_owned),
    });
}

/// A run with this outcome.
fn ended(outcome: &str) -> World {
    let mut world = World::start(without_hooks());
    match outcome {
        "completed" => world.say("done"),
        "failed" => world.fail(ErrorClass::Program, None),
        "cancelled" => {
            world.run_event(RunEvent::Cancel { agent: None, by: "boss".into() });
            world.fail(ErrorClass::Aborted, None);
        }
        other => panic!("{other}"),
    }
    let came = world.outcome().expect("it has ended");
    assert_eq!(came.word(), outcome);
    world
}

fn said_since(world: &World, length: usize) -> Vec<String> {
    let words = world.session_log().iter().skip(length).map(|record| match &record.entry {
        Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => format!("resumed {:?}", resumed.cause),
        Entry::Conversation(ConversationEntry::UserMessage(message)) => match message.content.as_slice() {
            [Block::Text(text)] => format!("{}: {text}", message.by),
            _ => "?".to_owned(),
        },
        Entry::Conversation(ConversationEntry::SystemItem(item)) => format!("{:?}", item.item),
        entry => entry.kind().to_owned(),
    });
    words.collect()
}

/// A run's log without that of its first agent, as a damaged store or a cut file leaves it.
#[test]
fn a_run_whose_agent_has_no_log_fails_or_ends_at_once() {
    let now = Now { at: Timestamp(1), elapsed: Elapsed::default(), entropy: 7 };
    let begun = || {
        let whole = World::start(without_hooks());
        let mut run = Actor::new(RUN.into());
        run.replay(&whole.run_log()[0]).expect("it begins a log");
        run
    };
    let to_session = |step: Decision| {
        let mut session = Actor::new(ROOT.into());
        let events = step.messages.into_iter().map(|message| message.event);
        let answers = events.flat_map(|event| session.decide(event, now).messages).collect::<Vec<_>>();
        assert!(session.head().is_start(), "nothing begins its log but a start");
        answers
    };
    let ends = |event: RunEvent| {
        let mut run = begun();
        let step = run.decide(event.into(), now);
        for message in to_session(step) {
            let _ = run.decide(message.event, now);
        }
        run.status().and_then(|status| status.outcome)
    };
    let recovered = ends(RunEvent::Recover { fresh: Vec::new() });
    assert!(
        matches!(&recovered, Some(Outcome::Failed { message, .. }) if message.contains("import")),
        "{recovered:?}"
    );
    let cancelled = ends(RunEvent::Cancel { agent: None, by: "ann".into() });
    assert_eq!(cancelled, Some(Outcome::Cancelled { by: "ann".into() }));
}

#[test]
fn each_end_is_followed_by_another_segment_that_begins_with_what_was_said() {
    for outcome in ["completed", "failed", "cancelled"] {
        let mut world = ended(outcome);
        let length = world.session_log().len();
        resume(&mut world, Some("and now the docs"));
        let mut expected = vec!["resumed Asked { by: \"ann\" }".to_owned()];
        expected.extend((outcome != "completed").then(|| format!("{:?}", ItemKind::Resumed)));
        expected.extend(["ann: and now the docs".to_owned(), "model_called".to_owned()]);
        assert_eq!(said_since(&world, length), expected, "after {outcome}");
        assert_eq!(world.outcome(), None, "it works again after {outcome}");
        world.say("the docs are done");
        assert_eq!(world.outcome(), Some(Outcome::UNVERIFIED), "after {outcome}");
        let ends = world
            .session_log()
            .iter()
            .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_))));
        assert_eq!(ends.count(), 2, "one end a segment");
        let ends = world
            .run_log()
            .iter()
            .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_))));
        assert_eq!(ends.count(), 2, "one end a segment, of the run too");
    }
}

#[test]
fn who_was_done_and_is_told_nothing_new_is_asked_to_look_again() {
    let mut world = ended("completed");
    let length = world.session_log().len();
    resume(&mut world, None);
    let cause = ResumeCause::Asked { by: "ann".into() };
    assert_eq!(
        said_since(&world, length),
        [format!("resumed {cause:?}"), "Resumed".into(), "model_called".into()]
    );
}

#[test]
fn an_end_survives_a_crash_and_nothing_but_a_person_begins_a_segment() {
    for outcome in ["completed", "failed", "cancelled"] {
        let mut world = ended(outcome);
        let (length, run_length) = (world.session_log().len(), world.run_log().len());
        world.read_back();
        world.run_event(RunEvent::Recover { fresh: Vec::new() });
        world.run_event(RunEvent::Say { agent: 0, text: "hello".into(), by: "me".into() });
        world.session_event(SessionEvent::SlotFree);
        world.session_event(SessionEvent::Say { text: "hello".into(), by: "me".into() });
        assert_eq!(world.session_log().len(), length, "after {outcome}");
        assert_eq!(world.run_log().len(), run_length, "after {outcome}");
        resume(&mut world, Some("more"));
        world.read_back();
        world.run_event(RunEvent::Recover { fresh: Vec::new() });
        world.say("done");
        assert_eq!(world.outcome(), Some(Outcome::UNVERIFIED), "after {outcome}");
    }
}

#[test]
fn a_prompt_that_a_hook_refuses_leaves_a_completed_run_completed() {
    let mut policy: RunPolicy = without_hooks();
    policy.agent.hooks = vec![guard(HookPoint::PromptSubmit)];
    let mut world = World::start(policy);
    let answer_hook = |world: &mut World, decision: HookDecision| {
        let (seq, _) = world.hook_calls().first().cloned().expect("hooks are asked");
        let reports = vec![report(HookPoint::PromptSubmit, decision)];
        world.session_event(SessionEvent::HooksAnswered { seq, reports, scripts: None });
    };
    answer_hook(&mut world, HookDecision::Continue);
    world.say("done");
    assert_eq!(world.outcome(), Some(Outcome::UNVERIFIED));
    resume(&mut world, Some("drop the tables"));
    answer_hook(&mut world, HookDecision::Deny("no".into()));
    assert_eq!(world.outcome(), Some(Outcome::UNVERIFIED));
    assert!(world.thinking().is_none(), "the model isn't asked about nothing");
    resume(&mut world, Some("say hello"));
    answer_hook(&mut world, HookDecision::Continue);
    assert!(world.thinking().is_some());
}

#[test]
fn what_was_spent_before_counts_in_the_next_segment() {
    let mut world = ended("completed");
    let charged = |world: &World| {
        let usage = world.run_log().iter().map(|record| match &record.entry {
            Entry::Budget(BudgetEntry::Charged(charged)) => charged.usage.total(),
            _ => 0,
        });
        usage.sum::<u64>()
    };
    let first = charged(&world);
    assert!(first > 0);
    resume(&mut world, Some("more"));
    world.say("done");
    let Some(provost_engine::Actor::Run(state)) = world.actors.get(&RUN.into()) else { panic!("a run") };
    assert_eq!(state.ledger().tokens, charged(&world));
    assert!(state.ledger().tokens > first, "both segments count");
}
