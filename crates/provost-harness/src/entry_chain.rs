//! The hash chain of a log: each entry's hash covers the previous hash and the entry's content.

use std::fmt;

use provost_event::{Elapsed, Entry, LifecycleEntry, Record, Seq, SessionStarted, Timestamp};

const HASH_BYTES: usize = blake3::OUT_LEN;
/// Enough for what is hashed of an entry before its fields.
const HEADER_BYTES: usize = 160;

/// The hash of a log's entries up to one of them: BLAKE3 of the previous hash, the log's name, and the entry's
/// number, times, kind and fields. Unkeyed: it shows damage, not tampering.
///
/// A snapshot contributes its position but not its state, which follows from the entries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryChain([u8; HASH_BYTES]);

/// An entry as hashed: the parts that a store keeps.
#[derive(Debug, Clone, Copy)]
pub struct ChainLink<'a> {
    /// The log's name.
    pub actor: &'a str,
    /// The entry's number in it.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// The run's elapsed time at that point.
    pub elapsed: Elapsed,
    /// Its kind.
    pub kind: &'a str,
    /// Its fields as a JSON object.
    pub body: &'a str,
}

impl EntryChain {
    /// The chain before the first entry of a log that is no fork.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; HASH_BYTES])
    }

    /// The chain with this hash, as stored; `None` if the length is wrong.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The chain before the first entry of a log that begins with `started`: a fork continues the chain of what it
    /// refers to.
    #[must_use]
    pub fn before(started: &Entry) -> Self {
        match started {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted { fork: Some(fork), .. })) => {
                let base = fork.bases.last().and_then(|base| blake3::Hash::from_hex(&base.hash).ok());
                base.map_or_else(Self::new, |hash| Self(*hash.as_bytes()))
            }
            _ => Self::new(),
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, record: &Record) {
        let body = match &record.entry {
            Entry::Lifecycle(LifecycleEntry::Snapshot(_)) => String::new(),
            entry => entry.body().unwrap_or_default(),
        };
        self.link(&ChainLink {
            actor: &record.actor.to_string(),
            seq: record.seq,
            at: record.at,
            elapsed: record.elapsed,
            kind: record.entry.kind(),
            body: &body,
        });
    }

    /// Adds an entry in its stored parts.
    pub fn link(&mut self, link: &ChainLink<'_>) {
        let body = if link.kind == Self::SNAPSHOT { "" } else { link.body };
        self.0 = self.hash(link, body);
    }

    /// The kind of a snapshot entry.
    pub const SNAPSHOT: &'static str = "snapshot";

    /// The hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }

    /// The hash of a snapshot's fields, bound to its position and to the chain up to it, which is this one.
    #[must_use]
    pub fn hash_of_state(&self, snapshot: &ChainLink<'_>) -> [u8; HASH_BYTES] {
        self.hash(snapshot, snapshot.body)
    }

    fn hash(&self, link: &ChainLink<'_>, body: &str) -> [u8; HASH_BYTES] {
        // In one piece, as each update of a hash has its cost; the body may be long and isn't copied.
        let mut before = Vec::with_capacity(HEADER_BYTES);
        before.extend_from_slice(&self.0);
        for number in [link.seq.0, link.at.0, link.elapsed.0] {
            before.extend_from_slice(&number.to_le_bytes());
        }
        for part in [link.actor, link.kind] {
            before.extend_from_slice(&(part.len() as u64).to_le_bytes());
            before.extend_from_slice(part.as_bytes());
        }
        before.extend_from_slice(&(body.len() as u64).to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&before).update(body.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

impl Default for EntryChain {
    fn default() -> Self {
        Self::new()
    }
}

/// In hexadecimal digits.
impl fmt::Display for EntryChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: ChainLink<'static> = ChainLink {
        actor: "a",
        seq: Seq(1),
        at: Timestamp(2),
        elapsed: Elapsed(3),
        kind: "kind",
        body: "{}",
    };

    fn chained(link: ChainLink<'_>) -> EntryChain {
        let mut chain = EntryChain::new();
        chain.link(&link);
        chain
    }

    #[test]
    fn every_part_of_an_entry_and_what_was_before_it_counts() {
        let others = [
            ChainLink { actor: "b", ..LINK },
            ChainLink { seq: Seq(2), ..LINK },
            ChainLink { at: Timestamp(3), ..LINK },
            ChainLink { elapsed: Elapsed(4), ..LINK },
            ChainLink { kind: "kinds", ..LINK },
            ChainLink { body: "{ }", ..LINK },
            ChainLink { actor: "ak", kind: "ind", ..LINK },
        ];
        assert!(others.into_iter().all(|other| chained(other) != chained(LINK)));
        let mut behind = chained(LINK);
        behind.link(&LINK);
        assert_ne!(behind, chained(LINK));
    }

    #[test]
    fn the_state_of_a_snapshot_has_a_hash_of_its_own() {
        let snapshot = ChainLink { kind: EntryChain::SNAPSHOT, ..LINK };
        let emptied = ChainLink { body: "{\"layout\":0}", ..snapshot };
        assert_eq!(chained(snapshot), chained(emptied), "an import may empty it");
        let chain = chained(snapshot);
        assert_ne!(chain.hash_of_state(&snapshot), chain.hash_of_state(&emptied));
        assert_ne!(chain.hash_of_state(&snapshot), EntryChain::new().hash_of_state(&snapshot));
        assert_ne!(
            chain.hash_of_state(&snapshot),
            chain.hash_of_state(&ChainLink { seq: Seq(2), ..snapshot })
        );
    }

    #[test]
    fn a_chain_is_read_back_from_its_bytes() {
        let chain = chained(LINK);
        assert_eq!(EntryChain::from_bytes(chain.as_bytes()), Some(chain));
        assert_eq!(EntryChain::from_bytes(b"short"), None);
        assert_eq!(chain.to_string().len(), 64);
    }
}
