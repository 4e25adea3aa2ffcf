//! A session's log as a file, one entry a line, for hooks that read it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use provost_event::{HookContract, HookPoint, HookPolicy, Record, Seq, SessionId};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use crate::{HookAnswer, HookPrograms, HookQuestion};

/// Entries read at a time.
const BATCH: usize = 1_000;
/// Attempts at one file: the second is after another process has changed it, and writes it anew.
const ATTEMPTS_MAX: usize = 2;

/// How far this process has written a file. The first write replaces what another process left.
#[derive(Debug, Default)]
pub(crate) struct LogFile(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    through: Seq,
    bytes: u64,
}

impl LogFile {
    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the new ones of `records`, which are consecutive. False if that can't be done: they don't continue
    /// the file, or the file isn't as it was left. Then it must be written anew, from the first entry.
    fn extend(&self, path: &Path, records: &[Arc<Record>]) -> io::Result<bool> {
        let mut written = self.written();
        let known = std::mem::take(&mut *written);
        if known.through > Seq::START && fs::metadata(path).map_or(0, |file| file.len()) != known.bytes {
            return Ok(false);
        }
        let new = records.iter().filter(|record| record.seq > known.through).collect::<Vec<_>>();
        let Some((first, last)) = new.first().zip(new.last()) else {
            *written = known;
            return Ok(true);
        };
        if first.seq != known.through.next() {
            return Ok(false);
        }
        let lines = lines(&new);
        if known.through == Seq::START {
            replace(path, lines.as_bytes())?;
        } else {
            OpenOptions::new().append(true).open(path)?.write_all(lines.as_bytes())?;
        }
        let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        *written = Written { through: last.seq, bytes: known.bytes.saturating_add(added) };
        Ok(true)
    }
}

fn lines(records: &[&Arc<Record>]) -> String {
    let mut lines = String::new();
    for line in records.iter().flat_map(|record| record.to_line()) {
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension("jsonl.new");
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

impl HarnessExecutor {
    /// Writes the session's log for hooks; `None` if it isn't configured or fails.
    async fn write_log_file(&self, session: SessionId) -> Option<PathBuf> {
        let path = self.deps.transcripts.as_deref()?.join(format!("{session}.jsonl"));
        match self.extend_log_file(session, &path).await {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the transcript for hooks can't be written");
                None
            }
        }
    }

    async fn extend_log_file(&self, session: SessionId, path: &Path) -> io::Result<()> {
        let file = self.known.log_file(session);
        for _ in 0..ATTEMPTS_MAX {
            let after = file.written().through;
            let records = self.records_after(session, after).await.map_err(io::Error::other)?;
            let (file, path) = (file.clone(), path.to_owned());
            if tokio::task::spawn_blocking(move || file.extend(&path, &records)).await?? {
                return Ok(());
            }
        }
        Err(io::Error::other("another process changes it"))
    }

    async fn records_after(
        &self,
        session: SessionId,
        mut after: Seq,
    ) -> Result<Vec<Arc<Record>>, crate::BackendError> {
        let mut all = Vec::new();
        loop {
            let records = self.backend().read(session.into(), after, BATCH).await?;
            let Some(last) = records.last() else { return Ok(all) };
            after = last.seq;
            all.extend(records);
        }
    }
}

/// Hook programs, with the path of the session's log. It is written when the first of them is called.
pub(super) struct Informed<'a> {
    executor: &'a HarnessExecutor,
    session: SessionId,
    path: OnceCell<Option<PathBuf>>,
    roots: OnceCell<Option<PathBuf>>,
}

impl<'a> Informed<'a> {
    pub(super) fn new(executor: &'a HarnessExecutor, session: SessionId) -> Self {
        Self { executor, session, path: OnceCell::new(), roots: OnceCell::new() }
    }

    /// The path of the root's log, for a hook in another agent.
    async fn roots_path(&self, contract: HookContract) -> Option<PathBuf> {
        let root = SessionId::root(self.session.run);
        if root == self.session || contract != HookContract::Claude {
            return None;
        }
        self.roots.get_or_init(|| self.executor.write_log_file(root)).await.clone()
    }

    /// The path of the log, in its state at the first call.
    pub(super) async fn path(&self) -> Option<PathBuf> {
        self.path.get_or_init(|| self.executor.write_log_file(self.session)).await.clone()
    }
}

#[async_trait]
impl HookPrograms for Informed<'_> {
    fn wants(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> bool {
        self.executor.deps.hook_programs.wants(hook, question, point)
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        point: HookPoint,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let question = HookQuestion {
            transcript_path: self.path().await,
            root_transcript_path: self.roots_path(hook.contract).await,
            ..question.clone()
        };
        self.executor.deps.hook_programs.ask(hook, &question, point, cancel).await
    }
}
