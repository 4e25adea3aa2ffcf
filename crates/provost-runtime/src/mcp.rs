//! The MCP servers of the settings: how each is reached, what the user has agreed to, and the tools that agents get.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_config::{McpTable, SandboxSettings, Settings, Settled, expanded, home_folder, subject_of};
use provost_event::{RunId, RunPolicy, SandboxPolicy, SessionId, Timestamp, ToolSpec};
use provost_harness::{AgentSandbox, Sandbox, SandboxRequest};
use provost_mcp_client::{
    Catalog, ConnectError, Difference, Inspection, Lifecycle, LoginSetup, Pins, PinsFile, Reach, ServerSetup,
    inspect,
};
use secrecy::SecretString;

use crate::{Refusal, RuntimeError, StateDir, Variables};

/// The folder with what users have agreed to of servers.
const PINS: &str = "mcp";
/// The folder with logins at servers.
const LOGINS: &str = "mcp-logins";
/// What stands for the user's own settings in the name of a file of pins.
const USERS: &str = "user";

/// A server of the settings.
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// As it is set.
    pub table: McpTable,
    /// Where it is set.
    pub place: String,
    /// The file with what the user has agreed to.
    pub pins: PinsFile,
    /// The file with the user's login.
    pub login: PathBuf,
}

/// The servers of the settings, by their names.
#[must_use]
pub fn mcp_servers(settled: &Settled, place: &StateDir) -> Vec<McpServer> {
    let all = settled.settings.named.mcp.iter();
    all.map(|(name, table)| {
        let source = settled.source_of_server(name);
        let scope = match settled.counts_everywhere(&source) {
            true => USERS.to_owned(),
            false => settled.project.folder.display().to_string(),
        };
        McpServer {
            name: name.clone(),
            table: table.clone(),
            place: source.to_string(),
            pins: PinsFile::of(&place.folder().join(PINS), name, &scope),
            login: PinsFile::of(&place.folder().join(LOGINS), name, &scope).path().to_owned(),
        }
    })
    .collect()
}

/// How a server is reached from `folder`.
///
/// # Errors
/// A variable that isn't set.
pub fn mcp_setup(
    server: &McpServer,
    settings: &Settings,
    folder: &Path,
    variables: &Variables,
) -> Result<ServerSetup, Refusal> {
    let McpServer { name, table, pins, login, .. } = server;
    let missing = |variable: &str| {
        let what = format!("the MCP server {name} needs the variable {variable}, which isn't set");
        Refusal::new(what, format!("set {variable}, or take it from [mcp.{name}]"))
    };
    let reach = match (&table.command, &table.url) {
        (Some(command), _) => Reach::Program {
            command: command.clone(),
            args: table.args.clone(),
            env: table
                .env
                .iter()
                .map(|(name, value)| {
                    let value = expanded(value, variables).map_err(|variable| missing(&variable))?;
                    Ok((name.clone(), SecretString::from(value)))
                })
                .collect::<Result<_, Refusal>>()?,
            cwd: folder.to_owned(),
        },
        (None, url) => Reach::Http {
            url: url.clone().unwrap_or_default(),
            headers: table
                .headers_env
                .iter()
                .map(|(header, variable)| {
                    let value = variables.get(variable).filter(|value| !value.is_empty());
                    let value = value.ok_or_else(|| missing(variable))?;
                    Ok((header.clone(), SecretString::from(value.clone())))
                })
                .collect::<Result<_, Refusal>>()?,
            login: Box::new(LoginSetup {
                file: login.clone(),
                client_id: table.oauth_client_id.clone(),
                client_secret: match &table.oauth_client_secret_env {
                    None => None,
                    Some(variable) => {
                        let value = variables.get(variable).filter(|value| !value.is_empty());
                        Some(value.ok_or_else(|| missing(variable))?.clone().into())
                    }
                },
                scopes: table.oauth_scopes.clone(),
            }),
        },
    };
    Ok(ServerSetup {
        name: name.clone(),
        reach,
        written: table.written(),
        tools: table.tools.clone(),
        idempotent: table.idempotent.clone(),
        subjects: table
            .subjects
            .iter()
            .filter_map(|(tool, text)| Some((tool.clone(), subject_of(text).ok()?)))
            .collect(),
        always_load: table.always_load,
        timeout: std::time::Duration::from_millis(table.timeout_ms()),
        sandbox: sandbox_of(table, settings, folder),
        pins: pins.path().to_owned(),
    })
}

/// What confines a server's program: what confines the agents, with what its table says in its place.
fn sandbox_of(table: &McpTable, settings: &Settings, folder: &Path) -> SandboxPolicy {
    let home = home_folder();
    let agents = settings.sandbox_policy(folder, home.as_deref());
    let mut policy = match table.sandbox {
        None => agents,
        Some(mode) => {
            let own = SandboxSettings { mode, ..settings.sandbox.clone() };
            SandboxPolicy { protect: agents.protect, ..own.policy(folder, home.as_deref()) }
        }
    };
    if !table.allow_hosts.is_empty() {
        policy.network = provost_event::SandboxNetwork::Proxy;
        policy.allow_hosts.clone_from(&table.allow_hosts);
    }
    policy
}

/// The values that servers are given and that their results must not carry on.
pub(crate) fn secrets_of_servers(settings: &Settings, variables: &Variables) -> Vec<SecretString> {
    let named = settings.named.mcp.values().flat_map(McpTable::variables);
    let values = named.filter_map(|name| variables.get(&name)).filter(|value| !value.is_empty());
    values.cloned().map(SecretString::from).collect()
}

