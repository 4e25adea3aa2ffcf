//! Drives external agents: gives their programs prompts, passes their questions on, answers them, and ends them.
//! The channel is a terminal, which works with any program, or a structured stream where the program has one. A plain
//! program can also have the streams of the command that runs it.
//!
//! | file | what lives there |
//! |---|---|
//! | `drivers.rs` | the port's implementation: one driver a session, from its first exchange until it is closed |
//! | `driver.rs` | one program at a terminal: an exchange, from a prompt to a question or an end |
//! | `driver/start.rs`, `driver/ended.rs` | starts it for the first time or again; what follows when it ends by itself |
//! | `driver/step.rs` | decides the next step (pure) |
//! | `driver/terminal_status.rs`, `driver/recorder.rs`, `driver/masked.rs` | the terminal's status; events recorded before any component acts on them; secrets removed |
//! | `driver/keys.rs`, `driver/submit.rs` | a prompt as keys; types it, and checks that it was taken |
//! | `consent.rs` | questions as tool calls |
//! | `reach.rs` | where the path of a question leads, for permissions |
//! | `driver/answer.rs`, `driver/closing.rs` | answers questions; ends the program |
//! | `driver/said.rs` | a program's last message, read from its screen |
//! | `recording.rs` | where a terminal is recorded |
//! | `attach.rs`, `attach/nowhere.rs` | user terminals attached to a program's; platforms without that |
//! | `attach/wire.rs`, `attach/socket_path.rs` | the socket's protocol, and its path |
//! | `attach/hub.rs`, `attach/hub/guest.rs` | the attached terminals and the window that fits them; one of them |
//! | `attach/client.rs` | the client side of attaching |
//! | `passed.rs` | a program with the standard streams of the command that runs it |
//! | `structured.rs`, `structured/` | programs that have a structured stream, driven by it |
//!
//! Invariants:
//! - What the terminal shows is in the log before any component acts on it.
//! - Nothing is typed before the program reads it, and no text into a password prompt: both are checked on the
//!   terminal's own thread, right before the keys.
//! - An answer is bound to its question: a question whose fingerprint is no longer asked is not answered.
//! - While a person is attached who may type, nothing is answered automatically.

mod attach;
mod boxed;
mod consent;
mod driver;
mod drivers;
mod gateway;
mod passed;
mod reach;
mod recording;
mod structured;

pub use attach::{AttachError, AttachUpdate, Attached, AttachedInput, Display, Hello, Role, Welcome, attach};
pub use boxed::PrivatePlaces;
pub use drivers::{Drivers, DriversOptions};
pub use passed::PassedStreams;
pub use structured::StructuredDriver;
