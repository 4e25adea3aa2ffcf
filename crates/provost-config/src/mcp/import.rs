//! Servers in other programs' files: `.mcp.json`, and tables that are called `mcpServers`, `servers` or `mcp_servers`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{McpTable, PackageVersion};
use crate::named::Table as _;

/// The keys of tables of servers, in the files of various programs.
const TABLES: [&str; 4] = ["mcpServers", "mcp_servers", "servers", "context_servers"];

/// A server of another program's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    /// Its name, changed where it can't be one here.
    pub name: String,
    /// Its table.
    pub table: McpTable,
    /// Headers with values that were written out: each needs a variable.
    pub headers: Vec<String>,
}

/// A server that isn't taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedServer {
    /// Its name there.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The servers in the text of a file, which is TOML or JSON (with comments).
///
/// # Errors
/// Why it can't be read.
pub fn servers_in(text: &str, is_toml: bool) -> Result<(Vec<ImportedServer>, Vec<SkippedServer>), String> {
    let root = if is_toml {
        let table =
            text.parse::<toml::Table>().map_err(|error| format!("it isn't TOML: {}", error.message()))?;
        serde_json::to_value(table).map_err(|error| error.to_string())?
    } else {
        serde_json::from_str::<Value>(&without_comments(text))
            .map_err(|error| format!("it isn't JSON: {error}"))?
    };
    let Some(servers) = table_of(&root) else {
        return Err(format!("it has no table of servers ({})", TABLES.join(", ")));
    };
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for (name, server) in servers {
        match imported(name, server) {
            Ok(server) => found.push(server),
            Err(why) => skipped.push(SkippedServer { name: name.clone(), why }),
        }
    }
    Ok((found, skipped))
}

/// The table of servers: at the top, or one level below, such as `mcp.servers`.
fn table_of(root: &Value) -> Option<&Map<String, Value>> {
    let here = |value: &'_ Value| {
        TABLES.iter().find_map(|name| value.get(*name).and_then(Value::as_object).map(|_| *name))
    };
    if let Some(name) = here(root) {
        return root.get(name)?.as_object();
    }
    root.as_object()?.values().find_map(|value| value.get(here(value)?)?.as_object())
}

fn imported(name: &str, server: &Value) -> Result<ImportedServer, String> {
    let fields = server.as_object().ok_or("it isn't a table")?;
    let is_true = |field: &str| fields.get(field).and_then(Value::as_bool) == Some(true);
    if is_true("disabled") || fields.get("enabled").and_then(Value::as_bool) == Some(false) {
        return Err("it is switched off there".to_owned());
    }
    if fields.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(
            "it is reached by HTTP with server-sent events, which came before streamable HTTP".to_owned()
        );
    }
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    let mut command = text("command");
    let mut args = list(fields.get("args"));
    if let Some(Value::Array(_)) = fields.get("command") {
        let mut words = list(fields.get("command")).into_iter();
        command = words.next();
        args = words.chain(args).collect();
    }
    let env = ["env", "environment"].into_iter().find_map(|field| fields.get(field));
    let mut table = McpTable {
        command,
        args,
        env: texts(env).into_iter().map(|(name, value)| (name, in_our_form(&value))).collect(),
        url: text("url").or_else(|| text("httpUrl")).or_else(|| text("serverUrl")),
        ..McpTable::default()
    };
    let headers = ["headers", "http_headers"].into_iter().find_map(|field| fields.get(field));
    let headers = texts(headers).into_keys().collect::<Vec<_>>();
    let given = texts(fields.get("env_http_headers"));
    table.headers_env = given;
    for header in &headers {
        table.headers_env.insert(header.clone(), variable_for(name, header));
    }
    if let Some(variable) = text("bearer_token_env_var") {
        return Err(format!(
            "it sends the variable {variable} behind `Bearer`: put both into one variable, and name that with `provost mcp add \
             --url URL --header Authorization=VARIABLE`"
        ));
    }
    if table.command.is_none() && table.url.is_none() {
        return Err("it has neither a command nor an address".to_owned());
    }
    if let PackageVersion::Open { package, example } = table.package() {
        return Err(format!(
            "`{package}` names no exact version; add it by hand, with one such as `{example}`"
        ));
    }
    Ok(ImportedServer { name: own_name(name)?, table, headers })
}

/// The name here: characters that no name may have become `-`.
fn own_name(name: &str) -> Result<String, String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mut own = name.chars().map(plain).collect::<String>();
    while own.contains("__") {
        own = own.replace("__", "_");
    }
    let own = own.trim_matches(['-', '_']).to_owned();
    McpTable::objection(&own).map_or(Ok(own), |why| Err(format!("its name {why}")))
}

/// A value with the variables that it names in the form that is used here: `${env:NAME}` and `${NAME:-default}` are others'.
fn in_our_form(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let name = name.split(":-").next().unwrap_or(name);
        out.push_str(&format!("{before}${{{name}}}"));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The variable for a header whose value was written out.
fn variable_for(server: &str, header: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("MCP_{server}_{header}").chars().map(plain).collect()
}

fn list(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn texts(value: Option<&Value>) -> BTreeMap<String, String> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// JSON without comments and commas before the end of a list, as editors write it.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut is_text = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' if is_text => {
                out.push(c);
                out.extend(rest.next());
            }
            '"' => {
                is_text = !is_text;
                out.push(c);
            }
            '/' if !is_text && rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if !is_text && rest.peek() == Some(&'*') => {
                let mut before = ' ';
                for c in rest.by_ref().skip(1) {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            '}' | ']' if !is_text => {
                let kept = out.trim_end().len();
                if out.get(..kept).is_some_and(|before| before.ends_with(',')) {
                    out.truncate(kept.saturating_sub(1));
                }
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::servers_in;

    #[test]
    fn servers_of_other_programs_are_taken_with_their_variables_named() {
        let text = r#"{
            // an editor's file
            "mcpServers": {
                "git hub": { "command": "npx", "args": ["-y", "gh@1.2.3"], "env": { "TOKEN": "${env:GH}" }, },
                "web": { "type": "http", "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer abc" } },
                "bare": { "command": "uvx", "args": ["mcp-server-git"] },
                "old": { "type": "sse", "url": "https://x.example/sse" },
                "off": { "command": "a", "disabled": true }, /* the end */
            },
        }"#;
        let (found, skipped) = servers_in(text, false).unwrap();
        let shown =
            found.iter().map(|server| format!("{}: {}", server.name, server.table.written().join("; ")));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "git-hub: command: npx; argument: -y; argument: gh@1.2.3; variable: TOKEN=${GH}",
                "web: address: https://x.example/mcp; header: Authorization from MCP_WEB_AUTHORIZATION",
            ]
        );
        let names = skipped.iter().map(|skipped| skipped.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["bare", "old", "off"]);
    }

    #[test]
    fn a_table_of_toml_is_read_too() {
        let text = "model = \"x\"\n[mcp_servers.time]\ncommand = \"time-mcp\"\nargs = [\"--local\"]\n";
        let (found, skipped) = servers_in(text, true).unwrap();
        assert_eq!(found.first().map(|server| server.table.written().len()), Some(2));
        assert!(skipped.is_empty());
        assert!(servers_in("{}", false).unwrap_err().contains("no table of servers"));
    }
}
