//! Terminal emulation and detection. This crate does no I/O (except reading recordings from files), never waits,
//! and reads no clock: the inputs are bytes, kernel samples and times; the outputs are the screen, replies to
//! queries and events.
//!
//! | file | what lives there |
//! |---|---|
//! | `screen.rs`, `screen/` | the emulator: cells, cursor, title, modes |
//! | `query.rs` | a terminal's replies to a program's queries |
//! | `signal.rs` | reports of programs in escape sequences |
//! | `cast.rs`, `cast/` | recordings: writing, reading, playing |
//! | `mask.rs` | removes secrets from what is shown |
//! | `kernel.rs` | what the kernel reports about a terminal and its processes |
//! | `profile.rs`, `profiles/` | knowledge of a program's screens, as data |
//! | `detect.rs` | the detector: the program's state, and its questions |
//! | `recording.rs`, `score.rs` | recorded sessions, read from files, and the detector's score on them |

mod cast;
mod detect;
mod kernel;
mod mask;
mod profile;
mod query;
mod recording;
mod score;
mod screen;
mod signal;

pub use cast::{
    CastError, CastEvent, CastHeader, CastReader, CastWriter, Happened, PlayOptions, PlayStep, Player, Typed,
};
pub use detect::{Detected, Detector, Reports};
pub use kernel::{KernelSample, is_shell};
pub use mask::{Mask, masked_rows};
pub use profile::{
    Keys, Profile, ProfileError, ProgramKind, QuitStep, Resume, StreamFormat, StructuredChannel,
};
pub use recording::{Recording, RecordingError, RecordingStep, ReplayOptions, replay};
pub use score::{EventKind, Label, Mistake, Prediction, Score, ScoreRow, Scored, Wrong};
pub use screen::{Colour, Cursor, Modes, Mouse, Run, Screen, Style};
pub use signal::Signal;
