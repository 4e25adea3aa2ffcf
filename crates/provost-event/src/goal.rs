//! Goals: what must be confirmed before an agent counts as done, and the judges' verdicts.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::skip::is_default;
use crate::{AsideCall, ErrorClass, ModelPolicy, TroubleCause};

/// A judge's confidence, from 0 to 1 in millionths; a fraction in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confidence(u32);

impl Confidence {
    /// Full confidence.
    pub const FULL: Self = Self(Self::UNIT);
    const UNIT: u32 = 1_000_000;

    /// A percentage, at most 100.
    #[must_use]
    pub const fn hundredths(hundredths: u8) -> Self {
        let hundredths = if hundredths > 100 { 100 } else { hundredths };
        Self(hundredths as u32 * (Self::UNIT / 100))
    }

    /// `fraction` clamped to 0 and 1; NaN is 0.
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

    /// A JSON number, as exact as it is written, in millionths rounded down; `None` if it isn't from 0 to 1.
    #[must_use]
    pub fn of_decimal(number: &str) -> Option<Self> {
        const MILLIONTHS: i64 = 6;
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let digits = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let bytes = || whole.bytes().chain(fraction.bytes());
        if whole.is_empty() || !bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let Some(first) = bytes().position(|byte| byte != b'0') else { return Some(Self(0)) };
        if mantissa.starts_with('-') {
            return None;
        }
        let far = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
        let exponent =
            exponent.parse::<i64>().map_or(far, |exponent| exponent.clamp(i64::MIN / 2, i64::MAX / 2));
        // The number of digits before the point, once the zeros in front are gone.
        let before = i64::try_from(whole.len()).ok()? - i64::try_from(first).ok()? + exponent;
        let mut significant = bytes().skip(first);
        if before > 0 {
            let is_one =
                before == 1 && significant.next() == Some(b'1') && significant.all(|byte| byte == b'0');
            return is_one.then_some(Self::FULL);
        }
        let kept = usize::try_from(MILLIONTHS + before.max(-MILLIONTHS)).ok()?;
        let digits = significant.chain(std::iter::repeat(b'0')).take(kept);
        Some(Self(digits.fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'))))
    }

    /// As a fraction of 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::UNIT)
    }
}

/// Two decimals, truncated: the shown value is never above the actual one.
impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0 / (Self::UNIT / 100);
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

impl JsonSchema for Confidence {
    fn schema_name() -> Cow<'static, str> {
        "Confidence".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "description": "A confidence." })
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

/// A goal and its judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalPolicy {
    /// What must be true, phrased so that a judge can check it against the evidence.
    pub condition: String,
    /// The models that judge, each with the cap on its verdicts; at least one.
    pub judges: Vec<ModelPolicy>,
    /// Quorum: the judges that must find it achieved; from 1 to the number of judges. They are called one after
    /// the other until the result is certain.
    pub agree: u32,
    /// Minimum confidence of a verdict. Default 0.7.
    pub threshold: Confidence,
    /// Rejected claims at which the agent is suspended as blocked. Default 10.
    pub rounds_max: u32,
    /// Consecutive failures of the judges at which the agent pauses. Default 3.
    pub failures_max: u32,
    /// Consecutive turns without measurable progress at which the agent pauses. Default 5.
    pub stuck_turns: u32,
    /// Also verify every this many turns; only at claims and at limits if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_every: Option<u32>,
    /// Maximum time of one verdict, in milliseconds. Default 60 s.
    pub timeout_ms: u64,
    /// Maximum estimated tokens of the evidence for a judge. Default 8,000.
    pub evidence_tokens_max: u32,
    /// Percentage of the run's token limit and money limit that all judges together may use. Default 20.
    pub budget_percent: u8,
    /// What happens when a stop hook gives no answer.
    #[serde(default)]
    pub stop_hook_errors: OnHookError,
}

impl GoalPolicy {
    /// A goal with one judge, and defaults for the rest.
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

/// What happens when a stop hook gives no answer: an invalid exit status, a failure to run, or a timeout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHookError {
    /// The agent may not stop. A hook that can't be run or times out sends the agent back once, and suspends it as
    /// blocked the second time in a row.
    #[default]
    Block,
    /// The hook is ignored, and the outcome says so.
    Ignore,
}

impl OnHookError {
    /// Whether a hook that gives no answer blocks the stop.
    #[must_use]
    pub const fn blocks(&self) -> bool {
        matches!(self, Self::Block)
    }
}

