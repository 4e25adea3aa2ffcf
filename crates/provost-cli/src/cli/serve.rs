//! Arguments of `serve` and `top`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 7867)]
    pub(crate) port: u16,
    /// Listen here instead, with TLS; needs --tls-cert, --tls-key and --host.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "port")]
    pub(crate) listen: Option<SocketAddr>,
    /// Let --listen be an address that other machines reach.
    #[arg(long, requires = "listen")]
    pub(crate) beyond_loopback: bool,
    /// The certificate, with those that lead to its authority behind it: a file of PEM.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key: a file of PEM.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name by which the server is asked; give it again for more. The page has the first one.
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub(crate) hosts: Vec<String>,
    /// Write a service file for this user (systemd; launchd on macOS), say how to start it, and end.
    #[arg(long, conflicts_with_all = ["listen", "token_file", "openapi"])]
    pub(crate) install: bool,
    /// Print a link to the page of the server that runs, and end.
    #[arg(long, conflicts_with_all = ["port", "listen", "token_file", "install", "openapi"])]
    pub(crate) link: bool,
    /// Write the token for programs to this new file, which only you can read.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the OpenAPI document and end.
    #[arg(long, conflicts_with_all = ["port", "token_file"])]
    pub(crate) openapi: bool,
}

const SERVE_HELP: &str = "It listens on 127.0.0.1 and on a Unix socket in the state folder, and elsewhere only with TLS, where --listen and --beyond-loopback say so. A browser is \
signed in by the link that is printed, once and within ten minutes; Enter prints another. A program sends the token in \
the header `Authorization: Bearer TOKEN`; --token-file writes it, for as long as the server runs. Runs go on when the \
server ends.";

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopArgs {
    /// Draw with ASCII only, as where the locale isn't UTF-8.
    #[arg(long)]
    pub(crate) ascii: bool,
}

const TOP_HELP: &str = "Runs of all processes and folders, in groups by what they need; `?` shows the keys. What it starts goes \
on when it is left.";
