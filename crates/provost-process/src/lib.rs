//! Child processes, with pipes or at a terminal, that cannot hang Provost and cannot outlive it.
//!
//! [`run`] starts a program, writes its input, reads its output, waits for it, and returns when none of its
//! descendants is left. On Unix each child runs below a *guard*: a fork of this process that executes no program,
//! adopts every orphan of the child (Linux), and kills the rest as soon as the caller is gone, also after
//! `kill -9`. [`PtySupervisor`] does the same for a program at a terminal, whose screen and keyboard it also
//! serves.
//!
//! | file | what lives there |
//! |---|---|
//! | `launch.rs`, `launch/` | what to start and what confines it, a box too; the one place that starts programs |
//! | `spec.rs` | what to run to its end, and its result |
//! | `error.rs` | why a child couldn't be started |
//! | `capture.rs` | the kept head and tail of a stream |
//! | `env.rs` | the environment children may see |
//! | `secrecy.rs` | hides secrets of this process from others |
//! | `file_size.rs` | a write beyond the limit on the size of files fails |
//! | `stop.rs` | stops this process as a shell's job |
//! | `streams.rs` | which standard streams this process was started without |
//! | `ancestry.rs` | whether a run has started this process |
//! | `run.rs` | one child from start to end |
//! | `detached.rs` | a program that outlives this process |
//! | `drain.rs` | writes and reads the pipes |
//! | `log_file.rs` | the output of a child in a file |
//! | `start.rs` | its pipes, and the channel to its guard (unix) |
//! | `guard.rs`, `guard/` | the guard (unix); with `secrecy.rs`, `streams.rs` and `file_size.rs` the only `unsafe` code of Provost |
//! | `portable.rs` | the same `run` with fewer guarantees (other platforms) |
//! | `piped.rs`, `piped/` | a long-lived child with a line protocol; one with the streams of this process |
//! | `pty.rs` | a program at a terminal, as its supervisor's handle |
//! | `pty/options.rs` | what to start there, and the requests to it |
//! | `pty/reader.rs` | what a terminal must know of its screen: the interface to a detector |
//! | `pty/terminal.rs`, `pty/terminal/asks.rs` | the owner of one terminal, on its thread |
//! | `pty/shared.rs`, `pty/output.rs`, `pty/events.rs`, `pty/view.rs`, `pty/watcher.rs` | the channels between that thread and the handles |
//! | `pty/typing.rs`, `pty/live.rs`, `pty/ending.rs` | input; output for watchers; the stages of ending |
//! | `pty/device.rs`, `pty/unix.rs`, `pty/windows.rs` | the platforms |
//! | `pty/kernel.rs` | what the kernel reports about the processes there |
//! | `registry.rs` | the guards of this process, and the processes it adopted from a killed guard |
//! | `sweep.rs`, `sweep/linux.rs` | ends the processes below a guard that doesn't answer, or was killed |
//! | `leftover.rs` | the processes that a killed Provost has left |
//! | `identity.rs` | a process that isn't below this one, and how to end it |
//!
//! Invariants:
//! - A child has the environment of its spec, three descriptors, default signal handlers, and no controlling
//!   terminal except the one it is started at: it inherits nothing else from Provost.
//! - Only the guard signals processes, and it signals only its own unreaped children, their groups, and the group
//!   that a terminal has just reported as its foreground: a reused process id is never hit. Leftovers of a killed
//!   Provost are killed by process descriptors that were checked against the start time.
//! - Only Provost itself holds a terminal's master, so its death hangs the terminal up; the guard has neither
//!   side.
//! - A terminal's thread waits for no caller, and every queue has a bound.
//! - A secret is typed only while the terminal's echo is off, and reaches neither recording nor log nor reader.
//! - A guard has unmapped its caller's memory before the program is executed (Linux on x86-64 and AArch64).
//! - The guard allocates nothing, takes no lock and holds no descriptor except the control channel and its
//!   signals.
//! - The guard ends when no process is left below it, so the end of the control channel means "all gone".
//!
//! - On Linux with the rights to make a process namespace (root's) the child is in one, from which it can't reach
//!   its guard: it is pid 2 of its own `/proc`. Outside, it and its descendants descend from the guard as usual,
//!   and inside from process 1, which is a fork of this program too: a walk up the parents finds this program in
//!   both.
//! - Processes are reported as ended only after that was observed ([`Finished::is_all_ended`]).
//!
//! Limits: without a namespace, a child of the same user can stop or kill its guard. Processes below a guard that
//! doesn't answer are killed, and then the guard, if it still doesn't answer. What a killed guard leaves is ended
//! where this process [adopts orphans](adopt_orphans), and then only this crate may wait for children that it
//! didn't name. When Provost is killed while a guard is stopped, [`end_leftovers`] ends the rest at the next
//! start. Off Linux no process adopts orphans: a descendant that leaves the process group is out of reach.

mod ancestry;
mod capture;
mod detached;
mod drain;
mod env;
mod error;
mod file_size;
#[cfg(unix)]
mod guard;
mod identity;
mod launch;
mod leftover;
mod log_file;
mod masked;
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
mod stop;
mod streams;
#[cfg(unix)]
mod sweep;

pub use ancestry::{Descent, descent, descent_of, mark_descendants};
pub use capture::Captured;
pub use detached::{
    BackgroundProcess, Begun, Detached, FirstErrors, FirstLine, IntoFile, OpeningLine, start_detached,
    start_in_background, start_into_file, start_on_its_own,
};
pub use drain::OutputWatch;
pub use env::{allowed_env, helper_env, inherited_env};
pub use error::SpawnError;
pub use file_size::outlive_file_size_limit;
#[cfg(unix)]
pub use guard::namespaces_are_there as guards_are_out_of_reach;
pub use identity::ProcessIdentity;
pub use launch::{
    AtTerminal, BoxedCommand, Confinement, Launch, OpenPipes, OwnOutput, OwnStreams, ProgramBox, Stdio,
    Streams,
};
#[cfg(unix)]
pub use launch::{run_attached, run_helper};
pub use leftover::{boot_id, end_leftovers};
pub use log_file::{LogEnd, LogFile};
pub use masked::{MASKED_IN_HOME, MaskedPaths};
pub use piped::{OwnStreamsChild, PipeClosed, Piped, PipedChild, PipedCommand, PipedEnding};
#[cfg(not(unix))]
pub use portable::{
    adopt_orphans, end_adopted_leftovers, keep_ledger, run, run_leaving, run_logged, run_watched,
};
pub use pty::{
    Changes, Cursor, Detected, EVENTS_MAX, EventSubscription, Events, ExposedSecret, KernelConnections,
    KernelSample, ModelConnections, Modes, Mouse, NewScreenReader, OUTPUT_BYTES_MAX, OutputSubscription,
    Painted, PtyError, PtyOptions, PtySignal, PtySupervisor, QuitPlan, QuitStep, Recorder, ScreenReader,
    TerminalView, WATCHER_BYTES_MAX, Watcher, WatcherKind, is_shell,
};
#[cfg(unix)]
pub use registry::{adopt_orphans, end_adopted_leftovers, keep_ledger};
#[cfg(unix)]
pub use run::{run, run_leaving, run_logged, run_watched};
pub use secrecy::{be_untraceable, hide_variables};
pub use spec::{ChildSpec, Ending, Finished, MAYBE_LEFT};
pub use stop::stop_this_process;
pub use streams::stdout_was_closed;
