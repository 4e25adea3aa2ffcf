//! What an executor remembers of sessions between their effects. All of it can be read again from the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use provost_engine::{Permissions, Think, View};
use provost_event::{AgentPolicy, BlobId, Entry, Record, Seq, SessionId, ToolSpec};

use crate::executor::LogFile;
use crate::{Home, HomeError, ImageData, Transcript};

/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Sessions remembered; beyond that the oldest is forgotten, and read again when it goes on.
const SESSIONS_MAX: usize = 4_096;

/// What stays the same through a session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) policy: AgentPolicy,
    pub(crate) tools: Arc<[ToolSpec]>,
    /// The workspace without symlinks, or as it was given where it isn't there.
    pub(crate) workspace: Arc<Path>,
    pub(crate) permissions: Permissions,
}

#[derive(Debug, Default)]
struct Sessions {
    openings: HashMap<SessionId, Arc<Opening>>,
    transcripts: HashMap<SessionId, Transcript>,
    log_files: HashMap<SessionId, Arc<LogFile>>,
    order: std::collections::VecDeque<SessionId>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    sessions: Mutex<Sessions>,
}

impl Known {
    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `session` was given at its start.
    pub(crate) async fn opening(
        &self,
        home: &dyn Home,
        session: SessionId,
    ) -> Result<Arc<Opening>, HomeError> {
        if let Some(opening) = self.sessions().openings.get(&session) {
            return Ok(opening.clone());
        }
        let first = home.read(session.into(), Seq::START, 1).await?;
        let Some(Entry::SessionStarted(started)) = first.first().map(|record| &record.entry) else {
            return Err(HomeError::Unknown { what: format!("session {session}") });
        };
        let workspace =
            started.policy.workspace.canonicalize().unwrap_or_else(|_| started.policy.workspace.clone());
        let opening = Arc::new(Opening {
            tools: started.policy.tools.clone().into(),
            permissions: Permissions::of_agent(&started.policy, &workspace),
            workspace: workspace.into(),
            policy: started.policy.clone(),
        });
        let mut sessions = self.sessions();
        sessions.openings.insert(session, opening.clone());
        sessions.order.push_back(session);
        if sessions.order.len() > SESSIONS_MAX
            && let Some(oldest) = sessions.order.pop_front()
        {
            sessions.openings.remove(&oldest);
            sessions.transcripts.remove(&oldest);
            sessions.log_files.remove(&oldest);
        }
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
        let kept = self.sessions().transcripts.remove(&session);
        let mut transcript = match kept.filter(|kept| kept.head() <= through) {
            Some(kept) => kept,
            None => beginning(home, session, think.view).await?,
        };
        while transcript.head() < through {
            let missing = through.0.saturating_sub(transcript.head().0);
            let max = usize::try_from(missing).unwrap_or(READ_MAX).min(READ_MAX);
            let records = home.read(session.into(), transcript.head(), max).await?;
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
        self.sessions().transcripts.insert(session, transcript);
    }

    /// How far the file with the log of `session` has been written by this process.
    pub(crate) fn log_file(&self, session: SessionId) -> Arc<LogFile> {
        self.sessions().log_files.entry(session).or_default().clone()
    }

    /// Forgets a session that rests.
    pub(crate) fn forget(&self, session: SessionId) {
        let mut sessions = self.sessions();
        sessions.openings.remove(&session);
        sessions.transcripts.remove(&session);
        sessions.log_files.remove(&session);
        sessions.order.retain(|known| *known != session);
    }
}

/// The conversation before the first entry that the model still sees.
async fn beginning(home: &dyn Home, session: SessionId, view: View) -> Result<Transcript, HomeError> {
    if view.summed_up_at.is_start() {
        return Ok(Transcript::new());
    }
    let before = Seq(view.summed_up_at.0.saturating_sub(1));
    let records = home.read(session.into(), before, 1).await?;
    match records.first().map(|record| (record.seq, &record.entry)) {
        Some((at, Entry::Compacted(compacted))) if at == view.summed_up_at => {
            Ok(Transcript::from_summary(at, compacted))
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
