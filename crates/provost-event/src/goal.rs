//! Goals: what must be confirmed before an agent counts as done, and what the judges said of it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AsideCall, ErrorClass, ModelPolicy};

/// How sure a judge is, from 0 to 1 in millionths; as JSON it is the fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confidence(u32);

impl Confidence {
    /// Wholly sure.
    pub const FULL: Self = Self(Self::UNIT);
    const UNIT: u32 = 1_000_000;

    /// So many hundredths, at most 100.
    #[must_use]
    pub const fn hundredths(hundredths: u8) -> Self {
        let hundredths = if hundredths > 100 { 100 } else { hundredths };
        Self(hundredths as u32 * (Self::UNIT / 100))
    }

    /// `fraction` kept within 0 and 1; what is no number is 0.
    #[must_use]
    pub fn of(fraction: f64) -> Self {
        if fraction.is_nan() {
            return Self(0);
        }
        let millionths = (fraction.clamp(0.0, 1.0) * f64::from(Self::UNIT)).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within 0 and a million"
        )]
        Self(millionths as u32)
    }

    /// As a fraction of 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::UNIT)
    }
}

/// Two places, cut and not rounded: what is shown is never more than what counts.
impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0 / (Self::UNIT / 100);
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.fraction())
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::of)
    }
}

/// What an agent's work must come to, and who judges whether it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalPolicy {
    /// What must be true, in words that a judge can check against the evidence.
    pub condition: String,
    /// The models that judge, each with the cap on its verdicts; at least one.
    pub judges: Vec<ModelPolicy>,
    /// So many of them must find it achieved; 1 to as many as there are. They are asked one after the other, and no more
    /// of them than it takes to know.
    pub agree: u32,
    /// What a judge's confidence must come to. Default 0.7.
    pub threshold: Confidence,
    /// Claims found wrong, at which the agent rests as blocked. Default 10.
    pub rounds_max: u32,
    /// Failures of the judges in a row, at which the agent pauses. Default 3.
    pub failures_max: u32,
    /// Turns in a row without measurable progress, at which the agent pauses. Default 5.
    pub stuck_turns: u32,
    /// Also verify after so many turns each; only at claims and at limits if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_every: Option<u32>,
    /// How long a judge may take for one verdict, in milliseconds. Default 60 s.
    pub timeout_ms: u64,
    /// Estimated tokens of evidence that a judge is shown, at most. Default 8,000.
    pub evidence_tokens_max: u32,
    /// Hundredths of each limit of the run's tokens and money that judges may take, all of them together. Default 20.
    pub budget_percent: u8,
    /// What it means that a stop hook can't be asked.
    #[serde(default)]
    pub stop_hook_errors: OnHookError,
}

impl GoalPolicy {
    /// A goal that `judge` judges, with the defaults of everything else.
    #[must_use]
    pub fn new(condition: impl Into<String>, judge: ModelPolicy) -> Self {
        Self {
            condition: condition.into(),
            judges: vec![judge],
            agree: 1,
            threshold: Confidence::hundredths(70),
            rounds_max: 10,
            failures_max: 3,
            stuck_turns: 5,
            verify_every: None,
            timeout_ms: 60_000,
            evidence_tokens_max: 8_000,
            budget_percent: 20,
            stop_hook_errors: OnHookError::Block,
        }
    }
}

/// What it means that a stop hook gives no answer: it fails with a status that is none, can't be run, or takes too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHookError {
    /// The agent may not stop. One that can't be run or takes too long sends the agent back once, and suspends it as blocked the
    /// second time in a row.
    #[default]
    Block,
    /// It stands against nothing, and the outcome says that it was ignored.
    Ignore,
}

impl OnHookError {
    /// Whether a hook that gives no answer stands in the way.
    #[must_use]
    pub const fn blocks(&self) -> bool {
        matches!(self, Self::Block)
    }
}

/// Why a goal is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalTrigger {
    /// The agent says that it is done.
    Claim,
    /// So many turns have gone by.
    Interval,
    /// A limit ends the work.
    Limit,
}

/// What a judge says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorVerdict {
    /// Whether the goal is reached.
    pub achieved: bool,
    /// Why it thinks so; never empty.
    pub reasoning: String,
    /// How sure it is.
    #[serde(default)]
    pub confidence: Confidence,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorError {
    /// The model call failed.
    Llm {
        /// How.
        class: ErrorClass,
        /// In whose words.
        message: String,
    },
    /// No answer within so many milliseconds.
    Timeout(u64),
    /// The answer is no verdict; this is its beginning.
    Parse(String),
    /// The provider asks to come back later.
    RateLimited {
        /// After how long, in milliseconds, if it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl SupervisorError {
    /// Whether the judge's provider couldn't be reached: it says nothing of the goal.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Llm { class, .. } => class.may_retry(),
            Self::Timeout(_) | Self::RateLimited { .. } => true,
            Self::Parse(_) => false,
        }
    }
}

