//! The backend is checked as any backend is.
//!
//! The suite for stores doesn't apply: it is about transactions of one writer over a `SessionStore`, which this backend
//! doesn't have. Its logs, effects and lists are checked through the ports.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::conformance::{BackendMaker, StuckHolder, check_backend};
use provost_event::RunId;
use provost_harness::{Backend, Clock};
use provost_restate::{Engine, RestateBackend, RunningWorker, WorkerEndpoint, shared_listener};
use tempfile::TempDir;

use crate::support::{Server, engine, listening, of_listener};

struct OnRestate {
    server: Server,
    places: AtomicU64,
}

/// A namespace, its bodies, and the workers in it. They share the address for decisions.
struct Namespace {
    engine: Engine,
    deciders: SocketAddr,
    _deciders: std::net::TcpListener,
    workers: Mutex<Vec<RunningWorker>>,
    _folder: TempDir,
}

#[async_trait]
impl BackendMaker for OnRestate {
    type StoreLocation = Namespace;

    async fn place(&self) -> Namespace {
        let folder = TempDir::new().unwrap();
        let number = self.places.fetch_add(1, Ordering::Relaxed);
        // The workers measure all waits themselves: their clocks are simulated.
        let engine = Engine {
            namespace: format!("place{number}"),
            timer_lead: Duration::MAX,
            ..engine(&self.server, folder.path())
        };
        // It is bound and accepts nothing itself: it keeps the port.
        let kept = reserve();
        let deciders = kept.local_addr().unwrap();
        Namespace { engine, deciders, _deciders: kept, workers: Mutex::default(), _folder: folder }
    }

    async fn open(&self, place: &Namespace, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        let backend = RestateBackend::connect(place.engine.clone(), clock).await.unwrap();
        let number = place.workers.lock().unwrap().len();
        let endpoint = WorkerEndpoint {
            name: format!("w{number}"),
            serves: Vec::new(),
            own: listening(),
            deciders: Some(of_listener(shared_listener(place.deciders).unwrap())),
        };
        let worker = backend.start_worker(endpoint).await.unwrap();
        place.workers.lock().unwrap().push(worker);
        Arc::new(backend)
    }

    /// A post never waits for the process that holds the run: the object decides.
    async fn hold(&self, _: &Namespace, _: RunId) -> Option<Box<dyn StuckHolder>> {
        None
    }
}

/// A port for listeners that share it.
fn reserve() -> std::net::TcpListener {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_passes_the_conformance_suite() {
    let Some(server) = Server::start().await else { return };
    check_backend(&OnRestate { server, places: AtomicU64::new(0) }).await;
}
