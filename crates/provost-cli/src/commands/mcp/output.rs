//! Servers in words.

use std::fmt::Write as _;

use provost_event::{counted, grouped};
use provost_mcp_client::{Difference, Inspection, Pins};
use provost_view::{McpLogin, McpServerState, McpServerView, McpTestView};

use crate::commands::date_and_time;
use crate::render::{Cells, Table, one_line, safe, terminal_width};

/// Columns of a description.
const DESCRIPTION_WIDTH: usize = 200;

pub(super) fn list(servers: &[McpServerView]) -> String {
    if servers.is_empty() {
        return "no MCP server is set; `provost mcp add` adds one\n".to_owned();
    }
    let mut table = Table::new(&[
        ("NAME", Cells::Text),
        ("STATE", Cells::Text),
        ("TOOLS", Cells::Numbers),
        ("TOKENS", Cells::Numbers),
        ("SET IN", Cells::CutAtStart),
        ("REACHED BY", Cells::CutAtEnd),
    ]);
    for server in servers {
        let tools = server.tools.iter().filter(|tool| tool.is_offered).count();
        table.row(vec![
            server.name.clone(),
            server.state.words().to_owned(),
            tools.to_string(),
            grouped(server.tokens),
            server.place.clone(),
            reached(server),
        ]);
    }
    let mut out = table.lines(terminal_width());
    for server in servers.iter().filter(|server| server.state != McpServerState::Trusted) {
        let _ = writeln!(out, "{}: {}", server.name, server.why.as_deref().unwrap_or_default());
    }
    safe(&out)
}

fn reached(server: &McpServerView) -> String {
    let values = server.written.iter().filter_map(|line| line.split_once(": "));
    let shown = values.filter(|(what, _)| matches!(*what, "command" | "argument" | "address"));
    shown.map(|(_, value)| value).collect::<Vec<_>>().join(" ")
}

pub(super) fn server(server: &McpServerView) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "{name:<12} {value}");
    };
    row("server", &server.name);
    row("state", server.state.words());
    server.why.iter().for_each(|why| row("why", why));
    row("set in", &server.place);
    facts(server, &mut row);
    row("tools", &format!("{}, about {} tokens", server.tools.len(), grouped(server.tokens)));
    for tool in &server.tools {
        let mut notes = Vec::new();
        notes.extend((!tool.is_offered).then_some("not offered".to_owned()));
        notes.extend(tool.is_idempotent.then_some("may be called again".to_owned()));
        notes.extend(tool.subject.iter().cloned());
        notes.extend((!tool.claims.is_empty()).then(|| format!("claims {}", tool.claims.join(", "))));
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let _ = writeln!(out, "\n  {}{notes}", tool.known_as);
        let _ = writeln!(out, "      {}", one_line(&tool.description, DESCRIPTION_WIDTH));
    }
    safe(&out)
}

fn facts(server: &McpServerView, row: &mut impl FnMut(&str, &str)) {
    for line in &server.written {
        let (what, value) = line.split_once(": ").unwrap_or(("", line));
        row(what, value);
    }
    server.package.iter().for_each(|package| row("package", package));
    if let Some(program) = &server.program {
        row(
            "program",
            &format!(
                "{} (BLAKE3 {}; not a condition)",
                program.path,
                program.blake3.get(..16).unwrap_or_default()
            ),
        );
    }
    server.sandbox.iter().for_each(|mode| row("sandbox", mode));
    if !server.allow_hosts.is_empty() {
        row("reaches", &server.allow_hosts.join(", "));
    }
    server.trusted_at_ms.iter().for_each(|at| row("trusted", &date_and_time(*at)));
    server.fingerprint.iter().for_each(|hash| row("fingerprint", hash));
    server.calls_itself.iter().filter(|text| !text.is_empty()).for_each(|text| row("calls itself", text));
    if server.always_load {
        row("loaded", "always, in full");
    }
    server.login.iter().for_each(|login| row("login", &self::login(login)));
}

/// A login in words: where it was made, for what, and how long it lasts.
pub(super) fn login(login: &McpLogin) -> String {
    let mut words = vec![match &login.issuer {
        Some(issuer) => format!("at {}", one_line(issuer, DESCRIPTION_WIDTH)),
        None => "yes".to_owned(),
    }];
    if !login.scopes.is_empty() {
        words.push(format!("for {}", one_line(&login.scopes.join(" "), DESCRIPTION_WIDTH)));
    }
    match (login.renews, login.expires_at_ms) {
        (true, _) => words.push("renewed by itself".to_owned()),
        (false, Some(at)) => words.push(format!("until {}", date_and_time(at))),
        (false, None) => {}
    }
    words.join(", ")
}

pub(super) fn test(view: &McpTestView) -> String {
    let mut out = String::new();
    if let Some(error) = &view.error {
        let _ = writeln!(out, "{} can't be reached: {error}", view.server);
        return safe(&out);
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let _ = writeln!(
        out,
        "{} answers: {}, protocol {}, {} ms",
        view.server,
        text(&view.calls_itself),
        text(&view.protocol),
        view.took_ms.unwrap_or_default()
    );
    let _ = writeln!(
        out,
        "{}, about {} tokens: {}",
        counted(view.tools.len() as u64, "tool"),
        grouped(view.tokens),
        view.tools.join(", ")
    );
    for refused in &view.refused {
        let _ = writeln!(out, "refused: {}: {}", refused.name, refused.why);
    }
    if let Some(difference) = &view.difference {
        let _ = write!(out, "different from what you agreed to:\n{difference}");
    }
    if !view.denied.is_empty() {
        let _ = writeln!(out, "the sandbox denied: {}", view.denied.join("; "));
    }
    if let Some(called) = &view.called {
        let what = if called.is_error { "the call failed" } else { "the call's result" };
        let _ = writeln!(out, "{what}:\n{}", called.text);
    }
    safe(&out)
}

/// What the user is asked to agree to: all of it, or what is different.
pub(super) fn to_agree(
    server: &McpServerView,
    seen: &Inspection,
    before: Option<&Pins>,
    difference: &Difference,
) -> String {
    let mut out = String::new();
    let what = if before.is_some() { "is different from what you agreed to" } else { "is new" };
    let _ = writeln!(out, "The MCP server {} {what}.\n", server.name);
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<12} {value}");
    };
    facts(server, &mut row);
    if !seen.pins.calls_itself.is_empty() {
        row("says it is", &seen.pins.calls_itself);
    }
    row("protocol", &seen.protocol);
    for tool in &seen.refused {
        row("refused", &format!("{}: {}", tool.name, tool.why));
    }
    let _ = write!(out, "\n{}\n", difference.listed());
    safe(&out)
}
