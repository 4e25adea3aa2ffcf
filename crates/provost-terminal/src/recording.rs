//! Recorded sessions of programs at a terminal, with or without labels, as folders of such hold them: `NAME.raw.jsonl`
//! (what was written, typed and resized, and when), `NAME.proc.jsonl` (what the kernel said), `NAME.json` (which program,
//! its window, what a detector should notice). Only the first is needed.

mod read;
mod replay;

use std::path::PathBuf;
use std::time::Duration;

use provost_event::{Exit, WindowSize};

use crate::{KernelSample, Label};

pub use replay::{ReplayOptions, replay};

/// A session of a program at a terminal.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its file's name without endings.
    pub name: String,
    /// As the program was called; empty if that isn't told.
    pub argv: Vec<String>,
    /// The window at its start.
    pub size: WindowSize,
    /// What happened, by time.
    pub steps: Vec<(Duration, Step)>,
    /// What the kernel said, written when it changed, by time.
    pub samples: Vec<(Duration, KernelSample)>,
    /// When and how it ended; the last step's time and a plain success where that isn't told.
    pub exit: (Duration, Exit),
    /// What a detector should notice; absent if nobody has said.
    pub labels: Option<Vec<Label>>,
}

/// Something that happened in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The program wrote this.
    Output(Vec<u8>),
    /// Somebody typed this; answers to queries are left out.
    Input(Vec<u8>),
    /// The window has this size.
    Resize(WindowSize),
}

/// Why a recording can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file can't be read.
    #[error("can't read `{path}`")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file isn't what its name says.
    #[error("`{path}`, line {line}: {message}")]
    Malformed {
        /// Which.
        path: PathBuf,
        /// Where, from 1; 0: the file as a whole.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}
