//! `[[agents]]`: sub-agents that other agents may request by name.

mod checks;
mod external;

use std::collections::BTreeMap;

use provost_event::{Budget, Effort, Isolation, Permission, PermissionPolicy, Priority, RetryPolicy};

use super::Settings;
use super::declare::{Kind, Setting, SettingDefault};
use super::errors::Source;
use super::hook::pattern;
use super::item::{Item, Objection};
use super::table::{COUNT_MAX, EFFORTS, TURNS_MAX, effort, permission, small};

pub(crate) use checks::check;
pub use external::External;
pub(crate) use external::OF_PROGRAMS;

/// What the list of sub-agents is for.
pub(crate) const AGENTS_WORDS: &str = "Sub-agents that the agent may ask to work for it, each by a tool of its name; it \
    sees name and description. Each works in a conversation of its own, within the budget, the slots and the permissions \
    of the run, and returns its last answer. The agents of all files count. See docs/agents.md.";

/// What the name of a tool may have.
const NAME_MAX: usize = 64;

/// A sub-agent and where it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name, and that of its tool.
    pub name: String,
    /// Its description for other agents.
    pub description: String,
    /// The words at the end of its system prompt, where they aren't the run's.
    pub instructions: Option<String>,
    /// Its model as it was written, where it isn't the run's.
    pub model: Option<String>,
    /// Its model's reasoning effort, where it isn't the run's.
    pub effort: Option<Effort>,
    /// The models that stand in for its own; the run's where it has the run's.
    pub fallback_models: Option<Vec<String>>,
    /// Tokens of an answer.
    pub output_tokens_max: Option<u32>,
    /// The names of its tools; absent for all but those that start other agents.
    pub tools: Option<Vec<String>>,
    /// Its turns, where they aren't as many as the run's.
    pub max_turns: Option<u32>,
    /// Restarts in a row after failures, where they aren't as many as the run's agents have.
    pub(crate) max_retries: Option<u32>,
    /// How urgent its work is.
    pub priority: Priority,
    /// What it and those below it may spend.
    pub budget: Budget,
    /// How long it is waited for, in milliseconds.
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    pub isolation: Isolation,
    /// The names of the stop hooks that must agree before it may stop.
    pub stop_hooks: Vec<String>,
    /// What must be confirmed before it counts as done.
    pub condition: Option<String>,
    /// The model that judges that as it was written, where it isn't the run's judges.
    pub judge: Option<String>,
    permissions: Narrower,
    /// Whether it is an external agent.
    is_external: bool,
    external: External,
    /// Where it begins.
    pub source: Source,
    /// Where each of its fields was given.
    places: BTreeMap<&'static str, Source>,
}

/// Permissions that stand beside those of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Narrower {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    default: Option<Permission>,
}

impl Agent {
    /// How it is restarted; `run` is the policy of the run's agents.
    pub fn retry(&self, run: RetryPolicy) -> RetryPolicy {
        RetryPolicy { attempts_max: self.max_retries.unwrap_or(run.attempts_max), ..run }
    }

    /// Where `field` was given, or else the agent.
    pub fn source_of(&self, field: &str) -> Source {
        self.places.get(field).unwrap_or(&self.source).clone()
    }

    /// Its program, if it is an external agent.
    pub fn external(&self) -> Option<&External> {
        self.is_external.then_some(&self.external)
    }

    /// Whether it has a default for calls that no pattern matches.
    pub const fn names_default(&self) -> bool {
        self.permissions.default.is_some()
    }

    /// Its own rules, by the name of their list.
    pub fn rules(&self) -> [(&'static str, &[String]); 3] {
        let Narrower { allow, ask, deny, .. } = &self.permissions;
        [("allow", allow), ("ask", ask), ("deny", deny)]
    }

    /// What it may do by itself, where those of the run are `run`: theirs, or its own with nothing besides. The
    /// engine applies the more restrictive of both.
    pub fn permissions(&self, run: PermissionPolicy) -> PermissionPolicy {
        let Narrower { allow, ask, deny, default } = &self.permissions;
        if self.permissions == Narrower::default() {
            return run;
        }
        let unset = if allow.is_empty() { Permission::Allow } else { Permission::Ask };
        PermissionPolicy {
            allow: allow.clone(),
            ask: ask.clone(),
            deny: deny.clone(),
            default: default.unwrap_or(unset),
            ..run
        }
    }
}

impl Item for Agent {
    const LIST: &'static str = "agents";
    const ONE: &'static str = "an agent";
    const LEAST: &'static str = "name and description";
    const FIELDS: &'static [Setting<Self>] = AGENT;

