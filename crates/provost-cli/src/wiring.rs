//! What the command line adds to the runtime: the process's environment, its terminal, and how notices are shown.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use provost_backend::Damage;
use provost_config::{EngineUrl, Folders, Settings};
use provost_event::{Permission, RunPolicy};
use provost_runtime::{Notice, StateDir, Variables, holds_secret};

use crate::output::tell;

/// What the process was started with, read before its secrets are hidden.
static STARTED_WITH: OnceLock<Variables> = OnceLock::new();

/// The engine that the command line names.
static ENGINE: OnceLock<EngineUrl> = OnceLock::new();
/// The variable of that setting.
const ENGINE_VARIABLE: &str = "PROVOST_ENGINE_URL";

/// From now on the settings name this engine, here and in processes that are started to work on runs.
pub(crate) fn use_engine(engine: &EngineUrl) {
    let _ = ENGINE.set(engine.clone());
}

/// The process's environment, as it was at the start.
pub(crate) fn variables() -> Variables {
    let mut variables = STARTED_WITH.get_or_init(read_variables).clone();
    if let Some(engine) = ENGINE.get() {
        variables.insert(ENGINE_VARIABLE.to_owned(), engine.to_string());
    }
    variables
}

/// Keeps the values of variables that by their names hold secrets from the agent's own commands, which could read
/// them where the system shows this process's environment. Called before anything else runs.
pub(crate) fn hide_secrets() {
    let _ = STARTED_WITH.get_or_init(read_variables);
    provost_process::hide_variables(holds_secret);
}

fn read_variables() -> Variables {
    let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// Where runs are kept, by `settings` or the platform.
pub(crate) fn state_dir(settings: &Settings, folders: &Folders) -> StateDir {
    StateDir::new(settings, folders, tell_notice).with_engine(settings, &variables())
}

fn tell_notice(notice: &Notice) {
    match notice {
        Notice::LeftoversEnded { count } => {
            tell(&format!("note: processes that a killed Provost had left were ended: {count}"));
        }
        Notice::LeftoversUnknown(error) => {
            tell(&format!("warning: what a killed Provost may have left isn't known: {error}"));
        }
        Notice::NotNotified(why) => tell(&format!("warning: not notified: {why}")),
        Notice::StoreLoss(loss) => tell(&format!("warning: {loss}; `provost doctor --store` says more")),
    }
}

/// Prepares the store for copying, and reports what of it couldn't be read. Returns whether all of it could.
pub(crate) async fn leave_store() -> bool {
    let noted = provost_runtime::leave_store().await;
    for Damage { actor, seq, message } in &noted {
        tell(&format!(
            "error: the log of {actor} can't be read at entry {seq}: {message}; only what stands before it is shown"
        ));
    }
    noted.is_empty()
}

/// How long a run waits for a provider that can't be reached: not at all when a user is at the terminal.
pub(crate) fn outage_max_ms(settings: &Settings) -> u64 {
    if is_attended() { 0 } else { settings.outage_max_ms }
}

/// `policy`, where a user at the terminal sees at once that a provider can't be reached, and is asked about reads
/// outside of the workspace, and about commands that are to go on after the run or to run outside of the sandbox.
pub(crate) fn attended(policy: RunPolicy) -> RunPolicy {
    if is_attended() { with_person(policy) } else { policy }
}

/// The same where a user is at the terminal of another process.
pub(crate) fn with_person(mut policy: RunPolicy) -> RunPolicy {
    let agents = policy.agents.iter_mut().map(|agent| &mut agent.agent);
    for agent in agents.chain([&mut policy.agent]) {
        agent.limits.outage_max_ms = 0;
        agent.permissions.elsewhere = Permission::Ask;
        agent.permissions.keeping = Permission::Ask;
        agent.permissions.leaving = Permission::Ask;
    }
    policy
}

fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
