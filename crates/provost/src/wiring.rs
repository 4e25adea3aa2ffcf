//! From settings to what the harness works with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use provost_event::{AgentPolicy, ModelPolicy, Pace, RunPolicy, StopHookPolicy};
use provost_harness::{
    AgentHarness, HarnessCallback, HarnessDeps, Model, Models, SystemClock, Toolbox, system_prompt,
};
use provost_llm::{AnthropicSettings, ProviderSettings, ResolveError, catalog, resolve};
use provost_store::{LocalHome, SqliteStore};
use secrecy::SecretString;

use crate::settings::{Folders, Problem, Problems, Settings, Settled, Source};

/// The environment, as text.
pub(crate) type Variables = BTreeMap<String, String>;

const SCRIPT: &str = "script:";
const DATABASE: &str = "provost.db";
const TRANSCRIPTS: &str = "transcripts";

/// The process's environment.
pub(crate) fn variables() -> Variables {
    let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// Where runs are kept.
pub(crate) struct Place {
    folder: PathBuf,
}

impl Place {
    /// The folder that `settings` or the platform say.
    pub(crate) fn new(settings: &Settings, folders: &Folders) -> Self {
        Self { folder: settings.state_dir.clone().unwrap_or_else(|| folders.state.clone()) }
    }

    /// Opens the home in it; makes the folder if needed.
    ///
    /// # Errors
    /// When that can't be done.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<LocalHome>> {
        let path = self.folder.join(DATABASE);
        let open = || LocalHome::new(SqliteStore::open(&path)?, Arc::new(SystemClock));
        let home = open().with_context(|| format!("can't open the store in {}", self.folder.display()))?;
        Ok(Arc::new(home))
    }

    /// A harness over `home` with the built-in tools and one model.
    pub(crate) fn harness(
        &self,
        home: Arc<LocalHome>,
        model: Chosen,
        callback: Arc<dyn HarnessCallback>,
    ) -> AgentHarness {
        AgentHarness::new(HarnessDeps {
            home,
            models: Models::new().with(model.policy.name, model.model),
            tools: tools(),
            stop_hooks: Vec::new(),
            callback,
            clock: Arc::new(SystemClock),
            transcripts: Some(self.folder.join(TRANSCRIPTS)),
        })
    }
}

fn tools() -> Toolbox {
    provost_tools::builtin()
}

/// A model, and what a policy says of it.
pub(crate) struct Chosen {
    /// The model.
    pub(crate) model: Arc<dyn Model>,
    /// Its name, window, cap and price.
    pub(crate) policy: ModelPolicy,
}

/// What the settings say of providers, with the keys from the environment.
pub(crate) fn providers(settings: &Settings, variables: &Variables) -> ProviderSettings {
    let key_env = settings.anthropic_key_env.clone();
    let key = variables.get(&key_env).filter(|key| !key.trim().is_empty());
    ProviderSettings {
        anthropic: AnthropicSettings {
            base_url: settings.anthropic_base_url.clone(),
            key: key.map(|key| SecretString::from(key.clone())),
            key_env,
        },
        // Scripts have absolute paths by now.
        ..ProviderSettings::new("/")
    }
}

/// The model's name with a script's path made absolute: relative to the file that named it, else to `folder`.
pub(crate) fn model_name(settings: &Settings, source: &Source, folder: &Path) -> String {
    let Some(script) = settings.model.strip_prefix(SCRIPT) else { return settings.model.clone() };
    let beside = match source {
        Source::File(spot) => folder.join(&spot.file).parent().map(Path::to_owned),
        Source::Default | Source::Variable(_) | Source::Flag(_) => std::env::current_dir().ok(),
    };
    let path = beside.unwrap_or_else(|| folder.to_owned()).join(script);
    format!("{SCRIPT}{}", path.display())
}

/// The model that the settings name, with their cap on its answers.
///
/// # Errors
/// [`Problems`] that name the setting.
pub(crate) fn choose_model(
    settled: &Settled,
    folder: &Path,
    variables: &Variables,
) -> Result<Chosen, Problems> {
    let settings = &settled.settings;
    let source = settled.source("agent.model");
    let name = model_name(settings, &source, folder);
    let problem = |key: &str, what: String, remedy: &str| {
        Problems(vec![Problem {
            source: settled.source(key),
            key: key.to_owned(),
            what,
            remedy: remedy.to_owned(),
        }])
    };
    let resolved = resolve(&name, &providers(settings, variables));
    let (model, mut policy) = resolved.map_err(|error| problem("agent.model", words(&error), ""))?;
    if let Some(cap) = settings.output_tokens_max {
        if let Some(most) =
            catalog::find(&name).map(|facts| facts.output_tokens_max).filter(|most| cap > *most)
        {
            let what = format!("{name} gives at most {most} (is {cap})");
            return Err(problem("agent.output_tokens_max", what, "lower it, or leave it out"));
        }
        policy.output_tokens_max = cap;
    }
    if settings.budget.money.is_some() && policy.price.is_none() {
        let what = format!("limits money, but the price of {name} isn't known");
        return Err(problem("budget.usd", what, "limit tokens instead, e.g. tokens = 2_000_000"));
    }
    Ok(Chosen { model, policy })
}

/// An error of `resolve` with its causes.
pub(crate) fn words(error: &ResolveError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// The policy of a new run in `workspace`.
pub(crate) fn policy(settings: &Settings, model: ModelPolicy, workspace: &Path) -> RunPolicy {
    let stop_hooks = settings.stop_hooks.iter().map(|hook| StopHookPolicy {
        name: hook.name.clone(),
        command: Some(hook.command.clone()),
        timeout_ms: hook.timeout_secs.saturating_mul(1_000),
    });
    RunPolicy {
        budget: settings.budget,
        agent: AgentPolicy {
            model,
            system_prompt: system_prompt(workspace, &settings.instructions),
            tools: tools().specs(),
            workspace: workspace.to_owned(),
            limits: settings.limits,
            stop_hooks: stop_hooks.collect(),
            pace: Pace::Free,
        },
    }
}
