//! Where settings come from: defaults, the user's file, the project's file, variables, flags; the last one wins.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use provost_event::SandboxMode;

use super::declare::From;
use super::errors::{ConfigError, Problem, Source, Spot};
use super::file::File;
use super::imported::{self, Importing};
use super::mcp::MCP;
use super::named::{self, MODELS, Named, PROVIDERS};
use super::nearest::nearest;
use super::project::Before;
use super::table::{SECTIONS, settings};
use super::value::Raw;
use super::{AvailableTools, Loading, UpdatedModels, contradictions, project};

/// The name of a project's file.
pub const FILE_NAME: &str = "provost.toml";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The platform's folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The user's own settings file.
    pub user_file: PathBuf,
    /// Where runs are kept unless the settings say otherwise.
    pub state: PathBuf,
}

impl Folders {
    /// The folders of this user on this platform.
    ///
    /// # Errors
    /// When the user has no home folder.
    pub fn of_platform() -> Result<Self, ConfigError> {
        let platform = etcetera::choose_base_strategy().map_err(|error| ConfigError::NoHome(error.into()))?;
        let state = platform.state_dir().unwrap_or_else(|| platform.data_dir()).join("provost");
        Ok(Self { user_file: platform.config_dir().join("provost").join("config.toml"), state })
    }
}

/// Which files count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's and the project's.
    Project,
    /// Only the user's: for what has to do with runs that are there already.
    User,
}

/// A value that was given on the command line, over all other layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The flag, as the setting declares it: `--model`.
    pub flag: &'static str,
    /// The value, as it was written.
    pub value: String,
}

impl Override {
    /// `value` behind `flag`.
    pub fn new(flag: &'static str, value: impl Into<String>) -> Self {
        Self { flag, value: value.into() }
    }
}

/// What to load.
pub struct Request<'a> {
    /// Which files count.
    pub scope: Scope,
    /// The folder from which the project's file is looked for, upwards.
    pub folder: &'a Path,
    /// A file that the user named; it takes the place of the project's and may set everything.
    pub file: Option<&'a Path>,
    /// The environment.
    pub variables: &'a BTreeMap<String, String>,
    /// What was given on the command line.
    pub flags: &'a [Override],
    /// The tools that permissions, hooks and agents may name.
    pub tools: AvailableTools<'a>,
    /// The mode of the sandbox where the user's settings have none: a project's file is compared with it.
    pub assumed_mode: SandboxMode,
}

impl<'a> Request<'a> {
    /// A request without a named file and without flags.
    pub const fn new(
        scope: Scope,
        folder: &'a Path,
        variables: &'a BTreeMap<String, String>,
        tools: AvailableTools<'a>,
    ) -> Self {
        Self { scope, folder, file: None, variables, flags: &[], tools, assumed_mode: SandboxMode::Off }
    }
}

/// Loads all layers. What is wrong is in the result.
///
/// # Errors
/// When there is no home folder.
pub fn load(request: &Request<'_>) -> Result<(Loading, Folders), ConfigError> {
    let folders = Folders::of_platform()?;
    Ok((load_in(request, &folders), folders))
}

/// As [`load`], with the user's folders as they are given.
pub fn load_in(request: &Request<'_>, folders: &Folders) -> Loading {
    let found = project_file(request, folders);
    let project = found.as_deref().and_then(Path::parent).map(Path::to_owned);
    let project = project.or_else(|| imported::project_folder(request.folder));
    let mut loading = Loading::defaults(project.unwrap_or_else(|| request.folder.to_owned()));
    loading.project.config = request.file.and_then(|file| std::path::absolute(file).ok());
    if request.file.is_none() && request.scope == Scope::Project {
        loading.project.expected.push(FILE_NAME.to_owned());
    }
    loading.user_path.clone_from(&folders.user_file);
    loading.user_file = called(&folders.user_file, request.folder);
    load_file(&mut loading, &folders.user_file, From::User, folders, request.folder);
    match UpdatedModels::load(&folders.user_file) {
        Ok(updated) => loading.settings.named.updated = updated.models,
        Err(problem) => loading.problems.push(problem),
    }
    let before = Before {
        permission: loading.settings.permissions.default_permission(),
        sandbox: loading.settings.sandbox.assuming(request.assumed_mode),
        assumed_mode: request.assumed_mode,
    };
    match request.file {
        Some(file) if !file.exists() => loading.problems.push(unreadable(file, "there is no such file")),
        Some(file) => load_file(&mut loading, file, From::User, folders, request.folder),
        None => {
            if let Some(file) = &found {
                load_file(&mut loading, file, From::Anywhere, folders, request.folder);
            }
        }
    }
    let folder = loading.project.folder.clone();
    loading.settings.hooks.iter_mut().for_each(|hook| hook.project = Some(folder.clone()));
    load_variables(&mut loading, request.variables);
    load_flags(&mut loading, request.flags);
    if request.scope == Scope::Project {
        imported::import(&mut loading, &Importing { folders, tools: request.tools });
    }
    loading.project.requests = project::requests(&loading, &before);
    loading.project.skipped.clone_from(&loading.skipped);
    contradictions::check(&mut loading, request.tools);
    loading.problems.extend(contradictions::keys_by_other_names(&loading, request.variables));
    loading
}

