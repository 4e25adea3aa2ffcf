//! What is set, where each value was given, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use provost_event::{Budget, Effort, Limits, SpawnBudget};

use crate::agent::Agent;
use crate::declare::{Setting, SettingDefault};
use crate::engine::EngineSettings;
use crate::errors::{Problem, Problems, Source};
use crate::exec::ExecSettings;
use crate::gateway::GatewaySettings;
use crate::goal::GoalSettings;
use crate::hook::{Hook, HookVariable};
use crate::imported::{Import, ImportedRequest, Placed};
use crate::named::{Named, Table};
use crate::notify::NotifySettings;
use crate::permissions::Permissions;
use crate::profiles::Profiles;
use crate::project::Project;
use crate::sandbox::SandboxSettings;
use crate::stop_hook::StopHook;
use crate::tools::ToolSettings;
use crate::value::Raw;
use crate::{file, imported, named, table};

/// What is set, from wherever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `provider/model`, or `script:FILE` as it was written.
    pub model: String,
    /// The user's own words for the system prompt.
    pub instructions: String,
    /// Whether agents are told of the place that they work in.
    pub environment: bool,
    /// Whether an agent's end is questioned; unset: unless its model is a script.
    pub final_check: Option<bool>,
    /// Whether agents are told what `AGENTS.md` and its like say.
    pub project_rules: bool,
    /// Tokens of an answer.
    pub output_tokens_max: Option<u32>,
    /// Whether the machine is kept awake while an agent works.
    pub keep_awake: bool,
    /// Whether requested sleep is held off too.
    pub block_sleep: bool,
    /// The engine's limits, the turns' included.
    pub limits: Limits,
    /// Milliseconds that a run waits for a provider while no user is at the terminal.
    pub outage_max_ms: u64,
    /// Milliseconds that a service may run at most.
    pub keep_running_max_ms: u64,
    /// The models that stand in for the model.
    pub fallback_models: Vec<String>,
    /// The run's limits.
    pub budget: Budget,
    /// How many agents may work at the same time, and how deep they may nest.
    pub spawn: SpawnBudget,
    /// What must be confirmed before an agent counts as done.
    pub goal: GoalSettings,
    /// Sub-agents with names.
    pub agents: Vec<Agent>,
    /// The model's reasoning effort.
    pub effort: Option<Effort>,
    /// Whether money may be limited though the model's price isn't known.
    pub allow_unpriced: bool,
    /// Providers and models.
    pub named: Named,
    /// The folder for runs, where it isn't the platform's.
    pub state_dir: Option<PathBuf>,
    /// The stop hooks.
    pub stop_hooks: Vec<StopHook>,
    /// The other hooks.
    pub hooks: Vec<Hook>,
    /// Whose hooks are imported.
    pub(crate) imports: Vec<Import>,
    /// Variables that hooks get besides, by name.
    pub hook_env: Vec<HookVariable>,
    /// The model of hooks that are models and name none.
    pub hook_model: Option<String>,
    /// The imported hooks.
    pub imported: Vec<Placed>,
    /// Which tool calls may be made.
    pub permissions: Permissions,
    /// What the built-in tools reach.
    pub tools: ToolSettings,
    /// What agents' programs and file tools may read, write and reach.
    pub sandbox: SandboxSettings,
    /// Further observers of a run.
    pub trace: Trace,
    /// External programs as agents.
    pub exec: ExecSettings,
    /// Where they call models.
    pub gateway: GatewaySettings,
    /// Who is told when a run needs the user or has stopped.
    pub notify: NotifySettings,
    /// The engine that runs are kept in, if they aren't kept on this machine.
    pub engine: EngineSettings,
    /// Whether a run's status is reported to the terminal that Provost runs in.
    pub terminal_reports: bool,
}

/// Further observers of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// A file, as it was written.
    pub file: Option<String>,
    /// The collector's address.
    pub otlp_endpoint: Option<String>,
    /// The variable that holds headers for it.
    pub otlp_headers_env: Option<String>,
    /// Whether it gets the contents of conversations.
    pub otlp_content: bool,
}

impl Settings {
    /// Settings before anything is set, the defaults included.
    pub(crate) fn blank() -> Self {
        Self {
            model: String::new(),
            instructions: String::new(),
            environment: true,
            final_check: None,
            project_rules: true,
            output_tokens_max: None,
            keep_awake: false,
            block_sleep: false,
            limits: Limits::default(),
            outage_max_ms: 28_800_000,
            keep_running_max_ms: 86_400_000,
            fallback_models: Vec::new(),
            budget: Budget::default(),
            spawn: SpawnBudget::default(),
            goal: GoalSettings::default(),
            agents: Vec::new(),
            effort: None,
            allow_unpriced: false,
            named: Named::default(),
            state_dir: None,
            stop_hooks: Vec::new(),
            hooks: Vec::new(),
            imports: Vec::new(),
            hook_env: Vec::new(),
            hook_model: None,
            imported: Vec::new(),
            permissions: Permissions::default(),
            tools: ToolSettings::default(),
            sandbox: SandboxSettings::default(),
            trace: Trace::default(),
            exec: ExecSettings::default(),
            gateway: GatewaySettings::default(),
            notify: NotifySettings::default(),
            engine: EngineSettings::default(),
            terminal_reports: true,
        }
    }