/// Why a goal is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalTrigger {
    /// The agent claims that it is done.
    Claim,
    /// The interval of turns has passed.
    Interval,
    /// A limit ends the work.
    Limit,
}

/// A judge's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SupervisorVerdict {
    /// Whether the goal is reached.
    pub achieved: bool,
    /// Its reasons; never empty.
    pub reasoning: String,
    /// Its confidence.
    #[serde(default)]
    pub confidence: Confidence,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorError {
    /// The model call failed.
    Llm {
        /// The class of failure.
        class: ErrorClass,
        /// The error message.
        message: String,
        /// Where to look, such as the variable that holds the key; empty if unknown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        hint: String,
    },
    /// No answer within this many milliseconds.
    Timeout(u64),
    /// The answer is no verdict; this is its beginning.
    Parse(String),
    /// The provider limits the request rate.
    RateLimited {
        /// The wait that it asks for, in milliseconds, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl SupervisorError {
    /// Whether the judge's provider was unavailable: that says nothing about the goal.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Llm { class, .. } => class.may_retry(),
            Self::Timeout(_) | Self::RateLimited { .. } => true,
            Self::Parse(_) => false,
        }
    }

    /// What a person must do before the judge can be asked again, where no wait helps.
    #[must_use]
    pub const fn remedy(&self) -> Option<&'static str> {
        let Self::Llm { class, .. } = self else { return None };
        match class.cause() {
            TroubleCause::Key => Some("set a valid key, then resume"),
            TroubleCause::Quota => Some("add credit or wait until it is renewed, then resume"),
            TroubleCause::Address => Some("set base_url to the address that answers, then resume"),
            TroubleCause::ModelUnknown => {
                Some("name another judge in the settings, then resume --with-settings")
            }
            TroubleCause::Provider | TroubleCause::Request | TroubleCause::Answer => None,
        }
    }
}

impl fmt::Display for SupervisorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Llm { class, message, hint } if hint.is_empty() => {
                write!(f, "{}: {message}", class.words())
            }
            Self::Llm { class, message, hint } => write!(f, "{}: {message} ({hint})", class.words()),
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalCheckStarted {
    /// Why.
    pub trigger: GoalTrigger,
    /// The turn that is verified.
    pub turn: u32,
    /// The goal's generation from here on: every change to the goal's state increments it, and a verdict for an
    /// older generation is stale.
    pub generation: u32,
}

/// What one judge answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeAnswer {
    /// A verdict.
    Verdict(SupervisorVerdict),
    /// No verdict.
    Failed(SupervisorError),
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalJudged {
    /// The generation that was verified.
    pub generation: u32,
    /// The judge, by the policy's name.
    pub judge: String,
    /// Its answer.
    pub answer: JudgeAnswer,
    /// The model call.
    pub call: AsideCall,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A fingerprint of the workspace at that time; equal if nothing changed, empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The wait before the judge is called again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether the answer is stale: the goal has been cleared, paused or stopped since, and the answer has no
    /// effect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stale: bool,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalVerdict {
    /// Why it was made.
    pub trigger: GoalTrigger,
    /// The turn that was verified.
    pub turn: u32,
    /// The generation that was verified.
    pub generation: u32,
    /// The finding.
    pub finding: GoalFinding,
}

/// Whether a goal is reached, by the judges' verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalFinding {
    /// It is.
    Achieved {
        /// The lowest confidence of the judges that agree.
        confidence: Confidence,
        /// Their reasons.
        reasoning: String,
    },
    /// It isn't, or no judge is confident enough.
    NotAchieved {
        /// The reasons.
        reasoning: String,
        /// What is left to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<String>,
        /// The highest confidence of the judges that reject it; absent if all found it achieved with too little
        /// confidence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<Confidence>,
    },
    /// It couldn't be verified.
    Unverified {
        /// Why.
        why: String,
    },
}

/// The agent no longer has a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalCleared {
    /// Who cleared it.
    pub by: String,
}

/// The state of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalState {
    /// The agent works towards it.
    Running,
    /// It is being verified.
    Verifying,
    /// It is reached, and a verification has confirmed it.
    Achieved,
    /// The agent made no progress, and is suspended.
    Stuck,
    /// Too many claims were rejected, and the agent is suspended.
    Blocked,
    /// It was cleared or cancelled, or a hook ended the work.
    Aborted,
    /// The agent has failed.
    Failed,
    /// The agent is suspended for another reason.
    Paused,
}

impl GoalState {
    /// One word, for tables.
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
