//! Terminal emulation and detection. This crate does no I/O (except reading recordings from files), never waits,
//! and reads no clock; of `provost-process` it uses the interface to a terminal and its types. The inputs are bytes, kernel samples and times; the outputs are the screen, replies to
//! queries and events.
//!
//! | file | what lives there |
//! |---|---|
//! | `screen.rs`, `screen/` | the emulator: cells, cursor, title, modes |
//! | `query.rs` | a terminal's replies to a program's queries |
//! | `signal.rs` | reports of programs in escape sequences |
//! | `cast.rs`, `cast/` | recordings: writing, reading, playing |
//! | `mask.rs` | removes secrets from what is shown |
//! | `kernel.rs` | what a sample of the kernel says about waiting for input |
//! | `profile.rs`, `profiles/` | knowledge of a program's screens, as data |
//! | `detect.rs` | the detector: the program's state, and its questions |
//! | `reader.rs` | the detector as the reader of a terminal's screen |
//! | `recording.rs`, `score.rs` | recorded sessions, read from files, and the detector's score on them |

mod cast;
mod detect;
mod kernel;
mod mask;
mod profile;
mod query;
mod reader;
mod recording;
mod score;
mod screen;
mod signal;

pub use cast::{
    CastError, CastEvent, CastHeader, CastReader, CastWriter, Happened, PlayOptions, PlayStep, Player, Typed,
};
pub use detect::{Detector, Reports};
pub use mask::{Mask, masked_rows};
pub use profile::{
    GatewayFamily, GatewayRoute, Keys, Profile, ProfileError, ProgramChannel, ProgramKind, QuitStep, Resume,
    RouteValues, SandboxedStart, StreamFormat, StructuredChannel, consents_plainly, is_seen_whole,
};
pub use provost_process::{Cursor, Detected, KernelSample, Modes, Mouse};
pub use recording::{Moment, Recording, RecordingError, RecordingStep, ReplayOptions, replay};
pub use score::{EventKind, Label, Mistake, Prediction, Score, ScoreRow, Scored, Wrong};
pub use screen::{Colour, Run, Screen, Style};
pub use signal::Signal;