    /// Has the hooks of `import` taken, once.
    pub(crate) fn import(&mut self, import: Import) {
        if !self.imports.iter().any(|known| known.of == import.of) {
            self.imports.push(import);
        }
    }

    /// Whether an agent may ask for others at all.
    pub const fn delegates(&self) -> bool {
        self.spawn.max_agents > 1 && self.spawn.max_depth > 0
    }

    /// Whether an agent may give a goal that judges verify to those that it asks for.
    pub const fn goals_are_given(&self) -> bool {
        self.delegates() && !self.goal.judges.is_empty()
    }

    /// The sub-agents that an agent may ask for.
    pub fn offered_agents(&self) -> &[Agent] {
        if self.delegates() { &self.agents } else { &[] }
    }

    /// All hooks with where they stand, in the order in which they are asked.
    pub fn all_hooks(&self) -> Vec<Placed> {
        imported::all(self)
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The value, for people; holds no secret.
    pub shown: String,
    /// Where it was given.
    pub source: Source,
}

/// Everything that was found, right and wrong.
pub struct Loading {
    /// What is set.
    pub settings: Settings,
    /// Where each value came from, by key; what isn't set is missing.
    pub given: BTreeMap<String, Given>,
    /// What lists hold, item by item, by key.
    pub items: Vec<(String, Given)>,
    /// The name of the user's own file, which applies in every folder.
    pub user_file: String,
    /// Where that is, or would be.
    pub user_path: PathBuf,
    /// The files that were read, the weakest first.
    pub files: Vec<PathBuf>,
    /// What comes from the project's folder.
    pub project: Project,
    /// What was to be imported and can't be taken: where, what and why.
    pub skipped: Vec<String>,
    /// What of other programs' files could be imported and isn't.
    pub notices: Vec<String>,
    /// Variables that settings name, for a secret's value: they may have any name.
    pub(crate) variables_named: BTreeSet<String>,
    /// What of imported files needs the user's consent, besides hooks.
    pub(crate) imported_requests: Vec<ImportedRequest>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl Loading {
    pub(crate) fn defaults(project_folder: PathBuf) -> Self {
        let mut loading = Self {
            settings: Settings::blank(),
            given: BTreeMap::new(),
            items: Vec::new(),
            user_file: String::new(),
            user_path: PathBuf::new(),
            files: Vec::new(),
            project: Project::new(project_folder),
            skipped: Vec::new(),
            notices: Vec::new(),
            imported_requests: Vec::new(),
            problems: Vec::new(),
            variables_named: BTreeSet::new(),
        };
        for setting in table::settings() {
            if let Some(shown) = setting.take_default(&mut loading.settings) {
                loading.given.insert(setting.key(), Given { shown, source: Source::Default });
            }
        }
        loading
    }

    /// Takes a value, or notes what is wrong with it.
    pub(crate) fn take(&mut self, setting: &Setting<Settings>, raw: Raw<'_>, source: Source) {
        match setting.take(&mut self.settings, raw) {
            Ok(()) => {
                self.variables_named.extend(setting.variable_named(raw));
                if setting.is_list() {
                    self.items.push((setting.key(), Given { shown: raw.shown(), source }));
                } else {
                    let shown = without_password(&raw.shown());
                    self.given.insert(setting.key(), Given { shown, source });
                }
            }
            Err(what) => {
                let remedy = match (&source, setting.flag) {
                    (Source::Flag(_), Some(flag)) => {
                        format!("e.g. {flag} {}", behind_a_flag(setting.example))
                    }
                    _ => file::example(setting),
                };
                self.problems.push(Problem { source, key: setting.key(), what, remedy });
            }
        }
    }

    /// Takes a value for the field of a named table, or notes what is wrong with it.
    pub(crate) fn take_named<T: Table>(
        &mut self,
        name: &str,
        field: &Setting<T>,
        raw: Raw<'_>,
        source: Source,
    ) {
        let key = named::key(T::SECTION, name, field.name);
        let table = T::all(&mut self.settings.named).entry(name.to_owned()).or_default();
        match field.take(table, raw) {
            Ok(()) => {
                self.variables_named.extend(field.variable_named(raw));
                self.given.insert(key, Given { shown: without_password(&raw.shown()), source });
            }
            Err(what) => {
                let remedy = file::example(field);
                self.problems.push(Problem { source, key, what, remedy });
            }
        }
    }

    /// Where `key` was given.
    pub fn source(&self, key: &str) -> Source {
        self.given.get(key).map_or(Source::Default, |given| given.source.clone())
    }

    /// Where `item` of the list `key` was given.
    pub(crate) fn source_of_item(&self, key: &str, item: &str) -> Source {
        let found = self.items.iter().find(|(of, given)| of == key && given.shown == item);
        found.map_or_else(|| self.source(key), |(_, given)| given.source.clone())
    }

    /// The settings, if nothing is wrong with them.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn settled(self) -> Result<Settled, Problems> {
        if self.problems.is_empty() {
            let mut settings = self.settings;
            let is_given = self.given.contains_key("agent.max_turns");
            if !is_given && !settings.budget.is_unlimited() {
                settings.limits.turns_max = Limits::TURNS_UNLIMITED;
            }
            Ok(Settled {
                settings,
                project: self.project,
                skipped: self.skipped,
                notices: self.notices,
                given: self.given,
                items: self.items,
                user_file: self.user_file,
                user_path: self.user_path,
            })
        } else {
            Err(Problems(self.problems))
        }
    }
}

/// An example as a shell takes it: of a list its first item.
fn behind_a_flag(example: &str) -> String {
    let first =
        example.trim_start_matches('[').split("\", ").next().unwrap_or(example).trim_matches(['"', ']']);
    if first.contains(' ') { format!("\"{first}\"") } else { first.to_owned() }
}

/// All keys in the order of their declaration, each with what it means when it isn't set.
pub fn keys() -> impl Iterator<Item = (String, &'static str)> {
    table::settings().map(|setting| match setting.default {
        SettingDefault::Unset(words) => (setting.key(), words),
        SettingDefault::Is(_) | SettingDefault::Required => (setting.key(), ""),
    })
}

/// The keys in named tables that are set, with their values.
pub fn named_keys(given: &BTreeMap<String, Given>) -> impl Iterator<Item = (&String, &Given)> {
    named::given(given)
}

/// Settings that nothing is wrong with.
pub struct Settled {
    /// The settings.
    pub settings: Settings,
    /// What comes from the project's folder.
    pub project: Project,
    /// What was to be imported and can't be taken: where, what and why.
    pub skipped: Vec<String>,
    /// What of other programs' files could be imported and isn't.
    pub notices: Vec<String>,
    given: BTreeMap<String, Given>,
    items: Vec<(String, Given)>,
    user_file: String,
    user_path: PathBuf,
}

impl Settled {
    /// Whether this stands in the user's own file, which applies in every folder, and so can't be right for each
    /// of them.
    pub fn counts_everywhere(&self, source: &Source) -> bool {
        source.is_in(&self.user_file)
    }

