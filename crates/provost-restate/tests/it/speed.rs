//! What a turn costs on the cluster, beside the embedded backend, in one run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_backend::EmbeddedBackend;
use provost_harness::{Backend, RunStatus, SystemClock};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{Scripted, Server, engine, run, start, worker};

const TURNS: u32 = 100;

/// Works on this number of runs side by side, from number `from` on; a turn is a model call and a tool call that take no time.
async fn turns(backend: &Arc<dyn Backend>, folder: &TempDir, from: u64, runs: u64) -> Duration {
    let scripted =
        Scripted { folder: folder.path().to_owned(), tool: "once", turns: TURNS, takes: Duration::ZERO };
    let started = Instant::now();
    let one = |number: u64| {
        let scripted = scripted.clone();
        async move {
            let guard =
                backend.serve(run(number), Arc::new(scripted), CancellationToken::new()).await.unwrap();
            backend.post(run(number).into(), start().into(), Some("start")).await.unwrap();
            while !matches!(
                backend.get(run(number)).await.unwrap().map(|run| run.status),
                Some(RunStatus::Stopped(_))
            ) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            guard.release().await;
        }
    };
    futures::future::join_all((from..from + runs).map(one)).await;
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn turns_on_the_cluster_and_on_one_machine() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (cluster, _worker) = worker(engine(&server, folder.path()), "w").await;
    let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
    let embedded = EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap();
    let backends: [(&str, Arc<dyn Backend>); 2] =
        [("embedded", Arc::new(embedded)), ("cluster", Arc::new(cluster))];
    let mut from = 1;
    for round in 1..=3 {
        for runs in [1, 8, 32] {
            for (name, backend) in &backends {
                let took = turns(backend, &folder, from, runs).await;
                let all = f64::from(TURNS) * runs as f64;
                println!(
                    "round {round}, {runs} runs at a time, {name}: {:.2} ms a turn of one run, {:.0} turns a second",
                    took.as_secs_f64() * 1e3 / f64::from(TURNS),
                    all / took.as_secs_f64()
                );
                from += runs;
            }
        }
    }
}
