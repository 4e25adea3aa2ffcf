//! Forks: the conversation of one agent up to an entry, as the start of another run, and how it is read.

use std::sync::Arc;

use provost_engine::{Actor, SessionState};
use provost_event::{
    ActorKey, AgentPolicy, ConversationEntry, Entry, ForkBase, LifecycleEntry, Record, Seq, SessionFork,
    SessionId, SessionStarted, Timestamp, ToolEntry, Worktree, WorktreeMade,
};

use crate::executor::commit_at;
use crate::{BackendError, EntryChain, Log};

/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// At most `max` entries of the conversation of `session` after `after`, in order: those of its own log, and
/// before them those of the logs that it is a fork of. Costs the same as reading one log, however many forks are
/// between.
///
/// # Errors
/// When they can't be read, or a log that a fork refers to doesn't exist.
pub async fn read_conversation(
    backend: &dyn Log,
    session: SessionId,
    after: Seq,
    max: usize,
) -> Result<Vec<Arc<Record>>, BackendError> {
    let own = backend.read(session.into(), after, max).await?;
    let next = after.next();
    let Some(first) = own.first().filter(|first| first.seq != next) else { return Ok(own) };
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted { fork: Some(fork), .. })) =
        &first.entry
    else {
        return Ok(own);
    };
    let Some(base) = fork.base_of(next) else { return Ok(own) };
    let missing = usize::try_from(base.through.0.saturating_sub(after.0)).unwrap_or(usize::MAX);
    let records = backend.read(base.session.into(), after, missing.min(max)).await?;
    if records.first().is_none_or(|record| record.seq != next) {
        let what =
            format!("entry {next} of {}, which the conversation of {session} begins with", base.session);
        return Err(BackendError::Unknown { what });
    }
    Ok(records)
}

/// Why a conversation can't be forked there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// There is no such agent, or it hasn't started.
    #[error("agent {} of run {} hasn't begun", .0.agent, .0.run)]
    NotBegun(SessionId),
    /// The conversation of an external agent belongs to its program.
    #[error("agent {} of run {} is an external agent, and its conversation is its program's own", .0.agent, .0.run)]
    External(SessionId),
    /// The log is shorter.
    #[error("the log of agent {} of run {} has no entry {at}: its last is {last}", session.agent, session.run)]
    OutOfRange {
        /// The agent of the log.
        session: SessionId,
        /// The requested entry.
        at: Seq,
        /// The log's last entry.
        last: Seq,
    },
    /// The entry isn't part of a conversation.
    #[error("entry {at} is `{kind}`, which is no part of the conversation")]
    NoPartOfIt {
        /// The entry.
        at: Seq,
        /// Its kind.
        kind: &'static str,
        /// The last such entry before it.
        before: Option<Seq>,
    },
    /// The log can't be read.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// An agent's conversation up to an entry, to start a run with.
#[derive(Debug, Clone)]
pub struct ForkPoint {
    /// The agent. For a fork's entries from another log, the agent of that log.
    pub session: SessionId,
    /// The last entry.
    pub at: Seq,
    /// The time of that entry.
    pub made_at: Timestamp,
    /// The conversation's goal.
    pub goal: String,
    /// The agent's policy, with the model at that entry.
    pub policy: AgentPolicy,
    /// The agent's own worktree, if it had one.
    pub worktree: Option<(Worktree, WorktreeMade)>,
    fork: SessionFork,
}

impl ForkPoint {
    /// Finds the entry `at` in the log of `session`, or the last one after which a run can start. Reads only the
    /// log up to there.
    ///
    /// # Errors
    /// When there is no such entry, or none after which a run can start.
    pub async fn find(backend: &dyn Log, session: SessionId, at: Option<Seq>) -> Result<Self, ForkError> {
        let first = backend.read(session.into(), Seq::START, 1).await?;
        let Some(first) = first.first() else { return Err(ForkError::NotBegun(session)) };
        let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &first.entry else {
            return Err(ForkError::NotBegun(session));
        };
        if started.policy.external.is_some() {
            return Err(ForkError::External(session));
        }
        let elsewhere = started.fork.as_ref().and_then(|fork| fork.base_of(at?));
        match elsewhere {
            Some(base) => Box::pin(Self::find(backend, base.session, at)).await,
            None => Self::read(backend, (session, started), at).await,
        }
    }

