//! One verification: the verdicts of the judges, and the joint result.

use provost_event::{
    Confidence, GoalFinding, GoalPolicy, GoalTrigger, JudgeAnswer, SupervisorError, SupervisorVerdict,
};
use serde::{Deserialize, Serialize};

use crate::session::Phase;

/// The vote of one judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Vote {
    #[default]
    Unasked,
    Said(SupervisorVerdict),
    Failed(SupervisorError),
}

/// A verification in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Check {
    pub(in crate::session) trigger: GoalTrigger,
    pub(in crate::session) generation: u32,
    /// The phase to return to afterwards.
    pub(in crate::session) back: Phase,
    /// In the policy's order.
    votes: Vec<Vote>,
    /// The judge's first answer was no verdict, and it is called once more.
    pub(in crate::session) again: bool,
    /// The judge was waited for once.
    pub(in crate::session) waited: bool,
    /// The goal has changed since it began: the judges' verdicts no longer count.
    pub(in crate::session) is_stale: bool,
}

/// The joint result of the votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) enum QuorumState {
    /// This judge is to be called.
    Open(usize),
    /// It is decided.
    Known(GoalFinding),
    /// It depends on a judge that failed.
    Undecided(SupervisorError),
}

impl Check {
    pub(in crate::session) fn new(
        trigger: GoalTrigger,
        generation: u32,
        back: Phase,
        policy: &GoalPolicy,
    ) -> Self {
        let votes = policy.judges.iter().map(|_| Vote::Unasked).collect();
        Self { trigger, generation, back, votes, again: false, waited: false, is_stale: false }
    }

    pub(in crate::session) fn next_judge(&self) -> Option<usize> {
        self.votes.iter().position(|vote| *vote == Vote::Unasked)
    }

    /// Adds the answer of the called judge, and returns whether the judges are undecided; with `wait_ms`, judges
    /// are called again after that wait. A wait that the provider asked for doesn't count as a failure, once.
    #[must_use]
    pub(in crate::session) fn heard(
        mut self,
        answer: &JudgeAnswer,
        policy: &GoalPolicy,
        wait_ms: Option<u64>,
    ) -> (Self, bool) {
        let vote = match answer {
            JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms })
                if !self.waited && wait_ms.is_some_and(|wait| wait >= retry_after_ms.unwrap_or_default()) =>
            {
                self.waited = true;
                return (self, false);
            }
            JudgeAnswer::Failed(SupervisorError::Parse(_)) if !self.again => {
                self.again = true;
                return (self, false);
            }
            JudgeAnswer::Failed(error) => Vote::Failed(error.clone()),
            JudgeAnswer::Verdict(verdict) => Vote::Said(verdict.clone()),
        };
        if let Some(open) = self.votes.iter_mut().find(|vote| **vote == Vote::Unasked) {
            *open = vote;
        }
        (self.again, self.waited) = (false, false);
        let is_undecided = matches!(self.standing(policy), QuorumState::Undecided(_));
        if is_undecided && wait_ms.is_some() {
            // Judges that failed are called again.
            let failed = self.votes.iter_mut().filter(|vote| matches!(vote, Vote::Failed(_)));
            failed.for_each(|vote| *vote = Vote::Unasked);
        }
        (self, is_undecided)
    }

    pub(in crate::session) fn standing(&self, policy: &GoalPolicy) -> QuorumState {
        let is_for = |verdict: &SupervisorVerdict| verdict.achieved && verdict.confidence >= policy.threshold;
        let (mut agree, mut open, mut failed) = (0, 0, 0);
        for vote in &self.votes {
            match vote {
                Vote::Unasked => open += 1,
                Vote::Said(verdict) if is_for(verdict) => agree += 1,
                Vote::Said(_) => {}
                Vote::Failed(_) => failed += 1,
            }
        }
        if self.votes.is_empty() {
            return QuorumState::Undecided(SupervisorError::Parse("there is no judge to ask".to_owned()));
        }
        let needed = usize::try_from(policy.agree).unwrap_or(usize::MAX).clamp(1, self.votes.len());
        if agree >= needed {
            return QuorumState::Known(self.achieved(policy, is_for));
        }
        if agree + open + failed < needed {
            return QuorumState::Known(self.not_achieved(policy, is_for));
        }
        match (self.next_judge(), self.last_error()) {
            (Some(judge), _) => QuorumState::Open(judge),
            (None, Some(error)) => QuorumState::Undecided(error.clone()),
            // All have a verdict, and no judge failed.
            (None, None) => QuorumState::Known(self.not_achieved(policy, is_for)),
        }
    }

    fn last_error(&self) -> Option<&SupervisorError> {
        self.votes.iter().rev().find_map(|vote| match vote {
            Vote::Failed(error) => Some(error),
            Vote::Unasked | Vote::Said(_) => None,
        })
    }

    fn said(&self) -> impl Iterator<Item = (usize, &SupervisorVerdict)> {
        self.votes.iter().enumerate().filter_map(|(judge, vote)| match vote {
            Vote::Said(verdict) => Some((judge, verdict)),
            Vote::Unasked | Vote::Failed(_) => None,
        })
    }

    fn achieved(&self, policy: &GoalPolicy, is_for: impl Fn(&SupervisorVerdict) -> bool) -> GoalFinding {
        let (mut confidence, mut reasons) = (Confidence::FULL, Vec::new());
        for (judge, verdict) in self.said().filter(|(_, verdict)| is_for(verdict)) {
            confidence = confidence.min(verdict.confidence);
            reasons.push(attributed(policy, judge, &verdict.reasoning));
        }
        GoalFinding::Achieved { confidence, reasoning: reasons.join("\n\n") }
    }

    fn not_achieved(&self, policy: &GoalPolicy, is_for: impl Fn(&SupervisorVerdict) -> bool) -> GoalFinding {
        let (mut confidence, mut reasons, mut suggestions) = (None, Vec::new(), Vec::<String>::new());
        for (judge, verdict) in self.said().filter(|(_, verdict)| !is_for(verdict)) {
            let reason = if verdict.achieved {
                format!(
                    "It looks reached, but the judge is not sure enough: {}, and {} is needed. {}",
                    verdict.confidence, policy.threshold, verdict.reasoning
                )
            } else {
                confidence = confidence.max(Some(verdict.confidence));
                verdict.reasoning.clone()
            };
            reasons.push(attributed(policy, judge, &reason));
            let new = verdict
                .suggestions
                .iter()
                .filter(|line| !suggestions.contains(line))
                .cloned()
                .collect::<Vec<_>>();
            suggestions.extend(new);
        }
        GoalFinding::NotAchieved { reasoning: reasons.join("\n\n"), suggestions, confidence }
    }
}

/// A judge's text, with its name if there are several.
fn attributed(policy: &GoalPolicy, judge: usize, words: &str) -> String {
    match policy.judges.get(judge).filter(|_| policy.judges.len() > 1) {
        Some(judge) => format!("{}: {words}", judge.name),
        None => words.to_owned(),
    }
}