impl fmt::Display for SupervisorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Llm { class, message } => write!(f, "{}: {message}", class.words()),
            Self::Timeout(ms) => write!(f, "no verdict within {} s", ms.div_ceil(1_000)),
            Self::Parse(raw) if raw.trim().is_empty() => f.write_str("its answer is empty"),
            Self::Parse(raw) => write!(f, "its answer is no verdict: {raw}"),
            Self::RateLimited { retry_after_ms: Some(ms) } => {
                write!(f, "rate limited, for another {} s", ms.div_ceil(1_000))
            }
            Self::RateLimited { retry_after_ms: None } => f.write_str("rate limited"),
        }
    }
}

impl std::error::Error for SupervisorError {}

/// A goal is being verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalCheckStarted {
    /// Why.
    pub trigger: GoalTrigger,
    /// The turn that it is about.
    pub turn: u32,
    /// The goal's generation from here on: whatever changes how the goal stands counts it up, and a verdict for an older
    /// one means nothing.
    pub generation: u32,
}

/// What one judge answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeAnswer {
    /// A verdict.
    Verdict(SupervisorVerdict),
    /// None.
    Failed(SupervisorError),
}

/// A judge was asked, and has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalJudged {
    /// The generation it was asked for.
    pub generation: u32,
    /// The judge, by the policy's name.
    pub judge: String,
    /// What it said.
    pub answer: JudgeAnswer,
    /// The model call.
    pub call: AsideCall,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A fingerprint of the workspace at that moment; equal when nothing changed, empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The wait before a judge is asked again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether that comes too late: the goal has been cleared, paused or stopped since, and it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// What a verification came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalVerdict {
    /// Why it was made.
    pub trigger: GoalTrigger,
    /// The turn that it is about.
    pub turn: u32,
    /// The generation it was made for.
    pub generation: u32,
    /// What it found.
    pub finding: GoalFinding,
}

/// Whether a goal is reached, as far as the judges can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalFinding {
    /// It is.
    Achieved {
        /// The least sure of those who say so.
        confidence: Confidence,
        /// Their reasons.
        reasoning: String,
    },
    /// It isn't, or nobody is sure enough.
    NotAchieved {
        /// The reasons.
        reasoning: String,
        /// What is left to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<String>,
        /// The surest of those who say so; absent where each would have it achieved, but isn't sure enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<Confidence>,
    },
    /// Nobody knows.
    Unverified {
        /// Why.
        why: String,
    },
}

/// The agent no longer has a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalCleared {
    /// Who wanted that.
    pub by: String,
}

/// How a goal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalState {
    /// The agent works towards it.
    Running,
    /// It is being verified whether it is reached.
    Verifying,
    /// It is reached, and that was confirmed.
    Achieved,
    /// The agent made no progress, and rests.
    Stuck,
    /// Too many claims were wrong, and the agent rests.
    Blocked,
    /// Somebody cleared or cancelled it, or a hook ended the work.
    Aborted,
    /// The agent couldn't go on.
    Failed,
    /// The agent rests for another reason.
    Paused,
}

impl GoalState {
    /// One word for tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Verifying => "verifying",
            Self::Achieved => "achieved",
            Self::Stuck => "stuck",
            Self::Blocked => "blocked",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Paused => "paused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Confidence;

    #[test]
    fn confidence_stays_within_nothing_and_certainty() {
        for (given, shown) in [
            (0.7, "0.70"),
            (-3.0, "0.00"),
            (7.0, "1.00"),
            (f64::NAN, "0.00"),
            (f64::INFINITY, "1.00"),
            (0.699_9, "0.69"),
        ] {
            assert_eq!(Confidence::of(given).to_string(), shown, "{given}");
        }
        assert_eq!(Confidence::of(0.7), Confidence::hundredths(70));
        assert!(Confidence::of(0.699_999) < Confidence::hundredths(70));
        let json = serde_json::to_string(&Confidence::hundredths(85)).expect("a number");
        assert_eq!(json, "0.85");
        assert_eq!(
            serde_json::from_str::<Confidence>(&json).expect("it reads back"),
            Confidence::hundredths(85)
        );
    }
}
