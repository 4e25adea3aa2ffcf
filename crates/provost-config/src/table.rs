//! All settings of this version, each declared once; those with a page of their own are beside this one.

mod limits;
mod permissions;

use provost_event::Effort;

use super::Settings;
use super::declare::{From, Kind, Setting, SettingDefault};
use super::engine::{ENGINE, ENGINE_WORDS};
use super::exec::{EXEC, EXEC_WORDS, TERMINAL_WORDS};
use super::gateway::{GATEWAY, GATEWAY_WORDS};
use super::goal::{GOAL, GOAL_WORDS};
use super::hook::HookVariable;
use super::imported::{Import, ImportSource};
use super::notify::{NOTIFY, NOTIFY_WORDS};
use super::sandbox::{LIMITS_WORDS, SANDBOX, SANDBOX_WORDS};
use super::tools::{TOOLS, TOOLS_WORDS};
use limits::LIMITS;
use permissions::PERMISSIONS;

pub(crate) use permissions::permission;

/// The tables in the order of the documentation, each with a sentence.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    ("agent", "The agent of a run: its model and how it works."),
    (
        "budget",
        "What a run may spend at most, over all its interruptions and resumes. At a limit the agent gives a final \
         summary, and the run is suspended. The summary is within the limit too: the last part of each is kept for it.",
    ),
    (
        "spawn",
        "How many agents may work at the same time, and how deep they may nest. With a max_agents of 1 or a \
         max_depth of 0 there are no sub-agents, and no agent has a tool that starts one.",
    ),
    (
        "retry",
        "Restarts of failed agents: their program crashed, the model gave no usable answer, or their tool calls \
         were repeated or kept failing. Each continues in its own conversation, within the same limits. The first \
         agent of a run isn't restarted; `provost resume` does that.",
    ),
    ("goal", GOAL_WORDS),
    ("limits", "When an agent is told that it makes no progress, or is suspended."),
    (
        "permissions",
        "Which tool calls an agent may make: freely, after approval, or never. A pattern is a tool's name, alone \
         or with a pattern of the call in parentheses. Of those that match a call, deny takes precedence over ask, \
         and ask over allow. The lists of all files are merged.",
    ),
    ("tools", TOOLS_WORDS),
    ("sandbox", SANDBOX_WORDS),
    ("sandbox.limits", LIMITS_WORDS),
    (
        "hooks",
        "Imported hooks, and what applies to all hooks. A file has either this table or a list of [[hooks]].",
    ),
    ("exec", EXEC_WORDS),
    ("gateway", GATEWAY_WORDS),
    ("notify", NOTIFY_WORDS),
    ("terminal", TERMINAL_WORDS),
    ("store", "Where Provost keeps its runs."),
    ("engine", ENGINE_WORDS),
    ("trace", "Where the events of a run are sent besides its log. A project's file may set none of it."),
];

/// Turns that can be allowed.
pub(crate) const TURNS_MAX: u64 = 1_000_000;
/// Agents that can be allowed at a time: more than fit on one machine.
const AGENTS_MAX: u64 = 100_000;
/// The greatest depth that can be allowed.
const DEPTH_MAX: u64 = 64;
pub(crate) const COUNT_MAX: u64 = 1_000;

/// All settings, section by section.
pub(crate) fn settings() -> impl Iterator<Item = &'static Setting<Settings>> + Clone {
    [WORK, RETRIES, GOAL, LIMITS, PERMISSIONS, TOOLS, SANDBOX, EXEC, GATEWAY, NOTIFY, AROUND, ENGINE]
        .into_iter()
        .flatten()
}

