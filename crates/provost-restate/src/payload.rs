//! Values on their way through the engine: in the message itself, or as a blob if they are large.

use std::sync::Arc;

use provost_event::BlobId;
use provost_harness::BackendError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::blobs::BlobStore;

/// Larger values go through the blob store. The engine's own limit is 32 MiB for a message with all it contains.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// A JSON value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payload {
    Inline(Arc<RawValue>),
    Blob(BlobId),
}

impl Payload {
    /// `value`, in the blob store if it is large.
    pub(crate) async fn of(value: &impl Serialize, blobs: &BlobStore) -> Result<Self, BackendError> {
        let json = serde_json::value::to_raw_value(value).map_err(|error| malformed(&error))?;
        if json.get().len() <= INLINE_BYTES_MAX {
            return Ok(Self::Inline(json.into()));
        }
        blobs.put(json.get().to_owned()).await.map(Self::Blob)
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, blobs: &BlobStore) -> Result<T, BackendError> {
        match self {
            Self::Inline(json) => serde_json::from_str(json.get()),
            Self::Blob(id) => serde_json::from_slice(&blobs.require(id).await?),
        }
        .map_err(|error| malformed(&error))
    }
}

fn malformed(error: &serde_json::Error) -> BackendError {
    BackendError::Storage {
        attempt: "read or write a message of the engine",
        message: error.to_string(),
        hint: Some("clients and workers of one namespace must be of compatible versions"),
    }
}
