//! Tables of servers that can't be, and what of a project's needs consent.

use std::collections::BTreeMap;

use provost_event::SandboxMode;
use provost_harness::Redactor;

use super::{MCP, McpTable, PackageVersion};
use crate::errors::{Problem, Source};
use crate::literal::{is_secret, is_secret_name};
use crate::named::{self, Table as _};
use crate::project::ProjectRequest;
use crate::{FILE_NAME, Loading};

/// What is wrong with a field of a server, and what would be right.
struct Wrong {
    field: &'static str,
    what: String,
    remedy: String,
}

impl Wrong {
    fn new(field: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field, what: what.into(), remedy: remedy.into() }
    }
}

/// Notes all that is wrong with the servers.
pub(crate) fn check(loading: &Loading) -> Vec<Problem> {
    let keys = loading.settings.named.key_variables();
    let mut problems = Vec::new();
    for (name, table) in &loading.settings.named.mcp {
        let mut wrong = reach(table);
        wrong.extend(package(table));
        wrong.extend(secrets(table, &keys));
        wrong.extend(unoffered(table));
        wrong.extend(subjects(table));
        wrong.extend(unconfined(table, loading));
        wrong.extend(two_files(loading, name));
        problems.extend(wrong.into_iter().map(|wrong| problem(loading, name, wrong)));
    }
    problems
}

fn problem(loading: &Loading, name: &str, wrong: Wrong) -> Problem {
    let Wrong { field, what, remedy } = wrong;
    let key = named::key(MCP, name, field);
    let source = match loading.source(&key) {
        // What a project adds to a server of the user's own is what is wrong.
        Source::Default => sources(loading, name)
            .find(|source| source.is_projects())
            .cloned()
            .unwrap_or_else(|| first_source(loading, name)),
        source => source,
    };
    Problem { source, key, what, remedy }
}

/// Where the first of its fields was given.
pub(super) fn first_source(loading: &Loading, name: &str) -> Source {
    sources(loading, name).next().cloned().unwrap_or(Source::Default)
}

fn sources<'a>(loading: &'a Loading, name: &str) -> impl Iterator<Item = &'a Source> {
    let keys = McpTable::FIELDS.iter().map(|field| named::key(MCP, name, field.name)).collect::<Vec<_>>();
    keys.into_iter().filter_map(|key| loading.given.get(&key)).map(|given| &given.source)
}

fn reach(table: &McpTable) -> Vec<Wrong> {
    let of_program = [
        ("args", !table.args.is_empty()),
        ("env", !table.env.is_empty()),
        ("sandbox", table.sandbox.is_some()),
        ("allow_hosts", !table.allow_hosts.is_empty()),
    ];
    let of_address = [
        ("headers_env", !table.headers_env.is_empty()),
        ("oauth_client_id", table.oauth_client_id.is_some()),
        ("oauth_client_secret_env", table.oauth_client_secret_env.is_some()),
        ("oauth_scopes", !table.oauth_scopes.is_empty()),
    ];
    let (lost, needs) = match (&table.command, &table.url) {
        (None, None) => {
            return vec![Wrong::new("", "it has neither a command nor a url", "e.g. command = \"npx\"")];
        }
        (Some(_), Some(_)) => {
            return vec![Wrong::new("url", "it has a command too", "keep the one by which it is reached")];
        }
        (Some(_), None) => (of_address.to_vec(), "url"),
        (None, Some(_)) => (of_program.to_vec(), "command"),
    };
    if table.url.is_some() && table.oauth_client_secret_env.is_some() && table.oauth_client_id.is_none() {
        let what = "it counts only beside oauth_client_id";
        return vec![Wrong::new("oauth_client_secret_env", what, "name the client whose secret it is")];
    }
    let lost = lost.into_iter().filter(|(_, is_given)| *is_given);
    lost.map(|(field, _)| Wrong::new(field, format!("it counts only beside {needs}"), "leave it out"))
        .collect()
}

