//! What an executor remembers of sessions between their effects. All of it can be read again from the log.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, PoisonError};
// In this crate's own tests a scheduler decides who comes first.
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};

use provost_engine::{Actor, Permissions, Think, View};
use provost_event::{AgentPolicy, BlobId, Entry, Record, Seq, SessionId, ToolSpec};
#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};

use crate::executor::LogFile;
use crate::lineage::read_conversation;
use crate::workspace::Seen;
use crate::{Home, HomeError, HookAgent, ImageData, Transcript, Words, read_actor};

/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Sessions remembered; beyond that the one that came first is forgotten, and read again when it goes on. Where more than
/// these work at once, each turn reads its whole conversation again.
const SESSIONS_MAX: usize = 32_768;
/// Policies that sessions share: those that came last.
const SHARED_MAX: usize = 16;

/// What stays the same through a segment of a session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) policy: Arc<AgentPolicy>,
    pub(crate) tools: Arc<[ToolSpec]>,
    /// The workspace without symlinks, or as it was given where it isn't there.
    pub(crate) workspace: Arc<Path>,
    pub(crate) permissions: Permissions,
    pub(crate) agent: HookAgent,
}

#[derive(Default)]
struct Sessions {
    known: HashMap<SessionId, Remembered>,
    /// The sessions by the numbers that they came with.
    order: BTreeMap<u64, SessionId>,
    next: u64,
    /// Thousands of agents may have the same policy: it is kept once.
    shared: Vec<(Arc<AgentPolicy>, Arc<[ToolSpec]>)>,
}

#[derive(Default)]
struct Remembered {
    number: u64,
    opening: Option<Arc<Opening>>,
    transcript: Option<Transcript>,
    log_file: Option<Arc<LogFile>>,
    words: Option<Words>,
    workspace: Option<Arc<std::sync::Mutex<Seen>>>,
}

impl Sessions {
    /// What is remembered of `session`; one more than may be puts out the one that came first.
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

    /// `policy` and its tools, as others have them already.
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
pub(crate) struct Known {
    sessions: Mutex<Sessions>,
    /// Whether worktrees that nobody has seen to have been looked for.
    pub(crate) swept: tokio::sync::OnceCell<()>,
}

impl Known {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What binds `session`.
    pub(crate) async fn opening(
        &self,
        home: &dyn Home,
        session: SessionId,
    ) -> Result<Arc<Opening>, HomeError> {
        let known = self.sessions().known.get(&session).and_then(|known| known.opening.clone());
        if let Some(opening) = known {
            return Ok(opening);
        }
        let first = home.read(session.into(), Seq::START, 1).await?;
        let Some(Entry::SessionStarted(started)) = first.first().map(|record| &record.entry) else {
            return Err(HomeError::Unknown { what: format!("session {session}") });
        };
        // Somebody may have changed it since.
        let policy = match read_actor(home, session.into()).await? {
            Actor::Session(state) => state.policy().cloned(),
            Actor::Run(_) => None,
        };
        let policy = policy.unwrap_or_else(|| started.policy.clone());
        let workspace = policy.workspace.canonicalize().unwrap_or_else(|_| policy.workspace.clone());
        let (policy, tools) = self.sessions().share(&policy);
        let opening = Arc::new(Opening {
            tools,
            permissions: Permissions::of_agent(&policy, &workspace),
            workspace: workspace.into(),
            agent: HookAgent { parent: started.parent, depth: started.depth, name: started.agent.clone() },
            policy,
        });
        self.sessions().of(session).opening = Some(opening.clone());
        Ok(opening)
    }

    /// The conversation that a model call gets to see, with its images where the model `sees` them. It is the caller's
    /// until given back. Only what is new since then is read, or what the model still sees where nothing is there.
    pub(crate) async fn take_transcript(
        &self,
        home: &dyn Home,
        think: &Think,
        sees: bool,
    ) -> Result<Transcript, HomeError> {
        let (session, through) = (think.session, think.through);
        let kept = self.sessions().of(session).transcript.take();
        let mut transcript = match kept.filter(|kept| kept.head() <= through) {
            Some(kept) => kept,
            None => beginning(home, session, think.view).await?,
        };
        while transcript.head() < through {
            let missing = through.0.saturating_sub(transcript.head().0);
            let max = usize::try_from(missing).unwrap_or(READ_MAX).min(READ_MAX);
            let records = read_conversation(home, session, transcript.head(), max).await?;
            if records.is_empty() {
                return Err(HomeError::Unknown { what: format!("entry {} of {session}", through) });
            }
            let images = if sees { images(home, &records).await? } else { HashMap::new() };
            records.iter().for_each(|record| transcript.fold(record, &images));
        }
        Ok(transcript)
    }

    /// Keeps a conversation for the next call.
    pub(crate) fn give_back(&self, session: SessionId, transcript: Transcript) {
        self.sessions().of(session).transcript = Some(transcript);
    }

    /// What an external agent is yet to be told, as far as it was looked for. It is the caller's until given back.
    pub(crate) fn take_words(&self, session: SessionId) -> Option<Words> {
        self.sessions().of(session).words.take()
    }

    /// Keeps it for the next exchange.
    pub(crate) fn give_words_back(&self, session: SessionId, words: Words) {
        self.sessions().of(session).words = Some(words);
    }

    /// How far the file with the log of `session` has been written by this process.
    pub(crate) fn log_file(&self, session: SessionId) -> Arc<LogFile> {
        self.sessions().of(session).log_file.get_or_insert_default().clone()
    }

    /// The workspace of `session` as it was last looked at for changed files.
    pub(crate) fn workspace_seen(&self, session: SessionId) -> Arc<std::sync::Mutex<Seen>> {
        self.sessions().of(session).workspace.get_or_insert_default().clone()
    }

    /// Forgets what binds the sessions: somebody has changed that.
    pub(crate) fn forget_policies(&self) {
        self.sessions().known.values_mut().for_each(|known| known.opening = None);
    }

    /// Forgets a session that rests.
    pub(crate) fn forget(&self, session: SessionId) {
        let mut sessions = self.sessions();
        if let Some(forgotten) = sessions.known.remove(&session) {
            sessions.order.remove(&forgotten.number);
        }
    }
}

/// The conversation before the first entry that the model still sees.
async fn beginning(home: &dyn Home, session: SessionId, view: View) -> Result<Transcript, HomeError> {
    if view.summed_up_at.is_start() {
        return Ok(Transcript::new());
    }
    let before = Seq(view.summed_up_at.0.saturating_sub(1));
    let records = read_conversation(home, session, before, 1).await?;
    match records.first().map(|record| (record.seq, &record.entry)) {
        Some((at, Entry::Compacted(compacted))) if at == view.summed_up_at => {
            let first = read_conversation(home, session, Seq::START, 1).await?;
            let reminder_id = match first.first().map(|record| &record.entry) {
                Some(Entry::SessionStarted(started)) => started.reminder_id.clone(),
                _ => String::new(),
            };
            Ok(Transcript::from_summary(at, compacted, &reminder_id))
        }
        _ => Err(HomeError::Unknown { what: format!("summary in entry {} of {session}", view.summed_up_at) }),
    }
}

/// The images that `records` speak of, as far as they are kept.
async fn images(home: &dyn Home, records: &[Arc<Record>]) -> Result<HashMap<BlobId, ImageData>, HomeError> {
    let mut images = HashMap::new();
    for image in records.iter().flat_map(|record| record.entry.images()) {
        if let Some(data) = ImageData::read(home, &image.blob).await? {
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
