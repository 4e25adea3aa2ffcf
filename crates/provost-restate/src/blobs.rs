//! Bodies that are too large for the engine, by the hash of their bytes.

use std::collections::VecDeque;
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use provost_event::BlobId;
use provost_harness::BackendError;
use tokio::sync::OnceCell;

use crate::BlobPlace;
use crate::api::{Api, Target};
use crate::engine::{BLOBS_KEY, Names};
use crate::wire::OfferedBlobs;

/// Bodies kept in memory: pages of logs are read again and again.
const CACHED_BYTES_MAX: usize = 16 << 20;

/// What tells the place of the bodies from any other one, as from an empty folder on which it is to be mounted: its first
/// line is an id, which the engine knows too.
const MARK: &str = "provost-blobs";
const MARK_TEXT: &str = "Parts of the logs of Provost's runs (engine.blobs). The line above is the id of this place: without it nothing is written here.";

/// Reads and writes bodies.
#[derive(Clone)]
pub(crate) struct BlobStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The place, for people.
    shown: Arc<str>,
    /// Whether another place may be there in its stead, without an error.
    is_mounted: bool,
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
    /// Opens the place; a folder is made if it isn't there.
    pub(crate) fn open(place: &BlobPlace, api: Api, names: &Names) -> Result<Self, BackendError> {
        let failed = |error: &dyn std::error::Error| storage("open the blob store", error);
        let (store, prefix, shown): (Arc<dyn ObjectStore>, Path, String) = match place {
            BlobPlace::Folder(folder) => {
                let shown = folder.display().to_string();
                make(folder).map_err(|error| unusable(format!("{shown}: {error}")))?;
                let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(&error))?;
                (Arc::new(store.with_fsync(true)), Path::default(), shown)
            }
            BlobPlace::ObjectStore { url, options } => {
                let (store, prefix) =
                    object_store::parse_url_opts(url, options).map_err(|error| failed(&error))?;
                (Arc::from(store), prefix, url.to_string())
            }
        };
        Ok(Self {
            store,
            prefix,
            shown: shown.into(),
            is_mounted: matches!(place, BlobPlace::Folder(_)),
            api,
            object: names.blobs().into(),
            id: Arc::default(),
            cache: Arc::default(),
        })
    }

    /// Checks that the place is there, and is the one that the engine's runs use. Without any yet it is from now on.
    pub(crate) async fn check(&self) -> Result<(), BackendError> {
        let id = self.id.get_or_try_init(|| self.agree()).await?;
        self.refuse_unless(id).await
    }

    /// The same before a process has asked others for anything, as far as the engine can tell without them. It is to be
    /// checked afterwards.
    pub(crate) async fn refuse_other(&self) -> Result<(), BackendError> {
        match self.api.state::<String>(&self.object, BLOBS_KEY, BLOBS_KEY).await {
            Ok(Some(id)) => self.refuse_unless(&id).await,
            // An engine that has just started doesn't answer queries yet.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    async fn refuse_unless(&self, id: &str) -> Result<(), BackendError> {
        match self.mark().await? {
            Some(mark) if mark == id => Ok(()),
            Some(mark) => {
                Err(unusable(format!("{} has the id {mark}, and the engine's runs use {id}", self.shown)))
            }
            None => Err(unusable(format!(
                "{} has no file {MARK} with the id {id}, which the engine's runs use",
                self.shown
            ))),
        }
    }

    async fn agree(&self) -> Result<String, BackendError> {
        let mark = self.mark().await?;
        if let Some(id) = self.offered(mark).await? {
            return Ok(id);
        }
        self.make_mark().await?;
        let mark = self.mark().await?;
        self.offered(mark).await?.ok_or(BackendError::Closed)
    }

    /// The id that the engine knows; `mark` from now on if it knows none.
    async fn offered(&self, mark: Option<String>) -> Result<Option<String>, BackendError> {
        let target = Target { service: &self.object, key: Some(BLOBS_KEY), handler: "agree" };
        self.api.call(target, &OfferedBlobs { id: mark }).await
    }

    async fn mark(&self) -> Result<Option<String>, BackendError> {
        let failed = |error: object_store::Error| unusable(format!("{}: {error}", self.shown));
        let mark = match self.store.get(&self.mark_path()).await {
            Ok(found) => found.bytes().await.map_err(failed)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        match String::from_utf8_lossy(&mark).lines().next() {
            Some(id) if !id.is_empty() => Ok(Some(id.to_owned())),
            _ => Err(unusable(format!(
                "the first line of {MARK} in {} is empty, and should be an id",
                self.shown
            ))),
        }
    }

    /// Writes a mark, unless another process has just done so.
    async fn make_mark(&self) -> Result<(), BackendError> {
        let mark = format!("{:032x}\n{MARK_TEXT}\n", fastrand::u128(..));
        self.create(&self.mark_path(), mark.into()).await
    }

    /// Writes what is never written over.
    async fn create(&self, path: &Path, body: Bytes) -> Result<(), BackendError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(path, body.into(), options).await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(storage("store a large body", &error)),
        }
    }

    fn mark_path(&self) -> Path {
        self.prefix.clone().join(MARK)
    }

    fn path(&self, id: &BlobId) -> Path {
        let name: &str = &id.0;
        self.prefix.clone().join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Stores `body` durably and returns its id.
    pub(crate) async fn put(&self, body: impl Into<Bytes>) -> Result<BlobId, BackendError> {
        if self.is_mounted || self.id.get().is_none() {
            self.check().await?;
        }
        let body = body.into();
        let id = BlobId(blake3::hash(&body).to_hex().as_str().into());
        self.create(&self.path(&id), body.clone()).await?;
        self.cache().keep(&id, &body);
        Ok(id)
    }

    /// The body with this `id`; `None` if there is none.
    pub(crate) async fn get(&self, id: &BlobId) -> Result<Option<Bytes>, BackendError> {
        if let Some(body) = self.cache().get(id) {
            return Ok(Some(body));
        }
        let failed = |error| storage("read a large body", &error);
        let body = match self.store.get(&self.path(id)).await {
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
        self.get(id).await?.ok_or_else(|| BackendError::Storage {
            attempt: "read a large body",
            message: format!("the body {} isn't there", id.0),
            hint: Some("all workers and clients must use the same engine.blobs"),
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cached> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a folder for bodies, unless it is one.
fn make(folder: &FilePath) -> std::io::Result<()> {
    let mut made = std::fs::DirBuilder::new();
    made.recursive(true);
    // They hold what agents read and write.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut made, 0o700);
    made.create(folder)
}

fn unusable(why: String) -> BackendError {
    BackendError::Storage {
        attempt: "use engine.blobs",
        message: why,
        hint: Some("mount or restore its folder; it is one place for all workers and clients"),
    }
}

fn storage(attempt: &'static str, error: &dyn std::error::Error) -> BackendError {
    BackendError::Storage { attempt, message: error.to_string(), hint: None }
}
