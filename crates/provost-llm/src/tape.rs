//! Recordings: what a model answered in a run, kept in a file, and given again without model, key or network.
//!
//! A recording is JSON lines: a header, then a line for each call that came to its end, in the order they did.
//! What a model was asked isn't in it, but for a digest; secrets are taken out of what it answered.

mod conversation;
mod error;
mod file;
mod format;
mod record;
mod replay;

pub use error::TapeError;
pub use record::RecordingModel;
pub use replay::ReplayModel;