fn package(table: &McpTable) -> Option<Wrong> {
    let PackageVersion::Open { package, example } = table.package() else { return None };
    let what = format!(
        "`{package}` names no exact version, so that another program may be started tomorrow than you agreed to today"
    );
    Some(Wrong::new("args", what, format!("write the version, such as `{example}`")))
}

/// Secrets that are written out, which would be shown and kept with what the user agrees to, and providers' keys.
fn secrets(table: &McpTable, keys: &BTreeMap<String, String>) -> Vec<Wrong> {
    let shapes = Redactor::default();
    let mut wrong = Vec::new();
    for (name, value) in &table.env {
        let is_written =
            is_secret(value, &shapes) || (is_secret_name(name) && !value.contains("${") && !value.is_empty());
        if is_written {
            let remedy = format!("put it into a variable of yours, e.g. {name} = \"${{MCP_{name}}}\"");
            wrong.push(Wrong::new("env", format!("`{name}` holds a secret"), remedy));
        }
    }
    if table.args.iter().any(|arg| is_secret(arg, &shapes)) {
        wrong.push(Wrong::new(
            "args",
            "one holds a secret",
            "let the server read it from a variable, with env",
        ));
    }
    if table.url.as_ref().is_some_and(|url| is_secret(url, &shapes)) {
        wrong.push(Wrong::new("url", "it holds a secret", "send it in a header, with headers_env"));
    }
    for name in table.variables() {
        let Some(provider) = keys.get(&name) else { continue };
        let field = if table.command.is_some() { "env" } else { "headers_env" };
        let what = format!("{name} holds the key of the provider {provider}, which no MCP server gets");
        wrong.push(Wrong::new(field, what, "give the server a key of its own in another variable"));
    }
    wrong
}

fn unoffered(table: &McpTable) -> Option<Wrong> {
    let lost = table.idempotent.iter().find(|tool| !table.tools.is_empty() && !table.tools.contains(tool))?;
    Some(Wrong::new("idempotent", format!("`{lost}` isn't one of its tools"), "add it to tools"))
}

fn subjects(table: &McpTable) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for (tool, text) in &table.subjects {
        if let Err(why) = super::subject_of(text) {
            wrong.push(Wrong::new("subjects", format!("`{tool}` is `{text}`; it {why}"), "correct it"));
        } else if !table.tools.is_empty() && !table.tools.contains(tool) {
            wrong.push(Wrong::new("subjects", format!("`{tool}` isn't one of its tools"), "add it to tools"));
        }
    }
    wrong
}

/// Nothing holds a program without a sandbox to hosts.
fn unconfined(table: &McpTable, loading: &Loading) -> Option<Wrong> {
    let mode = table.sandbox.unwrap_or(loading.settings.sandbox.mode);
    let is_lost = !table.allow_hosts.is_empty() && mode == SandboxMode::Off;
    is_lost.then(|| {
        let what = "nothing holds its program to these hosts: its sandbox is off";
        Wrong::new("allow_hosts", what, "e.g. sandbox = \"workspace\"")
    })
}

/// A project's file that changes a server of the user's own would have another program run under a name that the user
/// knows.
fn two_files(loading: &Loading, name: &str) -> Option<Wrong> {
    let all = sources(loading, name).collect::<Vec<_>>();
    let own = all.iter().find(|source| !source.is_projects())?;
    let is_mixed = all.iter().any(|source| source.is_projects());
    is_mixed.then(|| {
        Wrong::new("", format!("{own} has a server of this name too"), "give one of them another name")
    })
}

