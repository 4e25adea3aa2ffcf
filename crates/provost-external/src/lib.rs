//! Drives other people's agents: gives their programs words, hands on what they ask, answers them, and ends them. At a
//! terminal, which any program has, or by the structured stream of those that have one.
//!
//! | file | what lives there |
//! |---|---|
//! | `drivers.rs` | the port's implementation: one driver a session, from its first exchange until it is closed |
//! | `driver.rs` | one program at a terminal: what an exchange is, from words to a question or an end |
//! | `driver/start.rs`, `driver/ended.rs` | starting it, anew or again; what follows from its own end |
//! | `driver/step.rs` | what to do next, as things stand (pure) |
//! | `driver/standing.rs`, `driver/desk.rs`, `driver/masked.rs` | how it stands, noted in order before anybody acts upon it, without secrets |
//! | `driver/keys.rs`, `driver/submit.rs` | a prompt as keys; typing it in, and seeing that it was taken |
//! | `consent.rs` | questions as tool calls |
//! | `driver/answer.rs`, `driver/closing.rs` | answering them; ending the program |
//! | `driver/said.rs` | what a program said last, read from its screen |
//! | `recording.rs` | where a terminal is recorded |
//! | `attach.rs`, `attach/nowhere.rs` | people's terminals at a program's; where that isn't possible |
//! | `attach/wire.rs`, `attach/place.rs` | what is said through the socket, and where it is |
//! | `attach/hub.rs`, `attach/hub/guest.rs` | who is attached, and the window that fits them; one of them |
//! | `attach/client.rs` | the side of whoever attaches |
//! | `structured.rs`, `structured/` | programs that have a structured stream, driven by it |
//!
//! Invariants:
//! - What the terminal shows is in the log before anybody acts upon it.
//! - Nothing is typed before the program reads it, and no words into a password prompt: both are checked on the terminal's
//!   own thread, right before the keys.
//! - An answer is bound to its question: one that is no longer asked, under that very fingerprint, is not answered.
//! - While somebody is attached who may type, nothing is answered automatically.

mod attach;
mod consent;
mod driver;
mod drivers;
mod recording;
mod structured;

pub use attach::{AttachError, Attached, AttachedInput, Hello, Role, Shown, Welcome, attach};
pub use drivers::{Drivers, DriversOptions};
pub use structured::StructuredDriver;
