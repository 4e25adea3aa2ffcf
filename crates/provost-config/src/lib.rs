//! The settings of Provost.
//!
//! [`load`] reads all layers: built-in defaults, the user's file, the project's `provost.toml`, environment variables,
//! and [flags](Request::flags). The result has the [`Settings`], where each value was [given](Given), what the project
//! requests that needs the user's consent, and every [`Problem`] with file, line, column and remedy.
//! [`Loading::settled`] gives settings that nothing is wrong with.
//!
//! Each setting is declared once; the reader, the [JSON Schema](schema), the [reference page](reference()) and the
//! [file of `provost init`](init_file) follow from the declaration.
//!
//! A project's files are read whether they are trusted or not. Before you use settings in which [`Loading::project`]
//! [requests](Project::requests) something, check that [`trust_in`] isn't [`TrustState::Needed`]; [`grant`] keeps the
//! user's consent to exactly those files.
//!
//! This crate prints nothing and asks no questions. It reads the environment only to find the user's folders ([`Folders::of_platform`]); all other variables are handed in.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use provost_config::{AvailableTools, Folders, Override, Request, Scope, load_in};
//!
//! let folder = Path::new("/nowhere");
//! let folders = Folders { user_file: folder.join("config.toml"), state: folder.join("state") };
//! let variables = BTreeMap::from([("PROVOST_BUDGET_TOKENS".to_owned(), "0".to_owned())]);
//! let request = Request::new(Scope::Project, folder, &variables, AvailableTools::default());
//! let flags = [Override::new("--model", "openai/gpt-5")];
//! let request = Request { flags: &flags, ..request };
//! let loading = load_in(&request, &folders);
//! assert_eq!(loading.settings.model, "openai/gpt-5");
//! assert_eq!(loading.source("agent.model").to_string(), "--model");
//! assert!(loading.problems[0].to_string().starts_with("PROVOST_BUDGET_TOKENS: budget.tokens: "));
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "only the command line prints")]

mod agent;
mod approved;
mod contradictions;
mod declare;
mod document;
mod engine;
mod errors;
mod exec;
mod file;
mod flow;
mod gateway;
mod goal;
mod hook;
mod hook_scripts;
mod imported;
mod item;
mod known_tools;
mod layers;
mod literal;
mod mcp;
mod named;
mod nearest;
mod notify;
mod permissions;
mod profiles;
mod project;
mod sandbox;
mod settings;
mod skills;
mod stop_hook;
mod table;
mod tools;
mod trust;
mod updated_models;
mod value;
mod whole_file;

pub use agent::{Agent, External};
pub use approved::{Kept, keep_approved};
pub use document::{
    SettingInfo, ShortFile, ShortSandbox, declared, init_file, reference, schema, short_file,
};
pub use engine::{ENGINE_ADMIN_PORT, EngineBlobs, EngineSettings, EngineUrl, engine_label};
pub use errors::{ConfigError, Problem, Problems, Source, Spot};
pub use exec::{DetachKey, ExecSettings};
pub use flow::FlowFile;
pub use gateway::GatewaySettings;
pub use goal::{EVIDENCE_TOKENS_MIN, GoalSettings};
pub use hook::{Hook, HookVariable, runs};
pub use imported::Placed;
pub use known_tools::AvailableTools;
pub use layers::{FILE_NAME, Folders, Override, Request, Scope, load, load_in, setting_variables};
pub use mcp::{
    ImportedServer, McpTable, PackageVersion, ServerChange, SkippedServer, add_server, expanded, package_of,
    remove_server, server_name_objection, server_problem, servers_in, subject_of,
};
pub use named::{ModelTable, Named, ProviderTable};
pub use nearest::nearest;
pub use notify::{DesktopNotices, NotifyOn, NotifySettings};
pub use permissions::Permissions;
pub use profiles::{Profiles, read_profile};
pub use project::{Project, ProjectFile, ProjectRequest};
pub use sandbox::{SandboxSettings, home_folder};
pub use settings::{Given, Loading, Settings, Settled, Trace, keys, named_keys, without_password};
pub use skills::{Skill, Skills, SkippedSkill};
pub use stop_hook::StopHook;
pub use table::{EFFORTS, effort};
pub use tools::ToolSettings;
pub use trust::{Needed, TrustState, TrustStore, Trusted, TrustedFile, grant, trust_in};
pub use updated_models::UpdatedModels;
pub use whole_file::read_limited;
