//! A session with a git worktree of its own: the worktree is made first, and inspected before the session ends, or
//! is suspended in a way that its parent may have to judge.

use std::path::Path;

use provost_event::{
    ErrorClass, ItemKind, Outcome, PauseReason, PushedBranch, Seq, SessionId, Worktree, WorktreeAsked,
    WorktreeFound, WorktreeLeft, WorktreeMade,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, Phase, SessionState};
use crate::event::WorktreeResult;
use crate::session::segment;
use crate::{CleanWorktree, Effect, WorktreeCheck, WorktreeOrder};

/// The git worktree of a session that has its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnWorktree {
    /// What was ordered; absent if the session has no worktree of its own.
    ordered: Option<Worktree>,
    made: Option<WorktreeMade>,
    /// The inspection that was requested, while it is pending.
    inspection: Option<Inspection>,
    /// The last inspection, until the session is resumed.
    inspected: Option<Inspected>,
}

/// A pending inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Inspection {
    /// The entry that requested it.
    asked: Seq,
    /// What happens to an unchanged worktree.
    when_clean: CleanWorktree,
}

/// A finished inspection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Inspected {
    when_clean: CleanWorktree,
    left: WorktreeLeft,
}

impl OwnWorktree {
    pub(super) fn ordered(&mut self, worktree: &Worktree) {
        self.ordered = Some(worktree.clone());
    }

    pub(super) fn made(&mut self, made: &WorktreeMade) {
        self.made = Some(made.clone());
    }

    /// The entry `head` requests an inspection.
    pub(super) fn asked(&mut self, asked: &WorktreeAsked, head: Seq) {
        if self.ordered.is_some()
            && let Some(when_clean) = clean_worktree_at(&asked.outcome)
        {
            self.inspection = Some(Inspection { asked: head, when_clean });
        }
    }

    pub(super) fn found(&mut self, found: &WorktreeFound) {
        let inspection = self.inspection.take();
        self.inspected = inspection
            .map(|inspection| Inspected { when_clean: inspection.when_clean, left: found.left.clone() });
    }

    /// The last inspection may soon be out of date. Returns whether the worktree was removed: the session continues
    /// with a new one.
    pub(super) fn resumed(&mut self) -> bool {
        let is_removed = self.inspected.take().is_some_and(|found| found.left == WorktreeLeft::Removed);
        if is_removed {
            self.made = None;
        }
        is_removed
    }

    /// Whether it has yet to be made.
    pub(super) const fn is_missing(&self) -> bool {
        self.ordered.is_some() && self.made.is_none()
    }

    /// The branch of the worktree that was ordered.
    pub(super) fn branch(&self) -> Option<&str> {
        self.ordered.as_ref().map(|worktree| worktree.branch.as_str())
    }

    /// The entry of the pending inspection.
    pub(super) fn question(&self) -> Option<Seq> {
        self.inspection.map(|inspection| inspection.asked)
    }

    /// The worktree, once it is ready.
    fn ready(&self) -> Option<(&Worktree, &WorktreeMade)> {
        Some((self.ordered.as_ref()?, self.made.as_ref()?))
    }

    /// Whether its changes must be inspected before the session stops with `outcome`.
    fn must_be_inspected(&self, outcome: &Outcome) -> bool {
        let known = self.inspected.as_ref().map(|found| found.when_clean);
        self.ready().is_some()
            && clean_worktree_at(outcome).is_some_and(|wanted| known.is_none_or(|known| known < wanted))
    }

    fn order(&self, session: SessionId, path: &Path) -> Option<WorktreeOrder> {
        let Worktree { from, branch, commit } = self.ordered.clone()?;
        Some(WorktreeOrder { session, from, path: path.to_owned(), branch, commit })
    }

    /// The pending inspection of the worktree at `path`.
    fn check(&self, session: SessionId, path: &Path) -> Option<WorktreeCheck> {
        let (worktree, made) = self.ready()?;
        Some(WorktreeCheck {
            session,
            path: path.to_owned(),
            branch: worktree.branch.clone(),
            repository: made.repository.clone(),
            commit: made.commit.clone(),
            when_clean: self.inspection?.when_clean,
        })
    }

