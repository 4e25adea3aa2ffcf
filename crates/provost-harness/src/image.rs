//! Pictures for models.

use std::sync::Arc;

use provost_event::{BlobId, Image, ImageKind};

use crate::{BackendError, Blobs};

/// Maximum bytes of a picture: within the providers' limit of 5 MiB in base64.
pub const IMAGE_BYTES_MAX: usize = 3_750_000;

/// A picture and its bytes; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageData {
    kind: ImageKind,
    bytes: Arc<[u8]>,
}

/// Why bytes aren't a picture for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The format is unknown or not accepted by models.
    #[error("it is no PNG, JPEG, GIF or WebP image")]
    Unknown,
    /// Providers would reject it.
    #[error("the image has {bytes} bytes, and models take at most {IMAGE_BYTES_MAX}; scale it down")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl ImageData {
    /// The picture in `bytes`, whose format is detected from them.
    ///
    /// Only their beginning and their length are checked: a damaged picture is rejected later, by the provider.
    ///
    /// # Errors
    /// When no provider would accept them. Exactly [`IMAGE_BYTES_MAX`] bytes are accepted.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        let kind = ImageKind::of(&bytes).ok_or(ImageError::Unknown)?;
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(ImageError::TooLarge { bytes: bytes.len() });
        }
        Ok(Self { kind, bytes })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Stores it beside the log; returns its reference for the log.
    pub(crate) async fn keep(&self, blobs: &dyn Blobs) -> Result<Image, BackendError> {
        let blob = blobs.put_blob(self.bytes.to_vec()).await?;
        Ok(Image { kind: self.kind, blob, bytes: u64::try_from(self.bytes.len()).unwrap_or(u64::MAX) })
    }

    /// Reads a stored one; `None` if it no longer exists.
    pub(crate) async fn read(blobs: &dyn Blobs, id: &BlobId) -> Result<Option<Self>, BackendError> {
        Ok(blobs.get_blob(id).await?.and_then(|bytes| Self::new(bytes).ok()))
    }
}

/// An agent's goal. Any text converts to one without pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The text.
    pub text: String,
    /// Pictures that belong to it.
    pub images: Vec<ImageData>,
}

impl<T: Into<String>> From<T> for Goal {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}
