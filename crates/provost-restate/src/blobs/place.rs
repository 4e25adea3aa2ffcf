//! Where bodies are: a folder, or a part of an object store. A file there tells it from any other place, as from the empty
//! folder on which it is to be mounted.

use std::io::{ErrorKind, Read as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, PutMode, PutOptions};
use provost_harness::BackendError;
use tokio::sync::OnceCell;

use crate::BlobPlace;

/// The file; its first line is the id of the place.
const MARK: &str = "provost-blobs";
const MARK_TEXT: &str = "Parts of the logs of Provost's runs (engine.blobs). The line above is the id of this place: without it nothing is written here.";
const ID_CHARS: usize = 32;
/// More than an id and the end of its line.
const MARK_READ_MAX: u64 = 64;
/// How long the file may take to be read.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Characters of another program's message.
const MESSAGE_MAX: usize = 400;

/// The place.
pub(super) struct Place {
    /// For people.
    shown: String,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
    /// Opened once the folder is needed.
    store: OnceCell<Arc<dyn ObjectStore>>,
    prefix: Path,
}

impl Place {
    pub(super) fn new(place: &BlobPlace) -> Result<Self, BackendError> {
        Ok(match place {
            BlobPlace::Folder(folder) => Self {
                shown: folder.display().to_string(),
                folder: Some(folder.clone()),
                store: OnceCell::new(),
                prefix: Path::default(),
            },
            BlobPlace::ObjectStore { url, options } => {
                let opened = object_store::parse_url_opts(url, options);
                let (store, prefix) = opened.map_err(|error| unusable(url.as_str(), &error))?;
                let store = OnceCell::new_with(Some(Arc::from(store)));
                Self { shown: url.to_string(), folder: None, store, prefix }
            }
        })
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether another place may be there in its stead, without an error.
    pub(super) const fn is_mounted(&self) -> bool {
        self.folder.is_some()
    }

    /// Where `name` is.
    pub(super) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), Path::join)
    }

    pub(super) async fn store(&self) -> Result<&dyn ObjectStore, BackendError> {
        let open = async || {
            let folder = self.folder.clone().unwrap_or_default();
            let opened = in_background(move || {
                // Its own error doesn't say so plainly.
                std::fs::metadata(&folder)?;
                Ok(LocalFileSystem::new_with_prefix(folder)?)
            });
            let opened = opened.await.map_err(|error| self.unusable(&error))?;
            Ok::<Arc<dyn ObjectStore>, BackendError>(Arc::new(opened.with_fsync(true)))
        };
        self.store.get_or_try_init(open).await.map(AsRef::as_ref)
    }

    /// Fails unless its id is `id`.
    pub(super) async fn require(&self, id: &str) -> Result<(), BackendError> {
        let wrong = match self.id().await? {
            Some(own) if own == id => return Ok(()),
            Some(own) => format!("its id is {own}"),
            None => format!("there is no file {MARK} with the id"),
        };
        Err(self.unusable(&format!("{wrong}; the engine's runs use the place with the id {id}")))
    }

    /// Its id; `None` if it has none yet.
    pub(super) async fn id(&self) -> Result<Option<String>, BackendError> {
        let mark = tokio::time::timeout(ANSWERS_WITHIN, self.mark()).await;
        let silent = |_| Err(self.unusable(&"it doesn't answer"));
        let Some(mark) = mark.unwrap_or_else(silent)? else { return Ok(None) };
        let id = mark.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        match String::from_utf8(id.to_vec()) {
            Ok(id) if id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(Some(id)),
            _ => Err(self.unusable(&format!("the first line of the file {MARK} isn't an id"))),
        }
    }

    /// The beginning of the file.
    async fn mark(&self) -> Result<Option<Bytes>, BackendError> {
        if let Some(folder) = &self.folder {
            let mark = folder.join(MARK);
            let read = in_background(move || Ok(beginning(&mark)?)).await;
            return read.map_err(|error| self.unusable(&error));
        }
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..MARK_READ_MAX)), ..GetOptions::default() };
        let found = match self.store().await?.get_opts(&self.path(MARK), options).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        match found {
            Ok(mark) => Ok(Some(mark)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// Makes it: a folder if it isn't there, and an id, unless another process has just done so.
    pub(super) async fn make(&self) -> Result<(), BackendError> {
        if let Some(folder) = self.folder.clone() {
            let made = in_background(move || Ok(make(&folder)?)).await;
            made.map_err(|error| self.unusable(&error))?;
        }
        let mark = format!("{:0ID_CHARS$x}\n{MARK_TEXT}\n", fastrand::u128(..));
        self.create(&self.path(MARK), mark.into()).await
    }

    /// Writes what is never written over.
    pub(super) async fn create(&self, path: &Path, body: Bytes) -> Result<(), BackendError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store().await?.put_opts(path, body.into(), options).await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(self.failed("store a large body", &error)),
        }
    }

    pub(super) fn failed(&self, attempt: &'static str, error: &object_store::Error) -> BackendError {
        BackendError::Storage {
            attempt,
            message: format!("{}: {}", self.shown, one_line(error)),
            hint: Some("engine.blobs must be there, let itself be read and written, and have room"),
        }
    }

    fn unusable(&self, why: &dyn std::fmt::Display) -> BackendError {
        unusable(&self.shown, why)
    }
}

fn unusable(shown: &str, why: &dyn std::fmt::Display) -> BackendError {
    BackendError::Storage {
        attempt: "use engine.blobs",
        message: format!("{shown}: {}", one_line(why)),
        hint: Some(
            "mount or restore it, or correct the setting: it is one place for all workers and clients",
        ),
    }
}

/// Another program's message, which may have many lines.
fn one_line(message: &dyn std::fmt::Display) -> String {
    let words = message.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MESSAGE_MAX) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await?
}

/// The first bytes of a file; `None` if it isn't there.
fn beginning(path: &FilePath) -> std::io::Result<Option<Bytes>> {
    match std::fs::metadata(path) {
        // To open another kind of file may wait for ever.
        Ok(found) if !found.is_file() => return Err(std::io::Error::other(format!("{MARK} isn't a file"))),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MARK_READ_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes.into()))
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
