//! What was changed in the workspace of a run.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::SessionId;
use provost_view::{ChangedFile, ChangedFileState, RunChanges, safe};

use super::parts::{ago, diff};
use super::run::{RunPage, Shown, Tab, head, tabs};
use super::{Document, Here, document};
use crate::api::changes_of;
use crate::app::App;
use crate::problem::Problem;

/// Changed lines of a file that is folded.
const FOLDED_LINES_MIN: u64 = 400;
const KEYS: &[(&str, &str)] = &[("j k", "file"), ("o", "fold"), ("Esc", "back")];

pub(super) async fn changes(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let session = SessionId { run: page.details.item.run, agent: shown.agent };
    let changes = changes_of(&app, session).await;
    let body = html! {
        (head(&page))
        (tabs(&page, Tab::Changes))
        @match &changes {
            Ok(changes) => (files(changes, app.now())),
            Err(problem) => p.empty { (problem.detail) },
        }
    };
    Ok(document(&Document {
        title: format!("Changes of {}", page.title()),
        live: String::new(),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

fn files(changes: &RunChanges, now: provost_event::Timestamp) -> Markup {
    html! {
        p.filter { "Since it began " (ago(changes.since_at_ms, now)) ", changes by others included: "
            span.plus { "+" (changes.added) } " " span.minus { "−" (changes.removed) } }
        div.chg {
            nav.panel aria-labelledby="h-f" {
                h2 id="h-f" { "Files " span.n { (changes.files.len()) } }
                div.files { @for (number, file) in changes.files.iter().enumerate() {
                    a href={ "#f-" (number) } { code.cut { (safe(&file.path)) } span.mono { (counts(file)) } }
                } }
            }
            div {
                @if changes.files.is_empty() { p.empty { "Nothing differs." } }
                @for (number, file) in changes.files.iter().enumerate() { (patch(number, file)) }
            }
        }
    }
}

fn counts(file: &ChangedFile) -> Markup {
    html! {
        @if let Some(added) = file.added { span.plus { "+" (added) } " " }
        @if let Some(removed) = file.removed { span.minus { "−" (removed) } }
    }
}

fn patch(number: usize, file: &ChangedFile) -> Markup {
    let lines = file.added.unwrap_or_default() + file.removed.unwrap_or_default();
    let state = match file.change {
        ChangedFileState::Added => "added",
        ChangedFileState::Changed => "changed",
        ChangedFileState::Deleted => "deleted",
    };
    html! {
        details.panel.file id={ "f-" (number) } data-row open[lines < FOLDED_LINES_MIN] {
            summary {
                svg.tw aria-hidden="true" { use href="#tw" {} }
                code.cut { (safe(&file.path)) }
                span.end { (state) " " (counts(file)) }
            }
            @if let Some(diff) = file.patch.as_deref().and_then(|patch| diff(patch, &safe(&file.path))) { (diff) }
            @if !file.compared { p.empty { "Its content wasn't compared." } }
        }
    }
}
