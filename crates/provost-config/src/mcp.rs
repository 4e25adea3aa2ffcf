//! `[mcp.NAME]`: MCP servers, whose tools agents may have.

mod check;
mod file;
mod import;
mod package;
mod subject;

use std::collections::BTreeMap;

use provost_event::SandboxMode;

use crate::declare::{From, Kind, Setting, SettingDefault};
use crate::named::{Named, Table};

pub(crate) use check::{check, requests};
pub use file::{ServerChange, add_server, remove_server, server_problem};
pub use import::{ImportedServer, SkippedServer, servers_in};
pub use package::{PackageVersion, package_of};
pub use subject::subject_of;

/// The section of MCP servers.
pub(crate) const MCP: &str = "mcp";
/// What the tools of servers begin with.
pub(crate) const OF_MCP: &str = "mcp__";
/// The tool by which a model finds tools of servers.
pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// Characters of a server's name.
const NAME_CHARS_MAX: usize = 32;
/// Arguments, tools and hosts of a server.
const LIST_MAX: u64 = 1_000;
/// Scopes of a login.
const SCOPES_MAX: u64 = 100;
/// The time limit of a call, unless it is set.
const TIMEOUT_MS: u64 = 60_000;

/// What the servers' tables are for.
pub(crate) const MCP_WORDS: &str = "MCP servers, whose tools agents have as mcp__NAME__TOOL: a program (command) or an \
    address (url). Its tools are used once you have agreed to them, with `provost mcp trust NAME`. See docs/mcp.md.";

/// A server's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpTable {
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets besides, as they were written: `${NAME}` stands for the value of a variable.
    pub env: BTreeMap<String, String>,
    /// The address.
    pub url: Option<String>,
    /// Headers of each request, each with the variable that holds its value.
    pub headers_env: BTreeMap<String, String>,
    /// The client that Provost is to its authorization server, if it was registered there before.
    pub oauth_client_id: Option<String>,
    /// The variable that holds that client's secret.
    pub oauth_client_secret_env: Option<String>,
    /// The scopes that a login asks for; empty: those that the server names.
    pub oauth_scopes: Vec<String>,
    /// The tools that agents may have, by the server's names; empty: all.
    pub tools: Vec<String>,
    /// What calls are about, by the server's names of tools, each as [`subject_of`] reads it.
    pub subjects: BTreeMap<String, String>,
    /// The tools that may be called again after a lost connection, by the server's names.
    pub idempotent: Vec<String>,
    /// Whether models see its tools in full, however many there are.
    pub always_load: bool,
    timeout_ms: Option<u64>,
    /// The mode of its sandbox; absent: the agents'.
    pub sandbox: Option<SandboxMode>,
    /// The hosts that its program reaches; empty: those that the agents reach.
    pub allow_hosts: Vec<String>,
    /// Whether its tools are taken as it defines them, without being agreed to.
    pub trusts_changes: bool,
}

impl McpTable {
    /// Milliseconds that a call may take.
    #[must_use]
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(TIMEOUT_MS)
    }

    /// How it is reached, a line for each part, as it was written.
    #[must_use]
    pub fn written(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.command.iter().map(|command| format!("command: {command}")));
        lines.extend(self.args.iter().map(|arg| format!("argument: {arg}")));
        lines.extend(self.env.iter().map(|(name, value)| format!("variable: {name}={value}")));
        lines.extend(self.url.iter().map(|url| format!("address: {url}")));
        let headers = self.headers_env.iter();
        lines.extend(headers.map(|(header, variable)| format!("header: {header} from {variable}")));
        lines.extend(self.oauth_client_id.iter().map(|client| format!("client: {client}")));
        lines
    }

    /// The package that its command starts.
    #[must_use]
    pub fn package(&self) -> PackageVersion {
        self.command.as_deref().map_or(PackageVersion::None, |command| package_of(command, &self.args))
    }

    /// The variables that its own variables and headers take their values from.
    pub fn variables(&self) -> Vec<String> {
        let mut names = self.env.values().flat_map(|value| names_in(value)).collect::<Vec<_>>();
        names.extend(self.headers_env.values().cloned());
        names.extend(self.oauth_client_secret_env.clone());
        names
    }
}

