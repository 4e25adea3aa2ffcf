//! Bodies that are too large for the engine, by the hash of their bytes.

use std::collections::VecDeque;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use provost_event::BlobId;
use provost_harness::BackendError;

use crate::BlobPlace;

/// Bodies kept in memory: pages of logs are read again and again.
const CACHED_BYTES_MAX: usize = 16 << 20;

/// The file in a folder for bodies that tells it from the place where it is mounted.
const MARK: &str = "provost-blobs";
const MARK_TEXT: &str =
    "Parts of the logs of Provost's runs (engine.blobs). Without this file nothing is written here.\n";

/// Reads and writes bodies.
#[derive(Clone)]
pub(crate) struct BlobStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The folder, if it is one.
    folder: Option<Arc<FilePath>>,
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
    pub(crate) fn open(place: &BlobPlace) -> Result<Self, BackendError> {
        let failed = |error: &dyn std::error::Error| storage("open the blob store", error);
        let (store, prefix): (Arc<dyn ObjectStore>, Path) = match place {
            BlobPlace::Folder(folder) => {
                make(folder).map_err(|error| unusable(folder, &error.to_string()))?;
                let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(&error))?;
                (Arc::new(store.with_fsync(true)), Path::default())
            }
            BlobPlace::ObjectStore { url, options } => {
                let (store, prefix) =
                    object_store::parse_url_opts(url, options).map_err(|error| failed(&error))?;
                (Arc::from(store), prefix)
            }
        };
        let folder = match place {
            BlobPlace::Folder(folder) => Some(PathBuf::clone(folder).into()),
            BlobPlace::ObjectStore { .. } => None,
        };
        Ok(Self { store, prefix, folder, cache: Arc::default() })
    }

    /// Checks that the folder is there, and not only the place where it is mounted.
    pub(crate) async fn check(&self) -> Result<(), BackendError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match tokio::fs::metadata(folder.join(MARK)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(unusable(folder, &error.to_string())),
        }
    }

    fn path(&self, id: &BlobId) -> Path {
        let name: &str = &id.0;
        self.prefix.clone().join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Stores `body` durably and returns its id.
    pub(crate) async fn put(&self, body: impl Into<Bytes>) -> Result<BlobId, BackendError> {
        self.check().await?;
        let body = body.into();
        let id = BlobId(blake3::hash(&body).to_hex().as_str().into());
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&self.path(&id), body.clone().into(), options).await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(storage("store a large body", &error)),
        }
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
    made.create(folder)?;
    let mark = folder.join(MARK);
    if mark.exists() { Ok(()) } else { std::fs::write(mark, MARK_TEXT) }
}

fn unusable(folder: &FilePath, why: &str) -> BackendError {
    BackendError::Storage {
        attempt: "store a large body",
        message: format!("{} can't be used: {why}", folder.display()),
        hint: Some(
            "mount or restore the folder of engine.blobs, which all workers and clients have at the same path",
        ),
    }
}

fn storage(attempt: &'static str, error: &dyn std::error::Error) -> BackendError {
    BackendError::Storage { attempt, message: error.to_string(), hint: None }
}