/// Agents, their limits and those of the run.
const WORK: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Line(|s, model| s.model = model),
        default: SettingDefault::Is(r#""anthropic/claude-opus-5-5""#),
        example: r#""anthropic/claude-opus-5-5""#,
        words: "The model: `provider/model` (`provost models` lists them); `script:FILE` for scripted answers from a \
                file; `record:FILE=MODEL` to keep a model's answers in a file, and `replay:FILE` to have them given \
                again. FILE is relative to the file that names it, or to the current folder.",
        flag: Some("--model"),
        ..agent("model")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |s, n| s.limits.turns_max = small(n) },
        default: SettingDefault::Unset("300; no limit where [budget] limits tokens, money, time or turns"),
        example: "300",
        words: "Turns each agent may take: model calls, each with the tool calls it asks for. When they are used up, it \
                gives a final summary, which doesn't count as a turn, and is suspended. `budget.turns` limits all agents \
                of a run together.",
        ..agent("max_turns")
    },
    Setting {
        kind: Kind::Text(|s, text| s.instructions = text),
        default: SettingDefault::Is(r#""""#),
        example: r#""Write British English. Run `cargo test` before you say that something works.""#,
        words: "Text that is added at the end of the system prompt.",
        ..agent("instructions")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.environment = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether agents get a description of their environment before the goal: date, system, git branch, \
                names of files, programs, limits; at most 1.5 KB.",
        ..agent("environment")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.final_check = Some(truth)),
        default: SettingDefault::Unset("true, and false for agents whose model is a script"),
        example: "false",
        words: "Whether an agent is asked once more before it ends: to go on or to close, after an answer without a tool \
                call and without a VERDICT line; what proves it, after the first PASS since it acted, where neither stop \
                hooks nor a judge check it.",
        ..agent("final_check")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.project_rules = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether agents get AGENTS.md (else CLAUDE.md, else GEMINI.md) before the goal, of each folder from \
                the top of the repository down to theirs, and the AGENTS.md beside your own config.toml; at most \
                32 KiB.",
        ..agent("project_rules")
    },
    Setting {
        kind: Kind::Count { min: 256, max: 1_000_000, put: |s, n| s.output_tokens_max = Some(small(n)) },
        default: SettingDefault::Unset("what the model allows"),
        example: "8192",
        words: "Maximum tokens of one answer; never more than half of the model's window.",
        ..agent("output_tokens_max")
    },
    Setting {
        kind: Kind::List(|s, model| {
            s.fallback_models.push(model);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["openai/gpt-5"]"#,
        words: "Models to use instead, in this order, when the one before gives no answer: its provider can't be \
                reached for longer than limits.model_patience, or refuses the key, the quota or the request.",
        ..agent("fallback_models")
    },
    Setting {
        kind: Kind::Choice { of: &EFFORTS, put: |s, word| s.effort = Some(effort(word)) },
        default: SettingDefault::Unset(
            "high for models that are known to reason, else as the provider has it",
        ),
        example: r#""xhigh""#,
        words: "The model's reasoning effort. A model that doesn't have the level gets the next lower one.",
        ..agent("effort")
    },
    Setting {
        kind: Kind::Count { min: 0, max: TURNS_MAX, put: |s, n| s.limits.stuck_turns = small(n) },
        default: SettingDefault::Is("20"),
        example: "20",
        words: "Turns in a row without measurable progress at which an agent without a goal is suspended as stuck, \
                after a warning. Turns that only wait don't count. 0 turns it off. With a goal, `goal.stuck_turns` \
                counts.",
        ..agent("stuck_turns")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.keep_awake = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether the machine is kept awake while an agent works: during model calls, tool calls and hooks. While \
                an approval is waited for, it may sleep.",
        ..agent("keep_awake")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.block_sleep = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether `keep_awake` also blocks requested sleep: a closed lid, `systemctl suspend`, a desktop's \
                timer. Linux only.",
        ..agent("block_sleep")
    },
    Setting {
        kind: Kind::Count { min: 1, max: u64::MAX, put: |s, n| s.budget.tokens = Some(n) },
        default: SettingDefault::Unset("no limit"),
        example: "2_000_000",
        words: "Tokens of all kinds.",
        flag: Some("--tokens"),
        ..budget("tokens")
    },
    Setting {
        kind: Kind::Money(|s, money| s.budget.money = Some(money)),
        default: SettingDefault::Unset(
            "no limit; 20.00 where [budget] limits nothing and a model's price is known",
        ),
        example: "5.00",
        words: "Money in US dollars, with at most six decimals. Needs a model whose price is known.",
        flag: Some("--usd"),
        ..budget("usd")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.allow_unpriced = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Allows a model whose price isn't known although money is limited: its calls then don't count \
                towards the limit.",
        flag: Some("--allow-unpriced"),
        ..budget("allow_unpriced")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.budget.wall_time_ms = Some(ms)),
        default: SettingDefault::Unset("no limit"),
        example: r#""2h""#,
        words: "Time worked on it, by a monotonic clock; time between interruption and resume doesn't count, nor while \
                the machine is suspended, nor waits for a provider in an outage; waits for consent and for commands \
                count. The last tenth of it, at most a minute, is kept for the agent's final summary: work ends before.",
        flag: Some("--wall-time"),
        ..budget("wall_time")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |s, n| s.budget.turns = Some(small(n)) },
        default: SettingDefault::Unset("no limit"),
        example: "100",
        words: "Turns of all agents together, sub-agents included. Waiting for an approval, a provider or a \
                sub-agent takes no turn, nor do summaries, judges and the final summary.",
        flag: Some("--max-turns"),
        ..budget("turns")
    },
    Setting {
        kind: Kind::Count { min: 1, max: AGENTS_MAX, put: |s, n| s.spawn.max_agents = small(n) },
        default: SettingDefault::Is("8"),
        example: "8",
        words: "Agents of a run that may work at the same time, the first one included.",
        flag: Some("--max-agents"),
        ..spawn("max_agents")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.spawn.allow_preempt = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether an agent of high or critical priority preempts one of lower priority when all slots are \
                taken. The preempted agent yields at its next check and continues without loss when a slot is \
                free.",
        ..spawn("allow_preempt")
    },
    Setting {
        kind: Kind::Count { min: 0, max: DEPTH_MAX, put: |s, n| s.spawn.max_depth = small(n) },
        default: SettingDefault::Is("1"),
        example: "2",
        words: "Maximum nesting depth of agents. 1: only the first agent may start others.",
        ..spawn("max_depth")
    },
];

