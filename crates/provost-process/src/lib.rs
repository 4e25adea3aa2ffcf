//! Child processes, with pipes or at a terminal, that cannot hang Provost and cannot outlive it.
//!
//! [`run`] starts a program, feeds it, drains it, waits for it, and returns when nothing descended from it is
//! left. On unix each child runs below a *guard*: a fork of this process that executes nothing, adopts every
//! orphan of the child (Linux), and kills what is left as soon as the caller is gone, also by `kill -9`.
//! [`PtySupervisor`] does the same for a program at a terminal, which it also shows, types at and looks on at.
//!
//! | file | what lives there |
//! |---|---|
//! | `spec.rs` | what to start and what came of it |
//! | `error.rs` | why a child couldn't be started |
//! | `capture.rs` | the kept head and tail of a stream |
//! | `env.rs` | the environment children may see |
//! | `secrecy.rs` | what others may not see of this process's own |
//! | `streams.rs` | which standard streams this process was started without |
//! | `ancestry.rs` | whether a run has started this process |
//! | `run.rs` | one child from start to end |
//! | `drain.rs` | feeding and reading the pipes |
//! | `start.rs` | pipes, control channel, spawn (unix) |
//! | `guard.rs`, `guard/` | the guard (unix); with `secrecy.rs` and `streams.rs` the only `unsafe` code of Provost |
//! | `portable.rs` | the same `run` with fewer promises (elsewhere) |
//! | `piped.rs`, `piped/` | a child that lives on and is spoken to by lines |
//! | `pty.rs` | a program at a terminal, as its supervisor's handle |
//! | `pty/options.rs` | what to start there, with what, and what can be asked of it |
//! | `pty/terminal.rs`, `pty/terminal/asks.rs` | the owner of one terminal, on its thread |
//! | `pty/shared.rs`, `pty/output.rs`, `pty/events.rs`, `pty/view.rs`, `pty/watcher.rs` | what goes between that thread and the handles |
//! | `pty/typing.rs`, `pty/live.rs`, `pty/ending.rs` | what is typed; what watchers are shown; how far the ending is |
//! | `pty/device.rs`, `pty/unix.rs`, `pty/windows.rs` | the platforms |
//! | `pty/kernel.rs` | what the kernel says of the processes there |
//! | `registry.rs` | the guards of this process, and what one that was killed has left to it |
//! | `sweep.rs`, `sweep/linux.rs` | ending what is below a guard that doesn't answer, or was killed |
//! | `leftover.rs` | what a killed Provost has left |
//!
//! Invariants:
//! - A child has the environment of its spec, three descriptors, default signal handlers, no controlling terminal but
//!   the one it is started at: it inherits nothing else of Provost's.
//! - Nobody but the guard signals processes, and it signals only its own unreaped children, their groups, and the group
//!   that a terminal has just named as its foreground: a reused process number is never hit. What is left of a killed
//!   Provost is killed by process descriptors that were checked against the time of its start.
//! - Nobody but Provost itself has a terminal's master, so its death hangs the terminal up; the guard has neither side.
//! - A terminal's thread waits for nobody, and nobody's queue grows without a bound.
//! - A secret is typed only while the terminal's echo is off, and reaches neither recording nor log nor detector.
//! - The guard allocates nothing, takes no lock and holds no descriptor but the control channel and its signals.
//! - The guard ends when nothing is left below it, so the end of the control channel means "all gone".
//!
//! - On Linux with the rights to make a process namespace (root's) the child is in one, out of which it can't reach its guard: it
//!   is pid 2 of its own `/proc`. From outside it and all it starts descend from the guard as ever, and from inside from
//!   process 1, a fork of this program too: whoever goes up by parents finds this program in both.
//! - That all is ended is said only after it was seen ([`Finished::is_all_ended`]).
//!
//! What it can't do: elsewhere a child of the same user can stop or kill its guard. What is below a guard that doesn't answer is
//! killed, and then the guard, if it still doesn't; what one that was killed leaves is ended where this process [adopts
//! orphans](adopt_orphans), and nobody but this crate may then wait for children that this crate didn't name. When
//! Provost is killed while a guard is stopped, [`end_leftovers`] ends what is left, at the next start. Off Linux nobody adopts orphans: a descendant that leaves the process group is out of reach.
//! While a child runs, its guard keeps the pages alive that the caller rewrites meanwhile.

mod ancestry;
mod capture;
mod drain;
mod env;
mod error;
#[cfg(unix)]
mod guard;
mod leftover;
mod piped;
#[cfg(not(unix))]
mod portable;
mod pty;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
mod run;
mod secrecy;
mod spec;
#[cfg(unix)]
mod start;
mod streams;
#[cfg(unix)]
mod sweep;

pub use ancestry::{Descent, descent, mark_descendants};
pub use capture::Captured;
pub use env::allowed_env;
pub use error::SpawnError;
#[cfg(unix)]
pub use guard::namespaces_are_there as guards_are_out_of_reach;
pub use leftover::end_leftovers;
pub use piped::{PipeClosed, Piped, PipedChild, PipedCommand, PipedEnding};
#[cfg(not(unix))]
pub use portable::{adopt_orphans, end_adopted_leftovers, keep_ledger, run};
pub use pty::{
    Changes, EVENTS_MAX, EventWish, Events, OUTPUT_BYTES_MAX, OutputWish, Painted, PtyCommand, PtyError,
    PtyOptions, PtySignal, PtySupervisor, QuitPlan, QuitStep, Recorder, TerminalView, WATCHER_BYTES_MAX,
    Watcher,
};
#[cfg(unix)]
pub use registry::{adopt_orphans, end_adopted_leftovers, keep_ledger};
#[cfg(unix)]
pub use run::run;
pub use secrecy::hide_variables;
pub use spec::{ChildSpec, Ending, Finished, MAYBE_LEFT, Streams};
pub use streams::stdout_was_closed;
