//! Snapshots: an actor's state equals the fold of its whole log, however it was restored.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::join_all;
use provost_backend::{
    EmbeddedBackend, MemoryStore, NewEntry, SessionStore, StoreReader as _, export_run, import_incomplete,
    import_run,
};
use provost_engine::{Actor, Event, Now, RunEvent, SessionEvent};
use provost_event::{
    ActorKey, Budget, Elapsed, Entry, ErrorClass, Json, LifecycleEntry, ModelFailure, Record, Seq, SessionId,
    Snapshot, Timestamp,
};
use provost_harness::{
    AgentHarness, Backend, HarnessDeps, Log as _, Models, SystemClock, ToolRegistry, Worker as _,
};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::failing::Failing;
use crate::support::{Hands, policy, run, soon, start};

/// Entries between two snapshots.
const EVERY: u64 = 1_000;

const OLD_LOGS: [&str; 3] = [
    include_str!("../../../provost-event/formats/v1/eventful-run.jsonl"),
    include_str!("../../../provost-event/formats/v1/gated-run.jsonl"),
    include_str!("../../../provost-event/formats/v1/pictured-run.jsonl"),
];

pub(crate) fn root() -> ActorKey {
    SessionId::root(run(1)).into()
}

fn backend(store: impl SessionStore) -> EmbeddedBackend {
    EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap()
}

/// All of it, field by field: equality leaves out what no decision needs.
fn all_of(actor: &Actor) -> String {
    format!("{actor:?}")
}

fn replayed<'a>(key: ActorKey, records: impl IntoIterator<Item = &'a Record>) -> Actor {
    let mut actor = Actor::new(key);
    records.into_iter().for_each(|record| actor.replay(record).unwrap());
    actor
}

async fn log(backend: &dyn Backend, key: ActorKey) -> Vec<Arc<Record>> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(Seq::START, |record: &Arc<Record>| record.seq);
        let records = backend.read(key, after, 1_000).await.unwrap();
        if records.is_empty() {
            return all;
        }
        all.extend(records);
    }
}

async fn folded(backend: &dyn Backend, key: ActorKey) -> Actor {
    replayed(key, log(backend, key).await.iter().map(|record| &**record))
}

/// Checks that the state of `key` equals the fold of its whole log.
pub(crate) async fn check(backend: &dyn Backend, key: ActorKey) -> Seq {
    let (read, folded) = (backend.state(key).await.unwrap(), folded(backend, key).await);
    assert_eq!(all_of(&read), all_of(&folded), "{key}");
    folded.head()
}

/// Checks that each snapshot in the log of `key` equals the log's state there. Returns their number.
pub(crate) async fn check_snapshots(backend: &dyn Backend, key: ActorKey) -> usize {
    let (mut actor, mut snapshots) = (Actor::new(key), 0);
    let log = log(backend, key).await;
    for record in &log {
        actor.replay(record).unwrap();
        if let Entry::Lifecycle(LifecycleEntry::Snapshot(_)) = &record.entry {
            let restored = Actor::restore(&log[0], record).expect("a snapshot can be used");
            assert_eq!(all_of(&restored), all_of(&actor), "{key} at {}", record.seq);
            snapshots += 1;
        }
    }
    snapshots
}

/// A run whose root got this many messages during a model call, and which was then paused.
pub(crate) async fn talked_to(backend: &EmbeddedBackend, messages: u64) {
    let (hands, mut calls) = Hands::new();
    let guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    backend.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let call = soon(calls.recv()).await.unwrap();
    let say = |number: u64| RunEvent::Say { agent: 0, text: format!("word {number}"), by: "ann".to_owned() };
    join_all((0..messages).map(|number| backend.post(run(1).into(), say(number).into(), None))).await;
    backend
        .post(run(1).into(), RunEvent::Pause { agent: None, by: "ann".to_owned() }.into(), None)
        .await
        .unwrap();
    let failure = ModelFailure::new(ErrorClass::Aborted, "cancelled");
    let seq = call.id.seq;
    call.answer(SessionEvent::ModelFailed { seq, failure }.into());
    let mut records = backend.subscribe(run(1).into(), Seq::START);
    let suspended = async {
        while !matches!(
            records.next().await.unwrap().unwrap().entry,
            Entry::Lifecycle(LifecycleEntry::Paused(_))
        ) {}
    };
    soon(suspended).await;
    guard.release().await;
}

/// The snapshot that `actor` would take now, as the next entry of its log.
fn snapshot_of(key: ActorKey, actor: &Actor) -> Record {
    let state = match actor {
        Actor::Run(state) => Json::of(state),
        Actor::Session(state) => Json::of(state),
    };
    let entry =
        Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot { layout: layout(), state: state.unwrap() }));
    Record { actor: key, seq: actor.head().next(), at: Timestamp(1), elapsed: Elapsed::default(), entry }
}

