//! Arguments of the commands about MCP, and of `acp`.

mod serve;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use provost_event::SandboxMode;

use crate::completing;

pub(crate) use serve::McpServeArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Adds a server to your own settings; or the servers of another program's file.
    Add(Box<McpAddArgs>),
    /// Lists the servers of the settings, with whether you have agreed to them.
    List(McpListArgs),
    /// Shows a server: how it is reached, its tools as you agreed to them, and what they cost.
    Show(McpServerArgs),
    /// Starts a server, lists its tools as they are now, and calls one if you say which.
    Test(McpTestArgs),
    /// Shows what a server's tools are, or what is different now, and asks for your consent.
    Trust(McpTrustArgs),
    /// Logs you in to a server that is reached by HTTP, with OAuth in a browser.
    Login(McpLoginArgs),
    /// Ends your login at a server.
    Logout {
        /// The name of the server.
        #[arg(add = completing::mcp_servers())]
        name: String,
    },
    /// Removes a server from your own settings, and forgets what you agreed to of it and your login.
    Remove {
        /// The name of the server.
        #[arg(add = completing::mcp_servers())]
        name: String,
    },
    /// Serves runs as tools on standard input and output, for any MCP client.
    Serve(McpServeArgs),
}

#[derive(Debug, Args)]
#[command(after_help = ADD_HELP)]
pub(crate) struct McpAddArgs {
    /// Its name, which is part of the names of its tools: mcp__NAME__TOOL.
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub(crate) name: Option<String>,
    /// Its program, with its arguments.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Vec<String>,
    /// Its address, for one that is reached by HTTP.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header of each request, with the variable that holds its value; can be given more than once.
    #[arg(long, value_name = "HEADER=VARIABLE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// The client that you registered at its authorization server, for `provost mcp login`.
    #[arg(long, value_name = "ID", requires = "url")]
    pub(crate) oauth_client_id: Option<String>,
    /// The variable that holds the secret of that client.
    #[arg(long, value_name = "VARIABLE", requires = "oauth_client_id")]
    pub(crate) oauth_client_secret_env: Option<String>,
    /// A variable that its program gets besides, such as TOKEN='${MY_TOKEN}'; can be given more than once.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A tool that agents may have, instead of all; can be given more than once.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,
    /// A tool that may be called again after a lost connection; can be given more than once.
    #[arg(long, value_name = "TOOL")]
    pub(crate) idempotent: Vec<String>,
    /// Show models its tools in full, however many tools there are.
    #[arg(long)]
    pub(crate) always_load: bool,
    /// The mode of its sandbox, instead of the agents'.
    #[arg(long, value_name = "MODE", conflicts_with = "url",
        value_parser = PossibleValuesParser::new(SandboxMode::ALL.map(SandboxMode::name)))]
    pub(crate) sandbox: Option<String>,
    /// A host that its program reaches, and no others; can be given more than once.
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    pub(crate) allow_host: Vec<String>,
    /// Add the servers of this file of another program, such as .mcp.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

const ADD_HELP: &str = "\
provost mcp add memory -- npx -y @modelcontextprotocol/server-memory@2026.8.31 · \
provost mcp add issues --url https://mcp.example.com/ --header Authorization=ISSUES_AUTHORIZATION · \
provost mcp add --from .mcp.json. Then `provost mcp trust NAME` shows its tools and asks.";

#[derive(Debug, Args)]
pub(crate) struct McpListArgs {
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// The name of the server.
    #[arg(add = completing::mcp_servers())]
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpTestArgs {
    /// The name of the server.
    #[arg(add = completing::mcp_servers())]
    pub(crate) name: String,
    /// Call this tool, by the server's name of it.
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// The arguments of the call, as a JSON object.
    #[arg(long, value_name = "JSON", requires = "call")]
    pub(crate) arguments: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpTrustArgs {
    /// The name of the server.
    #[arg(add = completing::mcp_servers())]
    pub(crate) name: String,
    /// Agree to what is listed, unasked.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Forget what you agreed to: its tools aren't used any more.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct McpLoginArgs {
    /// The name of the server.
    #[arg(add = completing::mcp_servers())]
    pub(crate) name: String,
    /// Take the address that the browser ends at from standard input, for a browser on another machine.
    #[arg(long)]
    pub(crate) paste: bool,
    /// A scope to ask for besides those that your login has; can be given more than once. Without it: those of the settings,
    /// or else those that the server names.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// The port on 127.0.0.1 that the browser comes back to, if the authorization server wants a certain one.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

const LOGIN_HELP: &str = "\
Prints an address to open in a browser, and waits at most 10 minutes until the browser comes back. On a machine without a \
browser: --paste, open the address anywhere, and paste the address that the browser then fails to open. The tokens are \
kept in a file that only you can read, and renewed while they can be.";

#[derive(Debug, Args)]
#[command(after_help = ACP_HELP)]
pub(crate) struct AcpArgs {}

const ACP_HELP: &str = "An editor that speaks the Agent Client Protocol starts this command and speaks to it on standard \
input and output: a session is a run. Runs go on when the editor ends, also while a question waits; loading the session \
shows the run and asks the question again. The settings and the trust of the session's folder count, as in `provost run`.";
