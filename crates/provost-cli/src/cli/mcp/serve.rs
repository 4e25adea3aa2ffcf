//! Arguments of `mcp serve`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = MCP_SERVE_HELP)]
pub(crate) struct McpServeArgs {}

const MCP_SERVE_HELP: &str = "The tools are run_start, run_wait, run_status, run_result, run_say, run_pause, run_cancel, \
run_cost and run_list, over the runs of all processes. None of them approves or denies a call. A run works in the folder \
that its request names, or else in the one that this command was started in, and goes on when the client ends.";
