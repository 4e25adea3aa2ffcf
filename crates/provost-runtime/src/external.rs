//! External agents.

use std::path::Path;

use provost_config::Profiles;
use provost_config::{Agent, ConfigError, External, Problem, Problems, Settings, Settled, Source};
use provost_event::{
    AgentPolicy, Channel, ExternalPolicy, Limits, Metering, ModelPolicy, Permission, PermissionPolicy, Price,
    RunPolicy, SandboxPolicy, SubAgentPolicy,
};
use provost_harness::consent_tools;
use provost_terminal::Profile;

use crate::Variables;
use crate::gateway::{GatewaySetup, metering};
use crate::hook_models::with_hooks;
use crate::team::{Team, bare_policy, permissions_of};

/// The name of an external agent's model: it only names the program.
const MODEL: &str = "external/";
/// What a program asks for that no other name stands for: it always needs the user's approval.
const UNREADABLE: &str = "consent";
/// How many prompts and answers a program gets where the turns of agents aren't set: each of its questions is a
/// turn, while a turn of a model has several calls.
const EXCHANGES_MAX: u32 = 400;
/// The same where a person works at it: no limit in practice.
const EXCHANGES_OF_PERSON: u32 = 1_000_000;
/// Variables that interactive programs get besides those of any child: what they find their settings, editor and
/// colours by. None of them holds a secret, or gives access to one (as the socket of an SSH agent would).
const INTERACTIVE: [&str; 11] = [
    "COLORTERM",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_DIRS",
];

/// What `provost exec` requests.
pub struct Wanted {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The profile of its screens.
    pub profile: Profile,
    /// The channel to it.
    pub channel: Channel,
    /// How it is operated.
    pub manner: Manner,
    /// How its usage becomes known.
    pub metering: Metering,
}

/// How a program is operated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// A person works at it.
    Attended,
    /// Unattended; its arguments say what to do.
    Alone,
    /// Unattended; the goal is its first prompt.
    Prompted,
    /// A person works at it once the goal was typed in.
    AttendedPrompted,
}

impl Manner {
    /// Whether a person works at it.
    pub const fn is_attended(self) -> bool {
        matches!(self, Self::Attended | Self::AttendedPrompted)
    }

    const fn submits_goal(self) -> bool {
        matches!(self, Self::Prompted | Self::AttendedPrompted)
    }
}

/// The policy of a run that consists of one program.
pub fn external_policy(settled: &Settled, team: &Team, workspace: &Path, wanted: Wanted) -> RunPolicy {
    let settings = &settled.settings;
    let is_set = |key: &str| settled.source(key) != Source::Default;
    let attended = wanted.manner.is_attended();
    let turns_max = match (is_set("agent.max_turns"), attended) {
        (true, _) => settings.limits.turns_max,
        (false, _) if settings.budget.turns.is_some() => Limits::TURNS_UNLIMITED,
        (false, true) => EXCHANGES_OF_PERSON,
        (false, false) => EXCHANGES_MAX,
    };
    let args = match attended {
        true => wanted.args,
        false => unattended(&wanted.program, wanted.args, &wanted.profile),
    };
    let external = ExternalPolicy {
        program: wanted.program,
        args,
        env: std::collections::BTreeMap::new(),
        passes: settings.exec.passes.clone(),
        profile: wanted.profile.name,
        channel: wanted.channel,
        size: settings.exec.size,
        submits_goal: wanted.manner.submits_goal(),
        attended,
        unrecorded: !settings.exec.records,
        // It binds only while no terminal is attached.
        idle_ms: Some(settings.exec.idle_ms),
        metering: wanted.metering,
    };
    let policy = RunPolicy {
        budget: settings.budget,
        spawn: settings.spawn,
        allow_unpriced: settings.allow_unpriced,
        ..RunPolicy::new(AgentPolicy {
            limits: Limits { turns_max, ..settings.limits },
            stop_hooks: settings.stop_hooks.iter().map(|hook| hook.policy(settings)).collect(),
            permissions: permissions_of_program(
                permissions_of(settings, workspace),
                is_set("permissions.default"),
            ),
            goal: team.goal.clone(),
            ..program_policy(settings, workspace, external)
        })
    };
    with_hooks(policy, &team.hooks)
}

