//! From settings to the parts that the harness works with.

mod afford;
mod again;
mod choose;
mod default_limit;
#[cfg(test)]
mod effects;
mod external;
mod goals;
mod preamble;
mod retire;
mod team;
mod today;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use provost_backend::{Damage, EmbeddedBackend};
use provost_config::TrustStore;
use provost_config::{Folders, Hook, Named, Problems, Settings, Settled, Source, setting_variables};
use provost_event::{RunId, RunPolicy};
use provost_external::{Drivers, DriversOptions};
use provost_harness::{
    AgentHarness, Backend, BackendError, HarnessCallback, HarnessDeps, Models, NoPower, Observers, Power,
    Redactor, SystemClock, ToolRegistry,
};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use provost_llm::{Provider, ProviderSettings};
use provost_power::{KeepAwake, KeepAwakeOptions};
use provost_sqlite::SqliteStore;
use secrecy::SecretString;

use crate::observers::header_values;

pub(crate) use again::choose_again;
pub(crate) use choose::{Choosing, Chosen, choose_model, retiring, words};
pub(crate) use default_limit::{UNPRICED_REMEDY, default_limit, unpriced_beside_priced, unpriced_in_words};
pub(crate) use external::{
    Manner, Wanted as WantedProgram, external_policy, is_program, passed, profile_of, programs_problems,
};
pub(crate) use preamble::{Places, rules_of, with_preamble};
pub(crate) use team::{
    Judges, Team, available_tools, doubts, frozen_models, known_tool, known_tools, misplaced, models_of,
    note_once, outage_max_ms, policy, programs_of, unaffordable, wanted,
};

pub(crate) use today::{Before, Today, given_flags, today, today_in_part, with_file, with_flag};

/// The environment, as text.
pub(crate) type Variables = BTreeMap<String, String>;

const SCRIPT: &str = "script:";
const RECORD: &str = "record:";
const REPLAY: &str = "replay:";
const DATABASE: &str = "provost.db";
const TRANSCRIPTS: &str = "transcripts";
const OBSERVERS: &str = "observers";
const LONG_TEXTS: &str = "hook-texts";
const WORKTREES: &str = "worktrees";
/// The folder where the guards of running programs are written down.
const GUARDS: &str = "guards";
const TERMINALS: &str = "terminals";

/// What the process was started with, read before its secrets are hidden.
static STARTED_WITH: OnceLock<Variables> = OnceLock::new();

/// The process's environment, as it was at the start.
pub(crate) fn variables() -> Variables {
    STARTED_WITH.get_or_init(read_variables).clone()
}

/// Keeps the values of variables that by their names hold secrets from the agent's own commands, which could read
/// them where the system shows this process's environment. Called before anything else runs.
pub(crate) fn hide_secrets() {
    let _ = STARTED_WITH.get_or_init(read_variables);
    let own = setting_variables(&Named::default());
    // Variables with headers, such as those for telemetry, hold tokens.
    let holds_headers = |name: &str| name.to_uppercase().contains("HEADERS");
    provost_process::hide_variables(|name| is_secret(name, &own) || holds_headers(name));
}

