//! The real store, whose process dies at one of its commits, as by `kill -9`.

use std::str::FromStr;

use provost_backend::{DecoratedStore, SessionStore as _, Transactions};
use provost_harness::BackendError;
use provost_sqlite::SqliteStore;

/// Before or after the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeathPoint {
    /// The number of the commit, from 1.
    pub(crate) commit: usize,
    pub(crate) side: Side,
}

impl std::fmt::Display for DeathPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.side, self.commit)
    }
}

impl FromStr for DeathPoint {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (side, commit) = text.split_once(' ').unwrap_or_default();
        let side = if side == "Before" { Side::Before } else { Side::After };
        Ok(Self { commit: commit.parse()?, side })
    }
}

/// The commits so far, and at which one the process dies.
pub(crate) struct Deadly {
    at: Option<DeathPoint>,
    commits: usize,
}

impl Deadly {
    pub(crate) const fn store(
        store: SqliteStore,
        at: Option<DeathPoint>,
    ) -> DecoratedStore<SqliteStore, Self> {
        DecoratedStore::new(store, Self { at, commits: 0 })
    }
}

impl Transactions<SqliteStore> for Deadly {
    fn commit(&mut self, store: &mut SqliteStore) -> Result<(), BackendError> {
        self.commits += 1;
        let at = |side| self.at == Some(DeathPoint { commit: self.commits, side });
        if at(Side::Before) {
            std::process::abort();
        }
        store.commit()?;
        if at(Side::After) {
            std::process::abort();
        }
        Ok(())
    }
}
