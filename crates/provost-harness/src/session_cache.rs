//! The executor's cache of sessions between their effects. All of it can be read again from the log.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, PoisonError};
// In this crate's own tests a scheduler decides the order of threads.
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};

use provost_engine::{Actor, CallModel, Permissions, View};
use provost_event::{
    AgentPolicy, BlobId, ConversationEntry, Entry, HookContract, LifecycleEntry, Record, Seq, SessionId,
    ToolIdentity, ToolSpec,
};
#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};

use crate::executor::LogFile;
use crate::lineage::read_conversation;
use crate::workspace::WorkspaceSnapshot;
use crate::{BackendError, HookAgent, ImageData, Log, PromptQueue, Transcript};

/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Maximum cached sessions; above that the oldest is dropped, and read again when it continues. If more than these
/// are active at once, each turn reads its whole conversation again.
const SESSIONS_MAX: usize = 32_768;
/// Maximum policies that sessions share: the latest ones.
const SHARED_MAX: usize = 16;

/// What stays the same through a turn of a session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) policy: Arc<AgentPolicy>,
    pub(crate) tools: Arc<[ToolSpec]>,
    /// The workspace without symlinks, or as given if it doesn't exist.
    pub(crate) workspace: Arc<Path>,
    /// The workspace is a worktree of the agent's own, which it may remove at the end of its work.
    pub(crate) has_worktree: bool,
    pub(crate) permissions: Permissions,
    pub(crate) agent: HookAgent,
    /// The entry since which the policy applies; 0 if it is the first entry's.
    since: Seq,
}

impl Opening {
    /// The names of one of the agent's tools, and what its calls are about.
    pub(crate) fn tool_identity(&self, name: &str) -> ToolIdentity {
        let spec = self.tools.iter().find(|spec| spec.name == name);
        spec.map_or_else(|| ToolIdentity::unknown(name), ToolSpec::identity)
    }
}

#[derive(Default)]
struct Sessions {
    known: HashMap<SessionId, Remembered>,
    /// The sessions by order of arrival.
    order: BTreeMap<u64, SessionId>,
    next: u64,
    /// Thousands of agents may have the same policy: it is stored once.
    shared: Vec<(Arc<AgentPolicy>, Arc<[ToolSpec]>)>,
}

#[derive(Default)]
struct Remembered {
    number: u64,
    opening: Option<Arc<Opening>>,
    transcript: Option<Transcript>,
    log_files: BTreeMap<HookContract, Arc<LogFile>>,
    words: Option<PromptQueue>,
    workspace: Option<Arc<std::sync::Mutex<WorkspaceSnapshot>>>,
}

impl Sessions {
    /// The cached data of `session`; at the maximum, the oldest session is dropped.
    fn of(&mut self, session: SessionId) -> &mut Remembered {
        if !self.known.contains_key(&session) {
            self.order.insert(self.next, session);
            self.known.insert(session, Remembered { number: self.next, ..Remembered::default() });
            self.next += 1;
        }
        if self.known.len() > SESSIONS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.known.remove(&oldest);
        }
        self.known.entry(session).or_default()
    }

    /// `policy` and its tools, shared with sessions that have the same.
    fn share(&mut self, policy: &AgentPolicy) -> (Arc<AgentPolicy>, Arc<[ToolSpec]>) {
        if let Some((policy, tools)) = self.shared.iter().find(|(known, _)| **known == *policy) {
            return (policy.clone(), tools.clone());
        }
        if self.shared.len() >= SHARED_MAX {
            self.shared.remove(0);
        }
        let shared = (Arc::new(policy.clone()), Arc::from(policy.tools.as_slice()));
        self.shared.push(shared.clone());
        shared
    }
}

#[derive(Default)]
pub(crate) struct SessionCache {
    sessions: Mutex<Sessions>,
    /// Set once forgotten worktrees have been looked for.
    pub(crate) swept: tokio::sync::OnceCell<()>,
}

impl SessionCache {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy and workspace of `session`.
    pub(crate) async fn opening(
        &self,
        backend: &dyn Log,
        session: SessionId,
    ) -> Result<Arc<Opening>, BackendError> {
        self.opening_since(backend, session, Seq::START).await
    }

