//! The built-in tools of Provost's native agents.
//!
//! ```text
//! arguments (JSON) ──arguments──▶ a tool ──job──▶ its own thread ──workspace──▶ files
//!                                   └──shell──▶ provost-process
//! ```
//!
//! | file | what lives there |
//! |---|---|
//! | `arguments.rs` | schemas from argument types, and parsing arguments |
//! | `spec.rs` | the common part of all specs, and their limits |
//! | `form.rs` | how calls differ in other programs: names and values of arguments |
//! | `kept.rs` | stored outputs of earlier calls |
//! | `job.rs` | blocking work: on a thread of its own, stopped by the cancel token |
//! | `failure.rs` | why a tool failed, in messages for the model |
//! | `workspace.rs`, `workspace/` | paths that stay in the workspace, opening, replacing, similar names |
//! | `seen.rs` | which files an agent knows |
//! | `text.rs`, `window.rs`, `sniff.rs` | cutting text, reading a few lines of a long stream, binary files |
//! | `picture.rs` | the size of a picture, and whether it is complete |
//! | `walk.rs` | walking folders, honouring ignore files |
//! | `read_file.rs` … `update_plan.rs` | one tool each, with its parts in a folder of its name |
//!
//! Invariants:
//! - A path argument is resolved (`..`, symlinks, dangling ones too) before it is compared with the workspace, and
//!   the file is then opened relative to a handle of the workspace, which the system keeps from leading out of it
//!   (`RESOLVE_BENEATH` on Linux, a walk without following links elsewhere): a link that is swapped in between
//!   check and use gains nothing. Walks of folders (`list_dir`, `search`) don't follow links.
//! - Only regular files are read; a FIFO or a device never makes a call hang.
//! - A file is replaced as a whole or not at all.
//! - No tool holds more in memory than its named limits, for any size of its input.
//! - A program at a terminal or in the background belongs to one session, and ends with it. Nothing is typed into a password prompt.
//! - The tools read no environment; `provost-process` selects the variables that a child may see.

mod apply_patch;
mod arguments;
mod edit_file;
mod failure;
mod form;
mod function;
mod job;
mod jobs;
mod kept;
mod list_dir;
mod picture;
mod read_file;
mod search;
mod seen;
mod shell;
mod skill;
mod sniff;
mod spec;
mod terminal;
mod text;
mod update_plan;
mod walk;
mod window;
mod workspace;
mod write_file;

use provost_event::{ModelPolicy, ToolSpec};
use provost_harness::{Recall, ServiceStarter, ToolRegistry};

pub use apply_patch::ApplyPatch;
pub use edit_file::EditFile;
pub use function::{FunctionTool, IntoToolOutput, tool, tool_in};
pub use jobs::{BackgroundJobs, Jobs};
pub use list_dir::ListDir;
pub use read_file::ReadFile;
pub use search::Search;
pub use seen::FilesSeen;
pub use shell::{SHELL_KEEP_BYTES_MAX, Shell};
pub use skill::{SkillText, UseSkill};
pub use spec::OUTPUT_BYTES_MAX;
pub use terminal::Terminal;
pub use update_plan::UpdatePlan;
pub use write_file::WriteFile;

/// Removes from `tools`, if it has both tools that change parts of files, the one that a model like this wasn't taught.
pub fn keep_edits_of(model: &ModelPolicy, tools: &mut Vec<ToolSpec>) {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    if has(edit_file::NAME) && has(apply_patch::NAME) {
        let other = if model.patches { edit_file::NAME } else { apply_patch::NAME };
        tools.retain(|tool| tool.name != other);
    }
}

/// Returns all tools of this crate, with their defaults, and the harness's own [`Recall`].
#[must_use]
pub fn builtin() -> ToolRegistry {
    let jobs = BackgroundJobs::new();
    with_shell(Shell::new().with_jobs(jobs.clone()), Jobs::new(jobs.clone()), jobs)
}

/// The same, with background commands as these jobs, and services that are started by `services`.
#[must_use]
pub fn builtin_with(jobs: BackgroundJobs, services: ServiceStarter) -> ToolRegistry {
    let folder = services.services.clone();
    let shell = Shell::new().with_jobs(jobs.clone()).with_services(services);
    with_shell(shell, Jobs::new(jobs.clone()).with_services(folder), jobs)
}

fn with_shell(shell: Shell, jobs: Jobs, background: BackgroundJobs) -> ToolRegistry {
    let seen = FilesSeen::default();
    ToolRegistry::new()
        .with(ReadFile::new().with_seen(seen.clone()).with_jobs(background.clone()))
        .with(WriteFile::new().with_seen(seen.clone()))
        .with(EditFile::new().with_seen(seen.clone()))
        .with(ApplyPatch::new().with_seen(seen))
        .with(ListDir::new())
        .with(Search::new().with_jobs(background))
        .with(shell)
        .with(jobs)
        .with(Terminal::new())
        .with(UpdatePlan::new())
        .with(Recall::new())
}
