//! The sandbox of agents: what their programs and file tools may read, write and reach.
//!
//! [`LocalSandbox`] implements the harness's port for this machine. One [`SandboxPolicy`](provost_event::SandboxPolicy)
//! decides for programs and file tools alike: [`FileRules`] says what it means in a folder. On Linux a program is
//! started by `bwrap`, confined by Landlock and a filter of system calls, below the guard of every child. The steps
//! between are this program again: its `main` calls [`run_step_if_asked`] first.
//!
//! Invariants:
//! - What can't be confined isn't started where the policy requires a sandbox.
//! - A box is this process's: its namespaces are held by descriptors only, so nothing of it is left after `kill -9`,
//!   except its folder and covers, which the next process removes.
//! - The first process in a box is confined like all others.

mod caches;
mod denial;
mod explain;
mod folders;
mod git_settings;
mod homes;
mod keeping;
mod probe;
mod repository;
mod rules;
mod sandbox;
mod shown;

#[cfg(target_os = "linux")]
mod agent_box;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere_box.rs"]
mod agent_box;
#[cfg(target_os = "linux")]
mod covers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod linux;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(not(target_os = "linux"))]
#[path = "proxy/hosts.rs"]
mod proxy;

pub use caches::Cache;
pub use explain::{Explanation, PathExplanation, explain};
pub use linux::run_step_if_asked;
pub use probe::{Finding, FindingState, Probe};
pub use proxy::HostPattern;
pub use repository::Exclude;
pub use rules::{Cover, FileRules, Places, PrivateFolder, Protected};
pub use sandbox::{LocalSandbox, SandboxOptions};
pub use shown::{Shown, ShownEntry};
