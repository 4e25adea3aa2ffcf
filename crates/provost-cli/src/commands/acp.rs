//! `provost acp`: an agent of an editor.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use provost_acp::{AcpOptions, EditorServer, TrustedServers};
use provost_harness::RunStarts;

use super::approved::UserSettings;
use super::mcp::is_trusted;
use super::place_and_folders;
use super::unattended::Unattended;
use crate::cli::AcpArgs;
use crate::exit::{Exit, Refusal};
use crate::questions::user_name;

pub(super) async fn acp(_: AcpArgs) -> anyhow::Result<Exit> {
    must_not_be_terminal("provost acp", "an editor starts this command; docs/editors.md says how")?;
    let (place, folders) = place_and_folders()?;
    let backend = place.open().await?;
    let work = Arc::new(Unattended { folder: place.folder().to_owned() });
    let options = AcpOptions {
        starts: RunStarts::new(backend.clone(), work, place.server_keys()),
        backend,
        live: place.live(),
        by: format!("{} (provost acp)", user_name("a person")),
        approved: Some(Arc::new(UserSettings(folders.user_file))),
        servers: Arc::new(SettingsServers),
    };
    provost_acp::serve(options, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(Exit::Done)
}

/// The servers of the settings.
struct SettingsServers;

impl TrustedServers for SettingsServers {
    fn has(&self, folder: &Path, server: &EditorServer) -> bool {
        // Settings that can't be read are told of when a run begins.
        is_trusted(folder, server).unwrap_or(false)
    }
}

/// Refuses to wait for messages that nobody at a terminal types.
pub(super) fn must_not_be_terminal(command: &str, hint: &'static str) -> Result<(), Refusal> {
    if std::io::stdin().is_terminal() {
        let what = format!("{command}: standard input is a terminal, and another program is expected there");
        return Err(Refusal::new(what, hint));
    }
    Ok(())
}
