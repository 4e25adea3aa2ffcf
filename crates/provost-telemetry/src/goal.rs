//! Whether an agent's goal is reached, as found by its judges.

use opentelemetry::KeyValue;
use provost_event::{
    Confidence, GoalFinding, GoalJudged, GoalPolicy, GoalTrigger, GoalVerdict, JudgeAnswer, SupervisorError,
};

use crate::content::Sieve;
use crate::decisions::SpanEvent;
use crate::names;
use crate::span::{OpenSpan, whole};

const VERDICT: &str = "provost.goal.verdict";
pub(crate) const ACHIEVED: &str = "achieved";

/// The findings in one segment of work.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The threshold of the agent's goal, if known.
    threshold: Confidence,
    /// The lowest confidence of the judges who found the goal reached, since the last finding.
    agreed: Option<Confidence>,
    last: Option<(&'static str, Option<Confidence>)>,
    /// The number of claims that were rejected.
    rounds: u64,
}

impl Found {
    /// Sets the agent's goal.
    pub(crate) const fn asks(&mut self, goal: &GoalPolicy) {
        self.threshold = goal.threshold;
    }

    /// A judge has answered.
    pub(crate) fn judged(&mut self, judged: &GoalJudged) {
        if let JudgeAnswer::Verdict(verdict) = &judged.answer
            && verdict.achieved
            && verdict.confidence >= self.threshold
            && !judged.stale
        {
            let least = self.agreed.unwrap_or(Confidence::FULL).min(verdict.confidence);
            self.agreed = Some(least);
        }
    }

    /// The judges' finding.
    pub(crate) fn hear(&mut self, verdict: &GoalVerdict) {
        self.agreed = None;
        self.last = Some((word(&verdict.finding), confidence(&verdict.finding)));
        let is_round = verdict.trigger == GoalTrigger::Claim
            && matches!(verdict.finding, GoalFinding::NotAchieved { .. });
        self.rounds = self.rounds.saturating_add(u64::from(is_round));
    }

    /// The agent is done. There is no entry for judges who agree, but that they were called and the agent is done
    /// shows their finding.
    pub(crate) fn is_done(&mut self) -> Option<SpanEvent> {
        let confidence = self.agreed.take()?;
        self.last = Some((ACHIEVED, Some(confidence)));
        let attributes = vec![
            KeyValue::new(names::GOAL_FINDING, ACHIEVED),
            KeyValue::new(names::GOAL_CONFIDENCE, confidence.fraction()),
        ];
        Some((VERDICT, attributes))
    }

    /// Sets the last finding on the agent's span, if there is one, and resets.
    pub(crate) fn tell(&mut self, span: &mut OpenSpan) {
        let Self { last, rounds, .. } =
            std::mem::replace(self, Self { threshold: self.threshold, ..Self::default() });
        let Some((finding, confidence)) = last else { return };
        span.set(names::GOAL_FINDING, finding);
        if let Some(confidence) = confidence {
            span.set(names::GOAL_CONFIDENCE, confidence.fraction());
        }
        span.set(names::GOAL_ROUNDS, whole(rounds));
    }
}

/// The result of a verification.
pub(crate) fn told(verdict: &GoalVerdict, sieve: &Sieve) -> SpanEvent {
    let mut attributes = vec![
        KeyValue::new(names::GOAL_FINDING, word(&verdict.finding)),
        KeyValue::new(names::GOAL_TRIGGER, names::word(&verdict.trigger)),
        KeyValue::new(names::GOAL_GENERATION, i64::from(verdict.generation)),
    ];
    let confidence = confidence(&verdict.finding);
    attributes
        .extend(confidence.map(|confidence| KeyValue::new(names::GOAL_CONFIDENCE, confidence.fraction())));
    let reasoning = match &verdict.finding {
        GoalFinding::Achieved { reasoning, .. } | GoalFinding::NotAchieved { reasoning, .. } => reasoning,
        GoalFinding::Unverified { why } => why,
    };
    attributes.extend(sieve.text(reasoning).map(|reasoning| KeyValue::new(names::GOAL_REASONING, reasoning)));
    (VERDICT, attributes)
}

/// The finding in one word, of a fixed set.
pub(crate) const fn word(finding: &GoalFinding) -> &'static str {
    match finding {
        GoalFinding::Achieved { .. } => ACHIEVED,
        GoalFinding::NotAchieved { .. } => "not_achieved",
        GoalFinding::Unverified { .. } => "unverified",
    }
}

const fn confidence(finding: &GoalFinding) -> Option<Confidence> {
    match finding {
        GoalFinding::Achieved { confidence, .. } => Some(*confidence),
        GoalFinding::NotAchieved { confidence, .. } => *confidence,
        GoalFinding::Unverified { .. } => None,
    }
}

/// The kind of failure that left a call without a verdict.
pub(crate) fn error(error: &SupervisorError) -> String {
    match error {
        SupervisorError::Llm { class, .. } => names::word(class),
        SupervisorError::Timeout(_) => "timed_out".to_owned(),
        SupervisorError::Parse(_) => "no_verdict".to_owned(),
        SupervisorError::RateLimited { .. } => names::word(&provost_event::ErrorClass::RateLimited),
    }
}
