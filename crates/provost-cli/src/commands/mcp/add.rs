//! `provost mcp add`: a server, or those of another program's file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use provost_config::{
    Folders, McpTable, PackageVersion, Request, Scope, ServerChange, add_server, load, server_problem,
    servers_in,
};
use provost_event::SandboxMode;
use provost_runtime::available_tools;

use crate::cli::McpAddArgs;
use crate::commands::{current_dir, print};
use crate::exit::{Exit, Refusal};
use crate::render::safe;
use crate::wiring::variables;

/// Bytes of another program's file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn add(args: &McpAddArgs) -> anyhow::Result<Exit> {
    let folder = current_dir()?;
    let variables = variables();
    // A project's settings, which may be wrong, don't count.
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    loading.settled()?;
    if let Some(file) = &args.from {
        return add_all(file, &request, &folders);
    }
    let Some(name) = &args.name else { return Err(Refusal::new("no server is named", "give a name").into()) };
    let table = table(args)?;
    refuse_open_version(name, &table)?;
    if let Some(why) = provost_config::server_name_objection(name) {
        return Err(Refusal::new(format!("`{name}` {why}"), "give it another name").into());
    }
    if let Some(problem) = server_problem(&request, &folders, name, &table)? {
        let what = format!("{name} isn't added: {}: {}", problem.key, problem.what);
        return Err(Refusal::new(safe(&what), safe(&problem.remedy)).into());
    }
    if add_server(&folders.user_file, name, &table)? == ServerChange::Not {
        let hint = format!("`provost mcp remove {name}` removes it");
        return Err(Refusal::new(format!("there is an MCP server `{name}` already"), hint).into());
    }
    added(std::slice::from_ref(name), &folders.user_file)
}

fn added(names: &[String], file: &Path) -> anyhow::Result<Exit> {
    for name in names {
        print(&format!(
            "added {name} to {}; `provost mcp trust {name}` shows its tools and asks\n",
            file.display()
        ))?;
    }
    Ok(Exit::Done)
}

fn table(args: &McpAddArgs) -> anyhow::Result<McpTable> {
    if args.command.is_empty() && args.url.is_none() {
        let hint = "behind --: provost mcp add NAME -- COMMAND ARGUMENTS; or with --url URL";
        return Err(Refusal::new("nothing says how the server is reached", hint).into());
    }
    if let Some(url) =
        args.url.as_ref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        return Err(
            Refusal::new(format!("`{url}` is no address"), "it begins with http:// or https://").into()
        );
    }
    let mut words = args.command.iter().cloned();
    let mode = args.sandbox.as_deref();
    let mut table = McpTable::default();
    table.command = words.next();
    table.args = words.collect();
    table.env = pairs(&args.env, "--env", "TOKEN='${MY_TOKEN}'")?;
    table.url.clone_from(&args.url);
    table.headers_env = pairs(&args.header, "--header", "Authorization=MY_AUTHORIZATION")?;
    table.oauth_client_id.clone_from(&args.oauth_client_id);
    table.oauth_client_secret_env.clone_from(&args.oauth_client_secret_env);
    table.tools.clone_from(&args.tool);
    table.idempotent.clone_from(&args.idempotent);
    table.always_load = args.always_load;
    table.sandbox = mode.and_then(|name| SandboxMode::ALL.into_iter().find(|mode| mode.name() == name));
    table.allow_hosts.clone_from(&args.allow_host);
    Ok(table)
}

fn pairs(all: &[String], flag: &str, example: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Refusal::new(format!("{flag} {text} has no name and value"), format!("e.g. {flag} {example}"))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    all.iter().map(pair).collect()
}

fn refuse_open_version(name: &str, table: &McpTable) -> anyhow::Result<()> {
    let PackageVersion::Open { package, example } = table.package() else { return Ok(()) };
    let what = format!(
        "`{package}` names no exact version, so that {name} may be another program tomorrow than you agree to today"
    );
    Err(Refusal::new(what, format!("write the version, such as `{example}`")).into())
}

fn add_all(from: &Path, request: &Request<'_>, folders: &Folders) -> anyhow::Result<Exit> {
    let user_file = &folders.user_file;
    let text = provost_config::read_limited(from, FILE_BYTES_MAX)
        .with_context(|| format!("can't read {}", from.display()))?
        .ok_or_else(|| {
            Refusal::new(format!("{} isn't there", from.display()), "give --from an existing file")
        })?;
    let is_toml = from.extension().is_some_and(|ending| ending == "toml");
    let (found, skipped) = servers_in(&text, is_toml).map_err(|why| {
        let hint = "e.g. .mcp.json, or the settings file of a program that has MCP servers";
        Refusal::new(format!("{}: {why}", from.display()), hint)
    })?;
    let mut names = Vec::new();
    for server in found {
        if let Some(problem) = server_problem(request, folders, &server.name, &server.table)? {
            print(&safe(&format!("skipped {}: {}: {}\n", server.name, problem.key, problem.what)))?;
            continue;
        }
        match add_server(user_file, &server.name, &server.table)? {
            ServerChange::Made => names.push(server.name.clone()),
            ServerChange::Not => {
                print(&safe(&format!("skipped {}: there is one of this name already\n", server.name)))?
            }
        }
        for header in &server.headers {
            let variable = server.table.headers_env.get(header).map(String::as_str).unwrap_or_default();
            let note = format!(
                "note: {} sends the header {header}: put its value into the variable {variable}\n",
                server.name
            );
            print(&safe(&note))?;
        }
    }
    for skipped in &skipped {
        print(&safe(&format!("skipped {}: {}\n", skipped.name, skipped.why)))?;
    }
    added(&names, user_file)
}
