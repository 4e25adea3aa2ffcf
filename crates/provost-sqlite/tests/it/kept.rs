//! Maintaining a store: backups, checks, salvaging readable data, removing runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_backend::{EmbeddedBackend, KeptBecause, PruneRequest, export_run, plan_prune, prune};
use provost_event::{ActorKey, Budget, Seq, SessionId};
use provost_harness::{BackendError, Blobs as _, Catalog as _, Log as _, RunQuery, SystemClock, Worker as _};
use provost_sqlite::{SqliteStore, StoreProblem, back_up, inspect};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{Hands, asks_for_tools, done, ended, policy, run, soon, start, tool_done};

const ALL: PruneRequest = PruneRequest { idle_since: None, keep: Some(0), suspended: false };

fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("provost.db")
}

fn backend(path: &Path) -> EmbeddedBackend {
    EmbeddedBackend::new(SqliteStore::open(path).unwrap(), Arc::new(SystemClock)).unwrap()
}

/// A run with one tool call, whose whole output is stored beside its log.
async fn work(backend: &EmbeddedBackend, number: u64, output: &[u8], to_the_end: bool) {
    let (hands, mut calls) = Hands::new();
    let guard = backend.serve(run(number), hands, CancellationToken::new()).await.unwrap();
    backend.post(run(number).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let call = soon(calls.recv()).await.unwrap();
    let seq = call.id.seq;
    call.answer(asks_for_tools(seq, 1));
    let whole = backend.put_blob(output.to_vec()).await.unwrap();
    let call = soon(calls.recv()).await.unwrap();
    let seq = call.id.seq;
    call.answer(tool_done(seq, Some(whole)));
    let call = soon(calls.recv()).await.unwrap();
    if to_the_end {
        let seq = call.id.seq;
        call.answer(done(seq));
        soon(ended(backend, run(number))).await;
    }
    guard.release().await;
}

async fn export(backend: &EmbeddedBackend, number: u64) -> String {
    let mut out = Vec::new();
    assert_eq!(export_run(backend, run(number), &mut out).await.unwrap().lost, []);
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn a_settled_store_is_whole_in_its_database_file_alone() {
    let folder = TempDir::new().unwrap();
    let first = backend(&database(&folder));
    work(&first, 1, b"all of it", true).await;
    let text = export(&first, 1).await;
    first.settle().await.unwrap();
    let copy = TempDir::new().unwrap();
    std::fs::copy(database(&folder), database(&copy)).unwrap();
    assert_eq!(export(&backend(&database(&copy)), 1).await, text);
    assert!(inspect(&database(&copy)).unwrap().is_whole());
}

#[tokio::test]
async fn a_backup_made_while_a_run_is_worked_on_reads_as_the_same_elsewhere() {
    let folder = TempDir::new().unwrap();
    let first = backend(&database(&folder));
    work(&first, 1, b"all of it", true).await;
    let (hands, mut calls) = Hands::new();
    let _guard = first.serve(run(2), hands, CancellationToken::new()).await.unwrap();
    first.post(run(2).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let call = soon(calls.recv()).await.unwrap();
    let before = [export(&first, 1).await, export(&first, 2).await];
    let file = folder.path().join("backup.db");
    let made = back_up(&database(&folder), &file).unwrap();
    assert_eq!(made.runs, [run(1), run(2)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let error = back_up(&database(&folder), &file).unwrap_err().to_string();
    assert!(error.contains("never written over another file"), "{error}");
    let restored = TempDir::new().unwrap();
    std::fs::copy(&file, database(&restored)).unwrap();
    let other = backend(&database(&restored));
    assert_eq!([export(&other, 1).await, export(&other, 2).await], before);
    let (hands, mut again) = Hands::new();
    let _other_guard = other.serve(run(2), hands, CancellationToken::new()).await.unwrap();
    soon(again.recv()).await.unwrap().done();
    soon(ended(&other, run(2))).await;
    call.done();
    soon(ended(&first, run(2))).await;
}

#[tokio::test]
async fn a_backup_of_a_damaged_store_is_refused_and_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    work(&backend(&database(&folder)), 1, b"all of it", true).await;
    rusqlite::Connection::open(database(&folder))
        .unwrap()
        .execute("UPDATE entries SET at = at + 1 WHERE seq = 3", [])
        .unwrap();
    let file = folder.path().join("backup.db");
    let error = back_up(&database(&folder), &file).unwrap_err().to_string();
    assert!(error.contains("what was copied is damaged: the log of"), "{error}");
    assert!(!file.exists());
}

#[tokio::test]
async fn all_that_is_damaged_is_named_and_what_is_derived_is_no_loss() {
    let folder = TempDir::new().unwrap();
    let first = backend(&database(&folder));
    for number in 1..=3 {
        work(&first, number, format!("output {number}").as_bytes(), true).await;
    }
    let listed = first.list(RunQuery::newest(9)).await.unwrap();
    assert_eq!(inspect(&database(&folder)).unwrap().problems, []);
    let connection = rusqlite::Connection::open(database(&folder)).unwrap();
    let change = |sql: &str| assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    change("UPDATE runs SET turns = 77 WHERE run = (SELECT min(run) FROM runs)");
    change("UPDATE heads SET head = head + 1 WHERE key = (SELECT min(key) FROM heads)");
    let found = inspect(&database(&folder)).unwrap();
    assert!(found.is_whole() && found.problems.len() == 2, "{:?}", found.problems);
    let again = backend(&database(&folder));
    let time = |mut list: Vec<provost_harness::RunSummary>| {
        list.iter_mut().for_each(|run| run.updated_at = provost_event::Timestamp(0));
        list
    };
    assert_eq!(
        time(again.list(RunQuery::newest(9)).await.unwrap()),
        time(listed),
        "the row is made of the log"
    );

    let session = ActorKey::from(SessionId::root(run(2)));
    change(&format!(
        "DELETE FROM entries WHERE seq = 4 AND actor = (SELECT id FROM actors WHERE key = '{session}')"
    ));
    change("UPDATE blobs SET body = x'00' WHERE rowid = 3");
    let found = inspect(&database(&folder)).unwrap();
    let lost = found.problems.iter().filter(|problem| problem.is_loss()).collect::<Vec<_>>();
    let [StoreProblem::Entries { actor, seq, .. }, StoreProblem::Output { .. }] = lost.as_slice() else {
        panic!("{lost:?}")
    };
    assert_eq!((*actor, *seq), (session, Seq(4)));
    assert_eq!(found.damaged_runs().into_iter().collect::<Vec<_>>(), [run(2)]);
    change(&format!("DELETE FROM pieces WHERE log = -(SELECT id FROM actors WHERE key = '{}')", run(1)));
    let order = format!("the database: the order of the entries of {}: it lacks some of them", run(1));
    let found = inspect(&database(&folder)).unwrap();
    assert!(found.problems.iter().any(|problem| problem.to_string() == order), "{:?}", found.problems);
    assert!(export(&again, 1).await.contains("output 1"), "the other runs are whole");
}

#[tokio::test]
async fn pruned_runs_are_gone_with_their_outputs_and_the_others_stay_as_they_were() {
    let folder = TempDir::new().unwrap();
    let first = backend(&database(&folder));
    let large = |number: u64| format!("output {number}\n").repeat(20_000).into_bytes();
    for number in 1..=4 {
        work(&first, number, &large(number.min(3)), number != 2).await;
    }
    first.settle().await.unwrap();
    let size = || std::fs::metadata(database(&folder)).unwrap().len();
    let (before, kept) = (size(), [export(&first, 2).await, export(&first, 4).await]);
    let plan = plan_prune(&first, PruneRequest { keep: Some(1), ..ALL }).await.unwrap();
    assert_eq!(plan.remove.iter().map(|run| run.run).collect::<Vec<_>>(), [run(3), run(1)]);
    assert_eq!((plan.kept[0].0.run, plan.kept[0].1), (run(2), KeptBecause::MayGoOn));
    let pruned = prune(&first, plan).await.unwrap();
    assert_eq!(
        (pruned.runs.as_slice(), pruned.outputs),
        ([run(3), run(1)].as_slice(), 1),
        "run 4 has the third's output"
    );
    assert_eq!((pruned.outputs_stay, pruned.space_stays), (None, None));
    first.settle().await.unwrap();
    assert!(size() + 150_000 < before, "{} of {before}", size());
    assert_eq!([export(&first, 2).await, export(&first, 4).await], kept);
    assert!(first.actors(run(1)).await.unwrap().is_empty());
    assert!(inspect(&database(&folder)).unwrap().is_whole());
    // Removed data isn't reported as missing, and numbers continue.
    let again = SqliteStore::open(database(&folder)).unwrap();
    assert_eq!(again.loss().unwrap(), None);
    work(&first, 5, b"more", true).await;
    assert!(inspect(&database(&folder)).unwrap().is_whole());
}

#[tokio::test]
async fn a_run_that_is_worked_on_is_never_pruned() {
    let folder = TempDir::new().unwrap();
    let (worker, other) = (backend(&database(&folder)), backend(&database(&folder)));
    work(&worker, 1, b"all of it", true).await;
    let plan = plan_prune(&other, ALL).await.unwrap();
    assert_eq!(plan.remove.len(), 1);
    // It is resumed between the plan and the removal.
    let (hands, _calls) = Hands::new();
    let guard = worker.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    assert_eq!(prune(&other, plan.clone()).await.unwrap().runs, []);
    assert!(!other.actors(run(1)).await.unwrap().is_empty());
    guard.release().await;
    assert_eq!(prune(&other, plan).await.unwrap().runs, [run(1)]);
    let read = worker.read(SessionId::root(run(1)).into(), Seq::START, 10).await;
    assert!(matches!(read.as_deref(), Ok([])), "{read:?}");
    let say = provost_engine::RunEvent::Say { agent: 0, text: "x".into(), by: "ann".into() };
    let said = worker.post(run(1).into(), say.into(), None).await;
    assert!(
        !matches!(said, Ok(posted) if posted.changed) || matches!(said, Err(BackendError::Unknown { .. })),
        "{said:?}"
    );
}
