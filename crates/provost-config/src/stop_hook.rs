//! `[[stop_hooks]]`: commands that must agree before an agent may stop.

use provost_event::{OnHookError, StopHookPolicy};

use super::Settings;
use super::declare::{Kind, Setting, SettingDefault};
use super::errors::Source;
use super::item::{Item, Objection};

/// What the list of stop hooks is for.
pub(crate) const STOP_HOOKS_WORDS: &str = "Commands that must agree before an agent may stop, run in parallel. \
    Exit status 0 lets it stop; 3 ends the run; every other status sends it back to work, with what the command \
    printed as the reason. A check that can't be run (126, 127, killed by a signal) or takes too long sends it \
    back once and suspends the run as blocked the second time. They run in the workspace and get JSON on standard \
    input. The hooks of all files apply.";

/// One hour; a hook is awaited.
pub(crate) const HOOK_SECS_MAX: u64 = 3_600;

/// A stop hook and where it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopHook {
    /// Its name.
    pub name: String,
    /// Its command.
    pub command: String,
    /// How long it may take.
    pub timeout_secs: u64,
    /// Whether that was given, and isn't the default.
    pub(crate) is_timeout_given: bool,
    /// What it means that it gives no answer.
    pub(crate) on_error: OnHookError,
    /// Where it begins.
    pub source: Source,
    /// Where its timeout was given.
    pub(crate) timeout_source: Source,
}

impl StopHook {
    /// The hook as a run's policy has it. A run that may take less time than the default timeout shortens that.
    pub fn policy(&self, settings: &Settings) -> StopHookPolicy {
        let given_ms = self.timeout_secs.saturating_mul(1_000);
        let limit_ms = settings.budget.wall_time_ms.filter(|_| !self.is_timeout_given);
        StopHookPolicy {
            name: self.name.clone(),
            command: Some(self.command.clone()),
            timeout_ms: limit_ms.map_or(given_ms, |limit_ms| given_ms.min(limit_ms)),
            on_error: self.on_error,
        }
    }
}

impl Item for StopHook {
    const LIST: &'static str = "stop_hooks";
    const ONE: &'static str = "a stop hook";
    const LEAST: &'static str = "name and command";
    const FIELDS: &'static [Setting<Self>] = STOP_HOOK;

    fn at(source: Source) -> Self {
        let mut hook = Self {
            name: String::new(),
            command: String::new(),
            timeout_secs: 0,
            is_timeout_given: false,
            on_error: OnHookError::Block,
            timeout_source: source.clone(),
            source,
        };
        for field in STOP_HOOK {
            field.take_default(&mut hook);
        }
        hook
    }

    fn note(&mut self, field: &'static str, source: Source) {
        if field == "timeout_secs" {
            self.timeout_source = source;
            self.is_timeout_given = true;
        }
    }

    fn objections(&self) -> Vec<Objection> {
        Vec::new()
    }

    fn put(self, settings: &mut Settings) {
        settings.stop_hooks.push(self);
    }
}

/// The fields of a `[[stop_hooks]]`.
pub(crate) const STOP_HOOK: &[Setting<StopHook>] = &[
    Setting {
        kind: Kind::Line(|hook, name| hook.name = name),
        default: SettingDefault::Required,
        example: r#""lint-check""#,
        words: "Its name, unique among all stop hooks.",
        ..Setting::declared("", "name")
    },
    Setting {
        kind: Kind::Words(|hook, command| hook.command = command),
        default: SettingDefault::Required,
        example: r#""cargo clippy -- -D warnings""#,
        words: "The command, for `sh -c`.",
        ..Setting::declared("", "command")
    },
    Setting {
        kind: Kind::Count { min: 1, max: HOOK_SECS_MAX, put: |hook, n| hook.timeout_secs = n },
        default: SettingDefault::Is("600"),
        example: "60",
        words: "Maximum seconds; a hook that takes longer is ended. Where `budget.wall_time` is shorter than the \
                default, so is this.",
        ..Setting::declared("", "timeout_secs")
    },
    Setting {
        kind: Kind::Choice {
            of: &["block", "ignore"],
            put: |hook, word| {
                hook.on_error = if word == "ignore" { OnHookError::Ignore } else { OnHookError::Block };
            },
        },
        default: SettingDefault::Is(r#""block""#),
        example: r#""ignore""#,
        words: "What happens if it exits with a status that is no answer, can't be run, or takes too long. \
                `block`: the agent may not stop. `ignore`: only status 2 or 3 blocks the agent, and the outcome \
                says that it was ignored. Under a goal nothing is ignored.",
        ..Setting::declared("", "on_error")
    },
];
