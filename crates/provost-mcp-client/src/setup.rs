//! A server as it is configured.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use provost_event::{SandboxPolicy, ToolSubject};
use secrecy::SecretString;

/// A server, with all that is needed to reach it.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// Its name: up to 32 letters, digits, `-` and single `_`. It is part of its tools' names, `mcp__NAME__TOOL`.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// How it is reached as it was written, a line for each part: what the user agrees to. Holds no value of a variable.
    pub written: Vec<String>,
    /// The tools that agents may have, by the server's names; empty: all.
    pub tools: Vec<String>,
    /// The tools that may be called again after a lost connection, by the server's names.
    pub idempotent: Vec<String>,
    /// What calls are about, by the server's names of tools; those of any other tool: all of their arguments.
    pub subjects: BTreeMap<String, ToolSubject>,
    /// Whether models see its tools in full, however many there are.
    pub always_load: bool,
    /// The time limit of a call.
    pub timeout: Duration,
    /// What confines its program.
    pub sandbox: SandboxPolicy,
    /// The file with what the user has agreed to.
    pub pins: PathBuf,
}

impl ServerSetup {
    /// Whether agents may have the tool `name`, by the server's name of it.
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|tool| tool == name)
    }

    /// Whether the tool `name` may be called again after a lost connection.
    #[must_use]
    pub fn is_idempotent(&self, name: &str) -> bool {
        self.idempotent.iter().any(|tool| tool == name)
    }
}

/// How a server is reached.
#[derive(Clone)]
pub enum Reach {
    /// A program that is started, by its standard input and output.
    Program {
        /// The program: a path, or a name looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets besides those of the allow list.
        env: Vec<(String, SecretString)>,
        /// The folder that it starts in.
        cwd: PathBuf,
    },
    /// An address, by streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, SecretString)>,
        /// How the user logs in there, where that is needed.
        login: Box<LoginSetup>,
    },
}

/// How the user logs in to an address.
#[derive(Debug, Clone)]
pub struct LoginSetup {
    /// The file with the login.
    pub file: PathBuf,
    /// The client that was registered at the authorization server before; `None`: Provost registers itself.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretString>,
    /// The scopes that are asked for; empty: those that the server names.
    pub scopes: Vec<String>,
}

/// Leaves out the values of variables and headers.
impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |all: &[(String, SecretString)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Self::Program { command, args, env, cwd } => f
                .debug_struct("Program")
                .field("command", command)
                .field("args", args)
                .field("env_names", &names(env))
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, login } => f
                .debug_struct("Http")
                .field("url", url)
                .field("header_names", &names(headers))
                .field("login", login)
                .finish(),
        }
    }
}

impl LoginSetup {
    /// No login: its file isn't there, and Provost would register itself.
    #[must_use]
    pub const fn none() -> Self {
        Self { file: PathBuf::new(), client_id: None, client_secret: None, scopes: Vec::new() }
    }
}
