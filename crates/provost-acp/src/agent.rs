//! The sessions of a connection, and what the editor asks for.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::{RunId, Timestamp};
use provost_harness::{RunCursor, RunFilter, RunQuery, RunStatusFilter, RunSummary};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::calls::one_line;
use crate::editor::Editor;
use crate::ending::{Ending, Trouble};
use crate::follow::{Replay, Shown, follow};
use crate::session::Session;
use crate::{AcpOptions, EditorServer};

/// Sessions that are open at the same time.
const SESSIONS_MAX: usize = 256;
/// Sessions in one answer to `session/list`.
const LIST_MAX: usize = 100;

/// The agent, as one editor has it.
pub(crate) struct Agent {
    options: Arc<AcpOptions>,
    sessions: Mutex<HashMap<RunId, Arc<Session>>>,
    /// Those that read logs. They end with the agent.
    followers: Mutex<JoinSet<()>>,
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The folder to work in.
    pub(crate) folder: PathBuf,
    /// The servers of tools that the editor wants.
    pub(crate) mcp_servers: Vec<EditorServer>,
    /// What else it wants that isn't there, in words.
    pub(crate) unknown: Vec<&'static str>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedSession {
    pub(crate) run: RunId,
    pub(crate) folder: PathBuf,
    pub(crate) title: String,
    pub(crate) updated_at: Timestamp,
}

/// Sessions, and what to ask for next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<ListedSession>,
    pub(crate) next: Option<String>,
}

impl Agent {
    pub(crate) fn new(options: AcpOptions) -> Self {
        Self { options: Arc::new(options), sessions: Mutex::default(), followers: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session. Its run is started by the first prompt.
    pub(crate) fn open(&self, opened: &Opened, editor: Arc<dyn Editor>) -> Result<RunId, Trouble> {
        self.refuse(opened)?;
        let folder = &opened.folder;
        if !folder.is_absolute() || !folder.is_dir() {
            return Err(Trouble::unfit(format!("cwd: {} is no absolute path of a folder", folder.display())));
        }
        let run = RunId::new();
        self.keep(run, folder.clone(), editor)?;
        Ok(run)
    }

    /// A session of a run that is there, whichever process works on it. Returns once all that is to be shown of it was
    /// sent.
    pub(crate) async fn attach(
        &self,
        id: &str,
        opened: &Opened,
        editor: Arc<dyn Editor>,
        shown: Shown,
    ) -> Result<(), Trouble> {
        self.refuse(opened)?;
        let run = id.parse::<RunId>().map_err(|_| Trouble::no_session(id))?;
        let Some(summary) = self.options.backend.get(run).await? else { return Err(Trouble::no_session(id)) };
        let to = self.options.backend.run_head(run).await?;
        let session = self.keep(run, summary.workspace, editor)?;
        let (done, read) = oneshot::channel();
        self.follow(&session, Some(Replay { shown, to, done }));
        read.await.map_err(|_| Trouble::failed(format!("the log of run {run} can't be read")))
    }

    fn keep(&self, run: RunId, folder: PathBuf, editor: Arc<dyn Editor>) -> Result<Arc<Session>, Trouble> {
        let session = Arc::new(Session::new(run, folder, self.options.clone(), editor));
        let mut sessions = self.sessions();
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&run) {
            let words = format!("{SESSIONS_MAX} sessions are open already: close some");
            return Err(Trouble::unfit(words));
        }
        if let Some(before) = sessions.insert(run, session.clone()) {
            before.leave();
        }
        Ok(session)
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Trouble> {
        let run = id.parse::<RunId>().ok();
        let session = run.and_then(|run| self.sessions().get(&run).cloned());
        session.ok_or_else(|| Trouble::no_session(id))
    }

    fn follow(&self, session: &Arc<Session>, replay: Option<Replay>) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of closed sessions have ended.
        while followers.try_join_next().is_some() {}
        session.set_follower(followers.spawn(follow(session.clone(), replay)));
    }

    /// Sends a prompt, and waits until the run's work on it has ended.
    pub(crate) async fn prompt(&self, id: &str, text: String) -> Result<Ending, Trouble> {
        let session = self.session(id)?;
        let follow = || {
            if !session.is_followed() {
                self.follow(&session, None);
            }
        };
        session.prompt(text, follow).await
    }

    /// Cancels the run's work.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), Trouble> {
        self.session(id)?.cancel().await
    }

    /// Cancels the work on prompts that wait, as the protocol wants it, and forgets the session. What others have asked
    /// the run for goes on, and it can be loaded again.
    pub(crate) async fn close(&self, id: &str) -> Result<(), Trouble> {
        let session = self.session(id)?;
        let cancelled = if session.has_prompts() { session.cancel().await } else { Ok(()) };
        self.sessions().remove(&session.run);
        session.leave();
        cancelled
    }

    /// Runs, the newest first: of one folder if it is named, behind the place that an answer before has named.
    pub(crate) async fn list(
        &self,
        folder: Option<PathBuf>,
        after: Option<String>,
    ) -> Result<SessionList, Trouble> {
        let after = after.as_deref().map(cursor).transpose()?;
        let filter = RunFilter { status: RunStatusFilter::Any, workspace: folder };
        let found = self.options.backend.list(RunQuery { filter, after, max: LIST_MAX }).await?;
        let last = found.last().filter(|_| found.len() == LIST_MAX);
        let next = last.map(|run| format!("{}-{}", run.started_at.0, run.run));
        Ok(SessionList { sessions: found.into_iter().map(listed).collect(), next })
    }
}

fn listed(run: RunSummary) -> ListedSession {
    ListedSession {
        run: run.run,
        title: one_line(&run.goal),
        folder: run.workspace,
        updated_at: run.updated_at,
    }
}

fn cursor(text: &str) -> Result<RunCursor, Trouble> {
    let parsed = text.split_once('-').and_then(|(at, run)| {
        Some(RunCursor { started_at: Timestamp(at.parse().ok()?), run: run.parse().ok()? })
    });
    parsed.ok_or_else(|| Trouble::unfit("cursor: take it from `nextCursor` of an answer"))
}

impl Agent {
    /// Refuses what would be started or read without the user's consent, or isn't there. A server that agents have anyway, by the
    /// settings, may be named.
    fn refuse(&self, opened: &Opened) -> Result<(), Trouble> {
        if let Some(what) = opened.unknown.first() {
            return Err(Trouble::unfit(format!("{what}: Provost doesn't offer it")));
        }
        let is_new = |server: &&EditorServer| !self.options.servers.has(&opened.folder, server);
        let new = opened.mcp_servers.iter().filter(is_new);
        let names = new.map(|server| one_line(&server.name)).collect::<Vec<_>>().join(", ");
        if names.is_empty() {
            return Ok(());
        }
        Err(Trouble::unfit(format!(
            "mcpServers: the editor wants {names} started, and Provost starts no server that you haven't agreed to: add it \
             by this name and command with `provost mcp add`, and agree to it with `provost mcp trust`"
        )))
    }
}