/// A look at a server, in a box of its own.
///
/// # Errors
/// When it can't be reached.
pub async fn inspect_server(
    setup: &ServerSetup,
    sandbox: &dyn Sandbox,
    call: Option<(&str, serde_json::Map<String, serde_json::Value>)>,
) -> Result<Inspection, ConnectError> {
    let session = SessionId { run: RunId::from_entropy(0), agent: u32::MAX };
    let workspace = match &setup.reach {
        Reach::Program { cwd, .. } => cwd.canonicalize().unwrap_or_else(|_| cwd.clone()),
        Reach::Http { .. } => PathBuf::from("/"),
    };
    let request = SandboxRequest { policy: &setup.sandbox, session, workspace: &workspace };
    let refused = |why| ConnectError { server: setup.name.clone(), why };
    let program_box: Arc<dyn AgentSandbox> = match &setup.reach {
        Reach::Program { .. } => sandbox.of_agent(request).map_err(refused)?,
        Reach::Http { .. } => Arc::new(provost_harness::NoSandbox),
    };
    let remembered = remembered(setup);
    let seen = inspect(setup, &program_box, remembered, call).await;
    drop(program_box);
    sandbox.session_over(session);
    seen
}

fn remembered(setup: &ServerSetup) -> Option<Lifecycle> {
    let pins = PinsFile::at(setup.pins.clone()).read().ok().flatten();
    pins.filter(|pins| pins.written == setup.written).map(|pins| pins.lifecycle)
}

/// The tools of the servers of the settings, for agents that work in `folder`, and notices about servers without any.
/// Servers whose changes are trusted are looked at first; no other one is started.
pub async fn mcp_catalog(
    settled: &Settled,
    place: &StateDir,
    folder: &Path,
    variables: &Variables,
) -> (Catalog, Vec<String>) {
    let mut lost = Vec::new();
    for server in mcp_servers(settled, place).iter().filter(|server| server.table.trusts_changes) {
        let Ok(setup) = mcp_setup(server, &settled.settings, folder, variables) else { continue };
        if let Err(why) = take_as_it_is(&setup, &server.pins, place, variables).await {
            lost.push(format!(
                "the MCP server {} can't be asked for its tools, which stay as they were: {why}",
                server.name
            ));
        }
    }
    let (catalog, notices) = known_catalog(settled, place, folder, variables);
    lost.extend(notices);
    (catalog, lost)
}

/// The same, without looking at any server.
pub fn known_catalog(
    settled: &Settled,
    place: &StateDir,
    folder: &Path,
    variables: &Variables,
) -> (Catalog, Vec<String>) {
    let mut setups = Vec::new();
    let mut notices = Vec::new();
    for server in mcp_servers(settled, place) {
        match mcp_setup(&server, &settled.settings, folder, variables) {
            Ok(setup) => setups.push(setup),
            Err(refusal) => notices.push(format!("{refusal}: it isn't used")),
        }
    }
    let (catalog, more) = Catalog::read(setups);
    notices.extend(more);
    (catalog, notices)
}

/// Agrees to a server as it is, in the place of the user, who has said so in the settings.
async fn take_as_it_is(
    setup: &ServerSetup,
    pins: &PinsFile,
    place: &StateDir,
    variables: &Variables,
) -> Result<(), String> {
    let sandbox = place.sandbox(variables.clone());
    let seen = inspect_server(setup, &sandbox, None).await.map_err(|error| error.why)?;
    let before = pins.read().ok().flatten();
    if before.as_ref().is_some_and(|before| Difference::between(Some(before), &seen.pins).is_empty()) {
        return Ok(());
    }
    pins.write(&seen.pins.agreed_at(now())).map_err(|error| error.to_string())
}

/// The time by the wall clock.
fn now() -> Timestamp {
    use provost_harness::Clock as _;
    provost_harness::SystemClock.now()
}

/// `policy` with the tools of servers: its own agent and sub-agents without a list of tools get what models are shown of
/// them, and a sub-agent with a list gets those that it names.
#[must_use]
pub fn with_mcp(mut policy: RunPolicy, settings: &Settings, catalog: &Catalog) -> RunPolicy {
    if catalog.is_empty() {
        return policy;
    }
    let all = catalog.specs();
    let shown = catalog.offered(settings.tools.search_above);
    let named = |names: &[String]| -> Vec<ToolSpec> {
        let both = all.iter().chain(shown.iter().filter(|tool| !all.contains(tool)));
        both.filter(|tool| names.contains(&tool.name)).cloned().collect()
    };
    let add = |tools: &mut Vec<ToolSpec>, more: Vec<ToolSpec>| {
        let more = more.into_iter().filter(|tool| tools.iter().all(|known| known.name != tool.name));
        let more = more.collect::<Vec<_>>();
        tools.extend(more);
    };
    for sub_agent in policy.agents.iter_mut().filter(|sub_agent| sub_agent.agent.external.is_none()) {
        let settled = settings.agents.iter().find(|agent| agent.name == sub_agent.name);
        let more = match settled.and_then(|agent| agent.tools.as_deref()) {
            Some(names) => named(names),
            None => shown.clone(),
        };
        add(&mut sub_agent.agent.tools, more);
    }
    if policy.agent.external.is_none() {
        add(&mut policy.agent.tools, shown);
    }
    policy
}

/// What the user agrees to of a server from now on.
///
/// # Errors
/// When it can't be kept.
pub fn agree(pins: &PinsFile, seen: Pins) -> Result<(), RuntimeError> {
    let kept = pins.write(&seen.agreed_at(now()));
    kept.map_err(|error| {
        let hint = "nothing was agreed to";
        Refusal::new(with_causes(&error), hint).into()
    })
}

/// An error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
