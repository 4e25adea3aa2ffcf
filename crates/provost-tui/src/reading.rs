//! The task that reads the runs again when something was written, or what isn't written may have changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use provost_event::{RunId, SessionId, Timestamp};
use provost_harness::{
    Backend, BackendError, Clock, Redactor, RunPosition, RunSummary, WorkspaceDiffQuery, workspace_diff,
};
use provost_view::{
    AgentTimeline, AgentsRead, GroupedRuns, KeptGroups, RunChanges, RunDetails, RunGroup, SeenRuns,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// It is read again at most this often, and takes no more than a part of the time.
const EVERY: Duration = Duration::from_millis(100);
const SHARE: u32 = 4;
/// What isn't written: that a process is gone, that a day has passed.
const LOOK_AT_WORKING: Duration = Duration::from_secs(3);
const LOOK_AT_REST: Duration = Duration::from_secs(60);
/// Things of an agent that are read for its live log.
const ITEMS_MAX: usize = 200;

/// What is to be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// A run, and one of its agents.
    pub(crate) run: Option<(RunId, u32)>,
    /// Whether what the agent changed is shown.
    pub(crate) changes: bool,
}

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    pub(crate) at: Timestamp,
    pub(crate) runs: Arc<GroupedRuns>,
    pub(crate) run: Option<Arc<RunPicture>>,
    pub(crate) trouble: Option<String>,
}

/// One run.
#[derive(Debug)]
pub(crate) struct RunPicture {
    pub(crate) details: RunDetails,
    pub(crate) timeline: AgentTimeline,
    /// What was changed in the agent's workspace, or why that isn't known; absent where it isn't asked for.
    pub(crate) changes: Option<Result<RunChanges, String>>,
    key: Key,
}

/// What a picture of a run was made of.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    watched: Watched,
    head: RunPosition,
    summary: RunSummary,
}

/// Reads the runs of a backend.
pub(crate) struct Reading {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seen: Arc<dyn SeenRuns>,
}

impl Reading {
    /// Reads until what was read is no longer wanted.
    pub(crate) async fn work(
        self,
        mut watched: watch::Receiver<Watched>,
        pictures: watch::Sender<Option<Picture>>,
    ) {
        let mut changes = self.backend.changes();
        let mut kept = KeptGroups::default();
        let mut last: Option<Picture> = None;
        while !pictures.is_closed() {
            let began = Instant::now();
            let now = *watched.borrow_and_update();
            let picture = self.read(&mut kept, last.as_ref(), now).await;
            let is_working = picture.runs.groups.iter().any(|group| {
                matches!(group.group, RunGroup::Working | RunGroup::NeedsYou | RunGroup::Waiting)
                    && group.runs.iter().any(|run| run.item.outcome.is_none())
            });
            last = Some(picture.clone());
            pictures.send_replace(Some(picture));
            let pause = EVERY.max(began.elapsed() * SHARE);
            let look_again = if is_working { LOOK_AT_WORKING } else { LOOK_AT_REST };
            tokio::select! {
                changed = watched.changed() => if changed.is_err() { return },
                () = pictures.closed() => return,
                () = async {
                    tokio::time::sleep(pause).await;
                    let _ = tokio::time::timeout(look_again, changes.next()).await;
                } => {}
            }
        }
    }

    /// Reads once; of what can't be read the last picture stays.
    pub(crate) async fn read(
        &self,
        kept: &mut KeptGroups,
        last: Option<&Picture>,
        watched: Watched,
    ) -> Picture {
        let at = self.clock.now();
        let mut trouble = None;
        let mut run = None;
        let runs = match kept.read(&*self.backend, at).await {
            Ok(runs) => Arc::new(runs.with_seen(&*self.seen)),
            Err(error) => {
                trouble = Some(error.to_string());
                last.map(|last| last.runs.clone()).unwrap_or_default()
            }
        };
        if let Some(which) = watched.run {
            let before = last.and_then(|last| last.run.clone());
            match self.read_run(which, before, watched, at).await {
                Ok(read) => run = read,
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        Picture { at, runs, run, trouble }
    }

    async fn read_run(
        &self,
        (run, agent): (RunId, u32),
        before: Option<Arc<RunPicture>>,
        watched: Watched,
        at: Timestamp,
    ) -> Result<Option<Arc<RunPicture>>, BackendError> {
        let backend = &*self.backend;
        let Some(summary) = backend.get(run).await? else { return Ok(None) };
        let key = Key { watched, head: backend.run_head(run).await?, summary };
        if let Some(before) = before.filter(|before| before.key == key) {
            return Ok(Some(before));
        }
        let Some(details) = RunDetails::read(backend, run, AgentsRead::Shown, at).await? else {
            return Ok(None);
        };
        let session = SessionId { run, agent };
        let timeline = AgentTimeline::read(backend, session, ITEMS_MAX).await?;
        let changes = if watched.changes { Some(self.changes(session).await) } else { None };
        Ok(Some(Arc::new(RunPicture { details, timeline, changes, key })))
    }

    async fn changes(&self, session: SessionId) -> Result<RunChanges, String> {
        let query = WorkspaceDiffQuery { paths: Vec::new(), has_patches: true };
        let redactor = Arc::new(Redactor::default());
        let stop = CancellationToken::new();
        let _stops = stop.clone().drop_guard();
        let diff = workspace_diff(&*self.backend, session, &query, &redactor, &stop).await;
        diff.map(|diff| RunChanges::new(session.run, session.agent, diff)).map_err(|error| error.to_string())
    }
}
