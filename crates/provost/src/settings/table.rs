//! All settings of this version. Each is declared here, once.

use provost_event::{Budget, Effort, Limits};

use super::declare::{From, Kind, Otherwise, Setting};
use super::{Named, Settings, StopHook};

/// The tables in the order in which people read them, each with a sentence.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    ("agent", "Who works."),
    ("budget", "What a run may spend at most, over all its interruptions and resumes. At a limit it rests."),
    ("limits", "When an agent is stopped or told that it gets nowhere."),
    ("store", "Where Provost keeps its runs."),
];

/// What the list of stop hooks is for.
pub(crate) const STOP_HOOKS_WORDS: &str = "Commands that must agree before an agent may stop, asked side by side. \
    Exit status 0 lets it stop; 2 sends it back to work, with what the command printed as the reason; 3 ends the \
    run. They run in the workspace with what they need to know as JSON on standard input. The hooks of all files \
    count.";

const TURNS_MAX: u64 = 1_000_000;
const COUNT_MAX: u64 = 1_000;
/// An hour; a stop hook is waited for.
const HOOK_SECS_MAX: u64 = 3_600;

/// The settings, section by section.
pub(crate) const SETTINGS: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Line(|s, model| s.model = model),
        otherwise: Otherwise::Is(r#""anthropic/claude-sonnet-4-5""#),
        example: r#""anthropic/claude-sonnet-4-5""#,
        words: "The model: `provider/model` (`provost models` lists them); `script:FILE` for answers that stand in a \
                file; `record:FILE=MODEL` to keep a model's answers in a file, and `replay:FILE` to have them given \
                again. FILE is relative to the file that names it, or to the current folder.",
        flag: Some("--model"),
        ..agent("model")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |s, n| s.limits.turns_max = small(n) },
        otherwise: Otherwise::Is("40"),
        example: "40",
        words: "Turns an agent may take: model calls, each with the tool calls it asks for. When they are used up \
                it rests.",
        flag: Some("--max-turns"),
        ..agent("max_turns")
    },
    Setting {
        kind: Kind::Text(|s, text| s.instructions = text),
        otherwise: Otherwise::Is(r#""""#),
        example: r#""Write British English. Run `cargo test` before you say that something works.""#,
        words: "Your own words at the end of the system prompt.",
        ..agent("instructions")
    },
    Setting {
        kind: Kind::Count { min: 256, max: 1_000_000, put: |s, n| s.output_tokens_max = Some(small(n)) },
        otherwise: Otherwise::Unset("what the model allows"),
        example: "8192",
        words: "Tokens one answer may have.",
        ..agent("output_tokens_max")
    },
    Setting {
        kind: Kind::Choice {
            of: &["minimal", "low", "medium", "high"],
            put: |s, word| {
                s.effort = Some(match word {
                    "minimal" => Effort::Minimal,
                    "low" => Effort::Low,
                    "high" => Effort::High,
                    _ => Effort::Medium,
                });
            },
        },
        otherwise: Otherwise::Unset("as its provider has it"),
        example: r#""medium""#,
        words: "How much the model thinks before it answers.",
        ..agent("effort")
    },
    Setting {
        kind: Kind::Count { min: 1, max: u64::MAX, put: |s, n| s.budget.tokens = Some(n) },
        otherwise: Otherwise::Unset("no limit"),
        example: "2_000_000",
        words: "Tokens of all kinds.",
        flag: Some("--tokens"),
        ..budget("tokens")
    },
    Setting {
        kind: Kind::Money(|s, money| s.budget.money = Some(money)),
        otherwise: Otherwise::Unset("no limit"),
        example: "5.00",
        words: "Money in US dollars, with at most six decimals. Needs a model whose price is known.",
        flag: Some("--usd"),
        ..budget("usd")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.allow_unpriced = truth),
        otherwise: Otherwise::Is("false"),
        example: "true",
        words: "Lets a model whose price isn't known work although money is limited: the limit doesn't bind it then.",
        flag: Some("--allow-unpriced"),
        ..budget("allow_unpriced")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.budget.wall_time_ms = Some(ms)),
        otherwise: Otherwise::Unset("no limit"),
        example: r#""2h""#,
        words: "Time worked on it; time between interruption and resume doesn't count.",
        flag: Some("--wall-time"),
        ..budget("wall_time")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.attempts_max = small(n) },
        otherwise: Otherwise::Is("4"),
        example: "4",
        words: "Attempts at one model call, the first included; then the run fails.",
        ..limit("model_attempts")
    },
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |s, n| s.limits.empty_answers_max = small(n) },
        otherwise: Otherwise::Is("2"),
        example: "2",
        words: "Times in a row that an empty answer is asked for again; then the run fails.",
        ..limit("empty_answers")
    },
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |s, n| s.limits.continuations_max = small(n) },
        otherwise: Otherwise::Is("3"),
        example: "3",
        words: "Times in a row that an answer cut off at its cap is continued; then what there is counts.",
        ..limit("continuations")
    },
    Setting {
        kind: Kind::Count { min: 2, max: COUNT_MAX, put: |s, n| s.limits.circle_notice_at = small(n) },
        otherwise: Otherwise::Is("3"),
        example: "3",
        words: "The same call with the same result so many times in a row: the model is told.",
        ..limit("circle_notice")
    },
    Setting {
        kind: Kind::Count { min: 2, max: COUNT_MAX, put: |s, n| s.limits.circle_pause_at = small(n) },
        otherwise: Otherwise::Is("5"),
        example: "5",
        words: "The same call with the same result so many times in a row: the run pauses.",
        ..limit("circle_pause")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.failures_max = small(n) },
        otherwise: Otherwise::Is("8"),
        example: "8",
        words: "So many failed tool calls in a row: the run pauses.",
        ..limit("tool_failures")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.interruptions_max = small(n) },
        otherwise: Otherwise::Is("3"),
        example: "3",
        words: "So many interruptions of one turn (a crash, a power cut): the run pauses.",
        ..limit("interruptions")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.stop_blocks_max = small(n) },
        otherwise: Otherwise::Is("8"),
        example: "8",
        words: "Times in all that stop hooks may send an agent back; then the run rests as blocked.",
        ..limit("stop_blocks")
    },
    Setting {
        kind: Kind::Folder(|s, path| s.state_dir = Some(path)),
        otherwise: Otherwise::Unset("`provost` in the platform's folder for state"),
        example: r#""/var/lib/provost""#,
        words: "The folder for the runs' logs. A project's file may not set it.",
        variables: &["PROVOST_STATE_DIR"],
        from: From::User,
        ..Setting::declared("store", "dir")
    },
];

