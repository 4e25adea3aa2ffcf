//! What comes from a project's folder, which may be untrusted: its files, and what they request.

use std::path::PathBuf;

use provost_event::{HookProgram, Permission, SandboxMode};

use super::errors::Source;
use super::hook::runs;
use super::sandbox::{self, SandboxSettings};
use super::{FILE_NAME, Given, Loading};

/// What was read in the project's folder, once: what is checked is what is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder, without symlinks where it can be told.
    pub folder: PathBuf,
    /// The files.
    pub files: Vec<ProjectFile>,
    /// What is done because of them that needs the user's consent.
    pub requests: Vec<ProjectRequest>,
    /// What its files have that isn't in force, the guards first.
    pub skipped: Vec<String>,
    /// The files that are read if they are there, besides those that were: what counts by its presence.
    pub(crate) expected: Vec<String>,
    /// The file that the user named in the place of the project's, absolute.
    pub config: Option<PathBuf>,
}

/// A file of the project's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path in the folder.
    pub name: String,
    /// The BLAKE3 of its bytes, in hexadecimal digits.
    pub hash: String,
}

/// Something that a project may not have without consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRequest {
    /// The file that requests it.
    pub file: String,
    /// The place.
    pub place: String,
    /// What it is.
    pub what: String,
    /// What would run, or what is allowed; as it was written.
    pub body: String,
}

impl Project {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let folder = folder.canonicalize().unwrap_or(folder);
        Self {
            folder,
            files: Vec::new(),
            requests: Vec::new(),
            skipped: Vec::new(),
            expected: Vec::new(),
            config: None,
        }
    }

    /// Whether the file called `name`, in the folder or in one above, is one that is read if it is there.
    pub(crate) fn expects(&self, name: &str) -> bool {
        self.expected.iter().any(|expected| {
            name.strip_suffix(expected.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }

    /// Whether that file isn't there, or couldn't be read.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.expects(name) && !self.files.iter().any(|file| file.name == name)
    }

    /// Notes that the file called `name` was read with this `text`.
    pub(crate) fn has_read(&mut self, name: &str, text: &str) {
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        self.files.push(ProjectFile { name: name.to_owned(), hash });
    }
}

/// What counted before the project's file was read.
pub(crate) struct Before {
    /// The rule for calls that no pattern matched.
    pub(crate) permission: Permission,
    pub(crate) sandbox: SandboxSettings,
    /// The mode of the sandbox where settings have none.
    pub(crate) assumed_mode: SandboxMode,
}

/// What the project's files request that needs consent: to run programs, to send data somewhere, to let an agent
/// do what it couldn't do without them.
pub(crate) fn requests(loading: &Loading, before: &Before) -> Vec<ProjectRequest> {
    let without = before.permission;
    let mut all = stop_hooks(loading);
    all.extend(hooks(loading));
    all.extend(patterns(loading, without));
    all.extend(default(loading, without));
    all.extend(variables(loading));
    all.extend(imported(loading));
    all.extend(programs(loading));
    all.extend(recordings(loading));
    all.extend(super::mcp::requests(loading));
    all.extend(sandbox::widenings(loading, before));
    all
}

/// Models whose answers are recorded: that writes a file, which may be outside of the project.
fn recordings(loading: &Loading) -> Vec<ProjectRequest> {
    const FALLBACKS: &str = "agent.fallback_models";
    let settings = &loading.settings;
    let judges_key = settings.goal.judges_key();
    let mut named = vec![(&settings.model, loading.source("agent.model"))];
    named.extend(settings.fallback_models.iter().map(|name| (name, loading.source_of_item(FALLBACKS, name))));
    named.extend(settings.goal.judges.iter().map(|name| (name, loading.source_of_item(&judges_key, name))));
    for agent in &settings.agents {
        named.extend(agent.model.iter().map(|name| (name, agent.source_of("model"))));
        named.extend(agent.judge.iter().map(|name| (name, agent.source_of("judge"))));
        let fallbacks = agent.fallback_models.iter().flatten();
        named.extend(fallbacks.map(|name| (name, agent.source_of("fallback_models"))));
    }
    let is_its = |(name, source): &(&String, Source)| name.starts_with("record:") && source.is_projects();
    let request = |(name, source): (&String, Source)| ProjectRequest {
        file: FILE_NAME.to_owned(),
        place: source.to_string(),
        what: "writes what a model says to a file".to_owned(),
        body: name.clone(),
    };
    named.into_iter().filter(is_its).map(request).collect()
}

/// Variables for programs, which may hold keys, and folders that tools reach.
fn variables(loading: &Loading) -> Vec<ProjectRequest> {
    let what = |key: &str| match key {
        "exec.env" => Some("is handed to programs that work as agents (exec.env)"),
        "tools.env" => Some("is handed to the agents' commands (tools.env)"),
        "tools.roots" => Some("is reached by the agents' file tools (tools.roots)"),
        _ => None,
    };
    let of_settings = loading
        .items
        .iter()
        .filter_map(|(key, given)| Some((given.source.clone(), what(key)?, given.shown.clone())));
    let of_hooks = loading.settings.hook_env.iter().map(|variable| {
        let source = variable.source.clone();
        let source = source.unwrap_or_else(|| loading.source_of_item("hooks.env", &variable.name));
        (source, "is handed to all hooks (hooks.env)", variable.name.clone())
    });
    let request = |(source, what, body): (Source, &str, String)| ProjectRequest {
        file: FILE_NAME.to_owned(),
        place: source.to_string(),
        what: what.to_owned(),
        body,
    };
    of_settings.chain(of_hooks).filter(|(source, ..)| source.is_projects()).map(request).collect()
}

/// What other programs' files have besides hooks.
fn imported(loading: &Loading) -> Vec<ProjectRequest> {
    let request = |request: &super::imported::ImportedRequest| ProjectRequest {
        file: request.file.clone(),
        place: request.file.clone(),
        what: request.what.clone(),
        body: request.body.clone(),
    };
    loading.imported_requests.iter().map(request).collect()
}

/// The programs of external agents.
fn programs(loading: &Loading) -> Vec<ProjectRequest> {
    let its = loading.settings.agents.iter().filter(|agent| agent.source.is_projects());
    let request = |agent: &super::Agent| {
        let external = agent.external()?;
        let mut body = external.command().join(" ");
        if !external.passes.is_empty() {
            body.push_str(&format!("\nwith the values of {}", external.passes.join(", ")));
        }
        Some(ProjectRequest {
            file: FILE_NAME.to_owned(),
            place: agent.source.to_string(),
            what: format!("runs when the agent {} is asked for", agent.name),
            body,
        })
    };
    its.filter_map(request).collect()
}

fn stop_hooks(loading: &Loading) -> Vec<ProjectRequest> {
    let its = loading.settings.stop_hooks.iter().filter(|hook| hook.source.is_projects());
    let request = |hook: &super::StopHook| ProjectRequest {
        file: FILE_NAME.to_owned(),
        place: hook.source.to_string(),
        what: format!("runs when the agent wants to stop (stop hook {})", hook.name),
        body: hook.command.clone(),
    };
    its.map(request).collect()
}

fn hooks(loading: &Loading) -> Vec<ProjectRequest> {
    let request = |hook: super::Placed| {
        let policy = &hook.policy;
        let matcher = policy.matcher.as_ref().map(|matcher| format!(" {matcher}")).unwrap_or_default();
        let condition = policy.condition.as_ref().map(|text| format!(" if {text}")).unwrap_or_default();
        let program = policy.program.as_ref();
        Some(ProjectRequest {
            what: format!(
                "{} {}{matcher}{condition} (hook {})",
                does(program),
                policy.point.name(),
                policy.name
            ),
            body: program.map(whole).unwrap_or_default(),
            place: hook.place,
            file: hook.file?,
        })
    };
    loading.settings.all_hooks().into_iter().filter_map(request).collect()
}

fn does(program: Option<&HookProgram>) -> &'static str {
    match program {
        Some(HookProgram::Http { .. }) => "is told at",
        Some(HookProgram::Model(_)) => "is asked at",
        Some(HookProgram::Shell { .. } | HookProgram::Exec { .. }) | None => "runs at",
    }
}

