//! Recordings: a model's answers in a run, stored in a file, and replayed without model, key or network.
//!
//! A recording is JSON lines: a header, then a line for each finished call, in order of their ends. It has only a
//! digest of the model's input; secrets are removed from the answers.

mod conversation;
mod error;
mod file;
mod format;
mod record;
mod replay;

pub use error::TapeError;
pub use record::RecordingModel;
pub use replay::ReplayModel;
