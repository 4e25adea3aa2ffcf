//! The background jobs of each session.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use provost_event::{CallFacts, Elapsed, EndedCommand, SessionId};
use provost_harness::{Clock, PrivateFolder, SystemClock, ToolOutput};
use provost_process::{ChildSpec, LogFile, run_logged};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::files::{JobEnd, JobFiles, JobName, JobRecord, JobState, KnownJob};
use crate::failure::chain;

/// Maximum jobs of one session that run at once.
const RUNNING_MAX: usize = 8;

/// Maximum jobs of one session that are remembered; the oldest ended ones are forgotten, with their logs.
const KEPT_MAX: usize = 50;

/// Maximum bytes that are read of a log, which is kept in two files.
const LOG_KEPT_MAX: usize = 128 * 1024 * 1024;
/// Maximum bytes of a job's log.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The background jobs of all sessions, shared by the tools that start and show them.
///
/// A job belongs to its session: it ends when that ends or is suspended, and with Provost, however that ends. Its log
/// and how it ended stay in the folder.
#[derive(Clone)]
pub struct BackgroundJobs {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Shared {
    folder: OnceLock<PathBuf>,
    /// The folder, if no other was given.
    temporary: OnceLock<PrivateFolder>,
    running: Mutex<HashMap<SessionId, BTreeMap<JobName, Arc<Running>>>>,
}

/// A job of this process. Dropping this kills it.
pub(super) struct Running {
    since: Elapsed,
    cancel: CancellationToken,
    end: watch::Receiver<Option<JobEnd>>,
    command: String,
    /// Whether its end was reported.
    is_told: AtomicBool,
    _task: AbortOnDropHandle<()>,
}

impl Running {
    pub(super) fn end(&self) -> Option<JobEnd> {
        self.end.borrow().clone()
    }

    /// Its end, if it came by itself and wasn't reported.
    fn untold_end(&self) -> Option<EndedCommand> {
        let end = self.end()?;
        if self.is_told.swap(true, Ordering::Relaxed) {
            return None;
        }
        end.of_command(&self.command)
    }

    /// Waits for its end. Cancel safe.
    pub(super) async fn ended(&self) {
        // The task ends only after it has sent the end.
        drop(self.end.clone().wait_for(Option::is_some).await);
    }

    pub(super) fn stop(&self) {
        self.cancel.cancel();
    }
}

impl BackgroundJobs {
    /// Jobs whose logs are in a temporary folder, which is removed with this.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::default(), clock: Arc::new(SystemClock) }
    }

