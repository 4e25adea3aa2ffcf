//! `[goal]`: what must be confirmed before an agent counts as done, and who judges that.

mod checks;

use provost_event::{Confidence, Effort};

use super::Settings;
use super::declare::{Kind, Setting, SettingDefault};
use super::table::{COUNT_MAX, EFFORTS, TURNS_MAX, effort, small};

pub(crate) use checks::check;

/// What the table is for.
pub(crate) const GOAL_WORDS: &str = "What must be confirmed before the agent counts as done. A judge is a model \
    that sees only the evidence, and has no tools: the calls and their results, the files that changed, the \
    results of stop hooks. It is a heuristic against claims that come too early, no security boundary. Without a \
    condition the judges serve sub-agents: those with a goal of their own, and those that get one by spawn_agent.";

/// Judges that can be named.
const JUDGES_MAX: u64 = 15;
/// The least useful amount of evidence.
pub const EVIDENCE_TOKENS_MIN: u32 = 500;

/// What is set of goals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalSettings {
    /// What must be true of the run's agent before it is done.
    pub condition: Option<String>,
    /// The models that judge, as they were written; empty for the agent's own.
    pub judges: Vec<String>,
    /// The field that named them.
    judges_field: &'static str,
    /// How many of them must agree.
    agree: Option<u32>,
    /// The least confidence of a judge that counts.
    pub threshold: Confidence,
    /// Rejected claims until the run is suspended.
    pub rounds_max: u32,
    /// Failures in a row until it is.
    pub failures_max: u32,
    /// Turns without progress until it is.
    pub stuck_turns: u32,
    /// Turns after which it is verified without a claim.
    pub verify_every: Option<u32>,
    /// Time for a verdict, in milliseconds.
    pub timeout_ms: u64,
    /// Tokens of evidence.
    pub evidence_tokens_max: u32,
    /// Tokens of a verdict, where they are set.
    pub verdict_tokens: Option<u32>,
    /// The judges' reasoning effort.
    pub judge_effort: Option<Effort>,
    /// Percentage of the run's budget that judges may take.
    pub budget_percent: u8,
}

impl GoalSettings {
    /// The cap on a verdict where none is set.
    pub const VERDICT_TOKENS: u32 = 2_048;

    /// The key that names the judges.
    pub fn judges_key(&self) -> String {
        format!("goal.{}", self.judges_field)
    }

    /// How many of `judges` must agree: a majority, unless it is set.
    pub fn agree_of(&self, judges: usize) -> u32 {
        let judges = u32::try_from(judges).unwrap_or(u32::MAX).max(1);
        self.agree.unwrap_or(judges / 2 + 1).min(judges)
    }
}

impl Default for GoalSettings {
    /// Before anything is set, the defaults included.
    fn default() -> Self {
        Self {
            condition: None,
            judges: Vec::new(),
            judges_field: "judge",
            agree: None,
            threshold: Confidence::default(),
            rounds_max: 0,
            failures_max: 0,
            stuck_turns: 0,
            verify_every: None,
            timeout_ms: 0,
            evidence_tokens_max: 0,
            verdict_tokens: None,
            judge_effort: None,
            budget_percent: 0,
        }
    }
}

