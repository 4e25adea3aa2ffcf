//! Bodies that are too large for the engine, by the hash of their bytes.

mod place;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use provost_event::BlobId;
use provost_harness::BackendError;
use tokio::sync::OnceCell;

use self::place::Place;
use crate::BlobPlace;
use crate::api::{Api, Target};
use crate::engine::{BLOBS_KEY, Names};
use crate::wire::OfferedBlobs;

/// Bodies kept in memory: pages of logs are read again and again.
const CACHED_BYTES_MAX: usize = 16 << 20;

/// Reads and writes bodies.
#[derive(Clone)]
pub(crate) struct BlobStore {
    place: Arc<Place>,
    api: Api,
    /// The object that knows the id of the place.
    object: Arc<str>,
    /// That id, once it is known.
    id: Arc<OnceCell<String>>,
    cache: Arc<Mutex<Cached>>,
}

#[derive(Default)]
struct Cached {
    bodies: VecDeque<(BlobId, Bytes)>,
    bytes: usize,
}

impl Cached {
    fn get(&self, id: &BlobId) -> Option<Bytes> {
        self.bodies.iter().find(|(known, _)| known == id).map(|(_, body)| body.clone())
    }

    fn keep(&mut self, id: &BlobId, body: &Bytes) {
        if body.len() > CACHED_BYTES_MAX / 4 || self.get(id).is_some() {
            return;
        }
        self.bytes += body.len();
        self.bodies.push_back((id.clone(), body.clone()));
        while self.bytes > CACHED_BYTES_MAX {
            let Some((_, oldest)) = self.bodies.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }
}

impl BlobStore {
    pub(crate) fn new(place: &BlobPlace, api: Api, names: &Names) -> Result<Self, BackendError> {
        Ok(Self {
            place: Arc::new(Place::new(place)?),
            api,
            object: names.blobs().into(),
            id: Arc::default(),
            cache: Arc::default(),
        })
    }

    /// Checks that the place is there, and is the one that the engine's runs use. Without any yet it is from now on.
    pub(crate) async fn check(&self) -> Result<(), BackendError> {
        let id = self.id.get_or_try_init(|| self.agree()).await?;
        self.place.require(id).await
    }

    /// The same before a process has asked others for anything, as far as the engine can tell without them. It is to be
    /// checked afterwards.
    pub(crate) async fn refuse_other(&self) -> Result<(), BackendError> {
        match self.api.state::<String>(&self.object, BLOBS_KEY, BLOBS_KEY).await {
            Ok(Some(id)) => self.place.require(&id).await,
            // An engine that has just started doesn't answer queries yet.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    async fn agree(&self) -> Result<String, BackendError> {
        let own = self.place.id().await?;
        if let Some(id) = self.offered(own).await? {
            return Ok(id);
        }
        self.place.make().await?;
        let own = self.place.id().await?;
        self.offered(own).await?.ok_or(BackendError::Closed)
    }

    /// The id that the engine knows; `own` from now on if it knows none.
    async fn offered(&self, own: Option<String>) -> Result<Option<String>, BackendError> {
        let target = Target { service: &self.object, key: Some(BLOBS_KEY), handler: "agree" };
        self.api.call(target, &OfferedBlobs { id: own }).await
    }

    fn path(&self, id: &BlobId) -> Path {
        let name: &str = &id.0;
        self.place.path(&format!("{}/{name}", name.get(..2).unwrap_or_default()))
    }

    /// Stores `body` durably and returns its id.
    pub(crate) async fn put(&self, body: impl Into<Bytes>) -> Result<BlobId, BackendError> {
        if self.place.is_mounted() || self.id.get().is_none() {
            self.check().await?;
        }
        let body = body.into();
        let id = BlobId(blake3::hash(&body).to_hex().as_str().into());
        self.place.create(&self.path(&id), body.clone()).await?;
        self.cache().keep(&id, &body);
        Ok(id)
    }

    /// The body with this `id`; `None` if there is none.
    pub(crate) async fn get(&self, id: &BlobId) -> Result<Option<Bytes>, BackendError> {
        if let Some(body) = self.cache().get(id) {
            return Ok(Some(body));
        }
        let failed = |error| self.place.failed("read a large body", &error);
        let body = match self.place.store().await?.get(&self.path(id)).await {
            Ok(found) => found.bytes().await.map_err(failed)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if *blake3::hash(&body).to_hex().as_str() != *id.0 {
            return Err(BackendError::Storage {
                attempt: "read a large body",
                message: format!("the body {} is damaged: its bytes have another hash", id.0),
                hint: Some("restore it from a backup of the blob store (engine.blobs)"),
            });
        }
        self.cache().keep(id, &body);
        Ok(Some(body))
    }

    /// The body with this `id`, which must be there.
    pub(crate) async fn require(&self, id: &BlobId) -> Result<Bytes, BackendError> {
        if let Some(body) = self.get(id).await? {
            return Ok(body);
        }
        // It is more likely that the whole place is another one.
        self.check().await?;
        Err(BackendError::Storage {
            attempt: "read a large body",
            message: format!("the body {} isn't in {}", id.0, self.place.shown()),
            hint: Some("restore it from a backup of the blob store (engine.blobs)"),
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cached> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
