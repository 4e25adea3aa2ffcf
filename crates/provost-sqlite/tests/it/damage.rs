//! Bits flipped anywhere in the database and its write-ahead log: reads return what was written, or name the
//! damage, and runs without damage are unchanged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use provost_backend::{EmbeddedBackend, export_run};
use provost_event::{ActorKey, Budget, Entry, RunId, Seq, SessionId, ToolEntry};
use provost_harness::{
    BackendError, Blobs as _, Catalog as _, Log as _, RunQuery, RunSummary, SystemClock, Worker as _,
};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::snapshots::talked_to;
use crate::support::{Hands, asks_for_tools, done, ended, policy, run, soon, start, tool_done};

const DATABASE: &str = "provost.db";
const RUNS: u64 = 6;
/// Places at which a bit is flipped, in the database and in its log each; a few are enough in a full test run.
const PLACES: usize = 40;
const PLACES_LONG: usize = 1_000;

/// Whether the long version was asked for: `PROVOST_TEST_DAMAGE=long`.
pub(crate) fn is_long() -> bool {
    std::env::var("PROVOST_TEST_DAMAGE").is_ok_and(|value| value == "long")
}

fn backend(folder: &Path) -> Result<EmbeddedBackend, BackendError> {
    EmbeddedBackend::new(SqliteStore::open(folder.join(DATABASE))?, Arc::new(SystemClock))
}

/// The data read from a store.
#[derive(Debug, PartialEq)]
struct Whole {
    listed: Vec<RunSummary>,
    exports: BTreeMap<RunId, String>,
    states: BTreeMap<ActorKey, String>,
}

/// A run with messages, long enough for snapshots in the long version, and runs with tool calls and outputs beside
/// their logs; the last is in the middle of its work.
async fn fill(backend: &EmbeddedBackend) {
    talked_to(backend, if is_long() { 1_200 } else { 30 }).await;
    for number in 2..=RUNS {
        let (hands, mut calls) = Hands::new();
        let guard = backend.serve(run(number), hands, CancellationToken::new()).await.unwrap();
        backend.post(run(number).into(), start(policy(Budget::default(), 50)).into(), None).await.unwrap();
        let call = soon(calls.recv()).await.unwrap();
        let seq = call.id.seq;
        let tools = 2 * usize::try_from(number).unwrap();
        call.answer(asks_for_tools(seq, tools));
        for tool in 0..tools {
            let call = soon(calls.recv()).await.unwrap();
            let body = format!("output {tool} of {number}\n").repeat(200).into_bytes();
            let whole = backend.put_blob(body).await.unwrap();
            let seq = call.id.seq;
            call.answer(tool_done(seq, Some(whole)));
        }
        let call = soon(calls.recv()).await.unwrap();
        if number < RUNS {
            let seq = call.id.seq;
            call.answer(done(seq));
            soon(ended(backend, run(number))).await;
        }
        guard.release().await;
    }
}

async fn export(backend: &EmbeddedBackend, run: RunId) -> Result<(String, bool), String> {
    let mut out = Vec::new();
    let exported = export_run(backend, run, &mut out).await.map_err(|error| error.to_string())?;
    Ok((String::from_utf8(out).unwrap(), exported.lost.is_empty()))
}

async fn whole(backend: &EmbeddedBackend) -> Whole {
    let listed = backend.list(RunQuery::newest(usize::MAX)).await.unwrap();
    let mut whole = Whole { listed, exports: BTreeMap::new(), states: BTreeMap::new() };
    for number in 1..=RUNS {
        whole.exports.insert(run(number), export(backend, run(number)).await.unwrap().0);
        for key in backend.actors(run(number)).await.unwrap() {
            whole.states.insert(key, format!("{:?}", backend.state(key).await.unwrap()));
        }
    }
    whole
}

/// A store's files, and what is in it.
struct Image {
    files: BTreeMap<String, Vec<u8>>,
    whole: Whole,
}