    fn at(source: Source) -> Self {
        let mut agent = Self {
            name: String::new(),
            description: String::new(),
            instructions: None,
            model: None,
            effort: None,
            fallback_models: None,
            output_tokens_max: None,
            tools: None,
            max_turns: None,
            max_retries: None,
            priority: Priority::default(),
            budget: Budget::default(),
            ask_timeout_ms: None,
            isolation: Isolation::default(),
            stop_hooks: Vec::new(),
            condition: None,
            judge: None,
            permissions: Narrower::default(),
            is_external: false,
            external: External::default(),
            source,
            places: BTreeMap::new(),
        };
        for field in AGENT {
            field.take_default(&mut agent);
        }
        agent
    }

    fn note(&mut self, field: &'static str, source: Source) {
        if field == "tools" {
            // An empty list has nothing to take, and means none.
            self.tools.get_or_insert_default();
        }
        self.places.insert(field, source);
    }

    fn objections(&self) -> Vec<Objection> {
        let mut all = external::objections(self, &self.places);
        if self.description.trim().is_empty() {
            let remedy = "say what it is good for: that is all that others know of it";
            all.push(Objection::new("description", "must not be empty", remedy));
        }
        all
    }

    fn put(self, settings: &mut Settings) {
        settings.agents.push(self);
    }
}

/// The fields of an `[[agents]]`.
pub(crate) const AGENT: &[Setting<Agent>] = &[
    Setting {
        kind: Kind::Checked(|agent, name| {
            agent.name = tool_name(name)?;
            Ok(())
        }),
        default: SettingDefault::Required,
        example: r#""researcher""#,
        words: "Its name, and that of the tool that starts it: letters, digits, _ and -, at most 64. Unique, and \
                not the name of a tool.",
        ..field("", "name")
    },
    Setting {
        kind: Kind::Text(|agent, text| agent.description = text),
        default: SettingDefault::Required,
        example: r#""Finds out how something works in this code, and answers with files and lines.""#,
        words: "What it is for, and what its goal must say: other agents see only this.",
        ..field("", "description")
    },
    external::KIND,
    external::PROGRAM,
    external::ARGS,
    external::PROFILE,
    external::CHANNEL,
    external::SIZE,
    external::IDLE_TIME,
    external::ENV,
    external::UNMETERED,
    Setting {
        kind: Kind::Text(|agent, text| agent.instructions = Some(text)),
        default: SettingDefault::Unset("as agent.instructions"),
        example: r#""Read only. Name the file and the line of everything that you say.""#,
        words: "Text that is added at the end of its system prompt.",
        ..field("", "instructions")
    },
    Setting {
        kind: Kind::Line(|agent, model| agent.model = Some(model)),
        default: SettingDefault::Unset("the run's, agent.model"),
        example: r#""openai/gpt-6.1-terra""#,
        words: "Its model, as in agent.model.",
        ..field("", "model")
    },
    Setting {
        kind: Kind::List(|agent, model| {
            agent.fallback_models.get_or_insert_default().push(model);
            Ok(())
        }),
        default: SettingDefault::Unset("as agent.fallback_models, where it has no model of its own"),
        example: r#"["anthropic/claude-haiku-4-5"]"#,
        words: "Models to use when its own gives no answer.",
        ..field("", "fallback_models")
    },
    Setting {
        kind: Kind::Choice { of: &EFFORTS, put: |agent, word| agent.effort = Some(effort(word)) },
        default: SettingDefault::Unset("as agent.effort"),
        example: r#""low""#,
        words: "The reasoning effort of its model.",
        ..field("", "effort")
    },
    Setting {
        kind: Kind::Count {
            min: 256,
            max: 1_000_000,
            put: |agent, n| agent.output_tokens_max = Some(small(n)),
        },
        default: SettingDefault::Unset("what its model allows, and no more than agent.output_tokens_max"),
        example: "4096",
        words: "Maximum tokens of one of its answers.",
        ..field("", "output_tokens_max")
    },
    Setting {
        kind: Kind::List(|agent, name| {
            agent.tools.get_or_insert_default().push(name);
            Ok(())
        }),
        default: SettingDefault::Unset("all but those that start agents"),
        example: r#"["read_file", "search", "list_dir"]"#,
        words: "Its tools. Those that start agents, spawn_agent and the names of agents, it has only if they are \
                named here. It never gets one that its parent doesn't have.",
        ..field("", "tools")
    },
    Setting {
        kind: Kind::Count { min: 1, max: TURNS_MAX, put: |agent, n| agent.max_turns = Some(small(n)) },
        default: SettingDefault::Unset("as agent.max_turns"),
        example: "15",
        words: "Turns it may take. When they are used up, it gives a final summary, and the agent that asked goes on \
                with that.",
        ..field("", "max_turns")
    },
    Setting {
        kind: Kind::Count { min: 0, max: COUNT_MAX, put: |agent, n| agent.max_retries = Some(small(n)) },
        default: SettingDefault::Unset("as retry.attempts"),
        example: "1",
        words: "Maximum restarts in a row when it fails. Each continues where it stopped, and the parent gets the \
                result of the last.",
        ..field("", "max_retries")
    },
    Setting {
        kind: Kind::Choice {
            of: &["background", "low", "normal", "high", "critical"],
            put: |agent, word| agent.priority = word.parse().unwrap_or_default(),
        },
        default: SettingDefault::Is(r#""normal""#),
        example: r#""high""#,
        words: "Its priority. When all slots are taken (spawn.max_agents), a high or critical one preempts the \
                lowest below it, which continues later; the others are refused.",
        ..field("", "priority")
    },
    Setting {
        kind: Kind::Time(|agent, ms| agent.ask_timeout_ms = Some(ms)),
        default: SettingDefault::Unset("no limit"),
        example: r#""10m""#,
        words: "How long its parent waits for it, counted while it has a slot; then it is cancelled.",
        ..field("", "ask_timeout")
    },
    Setting {
        kind: Kind::Choice {
            of: &["shared", "worktree"],
            put: |agent, word| {
                agent.isolation = if word == "worktree" { Isolation::Worktree } else { Isolation::Shared };
            },
        },
        default: SettingDefault::Is(r#""shared""#),
        example: r#""worktree""#,
        words: "Where it works: in its parent's folder, or in a git worktree of its own, on a branch of its own. \
                Where none can be made, it fails.",
        ..field("", "isolation")
    },
    Setting {
        kind: Kind::List(|agent, name| {
            agent.stop_hooks.push(name);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["lint-check"]"#,
        words: "The names of [[stop_hooks]] that must agree before it may stop.",
        ..field("", "stop_hooks")
    },
    Setting {
        kind: Kind::Words(|agent, words| agent.condition = Some(words)),
        default: SettingDefault::Unset("none"),
        example: r#""every claim names a file and a line that says so""#,
        words: "What must be confirmed before it is done, as goal.condition is for the run's agent.",
        ..field("goal", "condition")
    },
    Setting {
        kind: Kind::Line(|agent, model| agent.judge = Some(model)),
        default: SettingDefault::Unset("as goal.judge and goal.judges, else its own model"),
        example: r#""openai/gpt-6.1-terra""#,
        words: "The model that judges that. Everything else is as in [goal].",
        ..field("goal", "judge")
    },
    Setting {
        kind: Kind::Count { min: 1, max: u64::MAX, put: |agent, n| agent.budget.tokens = Some(n) },
        default: SettingDefault::Unset("no limit but the run's"),
        example: "200_000",
        words: "Tokens of all kinds that it and its sub-agents may use, each time it is called.",
        ..field("budget", "tokens")
    },
    Setting {
        kind: Kind::Money(|agent, money| agent.budget.money = Some(money)),
        default: SettingDefault::Unset("no limit but the run's"),
        example: "0.50",
        words: "Money in US dollars, likewise.",
        ..field("budget", "usd")
    },
    Setting {
        kind: Kind::Time(|agent, ms| agent.budget.wall_time_ms = Some(ms)),
        default: SettingDefault::Unset("no limit but the run's"),
        example: r#""20m""#,
        words: "Its working time, counted while it has a slot.",
        ..field("budget", "wall_time")
    },
    Setting {
        kind: Kind::List(|agent, text| {
            agent.permissions.allow.push(pattern(text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("what the run's permissions allow"),
        example: r#"["read_file", "shell(cargo *)"]"#,
        words: "Calls that it may make. Permissions of its own only narrow: of them and those of the run, the more \
                restrictive counts.",
        ..field("permissions", "allow")
    },
    Setting {
        kind: Kind::List(|agent, text| {
            agent.permissions.ask.push(pattern(text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none besides the run's"),
        example: r#"["shell(git *)"]"#,
        words: "Its calls that need approval.",
        ..field("permissions", "ask")
    },
    Setting {
        kind: Kind::List(|agent, text| {
            agent.permissions.deny.push(pattern(text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none besides the run's"),
        example: r#"["write_file", "edit_file"]"#,
        words: "Calls that it never makes.",
        ..field("permissions", "deny")
    },
    Setting {
        kind: Kind::Choice {
            of: &["allow", "ask", "deny"],
            put: |agent, word| agent.permissions.default = Some(permission(word)),
        },
        default: SettingDefault::Unset("ask where anything is listed in its allow, else allow"),
        example: r#""deny""#,
        words: "What happens to its calls that none of its own patterns matches.",
        ..field("permissions", "default")
    },
];

const fn field(table: &'static str, name: &'static str) -> Setting<Agent> {
    Setting::declared(table, name)
}

/// A name that every provider takes for a tool's.
fn tool_name(name: String) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(fits);
    if is_name && name.len() <= NAME_MAX {
        Ok(name)
    } else {
        Err(format!("must begin with a letter and have only letters, digits, _ and -, at most {NAME_MAX}"))
    }
}
