//! Stores by themselves.

use provost_backend::conformance::{check_shared_store, check_store};
use provost_backend::{FileLeases, MemoryStore, NewEntry, OpenEffect, RunLeases as _, SessionStore as _};
use provost_engine::Effect;
use provost_event::{
    ActorKey, Block, ConversationEntry, EffectId, Elapsed, Entry, Record, Seq, SessionId, Timestamp,
    UserMessage,
};
use provost_harness::BackendError;
use provost_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::support::run;

#[test]
fn memory_is_a_store() {
    check_store(MemoryStore::new);
    check_shared_store(MemoryStore::new, Clone::clone);
}

#[test]
fn sqlite_is_a_store() {
    check_shared_store(
        || TempDir::new().unwrap(),
        |folder| SqliteStore::open(folder.path().join("state/provost.db")).unwrap(),
    );
}

#[cfg(unix)]
#[test]
fn what_sqlite_makes_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new/state/provost.db");
    let _store = SqliteStore::open(&path).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
}

#[test]
fn a_newer_database_is_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    drop(SqliteStore::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 11).unwrap();
    let error = SqliteStore::open(&path).err().unwrap();
    assert_eq!(
        error.to_string(),
        "can't open the store: its version is 11; this Provost knows version 10 (use a newer Provost)"
    );
}

#[test]
fn an_older_database_is_refused_with_advice_and_left_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    drop(SqliteStore::open(&path).unwrap());
    let older = rusqlite::Connection::open(&path).unwrap();
    older.execute("INSERT INTO actors (key) VALUES ('what it keeps')", []).unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    let error = SqliteStore::open(&path).err().unwrap();
    assert_eq!(
        error.to_string(),
        "can't open the store: its version is 1; this Provost knows version 10 (move it away: a new one is made, and the \
         Provost that made it still reads it)"
    );
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        older.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((count("actors"), count("pragma_user_version WHERE user_version = 1")), (1, 1));
}

#[test]
fn a_file_that_is_no_database_is_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    std::fs::write(&path, "dear diary, ".repeat(1000)).unwrap();
    let error = SqliteStore::open(&path).err().unwrap();
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap().len(), 12_000, "it is left as it was");
}

#[test]
fn two_processes_may_make_the_database_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    let opening = (0..8).map(|_| {
        let path = path.clone();
        std::thread::spawn(move || SqliteStore::open(path).map(drop))
    });
    let opened = opening.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap());
    let failed =
        opened.filter_map(Result::err).map(|error: BackendError| error.to_string()).collect::<Vec<_>>();
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn many_who_claim_and_look_never_both_have_it() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    let folder = TempDir::new().unwrap();
    let leases = FileLeases::new(folder.path().join("locks"));
    let (held, claimed) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while claimed.load(Ordering::SeqCst) < 300 {
                    leases.is_claimed(crate::support::run(1)).unwrap();
                    if let Ok(lease) = leases.claim(crate::support::run(1)) {
                        assert!(!held.swap(true, Ordering::SeqCst), "two have it");
                        claimed.fetch_add(1, Ordering::SeqCst);
                        held.store(false, Ordering::SeqCst);
                        drop(lease);
                    }
                }
            });
        }
    });
    assert_eq!(
        std::fs::read_dir(folder.path().join("locks")).unwrap().count(),
        0,
        "no lock file is left behind"
    );
}

/// Two appends, an effect closed and one opened, as in half a turn.
#[test]
fn a_commit_changes_few_pages() {
    const COMMITS: u64 = 150;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let session = ActorKey::from(SessionId::root(run(1)));
    let run = ActorKey::from(run(1));
    let entry = |actor: ActorKey, seq: u64| {
        let content = vec![Block::Text("Nothing was done. ".repeat(8))];
        let entry = ConversationEntry::UserMessage(UserMessage { content, by: "ann".to_owned() });
        let entry = Entry::Conversation(entry);
        let elapsed = Elapsed::default();
        NewEntry::new(Record { actor, seq: Seq(seq), at: Timestamp(seq), elapsed, entry }).unwrap()
    };
    let effect = |seq: u64| EffectId { actor: session, seq: Seq(seq) };
    let log = path.with_extension("db-wal");
    let before = log.metadata().unwrap().len();
    for commit in 1..=COMMITS {
        store.begin().unwrap();
        for actor in [run, session] {
            let last = 2 * commit;
            let both = [entry(actor, last - 1), entry(actor, last)];
            store.append(actor, Seq(last - 2), &both).unwrap();
        }
        store.close_effect(effect(commit - 1)).unwrap();
        let timer = Effect::Timer { due: Timestamp(commit), remaining_ms: 1 };
        let open = OpenEffect { id: effect(commit), effect: timer, epoch: Some(1), abort: false };
        store.put_effect(&open).unwrap();
        store.commit().unwrap();
    }
    let pages = (log.metadata().unwrap().len() - before) / 4120;
    assert!(pages < 5 * COMMITS, "{pages} pages in {COMMITS} commits");
}
