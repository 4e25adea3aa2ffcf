//! `provost mcp`: the MCP servers whose tools agents may have.

mod add;
mod login;
mod output;
mod serve;
mod views;

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_acp::{EditorServer, EditorServerReach};
use provost_config::{Folders, Request, Scope, ServerChange, Settled, load, remove_server};
use provost_mcp_client::{Difference, Inspection, ServerSetup};
use provost_runtime::{
    McpServer, StateDir, agree, available_tools, inspect_server, mcp_servers, mcp_setup, require,
};
use provost_view::McpServerState;
use serde_json::{Map, Value};

use super::descent::Act;
use super::{current_dir, print};
use crate::cli::{McpCommand, McpListArgs, McpServerArgs, McpTestArgs, McpTrustArgs};
use crate::exit::{Exit, Refusal};
use crate::wiring::{state_dir, variables};

pub(super) const fn act_of(command: &McpCommand) -> Act {
    match command {
        McpCommand::List(_) | McpCommand::Show(_) => Act::Looks,
        McpCommand::Add(_) => Act::Acts("mcp add"),
        McpCommand::Test(_) => Act::Acts("mcp test"),
        McpCommand::Trust(_) => Act::Acts("mcp trust"),
        McpCommand::Login(_) => Act::Acts("mcp login"),
        McpCommand::Logout { .. } => Act::Acts("mcp logout"),
        McpCommand::Remove { .. } => Act::Acts("mcp remove"),
        McpCommand::Serve(_) => Act::Acts("mcp serve"),
    }
}

pub(super) async fn mcp(command: McpCommand) -> anyhow::Result<Exit> {
    match command {
        McpCommand::Add(args) => add::add(&args),
        McpCommand::List(args) => list(&args),
        McpCommand::Show(args) => show(&args),
        McpCommand::Test(args) => test(&args).await,
        McpCommand::Trust(args) => trust(&args).await,
        McpCommand::Login(args) => login::login(&args).await,
        McpCommand::Logout { name } => login::logout(&name).await,
        McpCommand::Remove { name } => remove(&name).await,
        McpCommand::Serve(args) => serve::serve(args).await,
    }
}

/// The settings of this folder, and what is kept beside them.
struct Known {
    settled: Settled,
    folders: Folders,
    place: StateDir,
    folder: PathBuf,
}

impl Known {
    fn read() -> anyhow::Result<Self> {
        Self::of(current_dir()?)
    }

    fn of(folder: PathBuf) -> anyhow::Result<Self> {
        let variables = variables();
        let request = Request::new(Scope::Project, &folder, &variables, available_tools());
        let (loading, folders) = load(&request)?;
        let settled = loading.settled()?;
        let place = state_dir(&settled.settings, &folders);
        Ok(Self { settled, folders, place, folder })
    }

    fn servers(&self) -> Vec<McpServer> {
        mcp_servers(&self.settled, &self.place)
    }

    fn server(&self, name: &str) -> anyhow::Result<McpServer> {
        let all = self.servers();
        let names = all.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
        let found = all.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| {
            let hint = match provost_config::nearest(name, names.iter().cloned()) {
                Some(near) => format!("did you mean {near}?"),
                None if names.is_empty() => "`provost mcp add` adds one".to_owned(),
                None => format!("there is {}", names.join(", ")),
            };
            Refusal::new(format!("there is no MCP server `{name}` in the settings"), hint).into()
        })
    }

    fn setup(&self, server: &McpServer) -> anyhow::Result<ServerSetup> {
        Ok(mcp_setup(server, &self.settled.settings, &self.folder, &variables())?)
    }

    /// Looks at a server as it is now. A project's file that names it must be trusted: what it names is started.
    async fn inspect(
        &self,
        server: &McpServer,
        call: Option<(&str, Map<String, Value>)>,
    ) -> anyhow::Result<Result<Inspection, String>> {
        require(&self.place.trust(), &self.settled.project)?;
        let setup = self.setup(server)?;
        let sandbox = self.place.sandbox(variables());
        Ok(inspect_server(&setup, &sandbox, call).await.map_err(|error| error.why))
    }
}

/// Whether agents in this folder have the tools of such a server.
pub(super) fn is_trusted(folder: &Path, wanted: &EditorServer) -> anyhow::Result<bool> {
    let known = Known::of(folder.to_owned())?;
    let servers = known.servers();
    let Some(server) = servers.iter().find(|server| server.name == wanted.name) else { return Ok(false) };
    let table = &server.table;
    let is_reached_so = match &wanted.reach {
        Some(EditorServerReach::Program { command, args }) => {
            table.command.as_deref().map(Path::new) == Some(command) && table.args == *args
        }
        Some(EditorServerReach::Address(url)) => table.url.as_deref() == Some(url),
        None => false,
    };
    Ok(is_reached_so && views::server(&known, server).state == McpServerState::Trusted)
}

