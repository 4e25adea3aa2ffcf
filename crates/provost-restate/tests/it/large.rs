//! Messages that the engine itself would refuse.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use provost_engine::RunEvent;
use provost_engine::{Effect, Event, SessionEvent};
use provost_event::{Block, ConversationEntry, EffectId, Entry, Outcome, SessionId};
use provost_harness::{BackendError, Executor, Log as _, Unheld, Worker as _};
use provost_restate::{BlobPlace, Engine, RestateBackend};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::support::{
    Scripted, Server, begin, connect, done, ended, engine, listening, log, run, start, worker,
};

/// One byte more than a message of the engine may have.
const BYTES: usize = (32 << 20) + 1;
/// Enough for the blob store.
const LARGE: usize = 300 << 10;

fn scripted(folder: &TempDir) -> Scripted {
    Scripted { folder: folder.path().to_owned(), tool: "look", turns: 1, takes: std::time::Duration::ZERO }
}

struct Verbose {
    text: usize,
    answers: std::sync::atomic::AtomicUsize,
    others: Scripted,
}

fn verbose(folder: &TempDir, text: usize) -> Arc<Verbose> {
    Arc::new(Verbose { text, answers: std::sync::atomic::AtomicUsize::new(0), others: scripted(folder) })
}

#[async_trait::async_trait]
impl Executor for Verbose {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        match effect {
            Effect::CallModel(_) => {
                self.answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                SessionEvent::Answered { seq: id.seq, answer: done("x".repeat(self.text)) }.into()
            }
            other => self.others.run(id, other, cancel).await,
        }
    }
}

