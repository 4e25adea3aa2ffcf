//! `provost mcp serve`: runs as tools.

use std::sync::Arc;

use provost_harness::RunStarts;
use provost_mcp::McpServerOptions;

use crate::cli::McpServeArgs;
use crate::commands::acp::must_not_be_terminal;
use crate::commands::unattended::Unattended;
use crate::commands::{current_dir, place};
use crate::exit::Exit;
use crate::questions::user_name;

pub(super) async fn serve(_: McpServeArgs) -> anyhow::Result<Exit> {
    must_not_be_terminal(
        "provost mcp serve",
        "an MCP client starts this command; docs/mcp-server.md says how",
    )?;
    let place = place()?;
    let backend = place.open().await?;
    let work = Arc::new(Unattended { folder: place.folder().to_owned() });
    let options = McpServerOptions {
        starts: RunStarts::new(backend.clone(), work, place.server_keys()),
        backend,
        by: format!("{} (provost mcp serve)", user_name("a program")),
        folder: current_dir()?,
    };
    provost_mcp::serve(options, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(Exit::Done)
}
