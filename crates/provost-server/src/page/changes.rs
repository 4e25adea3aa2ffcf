//! What was changed in the workspace of a run.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::{Entry, LifecycleEntry, Seq, SessionId};
use provost_view::{ChangedFile, ChangedFileState, RunAgent, RunChanges, safe};

use super::parts::{ago, diff, foreign_line, run_path};
use super::run::{RunPage, Shown, Tab, head, tabs};
use super::{Document, Here, document};
use crate::api::changes_of;
use crate::app::App;
use crate::problem::Problem;

/// Changed lines of a file that is folded.
const FOLDED_LINES_MIN: u64 = 400;
/// Agents that are asked whether they have a worktree of their own.
const AGENTS_MAX: usize = 50;
const KEYS: &[(&str, &str)] =
    &[("j k", "file"), ("h l", "agent"), ("o", "fold"), ("1–6", "tabs"), ("Esc", "back")];

pub(super) async fn changes(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let session = SessionId { run: page.details.item.run, agent: shown.agent };
    let changes = changes_of(&app, session).await;
    let apart = with_own_worktree(&app, &page).await?;
    let body = html! {
        (head(&page))
        (tabs(&page, Tab::Changes))
        (workspaces(&page, shown.agent, &apart))
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

/// The agents whose changes are in a worktree of their own.
async fn with_own_worktree<'p>(app: &App, page: &'p RunPage) -> Result<Vec<&'p RunAgent>, Problem> {
    let mut all = Vec::new();
    for agent in page.details.tree.agents.iter().filter(|agent| agent.agent != 0).take(AGENTS_MAX) {
        let first = app.backend.read(agent.session.into(), Seq::START, 1).await?;
        let is_apart = first.first().is_some_and(|record| {
            matches!(&record.entry, Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) if started.worktree.is_some())
        });
        if is_apart {
            all.push(agent);
        }
    }
    Ok(all)
}

/// Whose changes are shown: those of the run's workspace, or those in the worktree of an agent.
fn workspaces(page: &RunPage, shown: u32, apart: &[&RunAgent]) -> Markup {
    let path = format!("{}/changes?agent=", run_path(page.run()));
    let is_apart = apart.iter().any(|agent| agent.agent == shown);
    html! {
        @if !apart.is_empty() {
            nav.filter aria-label="Whose changes" {
                a.btn href={ (path) "0" } aria-current=[(!is_apart).then_some("page")] { "Workspace of the run" }
                @for agent in apart {
                    a.btn href={ (path) (agent.agent) } aria-current=[(agent.agent == shown).then_some("page")] {
                        (agent.agent) " " (foreign_line(&agent.name))
                    }
                }
            }
        }
    }
}

fn files(changes: &RunChanges, now: provost_event::Timestamp) -> Markup {
    html! {
        p.filter { span { "Since it began " (ago(changes.since_at_ms, now)) ", changes by others included:" }
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
