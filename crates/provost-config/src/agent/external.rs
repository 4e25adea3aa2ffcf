//! Sub-agents that are external programs.

use std::collections::BTreeMap;

use provost_event::{Channel, WindowSize};

use super::{Agent, field};
use crate::declare::{Kind, Setting, SettingDefault};
use crate::errors::Source;
use crate::exec::window;
use crate::item::Objection;
use crate::value::variable_name;

/// The program, and the channel to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct External {
    /// As it is found in `PATH`, or its path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The profile of its screens, where it doesn't follow from the program.
    pub profile: Option<String>,
    /// The channel to it.
    pub channel: Channel,
    /// Its window, where it isn't that of `[exec]`.
    pub size: Option<WindowSize>,
    /// How long it may wait for the user, where it isn't as `[exec]` has it, in milliseconds.
    pub idle_ms: Option<u64>,
    /// The variables that it gets besides those of `[exec]`, by name.
    pub passes: Vec<String>,
    /// Whether it calls models past the gateway, where that isn't as `[exec]` has it.
    pub unmetered: Option<bool>,
}

impl External {
    /// As it is called.
    pub fn command(&self) -> Vec<String> {
        std::iter::once(&self.program).chain(&self.args).cloned().collect()
    }
}

/// Fields of programs, and the value that makes an agent one.
pub(crate) const OF_PROGRAMS: [&str; 9] =
    ["kind", "program", "args", "profile", "channel", "size", "idle_time", "env", "unmetered"];
/// Fields of agents with a model of Provost's alone.
const OF_MODELS: [&str; 5] = ["model", "effort", "output_tokens_max", "tools", "instructions"];

/// What of its fields goes with its kind, and what doesn't.
pub(super) fn objections(agent: &Agent, places: &BTreeMap<&'static str, Source>) -> Vec<Objection> {
    let is_there = |field: &&&'static str| places.contains_key(**field);
    if agent.external().is_none() {
        let lonely = OF_PROGRAMS.iter().filter(is_there).filter(|field| **field != "kind");
        let objection = |field: &&'static str| {
            Objection::new(field, "belongs to an agent of kind = \"external\"", "say so, or leave it out")
        };
        return lonely.map(objection).collect();
    }
    let needless = OF_MODELS.iter().filter(is_there);
    let objection = |field: &&'static str| {
        let what = "an external agent is a program that has this of its own";
        Objection::new(field, what, "leave it out, or give it to the program in `args`")
    };
    let mut all = needless.map(objection).collect::<Vec<_>>();
    if !places.contains_key("program") {
        let what = "an external agent needs the program that it is";
        all.push(Objection::new("kind", what, "e.g. program = \"codex\""));
    }
    all
}

/// The fields that decide the kind of an agent, and its program.
pub(super) const KIND: Setting<Agent> = Setting {
    kind: Kind::Choice {
        of: &["native", "external"],
        put: |agent, word| agent.is_external = word == "external",
    },
    default: SettingDefault::Is(r#""native""#),
    example: r#""external""#,
    words: "Whether it is a native agent on a model, or an external agent's program (docs/external.md).",
    ..field("", "kind")
};

pub(super) const PROGRAM: Setting<Agent> = Setting {
    kind: Kind::Line(|agent, program| agent.external.program = program),
    default: SettingDefault::Unset("an external agent must name one"),
    example: r#""codex""#,
    words: "The program of an external agent, as it is found in PATH, or its path. A project's file that names one must be \
            trusted first.",
    ..field("", "program")
};

pub(super) const ARGS: Setting<Agent> = Setting {
    kind: Kind::List(|agent, arg| {
        agent.external.args.push(arg);
        Ok(())
    }),
    default: SettingDefault::Unset("none"),
    example: r#"["--sandbox", "workspace-write"]"#,
    words: "The program's arguments.",
    ..field("", "args")
};

pub(super) const PROFILE: Setting<Agent> = Setting {
    kind: Kind::Line(|agent, name| agent.external.profile = Some(name)),
    default: SettingDefault::Unset("the one that matches the program, else generic"),
    example: r#""codex""#,
    words: "The profile that says what the program's screens mean; `provost profile list` lists them.",
    ..field("", "profile")
};

pub(super) const CHANNEL: Setting<Agent> = Setting {
    kind: Kind::Choice {
        of: &["auto", "terminal", "structured"],
        put: |agent, word| agent.external.channel = channel(word),
    },
    default: SettingDefault::Is(r#""auto""#),
    example: r#""terminal""#,
    words: "How the program is driven: its structured stream, the terminal, or auto: the first channel that its \
            profile names and that fits.",
    ..field("", "channel")
};

pub(super) const SIZE: Setting<Agent> = Setting {
    kind: Kind::Checked(|agent, text| {
        agent.external.size = Some(window(&text)?);
        Ok(())
    }),
    default: SettingDefault::Unset("as exec.size"),
    example: r#""50x160""#,
    words: "The rows and columns of the program's window.",
    ..field("", "size")
};

pub(super) const IDLE_TIME: Setting<Agent> = Setting {
    kind: Kind::Time(|agent, ms| agent.external.idle_ms = Some(ms)),
    default: SettingDefault::Unset("as exec.idle_time"),
    example: r#""10m""#,
    words: "How long the program may wait for a person before the agent is suspended.",
    ..field("", "idle_time")
};

pub(super) const ENV: Setting<Agent> = Setting {
    kind: Kind::List(|agent, name| {
        agent.external.passes.push(variable_name(name)?);
        Ok(())
    }),
    default: SettingDefault::Unset("none besides those of exec.env"),
    example: r#"["OPENAI_API_KEY"]"#,
    words: "Further variables for the program, by name.",
    ..field("", "env")
};

pub(super) const UNMETERED: Setting<Agent> = Setting {
    kind: Kind::Truth(|agent, truth| agent.external.unmetered = Some(truth)),
    default: SettingDefault::Unset("as exec.unmetered"),
    example: "true",
    words: "Whether the program may call models without the gateway: a limit of money doesn't apply to it then.",
    ..field("", "unmetered")
};

/// The channel that a word of the choice means.
pub(super) fn channel(word: &str) -> Channel {
    match word {
        "terminal" => Channel::Terminal,
        "structured" => Channel::Structured,
        _ => Channel::Auto,
    }
}