/// How agents that have failed are restarted.
const RETRIES: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |s, n| s.limits.retry.attempts_max = small(n) },
        default: SettingDefault::Is("3"),
        example: "1",
        words: "Maximum restarts in a row of an agent that fails. 0: no restart. `max_retries` of an agent and \
                `retry` of a step override it.",
        ..retry("attempts")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.limits.retry.backoff_base_ms = ms),
        default: SettingDefault::Is(r#""1s""#),
        example: r#""5s""#,
        words: "The longest wait before the first restart; it doubles with each restart in a row. The wait itself \
                is random, between zero and that.",
        ..retry("backoff_base")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.limits.retry.backoff_max_ms = ms),
        default: SettingDefault::Is(r#""1m""#),
        example: r#""10m""#,
        words: "The longest wait before any restart.",
        ..retry("backoff_max")
    },
];

/// What is around a run.
const AROUND: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::List(|s, word| {
            s.import(Import { of: ImportSource::parse(&word)?, source: None });
            Ok(())
        }),
        default: SettingDefault::Unset("nothing is imported"),
        example: r#"["claude"]"#,
        words: "Hooks and permissions of other programs, after all others. claude: those of the project's \
                .claude/settings.json and .claude/settings.local.json; claude-user: those of \
                ~/.claude/settings.json; claude-plugin:FOLDER: those of a plugin; codex: the hooks of the \
                project's .codex/hooks.json and .codex/config.toml. `provost check` lists what can't be imported.",
        ..Setting::declared("hooks", "import")
    },
    Setting {
        kind: Kind::List(|s, name| {
            s.hook_env.push(HookVariable { name: super::value::variable_name(name)?, source: None });
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["SLACK_WEBHOOK_URL"]"#,
        words: "Further variables for hooks, by name; never a provider's key. A project's file that names one must \
                be trusted first.",
        ..Setting::declared("hooks", "env")
    },
    Setting {
        kind: Kind::Line(|s, model| s.hook_model = Some(model)),
        default: SettingDefault::Unset("the model of the run's agent"),
        example: r#""anthropic/claude-haiku-4-5""#,
        words: "The model of hooks with a prompt that name none: a small one is enough. Its calls are charged to \
                the run's budget.",
        ..Setting::declared("hooks", "model")
    },
    Setting {
        kind: Kind::Folder(|s, path| s.state_dir = Some(path)),
        default: SettingDefault::Unset("`provost` in the platform's folder for state"),
        example: r#""/var/lib/provost""#,
        words: "The folder for the runs' logs. A project's file may not set it.",
        variables: &["PROVOST_STATE_DIR"],
        from: From::User,
        ..Setting::declared("store", "dir")
    },
    Setting {
        kind: Kind::Line(|s, file| s.trace.file = Some(file)),
        default: SettingDefault::Unset("none is written"),
        example: r#""trace.jsonl""#,
        words: "A file to which each event of a run is appended, as a line of JSON. Relative to the file that names it, \
                or to the current folder.",
        ..trace("file")
    },
    Setting {
        kind: Kind::Address(|s, address| s.trace.otlp_endpoint = Some(address)),
        default: SettingDefault::Unset("nothing is sent"),
        example: r#""http://127.0.0.1:4318""#,
        words: "An OpenTelemetry collector that spans are sent to, by OTLP over HTTP.",
        ..trace("otlp_endpoint")
    },
    Setting {
        kind: Kind::Variable(|s, name| s.trace.otlp_headers_env = Some(name)),
        default: SettingDefault::Unset("no headers"),
        example: r#""OTLP_HEADERS""#,
        words: "The environment variable that holds headers for the collector, such as `x-api-key=…,tenant=…`.",
        ..trace("otlp_headers_env")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.trace.otlp_content = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether spans hold messages, and the arguments and results of tools.",
        ..trace("otlp_content")
    },
];

const fn agent(name: &'static str) -> Setting<Settings> {
    Setting::declared("agent", name)
}

const fn budget(name: &'static str) -> Setting<Settings> {
    Setting::declared("budget", name)
}

const fn spawn(name: &'static str) -> Setting<Settings> {
    Setting::declared("spawn", name)
}

const fn retry(name: &'static str) -> Setting<Settings> {
    Setting::declared("retry", name)
}

const fn trace(name: &'static str) -> Setting<Settings> {
    Setting { from: From::User, ..Setting::declared("trace", name) }
}

/// For numbers that their bounds keep small.
pub(crate) fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The words for efforts, the lowest first.
pub const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// The effort that a word of the choice means; medium for any other word.
pub fn effort(word: &str) -> Effort {
    Effort::ALL.into_iter().find(|effort| effort.name() == word).unwrap_or(Effort::Medium)
}
