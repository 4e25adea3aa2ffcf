//! What a run works with beside its models, tools and store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_config::{Folders, Problems, Settings, Settled, Skill, Skills};
use provost_event::{RunPolicy, SandboxMode};
use provost_external::PassedStreams;
use provost_harness::{HarnessCallback, Observers, Redactor};
use provost_mcp_client::Catalog;
use provost_power::{KeepAwake, KeepAwakeOptions};
use provost_tools::SkillText;

use crate::external::passed;
use crate::gateway::GatewaySetup;
use crate::notify::{Bell, Notifying};
use crate::{Variables, all_secrets, programs_of};

/// Observers, data for hooks, and what keeps the machine awake.
pub struct RunContext {
    /// What shows the run.
    pub(crate) callback: Arc<dyn HarnessCallback>,
    /// Further observers.
    pub(crate) observers: Observers,
    /// How the user is told of what happens.
    pub(crate) notifying: Notifying,
    /// What headers of hooks may name.
    pub(crate) header_env: HashMap<String, String>,
    /// The variables that hooks get besides.
    pub(crate) hook_env: Vec<(String, String)>,
    /// Keeps the machine awake.
    pub(crate) power: Option<KeepAwake>,
    /// Knows the keys, which judges aren't shown.
    pub(crate) redactor: Arc<Redactor>,
    /// Variables that commands get besides. This process no longer has the values of those that look secret.
    pub(crate) env: Vec<(String, String)>,
    /// Files with keys, and the user's settings: hidden from file tools.
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) programs: Programs,
    /// The skills that agents may use.
    pub(crate) skills: Vec<SkillText>,
    /// The tools of MCP servers.
    pub(crate) mcp: Catalog,
    /// How long services may run.
    pub(crate) keep_services: Duration,
    /// The environment, for the folders of tools in the sandbox.
    pub(crate) variables: Variables,
    /// Whether Provost's own git looks from a box.
    pub(crate) boxes_git: bool,
    /// The standard streams of this process, for a program that gets them.
    pub(crate) streams: Option<PassedStreams>,
}

/// What external programs among a run's agents are run with.
pub struct Programs {
    /// Whether what they show is recorded.
    pub(crate) records: bool,
    /// The variables that their policies hand through, with what they hold.
    pub(crate) passed: Vec<(String, String)>,
    /// The user's own profiles.
    pub(crate) profiles: Vec<provost_terminal::Profile>,
    /// The gateway by which they call models, if the run has any.
    pub(crate) gateway: Option<GatewaySetup>,
}

impl Programs {
    /// Those of a run with this policy.
    ///
    /// # Errors
    /// What is wrong with the user's own profiles, if the run has programs at all.
    pub fn of(policy: &RunPolicy, settled: &Settled, variables: &Variables) -> Result<Self, Problems> {
        let has_programs = programs_of(policy).next().is_some();
        Ok(Self {
            records: settled.settings.exec.records,
            passed: passed(policy, variables),
            profiles: if has_programs { settled.profiles()?.own() } else { Vec::new() },
            gateway: has_programs.then(|| GatewaySetup::new(&settled.settings, variables)),
        })
    }
}

impl RunContext {
    /// The parts around a run that `callback` shows, by the settings.
    pub fn new(
        settings: &Settings,
        variables: &Variables,
        (callback, observers): (Arc<dyn HarnessCallback>, Observers),
        programs: Programs,
    ) -> Self {
        Self {
            callback,
            observers,
            notifying: Notifying::new(&settings.notify, variables),
            programs,
            variables: variables.clone(),
            boxes_git: settings.sandbox.mode != SandboxMode::Off,
            header_env: header_env(settings, variables),
            hook_env: hook_values(settings, variables),
            power: power(settings),
            skills: Vec::new(),
            mcp: Catalog::default(),
            keep_services: Duration::from_millis(settings.keep_running_max_ms),
            redactor: Arc::new(Redactor::new(all_secrets(settings, variables))),
            env: commands_env(settings, variables),
            hidden: hidden(settings),
            streams: None,
        }
    }
}

/// The variables that commands get besides, as far as they are set.
fn commands_env(settings: &Settings, variables: &Variables) -> Vec<(String, String)> {
    let names = settings.tools.env.iter();
    names.filter_map(|name| Some((name.clone(), variables.get(name)?.clone()))).collect()
}

/// Files that no agent is to read or change.
fn hidden(settings: &Settings) -> Vec<PathBuf> {
    let keys = settings.named.providers.values().filter_map(|table| table.key_file.clone());
    let own = Folders::of_platform().map(|folders| folders.user_file);
    keys.chain(own).collect()
}

impl RunContext {
    /// The same, where notifications can be shown by the user's terminal.
    #[must_use]
    pub fn with_bell(mut self, bell: Option<Bell>) -> Self {
        self.notifying.bell = bell;
        self
    }

    /// The same, where agents may have these tools of MCP servers.
    #[must_use]
    pub fn with_mcp(mut self, catalog: Catalog) -> Self {
        catalog.login_tokens().iter().for_each(|token| self.redactor.learn(token));
        self.mcp = catalog;
        self
    }

    /// The same, where a program whose policy says so gets the standard streams of this process.
    #[must_use]
    pub fn with_streams(mut self, streams: Option<PassedStreams>) -> Self {
        self.streams = streams;
        self
    }

    /// The same, where agents may use these skills.
    #[must_use]
    pub fn with_skills(mut self, skills: &Skills) -> Self {
        let text = |skill: &Skill| SkillText {
            name: skill.name.clone(),
            body: skill.body.clone(),
            folder: skill.file.parent().map(Path::to_owned).unwrap_or_default(),
        };
        self.skills = skills.usable.iter().map(text).collect();
        self
    }
}

/// What headers of hooks may name: the environment without the keys of providers, which only the providers get.
fn header_env(settings: &Settings, variables: &Variables) -> HashMap<String, String> {
    let keys = settings.named.key_variables();
    let held = keys.keys().filter_map(|name| variables.get(name)).filter(|value| !value.is_empty());
    let held = held.collect::<Vec<_>>();
    let others = variables.iter().filter(|(name, value)| !keys.contains_key(*name) && !held.contains(value));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The variables that hooks get besides, as far as they are set. They are those that this process began with, since it hides
/// secrets in its own environment.
fn hook_values(settings: &Settings, variables: &Variables) -> Vec<(String, String)> {
    let others = header_env(settings, variables);
    hook_env(settings)
        .into_iter()
        .filter_map(|name| Some((name.clone(), others.get(&name)?.clone())))
        .collect()
}

/// The names of the variables that hooks get besides. The settings refuse those of providers' keys.
pub(crate) fn hook_env(settings: &Settings) -> Vec<String> {
    settings.hook_env.iter().map(|variable| variable.name.clone()).collect()
}

/// Keeps the machine awake while agents work, if the settings ask for it.
pub fn power(settings: &Settings) -> Option<KeepAwake> {
    let options = KeepAwakeOptions { blocks_sleep: settings.block_sleep, ..KeepAwakeOptions::default() };
    settings.keep_awake.then(|| KeepAwake::new(options))
}