    /// What the agent must know of a worktree that is ready; empty if there is nothing.
    fn notes(&self) -> String {
        let Some((worktree, made)) = self.ready() else { return String::new() };
        let mut said = Vec::new();
        if made.uncommitted > 0 {
            said.push(format!(
                "Your worktree was made from the last commit in {}. Changes there that aren't committed aren't in it; \
                 files that have some: {}.",
                worktree.from.display(),
                made.uncommitted,
            ));
        }
        if made.unfiltered > 0 {
            said.push(format!(
                "Files of your worktree that are pointers to large files, or else as git stores them, because no filter of \
                 git was run: {}. Don't take what is in them for their content.",
                made.unfiltered,
            ));
        }
        said.join("\n")
    }

    /// What the last inspection found in the worktree at `path`, as text.
    fn report(&self, path: &Path) -> Option<String> {
        let (worktree, made) = self.ready()?;
        let path = path.display();
        let report = match &self.inspected.as_ref()?.left {
            WorktreeLeft::Removed => "It changed nothing in its git worktree, which is removed.".to_owned(),
            WorktreeLeft::Clean => format!("It changed nothing in its git worktree {path}."),
            WorktreeLeft::Changed { branch, commits, summary, uncommitted, pushed, unpushed } => {
                let branch = match branch {
                    Some(branch) => format!("branch {branch}"),
                    None => "on no branch".to_owned(),
                };
                let summary = if summary.is_empty() { "no file differs" } else { summary };
                let how = match pushed {
                    Some(PushedBranch { url, branch }) => {
                        format!("`git fetch {url} {branch} && git merge FETCH_HEAD` takes it over.")
                    }
                    None => "Merge the branch to take it over, then remove both.".to_owned(),
                };
                let lacks = unpushed.as_ref().map(|lacks| format!(" Not in the remote repository: {lacks}."));
                format!(
                    "Its work is in the git worktree {path}, {branch}. Commits: {commits} ({summary}); files with \
                     changes that aren't committed: {uncommitted}. {how}{}",
                    lacks.unwrap_or_default()
                )
            }
            WorktreeLeft::Unknown { why } => {
                format!(
                    "What it did in its git worktree {path}, branch {}, isn't known: {why}",
                    worktree.branch
                )
            }
        };
        let missing = match made.uncommitted {
            0 => String::new(),
            files => format!(
                " It didn't have your changes to files that weren't committed when it began: {files}."
            ),
        };
        Some(report + &missing)
    }
}

/// The session can't begin before its worktree is ready.
pub(in crate::session) fn make(deciding: &mut Deciding<'_>) {
    if let (Phase::MakingWorktree(seq), Some(order)) =
        (deciding.state.lifecycle.phase(), worktree_order(deciding.state))
    {
        deciding.step.effect(seq, Effect::MakeWorktree(order));
    }
}

pub(in crate::session) fn ready(deciding: &mut Deciding<'_>, seq: Seq, result: WorktreeResult) {
    if deciding.state.lifecycle.phase() != Phase::MakingWorktree(seq)
        || deciding.state.lifecycle.outcome().is_some()
    {
        return;
    }
    deciding.step.close(seq);
    let failed = match result {
        WorktreeResult::Made(made) => {
            deciding.commit(made);
            let notes = deciding.state.worktree.notes();
            if !notes.is_empty() {
                deciding.say(ItemKind::Reminder, notes);
            }
            None
        }
        WorktreeResult::Failed { message } => Some(Outcome::Failed { class: ErrorClass::Workspace, message }),
    };
    match deciding.state.lifecycle.stopping().cloned().or(failed) {
        Some(outcome) => segment::finish(deciding, outcome),
        None => segment::next_turn(deciding),
    }
}

