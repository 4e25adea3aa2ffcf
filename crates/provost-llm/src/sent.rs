//! A request's body that records whether it was sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body in one piece. Its flag is set when a connection takes that piece: from then on the provider may have
/// received the request.
pub(crate) struct Sent {
    rest: Option<Bytes>,
    flag: Arc<AtomicBool>,
}

impl Sent {
    pub(crate) fn new(bytes: Vec<u8>, flag: &Arc<AtomicBool>) -> Self {
        flag.store(false, Ordering::Relaxed);
        Self { rest: Some(bytes.into()), flag: Arc::clone(flag) }
    }

    /// The flag, to be cleared when the provider has refused the request.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.flag.store(true, Ordering::Relaxed);
        Poll::Ready(self.rest.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