/// The fields of a `[[stop_hooks]]`.
pub(crate) const STOP_HOOK: &[Setting<StopHook>] = &[
    Setting {
        kind: Kind::Line(|hook, name| hook.name = name),
        otherwise: Otherwise::Required,
        example: r#""lint-check""#,
        words: "Its name, unique among all stop hooks.",
        ..field("name")
    },
    Setting {
        kind: Kind::Text(|hook, command| hook.command = command),
        otherwise: Otherwise::Required,
        example: r#""cargo clippy -- -D warnings || exit 2""#,
        words: "The command, for `sh -c`.",
        ..field("command")
    },
    Setting {
        kind: Kind::Count { min: 1, max: HOOK_SECS_MAX, put: |hook, n| hook.timeout_secs = n },
        otherwise: Otherwise::Is("30"),
        example: "60",
        words: "Seconds it may take; a hook that takes longer is reported and doesn't hold the agent back.",
        ..field("timeout_secs")
    },
];

const fn agent(name: &'static str) -> Setting<Settings> {
    Setting::declared("agent", name)
}

const fn budget(name: &'static str) -> Setting<Settings> {
    Setting::declared("budget", name)
}

const fn limit(name: &'static str) -> Setting<Settings> {
    Setting::declared("limits", name)
}

const fn field(name: &'static str) -> Setting<StopHook> {
    Setting::declared("", name)
}

/// For numbers that their bounds keep small.
fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Settings {
    /// Settings before anything is set, the defaults included.
    pub(super) fn blank() -> Self {
        Self {
            model: String::new(),
            instructions: String::new(),
            output_tokens_max: None,
            limits: Limits::default(),
            budget: Budget::default(),
            effort: None,
            allow_unpriced: false,
            named: Named::default(),
            state_dir: None,
            stop_hooks: Vec::new(),
        }
    }
}
