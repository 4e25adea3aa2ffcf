//! `provost mcp login` and `logout`.

use std::io::{BufRead as _, Read as _};
use std::time::Duration;

use anyhow::Context as _;
use provost_mcp_client::{Login, LoginError, LoginRequest, PendingLogin};
use provost_runtime::{McpServer, require};

use super::{Known, output, views};
use crate::cli::McpLoginArgs;
use crate::commands::print;
use crate::exit::{Exit, Refusal};
use crate::render::safe;

/// How long the user may take in the browser.
const BROWSER_MAX: Duration = Duration::from_secs(600);
/// Bytes of a pasted address.
const ADDRESS_BYTES_MAX: u64 = 64 * 1024;

pub(super) async fn login(args: &McpLoginArgs) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let server = known.server(&args.name)?;
    require(&known.place.trust(), &known.settled.project)?;
    let setup = known.setup(&server)?;
    let request = LoginRequest { port: args.port, scopes: args.scope.clone() };
    let pending = PendingLogin::begin(&setup, &request).await.map_err(refused)?;
    let from = pending.authorization_server();
    print(&safe(&format!(
        "{} has you log in at {from}. Open this address in a browser, if you trust that:\n\n  {}\n\n",
        server.name,
        pending.address()
    )))?;
    if args.paste {
        print("The browser then fails to open an address at 127.0.0.1. Paste that address here: ")?;
        let address = line().context("can't read standard input")?;
        print("\n")?;
        pending.by_address(&address).await.map_err(refused)?;
    } else {
        print("Waiting for the browser; Ctrl-C gives up.\n")?;
        pending.by_browser(BROWSER_MAX).await.map_err(refused)?;
    }
    let view = views::server(&known, &server);
    let words = view.login.as_ref().map(output::login).unwrap_or_default();
    print(&safe(&format!("logged in to {}: {words}\n", server.name)))?;
    if view.trusted_at_ms.is_none() {
        print(&format!("`provost mcp trust {}` shows its tools and asks\n", server.name))?;
    }
    Ok(Exit::Done)
}

fn line() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().take(ADDRESS_BYTES_MAX).read_line(&mut line)?;
    Ok(line)
}

fn refused(error: LoginError) -> anyhow::Error {
    let hint = format!("`provost mcp show {}` says how it is reached", error.server);
    Refusal::new(safe(&error.to_string()), hint).into()
}

pub(super) async fn logout(name: &str) -> anyhow::Result<Exit> {
    let known = Known::read()?;
    let server = known.server(name)?;
    let text = match end(&known, &server).await? {
        None => "there was no login",
        Some(true) => "logged out; the authorization server has forgotten the token",
        Some(false) => {
            "logged out; the token may count until it expires: the authorization server can't be told to forget it"
        }
    };
    print(&format!("{}: {text}\n", server.name))?;
    Ok(Exit::Done)
}

/// Ends the login at a server. A variable that its settings need may be gone by now.
pub(super) async fn end(known: &Known, server: &McpServer) -> anyhow::Result<Option<bool>> {
    match known.setup(server) {
        Ok(setup) => Ok(Login::end(&setup).await.map_err(refused)?),
        Err(_) => match std::fs::remove_file(&server.login) {
            Ok(()) => Ok(Some(false)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("can't remove {}", server.login.display())),
        },
    }
}