/// The sub-agent that is an external program.
pub(crate) fn sub_agent(
    settled: &Settled,
    agent: &Agent,
    external: &External,
    (workspace, profile): (&Path, &MeteredProfile),
) -> SubAgentPolicy {
    let settings = &settled.settings;
    let stop_hooks = settings.stop_hooks.iter().filter(|hook| agent.stop_hooks.contains(&hook.name));
    let turns_max = agent.max_turns.or_else(|| {
        (settled.source("agent.max_turns") != Source::Default).then_some(settings.limits.turns_max)
    });
    let own_default = agent.names_default() || settled.source("permissions.default") != Source::Default;
    let mut passes = settings.exec.passes.clone();
    passes.extend(external.passes.iter().filter(|name| !settings.exec.passes.contains(name)).cloned());
    let policy = ExternalPolicy {
        program: external.program.clone(),
        args: unattended(&external.program, external.args.clone(), &profile.profile),
        env: std::collections::BTreeMap::new(),
        passes,
        profile: profile.profile.name.clone(),
        channel: external.channel,
        size: external.size.unwrap_or(settings.exec.size),
        submits_goal: true,
        attended: false,
        unrecorded: !settings.exec.records,
        idle_ms: Some(external.idle_ms.unwrap_or(settings.exec.idle_ms)),
        metering: profile.metering,
    };
    SubAgentPolicy {
        name: agent.name.clone(),
        agent: AgentPolicy {
            limits: Limits {
                turns_max: turns_max.unwrap_or(EXCHANGES_MAX),
                retry: agent.retry(settings.limits.retry),
                ..settings.limits
            },
            stop_hooks: stop_hooks.map(|hook| hook.policy(settings)).collect(),
            permissions: permissions_of_program(
                agent.permissions(permissions_of(settings, workspace)),
                own_default,
            ),
            ..program_policy(settings, workspace, policy)
        },
        priority: agent.priority,
        budget: agent.budget,
        ask_timeout_ms: agent.ask_timeout_ms,
        isolation: agent.isolation,
    }
}

/// The profile of a program: the named one, else the one that matches it.
///
/// # Errors
/// [`ConfigError::UnknownProfile`] if none has the name.
pub fn profile_of(
    profiles: &Profiles,
    named: Option<&str>,
    command: (&str, &[String]),
) -> Result<Profile, ConfigError> {
    named.map_or_else(|| Ok(profiles.for_command(command.0, command.1)), |name| profiles.named(name))
}

