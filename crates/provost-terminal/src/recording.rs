//! Recorded sessions of programs at a terminal, with or without labels, as files in a folder: `NAME.raw.jsonl`
//! (output, input and resizes with their times), `NAME.proc.jsonl` (kernel samples), `NAME.json` (the program, its
//! window, the expected events). Only the first is needed.

mod moments;
mod read;
mod replay;
mod write;

use std::path::PathBuf;
use std::time::Duration;

use provost_event::{Exit, WindowSize};

use crate::{KernelSample, Label};

pub use moments::Moment;
pub use replay::{ReplayOptions, replay};

/// A recorded session.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its file name without extensions.
    pub name: String,
    /// The command line; empty if unknown.
    pub argv: Vec<String>,
    /// The initial window size.
    pub size: WindowSize,
    /// The events, by time.
    pub steps: Vec<(Duration, RecordingStep)>,
    /// The kernel samples, recorded on change, by time.
    pub samples: Vec<(Duration, KernelSample)>,
    /// When and how it ended; the last step's time and a plain success if unknown.
    pub exit: (Duration, Exit),
    /// The events that a detector should report; absent if the recording has no labels.
    pub labels: Option<Vec<Label>>,
}

/// An event in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingStep {
    /// The program wrote this.
    Output(Vec<u8>),
    /// Typed input; replies to queries are left out.
    Input(Vec<u8>),
    /// The window has a new size.
    Resize(WindowSize),
}

/// Why a recording can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file can't be read.
    #[error("can't read `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error("can't write `{path}`")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file doesn't have the expected format.
    #[error("`{path}`, line {line}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0: the file as a whole.
        line: usize,
        /// What is wrong.
        message: String,
    },
}
