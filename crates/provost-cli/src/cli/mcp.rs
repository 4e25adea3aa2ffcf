//! Arguments of the commands about the Model Context Protocol, and of `acp`.

mod serve;

use clap::{Args, Subcommand};

pub(crate) use serve::McpServeArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serves runs as tools on standard input and output, for any MCP client.
    Serve(McpServeArgs),
}

#[derive(Debug, Args)]
#[command(after_help = ACP_HELP)]
pub(crate) struct AcpArgs {}

const ACP_HELP: &str = "An editor that speaks the Agent Client Protocol starts this command and speaks to it on standard \
input and output: a session is a run. Runs go on when the editor ends, also while a question waits; loading the session \
shows the run and asks the question again. The settings and the trust of the session's folder count, as in `provost run`.";
