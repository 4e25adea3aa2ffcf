//! Worktrees of a run with a remote repository: each is fetched when the first effect of this process needs it, and pushed
//! before the result of an effect that may have changed it is reported. So another machine that takes the run over has
//! all files that the log tells of.
//!
//! A worktree `RUN-N` is the reference `refs/provost-worktrees/RUN-N` of the remote: a commit with all its files, or its last commit
//! itself. Each push names the commit that it replaces, and taking a worktree over is such a push too: a process that has
//! lost the run without knowing can push nothing any more.

mod content;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use provost_engine::{Actor, WorktreeOrder, worktree_name};
use provost_event::{Elapsed, PushedBranch, RemoteRepository, RunPolicy, SessionId, WorktreeLeft};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::content::{Content, commit_of, restore};
use super::sweep::session_of;
use crate::git::remote::{Remote, reference};
use crate::git::{Git, GitError};
use crate::{BackendError, Clock, Log};

/// How long a push is tried before the result is reported without it.
const PUSH_MAX: Duration = Duration::from_secs(60);
/// The same for an effect that was told to stop.
const LAST_PUSH_MAX: Duration = Duration::from_secs(5);
/// How long fetching a worktree is tried for an effect that makes it, or ends its agent's work.
pub(crate) const FETCH_MAX: Duration = Duration::from_secs(60);
/// Time between two attempts, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Longer than a process that has lost the run takes to notice.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// References of the copy here say what this machine pushed last.
const PUSHED: &str = "refs/provost-worktrees/pushed";

/// The worktrees of a run with a remote repository, as this process knows them.
pub(crate) struct RemoteWorktrees {
    remote: RemoteRepository,
    /// The folder that they are in.
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    known: std::sync::Mutex<HashMap<SessionId, Arc<Mutex<Known>>>>,
}

/// What this process knows of a worktree.
#[derive(Default)]
struct Known {
    /// Whether it was taken over by this process.
    is_ours: bool,
    /// What the remote has.
    pushed: Option<String>,
    /// The content of that.
    content: Option<Content>,
    /// Whether the last push wasn't possible: the next is tried once.
    is_failing: bool,
    /// What an agent was told that the remote lacks.
    told: Option<String>,
}

/// Whether a worktree was got from the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is this process's since before.
    Before,
    /// It was here as the remote has it.
    Here,
    /// It was fetched: another machine had it.
    Fetched,
}

/// The reference of the copy here that names what this machine pushed last of a worktree.
fn last_pushed(owner: SessionId) -> String {
    format!("{PUSHED}/{}", worktree_name(owner))
}

