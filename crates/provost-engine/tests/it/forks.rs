//! A run that continues another conversation: what it takes over, what begins anew, and what both logs contain.

use provost_engine::{Actor, Answer, RunEvent, RunForkRequest, SessionEvent};
use provost_event::{
    ActorKey, Block, ConversationEntry, Entry, ForkBase, LifecycleEntry, ModelEntry, Record, RunId, Seq,
    SessionFork, SessionId, StopReason, ToolEntry, ToolStatus,
};

use crate::world::{ROOT, RUN, World, policy, without_hooks};

const FORK: RunId = RunId::from_entropy(2);

/// The fork of `world` after `at`.
fn fork_at(world: &World, at: Seq) -> SessionFork {
    let mut actor = Actor::new(ROOT.into());
    for record in world.session_log().iter().filter(|record| record.seq <= at) {
        actor.replay(record).unwrap();
    }
    let Actor::Session(state) = actor else { unreachable!() };
    let base = ForkBase { session: ROOT, through: at, hash: "abc".to_owned() };
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &world.session_log()[0].entry else {
        panic!("it begins")
    };
    let reminder_id = started.reminder_id.clone();
    SessionFork { bases: vec![base], workspace: "/w".into(), reminder_id, state: state.fork_state() }
}

fn fork(world: &mut World, at: Seq, text: Option<&str>) {
    let wish = RunForkRequest {
        goal: "more".to_owned(),
        agent_goal: "the goal".to_owned(),
        policy: without_hooks(),
        fork: Box::new(fork_at(world, at)),
        worktree: None,
        baseline: None,
        text: text.map(str::to_owned),
        by: "ann".to_owned(),
    };
    world.post_to(FORK.into(), RunEvent::Fork(Box::new(wish)).into());
}

/// A run with an open call, a fork after its answer, and both played to their ends: the records of all four logs.
pub(crate) fn eventful() -> Vec<Record> {
    let mut world = World::start(without_hooks());
    world.call(&[("read", "{}")]);
    let at = world.session_log().last().unwrap().seq;
    world.finish_first("one");
    world.say("done");
    fork(&mut world, Seq(at.0 - 1), Some("and now"));
    let seq = world.thinking().expect("the fork thinks");
    let content = vec![Block::Text("done too".to_owned())];
    let answer =
        Answer { cost: None, content, usage: world.usage, model: "m".to_owned(), stop: StopReason::EndTurn };
    world.post_to(SessionId::root(FORK).into(), SessionEvent::Answered { seq, answer }.into());
    let keys = [RUN.into(), ROOT.into(), FORK.into(), ActorKey::from(SessionId::root(FORK))];
    keys.iter().flat_map(|key| world.logs[key].clone()).collect()
}

fn log(world: &World, key: impl Into<ActorKey>) -> Vec<(u64, String)> {
    let log = &world.logs[&key.into()];
    log.iter().map(|record| (record.seq.0, record.entry.kind().to_owned())).collect()
}

#[test]
fn a_fork_takes_over_open_calls_and_gives_each_its_one_result() {
    let mut world = World::start(without_hooks());
    world.call(&[("read", "{}"), ("shell", "{}")]);
    let (first, _) = world.tools()[0].clone();
    world.finish(first, ToolStatus::Ok, "one");
    let at = world.session_log().last().unwrap().seq;
    fork(&mut world, at, Some("and now"));
    let kinds = log(&world, SessionId::root(FORK));
    let expected = ["session_started", "tool_finished", "user_message", "model_called"];
    let expected = expected.iter().zip(at.0 + 1..).map(|(kind, seq)| (seq, (*kind).to_owned()));
    assert_eq!(kinds, expected.collect::<Vec<_>>());
    let own = &world.logs[&SessionId::root(FORK).into()];
    let result = own.iter().find_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some(finished),
        _ => None,
    });
    assert_eq!(
        result.map(|result| (result.tool.as_str(), result.status)),
        Some(("shell", ToolStatus::Unknown))
    );
}

#[test]
fn both_runs_logs_name_the_fork_and_the_other_run_stands_as_it_did() {
    for is_over in [false, true] {
        let mut world = World::start(without_hooks());
        if is_over {
            world.say("done");
        }
        let before = world.outcome();
        let session = world.session_log().to_vec();
        let length = world.run_log().len();
        fork(&mut world, Seq(1), Some("and now"));
        assert_eq!(world.outcome(), before);
        assert_eq!(world.session_log(), session, "nothing is written to the conversation");
        let of = |records: &[Record]| {
            let forked = records.iter().filter_map(|record| match &record.entry {
                Entry::Lifecycle(LifecycleEntry::Forked(forked)) => Some(forked.clone()),
                _ => None,
            });
            forked.collect::<Vec<_>>()
        };
        let there = of(&world.run_log()[length..]);
        assert_eq!(there.len(), 1);
        assert_eq!((there[0].from, there[0].at, there[0].to), (ROOT, Seq(1), FORK));
        assert_eq!(of(&world.logs[&FORK.into()]), there);
    }
}

#[test]
fn a_fork_has_limits_and_counters_of_its_own() {
    let mut world = World::start(policy());
    for _ in 0..3 {
        world.call(&[("read", "{}")]);
        world.finish_first("one");
    }
    let at = world
        .session_log()
        .iter()
        .rfind(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::TurnEnded(_))))
        .unwrap()
        .seq;
    fork(&mut world, at, None);
    let called = world.logs[&SessionId::root(FORK).into()].iter().find_map(|record| match &record.entry {
        Entry::Model(ModelEntry::Called(called)) => Some((called.turn, called.call)),
        _ => None,
    });
    assert_eq!(called, Some((1, 1)));
    let Actor::Run(run) = &world.actors[&FORK.into()] else { unreachable!() };
    assert_eq!((run.ledger().tokens, run.ledger().cost.0), (0, 0), "nothing is charged twice");
}

#[test]
fn a_second_wish_for_the_same_fork_changes_nothing() {
    let mut world = World::start(without_hooks());
    fork(&mut world, Seq(1), None);
    let length = world.logs[&FORK.into()].len();
    fork(&mut world, Seq(1), None);
    assert_eq!(world.logs[&FORK.into()].len(), length);
}