/// Has the worktree's changes inspected before the session stops with `outcome`, if they must be known.
/// Returns whether an inspection is requested.
pub(in crate::session) fn asks_about_worktree(deciding: &mut Deciding<'_>, outcome: &Outcome) -> bool {
    if !deciding.state.worktree.must_be_inspected(outcome) {
        return false;
    }
    if let Phase::Waiting(timer) = deciding.state.lifecycle.phase() {
        deciding.step.close(timer);
    }
    deciding.commit(WorktreeAsked { outcome: outcome.clone() });
    open_worktree_question(deciding);
    true
}

/// Repeats a pending request under the same id.
pub(in crate::session) fn ask_about_worktree_again(deciding: &mut Deciding<'_>) {
    if let Some(seq) = deciding.state.worktree.question() {
        deciding.step.close(seq);
        open_worktree_question(deciding);
    }
}

fn open_worktree_question(deciding: &mut Deciding<'_>) {
    if let (Some(seq), Some(check)) = (deciding.state.worktree.question(), worktree_check(deciding.state)) {
        deciding.step.effect(seq, Effect::CheckWorktree(check));
    }
}

pub(in crate::session) fn checked(deciding: &mut Deciding<'_>, seq: Seq, left: WorktreeLeft) {
    if deciding.state.worktree.question() != Some(seq) || deciding.state.lifecycle.outcome().is_some() {
        return;
    }
    deciding.step.close(seq);
    deciding.commit(WorktreeFound { left });
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        segment::close(deciding, outcome);
    }
}

impl SessionState {
    /// The request that its worktree was made by, once that is ready.
    #[must_use]
    pub fn worktree_made(&self) -> Option<(WorktreeOrder, &WorktreeMade)> {
        let (_, made) = self.worktree.ready()?;
        Some((worktree_order(self)?, made))
    }

    /// The worktree that it works in, once that is ready.
    #[must_use]
    pub fn worktree(&self) -> Option<(&Worktree, &WorktreeMade)> {
        self.worktree.ready()
    }
}

/// What happens to an unchanged worktree when its session stops with `outcome`; `None` if the worktree isn't
/// reported then.
fn clean_worktree_at(outcome: &Outcome) -> Option<CleanWorktree> {
    match outcome {
        Outcome::Completed { .. }
        | Outcome::Aborted { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Failed { .. } => Some(CleanWorktree::Goes),
        Outcome::BudgetExhausted(_) | Outcome::Blocked { .. } => Some(CleanWorktree::Stays),
        Outcome::Paused { why } => match why {
            PauseReason::RepeatedCall { .. }
            | PauseReason::ToolFailures { .. }
            | PauseReason::Unanswered { .. }
            | PauseReason::Stuck { .. } => Some(CleanWorktree::Stays),
            PauseReason::Model(trouble) if !trouble.cause().is_outside() => Some(CleanWorktree::Stays),
            PauseReason::Model(_)
            | PauseReason::Asked { .. }
            | PauseReason::WorkspaceGone { .. }
            | PauseReason::CrashLoop { .. }
            | PauseReason::Hook { .. }
            | PauseReason::Approval { .. }
            | PauseReason::StepFailed { .. }
            | PauseReason::JudgeUnreachable { .. }
            | PauseReason::GoalCleared { .. }
            | PauseReason::Preempted { .. } => None,
        },
    }
}

/// What the agent leaves in its worktree, if it has one.
pub(in crate::session) fn report(state: &SessionState) -> Option<String> {
    workspace(state).and_then(|path| state.worktree.report(path))
}

fn worktree_order(state: &SessionState) -> Option<WorktreeOrder> {
    state.worktree.order(state.session, workspace(state)?)
}

fn worktree_check(state: &SessionState) -> Option<WorktreeCheck> {
    state.worktree.check(state.session, workspace(state)?)
}

fn workspace(state: &SessionState) -> Option<&Path> {
    state.assignment.policy().map(|policy| policy.workspace.as_path())
}
