//! What a run works with beside its models, tools and store.

use std::collections::HashMap;
use std::sync::Arc;

use provost_config::{Problems, Settings, Settled};
use provost_event::RunPolicy;
use provost_harness::{HarnessCallback, Observers, Redactor};
use provost_power::{KeepAwake, KeepAwakeOptions};

use crate::external::passed;
use crate::{Variables, all_secrets, programs_of};

/// Observers, data for hooks, and what keeps the machine awake.
pub struct RunContext {
    /// What shows the run.
    pub(crate) callback: Arc<dyn HarnessCallback>,
    /// Further observers.
    pub(crate) observers: Observers,
    /// What headers of hooks may name.
    pub(crate) header_env: HashMap<String, String>,
    /// The names of the variables that hooks get besides.
    pub(crate) hook_env: Vec<String>,
    /// Keeps the machine awake.
    pub(crate) power: Option<KeepAwake>,
    /// Knows the keys, which judges aren't shown.
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) programs: Programs,
}

/// What external programs among a run's agents are run with.
pub struct Programs {
    /// Whether what they show is recorded.
    pub(crate) records: bool,
    /// The variables that their policies hand through, with what they hold.
    pub(crate) passed: Vec<(String, String)>,
    /// The user's own profiles.
    pub(crate) profiles: Vec<provost_terminal::Profile>,
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
            programs,
            header_env: header_env(settings, variables),
            hook_env: hook_env(settings),
            power: power(settings),
            redactor: Arc::new(Redactor::new(all_secrets(settings, variables))),
        }
    }
}

/// What headers of hooks may name: the environment without the keys of providers, which only the providers get.
fn header_env(settings: &Settings, variables: &Variables) -> HashMap<String, String> {
    let keys = settings.named.key_variables();
    let others = variables.iter().filter(|(name, _)| !keys.contains_key(*name));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
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
