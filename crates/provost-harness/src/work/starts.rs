//! Starting runs, once for each idempotency key.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use provost_event::RunId;
use tokio::sync::Semaphore;

use super::kept_keys::{HeldKey, KeptKey, KeptKeys};
use super::{NotStarted, StartsWork, Work};
use crate::{Backend, BackendError, Clock as _, SystemClock};

/// Processes that are being started at the same time; more wait.
const STARTS_MAX: usize = 8;
/// Characters of an idempotency key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// Has processes work on runs. A request with an idempotency key starts one run, also if it comes again within a day, to
/// another program, or after this one was killed.
pub struct RunStarts {
    backend: Arc<dyn Backend>,
    work: Arc<dyn StartsWork>,
    keys: KeptKeys,
    starting: Semaphore,
}

/// Why no process works on a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The key isn't one.
    #[error(
        "an idempotency key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible characters of ASCII, and no others"
    )]
    UnfitKey,
    /// Another request with the key is being fulfilled.
    #[error("another request with this idempotency key is being fulfilled")]
    KeyBusy,
    /// The key came with another request.
    #[error("this idempotency key came with another request before; take a new one")]
    KeyTaken,
    /// The key can't be kept: nothing was started.
    #[error("the idempotency key can't be kept: {0}")]
    KeyNotKept(#[source] io::Error),
    /// The settings, the folder or the request are such that it can't be.
    #[error("{0}")]
    Refused(String),
    /// It doesn't fit the run's state, or something failed.
    #[error("{0}")]
    Failed(String),
    /// The store can't be read.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<NotStarted> for StartError {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::Refused(why) => Self::Refused(why),
            NotStarted::Failed(why) => Self::Failed(why),
        }
    }
}

impl RunStarts {
    /// Starts runs of `backend` by `work`; `keys` is the folder for idempotency keys, which needn't be there.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, work: Arc<dyn StartsWork>, keys: PathBuf) -> Self {
        Self { backend, work, keys: KeptKeys::new(keys), starting: Semaphore::new(STARTS_MAX) }
    }

    /// Starts a new run, once for a key. Returns as soon as a process works on it.
    ///
    /// # Errors
    /// Why there is none; the key is free again then.
    pub async fn create(&self, key: Option<&str>, work: &Work) -> Result<RunId, StartError> {
        let Some(key) = key else {
            let run = RunId::new();
            self.work(run, work).await?;
            return Ok(run);
        };
        if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS_MAX || !key.bytes().all(is_visible) {
            return Err(StartError::UnfitKey);
        }
        let held = self.keys.hold(key).ok_or(StartError::KeyBusy)?;
        let run = claim(&held, work)?;
        if self.backend.get(run).await?.is_some() {
            return Ok(run);
        }
        let result = self.work(run, work).await;
        // A process of a program that was killed may have been faster.
        if result.is_err() && self.backend.get(run).await?.is_none() {
            held.forget();
            result?;
        }
        Ok(run)
    }

    /// Has a process work on a run. Returns as soon as it does.
    ///
    /// # Errors
    /// Why none does.
    pub async fn work(&self, run: RunId, work: &Work) -> Result<(), StartError> {
        let closed = |_| StartError::Failed("no more processes are started".to_owned());
        let _held = self.starting.acquire().await.map_err(closed)?;
        Ok(self.work.start(run, work).await?)
    }
}

const fn is_visible(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f && byte.is_ascii()
}

/// The run of a key: the one that it had, or a new one, which it has from now on.
fn claim(held: &HeldKey<'_>, work: &Work) -> Result<RunId, StartError> {
    let now = SystemClock.now();
    let request = serde_json::to_vec(work).unwrap_or_default();
    let request = blake3::hash(&request).to_hex().to_string();
    if let Some(known) = held.known(now) {
        return if known.request == request { Ok(known.run) } else { Err(StartError::KeyTaken) };
    }
    let run = RunId::new();
    held.keep(&KeptKey { request, run, at: now }).map_err(StartError::KeyNotKept)?;
    Ok(run)
}
