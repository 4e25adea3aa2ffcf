//! Posts to a run that another process holds: real processes, killed at each commit of theirs.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use provost_backend::{EmbeddedBackend, SessionStore as _};
use provost_engine::RunEvent;
use provost_event::{Budget, ConversationEntry, Entry, Seq, SessionId};
use provost_harness::{BackendError, Log as _, SystemClock, Worker as _};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::deadly::{Deadly, DeathPoint, Side};
use crate::support::{Hands, policy, run, start};

/// Commits of the holder at which it is killed: its take-over, and its decisions.
const HOLDER_COMMITS: usize = 3;
/// Commits of a sender at which it is killed: its request, and what it does when the holder is gone.
const SENDER_COMMITS: usize = 2;

fn backend(path: &Path, at: Option<DeathPoint>) -> EmbeddedBackend {
    let store = Deadly::store(SqliteStore::open(path).unwrap(), at);
    EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap()
}

fn hello() -> RunEvent {
    RunEvent::Say { agent: 0, text: "hello".to_owned(), by: "ann".to_owned() }
}

/// Not a test: a process of the next test. Its last line on standard output says what came of it.
#[tokio::test]
#[ignore = "started by another test"]
async fn process_that_holds_or_sends() {
    let Some(path) = std::env::var_os("PROVOST_TEST_DATABASE") else { return };
    let at = std::env::var("PROVOST_TEST_DEATH").ok().map(|at| at.parse().unwrap());
    let backend = backend(Path::new(&path), at);
    if std::env::var_os("PROVOST_TEST_SENDS").is_none() {
        let (hands, _calls) = Hands::new();
        let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
        say("holds");
        return std::future::pending().await;
    }
    match backend.post(run(1).into(), hello().into(), None).await {
        Ok(posted) => say(if posted.changed { "decided" } else { "ignored" }),
        Err(BackendError::Undecided { .. }) => say("undecided"),
        Err(error) => say(&format!("failed: {error}")),
    }
}

fn say(words: &str) {
    println!("\n: {words}");
    std::io::stdout().flush().unwrap();
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(path: &Path, at: Option<DeathPoint>, sends: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "mailbox::process_that_holds_or_sends", "--ignored", "--nocapture"]);
        command.env("PROVOST_TEST_DATABASE", path);
        if let Some(at) = at {
            command.env("PROVOST_TEST_DEATH", at.to_string());
        }
        if sends {
            command.env("PROVOST_TEST_SENDS", "");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What it says; `None` if it dies before.
    fn says(&mut self) -> Option<String> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(": ").map(str::to_owned))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn points(commits: usize) -> Vec<Option<DeathPoint>> {
    let each = (1..=commits)
        .flat_map(|commit| [Side::Before, Side::After].map(|side| Some(DeathPoint { commit, side })));
    std::iter::once(None).chain(each).collect()
}

/// How often the message is in the log.
async fn count(backend: &EmbeddedBackend) -> usize {
    let log = backend.read(SessionId::root(run(1)).into(), Seq::START, usize::MAX).await.unwrap();
    log.iter()
        .filter(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::UserMessage(_))))
        .count()
}

/// One holder and one sender, each killed at its point, and a second holder killed at its take-over.
async fn check(holder: Option<DeathPoint>, sender: Option<DeathPoint>, second: DeathPoint) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    let begin = start(policy(Budget::default(), 10));
    backend(&path, None).post(run(1).into(), begin.into(), None).await.unwrap();
    let before = count(&backend(&path, None)).await;
    let mut holding = Process::start(&path, holder, false);
    let _ = holding.says();
    let mut sending = Process::start(&path, sender, true);
    let said = sending.says();
    drop((sending, holding));
    let mut again = Process::start(&path, Some(second), false);
    assert_eq!(again.says(), None, "it dies at its take-over");
    drop(again);
    // The next holder.
    let next = backend(&path, None);
    let (hands, _calls) = Hands::new();
    let guard = next.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    let counted = count(&next).await - before;
    let case = format!("holder {holder:?}, sender {sender:?}, second {second:?}: {said:?}, {counted} times");
    match said.as_deref() {
        Some("decided") => assert_eq!(counted, 1, "{case}"),
        None if sender.is_some() => assert!(counted <= 1, "{case}"),
        _ => panic!("{case}"),
    }
    guard.release().await;
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(store.mailbox().runs_with_requests().unwrap().is_empty(), "a request was left: {case}");
    said
}

#[tokio::test]
async fn a_post_counts_once_or_not_at_all_wherever_its_sender_and_the_holder_are_killed() {
    let mut decided = 0;
    let mut died = 0;
    for (number, holder) in points(HOLDER_COMMITS).into_iter().enumerate() {
        for sender in points(SENDER_COMMITS) {
            let side = if number % 2 == 0 { Side::Before } else { Side::After };
            match check(holder, sender, DeathPoint { commit: 1, side }).await {
                Some(_) => decided += 1,
                None => died += 1,
            }
        }
    }
    // A sender has its second commit only where the holder was gone.
    assert!(decided >= 7 && died >= 14, "{decided} were decided on, {died} senders died");
}