/// The settings of `[goal]`.
pub(crate) const GOAL: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Words(|s, words| s.goal.condition = Some(words)),
        default: SettingDefault::Unset("an agent is done when it says so and stop hooks agree"),
        example: r#""cargo test passes and the README describes the new flag""#,
        words: "What must be true before the agent is done, so that it can be checked against what the agent did. \
                The agent gets it too.",
        flag: Some("--goal"),
        ..goal("condition")
    },
    Setting {
        kind: Kind::Line(|s, model| put_judges(s, "judge", vec![model])),
        default: SettingDefault::Unset("the agent's own model, unless goal.judges names others"),
        example: r#""openai/gpt-6.1-terra""#,
        words: "The model that judges, as in agent.model; better from another provider than the agent's. \
                goal.judges names several.",
        ..goal("judge")
    },
    Setting {
        kind: Kind::Names { max: JUDGES_MAX, put: |s, models| put_judges(s, "judges", models) },
        default: SettingDefault::Unset("the one of goal.judge"),
        example: r#"["openai/gpt-6.1-terra", "anthropic/claude-haiku-5-5"]"#,
        words: "Several judges instead of one. They are asked one after the other, until the quorum is reached or can't \
                be; each call is charged. A model that is named twice is asked twice. Of goal.judge and goal.judges, the \
                one of the last layer counts. In a variable they are separated by commas; the flag is given once for \
                each.",
        flag: Some("--judge"),
        ..goal("judges")
    },
    Setting {
        kind: Kind::Count { min: 1, max: JUDGES_MAX, put: |s, n| s.goal.agree = Some(small(n)) },
        default: SettingDefault::Unset("more than half of the judges"),
        example: "2",
        words: "The quorum: how many judges must find the goal reached.",
        ..goal("agree")
    },
    Setting {
        kind: Kind::Fraction(|s, fraction| s.goal.threshold = Confidence::of(fraction)),
        default: SettingDefault::Is("0.7"),
        example: "0.9",
        words: "The confidence that a judge must have, from 0 to 1; a verdict below it counts as not reached.",
        ..goal("threshold")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.goal.rounds_max = small(n) },
        default: SettingDefault::Is("10"),
        example: "10",
        words: "Rounds in which the agent says that it is done and the judges disagree, after which the run is suspended as blocked.",
        ..goal("max_rounds")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.goal.failures_max = small(n) },
        default: SettingDefault::Is("3"),
        example: "3",
        words: "Failures in a row to get a verdict from the judges, after which the run is suspended. It never \
                counts as done because of that.",
        ..goal("max_failures")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |s, n| s.goal.stuck_turns = small(n) },
        default: SettingDefault::Is("5"),
        example: "5",
        words: "Turns in a row without measurable progress (a file, another result of a check, a step \
                of the plan, a call that wasn't made before), after which the run is suspended.",
        ..goal("stuck_turns")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |s, n| s.goal.verify_every = Some(small(n)) },
        default: SettingDefault::Unset("only when the agent says it is done, and at limits"),
        example: "5",
        words: "Also verify at this interval of turns, so that a goal that is reached early ends the run early.",
        ..goal("verify_every")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.goal.timeout_ms = ms),
        default: SettingDefault::Is(r#""60s""#),
        example: r#""2m""#,
        words: "The time limit of a judge's verdict.",
        ..goal("timeout")
    },
    Setting {
        kind: Kind::Count {
            min: EVIDENCE_TOKENS_MIN as u64,
            max: 1_000_000,
            put: |s, n| s.goal.evidence_tokens_max = small(n),
        },
        default: SettingDefault::Is("8_000"),
        example: "20_000",
        words: "Tokens of evidence that a judge is shown, approximately; the newest comes first.",
        ..goal("evidence_tokens")
    },
    Setting {
        kind: Kind::Count { min: 256, max: 1_000_000, put: |s, n| s.goal.verdict_tokens = Some(small(n)) },
        default: SettingDefault::Unset(
            "2048, more where the judge reasons, or what it allows if that is less",
        ),
        example: "4096",
        words: "Tokens that a verdict may have, the judge's reasoning included.",
        ..goal("verdict_tokens")
    },
    Setting {
        kind: Kind::Choice { of: &EFFORTS, put: |s, word| s.goal.judge_effort = Some(effort(word)) },
        default: SettingDefault::Unset(
            "low for models that are known to reason, else as the provider has it",
        ),
        example: r#""medium""#,
        words: "The reasoning effort of judges.",
        ..goal("judge_effort")
    },
    Setting {
        kind: Kind::Count {
            min: 1,
            max: 100,
            put: |s, n| s.goal.budget_percent = u8::try_from(n).unwrap_or(100),
        },
        default: SettingDefault::Is("20"),
        example: "10",
        words: "Percentage of the run's limits of tokens and money that all judges together may use. A last \
                verdict is reserved, so that a run that reaches its budget is still verified.",
        ..goal("budget_percent")
    },
];

const fn goal(name: &'static str) -> Setting<Settings> {
    Setting::declared("goal", name)
}

/// The last layer that names judges names all of them.
fn put_judges(settings: &mut Settings, field: &'static str, models: Vec<String>) {
    settings.goal.judges = models;
    settings.goal.judges_field = field;
}