/// The layout of the snapshots that are taken at present.
fn layout() -> u32 {
    static LAYOUT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *LAYOUT.get_or_init(|| {
        let mut actors = BTreeMap::new();
        let mut waiting = vec![(run(1).into(), Event::from(start(policy(Budget::default(), 10))))];
        for _ in 0..=2 * EVERY {
            while let Some((key, event)) = waiting.pop() {
                let actor = actors.entry(key).or_insert_with(|| Actor::new(key));
                let step = actor.decide(event, Now { at: Timestamp(1), elapsed: Elapsed(1), entropy: 0 });
                if let Some(Entry::Lifecycle(LifecycleEntry::Snapshot(snapshot))) = step.entries.last() {
                    return snapshot.layout;
                }
                waiting.extend(step.messages.into_iter().map(|message| (message.to, message.event)));
            }
            let say = RunEvent::Say { agent: 0, text: "on".to_owned(), by: "ann".to_owned() };
            waiting.push((run(1).into(), say.into()));
        }
        panic!("no snapshot is ever taken")
    })
}

#[test]
fn a_snapshot_at_any_point_of_an_eventful_log_gives_all_of_the_state_back() {
    let mut points = 0;
    for text in OLD_LOGS {
        let mut logs = BTreeMap::<ActorKey, Vec<Record>>::new();
        for record in text.lines().map(|line| Record::from_line(line).unwrap()) {
            logs.entry(record.actor).or_default().push(record);
        }
        for (key, log) in &logs {
            let mut actor = Actor::new(*key);
            for record in log {
                actor.replay(record).unwrap();
                let snapshot = snapshot_of(*key, &actor);
                let restored = Actor::restore(&log[0], &snapshot);
                let mut whole = actor.clone();
                if whole.replay(&snapshot).is_ok() {
                    let restored = restored.expect("it can be used");
                    assert_eq!(all_of(&restored), all_of(&whole), "{key} behind entry {}", record.seq);
                    points += 1;
                }
            }
        }
    }
    assert!(points > 100, "{points} points");
}

#[tokio::test]
async fn opening_a_long_run_reads_no_more_than_what_follows_its_snapshots() {
    let store = Failing::new();
    talked_to(&backend(store.clone()), 4 * EVERY).await;
    let again = Arc::new(backend(store.clone()));
    assert!(check(&*again, root()).await > Seq(4 * EVERY));
    let read = || store.records_read.swap(0, std::sync::atomic::Ordering::SeqCst) as u64;
    read();
    again.state(root()).await.unwrap();
    let bound = EVERY + 10;
    let of_one = read();
    assert!(of_one <= bound, "{of_one} records for reading one actor");
    let deps = HarnessDeps::new(again.clone(), Models::new(), ToolRegistry::new());
    let harness = AgentHarness::new(deps).open(run(1)).await.unwrap();
    let opening = read();
    // The harness reads both of its actors and checks for later entries; the backend reads the run's.
    assert!(opening <= 2 * bound, "{opening} records for opening");
    harness.control("ann").cancel(None).await.unwrap();
    let cancelled = read();
    assert!(cancelled <= bound, "{cancelled} records for going on");
}

