//! A session's log as a file, for hooks that read it: in the form of their contract, and written on as the log grows.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use provost_event::{HookContract, HookPoint, HookPolicy, HookProgram, Record, RunId, Seq, SessionId};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::hook_model::ModelHook;
use crate::lineage::read_conversation;
use crate::{HookAnswer, HookPrograms, HookQuestion, HookTranscript, HookVoice};

/// Entries read at a time.
const BATCH: usize = 1_000;
/// Attempts at one file: the second is after another process has changed it, and writes it anew.
const ATTEMPTS_MAX: usize = 2;

/// How far this process has written a file. The first write replaces what another process left.
#[derive(Debug, Default)]
pub(crate) struct LogFile(Mutex<Written>);

#[derive(Default)]
struct Written {
    through: Seq,
    bytes: u64,
    /// Writes the next entry; absent before the first one.
    transcript: Option<Box<dyn HookTranscript>>,
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written").field("through", &self.through).field("bytes", &self.bytes).finish()
    }
}

impl LogFile {
    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the new ones of `records`, which are consecutive; `begin` gives the form of a file's first entry on.
    /// False if that can't be done: they don't continue the file, or the file isn't as it was left. Then it must be
    /// written anew, from the first entry.
    fn extend(
        &self,
        path: &Path,
        records: &[Arc<Record>],
        begin: impl FnOnce() -> Box<dyn HookTranscript>,
    ) -> io::Result<bool> {
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
        let mut transcript = known.transcript.unwrap_or_else(begin);
        let mut lines = String::new();
        new.iter().for_each(|record| transcript.add(record, &mut lines));
        if known.through == Seq::START {
            replace(path, lines.as_bytes())?;
        } else if !lines.is_empty() {
            OpenOptions::new().append(true).open(path)?.write_all(lines.as_bytes())?;
        }
        let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let bytes = known.bytes.saturating_add(added);
        *written = Written { through: last.seq, bytes, transcript: Some(transcript) };
        Ok(true)
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension("jsonl.new");
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

/// The folder, below that of the run, for the files of hooks of `contract`.
const fn folder_of(contract: HookContract) -> &'static str {
    match contract {
        HookContract::Provost => "",
        HookContract::Claude => "claude",
        HookContract::Codex => "codex",
    }
}

impl HarnessExecutor {
    /// The folder with what hooks read and write of a run.
    pub(super) fn hook_files(&self, run: RunId) -> Option<PathBuf> {
        Some(self.deps.transcripts.as_deref()?.join(run.to_string()))
    }
}

/// The paths of one session's log, by contract. A file is written when a hook of its contract is called first.
#[derive(Default)]
struct LogPaths {
    own: OnceCell<Option<PathBuf>>,
    claude: OnceCell<Option<PathBuf>>,
    codex: OnceCell<Option<PathBuf>>,
}

impl LogPaths {
    const fn of(&self, contract: HookContract) -> &OnceCell<Option<PathBuf>> {
        match contract {
            HookContract::Provost => &self.own,
            HookContract::Claude => &self.claude,
            HookContract::Codex => &self.codex,
        }
    }
}

/// Hook programs, with the path of the session's log. It is written when the first of them is called.
pub(super) struct Informed<'a> {
    executor: &'a HarnessExecutor,
    session: SessionId,
    /// The entry with the question.
    asked: Seq,
    paths: LogPaths,
    roots: LogPaths,
}

impl<'a> Informed<'a> {
    pub(super) fn new(executor: &'a HarnessExecutor, session: SessionId, asked: Seq) -> Self {
        Self { executor, session, asked, paths: LogPaths::default(), roots: LogPaths::default() }
    }

    /// The path of the root's log, for a hook in another agent.
    async fn roots_path(&self, contract: HookContract) -> Option<PathBuf> {
        let root = SessionId::root(self.session.run);
        if root == self.session || !contract.is_foreign() {
            return None;
        }
        self.roots.of(contract).get_or_init(|| self.write(root, contract)).await.clone()
    }

    /// Writes the session's log for hooks; `None` if it isn't configured or fails.
    async fn write(&self, session: SessionId, contract: HookContract) -> Option<PathBuf> {
        let folder = self.executor.hook_files(session.run)?.join(folder_of(contract));
        let name = self.executor.deps.hook_programs.session_name(contract, session);
        let path = folder.join(format!("{name}.jsonl"));
        match self.extend(session, contract, &path).await {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the transcript for hooks can't be written");
                None
            }
        }
    }

    async fn extend(&self, session: SessionId, contract: HookContract, path: &Path) -> io::Result<()> {
        let file = self.executor.known.log_file(session, contract);
        let mut attempts = 0;
        loop {
            let after = file.written().through;
            let read = read_conversation(self.executor.backend(), session, after, BATCH).await;
            let records = read.map_err(io::Error::other)?;
            if records.is_empty() {
                return Ok(());
            }
            let programs = self.executor.deps.hook_programs.clone();
            let file = file.clone();
            let path = path.to_owned();
            let begin = move || programs.transcript(contract, session);
            let is_done = tokio::task::spawn_blocking(move || file.extend(&path, &records, begin)).await??;
            if is_done {
                continue;
            }
            attempts += 1;
            if attempts >= ATTEMPTS_MAX {
                return Err(io::Error::other("another process changes it"));
            }
        }
    }

    /// The path of the log, in its state at the first call.
    pub(super) async fn path(&self, contract: HookContract) -> Option<PathBuf> {
        let write = || self.write(self.session, contract);
        self.paths.of(contract).get_or_init(write).await.clone()
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
            transcript_path: self.path(hook.contract).await,
            root_transcript_path: self.roots_path(hook.contract).await,
            voice: Some(HookVoice::of(self.executor.deps.backend.clone(), self.session)),
            ..question.clone()
        };
        match &hook.program {
            Some(HookProgram::Model(model)) => {
                let asked = ModelHook {
                    executor: self.executor,
                    hook,
                    model,
                    question: &question,
                    point,
                    since: self.asked,
                };
                asked.ask(cancel).await
            }
            _ => self.executor.deps.hook_programs.ask(hook, &question, point, cancel).await,
        }
    }
}