    /// The same, with the policy as of the entry `since` or a later one.
    pub(crate) async fn opening_since(
        &self,
        backend: &dyn Log,
        session: SessionId,
        since: Seq,
    ) -> Result<Arc<Opening>, BackendError> {
        let known = self.sessions().known.get(&session).and_then(|known| known.opening.clone());
        let known = known.filter(|known| known.since >= since);
        if let Some(opening) = known {
            return Ok(opening);
        }
        let first = backend.read(session.into(), Seq::START, 1).await?;
        let Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) =
            first.first().map(|record| &record.entry)
        else {
            return Err(BackendError::Unknown { what: format!("session {session}") });
        };
        // The policy may have been changed since.
        let (policy, since) = match backend.state(session.into()).await? {
            Actor::Session(state) => (state.policy().cloned(), state.policy_since()),
            Actor::Run(_) => (None, Seq::START),
        };
        let policy = policy.unwrap_or_else(|| started.policy.clone());
        let workspace = policy.workspace.canonicalize().unwrap_or_else(|_| policy.workspace.clone());
        let (policy, tools) = self.sessions().share(&policy);
        let opening = Arc::new(Opening {
            tools,
            permissions: Permissions::of_agent(&policy, &workspace),
            workspace: workspace.into(),
            has_worktree: started.worktree.is_some(),
            agent: HookAgent { parent: started.parent, depth: started.depth, name: started.agent.clone() },
            policy,
            since,
        });
        self.sessions().of(session).opening = Some(opening.clone());
        Ok(opening)
    }

    /// The conversation for a model call, with its images if the model `sees` them. The caller owns it until it is
    /// given back. Only new entries are read, or all that the model still sees if nothing is cached.
    pub(crate) async fn take_transcript(
        &self,
        backend: &dyn Log,
        model_call: &CallModel,
        sees: bool,
    ) -> Result<Transcript, BackendError> {
        let (session, through) = (model_call.session, model_call.through);
        let kept = self.sessions().of(session).transcript.take();
        let mut transcript = match kept.filter(|kept| kept.head() <= through) {
            Some(kept) => kept,
            None => beginning(backend, session, model_call.view).await?,
        };
        while transcript.head() < through {
            let missing = through.0.saturating_sub(transcript.head().0);
            let max = usize::try_from(missing).unwrap_or(READ_MAX).min(READ_MAX);
            let records = read_conversation(backend, session, transcript.head(), max).await?;
            if records.is_empty() {
                return Err(BackendError::Unknown { what: format!("entry {} of {session}", through) });
            }
            let images = if sees { images(backend, &records).await? } else { HashMap::new() };
            records.iter().for_each(|record| transcript.fold(record, &images));
        }
        Ok(transcript)
    }

    /// Stores a conversation for the next call.
    pub(crate) fn give_back(&self, session: SessionId, transcript: Transcript) {
        self.sessions().of(session).transcript = Some(transcript);
    }

    /// The pending messages of an external agent, as far as the log was read. The caller owns them until they are
    /// given back.
    pub(crate) fn take_words(&self, session: SessionId) -> Option<PromptQueue> {
        self.sessions().of(session).words.take()
    }

    /// Stores them for the next exchange.
    pub(crate) fn give_words_back(&self, session: SessionId, words: PromptQueue) {
        self.sessions().of(session).words = Some(words);
    }

    /// How far the file with the log of `session` for hooks of `contract` has been written by this process.
    pub(crate) fn log_file(&self, session: SessionId, contract: HookContract) -> Arc<LogFile> {
        self.sessions().of(session).log_files.entry(contract).or_default().clone()
    }

    /// The workspace of `session` as of the last search for changed files.
    pub(crate) fn workspace_seen(&self, session: SessionId) -> Arc<std::sync::Mutex<WorkspaceSnapshot>> {
        self.sessions().of(session).workspace.get_or_insert_default().clone()
    }

    /// Drops the policies of the sessions, after a change.
    pub(crate) fn forget_policies(&self) {
        self.sessions().known.values_mut().for_each(|known| known.opening = None);
    }

    /// Drops a suspended session.
    pub(crate) fn forget(&self, session: SessionId) {
        let mut sessions = self.sessions();
        if let Some(forgotten) = sessions.known.remove(&session) {
            sessions.order.remove(&forgotten.number);
        }
    }
}

/// The conversation before the first entry that the model still sees.
async fn beginning(backend: &dyn Log, session: SessionId, view: View) -> Result<Transcript, BackendError> {
    if view.summed_up_at.is_start() {
        return Ok(Transcript::new());
    }
    let before = Seq(view.summed_up_at.0.saturating_sub(1));
    let records = read_conversation(backend, session, before, 1).await?;
    match records.first().map(|record| (record.seq, &record.entry)) {
        Some((at, Entry::Conversation(ConversationEntry::Compacted(compacted))))
            if at == view.summed_up_at =>
        {
            let first = read_conversation(backend, session, Seq::START, 1).await?;
            match first.first().map(|record| &record.entry) {
                Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) => {
                    Ok(Transcript::from_summary(at, compacted, started))
                }
                _ => Err(BackendError::Unknown { what: format!("entry 1 of {session}") }),
            }
        }
        _ => Err(BackendError::Unknown {
            what: format!("summary in entry {} of {session}", view.summed_up_at),
        }),
    }
}

/// The images in `records` that are still stored.
async fn images(
    backend: &dyn Log,
    records: &[Arc<Record>],
) -> Result<HashMap<BlobId, ImageData>, BackendError> {
    let mut images = HashMap::new();
    for image in records.iter().flat_map(|record| record.entry.images()) {
        if let Some(data) = ImageData::read(backend, &image.blob).await? {
            images.insert(image.blob.clone(), data);
        }
    }
    Ok(images)
}

#[cfg(test)]
mod bounds {
    use provost_event::RunId;

    use super::*;

    fn session(agent: usize) -> SessionId {
        SessionId { run: RunId::from_entropy(1), agent: u32::try_from(agent).unwrap() }
    }

    #[test]
    fn beyond_the_limit_those_that_came_first_are_forgotten() {
        let mut sessions = Sessions::default();
        for agent in 0..SESSIONS_MAX {
            sessions.of(session(agent)).transcript = Some(Transcript::new());
        }
        assert!(sessions.of(session(0)).transcript.is_some(), "all of them are remembered");
        sessions.of(session(SESSIONS_MAX));
        assert_eq!((sessions.known.len(), sessions.order.len()), (SESSIONS_MAX, SESSIONS_MAX));
        assert!(!sessions.known.contains_key(&session(0)));
        assert!(
            sessions.known.contains_key(&session(1)) && sessions.known.contains_key(&session(SESSIONS_MAX))
        );
    }
}
