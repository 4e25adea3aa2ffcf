//! Bodies too large for an entry.

use async_trait::async_trait;
use provost_event::BlobId;

use crate::BackendError;

/// Prefix of a blob's name in path arguments of models; the blob's id follows.
pub const BLOB_URI: &str = "output:";

/// Stores bodies by the hash of their bytes.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores `body` and returns its id; storing the same body twice stores one.
    ///
    /// # Errors
    /// When it can't be made durable.
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError>;

    /// The body with this `id`; `None` if there is none.
    ///
    /// # Errors
    /// When it can't be read.
    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError>;
}
