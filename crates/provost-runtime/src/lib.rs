//! From settings to a running harness: models, tools, hooks, observers, power, programs, and the policy of a run.
//!
//! [`StateDir`] is where runs are kept, and makes the harness; [`Team`] chooses the models of a run's agents, and
//! [`policy`] puts together what binds the run; [`today`] does the same for a run that was started before. The command
//! line, and every other program that runs agents by `provost.toml`, uses this one assembly. It prints nothing and asks
//! nothing: what the user should be told is a [`Notice`], what is wrong a [`RuntimeError`].

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "its callers say what is shown")]

mod afford;
mod again;
mod choose;
mod context;
mod default_limit;
#[cfg(test)]
mod effects;
mod engine;
mod error;
mod external;
mod gateway;
mod goals;
mod hook_models;
mod matching;
mod mcp;
mod notify;
mod observers;
mod paths;
mod preamble;
mod providers;
mod remote;
mod retire;
mod seen;
mod state_dir;
mod team;
mod today;
mod trust;
mod window;

use std::collections::BTreeMap;

pub use again::choose_again;
pub use choose::{Choosing, Chosen, Wanted, choose_model, retiring, words};
pub use context::{Programs, RunContext, power};
pub use default_limit::{UNPRICED_REMEDY, default_limit, unpriced_beside_priced, unpriced_in_words};
pub use engine::{
    EngineConnection, EngineWorker, Listening, RunningWorker, WorkerEndpoint, WorkerNotice, host_name,
    shared_listener,
};
pub use error::{Notice, Refusal, RuntimeError};
pub use external::{
    Manner, Wanted as WantedProgram, external_policy, is_program, metering_of, passed, profile_of,
    programs_problems,
};
pub use matching::HookMatching;
pub use mcp::{
    McpServer, agree, inspect_server, known_catalog, mcp_catalog, mcp_servers, mcp_setup, with_mcp,
};
pub use notify::Bell;
pub use observers::{complaints, keep, observers};
pub use paths::{asked, beside, with_absolute_paths};
pub use preamble::{Places, rules_of, with_preamble, with_skills};
pub use providers::{all_secrets, holds_secret, providers};
pub use remote::with_remote;
pub use seen::SeenFile;
pub use state_dir::{SUPERVISE, StateDir, leave_store};
pub use team::{
    Judges, Team, available_tools, doubts, frozen_models, known_tool, known_tools, misplaced, models_of,
    note_once, policy, programs_of, unaffordable, wanted,
};
pub use today::{Before, Today, given_flags, today, today_in_part, with_file, with_flag};
pub use trust::{require, require_by};

use provost_tools::UseSkill;

/// The environment, as text.
pub type Variables = BTreeMap<String, String>;

fn tools() -> provost_harness::ToolRegistry {
    provost_tools::builtin().with(UseSkill::new(Vec::new()))
}
