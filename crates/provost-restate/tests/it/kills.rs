//! Servers and workers that are killed, stopped or replaced in the middle of runs.

use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use provost_engine::RunEvent;
use provost_event::{Outcome, ToolStatus};
use provost_harness::{Catalog as _, Log as _, Worker as _};
use provost_restate::{BlobPlace, Engine, Listening, WorkerEndpoint};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Scripted, Server, begin, connect, ended, engine, kinds, listening, log, run, soon, start, tool_statuses,
    tools_run, until, work_as_worker, worker,
};

const TURNS: u32 = 5;

fn scripted(folder: &Path) -> Scripted {
    Scripted { folder: folder.to_owned(), tool: "once", turns: TURNS, takes: Duration::from_millis(100) }
}

/// Not a test: a worker that other tests kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn process_that_works() {
    let Ok(folder) = std::env::var("PROVOST_TEST_FOLDER") else { return };
    let of = |name: &str| std::env::var(name).expect(name);
    let folder = Path::new(&folder);
    let parsed = |name: &str| of(name).parse().expect("a URL");
    let place = BlobPlace::Folder(folder.join("blobs"));
    let engine = Engine::new(parsed("PROVOST_TEST_INGRESS"), parsed("PROVOST_TEST_ADMIN"), place);
    let (backend, _worker) = worker(engine, &of("PROVOST_TEST_WORKER")).await;
    println!("works");
    work_as_worker(backend, scripted(folder), CancellationToken::new()).await;
}

struct Process(Child);

