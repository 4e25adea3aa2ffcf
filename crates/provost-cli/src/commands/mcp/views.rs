//! Servers as views.

use std::path::{Path, PathBuf};

use provost_config::PackageVersion;
use provost_mcp_client::{
    Difference, Inspection, Login, Pins, ServerSetup, estimated_tokens, revealed, tool_name,
};
use provost_runtime::{McpServer, mcp_setup};
use provost_view::{
    McpCallResult, McpLogin, McpProgram, McpRefusedTool, McpServerState, McpServerView, McpTestView,
    McpToolView, ViewVersion,
};

use super::Known;
use crate::wiring::variables;

/// Bytes of a program whose fingerprint is taken.
const PROGRAM_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A server of the settings, with what the user has agreed to.
pub(super) fn server(known: &Known, server: &McpServer) -> McpServerView {
    let table = &server.table;
    let setup = mcp_setup(server, &known.settled.settings, &known.folder, &variables());
    let pins = server.pins.read();
    let agreed = pins.as_ref().ok().and_then(Option::as_ref);
    let (state, why) = state(server, &setup, &pins);
    let tools = match (&setup, agreed) {
        (Ok(setup), Some(pins)) => tools(server, setup, pins),
        _ => Vec::new(),
    };
    McpServerView {
        v: ViewVersion,
        name: server.name.clone(),
        place: server.place.clone(),
        written: table.written(),
        state,
        why,
        package: match table.package() {
            PackageVersion::Exact(package) | PackageVersion::Open { package, .. } => Some(package),
            PackageVersion::None => None,
        },
        program: table.command.as_deref().and_then(|command| program(command, &known.folder)),
        sandbox: setup
            .as_ref()
            .ok()
            .filter(|_| table.command.is_some())
            .map(|setup| setup.sandbox.mode.name().to_owned()),
        allow_hosts: table.allow_hosts.clone(),
        trusted_at_ms: agreed.map(|pins| pins.at),
        fingerprint: agreed.map(Pins::fingerprint),
        calls_itself: agreed.map(|pins| pins.calls_itself.clone()),
        always_load: table.always_load,
        login: setup.as_ref().ok().and_then(login),
        tokens: tools.iter().filter(|tool| tool.is_offered).map(|tool| tool.tokens).sum(),
        tools,
    }
}

fn state(
    server: &McpServer,
    setup: &Result<ServerSetup, provost_runtime::Refusal>,
    pins: &Result<Option<Pins>, provost_mcp_client::PinError>,
) -> (McpServerState, Option<String>) {
    let remedy = format!("`provost mcp trust {}` shows it and asks", server.name);
    match (setup, pins) {
        (Err(refusal), _) => (McpServerState::Unusable, Some(refusal.to_string())),
        (_, Err(error)) => (McpServerState::Unusable, Some(error.to_string())),
        (_, Ok(None)) => (McpServerState::NotTrusted, Some(format!("you haven't agreed to it; {remedy}"))),
        (Ok(setup), Ok(Some(pins))) if pins.written != setup.written => (
            McpServerState::Changed,
            Some(format!("how it is reached has changed since you agreed to it; {remedy}")),
        ),
        (Ok(_), Ok(Some(_))) => (McpServerState::Trusted, None),
    }
}

/// The user's login; one that can't be read is none.
fn login(setup: &ServerSetup) -> Option<McpLogin> {
    let login = Login::read(setup).ok()??;
    Some(McpLogin {
        issuer: login.issuer,
        scopes: login.scopes,
        at_ms: login.at,
        expires_at_ms: login.expires_at,
        renews: login.renews,
    })
}

fn tools(server: &McpServer, setup: &ServerSetup, pins: &Pins) -> Vec<McpToolView> {
    let view = |tool: &provost_mcp_client::ToolDefinition| McpToolView {
        name: tool.name.clone(),
        known_as: tool_name(&setup.name, &tool.name),
        description: revealed(&tool.description),
        claims: tool.claims(),
        is_offered: setup.offers(&tool.name),
        is_idempotent: setup.is_idempotent(&tool.name),
        subject: server.table.subjects.get(&tool.name).cloned(),
        tokens: estimated_tokens(&tool.spec(setup)),
    };
    pins.tools.iter().map(view).collect()
}

/// The program that a command starts, with its fingerprint.
fn program(command: &str, folder: &Path) -> Option<McpProgram> {
    let path = found(command, folder)?;
    let is_read = path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= PROGRAM_BYTES_MAX);
    let bytes = is_read.then(|| std::fs::read(&path).ok())??;
    Some(McpProgram { path: path.display().to_string(), blake3: blake3::hash(&bytes).to_hex().to_string() })
}

fn found(command: &str, folder: &Path) -> Option<PathBuf> {
    if command.contains('/') {
        return folder.join(command).canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find_map(|path| path.canonicalize().ok())
}

/// A look at a server.
pub(super) fn test(name: &str, seen: &Result<Inspection, String>, pins: Option<&Pins>) -> McpTestView {
    let blank = McpTestView {
        v: ViewVersion,
        server: name.to_owned(),
        error: None,
        protocol: None,
        calls_itself: None,
        took_ms: None,
        tools: Vec::new(),
        tokens: 0,
        refused: Vec::new(),
        difference: None,
        called: None,
        denied: Vec::new(),
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) => return McpTestView { error: Some(why.clone()), ..blank },
    };
    let difference = pins.map(|pins| Difference::between(Some(pins), &seen.pins));
    let call = |called: &Result<String, String>| match called {
        Ok(text) => McpCallResult { is_error: false, text: text.clone() },
        Err(text) => McpCallResult { is_error: true, text: text.clone() },
    };
    McpTestView {
        protocol: Some(seen.protocol.clone()),
        calls_itself: Some(seen.pins.calls_itself.clone()),
        took_ms: u64::try_from(seen.took.as_millis()).ok(),
        tools: seen.pins.tools.iter().map(|tool| tool.name.clone()).collect(),
        tokens: seen.tokens,
        refused: seen
            .refused
            .iter()
            .map(|tool| McpRefusedTool { name: tool.name.clone(), why: tool.why.clone() })
            .collect(),
        difference: difference
            .filter(|difference| !difference.is_empty())
            .map(|difference| difference.listed()),
        called: seen.called.as_ref().map(call),
        denied: seen.denied.clone(),
        ..blank
    }
}