/// The variables that a value names as `${NAME}`.
fn names_in(value: &str) -> Vec<String> {
    let rest = value.split("${").skip(1);
    rest.filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned()).collect()
}

/// `value` with the values of the variables that it names as `${NAME}`.
///
/// # Errors
/// The name of a variable that isn't set.
pub fn expanded(value: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        out.push_str(variables.get(name).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

impl Table for McpTable {
    const SECTION: &'static str = MCP;
    const FIELDS: &'static [Setting<Self>] = SERVER;

    fn all(named: &mut Named) -> &mut BTreeMap<String, Self> {
        &mut named.mcp
    }

    fn objection(name: &str) -> Option<&'static str> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = !name.is_empty()
            && name.len() <= NAME_CHARS_MAX
            && name.chars().all(fits)
            && !name.contains("__")
            && !name.starts_with(['_', '-'])
            && !name.ends_with('_');
        (!is_name).then_some(
            "must be a name of up to 32 letters, digits, - and single _, which begins with a letter or a digit: it is \
             part of the names of its tools, mcp__NAME__TOOL",
        )
    }
}

/// Why a server can't have this name, as `must be …`.
#[must_use]
pub fn server_name_objection(name: &str) -> Option<&'static str> {
    McpTable::objection(name)
}

/// The fields of a server.
pub(crate) const SERVER: &[Setting<McpTable>] = &[
    Setting {
        kind: Kind::Line(|table, command| table.command = Some(command)),
        default: SettingDefault::Unset("it is reached by its url"),
        example: r#""npx""#,
        words: "The program, which is started when one of its tools is first called, in the workspace and in a \
                sandbox like that of the agents. One that fetches a package, such as npx or uvx, must name its \
                exact version in args.",
        ..field("command")
    },
    Setting {
        kind: Kind::Names { max: LIST_MAX, put: |table, args| table.args = args },
        default: SettingDefault::Unset("none"),
        example: r#"["-y", "@modelcontextprotocol/server-memory@2026.8.31"]"#,
        words: "Its arguments.",
        ..field("args")
    },
    Setting {
        kind: Kind::Texts(|table, name, value| {
            table.env.insert(name, value);
        }),
        default: SettingDefault::Unset("none"),
        example: r#"{ GITHUB_TOKEN = "${MCP_GITHUB_TOKEN}" }"#,
        words: "Variables that it gets in addition to those of any helper program (PATH, HOME, the language, \
                proxies); ${NAME} is replaced by the value of your variable.",
        ..field("env")
    },
    Setting {
        kind: Kind::Address(|table, url| table.url = Some(url)),
        default: SettingDefault::Unset("it is a program"),
        example: r#""http://127.0.0.1:8090/mcp""#,
        words: "Its address, for one that is reached by streamable HTTP.",
        ..field("url")
    },
    Setting {
        kind: Kind::Texts(|table, header, variable| {
            table.headers_env.insert(header, variable);
        }),
        default: SettingDefault::Unset("none"),
        example: r#"{ Authorization = "MCP_GITHUB_AUTHORIZATION" }"#,
        words: "Headers of each request to its address, each with the variable that holds its value.",
        ..field("headers_env")
    },
    Setting {
        kind: Kind::Line(|table, client| table.oauth_client_id = Some(client)),
        default: SettingDefault::Unset("Provost registers itself when you log in"),
        example: r#""provost-on-my-laptop""#,
        words: "The client that Provost is to the authorization server of its address, if you registered one there, with the \
                redirect address http://127.0.0.1/callback; for `provost mcp login NAME`.",
        ..field("oauth_client_id")
    },
    Setting {
        kind: Kind::Variable(|table, name| table.oauth_client_secret_env = Some(name)),
        default: SettingDefault::Unset("the client has no secret"),
        example: r#""MCP_ISSUES_CLIENT_SECRET""#,
        words: "The variable that holds the secret of that client.",
        ..field("oauth_client_secret_env")
    },
    Setting {
        kind: Kind::Names { max: SCOPES_MAX, put: |table, scopes| table.oauth_scopes = scopes },
        default: SettingDefault::Unset("those that the server names"),
        example: r#"["issues:read"]"#,
        words: "The scopes that a login asks for.",
        ..field("oauth_scopes")
    },
    Setting {
        kind: Kind::Names { max: LIST_MAX, put: |table, tools| table.tools = tools },
        default: SettingDefault::Unset("all of them"),
        example: r#"["git_log", "git_status"]"#,
        words: "The tools that agents may have, by the server's names.",
        ..field("tools")
    },
    Setting {
        kind: Kind::Texts(|table, tool, subject| {
            table.subjects.insert(tool, subject);
        }),
        default: SettingDefault::Unset("all of its arguments, as JSON"),
        example: r#"{ read_text_file = "reads path", run_command = "command command" }"#,
        words: "What permissions compare their patterns with, by the server's names of its tools: a kind (command, reads, \
                writes, walks, url) and the argument with it. reads, writes and walks take a path, walks with all below it. \
                Then mcp__fs__read_text_file(src/**) works as read_file(src/**) does, and shell(rm *) also means \
                mcp__box__run_command.",
        ..field("subjects")
    },
    Setting {
        kind: Kind::Names { max: LIST_MAX, put: |table, tools| table.idempotent = tools },
        default: SettingDefault::Unset("none"),
        example: r#"["git_log"]"#,
        words: "Its tools that may be called twice, by the server's names: such a call is made again if the connection is \
                lost meanwhile. The outcome of any other is unknown then, and the model is told so. What the server says \
                about this doesn't count.",
        ..field("idempotent")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.always_load = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether models see its tools in full, also where those of other servers are only found by tool_search.",
        ..field("always_load")
    },
    Setting {
        kind: Kind::Time(|table, ms| table.timeout_ms = Some(ms)),
        default: SettingDefault::Is(r#""60s""#),
        example: r#""5m""#,
        words: "The time limit of a call.",
        ..field("timeout")
    },
    Setting {
        kind: Kind::Choice {
            of: &["agent", "off", "read-only", "workspace", "strict"],
            put: |table, word| {
                table.sandbox = SandboxMode::ALL.into_iter().find(|mode| mode.name() == word);
            },
        },
        default: SettingDefault::Is(r#""agent""#),
        example: r#""read-only""#,
        words: "What confines its program: the mode of [sandbox] for the agents (agent), or another one.",
        ..field("sandbox")
    },
    Setting {
        kind: Kind::Names { max: LIST_MAX, put: |table, hosts| table.allow_hosts = hosts },
        default: SettingDefault::Unset("what the agents reach"),
        example: r#"["docs.example.com"]"#,
        words: "The hosts that its program reaches, through the proxy of the sandbox, and no others; as allow_hosts of \
                [sandbox].",
        ..field("allow_hosts")
    },
    Setting {
        kind: Kind::Choice {
            of: &["ask", "always"],
            put: |table, word| table.trusts_changes = word == "always",
        },
        default: SettingDefault::Is(r#""ask""#),
        example: r#""always""#,
        words: "ask: a tool is used as you have agreed to it, and one that is new or has changed is blocked until \
                `provost mcp trust NAME` has shown you the difference. always: its tools are taken as it defines them when \
                a run begins; for a server that you write yourself.",
        from: From::User,
        ..field("trust")
    },
];

const fn field(name: &'static str) -> Setting<McpTable> {
    Setting::declared("", name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{McpTable, expanded};
    use crate::named::Table as _;

    #[test]
    fn a_name_can_be_told_from_the_names_of_its_tools() {
        for name in ["git", "my-server", "a_b", "GitHub2"] {
            assert_eq!(McpTable::objection(name), None, "{name}");
        }
        for name in ["", "a__b", "_a", "a_", "-a", "a b", "grün", "a.b", &"x".repeat(33)] {
            assert!(McpTable::objection(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_variable_stands_for_its_value_and_a_missing_one_is_named() {
        let variables = BTreeMap::from([("A".to_owned(), "x".to_owned())]);
        assert_eq!(expanded("Bearer ${A}-${A}!", &variables).as_deref(), Ok("Bearer x-x!"));
        assert_eq!(expanded("$A ${", &variables).as_deref(), Ok("$A ${"));
        assert_eq!(expanded("${B}", &variables), Err("B".to_owned()));
    }
}
