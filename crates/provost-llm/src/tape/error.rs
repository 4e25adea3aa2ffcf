//! Why a recording can't be replayed.

use std::io;

use super::format::{FILE_BYTES_MAX, LINE_BYTES_MAX, VERSION};

/// Why a recording can't be replayed. The message has a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// The file can't be read.
    #[error("can't read the recording {file}; check its path")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is too large.
    #[error("the recording {file} is larger than {FILE_BYTES_MAX} bytes; record a shorter run")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// A line is too long.
    #[error(
        "{file}:{line}: the line is longer than {LINE_BYTES_MAX} bytes; no recording has such, so record it again"
    )]
    LineTooLong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// The file isn't a recording.
    #[error(
        "{file} is no recording: its first line isn't the header of one; make one with `record:FILE=MODEL`"
    )]
    NoRecording {
        /// The file.
        file: String,
    },
    /// A newer Provost wrote it.
    #[error("{file} is a recording of format {needs}; this Provost reads up to {VERSION}: use a newer one")]
    Newer {
        /// The file.
        file: String,
        /// The version that is required.
        needs: u32,
    },
    /// A line isn't a recorded call.
    #[error("{file}:{line}: that is no recorded call; remove the line, or record it again")]
    Bad {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}