/// The project's file, if it counts: the nearest, upwards, that isn't the user's own.
fn project_file(request: &Request<'_>, folders: &Folders) -> Option<PathBuf> {
    if request.file.is_some() || request.scope != Scope::Project {
        return None;
    }
    let found = request.folder.ancestors().map(|folder| folder.join(FILE_NAME)).find(|file| is_there(file));
    found.filter(|file| *file != folders.user_file)
}

/// An empty file is none: a sandbox may cover the name with one.
fn is_there(file: &Path) -> bool {
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0)
}

fn load_file(loading: &mut Loading, path: &Path, from: From, folders: &Folders, folder: &Path) {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return loading.problems.push(unreadable(path, &error.to_string())),
    };
    loading.files.push(path.to_owned());
    if from == From::Anywhere {
        loading.project.has_read(FILE_NAME, &text);
    }
    let name = called(path, folder);
    let user_file = folders.user_file.display().to_string();
    File { name: &name, text: &text, from, user_file: &user_file }.load(loading);
}

/// The name of a file for people in `folder`.
fn called(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// The text of a settings file.
///
/// # Errors
/// When it can't be read, is too large, or isn't UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read_to_string(path)
}

fn unreadable(path: &Path, why: &str) -> Problem {
    let source = Source::File(Spot::at(&path.display().to_string(), "", 0));
    Problem { source, key: String::new(), what: format!("can't be read: {why}"), remedy: String::new() }
}

fn load_variables(loading: &mut Loading, variables: &BTreeMap<String, String>) {
    for setting in settings() {
        let is_set = |name: &String| variables.get(name).is_some_and(|value| !value.is_empty());
        if let Some(name) = setting.all_variables().into_iter().find(is_set)
            && let Some(value) = variables.get(&name)
        {
            loading.take(setting, Raw::Text(value), Source::Variable(name));
        }
    }
    load_provider_variables(loading, variables);
    refuse_unknown(loading, variables);
}

fn load_provider_variables(loading: &mut Loading, variables: &BTreeMap<String, String>) {
    let mut taken = Vec::new();
    for (variable, provider, field) in named::variables(&loading.settings.named) {
        let place = (provider, field.name);
        if let Some(value) = variables.get(&variable).filter(|value| !value.is_empty())
            && !taken.contains(&place)
        {
            loading.take_named(&place.0, field, Raw::Text(value), Source::Variable(variable));
            taken.push(place);
        }
    }
}

/// All variables that set something, given these providers.
pub fn setting_variables(named: &Named) -> Vec<String> {
    let of_providers = named::variables(named).into_iter().map(|(variable, ..)| variable);
    settings().flat_map(super::declare::Setting::all_variables).chain(of_providers).collect()
}

/// What to do with a variable that is like no setting.
const UNSET_OR_NAMED: &str =
    "unset it; if it has a secret, name it in a setting such as engine.identity_key_env";

/// A misspelt limit in a variable must not be no limit at all.
fn refuse_unknown(loading: &mut Loading, variables: &BTreeMap<String, String>) {
    let known = setting_variables(&loading.settings.named);
    let mut named = loading.variables_named.clone();
    named.extend(loading.settings.named.mcp.values().flat_map(super::mcp::McpTable::variables));
    let sections =
        SECTIONS.iter().map(|(section, _)| *section).chain([PROVIDERS, MODELS, MCP]).map(str::to_uppercase);
    let prefixes = sections.map(|section| format!("PROVOST_{section}_")).collect::<Vec<_>>();
    for name in variables.keys().filter(|name| !known.contains(name) && !named.contains(*name)) {
        if !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let remedy = nearest(name, known.iter().cloned()).map(|known| format!("did you mean {known}?"));
        let remedy = remedy.unwrap_or_else(|| UNSET_OR_NAMED.to_owned());
        loading.problems.push(no_setting(Source::Variable(name.clone()), remedy));
    }
}

fn load_flags(loading: &mut Loading, flags: &[Override]) {
    for Override { flag, value } in flags {
        match settings().find(|setting| setting.flag == Some(flag)) {
            Some(setting) => loading.take(setting, Raw::Text(value), Source::Flag(flag)),
            None => loading.problems.push(no_setting(Source::Flag(flag), String::new())),
        }
    }
}