fn list(args: &McpListArgs) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let views = known.servers().iter().map(|server| views::server(&known, server)).collect::<Vec<_>>();
    if args.json {
        for view in &views {
            print(&format!("{}\n", serde_json::to_string(view)?))?;
        }
        return Ok(Exit::Done);
    }
    print(&output::list(&views))?;
    Ok(Exit::Done)
}

fn show(args: &McpServerArgs) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let view = views::server(&known, &known.server(&args.name)?);
    if args.json {
        print(&format!("{:#}\n", serde_json::to_value(&view)?))?;
        return Ok(Exit::Done);
    }
    print(&output::server(&view))?;
    Ok(Exit::Done)
}

async fn test(args: &McpTestArgs) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let server = known.server(&args.name)?;
    let arguments = match &args.arguments {
        None => Map::new(),
        Some(text) => serde_json::from_str::<Map<String, Value>>(text).map_err(|error| {
            Refusal::new(
                format!("--arguments isn't a JSON object: {error}"),
                "e.g. --arguments '{\"path\": \".\"}'",
            )
        })?,
    };
    let call = args.call.as_deref().map(|tool| (tool, arguments));
    let seen = known.inspect(&server, call).await?;
    let pins = server.pins.read()?;
    let view = views::test(&server.name, &seen, pins.as_ref());
    let is_fine = view.error.is_none() && view.called.as_ref().is_none_or(|called| !called.is_error);
    if args.json {
        print(&format!("{:#}\n", serde_json::to_value(&view)?))?;
    } else {
        print(&output::test(&view))?;
    }
    Ok(if is_fine { Exit::Done } else { Exit::Failed })
}

async fn trust(args: &McpTrustArgs) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let server = known.server(&args.name)?;
    if args.revoke {
        let was_there = server.pins.remove()?;
        let text = if was_there { "no longer trusted" } else { "it wasn't trusted" };
        print(&format!("{text}: {}\n", server.name))?;
        return Ok(Exit::Done);
    }
    let seen = known.inspect(&server, None).await?.map_err(|why| {
        let hint = format!("`provost mcp show {}` says how it is reached", server.name);
        Refusal::new(format!("the MCP server {} can't be reached: {why}", server.name), hint)
    })?;
    let before = server.pins.read()?;
    let difference = Difference::between(before.as_ref(), &seen.pins);
    if before.is_some() && difference.is_empty() {
        print(&format!("you trust {} already, and its tools are as you agreed to them\n", server.name))?;
        return Ok(Exit::Done);
    }
    print(&output::to_agree(&views::server(&known, &server), &seen, before.as_ref(), &difference))?;
    if !args.yes && !asked(&server.name)? {
        print("Nothing was changed.\n")?;
        return Ok(Exit::Usage);
    }
    let count = seen.pins.tools.len();
    agree(&server.pins, seen.pins)?;
    print(&format!(
        "Trusted, with {}. A tool that changes later is blocked until you agree to it again.\n",
        provost_event::counted(count as u64, "tool")
    ))?;
    Ok(Exit::Done)
}

/// Asks the user at the terminal; refuses without one.
fn asked(name: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let hint = format!("`provost mcp trust {name} --yes` agrees to what is listed above, unasked");
        return Err(Refusal::new("this is no terminal, so you can't be asked", hint).into());
    }
    print("Agents may call these tools, and read what the server says. Trust it? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("can't read the answer")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

async fn remove(name: &str) -> anyhow::Result<Exit> {
    let known = match Known::read() {
        Ok(known) => known,
        // It may be what is wrong with the settings.
        Err(error) => {
            let (folder, variables) = (current_dir()?, variables());
            let request = Request::new(Scope::User, &folder, &variables, available_tools());
            let file = load(&request)?.1.user_file;
            if remove_server(&file, name)? == ServerChange::Not {
                return Err(error);
            }
            print(&format!("removed {name} from {}\n", file.display()))?;
            return Ok(Exit::Done);
        }
    };
    let server = known.servers().into_iter().find(|server| server.name == name);
    let file = &known.folders.user_file;
    if remove_server(file, name)? == ServerChange::Not {
        let what = format!("your own settings have no MCP server `{name}`");
        let hint = format!("`provost mcp list` says where each is set; yours are in {}", file.display());
        return Err(Refusal::new(what, hint).into());
    }
    if let Some(server) = server {
        server.pins.remove()?;
        login::end(&known, &server).await?;
    }
    print(&format!("removed {name} from {}\n", file.display()))?;
    Ok(Exit::Done)
}