/// The profiles of those of `agents` that are programs, in the order of all.
///
/// # Errors
/// [`Problems`] that name the settings, also of money that can't bind a program.
pub(crate) fn profiles_of(
    settled: &Settled,
    agents: &[Agent],
    variables: &Variables,
) -> Result<Vec<Option<MeteredProfile>>, Problems> {
    if agents.iter().all(|agent| agent.external().is_none()) {
        return Ok(agents.iter().map(|_| None).collect());
    }
    let profiles = settled.profiles()?;
    let setup = GatewaySetup::new(&settled.settings, variables);
    let mut problems = Vec::new();
    let mut all = Vec::with_capacity(agents.len());
    for agent in agents {
        let Some(external) = agent.external() else {
            all.push(None);
            continue;
        };
        match profile_of(&profiles, external.profile.as_deref(), (&external.program, &external.args)) {
            Ok(profile) => {
                let unmetered = external.unmetered.unwrap_or(settled.settings.exec.unmetered);
                let metering = metering(&setup, &profile, unmetered);
                problems.extend(unpriced(settled, Some(agent), (&external.program, metering)));
                all.push(Some(MeteredProfile { profile, metering }));
            }
            Err(refusal) => problems.push(Problem {
                source: agent.source_of("profile"),
                key: "agents.profile".to_owned(),
                what: refusal.to_string(),
                remedy: refusal.hint().unwrap_or_default().to_owned(),
            }),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(Problems(problems)) }
}

/// What is wrong with the user's own profiles, and with those of `agents` that are programs.
///
/// # Errors
/// That.
pub fn programs_problems(settled: &Settled, agents: &[Agent], variables: &Variables) -> Result<(), Problems> {
    settled.profiles()?;
    profiles_of(settled, agents, variables).map(drop)
}

/// The name of an external agent's model.
pub(crate) fn external_model(program: &str) -> ModelPolicy {
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    ModelPolicy::new(format!("{MODEL}{name}"), 1)
}

/// Whether a model's name only stands for an external program.
pub fn is_program(model: &str) -> bool {
    model.starts_with(MODEL)
}

/// Limits of money that can't bind a program of unknown price.
pub(crate) fn unpriced(
    settled: &Settled,
    agent: Option<&Agent>,
    (program, metering): (&str, Metering),
) -> Option<Problem> {
    let settings = &settled.settings;
    let of_agent = agent.and_then(|agent| agent.budget.money.map(|_| agent.source_of("usd")));
    let of_run = settings.budget.money.map(|_| ("budget.usd", settled.source("budget.usd")));
    let (key, source) = of_agent.map(|source| ("agents.budget.usd", source)).or(of_run)?;
    let name = external_model(program).name;
    (!settings.allow_unpriced && metering == Metering::Reported).then(|| Problem {
        source,
        key: key.to_owned(),
        what: format!("limits money, but what {name} takes isn't known, unless it tells of it"),
        remedy: "give the key of its provider, so that it calls models through Provost's gateway (docs/gateway.md); or \
                 set unmetered (--unmetered), and money doesn't bind it; or set allow_unpriced (--allow-unpriced): what \
                 the program tells of counts then"
            .to_owned(),
    })
}

/// How the usage of a program becomes known that `provost exec` runs with this profile.
pub fn metering_of(settled: &Settled, profile: &Profile, variables: &Variables) -> Metering {
    metering(&GatewaySetup::new(&settled.settings, variables), profile, settled.settings.exec.unmetered)
}

/// The profile of a program, and how its usage becomes known.
pub(crate) struct MeteredProfile {
    profile: Profile,
    metering: Metering,
}

/// What every program has alike.
fn program_policy(settings: &Settings, workspace: &Path, external: ExternalPolicy) -> AgentPolicy {
    AgentPolicy {
        model: match external.metering {
            // The gateway charges its calls; its exchanges cost nothing besides.
            Metering::Gateway => {
                ModelPolicy { price: Some(Price::FREE), ..external_model(&external.program) }
            }
            Metering::Reported | Metering::Unmetered => external_model(&external.program),
        },
        tools: consent_tools(),
        external: Some(Box::new(external)),
        ..confined_as(settings, bare_policy(settings, workspace))
    }
}

/// The policy of a program, which the settings may leave out of the sandbox.
fn confined_as(settings: &Settings, policy: AgentPolicy) -> AgentPolicy {
    let sandbox = if settings.sandbox.external { policy.sandbox } else { SandboxPolicy::default() };
    AgentPolicy { sandbox, ..policy }
}

/// The permissions of a program: a call that no pattern matches needs approval, unless a default is set, and one
/// that couldn't be read always does.
pub(crate) fn permissions_of_program(given: PermissionPolicy, has_default: bool) -> PermissionPolicy {
    let default =
        if has_default || given.default == Permission::Deny { given.default } else { Permission::Ask };
    let mut ask = given.ask;
    if !ask.iter().any(|pattern| pattern == UNREADABLE) {
        ask.push(UNREADABLE.to_owned());
    }
    // What a program asks about, it reads itself.
    PermissionPolicy { default, elsewhere: default, ask, ..given }
}

/// A program's arguments when it is unattended: its profile's own come first, unless one of them was given.
fn unattended(program: &str, args: Vec<String>, profile: &Profile) -> Vec<String> {
    let is_given = |arg: &String| arg.starts_with('-') && args.contains(arg);
    if profile.unattended.iter().any(is_given) {
        return args;
    }
    let extra = profile.unattended.iter().cloned();
    if profile.is_for(program, &[]) {
        extra.chain(args).collect()
    } else {
        // What runs another program has the arguments of that one behind its own.
        args.into_iter().chain(extra).collect()
    }
}

/// The environment of programs, without what policies hand through: what any child gets, and what interactive
/// programs need. `TERM` is set by the code that opens the terminal.
pub(crate) fn environment() -> Vec<(String, String)> {
    let text = |os: std::ffi::OsString| os.into_string().ok();
    let all = provost_process::allowed_env(&INTERACTIVE).into_iter();
    all.filter_map(|(name, value)| Some((text(name)?, text(value)?)))
        .filter(|(name, _)| name != "TERM")
        .collect()
}

/// What the variables hold that the agents of `policy` are handed through.
pub fn passed(policy: &RunPolicy, variables: &Variables) -> Vec<(String, String)> {
    let agents = [&policy.agent].into_iter().chain(policy.agents.iter().map(|sub_agent| &sub_agent.agent));
    let names = agents.filter_map(|agent| agent.external.as_ref()).flat_map(|external| &external.passes);
    let names = names.collect::<std::collections::BTreeSet<_>>();
    names.into_iter().filter_map(|name| Some((name.clone(), variables.get(name)?.clone()))).collect()
}