#[tokio::test]
async fn a_snapshot_that_is_no_good_is_passed_over_for_the_whole_log() {
    let messages = 20;
    let genuine = backend(MemoryStore::new());
    talked_to(&genuine, messages).await;
    let session = log(&genuine, root()).await;
    let before = replayed(root(), session[..session.len() - 1].iter().map(|record| &**record));
    let whole = replayed(root(), session.iter().map(|record| &**record));
    let run_state = snapshot_of(run(1).into(), &folded(&genuine, run(1).into()).await);
    let good = snapshot_of(root(), &whole);
    let Entry::Lifecycle(LifecycleEntry::Snapshot(taken)) = &good.entry else { unreachable!() };
    let with = |layout, text: &str| {
        Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot {
            layout,
            state: Json::parse(text.to_owned()).unwrap(),
        }))
    };
    let text = taken.state.text();
    let ended = text.replacen("\"kind\":\"paused\"", "\"kind\":\"cancelled\",\"by\":\"ann\"", 1);
    assert_ne!(ended, text, "there is an outcome in it");
    let cases = [
        ("another layout", with(taken.layout + 1, text)),
        ("nothing", with(taken.layout, "null")),
        ("other fields", with(taken.layout, r#"{"nonsense":true}"#)),
        ("a text", with(taken.layout, r#""{""#)),
        ("taken earlier", snapshot_of(root(), &before).entry),
        ("of a run", run_state.entry),
        ("one that has ended", with(taken.layout, &ended)),
    ];
    for (name, entry) in cases {
        let mut store = MemoryStore::new();
        talked_to(&backend(store.clone()), messages).await;
        let seq = store.head(root()).unwrap();
        let bad = Record { entry, ..good.clone() };
        store.begin().unwrap();
        store.append(root(), seq, &[NewEntry::new(bad).unwrap()]).unwrap();
        store.commit().unwrap();
        let backend = backend(store.clone());
        assert_eq!(backend.newest_snapshot(root()).await.unwrap().map(|record| record.seq), Some(seq.next()));
        check_named(&backend, name).await;
        let say = SessionEvent::Say { text: "go on".to_owned(), by: "ann".to_owned() };
        let posted = backend.post(root(), say.into(), None).await;
        assert_eq!(posted.map(|posted| posted.head).ok(), Some(Seq(seq.0 + 2)), "{name}");
        check_named(&backend, name).await;
    }
}

async fn check_named(backend: &EmbeddedBackend, name: &str) {
    let (read, folded) = (backend.state(root()).await.unwrap(), folded(backend, root()).await);
    assert_eq!(all_of(&read), all_of(&folded), "{name}");
}

async fn export(backend: &EmbeddedBackend) -> String {
    let mut file = Vec::new();
    export_run(backend, run(1), &mut file).await.unwrap();
    String::from_utf8(file).unwrap()
}

#[tokio::test]
async fn an_imported_run_has_its_snapshots_and_uses_them() {
    let original = backend(MemoryStore::new());
    talked_to(&original, 2 * EVERY).await;
    let text = export(&original).await;
    let store = Failing::new();
    let copy = backend(store.clone());
    import_run(&copy, &mut text.as_bytes()).await.unwrap();
    assert_eq!(export(&copy).await, text);
    assert_eq!(check_snapshots(&copy, root()).await, 2);
    assert!(check(&copy, root()).await > Seq(2 * EVERY));
    store.records_read.store(0, std::sync::atomic::Ordering::SeqCst);
    copy.state(root()).await.unwrap();
    assert!(store.records_read.load(std::sync::atomic::Ordering::SeqCst) < 100);
}

#[tokio::test]
async fn an_imported_snapshot_that_lies_about_its_log_is_emptied() {
    let original = backend(MemoryStore::new());
    talked_to(&original, EVERY).await;
    let text = export(&original).await;
    let lie = |line: &str| line.replacen("\"turns_max\":10", "\"turns_max\":99", 1);
    let is_snapshot = |line: &&str| line.contains("\"type\":\"snapshot\"");
    assert_eq!(text.lines().filter(is_snapshot).filter(|line| lie(line) != *line).count(), 1);
    let changed = |line| if is_snapshot(&line) { lie(line) } else { line.to_owned() };
    let changed = text.lines().map(|line| changed(line) + "\n").collect::<String>();
    let copy = backend(MemoryStore::new());
    import_incomplete(&copy, &mut changed.as_bytes()).await.unwrap();
    let honest = original.state(root()).await.unwrap();
    assert!(copy.state(root()).await.unwrap() == honest, "the log is what counts");
    let kept = copy.newest_snapshot(root()).await.unwrap().expect("it keeps its place");
    let Entry::Lifecycle(LifecycleEntry::Snapshot(kept)) = &kept.entry else { panic!("{kept:?}") };
    assert_eq!(kept.state.text(), "{}");
    check(&copy, root()).await;
}

#[tokio::test]
async fn a_log_from_before_there_were_snapshots_opens_and_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    // Up to a point where its agent was active.
    let lines = OLD_LOGS[1].lines().filter(|line| !line.contains("\"type\":\"ended\""));
    let text = lines.map(|line| format!("{line}\n")).collect::<String>();
    let store = backend(SqliteStore::open(&path).unwrap());
    let id = import_incomplete(&store, &mut text.as_bytes()).await.unwrap().runs[0].run;
    drop(store);
    let backend = backend(SqliteStore::open(&path).unwrap());
    let key = ActorKey::from(SessionId::root(id));
    assert_eq!(backend.newest_snapshot(key).await.unwrap(), None);
    let before = check(&backend, key).await;
    let (hands, _calls) = Hands::new();
    let _guard = backend.serve(id, hands, CancellationToken::new()).await.unwrap();
    assert!(check(&backend, key).await > before, "it goes on");
}

#[tokio::test]
async fn a_long_log_without_snapshots_gets_one_with_its_next_entry() {
    let store = MemoryStore::new();
    let first = backend(store.clone());
    talked_to(&first, 3 * EVERY).await;
    let text = export(&first).await;
    let mut seqs = BTreeMap::<String, u64>::new();
    let without = text
        .lines()
        .filter(|line| !line.contains("\"type\":\"snapshot\"") && !line.contains("\"type\":\"end\""))
        .map(|line| {
            let mut value = serde_json::from_str::<serde_json::Value>(line).unwrap();
            let seq = seqs.entry(value["actor"].to_string()).or_default();
            *seq += 1;
            value["seq"] = (*seq).into();
            value.as_object_mut().unwrap().remove("chain");
            format!("{value}\n")
        });
    let without = without.collect::<String>();
    let backend = backend(MemoryStore::new());
    import_incomplete(&backend, &mut without.as_bytes()).await.unwrap();
    assert_eq!(backend.newest_snapshot(root()).await.unwrap(), None);
    let (hands, _calls) = Hands::new();
    let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    let resume = RunEvent::Resume {
        agent: None,
        by: "ann".to_owned(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    };
    backend.post(run(1).into(), resume.into(), None).await.unwrap();
    assert!(backend.newest_snapshot(root()).await.unwrap().is_some(), "it has one from here on");
    check(&backend, root()).await;
}
