//! The backend: the ports of the harness over the engine's ingress.

mod catalog;
mod log;
mod posts;
mod worker;

use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use provost_event::{BlobId, RunId};
use provost_harness::{BackendError, Blobs, Clock};

use crate::api::{Api, Target};
use crate::blobs::BlobStore;
use crate::engine::{Names, is_name, run_key};
use crate::feeds::Feeds;
use crate::lease::Leases;
use crate::wire::{Owner, RunStanding, WorkerStanding};
use crate::{BlobPlace, Engine};

/// A backend whose runs live in a Restate cluster.
///
/// Every process that is connected can read, post and list. To hold runs a process must be a worker
/// ([`start_worker`](Self::start_worker)); workers also serve the decisions, so at least one must be there.
#[derive(Clone)]
pub struct RestateBackend {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) names: Names,
    pub(crate) api: Api,
    pub(crate) blobs: BlobStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) posts: posts::Posts,
    /// This process as a worker, and the labels that it serves.
    pub(crate) worker: RwLock<Option<Identity>>,
}

/// A process as a worker.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) owner: Owner,
    pub(crate) serves: Vec<String>,
}

impl RestateBackend {
    /// Connects to a cluster; time is measured by `clock`.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when the engine or the blob store can't be reached, or a setting is
    /// invalid.
    pub async fn connect(engine: Engine, clock: Arc<dyn Clock>) -> Result<Self, BackendError> {
        check(&engine)?;
        let api = Api::new(&engine)?;
        api.check().await?;
        let names = engine.names();
        let inner = Inner {
            blobs: BlobStore::new(&engine.blobs, api.clone(), &names)?,
            names,
            api,
            clock,
            leases: Arc::default(),
            feeds: Arc::default(),
            posts: posts::Posts::default(),
            worker: RwLock::new(None),
            engine,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    fn api(&self) -> &Api {
        &self.inner.api
    }

    /// How a run stands.
    pub(crate) async fn standing_of(&self, run: RunId) -> Result<RunStanding, BackendError> {
        let (service, key) = (self.inner.names.run(), run_key(run));
        self.api().read(Target { service: &service, key: Some(&key), handler: "standing" }, &()).await
    }

    /// How a worker stands.
    pub(crate) async fn worker_standing(&self, worker: &str) -> Result<WorkerStanding, BackendError> {
        let service = self.inner.names.worker();
        self.api().read(Target { service: &service, key: Some(worker), handler: "standing" }, &()).await
    }

    /// Whether a holder lives, as far as the engine knows.
    pub(crate) async fn is_alive(&self, owner: &Owner) -> Result<bool, BackendError> {
        Ok(lives(owner, &self.worker_standing(&owner.worker).await?))
    }
}

/// Whether a holder is the living process of its worker.
pub(crate) fn lives(owner: &Owner, standing: &WorkerStanding) -> bool {
    standing.alive && standing.instance == owner.instance
}

fn check(engine: &Engine) -> Result<(), BackendError> {
    let names = [("namespace", Some(&engine.namespace)), ("label", engine.label.as_ref())];
    for (setting, name) in names {
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(BackendError::Storage {
                attempt: "use the engine's settings",
                message: format!("the {setting} `{name}` is no name"),
                hint: Some("use letters, digits, `.`, `-` and `_`, and begin with a letter or digit"),
            });
        }
    }
    if let BlobPlace::ObjectStore { url, .. } = &engine.blobs
        && url.scheme() == "memory"
    {
        return Err(BackendError::Storage {
            attempt: "use the engine's settings",
            message: format!("{url} is gone with this process"),
            hint: Some("use a folder or an object store that all workers and clients reach"),
        });
    }
    Ok(())
}

#[async_trait]
impl Blobs for RestateBackend {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.inner.blobs.put(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.inner.blobs.get(id).await?.map(|body| body.to_vec()))
    }
}
