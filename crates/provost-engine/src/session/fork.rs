//! A session whose conversation begins as a copy of another's: what it takes over, and how it starts.

use provost_event::{AgentPolicy, ItemKind, SessionFork, SessionStarted, Snapshot};

use super::{Deciding, Phase, SessionState};
use crate::event::ForkStart;
use crate::session::{calls::run, model_call, worktree};
use crate::snapshot;

/// Begins with the other conversation: the model also gets what was pending there, and the message.
pub(in crate::session) fn start(deciding: &mut Deciding<'_>, fork: ForkStart) {
    let ForkStart { started, is_told_more } = fork;
    let Some(came_from) = started.fork.as_ref().map(|fork| fork.workspace.clone()) else { return };
    let workspace = started.policy.workspace.clone();
    deciding.commit(*started);
    run::answer_forked_calls(deciding);
    worktree::make(deciding);
    if workspace != came_from {
        let tree = deciding.state.worktree.branch().map_or_else(String::new, |branch| {
            format!(", a git worktree of your own on the branch {branch}")
        });
        let body = format!(
            "This conversation goes on in another folder than before. You work in {}{tree} now, and not in {} any \
             more; files may differ from what you have seen.",
            workspace.display(),
            came_from.display(),
        );
        deciding.say(ItemKind::Resumed, body);
    } else if !is_told_more && !deciding.state.conversation.has_news() {
        deciding.say(ItemKind::Resumed, "You have been asked to go on from here.");
    }
    if deciding.state.lifecycle.phase() == Phase::Ready {
        model_call::next_call(deciding);
    }
}

impl SessionState {
    /// What a fork of the session takes over.
    #[must_use]
    pub fn fork_state(&self) -> Snapshot {
        snapshot::of(self)
    }

    /// The policy for a fork of the session, with the model that was set since it began.
    #[must_use]
    pub fn fork_policy(&self) -> Option<AgentPolicy> {
        let mut policy = self.assignment.policy().cloned()?;
        if let Some(named) = self.models.named() {
            policy.model = named.clone();
        }
        Some(policy)
    }
}

/// The initial state of a fork: with the sizes of what the source's model has seen, and with its calls that
/// have no result. Limits, counters and the state of hooks begin anew.
pub(in crate::session) fn begins_as_fork(
    state: &mut SessionState,
    started: &SessionStarted,
    fork: &SessionFork,
) {
    let head = fork.through().next();
    let came_from = snapshot::state_of::<SessionState>(&fork.state);
    if let Some(from) = came_from {
        state.conversation.taken_over(from.conversation);
        state.folder_rules = from.folder_rules;
        state.turns.taken_over(from.turns);
        state.calls.taken_over(from.calls);
    }
    state.head = head;
    state.conversation.forked(started);
    state.hooks.forked();
}
