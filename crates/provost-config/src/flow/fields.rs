//! The fields of a step, as its file may have them.

use provost_event::Budget;

use super::{StepSettings, Then};
use crate::declare::{Kind, Setting, SettingDefault};
use crate::errors::Source;

/// Characters of a step's name.
const NAME_CHARS_MAX: usize = 64;
/// Times that a step may be tried again.
const RETRIES_MAX: u64 = 100;

impl StepSettings {
    /// A step that begins at `source`, with nothing of it read.
    pub(super) fn at(source: Source) -> Self {
        Self {
            name: String::new(),
            needs: Vec::new(),
            agent: None,
            goal: String::new(),
            stop_hooks: Vec::new(),
            retry: None,
            then: Then::default(),
            priority: None,
            budget: Budget::default(),
            source,
            places: std::collections::BTreeMap::new(),
        }
    }
}

/// The fields of a `[[flow.steps]]` but for its lists.
pub(super) const STEP: &[Setting<StepSettings>] = &[
    Setting {
        kind: Kind::Checked(|step, name| {
            step.name = step_name(name)?;
            Ok(())
        }),
        default: SettingDefault::Required,
        example: r#""plan""#,
        words: "Its name, unique in the workflow.",
        ..Setting::declared("", "name")
    },
    Setting {
        kind: Kind::Line(|step, agent| step.agent = Some(agent)),
        default: SettingDefault::Unset("one like the run's own"),
        example: r#""reviewer""#,
        words: "The configured agent that does it.",
        ..Setting::declared("", "agent")
    },
    Setting {
        kind: Kind::Text(|step, goal| step.goal = goal.trim().to_owned()),
        default: SettingDefault::Required,
        example: r#""Write down in PLAN.md what is to be done.""#,
        words: "Its goal.",
        ..Setting::declared("", "goal")
    },
    Setting {
        kind: Kind::Count {
            min: 0,
            max: RETRIES_MAX,
            put: |step, n| step.retry = Some(u32::try_from(n).unwrap_or(u32::MAX)),
        },
        default: SettingDefault::Unset(
            "retry.attempts for agents that fail, else 0; 3 for both with on_failure = \"retry\"",
        ),
        example: "2",
        words: "Times it is tried again: an agent that has failed is restarted where it stopped, and where its work doesn't \
                pass, another agent begins anew.",
        ..Setting::declared("", "retry")
    },
    Setting {
        kind: Kind::Choice {
            of: &["abort", "skip", "retry", "ask"],
            put: |step, word| {
                step.then = match word {
                    "skip" => Then::Skip,
                    "retry" => Then::Retry,
                    "ask" => Then::Ask,
                    _ => Then::Abort,
                };
            },
        },
        default: SettingDefault::Is(r#""abort""#),
        example: r#""ask""#,
        words: "What happens to the workflow when the last attempt has failed.",
        ..Setting::declared("", "on_failure")
    },
    Setting {
        kind: Kind::Choice {
            of: &["background", "low", "normal", "high", "critical"],
            put: |step, word| step.priority = word.parse().ok(),
        },
        default: SettingDefault::Unset("that of its agent"),
        example: r#""high""#,
        words: "How urgent it is.",
        ..Setting::declared("", "priority")
    },
    Setting {
        kind: Kind::Count { min: 1, max: u64::MAX, put: |step, n| step.budget.tokens = Some(n) },
        default: SettingDefault::Unset("no limit but the run's"),
        example: "200_000",
        words: "Tokens that all attempts at it may take together.",
        ..Setting::declared("budget", "tokens")
    },
    Setting {
        kind: Kind::Money(|step, money| step.budget.money = Some(money)),
        default: SettingDefault::Unset("no limit but the run's"),
        example: "1.50",
        words: "Money that they may cost.",
        ..Setting::declared("budget", "usd")
    },
    Setting {
        kind: Kind::Time(|step, ms| step.budget.wall_time_ms = Some(ms)),
        default: SettingDefault::Unset("no limit but the run's"),
        example: r#""20m""#,
        words: "Time that they may work.",
        ..Setting::declared("budget", "wall_time")
    },
];

/// A name that can stand in a list and between quotes.
fn step_name(name: String) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    if !name.chars().all(fits) {
        return Err(format!("must have only letters, digits, spaces, _, - and . (is `{name}`)"));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(format!("must have at most {NAME_CHARS_MAX} characters"));
    }
    Ok(name)
}