    /// Jobs whose logs and records are in `folder`, so that a later process tells what became of them. It is created
    /// when it is needed. The names of all files begin with the session's.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        let shared = Shared { folder: folder.into(), ..Shared::default() };
        Self { shared: Arc::new(shared), ..Self::new() }
    }

    /// Measures and waits by `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Waits for the end of a job, at most so long. Cancel safe.
    pub(super) async fn wait(&self, job: &Running, at_most: Duration) {
        tokio::select! {
            biased;
            () = job.ended() => {}
            () = self.clock.sleep(at_most) => {}
        }
    }

    /// Waits so long. Cancel safe.
    pub(super) async fn pause(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }

    fn folder(&self) -> io::Result<&Path> {
        if let Some(folder) = self.shared.folder.get() {
            return Ok(folder);
        }
        if self.shared.temporary.get().is_none() {
            // Another call may have set it meanwhile; then this one is removed.
            let _ = self.shared.temporary.set(PrivateFolder::new("jobs")?);
        }
        self.shared.temporary.get().map(PrivateFolder::path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Starts a job; an output for the model if there are too many, or there is no place for its log.
    pub(crate) fn start(
        &self,
        session: SessionId,
        command: &str,
        spec: ChildSpec,
    ) -> Result<JobName, ToolOutput> {
        let no_log =
            |error: io::Error| ToolOutput::error(format!("there is no place for its log: {}", chain(&error)));
        let folder = self.folder().map_err(no_log)?.to_owned();
        private_folder(&folder).map_err(no_log)?;
        let files = JobFiles { folder: &folder, session };
        let mut all = self.lock();
        let jobs = all.entry(session).or_default();
        let names = jobs.iter().filter(|(_, job)| job.end().is_none()).map(|(name, _)| name.to_string());
        let names = names.collect::<Vec<_>>();
        if names.len() >= RUNNING_MAX {
            let text =
                format!("at most {RUNNING_MAX} background jobs at once: end one of {}", names.join(", "));
            return Err(ToolOutput::error(text));
        }
        let kept = files.names();
        let is_over = |name: &&JobName| jobs.get(name).is_none_or(|job| job.end().is_some());
        let surplus = kept.len().saturating_add(1).saturating_sub(KEPT_MAX);
        let old = kept.iter().filter(is_over).take(surplus).copied().collect::<Vec<_>>();
        for name in old {
            jobs.remove(&name);
            files.remove(name);
        }
        let name = JobName(kept.last().map_or(1, |last| last.0.saturating_add(1)));
        let record = JobRecord { command: command.to_owned(), end: None };
        files.write(name, &record).map_err(no_log)?;
        let log = files.log(name);
        let files = Files { folder: folder.clone(), session, name, record };
        let job = begin(files, spec, log, Arc::clone(&self.clock));
        jobs.insert(name, Arc::new(job));
        Ok(name)
    }

    pub(super) fn log(&self, session: SessionId, name: JobName) -> PathBuf {
        let folder = self.folder().map(Path::to_owned).unwrap_or_default();
        JobFiles { folder: &folder, session }.log(name)
    }

    /// What is kept of a job's output, by its name. Blocks. `None` if the session has no such job, or it has no log.
    pub(crate) fn whole_log(&self, session: SessionId, name: &str) -> Option<Vec<u8>> {
        let known = self.known(session, name.parse().ok()?)?;
        LogFile::read_end(&self.log(session, known.name), LOG_KEPT_MAX).ok().map(|end| end.bytes)
    }

    pub(super) fn running(&self, session: SessionId, name: JobName) -> Option<Arc<Running>> {
        self.lock().get(&session)?.get(&name).cloned()
    }

    pub(super) fn known(&self, session: SessionId, name: JobName) -> Option<KnownJob> {
        JobFiles { folder: self.folder().ok()?, session }.read(name)
    }

    /// The jobs of a session, oldest first.
    pub(super) fn all(&self, session: SessionId) -> Vec<KnownJob> {
        let Ok(folder) = self.folder() else { return Vec::new() };
        let files = JobFiles { folder, session };
        files.names().into_iter().filter_map(|name| files.read(name)).collect()
    }

    pub(super) fn state(&self, session: SessionId, name: JobName) -> JobState {
        if let Some(job) = self.running(session, name) {
            return job.end().map_or_else(|| JobState::Running(self.since(&job)), JobState::Ended);
        }
        let end = self.known(session, name).and_then(|known| known.record.end);
        end.map_or(JobState::EndedWithRun, JobState::Ended)
    }

    fn since(&self, job: &Running) -> Duration {
        Duration::from_millis(self.clock.monotonic().since_ms(job.since))
    }

    pub(super) fn is_any_running(&self, session: SessionId) -> bool {
        self.lock().get(&session).is_some_and(|jobs| jobs.values().any(|job| job.end().is_none()))
    }

    /// The jobs that run, each by name and command.
    pub(crate) fn running_in_words(&self, session: SessionId) -> Vec<String> {
        let all = self.all(session);
        let running = all.iter().filter(|job| self.state(session, job.name).is_running());
        running.map(ToString::to_string).collect()
    }

    /// What a call reports of jobs: those that run and those that have ended since the last report; nothing if there
    /// never was one.
    pub(crate) fn facts(&self, session: SessionId) -> CallFacts {
        let jobs = self.lock().get(&session).map(|jobs| jobs.values().cloned().collect::<Vec<_>>());
        let Some(jobs) = jobs.filter(|jobs| !jobs.is_empty()) else { return CallFacts::default() };
        let ended = jobs.iter().filter_map(|job| job.untold_end()).collect();
        CallFacts { jobs: Some(self.running_in_words(session)), ended, ..CallFacts::default() }
    }

    /// Ends the jobs of a session that is over.
    pub(crate) fn clear(&self, session: SessionId) {
        let taken = self.lock().remove(&session);
        drop(taken);
    }

    /// Only held briefly.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, BTreeMap<JobName, Arc<Running>>>> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BackgroundJobs {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BackgroundJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundJobs").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

/// Where a job is recorded.
struct Files {
    folder: PathBuf,
    session: SessionId,
    name: JobName,
    record: JobRecord,
}

fn begin(files: Files, spec: ChildSpec, log: PathBuf, clock: Arc<dyn Clock>) -> Running {
    let since = clock.monotonic();
    let command = files.record.command.clone();
    let cancel = CancellationToken::new();
    let (told, end) = watch::channel(None);
    let stop = cancel.clone();
    let work = async move {
        let log = LogFile { path: log, bytes_max: LOG_BYTES_MAX };
        let end = match run_logged(spec, &log, &stop).await {
            Ok(finished) => JobEnd::of(&finished, Duration::from_millis(clock.monotonic().since_ms(since))),
            Err(error) => JobEnd::not_started(chain(&error)),
        };
        let Files { folder, session, name, record } = files;
        let record = JobRecord { end: Some(end.clone()), ..record };
        let written = JobFiles { folder: &folder, session }.write(name, &record);
        let end = match written {
            Ok(()) => end,
            Err(error) => end.unrecorded(&error),
        };
        told.send_replace(Some(end));
    };
    Running {
        since,
        cancel,
        end,
        command,
        is_told: AtomicBool::new(false),
        _task: AbortOnDropHandle::new(tokio::spawn(work)),
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(folder)
}
