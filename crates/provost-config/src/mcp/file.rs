//! Servers in the user's own settings file: added and removed, and the rest of the file left unchanged.

use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::{MCP, McpTable};
use crate::approved::{FILE_BYTES_MAX, permissions, target};
use crate::errors::{ConfigError, Problem};
use crate::whole_file::{WholeFile, read_limited};
use crate::{Folders, Request, load_in};

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerChange {
    /// It was made.
    Made,
    /// It wasn't: there is a server of this name already, or there is none.
    Not,
}

/// Adds a server to `file`, which is created if it is missing. Comments, order, permissions and a symbolic link are
/// kept; the file holds the old text or all of the new one.
///
/// # Errors
/// When the file is no settings file, can't be read or written, or is locked by another process. It is then unchanged.
pub fn add_server(file: &Path, name: &str, table: &McpTable) -> Result<ServerChange, ConfigError> {
    change(file, |document| insert(document, name, table))
}

fn insert(document: &mut DocumentMut, name: &str, table: &McpTable) -> ServerChange {
    if document.get(MCP).and_then(|all| all.get(name)).is_some() {
        return ServerChange::Not;
    }
    let all = document.entry(MCP).or_insert_with(|| {
        let mut all = Table::new();
        all.set_implicit(true);
        Item::Table(all)
    });
    match all.as_table_like_mut() {
        Some(all) => {
            all.insert(name, Item::Table(written(table)));
            ServerChange::Made
        }
        None => ServerChange::Not,
    }
}

/// The first thing that would be wrong with a server in the user's own settings, which would then be refused; `None` if
/// nothing is.
///
/// # Errors
/// When no temporary file can be written.
pub fn server_problem(
    request: &Request<'_>,
    folders: &Folders,
    name: &str,
    table: &McpTable,
) -> Result<Option<Problem>, ConfigError> {
    let failed = |source| ConfigError::ServerUnkept { file: folders.user_file.clone(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("config.toml");
    let old = read_limited(&folders.user_file, FILE_BYTES_MAX).map_err(failed)?.unwrap_or_default();
    let mut document = old.parse::<DocumentMut>().unwrap_or_default();
    insert(&mut document, name, table);
    std::fs::write(&file, document.to_string()).map_err(failed)?;
    let loading = load_in(request, &Folders { user_file: file, ..folders.clone() });
    let key = format!("{MCP}.{name}");
    Ok(loading.problems.into_iter().find(|problem| problem.key.starts_with(&key)))
}

/// Removes a server from `file`, in the same way.
///
/// # Errors
/// As there.
pub fn remove_server(file: &Path, name: &str) -> Result<ServerChange, ConfigError> {
    change(file, |document| {
        let all = document.get_mut(MCP).and_then(Item::as_table_like_mut);
        match all.and_then(|all| all.remove(name)) {
            Some(_) => ServerChange::Made,
            None => ServerChange::Not,
        }
    })
}

fn change(
    file: &Path,
    change: impl FnOnce(&mut DocumentMut) -> ServerChange,
) -> Result<ServerChange, ConfigError> {
    let failed = |source| ConfigError::ServerUnkept { file: file.to_owned(), source };
    let target = target(file).map_err(failed)?;
    let whole = WholeFile::lock(&target).map_err(failed)?;
    let old = read_limited(&target, FILE_BYTES_MAX).map_err(failed)?.unwrap_or_default();
    let mut document = old.parse::<DocumentMut>().map_err(|error| {
        let before = error.span().and_then(|span| old.get(..span.start)).unwrap_or_default();
        ConfigError::NoSettings {
            file: file.to_owned(),
            line: before.matches('\n').count().saturating_add(1),
            what: error.message().to_owned(),
        }
    })?;
    let made = change(&mut document);
    if made == ServerChange::Made {
        whole.replace(&document.to_string(), permissions(&target).map_err(failed)?).map_err(failed)?;
    }
    Ok(made)
}

fn written(server: &McpTable) -> Table {
    let mut table = Table::new();
    let mut put = |name: &str, value: Value| {
        table.insert(name, Item::Value(value));
    };
    let list = |items: &[String]| Value::Array(items.iter().collect::<Array>());
    let texts = |items: &std::collections::BTreeMap<String, String>| {
        Value::InlineTable(items.iter().collect::<InlineTable>())
    };
    server.command.iter().for_each(|command| put("command", command.as_str().into()));
    server.url.iter().for_each(|url| put("url", url.as_str().into()));
    server.oauth_client_id.iter().for_each(|client| put("oauth_client_id", client.as_str().into()));
    let secret = server.oauth_client_secret_env.iter();
    secret.for_each(|name| put("oauth_client_secret_env", name.as_str().into()));
    let lists = [
        ("args", &server.args),
        ("oauth_scopes", &server.oauth_scopes),
        ("tools", &server.tools),
        ("idempotent", &server.idempotent),
        ("allow_hosts", &server.allow_hosts),
    ];
    for (name, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
        put(name, list(items));
    }
    for (name, items) in
        [("env", &server.env), ("headers_env", &server.headers_env), ("subjects", &server.subjects)]
    {
        if !items.is_empty() {
            put(name, texts(items));
        }
    }
    server.sandbox.iter().for_each(|mode| put("sandbox", mode.name().into()));
    if server.always_load {
        put("always_load", true.into());
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::{ServerChange, add_server, remove_server};
    use crate::McpTable;

    #[test]
    fn a_server_is_added_and_removed_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("provost/config.toml");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let before = "# mine\n[agent]\nmodel = \"a/b\" # the best\n";
        std::fs::write(&file, before).unwrap();
        let table = McpTable {
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned(), "a@1.2.3".to_owned()],
            env: BTreeMap::from([("TOKEN".to_owned(), "${MCP_TOKEN}".to_owned())]),
            always_load: true,
            ..McpTable::default()
        };
        assert_eq!(add_server(&file, "git", &table).unwrap(), ServerChange::Made);
        assert_eq!(add_server(&file, "git", &table).unwrap(), ServerChange::Not);
        expect![[r#"
            # mine
            [agent]
            model = "a/b" # the best

            [mcp.git]
            command = "npx"
            args = ["-y", "a@1.2.3"]
            env = { TOKEN = "${MCP_TOKEN}" }
            always_load = true
        "#]]
        .assert_eq(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(remove_server(&file, "git").unwrap(), ServerChange::Made);
        assert_eq!(remove_server(&file, "git").unwrap(), ServerChange::Not);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    }
}