impl Image {
    /// With everything in the database, or with as much as possible still in its log.
    async fn new(is_checkpointed: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let backend = backend(folder.path()).unwrap();
        fill(&backend).await;
        // The notes of elapsed times in it are no part of the database.
        std::fs::remove_dir_all(folder.path().join("locks")).unwrap();
        let whole = whole(&backend).await;
        if is_checkpointed {
            let connection = rusqlite::Connection::open(folder.path().join(DATABASE)).unwrap();
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        let files = ["", "-wal", "-count"].map(|end| format!("{DATABASE}{end}"));
        let files = files.map(|name| (name.clone(), std::fs::read(folder.path().join(name)).unwrap()));
        Self { files: files.into(), whole }
    }

    /// The result with this bit flipped.
    async fn flipped(&self, name: &str, byte: usize, bit: u8) -> Outcome {
        let folder = TempDir::new().unwrap();
        for (file, bytes) in &self.files {
            let mut bytes = bytes.clone();
            if file == name {
                bytes[byte] ^= 1 << bit;
            }
            std::fs::write(folder.path().join(file), bytes).unwrap();
        }
        let store = match SqliteStore::open(folder.path().join(DATABASE)) {
            Ok(store) => store,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let has_loss = store.loss().unwrap().is_some();
        let backend = EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap();
        let mut damaged = Vec::new();
        self.compare_list(&backend, has_loss, &mut damaged).await;
        for number in 1..=RUNS {
            self.compare_run(&backend, run(number), has_loss, &mut damaged).await;
        }
        damaged.sort_unstable();
        damaged.dedup();
        match (has_loss, damaged.is_empty()) {
            (true, _) => Outcome::Lost,
            (false, true) => Outcome::Harmless,
            (false, false) => Outcome::Damaged(damaged),
        }
    }

    async fn compare_list(&self, backend: &EmbeddedBackend, has_loss: bool, damaged: &mut Vec<RunId>) {
        let Ok(listed) = backend.list(RunQuery::newest(usize::MAX)).await else {
            return damaged.extend(self.whole.exports.keys());
        };
        if has_loss {
            return;
        }
        for expected in &self.whole.listed {
            let found = listed.iter().find(|found| found.run == expected.run).expect("it is listed");
            match &found.damage {
                // A rebuilt row has the times of the last entry.
                None => {
                    let RunSummary { updated_at, elapsed, .. } = *expected;
                    assert_eq!(RunSummary { updated_at, elapsed, ..found.clone() }, *expected);
                }
                Some(_) => damaged.push(found.run),
            }
        }
        assert_eq!(listed.len(), self.whole.listed.len());
    }

    async fn compare_run(
        &self,
        backend: &EmbeddedBackend,
        run: RunId,
        has_loss: bool,
        damaged: &mut Vec<RunId>,
    ) {
        let expected = &self.whole.exports[&run];
        match export(backend, run).await {
            Err(_) => damaged.push(run),
            Ok((text, true)) if has_loss => assert!(is_of(&text, expected), "of {run}"),
            Ok((text, true)) => assert!(lines(&text) == lines(expected), "all of {run} is what was written"),
            Ok((text, false)) => {
                damaged.push(run);
                assert!(is_of(&text, expected), "what is exported of {run} is what was written");
            }
        }
        for (key, expected) in self.whole.states.iter().filter(|(key, _)| key.run() == run) {
            match backend.state(*key).await {
                Ok(state) if has_loss => drop(state),
                Ok(state) => assert!(format!("{state:?}") == *expected, "{key} stands as it stood"),
                Err(_) => damaged.push(run),
            }
        }
    }
}

/// The lines of an export without the last line and the snapshots: a damaged snapshot is emptied, as the entries
/// contain the same.
fn lines(text: &str) -> Vec<&str> {
    let skipped = |line: &&str| line.contains(r#""type":"snapshot""#) || line.contains(r#""type":"end""#);
    let mut lines = text.lines().filter(|line| !skipped(line)).collect::<Vec<_>>();
    // Each log by itself: the order of entries of different logs isn't part of their hashes.
    lines.sort_by_key(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["actor"].to_string());
    lines
}

/// Whether the other export contains all of this one.
fn is_of(text: &str, expected: &str) -> bool {
    let expected = lines(expected).into_iter().collect::<std::collections::BTreeSet<_>>();
    lines(text).iter().all(|line| expected.contains(line))
}

#[derive(Debug)]
enum Outcome {
    Harmless,
    Damaged(Vec<RunId>),
    /// Reported as having lost the latest commits.
    Lost,
    Refused(String),
}

/// Flips a bit at each of some places of a file, and counts the results.
async fn flip(image: &Image, name: &str) {
    let places = if is_long() { PLACES_LONG } else { PLACES };
    let seed = std::env::var("PROVOST_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(19);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut harmless, mut lost, mut refused, mut one, mut several) = (0, 0, 0, 0, 0);
    for _ in 0..places {
        let (byte, bit) = (random.usize(..image.files[name].len()), random.u8(..8));
        println!("seed {seed}: {name}, byte {byte}, bit {bit}");
        match image.flipped(name, byte, bit).await {
            Outcome::Harmless => harmless += 1,
            Outcome::Damaged(runs) if runs.len() == 1 => one += 1,
            Outcome::Damaged(runs) => {
                println!("    {} runs", runs.len());
                several += 1;
            }
            Outcome::Lost => lost += 1,
            Outcome::Refused(error) => {
                println!("    {error}");
                refused += 1;
            }
        }
    }
    println!(
        "{name}: {harmless} harmless, {one} in one run, {several} in several, {lost} with a loss told, {refused} refused"
    );
    assert!(refused * 20 <= places, "{refused} of {places} leave nothing that can be read");
}

#[tokio::test]
async fn a_bit_flipped_in_the_database_is_named_or_harmless() {
    flip(&Image::new(true).await, DATABASE).await;
}

#[tokio::test]
async fn a_bit_flipped_in_the_log_of_writes_is_named_or_harmless() {
    flip(&Image::new(false).await, &format!("{DATABASE}-wal")).await;
}

#[tokio::test]
async fn a_bit_flipped_in_the_count_is_harmless() {
    let image = Image::new(false).await;
    let name = format!("{DATABASE}-count");
    for byte in 0..image.files[&name].len() {
        let outcome = image.flipped(&name, byte, 0).await;
        assert!(matches!(outcome, Outcome::Harmless), "{byte}: {outcome:?}");
    }
}

#[tokio::test]
async fn what_stands_before_a_damaged_entry_is_served_and_the_entry_named() {
    let folder = TempDir::new().unwrap();
    fill(&backend(folder.path()).unwrap()).await;
    let session = ActorKey::from(SessionId::root(run(2)));
    let damage = "UPDATE entries SET body = replace(body, 'seen', 'sene') WHERE kind = 'tool_finished' AND actor = \
                  (SELECT id FROM actors WHERE key = ?1)";
    let connection = rusqlite::Connection::open(folder.path().join(DATABASE)).unwrap();
    assert!(connection.execute(damage, [session.to_string()]).unwrap() > 0);
    let backend = backend(folder.path()).unwrap();
    let before = backend.read(session, Seq::START, 1_000).await.unwrap();
    assert!(before.iter().all(|record| !matches!(record.entry, Entry::Tool(ToolEntry::Finished(_)))));
    let next = before.last().unwrap().seq.next();
    for after in [before.last().unwrap().seq, next] {
        let error = backend.read(session, after, 1_000).await.unwrap_err();
        let expected = format!(
            "the log of {session} can't be read at entry {next}: it is damaged: its hash isn't that of what it says"
        );
        assert_eq!(error.to_string(), expected, "also where reading begins behind it");
    }
    let (hands, _calls) = Hands::new();
    let served = backend.serve(run(2), hands, CancellationToken::new()).await.map(drop);
    let resumed = backend
        .post(session, provost_engine::SessionEvent::Say { text: "x".into(), by: "ann".into() }.into(), None)
        .await;
    assert!(
        matches!(resumed, Err(BackendError::Unreadable { seq, .. }) if seq == next),
        "{served:?} {resumed:?}"
    );
}

#[tokio::test]
async fn entries_that_an_index_no_longer_leads_to_are_missed() {
    let folder = TempDir::new().unwrap();
    fill(&backend(folder.path()).unwrap()).await;
    let session = ActorKey::from(SessionId::root(run(2)));
    let connection = rusqlite::Connection::open(folder.path().join(DATABASE)).unwrap();
    let last = "DELETE FROM entries WHERE actor = (SELECT id FROM actors WHERE key = ?1) AND seq >= 12";
    assert!(connection.execute(last, [session.to_string()]).unwrap() > 0);
    let backend = backend(folder.path()).unwrap();
    assert_eq!(backend.read(session, Seq::START, 1_000).await.unwrap().len(), 11);
    let error = backend.read(session, Seq(11), 1_000).await.unwrap_err();
    assert!(matches!(error, BackendError::Unreadable { seq: Seq(12), .. }), "{error}");
    let middle = "DELETE FROM entries WHERE actor = (SELECT id FROM actors WHERE key = ?1) AND seq = 5";
    assert_eq!(connection.execute(middle, [session.to_string()]).unwrap(), 1);
    let error = backend.read(session, Seq(7), 1_000).await.map(|records| records.len());
    assert_eq!(error.unwrap(), 4, "what is asked for is whole");
    let error = backend.read(session, Seq(4), 1_000).await.unwrap_err();
    assert!(matches!(error, BackendError::Unreadable { seq: Seq(5), .. }), "{error}");
}

#[tokio::test]
async fn entries_that_a_damaged_index_gives_to_another_run_are_served_as_their_own_runs_only() {
    let folder = TempDir::new().unwrap();
    fill(&backend(folder.path()).unwrap()).await;
    let whole = export(&backend(folder.path()).unwrap(), run(4)).await.unwrap().0;
    let connection = rusqlite::Connection::open(folder.path().join(DATABASE)).unwrap();
    let id = "(SELECT id FROM actors WHERE key = ?1)";
    let moved = format!("UPDATE entries SET run = {id} WHERE run = {}", id.replace("?1", "?2"));
    let runs = [run(4), run(1)].map(|run| run.to_string());
    assert!(connection.execute(&moved, runs).unwrap() > 0);
    let (text, _) = export(&backend(folder.path()).unwrap(), run(4)).await.unwrap();
    assert_eq!(lines(&text), lines(&whole));
}

#[tokio::test]
async fn a_log_of_writes_that_is_gone_is_told_until_it_is_taken_note_of() {
    let image = Image::new(false).await;
    let folder = TempDir::new().unwrap();
    for (file, bytes) in image.files.iter().filter(|(file, _)| !file.ends_with("-wal")) {
        std::fs::write(folder.path().join(file), bytes).unwrap();
    }
    let loss = || SqliteStore::open(folder.path().join(DATABASE)).unwrap().loss().unwrap();
    let first = loss().expect("it is missed");
    assert!(first.expected > first.found && first.last.starts_with(&run(RUNS).to_string()), "{first:?}");
    let again = backend(folder.path()).unwrap();
    again.post(run(9).into(), start(policy(Budget::default(), 50)).into(), None).await.unwrap();
    drop(again);
    assert_eq!(loss(), Some(first), "also where others stand in its place");
}
