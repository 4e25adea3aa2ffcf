//! Servers, workers and executors of the tests.

mod counted;
mod scripted;
mod server;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use provost_event::{
    ActorKey, Entry, LifecycleEntry, Outcome, Record, RunId, Seq, SessionId, ToolEntry, ToolStatus,
};
use provost_harness::{BackendError, Log as _, SystemClock};
use provost_restate::{BlobPlace, Engine, Listening, RestateBackend, RunningWorker, WorkerEndpoint};

pub(crate) use counted::Counted;
pub(crate) use scripted::{
    Scripted, calls, done, policy, start, start_with, tool_ran, tools_run, work_as_worker,
};
pub(crate) use server::Server;

pub(crate) fn run(number: u64) -> RunId {
    RunId::from_entropy(number)
}

/// An engine of its own namespace, with its bodies in `folder`.
pub(crate) fn engine(server: &Server, folder: &Path) -> Engine {
    Engine::new(server.ingress(), server.admin(), BlobPlace::Folder(folder.join("blobs")))
}

pub(crate) fn listening() -> Listening {
    of_listener(TcpListener::bind("127.0.0.1:0").expect("a port"))
}

pub(crate) fn of_listener(listener: TcpListener) -> Listening {
    let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
    Listening { listener, url }
}

/// A connected backend with the real clocks.
pub(crate) async fn connect(engine: Engine) -> RestateBackend {
    RestateBackend::connect(engine, Arc::new(SystemClock)).await.expect("a backend")
}

/// A backend that is a worker of this name.
pub(crate) async fn worker(engine: Engine, name: &str) -> (RestateBackend, RunningWorker) {
    let backend = connect(engine).await;
    let worker = begin(&backend, name, listening()).await.expect("a worker");
    (backend, worker)
}

/// Has a connected backend be a worker of this name, reached there.
pub(crate) async fn begin(
    backend: &RestateBackend,
    name: &str,
    own: Listening,
) -> Result<RunningWorker, BackendError> {
    let endpoint = WorkerEndpoint { name: name.to_owned(), serves: Vec::new(), own, deciders: None };
    backend.start_worker(endpoint).await
}

/// Waits for something that must come within two minutes.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(120), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// Waits for something that is looked at again and again.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let reached = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(what, reached).await;
}

/// How the tool calls of a run's first agent have ended, in the log's order.
pub(crate) async fn tool_statuses(backend: &RestateBackend, number: u64) -> Vec<ToolStatus> {
    let log = log(backend, SessionId::root(run(number))).await;
    let statuses = log.iter().filter_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some(finished.status),
        _ => None,
    });
    statuses.collect()
}

/// Waits for the end of `run`.
pub(crate) async fn ended(backend: &RestateBackend, run: RunId) -> Outcome {
    let ended = async {
        let mut records = backend.subscribe(run.into(), Seq::START);
        while let Some(record) = records.next().await {
            let Ok(record) = record else { continue };
            if let Entry::Lifecycle(LifecycleEntry::Ended(ended)) = &record.entry {
                return ended.outcome.clone();
            }
        }
        panic!("the subscription ended")
    };
    soon(&format!("run {run} ends"), ended).await
}

/// All entries of a log.
pub(crate) async fn log(backend: &RestateBackend, key: impl Into<ActorKey>) -> Vec<Arc<Record>> {
    backend.read(key.into(), Seq::START, usize::MAX).await.expect("a log")
}

pub(crate) fn kinds(log: &[Arc<Record>]) -> Vec<&'static str> {
    log.iter().map(|record| record.entry.kind()).collect()
}
