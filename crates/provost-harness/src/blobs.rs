//! Bodies too large for an entry.

use async_trait::async_trait;
use provost_event::BlobId;

use crate::HomeError;

/// How a model names a blob in a path argument: this, then the blob's id.
pub const BLOB_URI: &str = "output:";

/// Keeps bodies by the hash of their bytes.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps `body` and returns its name; keeping the same body twice keeps one.
    ///
    /// # Errors
    /// When it can't be made durable.
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, HomeError>;

    /// The body named `id`; `None` if there is none.
    ///
    /// # Errors
    /// When it can't be read.
    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError>;
}
