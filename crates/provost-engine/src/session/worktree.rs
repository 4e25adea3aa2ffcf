//! A session with a git worktree of its own: the worktree is made first, and inspected before the session ends, or
//! is suspended in a way that its parent may have to judge.

use provost_event::{
    ErrorClass, ItemKind, Outcome, PauseReason, Seq, Worktree, WorktreeAsked, WorktreeFound, WorktreeLeft,
    WorktreeMade,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, Phase, SessionState};
use crate::event::WorktreeResult;
use crate::{CleanWorktree, Effect, WorktreeCheck, WorktreeOrder};

/// The state of a session's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnTree {
    worktree: Worktree,
    made: Option<WorktreeMade>,
    /// The entry that requested the inspection, while that is pending, and what happens to an unchanged worktree.
    asked: Option<(Seq, CleanWorktree)>,
    /// The same for the last inspection, until the session is resumed.
    found: Option<(CleanWorktree, WorktreeLeft)>,
}

impl OwnTree {
    pub(super) const fn new(worktree: Worktree) -> Self {
        Self { worktree, made: None, asked: None, found: None }
    }

    pub(super) fn branch(&self) -> &str {
        &self.worktree.branch
    }
}

impl Deciding<'_> {
    /// The session can't begin before its worktree is ready.
    pub(super) fn make_worktree(&mut self) {
        if let (Phase::MakingWorktree(seq), Some(order)) = (self.state.phase, self.state.worktree_order()) {
            self.step.effect(seq, Effect::MakeWorktree(order));
        }
    }

    pub(super) fn worktree_ready(&mut self, seq: Seq, result: WorktreeResult) {
        if self.state.phase != Phase::MakingWorktree(seq) || self.state.outcome.is_some() {
            return;
        }
        self.step.close(seq);
        let failed = match result {
            WorktreeResult::Made(made) => {
                self.commit(made);
                self.tell_of_worktree();
                None
            }
            WorktreeResult::Failed { message } => {
                Some(Outcome::Failed { class: ErrorClass::Workspace, message })
            }
        };
        match self.state.stopping.clone().or(failed) {
            Some(outcome) => self.finish_segment(outcome),
            None => self.next_turn(),
        }
    }

    fn tell_of_worktree(&mut self) {
        let Some((tree, made)) = self.state.made_worktree() else { return };
        let mut said = Vec::new();
        if made.uncommitted > 0 {
            said.push(format!(
                "Your worktree was made from the last commit in {}. Changes there that aren't committed aren't in it; \
                 files that have some: {}.",
                tree.worktree.from.display(),
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
        if !said.is_empty() {
            self.say(ItemKind::Reminder, said.join("\n"));
        }
    }

    /// Has the worktree's changes inspected before the session stops with `outcome`, if they must be known.
    /// Returns whether an inspection is requested.
    pub(super) fn asks_about_worktree(&mut self, outcome: &Outcome) -> bool {
        if !self.state.is_to_ask_about_worktree(outcome) {
            return false;
        }
        if let Phase::Waiting(timer) = self.state.phase {
            self.step.close(timer);
        }
        self.commit(WorktreeAsked { outcome: outcome.clone() });
        self.open_worktree_question();
        true
    }

    /// Repeats a pending request under the same id.
    pub(super) fn ask_about_worktree_again(&mut self) {
        if let Some(seq) = self.state.worktree_question() {
            self.step.close(seq);
            self.open_worktree_question();
        }
    }

    fn open_worktree_question(&mut self) {
        if let (Some(seq), Some(check)) = (self.state.worktree_question(), self.state.worktree_check()) {
            self.step.effect(seq, Effect::CheckWorktree(check));
        }
    }

    pub(super) fn worktree_checked(&mut self, seq: Seq, left: WorktreeLeft) {
        if self.state.worktree_question() != Some(seq) || self.state.outcome.is_some() {
            return;
        }
        self.step.close(seq);
        self.commit(WorktreeFound { left });
        if let Some(outcome) = self.state.stopping.clone() {
            self.close_segment(outcome);
        }
    }
}

impl SessionState {
    /// Whether its worktree has yet to be made.
    pub(super) fn lacks_worktree(&self) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.made.is_none())
    }

    /// The entry of the pending inspection.
    pub(super) fn worktree_question(&self) -> Option<Seq> {
        self.tree.as_ref()?.asked.map(|(seq, _)| seq)
    }

    /// The agent's last text, with what it leaves in its worktree.
    pub(super) fn last_report(&self) -> String {
        let text = self.last_text();
        match self.worktree_report() {
            Some(left) => format!("{}\n\n[{left}]", text.trim()).trim_start().to_owned(),
            None => text.to_owned(),
        }
    }

    /// The request that its worktree was made by, once that is ready.
    #[must_use]
    pub fn worktree_made(&self) -> Option<(WorktreeOrder, &WorktreeMade)> {
        let (_, made) = self.made_worktree()?;
        Some((self.worktree_order()?, made))
    }

    /// The worktree that it works in, once that is ready.
    #[must_use]
    pub fn worktree(&self) -> Option<(&Worktree, &WorktreeMade)> {
        self.made_worktree().map(|(tree, made)| (&tree.worktree, made))
    }

    fn made_worktree(&self) -> Option<(&OwnTree, &WorktreeMade)> {
        let tree = self.tree.as_ref()?;
        Some((tree, tree.made.as_ref()?))
    }

    fn worktree_order(&self) -> Option<WorktreeOrder> {
        let Worktree { from, branch, commit } = self.tree.as_ref()?.worktree.clone();
        let path = self.policy.as_ref()?.workspace.clone();
        Some(WorktreeOrder { session: self.session, from, path, branch, commit })
    }

    fn is_to_ask_about_worktree(&self, outcome: &Outcome) -> bool {
        let Some((tree, _)) = self.made_worktree() else { return false };
        let known = tree.found.as_ref().map(|(when_clean, _)| *when_clean);
        clean_worktree_at(outcome).is_some_and(|wanted| known.is_none_or(|known| known < wanted))
    }

    fn worktree_check(&self) -> Option<WorktreeCheck> {
        let (tree, made) = self.made_worktree()?;
        Some(WorktreeCheck {
            session: self.session,
            path: self.policy.as_ref()?.workspace.clone(),
            branch: tree.worktree.branch.clone(),
            repository: made.repository.clone(),
            commit: made.commit.clone(),
            when_clean: tree.asked?.1,
        })
    }

    fn worktree_report(&self) -> Option<String> {
        let (tree, made) = self.made_worktree()?;
        let path = self.policy.as_ref()?.workspace.display();
        let report = match &tree.found.as_ref()?.1 {
            WorktreeLeft::Removed => "It changed nothing in its git worktree, which is removed.".to_owned(),
            WorktreeLeft::Clean => format!("It changed nothing in its git worktree {path}."),
            WorktreeLeft::Changed { branch, commits, summary, uncommitted } => {
                let branch = match branch {
                    Some(branch) => format!("branch {branch}"),
                    None => "on no branch".to_owned(),
                };
                let summary = if summary.is_empty() { "no file differs" } else { summary };
                format!(
                    "Its work is in the git worktree {path}, {branch}. Commits: {commits} ({summary}); files with \
                     changes that aren't committed: {uncommitted}. Merge the branch to take it over, then remove both."
                )
            }
            WorktreeLeft::Unknown { why } => {
                format!(
                    "What it did in its git worktree {path}, branch {}, isn't known: {why}",
                    tree.worktree.branch
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

    pub(super) fn has_worktree(&mut self, made: &WorktreeMade) {
        if let Some(tree) = &mut self.tree {
            tree.made = Some(made.clone());
        }
        self.phase = self.between_turns();
    }

    pub(super) fn worktree_asked(&mut self, asked: &WorktreeAsked) {
        self.stopping = Some(asked.outcome.clone());
        if let (Some(tree), Some(when_clean)) = (&mut self.tree, clean_worktree_at(&asked.outcome)) {
            tree.asked = Some((self.head, when_clean));
        }
    }

    pub(super) fn worktree_found(&mut self, found: &WorktreeFound) {
        if let Some(tree) = &mut self.tree {
            tree.found = tree.asked.take().map(|(_, when_clean)| (when_clean, found.left.clone()));
        }
    }

    /// The last inspection may soon be out of date. A worktree that isn't ready is requested under a new id.
    pub(super) fn worktree_resumed(&mut self) {
        if let Phase::MakingWorktree(_) = self.phase {
            self.phase = Phase::MakingWorktree(self.head);
        }
        if let Some(tree) = &mut self.tree
            && let Some((_, WorktreeLeft::Removed)) = tree.found.take()
        {
            // The session continues with a new one.
            tree.made = None;
            self.phase = Phase::MakingWorktree(self.head);
        }
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