#[derive(Debug, thiserror::Error)]
enum RemoteError {
    #[error(transparent)]
    Git(#[from] GitError),
    /// Its files can't be read: the remote has no part in it.
    #[error("its files can't be committed: {0}")]
    Content(#[source] GitError),
    #[error("it has no {0} any more, and this machine no copy of it")]
    Gone(String),
    #[error(transparent)]
    Log(#[from] BackendError),
    #[error("another process has pushed to it")]
    Overtaken(Option<String>),
}

impl RemoteWorktrees {
    /// Those of a run with this policy; none if it has no remote repository.
    pub(crate) fn of(policy: &RunPolicy, clock: Arc<dyn Clock>) -> Option<Self> {
        let remote = policy.remote.clone()?;
        let folder = policy.worktrees.clone()?;
        Some(Self { remote, folder, clock, known: std::sync::Mutex::default() })
    }

    fn remote(&self) -> Remote<'_> {
        Remote { url: &self.remote.url, copy: &self.remote.copy, commit: &self.remote.commit }
    }

    /// The session whose worktree `workspace` is.
    pub(crate) fn owner(&self, workspace: &Path) -> Option<SessionId> {
        let name = workspace.strip_prefix(&self.folder).ok()?.to_str()?;
        session_of(name)
    }

    fn path(&self, owner: SessionId) -> PathBuf {
        self.folder.join(worktree_name(owner))
    }

    fn known(&self, owner: SessionId) -> Arc<Mutex<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(owner).or_default().clone()
    }

    /// Gets ready for making the worktree of `order`: fetches its first commit, or has its source here.
    pub(crate) async fn before_made(
        &self,
        backend: &dyn Log,
        order: &WorktreeOrder,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        if let Some(source) = self.owner(&order.from) {
            self.take_over(backend, source, None, cancel).await?;
        }
        let known = self.known(order.session);
        let mut known = known.lock().await;
        let mut attempts = Attempts::within(&*self.clock, Some(FETCH_MAX));
        loop {
            match self.fetched(order.session, cancel).await {
                Ok(fetched) => {
                    *known = Known { is_ours: true, pushed: fetched, ..Known::default() };
                    return Ok(());
                }
                Err(error) if attempts.again(cancel).await => {
                    tracing::warn!(%error, url = self.remote.url, "a repository can't be fetched: tried again");
                }
                Err(error) => return Err(format!("{} can't be fetched: {error}", self.remote.url)),
            }
        }
    }

    async fn fetched(
        &self,
        owner: SessionId,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, GitError> {
        let git = self.remote().open(cancel).await?;
        if let Err(error) = self.remote().pack(&git).await {
            tracing::debug!(%error, "the copy of a repository isn't packed");
        }
        self.remote().fetch(&git, &reference(owner)).await
    }

    /// Has the worktree of `owner` here as it was last pushed, once in this process. Tried until it succeeds, `limit` is over
    /// or `cancel` fires: nothing may be done in other files.
    ///
    /// # Errors
    /// Why it isn't here.
    pub(crate) async fn take_over(
        &self,
        backend: &dyn Log,
        owner: SessionId,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Taken, String> {
        let known = self.known(owner);
        let mut known = known.lock().await;
        if known.is_ours {
            return Ok(Taken::Before);
        }
        let mut attempts = Attempts::within(&*self.clock, limit);
        loop {
            let error = match self.taken_over(backend, owner, cancel).await {
                Ok((now, taken)) => {
                    *known = now;
                    return Ok(taken);
                }
                Err(error) => error,
            };
            tracing::warn!(%error, url = self.remote.url, %owner, "a worktree can't be fetched");
            if matches!(error, RemoteError::Gone(_)) || !attempts.again(cancel).await {
                return Err(format!("{}: {error}", self.remote.url));
            }
        }
    }

    async fn taken_over(
        &self,
        backend: &dyn Log,
        owner: SessionId,
        cancel: &CancellationToken,
    ) -> Result<(Known, Taken), RemoteError> {
        let made = match backend.state(owner.into()).await? {
            Actor::Session(state) => state.worktree_made().map(|(order, made)| (order, made.clone())),
            Actor::Run(_) => None,
        };
        // One that isn't made yet is fetched when it is.
        let Some((order, made)) = made else {
            return Ok((Known { is_ours: true, ..Known::default() }, Taken::Here));
        };
        let git = self.remote().open(cancel).await?;
        let fetched = self.remote().fetch(&git, &reference(owner)).await?;
        let own_last = git.find(["rev-parse", "--verify", "--quiet", &last_pushed(owner)]).await?;
        let is_here = Git::at(&order.path, cancel).await.is_ok();
        let is_other = !is_here || (fetched.is_some() && own_last != fetched);
        if is_other {
            let base = format!("{}^{{commit}}", made.commit);
            if fetched.is_none() && git.find(["rev-parse", "--verify", "--quiet", &base]).await?.is_none() {
                return Err(RemoteError::Gone(reference(owner)));
            }
            restore(&self.remote.copy, (&order, &made), fetched.as_deref(), cancel).await?;
        }
        let mut known = Known { is_ours: true, pushed: fetched, ..Known::default() };
        match self.push(owner, &mut known, cancel).await {
            // It stays as it is, and the next push says so.
            Ok(()) | Err(RemoteError::Content(_)) => {}
            Err(error) => return Err(error),
        }
        Ok((known, if is_other { Taken::Fetched } else { Taken::Here }))
    }

    /// Pushes the worktree of `owner`, if its content has changed. Returns what the remote lacks of it, if that is new.
    ///
    /// # Errors
    /// Why that wasn't possible for a minute; it is tried again with the next effect, but only once.
    pub(crate) async fn publish(
        &self,
        owner: SessionId,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, String> {
        let known = self.known(owner);
        let mut known = known.lock().await;
        // An effect that was told to stop has only a moment left, but what it did is there.
        let limit = if cancel.is_cancelled() { LAST_PUSH_MAX } else { PUSH_MAX };
        let mut attempts = Attempts::within(&*self.clock, Some(limit));
        while known.is_ours {
            let unhurried = CancellationToken::new();
            let pushed = tokio::select! {
                pushed = self.push(owner, &mut known, &unhurried) => pushed,
                () = attempts.over() => Err(GitError::TimedOut(limit).into()),
            };
            let error = match pushed {
                Ok(()) => {
                    known.is_failing = false;
                    let missing = known.content.as_ref().and_then(|content| content.missing.clone());
                    let is_new = missing != known.told;
                    known.told.clone_from(&missing);
                    return Ok(missing.filter(|_| is_new));
                }
                Err(error) => error,
            };
            tracing::warn!(%error, url = self.remote.url, %owner, "a worktree can't be pushed");
            let can_pass = match &error {
                RemoteError::Overtaken(by) => {
                    // If this process has lost the run, it learns that meanwhile, and stops.
                    self.clock.sleep(LOST_AFTER).await;
                    known.pushed.clone_from(by);
                    true
                }
                RemoteError::Git(_) => !known.is_failing,
                RemoteError::Content(_) | RemoteError::Gone(_) | RemoteError::Log(_) => false,
            };
            if !can_pass || !attempts.again(cancel).await {
                known.is_failing = true;
                return Err(format!("{}: {error}", self.remote.url));
            }
        }
        Ok(None)
    }

    async fn push(
        &self,
        owner: SessionId,
        known: &mut Known,
        cancel: &CancellationToken,
    ) -> Result<(), RemoteError> {
        let path = self.path(owner);
        if !path.exists() {
            return Ok(());
        }
        let content = Content::of(&path, owner, cancel).await.map_err(RemoteError::Content)?;
        if known.content.as_ref() == Some(&content) {
            return Ok(());
        }
        let git = self.remote().open(cancel).await?;
        // Always another commit: so a process that was overtaken is told so.
        let commit = commit_of(&self.remote.copy, &content, owner, cancel).await;
        let commit = commit.map_err(RemoteError::Content)?;
        let reference = reference(owner);
        let pushed = self.remote().push(&git, (&reference, &commit), known.pushed.as_deref()).await;
        if let Err(error) = pushed {
            let there = self.remote().fetch(&git, &reference).await?;
            match there {
                // It was received, and the answer was lost.
                Some(there) if there == commit => {}
                there if there == known.pushed => return Err(error.into()),
                there => return Err(RemoteError::Overtaken(there)),
            }
        }
        git.ask(["update-ref", &last_pushed(owner), &commit]).await?;
        known.pushed = Some(commit);
        known.content = Some(content);
        Ok(())
    }

    /// After an inspection: pushes the branch of a changed worktree, and removes what the remote has of a removed one.
    pub(crate) async fn conclude(
        &self,
        (owner, branch): (SessionId, &str),
        left: WorktreeLeft,
        cancel: &CancellationToken,
    ) -> WorktreeLeft {
        let published = self.publish(owner, cancel).await;
        let known = self.known(owner);
        let mut known = known.lock().await;
        let missing = known.content.as_ref().and_then(|content| content.missing.clone());
        match left {
            WorktreeLeft::Changed { branch: at, commits, summary, uncommitted, .. } => {
                let pushed = self.branch_pushed(published, branch, &known, cancel).await;
                let (pushed, unpushed) = match pushed {
                    Ok(pushed) => (pushed, missing),
                    Err(why) => (None, Some(why)),
                };
                WorktreeLeft::Changed { branch: at, commits, summary, uncommitted, pushed, unpushed }
            }
            WorktreeLeft::Unknown { why } => {
                match self.branch_pushed(published, branch, &known, cancel).await {
                    Ok(Some(PushedBranch { url, branch })) => WorktreeLeft::Unknown {
                        why: format!("{why}; its files are pushed: git fetch {url} {branch}"),
                    },
                    Ok(None) => WorktreeLeft::Unknown { why },
                    Err(not) => {
                        WorktreeLeft::Unknown { why: format!("{why}; its files aren't pushed: {not}") }
                    }
                }
            }
            // The run's own reference has the commit that a resumed run begins with.
            WorktreeLeft::Removed if owner.agent != 0 => {
                if let Some(pushed) = known.pushed.take()
                    && let Err(error) = self.forget(owner, &pushed, cancel).await
                {
                    tracing::warn!(%error, %owner, "a reference to an unchanged worktree stays at the remote");
                }
                left
            }
            WorktreeLeft::Removed | WorktreeLeft::Clean => left,
        }
    }

    /// Pushes the branch with what was `published`.
    async fn branch_pushed(
        &self,
        published: Result<Option<String>, String>,
        branch: &str,
        known: &Known,
        cancel: &CancellationToken,
    ) -> Result<Option<PushedBranch>, String> {
        published?;
        let (Some(pushed), Some(content)) = (&known.pushed, &known.content) else { return Ok(None) };
        let tip = content.head.as_ref().filter(|_| content.is_committed).unwrap_or(pushed);
        let reference = format!("refs/heads/{branch}");
        let done = async {
            let git = self.remote().open(cancel).await?;
            self.remote().overwrite(&git, &reference, tip).await
        };
        done.await.map_err(|error| format!("{}: {error}", self.remote.url))?;
        Ok(Some(PushedBranch { url: self.remote.url.clone(), branch: branch.to_owned() }))
    }

    async fn forget(
        &self,
        owner: SessionId,
        pushed: &str,
        cancel: &CancellationToken,
    ) -> Result<(), GitError> {
        let git = self.remote().open(cancel).await?;
        self.remote().delete(&git, &reference(owner), pushed).await?;
        git.ask(["update-ref", "-d", &last_pushed(owner)]).await.map(drop)
    }
}

/// Attempts within a time limit, with growing pauses.
struct Attempts<'a> {
    clock: &'a dyn Clock,
    /// When there are no more; none without a limit.
    until: Option<Elapsed>,
    pause: Duration,
}

impl<'a> Attempts<'a> {
    fn within(clock: &'a dyn Clock, limit: Option<Duration>) -> Self {
        let until = limit.map(|limit| clock.monotonic().plus_ms(ms(limit)));
        Self { clock, until, pause: RETRY_FIRST }
    }

    /// Waits for the next attempt; whether there is one.
    async fn again(&mut self, cancel: &CancellationToken) -> bool {
        let next = self.clock.monotonic().plus_ms(ms(self.pause));
        if cancel.is_cancelled() || self.until.is_some_and(|until| next >= until) {
            return false;
        }
        self.pause = (self.pause * 2).min(RETRY_MAX);
        tokio::select! {
            () = self.clock.sleep_until(next) => true,
            () = cancel.cancelled() => false,
        }
    }

    /// Waits for the end of the time limit.
    async fn over(&self) {
        match self.until {
            Some(until) => self.clock.sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
