//! Stores against a naive model: after any writes, commits and rollbacks both return the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use provost_backend::{MemoryStore, NewEntry, OpenEffect, SessionStore, StoredRun};
use provost_engine::{Effect, Uncertain};
use provost_event::{
    ActorKey, Block, ConversationEntry, EffectId, Elapsed, Entry, Json, LifecycleEntry, MicroDollars, Record,
    Seq, SessionId, Snapshot, Timestamp, UserMessage,
};
use provost_harness::{BackendError, RunPosition};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::support::run;

#[derive(Debug, Clone)]
enum Write {
    /// With an expected head that is off by this much.
    Append {
        actor: u8,
        off: i64,
        count: u8,
    },
    Put {
        actor: u8,
        seq: u64,
        epoch: Option<u64>,
    },
    Close {
        actor: u8,
        seq: u64,
    },
    Abort {
        actor: u8,
        seq: u64,
    },
    Mark {
        actor: u8,
        dedup: u8,
    },
    List {
        run: u8,
        turns: u32,
    },
    Bump {
        run: u8,
    },
}

#[derive(Debug, Clone)]
struct Transaction {
    writes: Vec<Write>,
    commits: bool,
    /// Whether the store is reopened before it.
    reopens: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    logs: BTreeMap<u8, u64>,
    /// All entries, as they were appended.
    order: Vec<(u8, u64)>,
    effects: BTreeMap<EffectId, OpenEffect>,
    posts: BTreeSet<(u8, u8)>,
    runs: BTreeMap<u8, StoredRun>,
    epochs: BTreeMap<u8, u64>,
}

const ACTORS: u8 = 6;
const RUNS: u8 = 3;

/// Two actors per run: its own and its root session.
fn key(actor: u8) -> ActorKey {
    let run = run(u64::from(actor / 2));
    if actor.is_multiple_of(2) { run.into() } else { SessionId::root(run).into() }
}

fn effect_id(actor: u8, seq: u64) -> EffectId {
    EffectId { actor: key(actor), seq: Seq(seq) }
}

fn write() -> impl Strategy<Value = Write> {
    let actor = || 0..ACTORS;
    prop_oneof![
        4 => (actor(), prop_oneof![9 => Just(0_i64), 1 => -2..3_i64], prop_oneof![5 => 0..4_u8, 1 => 20..100_u8])
            .prop_map(|(actor, off, count)| Write::Append { actor, off, count }),
        3 => (actor(), 0..5_u64, prop::option::of(1..3_u64)).prop_map(|(actor, seq, epoch)| Write::Put { actor, seq, epoch }),
        2 => (actor(), 0..5_u64).prop_map(|(actor, seq)| Write::Close { actor, seq }),
        1 => (actor(), 0..5_u64).prop_map(|(actor, seq)| Write::Abort { actor, seq }),
        1 => (actor(), 0..3_u8).prop_map(|(actor, dedup)| Write::Mark { actor, dedup }),
        1 => (0..RUNS, 0..9_u32).prop_map(|(run, turns)| Write::List { run, turns }),
        1 => (0..RUNS).prop_map(|run| Write::Bump { run }),
    ]
}

fn transaction() -> impl Strategy<Value = Transaction> {
    let parts = (prop::collection::vec(write(), 0..8), prop::bool::weighted(0.7), prop::bool::weighted(0.2));
    parts.prop_map(|(writes, commits, reopens)| Transaction { writes, commits, reopens })
}

/// Which entries of all logs are snapshots.
const fn is_snapshot(seq: u64) -> bool {
    seq.is_multiple_of(3)
}

fn entry(actor: ActorKey, seq: u64) -> NewEntry {
    let content = vec![Block::Text(format!("entry {seq} of {actor}"))];
    let entry = if is_snapshot(seq) {
        Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot { layout: 1, state: Json::empty_object() }))
    } else {
        Entry::Conversation(ConversationEntry::UserMessage(UserMessage { content, by: "ann".to_owned() }))
    };
    NewEntry::new(Record { actor, seq: Seq(seq), at: Timestamp(seq), elapsed: Elapsed::default(), entry })
        .unwrap()
}

fn listed(number: u8, turns: u32) -> StoredRun {
    StoredRun {
        run: run(u64::from(number)),
        goal: "a goal".to_owned(),
        workspace: "/somewhere".into(),
        model: "m".to_owned(),
        outcome: None,
        started_at: Timestamp(u64::from(number) / 2),
        updated_at: Timestamp(u64::from(turns)),
        turns,
        tokens: 1,
        cost: MicroDollars(2),
        uncertain: Uncertain::default(),
        elapsed: Elapsed::default(),
        damage: None,
    }
}

