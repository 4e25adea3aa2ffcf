//! What a terminal shows and what it means. Nothing here does I/O, waits, or reads a clock: bytes, samples of the kernel
//! and the time come in, the screen, answers to queries and events come out.
//!
//! | file | what lives there |
//! |---|---|
//! | `screen.rs` | the emulator: cells, cursor, title, modes, answers to queries |
//! | `signal.rs` | what programs report of themselves in escape sequences |
//! | `kernel.rs` | what the kernel says of a terminal and the processes at it |
//! | `profile.rs`, `profiles/` | what is known of a program's screens, as data |
//! | `detect.rs` | the detector: what the program does, and what it asks |

mod detect;
mod kernel;
mod profile;
mod screen;
mod signal;

pub use detect::{Detected, Detector};
pub use kernel::KernelSample;
pub use profile::{Profile, ProfileError};
pub use screen::{Cursor, Modes, Screen};
pub use signal::Signal;