impl Process {
    fn start(server: &Server, folder: &Path, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "kills::process_that_works", "--ignored", "--nocapture"])
            .env("PROVOST_TEST_FOLDER", folder)
            .env("PROVOST_TEST_INGRESS", server.ingress().as_str())
            .env("PROVOST_TEST_ADMIN", server.admin().as_str())
            .env("PROVOST_TEST_WORKER", name)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker");
        let lines = std::io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let works = lines.map_while(Result::ok).any(|line| line.contains("works"));
        assert!(works, "the worker has ended");
        Self(child)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_interrupts_nothing() {
    let Some(mut server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, _worker) = worker(engine(&server, folder.path()), "w").await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(work_as_worker(backend.clone(), scripted(folder.path()), stop.clone()));
    for number in 1..=4 {
        backend.post(run(number).into(), start().into(), Some("start")).await.unwrap();
    }
    for tools in [2, 8] {
        until("tools are run", || tools_run(folder.path()).len() >= tools).await;
        server.kill();
        server.resume().await;
    }
    for number in 1..=4 {
        assert!(matches!(ended(&backend, run(number)).await, Outcome::Completed { .. }));
        assert_eq!(tool_statuses(&backend, number).await, vec![ToolStatus::Ok; TURNS as usize]);
        assert!(!kinds(&log(&backend, run(number)).await).contains(&"resumed"), "no run was interrupted");
    }
    let counts = tools_run(folder.path());
    assert!(counts.len() == 4 * TURNS as usize && counts.values().all(|count| *count == 1), "{counts:?}");
    stop.cancel();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_whose_worker_dies_after_the_permit_is_not_run_again() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    // Dies between the permit and the tool's first action.
    std::fs::write(folder.path().join("die"), "").unwrap();
    let mut first = Process::start(&server, folder.path(), "w");
    let backend = connect(engine(&server, folder.path())).await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    until("the worker dies", || first.0.try_wait().is_ok_and(|ended| ended.is_some())).await;
    let again = Instant::now();
    let _second = Process::start(&server, folder.path(), "w");
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    eprintln!("a run of {TURNS} turns has ended {:?} after its worker began to start again", again.elapsed());
    let statuses = tool_statuses(&backend, 1).await;
    assert_eq!(statuses.iter().filter(|status| **status == ToolStatus::Unknown).count(), 1, "{statuses:?}");
    assert_eq!(statuses.first(), Some(&ToolStatus::Unknown));
    let counts = tools_run(folder.path());
    assert!(counts.len() == statuses.len() - 1 && counts.values().all(|count| *count == 1), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_of_a_worker_that_hangs_go_on_elsewhere() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let hung = Process::start(&server, folder.path(), "one");
    let backend = connect(engine(&server, folder.path())).await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    until("a tool is run", || !tools_run(folder.path()).is_empty()).await;
    let _other = Process::start(&server, folder.path(), "two");
    hung.signal("STOP");
    let stopped = Instant::now();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    let took = stopped.elapsed();
    eprintln!("a run has ended {took:?} after its worker was stopped");
    assert!(took < Duration::from_secs(30), "it took {took:?}");
    let before = (log(&backend, run(1)).await.len(), tools_run(folder.path()));
    // What it still has in hand counts nowhere.
    hung.signal("CONT");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((log(&backend, run(1)).await.len(), tools_run(folder.path())), before);
    assert!(before.1.values().all(|count| *count == 1), "{:?}", before.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_drains_leaves_nothing_to_repeat() {
    // Some of them are between two effects at any moment.
    const RUNS: u32 = 12;
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let client = engine(&server, folder.path());
    let stop = CancellationToken::new();
    let (backend, first) = worker(client.clone(), "one").await;
    let working = tokio::spawn(work_as_worker(backend.clone(), scripted(folder.path()), stop.clone()));
    for number in 1..=u64::from(RUNS) {
        backend.post(run(number).into(), start().into(), Some("start")).await.unwrap();
    }
    until("tools are run", || tools_run(folder.path()).len() >= RUNS as usize).await;
    // A second build beside the first: what comes from here on is decided there.
    let (other, _second) = worker(client, "two").await;
    assert_eq!(first.drain(Duration::from_secs(10)).await, 0);
    assert!(!first.is_ready());
    stop.cancel();
    working.await.unwrap();
    first.stop().await;
    let going_on = CancellationToken::new();
    let working = tokio::spawn(work_as_worker(other.clone(), scripted(folder.path()), going_on.clone()));
    for number in 1..=u64::from(RUNS) {
        assert!(matches!(ended(&other, run(number)).await, Outcome::Completed { .. }));
        assert_eq!(tool_statuses(&other, number).await, vec![ToolStatus::Ok; TURNS as usize]);
        assert!(!kinds(&log(&other, run(number)).await).contains(&"resumed"), "it counts as interrupted");
    }
    let counts = tools_run(folder.path());
    assert!(
        counts.len() == RUNS as usize * TURNS as usize && counts.values().all(|count| *count == 1),
        "{counts:?}"
    );
    going_on.cancel();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_that_decided_alone_is_replaced_by_one_behind_a_shared_address() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let client = engine(&server, folder.path());
    let mut alone = Process::start(&server, folder.path(), "w");
    let backend = connect(client.clone()).await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    until("tools are run", || !tools_run(folder.path()).is_empty()).await;
    alone.kill();
    // What it had begun, its own beat too, waits at an address where no process listens.
    let endpoint = WorkerEndpoint {
        name: "w".to_owned(),
        serves: Vec::new(),
        own: listening(),
        deciders: Some(listening()),
    };
    let successor = connect(client).await;
    let started = soon("it starts", successor.start_worker(endpoint)).await;
    let worker = started.unwrap();
    let (stop, again) = (CancellationToken::new(), scripted(folder.path()));
    let working = tokio::spawn(work_as_worker(successor.clone(), again, stop.clone()));
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    assert!(worker.is_ready());
    stop.cancel();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_go_on_when_the_worker_that_decides_has_left() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let client = engine(&server, folder.path());
    let (backend, first) = worker(client.clone(), "one").await;
    // It came last, so that it decides for all.
    let (_, second) = worker(client, "two").await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    second.stop().await;
    let decided = backend.post(run(2).into(), start().into(), Some("start"));
    assert!(soon("a decision", decided).await.unwrap().changed);
    until("the first worker is heard of", || first.is_ready()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_go_on_while_the_worker_that_decides_hangs() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, first) = worker(engine(&server, folder.path()), "one").await;
    let hung = Process::start(&server, folder.path(), "two");
    hung.signal("STOP");
    let decided = backend.post(run(1).into(), start().into(), Some("start"));
    assert!(soon("a decision", decided).await.unwrap().changed);
    until("the first worker is heard of", || first.is_ready()).await;
}

/// Whether the engine sends anything to `url`.
async fn is_used(server: &Server, url: &str) -> bool {
    let at = server.admin().join("deployments").expect("a URL");
    let answer = mcp_reqwest::get(at).await.expect("an answer").text().await.expect("a text");
    answer.contains(url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hung_worker_was_asked_to_decide_is_decided_elsewhere_and_it_works_again_when_it_goes_on() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let hung = Process::start(&server, folder.path(), "one");
    let at =
        mcp_reqwest::get(server.admin().join("deployments").unwrap()).await.unwrap().text().await.unwrap();
    let url = at.split("\"uri\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    assert!(is_used(&server, &url).await, "{at}");
    // It takes no runs, and decides on what is new from here on.
    let (backend, _second) = worker(engine(&server, folder.path()), "two").await;
    hung.signal("STOP");
    soon("it is asked for nothing", async { while is_used(&server, &url).await {} }).await;
    hung.signal("CONT");
    soon("it is asked again", async { while !is_used(&server, &url).await {} }).await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    assert!(tools_run(folder.path()).values().all(|count| *count == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_worker_holds_runs_and_its_name_is_its_own() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let client = engine(&server, folder.path());
    let (_, first) = worker(client.clone(), "w").await;
    let backend = connect(client.clone()).await;
    let executor = std::sync::Arc::new(scripted(folder.path()));
    let refused = backend.serve(run(1), executor, CancellationToken::new()).await.map(drop);
    assert!(refused.unwrap_err().to_string().contains("provost worker"));
    assert!(first.is_ready());
    let (_, second) = worker(client, "w").await;
    let error = soon("the first one learns of it", first.failed()).await;
    assert!(error.to_string().contains("another process has taken the name `w`"), "{error}");
    assert!(second.is_ready() && !first.is_ready());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_not_reached_at_the_address_of_another() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let backend = connect(engine(&server, folder.path())).await;
    let own = listening();
    let address = own.url.clone();
    let _worker = begin(&backend, "w", own).await.unwrap();
    let astray = connect(engine(&server, folder.path())).await;
    let wrong = Listening { url: address.clone(), ..listening() };
    let refused = begin(&astray, "x", wrong).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains(address.as_str()) && refused.contains("--advertise"), "{refused}");
    let deciders = Some(Listening { url: address.clone(), ..listening() });
    let own_for_all = WorkerEndpoint { name: "y".to_owned(), serves: Vec::new(), own: listening(), deciders };
    let refused = astray.start_worker(own_for_all).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains(address.as_str()) && refused.contains("--advertise-shared"), "{refused}");
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let stop = CancellationToken::new();
    let working = tokio::spawn(work_as_worker(backend.clone(), scripted(folder.path()), stop.clone()));
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    stop.cancel();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_no_worker_takes_can_be_cancelled() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, _worker) = worker(engine(&server, folder.path()), "w").await;
    // One that was never taken, and one whose holder has died amid a call.
    let mut process = Process::start(&server, folder.path(), "dies");
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    until("a tool is run", || !tools_run(folder.path()).is_empty()).await;
    process.kill();
    backend.post(run(2).into(), start().into(), Some("start")).await.unwrap();
    for number in [1, 2] {
        let id = run(number);
        let cancel = RunEvent::Cancel { agent: None, by: "ann".to_owned() };
        assert!(backend.post(id.into(), cancel.into(), None).await.unwrap().changed);
        let is_free = async { while backend.holder(id).await.unwrap().is_some() {} };
        soon("its holder counts as gone", is_free).await;
        backend.recover_unheld(id).await.unwrap();
        let outcome = ended(&backend, id).await;
        assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    }
    let never_taken = backend.get(run(2)).await.unwrap().unwrap();
    assert_eq!(never_taken.tokens, 0, "its call wasn't begun");
    // A worker that comes later finds nothing to do.
    assert!(backend.waiting_runs(10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_could_not_be_released_is_taken_again() {
    let Some(mut server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (backend, _worker) = worker(engine(&server, folder.path()), "w").await;
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    let executor = std::sync::Arc::new(scripted(folder.path()));
    let guard = backend.serve(run(1), executor.clone(), CancellationToken::new()).await.unwrap();
    assert!(backend.waiting_runs(10).await.unwrap().is_empty(), "it is worked on");
    server.kill();
    guard.release().await;
    server.resume().await;
    // For the engine its holder still lives.
    assert!(soon("an answer", backend.holder(run(1))).await.unwrap().is_some());
    assert_eq!(backend.waiting_runs(10).await.unwrap(), [run(1)]);
    let _guard = backend.serve(run(1), executor, CancellationToken::new()).await.unwrap();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
}
