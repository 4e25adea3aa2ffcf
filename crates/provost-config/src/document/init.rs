//! The commented file of `provost init`.

use std::fmt::Write as _;

use super::default_text;
use crate::Settings;
use crate::agent::{AGENT, AGENTS_WORDS, OF_PROGRAMS};
use crate::declare::{From, Setting};
use crate::hook::{HOOKS_WORDS, Hook};
use crate::item::Item as _;
use crate::mcp::MCP_WORDS;
use crate::named::{MODEL, MODELS_WORDS, PROVIDER, PROVIDERS_WORDS};
use crate::stop_hook::{STOP_HOOK, STOP_HOOKS_WORDS};
use crate::table::{SECTIONS, settings};

/// Several judges stand in place of the one: a file can't have both.
const ELSEWHERE: [&str; 2] = ["goal.judges", "goal.agree"];
/// Columns of a comment.
const WIDTH: usize = 100;

/// The few settings of a short file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortFile {
    /// `agent.model`.
    pub model: String,
    /// The key in `[budget]` and its value as TOML: `usd` and `5.00`; `None` for no limit.
    pub limit: Option<(&'static str, String)>,
    /// The command of a stop hook; `None` for none.
    pub check: Option<String>,
    /// Whether this machine can confine agents' programs.
    pub sandbox: ShortSandbox,
}

/// What a short file says of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShortSandbox {
    /// It is possible.
    Possible,
    /// It isn't, for this reason, which names the remedy.
    Impossible(String),
}

impl ShortSandbox {
    fn text(&self) -> String {
        match self {
            Self::Possible => "\n# What agents' programs may do, whatever they are told: docs/sandbox.md.\n[sandbox]\n\
                 mode = \"workspace\"\nnetwork = \"none\"\n# External agents need their provider: allow_hosts, then \
                 network = \"proxy\" and true.\nexternal = false\n"
                .to_owned(),
            Self::Impossible(why) => {
                let why = why.replace(['\n', '\r'], " ");
                let why = comment(&format!("Agents' programs run with your rights. No sandbox is possible here: {why}"));
                format!("\n{why}[sandbox]\nmode = \"off\"\n")
            }
        }
    }
}

/// The file that sets this and nothing else.
pub fn short_file(short: &ShortFile) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut out =
        String::from("# Settings of Provost. `provost init --all` writes all of them, with explanations.\n");
    // Writing to a String can't fail, here and below.
    let _ = write!(out, "\n[agent]\nmodel = {}\n", quoted(&short.model));
    if let Some((key, value)) = &short.limit {
        let _ = write!(out, "\n# Of one run, with all its agents.\n[budget]\n{key} = {value}\n");
    }
    out.push_str(&short.sandbox.text());
    if let Some(check) = &short.check {
        let _ = write!(
            out,
            "\n# The agent's work is done when this exits with 0; otherwise it is told why not and goes on.\n\
             [[stop_hooks]]\nname = \"check\"\ncommand = {}\ntimeout_secs = 600\n",
            quoted(check)
        );
    }
    out
}

/// The commented file for a project, or with `From::User` for the user.
pub fn init_file(for_user: bool) -> String {
    let mut out = String::from(
        "# Settings of Provost. Everything is optional: remove the # from what you want to change.\n",
    );
    out.push_str("# `provost check` says what counts and where it came from.\n");
    let belongs = |s: &&Setting<Settings>| {
        (for_user || s.from == From::Anywhere) && !ELSEWHERE.contains(&s.key().as_str())
    };
    // A file can't have both, and most users need the list.
    for (section, words) in SECTIONS.iter().filter(|(section, _)| *section != Hook::LIST) {
        let blocks = settings().filter(|s| s.section == *section).filter(belongs).map(block);
        let blocks = blocks.collect::<Vec<_>>();
        if !blocks.is_empty() {
            // Writing to a String can't fail, here and below.
            let _ = write!(out, "\n{}[{section}]\n{}", comment(words), blocks.join("\n"));
        }
    }
    if for_user {
        named(&mut out, PROVIDERS_WORDS, "[providers.mine]", PROVIDER);
        named(&mut out, MODELS_WORDS, "[models.\"mine/some-model\"]", MODEL);
    }
    let _ = write!(out, "\n{}{MCP_SERVERS}", comment(MCP_WORDS));
    let _ = write!(out, "\n{}# [[stop_hooks]]\n", comment(STOP_HOOKS_WORDS));
    for field in STOP_HOOK {
        let _ = writeln!(out, "# {} = {}", field.name, field.example);
    }
    let _ = write!(out, "\n{}{HOOKS}", comment(HOOKS_WORDS));
    let _ = write!(out, "\n{}# [[agents]]\n", comment(AGENTS_WORDS));
    for field in AGENT.iter().filter(|field| !OF_PROGRAMS.contains(&field.name)) {
        let _ = writeln!(out, "# {} = {}", field.key(), field.example);
    }
    out.push_str(PROGRAMS);
    out
}

/// An agent that is a program has other fields than one with a model.
const PROGRAMS: &str = r#"#
# [[agents]]
# kind = "external"
# name = "codex"
# description = "Writes code by itself. Say what to change, and how to tell that it works."
# program = "codex"
# args = []
# profile = "codex"
# channel = "auto"
# size = "40x120"
# idle_time = "30m"
# env = ["OPENAI_API_KEY"]
"#;

/// Not all fields, of which some exclude others: servers as one would write them.
const MCP_SERVERS: &str = r#"# [mcp.memory]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-memory@2026.8.31"]
#
# [mcp.issues]
# url = "https://mcp.example.com/"
# headers_env = { Authorization = "MCP_ISSUES_AUTHORIZATION" }
# tools = ["search", "read"]
"#;

/// Not all fields, of which some exclude others: hooks as one would write them.
const HOOKS: &str = r#"# [[hooks]]
# event = "pre_tool_call"
# matcher = "shell"
# command = "./scripts/no-force-push.sh"
#
# [[hooks]]
# event = "post_tool_call"
# url = "http://127.0.0.1:8080/hook"
#
# [[hooks]]
# import = "claude"
"#;

fn named<T>(out: &mut String, words: &str, head: &str, fields: &[Setting<T>]) {
    let _ = write!(out, "\n{}# {head}\n", comment(words));
    for field in fields {
        out.push_str(&comment(&format!("{} {}", field.words, default_text(field))));
        let _ = writeln!(out, "# {} = {}", field.name, field.example);
    }
}

fn block(setting: &Setting<Settings>) -> String {
    format!(
        "{}# {} = {}\n",
        comment(&format!("{} {}", setting.words, default_text(setting))),
        setting.name,
        setting.example
    )
}

fn comment(text: &str) -> String {
    let text = text.replace('`', "");
    textwrap::wrap(&text, WIDTH).into_iter().fold(String::new(), |out, line| format!("{out}# {line}\n"))
}