    async fn read(
        backend: &dyn Log,
        (session, started): (SessionId, &SessionStarted),
        at: Option<Seq>,
    ) -> Result<Self, ForkError> {
        let at = match at {
            Some(at) => at,
            None => last_part(backend, session, None).await?.ok_or(ForkError::NotBegun(session))?,
        };
        let mut reached = Reached::new(session);
        while reached.actor.head() < at {
            let missing = at.0.saturating_sub(reached.actor.head().0);
            let max = usize::try_from(missing).unwrap_or(READ_MAX).min(READ_MAX);
            let records = backend.read(session.into(), reached.actor.head(), max).await?;
            if records.is_empty() {
                let last = reached.actor.head();
                return Err(ForkError::OutOfRange { session, at, last });
            }
            for record in records.iter().filter(|record| record.seq <= at) {
                reached.take_in(record)?;
            }
        }
        let Some(last) = reached.last.filter(|last| last.seq == at) else {
            return Err(ForkError::OutOfRange { session, at, last: reached.actor.head() });
        };
        if !is_part(&last.entry) {
            let before = last_part(backend, session, Some(at)).await?;
            return Err(ForkError::NoPartOfIt { at, kind: last.entry.kind(), before });
        }
        let Actor::Session(state) = &reached.actor else { return Err(ForkError::NotBegun(session)) };
        let mut bases = started.fork.as_ref().map(|fork| fork.bases.clone()).unwrap_or_default();
        bases.push(ForkBase { session, through: at, hash: reached.chain.to_string() });
        Ok(Self {
            session,
            at,
            made_at: last.at,
            goal: started.goal.clone(),
            policy: state.fork_policy().unwrap_or_else(|| started.policy.clone()),
            worktree: state.worktree().map(|(worktree, made)| (worktree.clone(), made.clone())),
            fork: SessionFork {
                bases,
                workspace: started.policy.workspace.clone(),
                reminder_id: started.reminder_id.clone(),
                state: SessionState::fork_state(state),
            },
        })
    }

    /// The last commit of the agent's own worktree at the entry, by the times of the commits; `None` if it had no
    /// worktree.
    ///
    /// # Errors
    /// Why git can't answer.
    pub async fn commit_then(&self) -> Result<Option<String>, String> {
        let Some((worktree, made)) = &self.worktree else { return Ok(None) };
        commit_at(made, &worktree.branch, self.made_at).await.map(Some)
    }

    /// The start of a run that is forked there.
    #[must_use]
    pub fn into_fork(self) -> SessionFork {
        self.fork
    }
}

/// The state of a log up to an entry.
struct Reached {
    actor: Actor,
    chain: EntryChain,
    last: Option<Arc<Record>>,
}

impl Reached {
    fn new(session: SessionId) -> Self {
        Self { actor: Actor::new(session.into()), chain: EntryChain::new(), last: None }
    }

    fn take_in(&mut self, record: &Arc<Record>) -> Result<(), BackendError> {
        self.actor.replay(record).map_err(|error| BackendError::Unreadable {
            actor: record.actor,
            seq: record.seq,
            message: error.to_string(),
        })?;
        if self.last.is_none() {
            self.chain = EntryChain::before(&record.entry);
        }
        self.chain.add(record);
        self.last = Some(record.clone());
        Ok(())
    }
}

/// The last entry of a log (before `before` if given) after which a run can start.
async fn last_part(
    backend: &dyn Log,
    session: SessionId,
    before: Option<Seq>,
) -> Result<Option<Seq>, BackendError> {
    let (mut found, mut after) = (None, Seq::START);
    loop {
        let records = backend.read(ActorKey::from(session), after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(found) };
        after = last.seq;
        let fits =
            |record: &&Arc<Record>| before.is_none_or(|before| record.seq < before) && is_part(&record.entry);
        found = records.iter().rfind(fits).map(|record| record.seq).or(found);
        if before.is_some_and(|before| after >= before) {
            return Ok(found);
        }
    }
}

/// Whether a conversation can end with `entry`: it is a message, or the end of a turn or a segment.
const fn is_part(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Lifecycle(
            LifecycleEntry::SessionStarted(_)
                | LifecycleEntry::Paused(_)
                | LifecycleEntry::Resumed(_)
                | LifecycleEntry::Ended(_)
        ) | Entry::Conversation(
            ConversationEntry::UserMessage(_)
                | ConversationEntry::SystemItem(_)
                | ConversationEntry::AssistantMessage(_)
                | ConversationEntry::TurnEnded(_)
                | ConversationEntry::Compacted(_)
        ) | Entry::Tool(ToolEntry::Finished(_))
    )
}
