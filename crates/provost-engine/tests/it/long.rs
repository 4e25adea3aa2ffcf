//! Long histories: snapshots are taken when they are due, and reading back from the newest one gives the same
//! state.

use provost_engine::RunEvent;
use provost_event::{
    ActorKey, Budget, CompactionKind, ConversationEntry, Entry, ErrorClass, LifecycleEntry, Purpose, Record,
    Usage,
};

use crate::world::{ROOT, RUN, World, without_hooks};

/// Minimum number of entries between two snapshots.
const EVERY: usize = 1_000;

fn snapshots(log: &[Record]) -> Vec<usize> {
    let places = log.iter().enumerate();
    places
        .filter(|(_, record)| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))))
        .map(|(place, _)| place)
        .collect()
}

#[test]
fn every_thousand_entries_both_logs_get_a_snapshot_that_reads_back_as_the_state() {
    let mut policy = without_hooks();
    (policy.agent.limits.turns_max, policy.agent.limits.stuck_turns) = (10_000, 0);
    policy.agent.model.window_tokens = Some(4_000);
    let mut world = World::start(policy);
    let mut turns = 0;
    while turns < 1_200 {
        world.usage = Usage { input_tokens: world.request_tokens, output_tokens: 10, ..Usage::default() };
        if world.calls_model_for(Purpose::Summary) {
            world.say("It is half done.");
            continue;
        }
        turns += 1;
        match turns % 100 {
            7 => {
                // The world compares what is read back with the state after each event.
                world.read_back();
                world.run_event(RunEvent::Recover { fresh: Vec::new() });
            }
            11 => {
                world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
                world.fail(ErrorClass::Aborted, None);
                let budget = Budget::default();
                world.run_event(RunEvent::Resume {
                    agent: None,
                    by: "me".into(),
                    budget,
                    turns_max: None,
                    text: None,
                });
            }
            13 => world.run_event(RunEvent::Say { agent: 0, text: "hurry".into(), by: "me".into() }),
            _ => {}
        }
        world.call(&[("read", &format!("{{\"of\":{turns}}}"))]);
        world.finish_first(&"word ".repeat(turns % 300));
    }
    let session = (ActorKey::from(ROOT), world.session_log());
    for (key, log) in [session, (RUN.into(), world.run_log())] {
        let places = snapshots(log);
        assert!(places.len() >= log.len() / (EVERY + 50), "{key}: {} in {}", places.len(), log.len());
        let gaps = places.windows(2).map(|two| two[1] - two[0]).chain([places[0]]);
        assert!(gaps.into_iter().all(|gap| (EVERY - 1..EVERY + 50).contains(&gap)), "{places:?}");
        let Entry::Lifecycle(LifecycleEntry::Snapshot(newest)) = &log[places[places.len() - 1]].entry else {
            panic!("a snapshot")
        };
        assert!(newest.state.text().len() < 60_000, "{} bytes", newest.state.text().len());
    }
    let kinds = world.session_log().iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::Compacted(compacted)) => Some(compacted.how),
        _ => None,
    });
    let summaries = kinds.filter(|how| *how == CompactionKind::Summary).count();
    assert!(summaries > 3, "{summaries} summaries");
}

#[test]
fn a_snapshot_that_can_t_be_read_is_passed_over() {
    let mut world = World::start(without_hooks());
    world.take_snapshot(ROOT.into());
    let log = world.session_log();
    let (first, taken) = (&log[0], log.last().expect("a snapshot"));
    let restored = |first: &Record, change: fn(&mut Record)| {
        let mut record = taken.clone();
        change(&mut record);
        provost_engine::Actor::restore(first, &record)
    };
    assert!(restored(first, |_| {}).is_some());
    assert!(restored(taken, |_| {}).is_none(), "not the log's first entry");
    assert!(restored(&world.run_log()[0], |_| {}).is_none(), "another log's");
    assert!(restored(first, |record| record.seq = record.seq.next()).is_none(), "not where it was taken");
    let layout = |record: &mut Record| {
        if let Entry::Lifecycle(LifecycleEntry::Snapshot(snapshot)) = &mut record.entry {
            snapshot.layout += 1;
        }
    };
    assert!(restored(first, layout).is_none(), "another program's");
    let garbled = |record: &mut Record| {
        if let Entry::Lifecycle(LifecycleEntry::Snapshot(snapshot)) = &mut record.entry {
            snapshot.state = provost_event::Json::empty_object();
        }
    };
    assert!(restored(first, garbled).is_none(), "garbled");
}
