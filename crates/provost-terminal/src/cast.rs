//! Recordings of terminals: asciicast version 2, the format of asciinema. The first line is a JSON object, each
//! further line an event: `[seconds, code, data]`.

mod header;
mod play;
mod read;
mod redacting;
mod write;

pub use header::CastHeader;
pub use play::{PlayOptions, PlayStep, Player};
pub use read::{CastError, CastEvent, CastReader, Happened};
pub use write::{CastWriter, Typed};
