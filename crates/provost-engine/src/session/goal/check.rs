//! One verification: the verdicts of the judges, and the joint result.

use provost_event::{
    Confidence, GoalCheckStarted, GoalFinding, GoalPolicy, GoalTrigger, JudgeAnswer, SupervisorError,
    SupervisorVerdict,
};
use serde::{Deserialize, Serialize};

use crate::session::Phase;

/// The vote of one judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum JudgeVote {
    #[default]
    Unasked,
    Said(SupervisorVerdict),
    Failed(SupervisorError),
}

/// A verification in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoalCheck {
    trigger: GoalTrigger,
    generation: u32,
    /// The phase to return to afterwards.
    back: Phase,
    /// In the policy's order.
    votes: Vec<JudgeVote>,
    /// The judge's first answer was no verdict, and it is called once more.
    again: bool,
    /// The judge was waited for once.
    waited: bool,
    /// The goal has changed since it began: the judges' verdicts no longer count.
    is_stale: bool,
}

/// A verification after an answer of a judge.
pub(super) struct HeardCheck {
    pub(super) check: GoalCheck,
    /// The judges are undecided.
    pub(super) is_undecided: bool,
}

/// The joint result of the votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuorumState {
    /// This judge is to be called.
    Open(usize),
    /// It is decided.
    Known(GoalFinding),
    /// It depends on a judge that failed.
    Undecided(SupervisorError),
}

impl GoalCheck {
    pub(super) fn new(started: &GoalCheckStarted, back: Phase, policy: &GoalPolicy) -> Self {
        Self {
            trigger: started.trigger,
            generation: started.generation,
            back,
            votes: policy.judges.iter().map(|_| JudgeVote::Unasked).collect(),
            again: false,
            waited: false,
            is_stale: false,
        }
    }

    pub(super) const fn trigger(&self) -> GoalTrigger {
        self.trigger
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// The phase to return to afterwards.
    pub(super) const fn back(&self) -> Phase {
        self.back
    }

    /// Whether the judges' verdicts still count.
    pub(super) const fn is_live(&self) -> bool {
        !self.is_stale
    }

    /// The goal has changed: the judges' verdicts no longer count.
    pub(super) const fn void(&mut self) {
        self.is_stale = true;
    }

    /// Whether the judge's last answer was no verdict, and it is called once more.
    pub(super) const fn asks_again(&self) -> bool {
        self.again
    }

    /// Whether the judge was waited for once.
    pub(super) const fn has_waited(&self) -> bool {
        self.waited
    }

    pub(super) fn next_judge(&self) -> Option<usize> {
        self.votes.iter().position(|vote| *vote == JudgeVote::Unasked)
    }

    /// Adds the answer of the called judge; with `wait_ms`, judges are called again after that wait. A wait that the provider asked for doesn't count as a failure, once.
    #[must_use]
    pub(super) fn heard(
        mut self,
        answer: &JudgeAnswer,
        policy: &GoalPolicy,
        wait_ms: Option<u64>,
    ) -> HeardCheck {
        let vote = match answer {
            JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms })
                if !self.waited && wait_ms.is_some_and(|wait| wait >= retry_after_ms.unwrap_or_default()) =>
            {
                self.waited = true;
                return HeardCheck { check: self, is_undecided: false };
            }
            JudgeAnswer::Failed(SupervisorError::Parse(_)) if !self.again => {
                self.again = true;
                return HeardCheck { check: self, is_undecided: false };
            }
            JudgeAnswer::Failed(error) => JudgeVote::Failed(error.clone()),
            JudgeAnswer::Verdict(verdict) => JudgeVote::Said(verdict.clone()),
        };
        if let Some(open) = self.votes.iter_mut().find(|vote| **vote == JudgeVote::Unasked) {
            *open = vote;
        }
        self.again = false;
        self.waited = false;
        let is_undecided = matches!(self.standing(policy), QuorumState::Undecided(_));
        if is_undecided && wait_ms.is_some() {
            // Judges that failed are called again.
            let failed = self.votes.iter_mut().filter(|vote| matches!(vote, JudgeVote::Failed(_)));
            failed.for_each(|vote| *vote = JudgeVote::Unasked);
        }
        HeardCheck { check: self, is_undecided }
    }

    pub(super) fn standing(&self, policy: &GoalPolicy) -> QuorumState {
        let is_for = |verdict: &SupervisorVerdict| verdict.achieved && verdict.confidence >= policy.threshold;
        let mut agree = 0;
        let mut open = 0;
        let mut failed = 0;
        for vote in &self.votes {
            match vote {
                JudgeVote::Unasked => open += 1,
                JudgeVote::Said(verdict) if is_for(verdict) => agree += 1,
                JudgeVote::Said(_) => {}
                JudgeVote::Failed(_) => failed += 1,
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
            JudgeVote::Failed(error) => Some(error),
            JudgeVote::Unasked | JudgeVote::Said(_) => None,
        })
    }

    fn said(&self) -> impl Iterator<Item = (usize, &SupervisorVerdict)> {
        self.votes.iter().enumerate().filter_map(|(judge, vote)| match vote {
            JudgeVote::Said(verdict) => Some((judge, verdict)),
            JudgeVote::Unasked | JudgeVote::Failed(_) => None,
        })
    }

    fn achieved(&self, policy: &GoalPolicy, is_for: impl Fn(&SupervisorVerdict) -> bool) -> GoalFinding {
        let mut confidence = Confidence::FULL;
        let mut reasons = Vec::new();
        for (judge, verdict) in self.said().filter(|(_, verdict)| is_for(verdict)) {
            confidence = confidence.min(verdict.confidence);
            reasons.push(attributed(policy, judge, &verdict.reasoning));
        }
        GoalFinding::Achieved { confidence, reasoning: reasons.join("\n\n") }
    }

    fn not_achieved(&self, policy: &GoalPolicy, is_for: impl Fn(&SupervisorVerdict) -> bool) -> GoalFinding {
        let mut confidence = None;
        let mut reasons = Vec::new();
        let mut suggestions = Vec::<String>::new();
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
