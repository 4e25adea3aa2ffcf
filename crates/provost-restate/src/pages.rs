//! A list that only grows, in an object's state: its last items, and references to closed pages in the blob store.

use std::sync::Arc;

use bytes::Bytes;
use provost_event::BlobId;
use provost_harness::BackendError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::blobs::BlobStore;

/// References in the state itself; older ones are in an index of the blob store.
const PAGES_MAX: usize = 64;

/// An item and its number. Numbers grow; an item may stand for several of them, up to its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Item(pub(crate) u64, pub(crate) Arc<RawValue>);

/// A closed page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageRef {
    /// The number of its last item.
    last: u64,
    body: BlobId,
}

/// The list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Pages {
    /// References to the pages before `closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<PageRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    closed: Vec<PageRef>,
    tail: Vec<Item>,
}

impl Pages {
    pub(crate) fn push(&mut self, item: Item) {
        self.tail.push(item);
    }

    /// Closes the page if it has more than `bytes_max` bytes. The result depends on the list alone.
    pub(crate) async fn close_full(
        &mut self,
        bytes_max: usize,
        blobs: &BlobStore,
    ) -> Result<(), BackendError> {
        let bytes = self.tail.iter().map(|item| item.1.get().len()).sum::<usize>();
        let Some(last) = self.tail.last().map(|item| item.0).filter(|_| bytes > bytes_max) else {
            return Ok(());
        };
        self.closed.push(PageRef { last, body: put(&self.tail, blobs).await? });
        self.tail.clear();
        if self.closed.len() > PAGES_MAX {
            let mut all = indexed(self.index.as_ref(), blobs).await?;
            all.append(&mut self.closed);
            self.index = Some(PageRef { last, body: put(&all, blobs).await? });
        }
        Ok(())
    }

    /// What a reader needs that has the items up to `after`.
    pub(crate) fn after(mut self, after: u64) -> Self {
        self.index = self.index.filter(|index| index.last > after);
        self.closed.retain(|page| page.last > after);
        self.tail.retain(|item| item.0 > after);
        self
    }

    /// At most `max` items after `after`, in order.
    pub(crate) async fn read(
        &self,
        after: u64,
        max: usize,
        blobs: &BlobStore,
    ) -> Result<Vec<Item>, BackendError> {
        let mut found = Vec::new();
        let index = self.index.as_ref().filter(|index| index.last > after);
        let older = indexed(index, blobs).await?;
        for page in older.iter().chain(&self.closed).filter(|page| page.last > after) {
            let items: Vec<Item> = parse(&blobs.require(&page.body).await?)?;
            found.extend(items.into_iter().filter(|item| item.0 > after).take(max - found.len()));
            if found.len() == max {
                return Ok(found);
            }
        }
        found.extend(self.tail.iter().filter(|item| item.0 > after).take(max - found.len()).cloned());
        Ok(found)
    }
}

async fn put(items: &impl Serialize, blobs: &BlobStore) -> Result<BlobId, BackendError> {
    blobs.put(serde_json::to_vec(items).map_err(|error| unreadable(&error))?).await
}

async fn indexed(index: Option<&PageRef>, blobs: &BlobStore) -> Result<Vec<PageRef>, BackendError> {
    match index {
        Some(index) => parse(&blobs.require(&index.body).await?),
        None => Ok(Vec::new()),
    }
}

fn parse<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, BackendError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> BackendError {
    BackendError::Storage { attempt: "read a page of a log", message: error.to_string(), hint: None }
}
