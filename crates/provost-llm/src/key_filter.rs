//! Hides a key in bytes that pass in pieces.

use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};

/// Replaces a provider's key by as many `*` in the pieces of an answer, also where it is cut between two of them.
#[derive(Default)]
pub struct KeyFilter {
    /// Empty: everything passes.
    key: SecretString,
    /// The end of what has arrived, which may be the beginning of the key.
    held: Vec<u8>,
}

impl KeyFilter {
    pub(crate) const fn new(key: SecretString) -> Self {
        Self { key, held: Vec::new() }
    }

    /// What can be passed on once `piece` has arrived.
    pub fn push(&mut self, piece: Bytes) -> Bytes {
        let key = self.key.expose_secret().as_bytes();
        if key.is_empty() {
            return piece;
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(&piece);
        let mut from = 0;
        while let Some(at) = position(bytes.get(from..).unwrap_or_default(), key) {
            let end = from + at + key.len();
            bytes.get_mut(from + at..end).unwrap_or_default().fill(b'*');
            from = end;
        }
        let longest = key.len().saturating_sub(1).min(bytes.len() - from);
        let held = (1..=longest).rev().find(|length| bytes.ends_with(key.get(..*length).unwrap_or(key)));
        self.held = bytes.split_off(bytes.len() - held.unwrap_or_default());
        bytes.into()
    }

    /// What is left at the end.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }
}

fn position(bytes: &[u8], key: &[u8]) -> Option<usize> {
    bytes.windows(key.len()).position(|window| window == key)
}