fn apply(write: &Write, model: &mut Model, store: &mut dyn SessionStore) {
    match *write {
        Write::Append { actor, off, count } => {
            let head = model.logs.get(&actor).copied().unwrap_or_default();
            let Some(expected) = head.checked_add_signed(off) else { return };
            let numbers = expected + 1..=expected + u64::from(count);
            let entries = numbers.map(|seq| entry(key(actor), seq)).collect::<Vec<_>>();
            let appended = store.append(key(actor), Seq(expected), &entries);
            if off == 0 {
                appended.unwrap();
                if count > 0 {
                    model.logs.insert(actor, head + u64::from(count));
                    model.order.extend((head + 1..=head + u64::from(count)).map(|seq| (actor, seq)));
                }
            } else {
                assert!(matches!(appended, Err(BackendError::Conflict { .. })), "{appended:?}");
            }
        }
        Write::Put { actor, seq, epoch } => {
            let effect = Effect::Timer { due: Timestamp(seq), remaining_ms: seq };
            let open = OpenEffect { id: effect_id(actor, seq), effect, epoch, abort: false };
            store.put_effect(&open).unwrap();
            model.effects.insert(open.id, open);
        }
        Write::Close { actor, seq } => {
            store.close_effect(effect_id(actor, seq)).unwrap();
            model.effects.remove(&effect_id(actor, seq));
        }
        Write::Abort { actor, seq } => {
            store.request_abort(effect_id(actor, seq)).unwrap();
            model.effects.entry(effect_id(actor, seq)).and_modify(|open| open.abort = true);
        }
        Write::Mark { actor, dedup } => {
            store.mark_post(key(actor), &dedup.to_string()).unwrap();
            model.posts.insert((actor, dedup));
        }
        Write::List { run, turns } => {
            store.put_run(&listed(run, turns)).unwrap();
            model.runs.insert(run, listed(run, turns));
        }
        Write::Bump { run: number } => {
            let epoch = model.epochs.entry(number).or_default();
            *epoch += 1;
            assert_eq!(store.bump_owner_epoch(run(u64::from(number))).unwrap(), *epoch);
        }
    }
}

fn compare(model: &Model, store: &mut dyn SessionStore) {
    for actor in 0..ACTORS {
        let head = model.logs.get(&actor).copied().unwrap_or_default();
        assert_eq!(store.head(key(actor)).unwrap(), Seq(head));
        let read = store.read(key(actor), Seq(head / 2), usize::MAX).unwrap();
        let expected = (head / 2 + 1..=head).map(|seq| entry(key(actor), seq).record).collect::<Vec<_>>();
        assert_eq!(read, expected);
        let snapshot = (1..=head).rev().find(|seq| is_snapshot(*seq));
        assert_eq!(store.newest_snapshot(key(actor)).unwrap().map(|record| record.seq.0), snapshot);
        for dedup in 0..3 {
            let marked = store.has_post(key(actor), &dedup.to_string()).unwrap();
            assert_eq!(marked, model.posts.contains(&(actor, dedup)));
        }
    }
    for number in 0..RUNS {
        let id = run(u64::from(number));
        let effects =
            model.effects.values().filter(|open| open.id.actor.run() == id).cloned().collect::<Vec<_>>();
        assert_eq!(store.open_effects(id).unwrap(), effects);
        assert_eq!(store.owner_epoch(id).unwrap(), model.epochs.get(&number).copied().unwrap_or_default());
        let actors =
            (0..ACTORS).filter(|actor| key(*actor).run() == id && model.logs.contains_key(actor)).map(key);
        assert_eq!(store.actors(id).unwrap(), actors.collect::<Vec<_>>());
        let order = model.order.iter().map(|(actor, seq)| (key(*actor), Seq(*seq)));
        let order = order.filter(|(actor, _)| actor.run() == id).collect::<Vec<_>>();
        let places = store.order(id, RunPosition::START, usize::MAX).unwrap();
        assert_eq!(places.iter().map(|place| (place.actor, place.seq)).collect::<Vec<_>>(), order);
        assert_eq!(store.run_head(id).unwrap(), places.last().map(|last| last.position).unwrap_or_default());
        let middle = places.len() / 2;
        let piece = places.iter().skip(middle + 1).take(9).copied().collect::<Vec<_>>();
        let after = places.get(middle).map(|place| place.position).unwrap_or_default();
        assert_eq!(store.order(id, after, 9).unwrap(), piece);
    }
    let mut runs = model.runs.values().cloned().collect::<Vec<_>>();
    runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.run)));
    assert_eq!(store.runs(None, usize::MAX).unwrap(), runs);
}

fn check<S: SessionStore>(transactions: &[Transaction], open: impl Fn() -> S) {
    let (mut model, mut store) = (Model::default(), open());
    for transaction in transactions {
        if transaction.reopens {
            store = open();
        }
        let before = model.clone();
        store.begin().unwrap();
        transaction.writes.iter().for_each(|write| apply(write, &mut model, &mut store));
        compare(&model, &mut store);
        if transaction.commits {
            store.commit().unwrap();
        } else {
            store.rollback();
            model = before;
        }
        compare(&model, &mut store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_like_the_model(transactions in prop::collection::vec(transaction(), 1..10)) {
        let place = MemoryStore::new();
        check(&transactions, || place.clone());
    }

    #[test]
    fn sqlite_is_like_the_model(transactions in prop::collection::vec(transaction(), 1..10)) {
        let folder = TempDir::new().unwrap();
        check(&transactions, || SqliteStore::open(folder.path().join("provost.db")).unwrap());
    }
}
