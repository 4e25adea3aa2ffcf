//! Full disks, damaged logs, lost owners: nothing acknowledged is missing, and callers and subscribers get the
//! error.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::join_all;
use provost_backend::{EmbeddedBackend, SessionStore};
use provost_engine::RunEvent;
use provost_event::{ActorKey, Block, Budget, ConversationEntry, Entry, Seq, SessionId};
use provost_harness::{Backend, BackendError, SystemClock};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::failing::Failing;
use crate::support::{Hands, done, ended, policy, run, soon, start};

fn backend(store: impl SessionStore) -> Arc<dyn Backend> {
    Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap())
}

fn database(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("provost.db")
}

async fn start_run(backend: &Arc<dyn Backend>, number: u64) {
    backend.post(run(number).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
}

async fn say(backend: &Arc<dyn Backend>, number: u64, text: String) -> Result<(), BackendError> {
    backend
        .post(run(number).into(), RunEvent::Say { agent: 0, text, by: "ann".to_owned() }.into(), None)
        .await
        .map(drop)
}

async fn said(backend: &Arc<dyn Backend>, number: u64) -> BTreeSet<String> {
    let session = ActorKey::Session(SessionId::root(run(number)));
    let records = backend.read(session, Seq::START, usize::MAX).await.unwrap();
    let texts = records.iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::UserMessage(message)) => match &message.content[0] {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let folder = TempDir::new().unwrap();
    let mut store = SqliteStore::open(database(&folder)).unwrap();
    store.limit_pages(100).unwrap();
    let full = backend(store);
    start_run(&full, 1).await;
    let mut acknowledged = BTreeSet::new();
    let mut errors = Vec::new();
    for round in 0..40 {
        let texts = (0..5).map(|number| format!("{round}.{number} {}", "x".repeat(4000))).collect::<Vec<_>>();
        for (text, result) in
            texts.iter().zip(join_all(texts.iter().map(|text| say(&full, 1, text.clone()))).await)
        {
            match result {
                Ok(()) => drop(acknowledged.insert(text.clone())),
                Err(error) => errors.push(error.to_string()),
            }
        }
    }
    assert!(!acknowledged.is_empty() && !errors.is_empty(), "{} {}", acknowledged.len(), errors.len());
    let expected = "can't append to a log: database or disk is full (free some space, then `provost resume`)";
    assert!(errors.iter().all(|error| error == expected), "{errors:?}");
    let roomy = backend(SqliteStore::open(database(&folder)).unwrap());
    assert_eq!(said(&roomy, 1).await, acknowledged);
    assert_eq!(said(&full, 1).await, acknowledged);
    say(&roomy, 1, "there is room again".to_owned()).await.unwrap();
    assert!(said(&full, 1).await.contains("there is room again"));
}

#[tokio::test]
async fn a_failed_commit_ends_the_serving_and_the_next_owner_recovers() {
    let store = Failing::new();
    let full = store.full.clone();
    let backend = backend(store);
    start_run(&backend, 2).await;
    let (hands, mut calls) = Hands::new();
    let guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    start_run(&backend, 1).await;
    let call = soon(calls.recv()).await.unwrap();
    let before = backend.read(call.id.actor, Seq::START, usize::MAX).await.unwrap().len();
    full.store(true, Ordering::SeqCst);
    let lost = call.id;
    call.answer(done(lost.seq));
    let error = soon(guard.failed()).await;
    assert_eq!(error.to_string(), "can't write to the log: no space left");
    assert!(say(&backend, 2, "hello".to_owned()).await.is_err());
    full.store(false, Ordering::SeqCst);
    assert_eq!(
        backend.read(lost.actor, Seq::START, usize::MAX).await.unwrap().len(),
        before,
        "nothing of it is kept"
    );
    say(&backend, 2, "hello".to_owned()).await.unwrap();
    guard.release().await;
    let (hands, mut calls) = Hands::new();
    let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    let again = soon(calls.recv()).await.unwrap();
    assert_ne!(again.id, lost);
    again.done();
    soon(ended(&*backend, run(1))).await;
}

#[tokio::test]
async fn a_damaged_log_fails_only_its_own_posts() {
    let folder = TempDir::new().unwrap();
    let writer = backend(SqliteStore::open(database(&folder)).unwrap());
    for number in 1..=3 {
        start_run(&writer, number).await;
    }
    drop(writer);
    let damage = "UPDATE entries SET body = '{' WHERE kind = 'session_started' AND actor = \
                  (SELECT id FROM actors WHERE key = ?1)";
    let session = SessionId::root(run(2));
    rusqlite::Connection::open(database(&folder)).unwrap().execute(damage, [session.to_string()]).unwrap();
    let backend = backend(SqliteStore::open(database(&folder)).unwrap());
    let results = join_all((1..=3).map(|number| say(&backend, number, "hello".to_owned()))).await;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    let Err(BackendError::Unreadable { actor, seq, .. }) = &results[1] else { panic!("{results:?}") };
    assert_eq!((*actor, *seq), (session.into(), Seq(1)));
    let read = backend.read(session.into(), Seq::START, 10).await;
    assert!(matches!(read, Err(BackendError::Unreadable { .. })), "{read:?}");
}

#[tokio::test]
async fn a_run_that_was_taken_over_is_not_touched_any_more() {
    let folder = TempDir::new().unwrap();
    let backend = backend(SqliteStore::open(database(&folder)).unwrap());
    let (hands, mut calls) = Hands::new();
    let guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    start_run(&backend, 1).await;
    let call = soon(calls.recv()).await.unwrap();
    let before = backend.read(call.id.actor, Seq::START, usize::MAX).await.unwrap().len();
    // Like a process whose lock was lost: a file system without locks, a copied folder.
    let mut thief = SqliteStore::open(database(&folder)).unwrap();
    thief.begin().unwrap();
    thief.bump_owner_epoch(run(1)).unwrap();
    thief.commit().unwrap();
    let actor = call.id.actor;
    call.done();
    let error = soon(guard.failed()).await;
    assert!(matches!(error, BackendError::Conflict { actor } if actor == run(1).into()), "{error}");
    assert_eq!(backend.read(actor, Seq::START, usize::MAX).await.unwrap().len(), before);
}

#[tokio::test]
async fn an_executor_that_panics_ends_the_serving() {
    struct Panics;
    #[async_trait::async_trait]
    impl provost_harness::Executor for Panics {
        async fn run(
            &self,
            _: provost_event::EffectId,
            _: provost_engine::Effect,
            _: CancellationToken,
        ) -> provost_engine::Event {
            panic!("as the test wants it")
        }
    }
    let backend = backend(provost_backend::MemoryStore::new());
    let guard = backend.serve(run(1), Arc::new(Panics), CancellationToken::new()).await.unwrap();
    start_run(&backend, 1).await;
    assert!(soon(guard.failed()).await.to_string().contains("panicked"));
}

/// Not a test: the process that the next test kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn process_that_works_on_a_run() {
    let Some(path) = std::env::var_os("PROVOST_TEST_DATABASE") else { return };
    let backend = backend(SqliteStore::open(path).unwrap());
    let (hands, mut calls) = Hands::new();
    let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    start_run(&backend, 1).await;
    let _call = calls.recv().await;
    println!("working");
    std::future::pending().await
}

fn start_process(path: &Path) -> std::process::Child {
    let name = "failures::process_that_works_on_a_run";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("PROVOST_TEST_DATABASE", path);
    command.stdout(std::process::Stdio::piped()).stdin(std::process::Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn a_killed_process_leaves_its_run_free_at_once() {
    use std::io::BufRead as _;
    let folder = TempDir::new().unwrap();
    let mut process = start_process(&database(&folder));
    let output = std::io::BufReader::new(process.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().contains("working")));
    let backend = backend(SqliteStore::open(database(&folder)).unwrap());
    let (hands, mut calls) = Hands::new();
    let held =
        backend.serve(run(1), hands.clone(), CancellationToken::new()).await.err().unwrap().to_string();
    let by = format!("run {} is being worked on by process {} since 20", run(1), process.id());
    assert!(held.starts_with(&by), "{held}");
    process.kill().unwrap();
    process.wait().unwrap();
    let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    soon(calls.recv()).await.unwrap().done();
    soon(ended(&*backend, run(1))).await;
}