fn read_variables() -> Variables {
    let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// Where runs are kept.
pub(crate) struct StateDir {
    folder: PathBuf,
}

impl StateDir {
    /// The folder that `settings` or the platform say.
    pub(crate) fn new(settings: &Settings, folders: &Folders) -> Self {
        Self { folder: settings.state_dir.clone().unwrap_or_else(|| folders.state.clone()) }
    }

    /// What the user trusts.
    pub(crate) fn trust(&self) -> TrustStore {
        TrustStore::new(&self.folder)
    }

    /// Opens the backend in it; makes the folder if needed.
    ///
    /// # Errors
    /// When that can't be done.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<dyn Backend>> {
        Ok(self.open_store()?)
    }

    /// The same, to import and remove runs, which its store does itself.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_store(&self) -> anyhow::Result<Arc<EmbeddedBackend>> {
        let path = self.folder.join(DATABASE);
        let open = || backend_over(SqliteStore::open(&path)?);
        let backend = open().with_context(|| format!("can't open the store in {}", self.folder.display()))?;
        Ok(opened(backend))
    }

    /// Opens the backend in it to look, also where nothing can be written; makes the folder if needed and possible.
    ///
    /// # Errors
    /// When there is nothing that can be read.
    pub(crate) fn open_to_read(&self) -> anyhow::Result<Arc<dyn Backend>> {
        Ok(opened(self.read_only()?))
    }

    /// The same, to show logs: of a damaged one the part before the damage, and then an error.
    ///
    /// # Errors
    /// As [`open_to_read`](Self::open_to_read).
    pub(crate) fn open_to_show(&self) -> anyhow::Result<Arc<dyn Backend>> {
        Ok(opened(self.read_only()?.noting_damage()))
    }

    fn read_only(&self) -> anyhow::Result<EmbeddedBackend> {
        let path = self.folder.join(DATABASE);
        let open = || {
            // The reason why it can't be written is more useful than why it can't be read.
            let store = SqliteStore::open(&path)
                .or_else(|error| SqliteStore::open_to_read(&path).map_err(|_| error))?;
            backend_over(store)
        };
        open().with_context(|| format!("can't open the store in {}", self.folder.display()))
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    /// Bytes of the database.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(self.database()).map_or(0, |facts| facts.len())
    }

    /// Removes a run's files beside the store: transcripts for hooks, recordings, reports on observers. Returns
    /// their bytes.
    pub(crate) fn remove_files_of(&self, run: RunId) -> u64 {
        let folders = [TRANSCRIPTS, OBSERVERS, TERMINALS].map(|name| self.folder.join(name));
        folders.iter().map(|folder| crate::commands::remove_files(folder, run)).sum()
    }

    /// Where agents get worktrees of their own.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.folder.join(WORKTREES)
    }

    /// Where files about the terminals of external programs are kept.
    pub(crate) fn terminals(&self) -> PathBuf {
        self.folder.join(TERMINALS)
    }

    /// Where is kept how observers fared.
    pub(crate) fn observers(&self) -> PathBuf {
        self.folder.join(OBSERVERS)
    }

    /// Ends what a killed Provost has left below guards that were stopped, and has the guards of this process
    /// recorded.
    fn end_leftovers(&self) {
        let guards = self.folder.join(GUARDS);
        match provost_process::end_leftovers(&guards) {
            Ok(0) => {}
            Ok(count) => crate::output::tell(&format!(
                "note: processes that a killed Provost had left were ended: {count}"
            )),
            Err(error) => crate::output::tell(&format!(
                "warning: what a killed Provost may have left isn't known: {error}"
            )),
        }
        provost_process::keep_ledger(guards);
    }

    /// A harness over `backend` with the built-in tools, these models, and programs as hooks.
    pub(crate) fn harness(
        &self,
        backend: Arc<dyn Backend>,
        models: Models,
        around: RunContext,
    ) -> AgentHarness {
        self.end_leftovers();
        let programs = ProgramHooks::new(ProgramHooksOptions {
            clock: Arc::new(SystemClock),
            spill: Some(self.folder.join(LONG_TEXTS)),
            header_env: around.header_env,
            redactor: Arc::clone(&around.redactor),
            extra_env: Vec::new(),
        });
        let power: Arc<dyn Power> = match around.power {
            Some(power) => Arc::new(power),
            None => Arc::new(NoPower),
        };
        let drivers = Drivers::new(DriversOptions {
            folder: self.terminals(),
            records: around.programs.records,
            env: external::environment(),
            passed: around.programs.passed,
            profiles: around.programs.profiles,
        });
        AgentHarness::new(HarnessDeps {
            external: Arc::new(drivers),
            callback: around.callback,
            observers: around.observers,
            hook_programs: Arc::new(programs),
            power,
            redactor: around.redactor,
            transcripts: Some(self.folder.join(TRANSCRIPTS)),
            ..HarnessDeps::new(backend, models, tools())
        })
    }
}

