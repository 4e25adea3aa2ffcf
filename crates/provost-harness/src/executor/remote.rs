//! Effects of a run with a remote repository: the worktree that one works in is here before, and pushed after it.

use std::sync::Arc;

use provost_engine::{Effect, Event, RunEvent, SessionEvent, WorktreeResult};
use provost_event::{Access, EffectId, SessionId, WorktreeLeft};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::worktree::{FETCH_MAX, RemoteWorktrees, Taken};
use crate::session_cache::Opening;

/// The sender of a message about a worktree.
const BY: &str = "provost";
const FETCHED: &str = "You go on at another machine: your worktree was fetched from the remote repository. Files that git ignores \
    aren't in it, nothing is staged, and what a call said to be on the other machine only is not here: look what is there \
    before you go on.";

impl HarnessExecutor {
    /// Performs an effect with the files that the remote repository has, and has it get what the effect changes.
    pub(super) async fn perform_with_remote(
        &self,
        remote: &RemoteWorktrees,
        id: EffectId,
        effect: Effect,
        cancel: &CancellationToken,
    ) -> Event {
        let Some(session) = effect.session() else { return self.perform(id, effect, cancel).await };
        let owner = match &effect {
            Effect::MakeWorktree(order) => match remote.before_made(self.backend(), order, cancel).await {
                Ok(()) => Some(order.session),
                Err(message) => {
                    let result = WorktreeResult::Failed { message };
                    return SessionEvent::WorktreeReady { seq: id.seq, result }.into();
                }
            },
            _ => match self.worktree_of(remote, session, &effect, cancel).await {
                Ok(owner) => owner,
                Err(why) if matches!(effect, Effect::CheckWorktree(_)) => {
                    let left = WorktreeLeft::Unknown { why };
                    return SessionEvent::WorktreeChecked { seq: id.seq, left }.into();
                }
                // What it is to be done in isn't there, which its own result says.
                Err(_) => None,
            },
        };
        let Some(owner) = owner else { return self.perform(id, effect, cancel).await };
        let is_unchanged = self.leaves_files(session, &effect).await;
        let inspected = match &effect {
            Effect::CheckWorktree(check) => Some(check.branch.clone()),
            _ => None,
        };
        let event = self.perform(id, effect, cancel).await;
        if is_unchanged {
            return event;
        }
        match (event, inspected) {
            (Event::Session(SessionEvent::WorktreeChecked { seq, left }), Some(branch)) => {
                let left = remote.conclude((owner, &branch), left, cancel).await;
                SessionEvent::WorktreeChecked { seq, left }.into()
            }
            (Event::Session(SessionEvent::ToolDone { seq, mut result }), _) => {
                match remote.publish(owner, cancel).await {
                    Ok(None) => {}
                    Ok(Some(lacks)) => {
                        let note = format!("\n[Not in the remote repository, and lost if this machine is: {lacks}]");
                        result.output.push_str(&note);
                    }
                    Err(why) => result.output.push_str(&format!(
                        "\n[What this changed isn't in the remote repository yet, and is lost if this machine is: {why}]"
                    )),
                }
                SessionEvent::ToolDone { seq, result }.into()
            }
            (event, _) => {
                if let Err(why) = remote.publish(owner, cancel).await {
                    tracing::warn!(why, %owner, "changes aren't in the remote repository yet");
                }
                event
            }
        }
    }

    /// The session whose worktree `session` works in, which is here then; its agent is told where it was fetched.
    ///
    /// # Errors
    /// Why it isn't here.
    async fn worktree_of(
        &self,
        remote: &RemoteWorktrees,
        session: SessionId,
        effect: &Effect,
        cancel: &CancellationToken,
    ) -> Result<Option<SessionId>, String> {
        let Ok(opening) = self.known.opening(self.backend(), session).await else { return Ok(None) };
        let Some(owner) = remote.owner(&opening.policy.workspace) else { return Ok(None) };
        let ends = matches!(effect, Effect::CheckWorktree(_) | Effect::CloseTerminal { .. });
        let taken = remote.take_over(self.backend(), owner, ends.then_some(FETCH_MAX), cancel).await?;
        if taken != Taken::Before {
            // Its folder may have been looked up before it was here.
            self.known.forget(session);
        }
        if taken == Taken::Fetched && !ends {
            let say = RunEvent::Say { agent: owner.agent, text: FETCHED.to_owned(), by: BY.to_owned() };
            if let Err(error) = self.backend().post(owner.run.into(), Event::Run(say), None).await {
                tracing::warn!(%error, %owner, "an agent isn't told that its worktree was fetched");
            }
        }
        Ok(Some(owner))
    }

    /// Whether an effect can't change files.
    async fn leaves_files(&self, session: SessionId, effect: &Effect) -> bool {
        let opening = || async { self.known.opening(self.backend(), session).await.ok() };
        let is_native = |opening: Arc<Opening>| opening.policy.external.is_none();
        match effect {
            Effect::Judge(_) | Effect::Timer { .. } => true,
            Effect::CallModel(_) => opening().await.is_some_and(is_native),
            Effect::RunTool(run) => opening().await.is_some_and(|opening| {
                let tool = opening.tools.iter().find(|tool| tool.name == run.tool);
                tool.is_some_and(|tool| tool.access == Access::Reads)
            }),
            Effect::CheckStop(_)
            | Effect::AskHooks(_)
            | Effect::MakeWorktree(_)
            | Effect::CheckWorktree(_)
            | Effect::CloseTerminal { .. } => false,
        }
    }
}
