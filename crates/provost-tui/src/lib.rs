//! The dashboard of `provost top`: all runs in groups, one run, the inbox of approvals.
//!
//! It draws the read models of `provost-view` and acts through [`Control`](provost_harness::Control): it decides
//! nothing and holds no run, so it works the same on runs of this process, of other processes, and on imported ones.
//! What it can't do by itself (starting programs, changing settings, showing another program) its [`TopHost`] does.
//!
//! | file | what lives there |
//! |---|---|
//! | `app.rs` | what is shown: the screen, the selection, what is typed; how data and time change it |
//! | `keys.rs`, `keys/` | what each key does |
//! | `order.rs` | what a key orders, and how it is done |
//! | `reading.rs` | the task that reads the runs again when something was written |
//! | `work.rs` | the loop: keys, data, time, signals |
//! | `signals.rs` | what the system asks of this process |
//! | `terminal.rs` | the modes of the terminal, and that they are undone |
//! | `draw.rs`, `draw/` | the screens |
//! | `line.rs` | the line that is typed |

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "the screen belongs to the dashboard")]

mod app;
mod draw;
mod host;
mod keys;
mod line;
mod order;
mod reading;
mod signals;
mod terminal;
#[cfg(test)]
mod tests;
mod work;

pub use draw::{Colours, Glyphs};
pub use host::{Start, TopHost};
pub use work::{TopError, TopOptions, work};
