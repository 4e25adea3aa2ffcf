//! A consistent copy of a database.

use std::fs::{File, OpenOptions};
use std::path::Path;

use provost_harness::BackendError;
use rusqlite::params;

use super::inspect::{Inspection, inspect};
use super::open;
use provost_backend::folder;

const ATTEMPT: &str = "make the backup";

/// Copies the database at `path` to `file`, which must not exist: a consistent state, even while other processes
/// write. The copy is for its owner only (0600), synced to disk when this returns, and checked like [`inspect`]
/// does. Returns its content.
///
/// # Errors
/// [`BackendError::Storage`], with a hint: when the file exists, there is no store, the file can't be written, or the
/// copy is damaged. Then no file is left.
pub fn back_up(path: &Path, file: &Path) -> Result<Inspection, BackendError> {
    let connection = open::as_it_is(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    folder::only_for_the_owner(&mut options);
    options.open(file).map_err(|error| cant_make(file, &error))?;
    let copied = copy(&connection, file).and_then(|()| checked(file));
    if copied.is_err() {
        // An incomplete copy is no backup.
        let _ = std::fs::remove_file(file);
    }
    copied
}

fn cant_make(file: &Path, error: &std::io::Error) -> BackendError {
    let hint = match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            "a backup is never written over another file: name one that isn't there"
        }
        _ => "name a file in a folder that is there and yours",
    };
    BackendError::Storage {
        attempt: ATTEMPT,
        message: format!("{}: {error}", file.display()),
        hint: Some(hint),
    }
}

fn copy(connection: &rusqlite::Connection, file: &Path) -> Result<(), BackendError> {
    let io = |error: std::io::Error| cant_make(file, &error);
    connection
        .execute("VACUUM INTO ?1", params![file.to_string_lossy()])
        .map_err(|error| super::error::storage(ATTEMPT, &error))?;
    File::open(file).and_then(|copy| copy.sync_all()).map_err(io)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // If folders can't be synced, a power failure may lose the file's name, and the backup with it.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn checked(file: &Path) -> Result<Inspection, BackendError> {
    let inspection = inspect(file)?;
    match inspection.problems.iter().find(|problem| problem.is_loss()) {
        None => Ok(inspection),
        Some(problem) => Err(BackendError::Storage {
            attempt: ATTEMPT,
            message: format!("what was copied is damaged: {problem}"),
            hint: Some("`provost doctor --store --salvage DIR` saves what can be read"),
        }),
    }
}
