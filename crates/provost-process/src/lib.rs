//! Plain child processes that cannot hang Provost and cannot outlive it.
//!
//! [`run`] starts a program, feeds it, drains it, waits for it, and returns when nothing descended from it is
//! left. On unix each child runs below a *guard*: a fork of this process that executes nothing, adopts every
//! orphan of the child (Linux), and kills what is left as soon as the caller is gone, also by `kill -9`.
//!
//! | file | what lives there |
//! |---|---|
//! | `spec.rs` | what to start and what came of it |
//! | `error.rs` | why a child couldn't be started |
//! | `capture.rs` | the kept head and tail of a stream |
//! | `env.rs` | the environment children may see |
//! | `secrecy.rs` | what others may not see of this process's own |
//! | `ancestry.rs` | who started this process |
//! | `run.rs` | one child from start to end |
//! | `drain.rs` | feeding and reading the pipes |
//! | `start.rs` | pipes, control channel, spawn (unix) |
//! | `guard.rs`, `guard/` | the guard (unix); with `secrecy.rs` the only `unsafe` code of Provost |
//! | `portable.rs` | the same `run` with fewer promises (elsewhere) |
//!
//! Invariants:
//! - A child has the environment of its spec, three descriptors, default signal handlers, no controlling terminal:
//!   it inherits nothing else of Provost's.
//! - Nobody but the guard signals processes, and it signals only its own unreaped children and their groups:
//!   a reused process number is never hit.
//! - The guard allocates nothing, takes no lock and holds no descriptor but the control channel and its signals.
//! - The guard ends when nothing is left below it, so the end of the control channel means "all gone".
//!
//! What it can't do: a child with the rights to kill its guard with `kill -9` can set free what it forked (it is
//! killed itself). Off Linux nobody adopts orphans: a descendant that leaves the process group is out of reach.
//! While a child runs, its guard keeps the pages alive that the caller rewrites meanwhile.

mod ancestry;
mod capture;
mod drain;
mod env;
mod error;
#[cfg(unix)]
mod guard;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod run;
mod secrecy;
mod spec;
#[cfg(unix)]
mod start;

pub use ancestry::runs_below;
pub use capture::Captured;
pub use env::allowed_env;
pub use error::SpawnError;
#[cfg(not(unix))]
pub use portable::run;
#[cfg(unix)]
pub use run::run;
pub use secrecy::hide_variables;
pub use spec::{ChildSpec, Ending, Finished, Streams};
