//! Runs whose files are in a remote git repository.

use std::path::Path;

use provost_config::Settings;
use provost_engine::worktree_name;
use provost_event::{AgentPolicy, RunId, RunPolicy, SessionId};
use provost_harness::{RemoteStartError, start_remote};

use crate::{Refusal, RuntimeError, StateDir};

/// `policy` of the new run `run` in `folder`, to work in worktrees of the remote repository that the settings name, if they
/// do and runs are kept in an engine. Says what the user should know.
///
/// # Errors
/// When the project can't be pushed there.
pub async fn with_remote(
    mut policy: RunPolicy,
    settings: &Settings,
    place: &StateDir,
    (run, folder): (RunId, &Path),
) -> Result<(RunPolicy, Option<String>), RuntimeError> {
    let Some(remote) = settings.engine.git_remote.as_deref().filter(|_| place.engine().is_some()) else {
        return Ok((policy, None));
    };
    if policy.flow.is_some() {
        let what = "a workflow can't work in a remote git repository: its steps share one folder";
        return Err(Refusal::new(what, "PROVOST_ENGINE_GIT_REMOTE=none starts it without one").into());
    }
    let worktrees = place.worktrees();
    let started = start_remote(folder, remote, run, &worktrees).await.map_err(refusal)?;
    let workspace = worktrees.join(worktree_name(SessionId::root(run)));
    move_to(&mut policy, folder, &workspace);
    policy.worktrees = Some(worktrees);
    policy.remote = Some(started.repository);
    let note = (started.uncommitted > 0).then(|| {
        format!(
            "the run begins with the last commit; files with uncommitted changes, which it doesn't have: {}",
            started.uncommitted
        )
    });
    Ok((policy, note))
}

/// Has the agents that were to work in the folder `from` work in `to`.
pub(crate) fn move_to(policy: &mut RunPolicy, from: &Path, to: &Path) {
    let told = |path: &Path| format!("Workspace: {} (", path.display());
    let agents = policy.agents.iter_mut().map(|agent| &mut agent.agent);
    let moves = |agent: &&mut AgentPolicy| agent.workspace == from;
    for agent in agents.chain([&mut policy.agent]).filter(moves) {
        agent.workspace = to.to_owned();
        agent.system_prompt = agent.system_prompt.replacen(&told(from), &told(to), 1);
    }
}

fn refusal(error: RemoteStartError) -> Refusal {
    let remedy = match &error {
        RemoteStartError::NoWorkTree(_) => {
            "start it there; or with PROVOST_ENGINE_GIT_REMOTE=none, and it works in this folder"
        }
        RemoteStartError::NoCommit(_) => "commit something first",
        RemoteStartError::NoRemote { .. } => {
            "`git remote add` adds it; engine.git_remote names another, an address, or `none`"
        }
        RemoteStartError::Address { .. } => "see engine.git_remote",
        _ => {
            "try `git push` there; Provost uses git's credential helpers and ssh's agent, and asks for no password"
        }
    };
    Refusal::new(format!("engine.git_remote: {error}"), remedy)
}