/// A backend over a store; reports what the store has lost.
fn backend_over(store: SqliteStore) -> Result<EmbeddedBackend, BackendError> {
    if let Some(loss) = store.loss()? {
        crate::output::tell(&format!("warning: {loss}; `provost doctor --store` says more"));
    }
    EmbeddedBackend::new(store, Arc::new(SystemClock))
}

/// The backend that this process has opened.
static OPENED: OnceLock<Arc<EmbeddedBackend>> = OnceLock::new();

fn opened(backend: EmbeddedBackend) -> Arc<EmbeddedBackend> {
    let backend = Arc::new(backend);
    // A command opens one. Were it to open another, the next process to open the store would settle that one.
    let _ = OPENED.set(Arc::clone(&backend));
    backend
}

/// Prepares the store for copying, and reports what of it couldn't be read. Returns whether all of it could.
pub(crate) async fn leave_store() -> bool {
    let Some(backend) = OPENED.get() else { return true };
    // Where it can't be written, it is left with its log of writes.
    let _ = backend.settle().await;
    let noted = backend.noted_damage();
    for Damage { actor, seq, message } in &noted {
        crate::output::tell(&format!(
            "error: the log of {actor} can't be read at entry {seq}: {message}; only what stands before it is shown"
        ));
    }
    noted.is_empty()
}

/// Observers, data for hooks, and what keeps the machine awake.
pub(crate) struct RunContext {
    /// What shows the run.
    callback: Arc<dyn HarnessCallback>,
    /// Further observers.
    observers: Observers,
    /// What headers of hooks may name.
    header_env: HashMap<String, String>,
    /// Keeps the machine awake.
    power: Option<KeepAwake>,
    /// Knows the keys, which judges aren't shown.
    redactor: Arc<Redactor>,
    programs: Programs,
}

/// What external programs among a run's agents are run with.
pub(crate) struct Programs {
    /// Whether what they show is recorded.
    records: bool,
    /// The variables that their policies hand through, with what they hold.
    passed: Vec<(String, String)>,
    /// The user's own profiles.
    profiles: Vec<provost_terminal::Profile>,
}

