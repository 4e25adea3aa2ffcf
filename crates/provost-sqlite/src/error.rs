//! SQLite's errors, with remedies.

use provost_harness::BackendError;
use rusqlite::ErrorCode;

/// The remedy for a damaged database.
pub(super) const DAMAGED: &str = "`provost doctor --store` says what is damaged, and saves the rest";

/// The error of what was attempted.
pub(super) fn storage(attempt: &'static str, error: &rusqlite::Error) -> BackendError {
    BackendError::Storage { attempt, message: error.to_string(), hint: hint(error) }
}

/// Whether an error is caused by the database's content, and not by the system or by other processes.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(
                failure.code,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch
            )
        }
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

/// Converts an error of SQLite into one of the backend.
pub(super) trait Attempt<T> {
    fn attempt(self, what: &'static str) -> Result<T, BackendError>;
}

impl<T> Attempt<T> for Result<T, rusqlite::Error> {
    fn attempt(self, what: &'static str) -> Result<T, BackendError> {
        self.map_err(|error| storage(what, &error))
    }
}

fn hint(error: &rusqlite::Error) -> Option<&'static str> {
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some("free some space, then `provost resume`"),
        // A write beyond the limit on the size of files is one too: SQLite doesn't pass its cause on.
        ErrorCode::SystemIoFailure => Some(
            "check the disk, its free space and the limit on the size of files (`ulimit -f`), then `provost resume`",
        ),
        ErrorCode::NotADatabase => {
            Some("this file isn't Provost's: move it away or name another state folder")
        }
        ErrorCode::DatabaseCorrupt => Some(DAMAGED),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            Some("make the state folder and the database in it writable for you")
        }
        ErrorCode::CannotOpen => Some("check that the state folder is there and yours"),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Some("another process is writing to the store for more than 10 s: let it finish, then try again")
        }
        _ => None,
    }
}