/// Files in place of the folders that bodies are stored in.
fn in_the_way_of_bodies(folder: &TempDir) -> Vec<std::path::PathBuf> {
    let path = |byte: u8| folder.path().join(format!("blobs/{byte:02x}"));
    let in_the_way = (0..=255).map(path).filter(|path| !path.exists()).collect::<Vec<_>>();
    in_the_way.iter().for_each(|path| std::fs::write(path, "no folder").unwrap());
    in_the_way
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_beyond_the_engines_limit_goes_by_the_blob_store() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, _worker) = worker(engine(&server, folder.path()), "w").await;
    let executor = verbose(&folder, BYTES);
    let _guard = backend.serve(run(1), executor, CancellationToken::new()).await.unwrap();
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    let log = log(&backend, SessionId::root(run(1))).await;
    let texts = log.iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::AssistantMessage(message)) => match message.content.first() {
            Some(Block::Text(text)) => Some(text.len()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), [BYTES]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_stored_is_refused_and_changes_nothing() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (_, _worker) = worker(engine(&server, folder.path()), "w").await;
    let backend = connect(engine(&server, folder.path())).await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let before = log(&backend, SessionId::root(run(1))).await;
    // In the way of all that is stored from here on.
    let blobs = folder.path().join("blobs");
    std::fs::remove_dir_all(&blobs).unwrap();
    std::fs::write(&blobs, "no folder").unwrap();
    let say = RunEvent::Say { agent: 0, text: "x".repeat(BYTES), by: "ann".to_owned() };
    let error = backend.post(run(1).into(), say.into(), Some("say")).await.unwrap_err();
    assert!(matches!(&error, BackendError::Storage { attempt: "use engine.blobs", .. }), "{error}");
    assert_eq!(log(&backend, SessionId::root(run(1))).await, before);
    std::fs::remove_file(&blobs).unwrap();
    let say = RunEvent::Say { agent: 0, text: "small".to_owned(), by: "ann".to_owned() };
    assert!(
        backend.post(run(1).into(), say.into(), Some("say")).await.unwrap().changed,
        "its dedup isn't used up"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_answer_cannot_be_stored_says_so() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let labelled = Engine { label: Some("gpu".to_owned()), ..engine(&server, folder.path()) };
    let (backend, _worker) = worker(labelled, "w").await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let waits = backend.unheld(run(1)).await.unwrap();
    assert_eq!(waits, Some(Unheld { label: Some("gpu".to_owned()), failed: None }));
    let in_the_way = in_the_way_of_bodies(&folder);
    let guard = backend.serve(run(1), verbose(&folder, BYTES), CancellationToken::new()).await.unwrap();
    let failed = guard.failed().await;
    assert!(matches!(&failed, BackendError::Storage { attempt: "store a large body", .. }), "{failed}");
    guard.release().await;
    let told = backend.unheld(run(1)).await.unwrap().and_then(|unheld| unheld.failed).unwrap();
    assert!(told.contains("worker w") && told.contains("store a large body"), "{told}");
    in_the_way.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let next = Arc::new(scripted(&folder));
    backend.serve(run(1), next, CancellationToken::new()).await.unwrap().release().await;
    let waits = backend.unheld(run(1)).await.unwrap();
    let label = Some("gpu".to_owned());
    assert_eq!(waits, Some(Unheld { label, failed: None }), "a worker has taken it since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_recorded_is_not_asked_for_again_unsaid() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, _worker) = worker(engine(&server, folder.path()), "w").await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let in_the_way = in_the_way_of_bodies(&folder);
    // Small enough for a message of the engine, and more than the end of a log that it keeps itself.
    let executor = verbose(&folder, 40 << 10);
    for _ in 0..2 {
        let guard = backend.serve(run(1), executor.clone(), CancellationToken::new()).await.unwrap();
        let failed = guard.failed().await;
        assert!(failed.to_string().contains("can't store a large body"), "{failed}");
        guard.release().await;
    }
    in_the_way.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let _guard = backend.serve(run(1), executor.clone(), CancellationToken::new()).await.unwrap();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    assert_eq!(executor.answers.load(std::sync::atomic::Ordering::Relaxed), 3);
    let log = log(&backend, SessionId::root(run(1))).await;
    let repeats = log.iter().filter(|record| record.entry.kind() == "retry").count();
    assert_eq!(repeats, 2, "each further call is in the log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_or_begun_where_the_blobs_are_not_mounted() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    nothing_is_begun_without_blobs(engine(&server, folder.path()), &folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_begun_where_the_object_store_does_not_have_the_blobs() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let url = Url::from_directory_path(folder.path().join("blobs")).unwrap();
    let blobs = BlobPlace::ObjectStore { url, options: BTreeMap::new() };
    nothing_is_begun_without_blobs(Engine { blobs, ..engine(&server, folder.path()) }, &folder).await;
}

async fn nothing_is_begun_without_blobs(engine: Engine, folder: &TempDir) {
    let blobs = folder.path().join("blobs");
    let (backend, _worker) = worker(engine, "w").await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let away = folder.path().join("away");
    std::fs::rename(&blobs, &away).unwrap();
    // As an unmount leaves it.
    std::fs::create_dir(&blobs).unwrap();
    let executor = verbose(folder, 40 << 10);
    let refused =
        backend.serve(run(1), executor.clone(), CancellationToken::new()).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("can't use engine.blobs: "), "{refused}");
    assert!(refused.to_string().contains(&blobs.display().to_string()), "{refused}");
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 0);
    std::fs::remove_dir(&blobs).unwrap();
    std::fs::rename(&away, &blobs).unwrap();
    let _guard = backend.serve(run(1), executor.clone(), CancellationToken::new()).await.unwrap();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    assert_eq!(executor.answers.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_blobs_than_those_of_the_engines_runs_are_refused() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let other = TempDir::new().unwrap();
    // Workers that start at once agree on one place.
    let ((backend, _worker), (second, _other_worker)) = tokio::join!(
        worker(engine(&server, folder.path()), "w"),
        worker(engine(&server, folder.path()), "x")
    );
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let elsewhere = other.path().join("blobs");
    let astray = connect(engine(&server, other.path())).await;
    refused(&astray, &elsewhere, "no file provost-blobs").await;
    assert!(!elsewhere.exists(), "it may be a place where the folder is to be mounted");
    std::fs::create_dir(&elsewhere).unwrap();
    let mark = elsewhere.join("provost-blobs");
    std::fs::write(&mark, "0123456789abcdef0123456789abcdef\nof another engine").unwrap();
    refused(&astray, &elsewhere, "0123456789abcdef0123456789abcdef").await;
    std::fs::write(&mark, vec![b'x'; 1 << 20]).unwrap();
    refused(&astray, &elsewhere, "isn't an id").await;
    std::fs::remove_file(&mark).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&mark).status().unwrap().success());
    refused(&astray, &elsewhere, "isn't a file").await;
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1, "nothing was written there");
    for of_them in [backend, second] {
        let say = RunEvent::Say { agent: 0, text: "x".repeat(LARGE), by: "ann".to_owned() };
        assert!(of_them.post(run(1).into(), say.into(), None).await.unwrap().changed);
    }
}

/// Neither a worker nor a client may use the place.
async fn refused(astray: &RestateBackend, place: &Path, why: &str) {
    let say = RunEvent::Say { agent: 0, text: "x".repeat(LARGE), by: "ann".to_owned() };
    let begun = begin(astray, "y", listening()).await.map(drop).unwrap_err();
    let said = astray.post(run(1).into(), say.into(), Some("say")).await.map(drop).unwrap_err();
    for error in [begun.to_string(), said.to_string()] {
        assert!(error.contains("can't use engine.blobs") && error.contains(why), "{error}");
        assert!(error.contains(place.to_str().unwrap()) && error.len() < 500, "{error}");
    }
}