impl Programs {
    /// Those of a run with this policy.
    ///
    /// # Errors
    /// What is wrong with the user's own profiles, if the run has programs at all.
    pub(crate) fn of(policy: &RunPolicy, settled: &Settled, variables: &Variables) -> Result<Self, Problems> {
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
    pub(crate) fn new(
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

/// Keeps the machine awake while agents work, if the settings ask for it.
pub(crate) fn power(settings: &Settings) -> Option<KeepAwake> {
    let options = KeepAwakeOptions { blocks_sleep: settings.block_sleep, ..KeepAwakeOptions::default() };
    settings.keep_awake.then(|| KeepAwake::new(options))
}

fn tools() -> ToolRegistry {
    provost_tools::builtin()
}

/// The providers of the settings, with the keys from the environment.
pub(crate) fn providers(settings: &Settings, variables: &Variables) -> ProviderSettings {
    // Scripts and recordings have absolute paths by now.
    let mut all = ProviderSettings::new("/");
    for (name, table) in &settings.named.providers {
        all.providers = all.providers.with(table.provider(name));
    }
    all.catalog = all.catalog.updated(&settings.named.updated);
    for (name, table) in &settings.named.models {
        all.catalog = all.catalog.with(table.facts(name));
    }
    for provider in all.providers.iter() {
        if let Some(key) = key_of(provider, settings, variables) {
            all.keys.insert(provider.name.clone(), key);
        }
    }
    all.secrets = secrets(settings, variables);
    all
}

/// The provider's key: from its variable, else from its file. A file that can't be read holds none.
fn key_of(provider: &Provider, settings: &Settings, variables: &Variables) -> Option<SecretString> {
    let is_there = |key: &String| !key.trim().is_empty();
    let of_variable = provider.key_env.as_ref().and_then(|name| variables.get(name)).cloned();
    let file = settings.named.providers.get(&provider.name).and_then(|table| table.key_file.as_ref());
    let of_file = || std::fs::read_to_string(file?).ok().filter(is_there);
    let key = of_variable.filter(is_there).or_else(of_file)?;
    Some(SecretString::from(key))
}

/// The values of variables that by their names hold secrets.
fn secrets(settings: &Settings, variables: &Variables) -> Vec<SecretString> {
    let own = setting_variables(&settings.named);
    let values = variables.iter().filter(|(name, _)| is_secret(name, &own)).map(|(_, value)| value.clone());
    values.map(SecretString::from).collect()
}

/// Whether a variable by its name holds a secret. `own` are those that are settings: a number of tokens is none.
fn is_secret(name: &str, own: &[String]) -> bool {
    const WORDS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    WORDS.iter().any(|word| name.to_uppercase().contains(word)) && !own.iter().any(|known| known == name)
}

/// All values that must not get into what is written or sent beside the log.
pub(crate) fn all_secrets(settings: &Settings, variables: &Variables) -> Vec<SecretString> {
    let providers = providers(settings, variables);
    let tables = settings.named.providers.values();
    // A file counts also where a variable stands before it.
    let of_files = tables.filter_map(|table| std::fs::read_to_string(table.key_file.as_ref()?).ok());
    let of_headers = settings.hooks.iter().flat_map(Hook::header_variables);
    let of_headers = of_headers.filter_map(|name| variables.get(name)).cloned();
    let of_collector = settings.trace.otlp_headers_env.as_ref().and_then(|name| variables.get(name));
    let of_collector = of_collector.into_iter().flat_map(|text| header_values(text.as_str()));
    let more = of_files.chain(of_headers).chain(of_collector).map(SecretString::from);
    providers.keys.into_values().chain(providers.secrets).chain(more).collect()
}

/// The name of `model` with the paths in it made absolute: relative to the file that named it, else to the current
/// folder.
fn model_name(model: &str, source: &Source, folder: &Path) -> String {
    with_absolute_paths(model, &beside(source, folder))
}

/// The folder that a path is relative to: that of the file that names it, else the current one.
pub(crate) fn beside(source: &Source, folder: &Path) -> PathBuf {
    let beside = match source {
        Source::File(spot) => folder.join(&spot.file).parent().map(Path::to_owned),
        Source::Default | Source::Variable(_) | Source::Flag(_) => std::env::current_dir().ok(),
    };
    beside.unwrap_or_else(|| folder.to_owned())
}

pub(crate) fn with_absolute_paths(model: &str, beside: &Path) -> String {
    let file = |kind: &str| Some(format!("{kind}{}", beside.join(model.strip_prefix(kind)?).display()));
    let recorded = || {
        let (file, recorded) = model.strip_prefix(RECORD)?.split_once('=')?;
        let file = beside.join(file);
        Some(format!("{RECORD}{}={}", file.display(), with_absolute_paths(recorded, beside)))
    };
    file(SCRIPT).or_else(|| file(REPLAY)).or_else(recorded).unwrap_or_else(|| model.to_owned())
}

/// The model that is really asked: a recording's is the one that is recorded.
pub(crate) fn asked(model: &str) -> &str {
    let recorded = model.strip_prefix(RECORD).and_then(|rest| rest.split_once('='));
    recorded.map_or(model, |(_, recorded)| asked(recorded))
}

#[cfg(test)]
mod tests {
    use super::{Named, is_secret, setting_variables};

    #[test]
    fn what_sounds_like_a_secret_is_one_unless_it_is_a_setting() {
        let own = setting_variables(&Named::default());
        for name in ["ANTHROPIC_API_KEY", "github_token", "PROVOST_SERVER_TOKEN", "PROVOST_BUDGET_TOKENS_2"] {
            assert!(is_secret(name, &own), "{name}");
        }
        for name in [
            "PROVOST_BUDGET_TOKENS",
            "PROVOST_AGENT_OUTPUT_TOKENS_MAX",
            "PROVOST_PROVIDERS_OPENAI_FIRST_TOKEN_SECS",
        ] {
            assert!(own.iter().any(|known| known == name), "{name} is a setting");
            assert!(!is_secret(name, &own), "{name}");
        }
        assert!(!is_secret("PATH", &own));
    }
}
