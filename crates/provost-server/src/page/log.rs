//! The entries of a log.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::{ActorKey, Record, Seq, SessionId};
use provost_view::{LogEntry, safe};
use serde::Deserialize;
use serde_json::Value;

use super::parts::{clock, cut_lines, run_path};
use super::run::{RunPage, Tab, head, tabs};
use super::{Document, Here, document};
use crate::app::App;
use crate::problem::Problem;

/// Entries of one document.
const ENTRIES_MAX: usize = 200;
/// Characters of an entry's line.
const LINE_CHARS: usize = 160;
const KEYS: &[(&str, &str)] = &[("j k", "entry"), ("o", "unfold"), ("1–6", "tabs"), ("Esc", "back")];

/// Which entries.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ShownLog {
    #[serde(default)]
    agent: u32,
    /// Whether it is the run's own log.
    #[serde(default)]
    of: Whose,
    /// Entries behind this one; the last ones if absent.
    after: Option<u64>,
}

/// Whose log.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Whose {
    #[default]
    Agent,
    Run,
}

pub(super) async fn log(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<ShownLog>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let key = match shown.of {
        Whose::Run => ActorKey::Run(page.run()),
        Whose::Agent => ActorKey::Session(SessionId { run: page.run(), agent: shown.agent }),
    };
    let from = Seq(shown.after.unwrap_or_default());
    let records = app.backend.read(key, from, ENTRIES_MAX).await?;
    let path = |of: &str| format!("{}/log?agent={}&of={of}", run_path(page.run()), shown.agent);
    let own = path(if shown.of == Whose::Run { "run" } else { "agent" });
    let next = records.last().filter(|_| records.len() == ENTRIES_MAX).map(|record| record.seq.0);
    let body = html! {
        (head(&page))
        (tabs(&page, Tab::Log))
        p.filter {
            a.btn href=(path("agent")) aria-pressed=(shown.of == Whose::Agent) role="button" { "Agent " (shown.agent) }
            a.btn href=(path("run")) aria-pressed=(shown.of == Whose::Run) role="button" { "The run itself" }
            @if from.0 > 0 { a.btn href=(own) { "From the beginning" } }
        }
        section.panel aria-label="Entries" {
            @if records.is_empty() { p.empty { "Nothing yet." } }
            @for record in &records { (entry(record)) }
        }
        @if let Some(next) = next { p.filter { a.btn href={ (own) "&after=" (next) } { "Entries behind " (next) } } }
    };
    Ok(document(&Document {
        title: format!("Log of {}", page.title()),
        live: String::new(),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

fn entry(record: &Record) -> Markup {
    let value = serde_json::to_value(LogEntry(record.clone())).unwrap_or_default();
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let short = safe(&value.to_string()).chars().take(LINE_CHARS).collect::<String>();
    html! {
        details.call.entry id={ "e-" (record.seq.0) } data-row {
            summary {
                svg.tw aria-hidden="true" { use href="#tw" {} }
                span.dim.num { (record.seq.0) }
                (clock(record.at))
                code.what.cut { b { (safe(kind)) } " " (short) }
            }
            pre tabindex="0" { (cut_lines(&safe(&format!("{value:#}")))) }
        }
    }
}
