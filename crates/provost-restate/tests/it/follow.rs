//! How the holder of a run learns of its entries.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_engine::{Actor, RunEvent};
use provost_event::{Entry, LifecycleEntry, Seq, SessionId};
use provost_harness::{BackendError, Log as _, PlacedRecord, RunPosition, Worker as _, read_run};
use provost_restate::{Engine, RestateBackend, RunningWorker};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{Counted, Scripted, Server, connect, ended, engine, log, run, soon, start, worker};

const TURNS: u32 = 20;

type Records = BoxStream<'static, Result<PlacedRecord, BackendError>>;

/// The places of all entries, through the first that `is_last`.
async fn through(records: &mut Records, is_last: impl Fn(&PlacedRecord) -> bool) -> Vec<RunPosition> {
    let mut places = Vec::new();
    while let Some(placed) = soon("the next entry", records.next()).await {
        let placed = placed.unwrap();
        places.push(placed.position);
        if is_last(&placed) {
            return places;
        }
    }
    panic!("the subscription ended")
}

/// An engine, the worker that will hold the run, whose requests are counted, and another client.
struct Place {
    folder: TempDir,
    counted: Counted,
    holder: RestateBackend,
    other: RestateBackend,
    _server: Server,
    _worker: RunningWorker,
}

impl Place {
    async fn new() -> Option<Self> {
        let server = Server::start().await?;
        let folder = TempDir::new().unwrap();
        let counted = Counted::start(&server.ingress()).await;
        let through_it = Engine { ingress: counted.url.clone(), ..engine(&server, folder.path()) };
        let (holder, worker) = worker(through_it, "w").await;
        let other = connect(engine(&server, folder.path())).await;
        Some(Self { folder, counted, holder, other, _server: server, _worker: worker })
    }
}

fn scripted(folder: &TempDir) -> Arc<Scripted> {
    let folder = folder.path().to_owned();
    Arc::new(Scripted { folder, tool: "look", turns: TURNS, takes: Duration::ZERO })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_does_not_ask_for_what_its_own_effects_have_led_to() {
    let Some(place) = Place::new().await else { return };
    let Place { folder, counted, holder, other, .. } = &place;
    other.post(run(1).into(), start().into(), None).await.unwrap();
    let mut records = holder.subscribe_run(run(1), RunPosition::START);
    let _guard = holder.serve(run(1), scripted(folder), CancellationToken::new()).await.unwrap();

    let is_end =
        |placed: &PlacedRecord| matches!(placed.record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_)));
    let mut seen = through(&mut records, is_end).await;
    // The run's own end comes after that of its agent.
    seen.extend(through(&mut records, is_end).await);
    let all = read_run(other, run(1), RunPosition::START, usize::MAX).await.unwrap();
    assert_eq!(seen, all.iter().map(|placed| placed.position).collect::<Vec<_>>());
    let calls = counted.calls();
    let of = |handler: &str| calls.get(handler).copied().unwrap_or_default();
    assert!(of("order") + of("read") < 10, "{TURNS} turns: {calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_waits_is_told_of_what_others_post() {
    let Some(place) = Place::new().await else { return };
    let Place { folder, counted, holder, other, .. } = &place;
    std::fs::write(folder.path().join("hang"), "").unwrap();
    other.post(run(1).into(), start().into(), None).await.unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let mut records = holder.subscribe_run(run(1), RunPosition::START);
    tokio::spawn(async move {
        while let Some(Ok(placed)) = records.next().await {
            let _ = sender.send(format!("{:?}", placed.record.entry));
        }
    });
    let _guard = holder.serve(run(1), scripted(folder), CancellationToken::new()).await.unwrap();

    let reads = || counted.calls().get("order").copied().unwrap_or_default();
    for text in ["one", "two", "three"] {
        let before = reads();
        let said = RunEvent::Say { agent: 0, text: text.to_owned(), by: "ann".to_owned() };
        assert!(other.post(run(1).into(), said.into(), None).await.unwrap().changed);
        let told = async { while !seen.recv().await.unwrap().contains(text) {} };
        // A holder looks by itself too, but far more seldom.
        tokio::time::timeout(Duration::from_secs(15), told).await.expect("it is told");
        // It has read what is new, looks once more, and waits then.
        soon("it has looked", async {
            while reads() < before + 2 {
                tokio::task::yield_now().await
            }
        })
        .await;
    }
}

/// A list of runs reads the state of each and of its agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_read_by_one_request() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (holder, _worker) = worker(engine(&server, folder.path()), "w").await;
    holder.post(run(1).into(), start().into(), None).await.unwrap();
    let _guard = holder.serve(run(1), scripted(&folder), CancellationToken::new()).await.unwrap();
    let outcome = ended(&holder, run(1)).await;

    let counted = Counted::start(&server.ingress()).await;
    let client = connect(Engine { ingress: counted.url.clone(), ..engine(&server, folder.path()) }).await;
    let before = counted.calls().values().sum::<usize>();
    let Actor::Run(state) = client.state(run(1).into()).await.unwrap() else { panic!("a run") };
    let Actor::Session(root) = client.state(SessionId::root(run(1)).into()).await.unwrap() else {
        panic!("a session")
    };
    assert_eq!((state.outcome(), root.head()), (Some(&outcome), last_entry(&holder).await));
    assert_eq!(counted.calls().values().sum::<usize>() - before, 2, "{:?}", counted.calls());
}

async fn last_entry(backend: &RestateBackend) -> Seq {
    log(backend, SessionId::root(run(1))).await.last().expect("an entry").seq
}
