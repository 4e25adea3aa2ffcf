//! What a terminal shows and what it means. Nothing here does I/O (but for reading recordings from files), waits, or reads a
//! clock: bytes, samples of the kernel and the time come in, the screen, answers to queries and events come out.
//!
//! | file | what lives there |
//! |---|---|
//! | `screen.rs`, `screen/` | the emulator: cells, cursor, title, modes |
//! | `query.rs` | what a terminal answers to a program's questions |
//! | `signal.rs` | what programs report of themselves in escape sequences |
//! | `cast.rs`, `cast/` | recordings: writing, reading, playing |
//! | `mask.rs` | secrets out of what is shown |
//! | `kernel.rs` | what the kernel says of a terminal and the processes at it |
//! | `profile.rs`, `profiles/` | what is known of a program's screens, as data |
//! | `detect.rs` | the detector: what the program does, and what it asks |
//! | `recording.rs`, `score.rs` | recorded sessions, read from files, and how well the detector does on them |

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
pub use recording::{Recording, RecordingError, ReplayOptions, Step, replay};
pub use score::{EventKind, Label, Mistake, Prediction, Score, ScoreRow, Scored, Wrong};
pub use screen::{Colour, Cursor, Modes, Mouse, Run, Screen, Style};
pub use signal::Signal;