    /// Where the MCP server `name` is set.
    pub fn source_of_server(&self, name: &str) -> Source {
        let prefix = crate::named::key(crate::mcp::MCP, name, "") + ".";
        let first = self.given.iter().find(|(key, _)| key.starts_with(&prefix));
        first.map_or(Source::Default, |(_, given)| given.source.clone())
    }

    /// Where the user's own settings file is, or would be.
    pub fn user_path(&self) -> &Path {
        &self.user_path
    }

    /// The profiles that count for this user.
    ///
    /// # Errors
    /// What is wrong with those of the user's own.
    pub fn profiles(&self) -> Result<Profiles, Problems> {
        Profiles::load(&self.user_path)
    }

    /// Whether `key` was given anywhere.
    pub fn is_set(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Where `key` was given; of a list, its first item.
    pub fn source(&self, key: &str) -> Source {
        let first = || self.items.iter().find(|(of, _)| of == key).map(|(_, given)| given);
        self.given.get(key).or_else(first).map_or(Source::Default, |given| given.source.clone())
    }

    /// Where `item` of the list `key` was given.
    pub fn source_of_item(&self, key: &str, item: &str) -> Source {
        let found = self.items.iter().find(|(of, given)| of == key && given.shown == item);
        found.map_or_else(|| self.source(key), |(_, given)| given.source.clone())
    }

    /// Whether `what`, or something of it, stands in a file other than the user's own.
    pub fn is_in_file_of_folder(&self, what: &str) -> bool {
        let is_of = |key: &str| key.starts_with(what) || what.starts_with(key);
        let stands = |source: &Source| matches!(source, Source::File(_)) && !self.counts_everywhere(source);
        self.given.iter().any(|(key, given)| is_of(key) && stands(&given.source))
    }
}

/// An address without what stands before its host.
pub fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.split_at_checked(host_end).and_then(|(host, path)| Some((host.rsplit_once('@')?.1, path))) {
        Some((host, path)) => format!("{scheme}://…@{host}{path}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Loading, SettingDefault, table};

    #[test]
    fn every_default_is_taken_and_the_limits_are_the_engines_own() {
        let loading = Loading::defaults("/".into());
        assert_eq!(loading.settings.limits, Limits::default());
        for setting in table::settings() {
            let has_default = matches!(setting.default, SettingDefault::Is(_));
            assert_eq!(loading.given.contains_key(&setting.key()), has_default, "{}", setting.key());
            assert!(!setting.words.is_empty() && !setting.example.is_empty(), "{}", setting.key());
            assert!(
                table::SECTIONS.iter().any(|(section, _)| *section == setting.section),
                "{}",
                setting.key()
            );
        }
    }
}