/// All that a program is given.
fn whole(program: &HookProgram) -> String {
    let mut text = runs(program);
    if let HookProgram::Http { headers, allowed_env, .. } = program {
        text.extend(headers.iter().map(|(name, value)| format!("\n{name}: {value}")));
        if !allowed_env.is_empty() {
            text.push_str(&format!("\nwith the values of {}", allowed_env.join(", ")));
        }
    }
    text
}

/// Where everything else is refused, asking grants more.
fn patterns(loading: &Loading, without: Permission) -> Vec<ProjectRequest> {
    let loosens = |key: &str| match key {
        "permissions.allow" => Some("lets the agent do without asking"),
        "permissions.ask" if without == Permission::Deny => Some("lets the agent ask whether it may do"),
        _ => None,
    };
    let its = loading.items.iter().filter(|(_, given)| given.source.is_projects());
    let request =
        |(key, given): &(String, Given)| Some(permission(loosens(key)?, &given.source, given.shown.clone()));
    its.filter_map(request).collect()
}

fn default(loading: &Loading, without: Permission) -> Option<ProjectRequest> {
    let given = loading.given.get("permissions.default").filter(|given| given.source.is_projects())?;
    let now = loading.settings.permissions.default_permission();
    let loosens = now == Permission::Allow || now < without;
    let what = match now {
        Permission::Allow => "lets the agent do what no pattern matches",
        Permission::Ask | Permission::Deny => "lets the agent ask whether it may do what no pattern matches",
    };
    loosens.then(|| permission(what, &given.source, format!("default = \"{}\"", given.shown)))
}

fn permission(what: &str, source: &Source, body: String) -> ProjectRequest {
    ProjectRequest { file: FILE_NAME.to_owned(), place: source.to_string(), what: what.to_owned(), body }
}