fn no_setting(source: Source, remedy: String) -> Problem {
    Problem { source, key: String::new(), what: "there is no such setting".to_owned(), remedy }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{AvailableTools, Folders, Loading, Override, Request, Scope, load_in};
    use crate::{TrustState, TrustStore, grant, trust_in};

    fn loaded(folder: &std::path::Path) -> Loading {
        let folders = Folders { user_file: folder.join("user.toml"), state: folder.join("state") };
        let variables = BTreeMap::from([("PROVOST_BUDGET_TOKENS".to_owned(), "7000".to_owned())]);
        load_in(&Request::new(Scope::Project, folder, &variables, AvailableTools::default()), &folders)
    }

    #[test]
    fn a_variable_that_a_setting_names_for_a_secret_may_have_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[engine]\nidentity_key_env = \"PROVOST_ENGINE_KEY\"\n\
                    [providers.mine]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"PROVOST_MODELS_KEY\"\n\
                    [mcp.issues]\nurl = \"http://127.0.0.1:2\"\nheaders_env = { Authorization = \"PROVOST_MCP_LOGIN\" }\n";
        std::fs::write(folder.path().join("user.toml"), text).unwrap();
        let names = ["PROVOST_ENGINE_KEY", "PROVOST_MODELS_KEY", "PROVOST_MCP_LOGIN", "PROVOST_ENGINE_KYE"];
        let variables = BTreeMap::from(names.map(|name| (name.to_owned(), "secret".to_owned())));
        let folders =
            Folders { user_file: folder.path().join("user.toml"), state: folder.path().join("state") };
        let request = Request::new(Scope::User, folder.path(), &variables, AvailableTools::default());
        let problems = load_in(&request, &folders).settled().map(drop).unwrap_err().to_string();
        assert_eq!(
            problems,
            "PROVOST_ENGINE_KYE: there is no such setting; did you mean PROVOST_ENGINE_URL?"
        );
    }

    #[test]
    fn a_variable_has_one_run_without_the_remote_that_a_file_names() {
        let folder = tempfile::tempdir().unwrap();
        let user_file = folder.path().join("user.toml");
        std::fs::write(&user_file, "[engine]\ngit_remote = \"origin\"\n").unwrap();
        let folders = Folders { user_file, state: folder.path().join("state") };
        let remote = |value: &str| {
            let variables = BTreeMap::from([("PROVOST_ENGINE_GIT_REMOTE".to_owned(), value.to_owned())]);
            let request = Request::new(Scope::User, folder.path(), &variables, AvailableTools::default());
            load_in(&request, &folders).settings.engine.git_remote
        };
        assert_eq!((remote("none"), remote("")), (None, Some("origin".to_owned())));
    }

    #[test]
    fn each_value_has_its_layer_and_each_problem_its_place_and_remedy() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("user.toml"), "[agent]\nmodel = \"a/b\"\n").unwrap();
        let text = "[budget]\ntokens = 1\n\n[agent]\n  modle = \"c/d\"\n";
        std::fs::write(folder.path().join("provost.toml"), text).unwrap();
        let loading = loaded(folder.path());
        assert_eq!((loading.settings.model.as_str(), loading.settings.budget.tokens), ("a/b", Some(7000)));
        let sources = ["agent.model", "budget.tokens", "limits.tool_timeout"];
        assert_eq!(
            sources.map(|key| loading.source(key).to_string()),
            ["user.toml:2:1", "PROVOST_BUDGET_TOKENS", "default"]
        );
        let problems = loading.settled().map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            problems,
            "provost.toml:5:3: agent.modle: there is no such setting; did you mean `agent.model`?"
        );
    }

    #[test]
    fn consent_counts_for_the_exact_files_that_were_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("provost.toml");
        let store = TrustStore::new(&folder.path().join("state"));
        let with = |command: &str| {
            let text = format!("[[stop_hooks]]\nname = \"x\"\ncommand = \"{command}\"\n");
            std::fs::write(&file, text).unwrap();
            loaded(folder.path()).settled().unwrap().project
        };
        let project = with("true");
        let TrustState::Needed(needed) = trust_in(&store, &project).unwrap() else { panic!("trusted") };
        assert!(needed.listed().contains("provost.toml:1:1"), "{}", needed.listed());
        let at = provost_event::Timestamp(1);
        grant(&store, &project, at).unwrap();
        assert_eq!(trust_in(&store, &project).unwrap(), TrustState::Trusted { at });
        assert!(matches!(trust_in(&store, &with("false")).unwrap(), TrustState::Needed(_)));
    }

    #[test]
    fn a_flag_that_is_no_setting_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let folders = Folders { user_file: folder.join("user.toml"), state: folder.join("state") };
        let variables = BTreeMap::new();
        let request = Request::new(Scope::Project, folder, &variables, AvailableTools::default());
        let flags = [Override::new("--dollars", "3")];
        let loading = load_in(&Request { flags: &flags, ..request }, &folders);
        let problems = loading.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(problems, ["--dollars: there is no such setting"]);
    }
}