/// The servers of a project's file, which need consent.
pub(crate) fn requests(loading: &Loading) -> Vec<ProjectRequest> {
    let mut requests = Vec::new();
    for (name, table) in &loading.settings.named.mcp {
        let source = first_source(loading, name);
        if !source.is_projects() {
            continue;
        }
        let what = match table.command {
            Some(_) => format!("runs when a tool of the MCP server {name} is called"),
            None => format!("is told what the agents call of the MCP server {name}"),
        };
        let mut body = table.written();
        body.extend(table.sandbox.map(|mode| format!("sandbox: {}", mode.name())));
        body.extend(table.subjects.iter().map(|(tool, subject)| format!("subject: {tool}: {subject}")));
        if !table.allow_hosts.is_empty() {
            body.push(format!("reaches: {}", table.allow_hosts.join(", ")));
        }
        requests.push(ProjectRequest {
            file: FILE_NAME.to_owned(),
            place: source.to_string(),
            what,
            body: body.join("\n"),
        });
    }
    requests
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};

    use crate::{AvailableTools, Folders, Request, Scope, load_in};

    /// The problems of a user's file and a project's file with these texts.
    #[track_caller]
    fn check(users: &str, projects: &str, expected: Expect) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("user.toml"), users).unwrap();
        std::fs::write(folder.join("provost.toml"), projects).unwrap();
        let folders = Folders { user_file: folder.join("user.toml"), state: folder.join("state") };
        let variables = BTreeMap::new();
        let request = Request::new(Scope::Project, folder, &variables, AvailableTools::default());
        let loading = load_in(&request, &folders);
        let problems = loading.problems.iter().map(|problem| format!("{problem}\n"));
        let problems = problems.collect::<String>();
        expected.assert_eq(&problems.replace(&format!("{}/", folder.display()), ""));
    }

    #[test]
    fn a_server_is_a_program_or_an_address() {
        check(
            "[mcp.none]\ntools = [\"a\"]\n[mcp.both]\ncommand = \"x\"\nurl = \"http://127.0.0.1:1\"\n\
             [mcp.far]\nurl = \"http://127.0.0.1:1\"\nargs = [\"x\"]\n[mcp.a__b]\ncommand = \"x\"\n",
            "",
            expect![[r#"
                user.toml:9:6: mcp.a__b: must be a name of up to 32 letters, digits, - and single _, which begins with a letter or a digit: it is part of the names of its tools, mcp__NAME__TOOL
                user.toml:5:1: mcp.both.url: it has a command too; keep the one by which it is reached
                user.toml:8:1: mcp.far.args: it counts only beside command; leave it out
                user.toml:2:1: mcp.none: it has neither a command nor a url; e.g. command = "npx"
            "#]],
        );
    }

    #[test]
    fn a_version_is_exact_and_a_secret_is_a_variable() {
        check(
            "[mcp.bare]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\n[mcp.open]\ncommand = \"x\"\n\
             env = { API_TOKEN = \"abc\", K = \"${ANTHROPIC_API_KEY}\" }\nallow_hosts = [\"x.example\"]\n",
            "",
            expect![[r#"
                user.toml:3:1: mcp.bare.args: `server` names no exact version, so that another program may be started tomorrow than you agreed to today; write the version, such as `server@1.2.3`
                user.toml:6:1: mcp.open.env: `API_TOKEN` holds a secret; put it into a variable of yours, e.g. API_TOKEN = "${MCP_API_TOKEN}"
                user.toml:6:1: mcp.open.env: ANTHROPIC_API_KEY holds the key of the provider anthropic, which no MCP server gets; give the server a key of its own in another variable
                user.toml:7:1: mcp.open.allow_hosts: nothing holds its program to these hosts: its sandbox is off; e.g. sandbox = "workspace"
            "#]],
        );
    }

    #[test]
    fn a_projects_file_changes_no_server_of_the_users_and_takes_no_tools_unseen() {
        check(
            "[mcp.s]\ncommand = \"mine\"\n",
            "[mcp.s]\nargs = [\"--all\"]\n[mcp.p]\ncommand = \"p\"\ntrust = \"always\"\n",
            expect![[r#"
                provost.toml:5:1: mcp.p.trust: a project's file may not set this; set it in user.toml
                provost.toml:2:1: mcp.s: user.toml:2:1 has a server of this name too; give one of them another name
            "#]],
        );
    }
}
