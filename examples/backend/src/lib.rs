//! An example of a backend outside of Provost: all runs in one file, which any number of processes may share.
//!
//! [`JournalStore`] implements the port [`SessionStore`]; [`EmbeddedBackend`](provost_backend::EmbeddedBackend) over it
//! is the backend. A line of the journal is a transaction. A writer holds a lock on a file beside it while it writes;
//! readers read the complete lines. What ends a line is written after the rest is on disk: nothing is read before it is
//! durable.

mod change;
mod port;
mod state;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use provost_backend::folder;
use provost_harness::BackendError;

use crate::change::Change;
use crate::state::State;

/// A store in the file `journal.jsonl` of a folder.
pub struct JournalStore {
    folder: PathBuf,
    journal: File,
    state: State,
    /// Bytes of the journal that `state` includes.
    read: u64,
    /// Transactions of others that were read.
    foreign: u64,
    transaction: Option<Transaction>,
}

/// A transaction under way.
struct Transaction {
    changes: Vec<Change>,
    /// Locked until it is closed.
    _lock: File,
}

impl JournalStore {
    /// Opens the journal in `folder`; creates what is missing, for its owner only.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when that can't be done, or the journal can't be read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, BackendError> {
        let folder = folder.as_ref().to_owned();
        folder::create(&folder).map_err(|error| failed("create the journal's folder", &error))?;
        let journal =
            open(&folder.join("journal.jsonl")).map_err(|error| failed("open the journal", &error))?;
        let mut store =
            Self { folder, journal, state: State::default(), read: 0, foreign: 0, transaction: None };
        // Where a writer is at work, it has done this.
        let lock = store.lock_file()?;
        if lock.try_lock().is_ok() {
            store.repair()?;
        }
        store.catch_up()?;
        Ok(store)
    }

    /// Reads the transactions that others have committed. The last line may be incomplete: its writer was killed, or
    /// is writing it.
    fn catch_up(&mut self) -> Result<(), BackendError> {
        let attempt = "read the journal";
        let size = self.journal.metadata().map_err(|error| failed(attempt, &error))?.len();
        if size <= self.read {
            return Ok(());
        }
        self.journal.seek(SeekFrom::Start(self.read)).map_err(|error| failed(attempt, &error))?;
        let mut lines = BufReader::new((&self.journal).take(size - self.read));
        let mut line = String::new();
        loop {
            line.clear();
            let length = lines.read_line(&mut line).map_err(|error| failed(attempt, &error))?;
            if !line.ends_with('\n') {
                return Ok(());
            }
            let changes = serde_json::from_str::<Vec<Change>>(&line)
                .map_err(|error| failed(attempt, &io::Error::other(error)))?;
            changes.into_iter().for_each(|change| self.state.apply(change));
            self.read += length as u64;
            self.foreign += 1;
        }
    }

    /// What is stored now; within a transaction, with its changes.
    fn now(&mut self) -> Result<&State, BackendError> {
        if self.transaction.is_none() {
            self.catch_up()?;
        }
        Ok(&self.state)
    }

    /// Makes a change, which is durable after the commit.
    ///
    /// # Errors
    /// Outside of a transaction.
    fn change(&mut self, change: Change) -> Result<(), BackendError> {
        let Some(transaction) = &mut self.transaction else {
            return Err(failed("write", &io::Error::other("there is no transaction")));
        };
        transaction.changes.push(change.clone());
        self.state.apply(change);
        Ok(())
    }

    fn lock(&mut self) -> Result<(), BackendError> {
        let lock = self.lock_file()?;
        lock.lock().map_err(|error| failed("lock the journal", &error))?;
        self.repair()?;
        self.transaction = Some(Transaction { changes: Vec::new(), _lock: lock });
        Ok(())
    }

    fn lock_file(&self) -> Result<File, BackendError> {
        open(&self.folder.join("journal.lock")).map_err(|error| failed("lock the journal", &error))
    }

    /// Ends a line that a killed writer has not ended, and removes it if it is incomplete. The lock is held.
    fn repair(&mut self) -> Result<(), BackendError> {
        self.catch_up()?;
        self.end_line().map_err(|error| failed("repair the journal", &error))?;
        self.catch_up()
    }

    fn end_line(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        self.journal.seek(SeekFrom::Start(self.read))?;
        self.journal.read_to_end(&mut line)?;
        match serde_json::from_slice::<Vec<Change>>(&line) {
            // Its writer may have said that it is committed.
            Ok(_) => {
                self.journal.sync_data()?;
                self.journal.write_all(b"\n")
            }
            Err(_) => self.cut(),
        }
    }

    /// Removes what follows the last line that was read.
    fn cut(&self) -> io::Result<()> {
        if self.journal.metadata()?.len() > self.read { self.journal.set_len(self.read) } else { Ok(()) }
    }

    /// Writes the transaction as one line, and ends it when it is on disk.
    fn write(&mut self) -> Result<(), BackendError> {
        let attempt = "write the journal";
        let Some(Transaction { changes, .. }) = &self.transaction else { return Ok(()) };
        if !changes.is_empty() {
            let line =
                serde_json::to_vec(changes).map_err(|error| failed(attempt, &io::Error::other(error)))?;
            self.journal.seek(SeekFrom::Start(self.read)).map_err(|error| failed(attempt, &error))?;
            self.journal.write_all(&line).map_err(|error| failed(attempt, &error))?;
            self.journal.sync_data().map_err(|error| failed(attempt, &error))?;
            self.journal.write_all(b"\n").map_err(|error| failed(attempt, &error))?;
            self.read += line.len() as u64 + 1;
        }
        self.transaction = None;
        Ok(())
    }

    /// Undoes the transaction by reading everything again.
    fn undo(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        // Should this fail, a later writer cuts it, or the next read tells.
        let _ = self.cut();
        if !transaction.changes.is_empty() {
            self.state = State::default();
            let foreign = self.foreign;
            self.read = 0;
            // An error comes again at the next read.
            let _ = self.catch_up();
            self.foreign = foreign;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    folder::only_for_the_owner(&mut options);
    options.open(path)
}

fn failed(attempt: &'static str, error: &io::Error) -> BackendError {
    BackendError::Storage { attempt, message: error.to_string(), hint: None }
}
