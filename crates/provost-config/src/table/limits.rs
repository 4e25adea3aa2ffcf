//! `[limits]`.

use super::{COUNT_MAX, small};
use crate::Settings;
use crate::declare::{Kind, Setting, SettingDefault};

/// When an agent is told that it makes no progress, or is suspended.
pub(super) const LIMITS: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Time(|s, ms| s.limits.model_patience_ms = ms),
        default: SettingDefault::Is(r#""15m""#),
        example: r#""1h""#,
        words: "How long a model that gives no answer is retried; then the next of agent.fallback_models is \
                called, and after the last the run is suspended.",
        ..limit("model_patience")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.outage_max_ms = ms),
        default: SettingDefault::Is(r#""8h""#),
        example: r#""2h""#,
        words: "How long a suspended run without a terminal waits for its provider, and retries every 5 minutes or \
                when the provider says; then it exits with status 4. At a terminal it exits at once.",
        ..limit("outage_max")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.keep_running_max_ms = ms),
        default: SettingDefault::Is(r#""24h""#),
        example: r#""8h""#,
        words: "Maximum time of a service: a command that an agent keeps running after its run, which needs the \
                permission keep_running. Counted while the machine is awake.",
        ..limit("keep_running_max")
    },
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |s, n| s.limits.empty_answers_max = small(n) },
        default: SettingDefault::Is("2"),
        example: "2",
        words: "Times in a row that an answer is requested again when it is empty; then the run is suspended.",
        ..limit("empty_answers")
    },
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |s, n| s.limits.continuations_max = small(n) },
        default: SettingDefault::Is("3"),
        example: "3",
        words: "Times in a row that an answer cut off at its cap is continued; then the run is suspended.",
        ..limit("continuations")
    },
    Setting {
        kind: Kind::Count { min: 2, max: COUNT_MAX, put: |s, n| s.limits.repeated_call_notice_at = small(n) },
        default: SettingDefault::Is("3"),
        example: "3",
        words: "Turns in a row with the same call and result after which the model is told. Reads of a terminal and commands that sleep don't count.",
        ..limit("repeated_call_notice")
    },
    Setting {
        kind: Kind::Count { min: 2, max: COUNT_MAX, put: |s, n| s.limits.repeated_call_max = small(n) },
        default: SettingDefault::Is("10"),
        example: "10",
        words: "Turns in a row with the same call and result after which the run is suspended. Reads of a terminal and commands that sleep don't count.",
        ..limit("repeated_call")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.failed_turns_notice_at = small(n) },
        default: SettingDefault::Is("5"),
        example: "5",
        words: "Turns in a row whose every call was rejected, denied or failed as a tool, after which the model is told. The exit \
                status of a command is output, not a failure.",
        ..limit("failed_turns_notice")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.failed_turns_max = small(n) },
        default: SettingDefault::Is("12"),
        example: "12",
        words: "Turns in a row whose every call was rejected, denied or failed as a tool, after which the run is suspended.",
        ..limit("failed_turns")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.interruptions_max = small(n) },
        default: SettingDefault::Is("3"),
        example: "3",
        words: "Interruptions of one turn (a crash, a power failure) after which the run is suspended.",
        ..limit("interruptions")
    },
    Setting {
        kind: Kind::Count { min: 1, max: COUNT_MAX, put: |s, n| s.limits.stop_blocks_max = small(n) },
        default: SettingDefault::Is("8"),
        example: "8",
        words: "Times in all that stop hooks may send an agent back; then the run is suspended as blocked.",
        ..limit("stop_blocks")
    },
];

const fn limit(name: &'static str) -> Setting<Settings> {
    Setting::declared("limits", name)
}
