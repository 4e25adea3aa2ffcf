//! The matrix on an engine: each run in a namespace of its own. The process that is killed is the worker that holds the
//! run; another one, which lives as long as the run, only decides.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use provost_harness::SystemClock;
use provost_restate::{
    BlobPlace, Engine, Listening, RestateBackend, RunningWorker, WorkerEndpoint, shared_listener,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::files::Files;
use crate::chaos::cluster::Addresses;

/// The worker that is killed. The next process has the same name, and so the run at once.
const KILLED: &str = "killed";
const DECIDING: &str = "deciding";

/// Where the run of a folder is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunEngine {
    addresses: Addresses,
    namespace: String,
    /// The address for decisions, which both workers serve.
    deciders: SocketAddr,
}

impl RunEngine {
    pub(super) async fn connect(&self, files: &Files) -> Result<RestateBackend> {
        let Addresses { ingress, admin } = &self.addresses;
        let blobs = BlobPlace::Folder(files.folder().join("blobs"));
        let namespace = self.namespace.clone();
        let engine = Engine { namespace, ..Engine::new(ingress.parse()?, admin.parse()?, blobs) };
        Ok(RestateBackend::connect(engine, Arc::new(SystemClock)).await?)
    }

    /// Connects as the worker that holds the run.
    pub(super) async fn hold(&self, files: &Files) -> Result<(RestateBackend, RunningWorker)> {
        self.worker(files, KILLED, shared_listener(self.deciders)?).await
    }

    async fn worker(
        &self,
        files: &Files,
        name: &str,
        deciders: TcpListener,
    ) -> Result<(RestateBackend, RunningWorker)> {
        let backend = self.connect(files).await?;
        let own = listening(TcpListener::bind("127.0.0.1:0")?)?;
        let deciders = Some(listening(deciders)?);
        let endpoint = WorkerEndpoint { name: name.to_owned(), serves: Vec::new(), own, deciders };
        let worker = backend.start_worker(endpoint).await?;
        Ok((backend, worker))
    }
}

fn listening(listener: TcpListener) -> Result<Listening> {
    let url = format!("http://{}", listener.local_addr()?).parse().context("an address")?;
    Ok(Listening { listener, url })
}

/// The worker that decides.
pub(super) struct Decider {
    worker: Option<RunningWorker>,
    runtime: Runtime,
}

impl Decider {
    /// Makes a namespace for the run of `files`, and decides there.
    pub(super) fn start(files: &Files, addresses: &Addresses) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let _inside = runtime.enter();
        let listener = shared_listener(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let engine = RunEngine {
            addresses: addresses.clone(),
            namespace: format!("matrix{:016x}", fastrand::u64(..)),
            deciders: listener.local_addr()?,
        };
        let (_, worker) = runtime.block_on(engine.worker(files, DECIDING, listener))?;
        files.keep_engine(&engine)?;
        Ok(Self { worker: Some(worker), runtime })
    }
}

impl Drop for Decider {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.runtime.block_on(worker.stop());
        }
    }
}
