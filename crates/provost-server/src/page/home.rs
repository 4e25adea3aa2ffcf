//! All runs, in groups by what they need.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use provost_event::{MicroDollars, Timestamp};
use provost_view::{ApprovalQuestion, GroupedRun, GroupedRuns, RunGroup, RunsOfGroup, StateMark};

use super::parts::{
    Used, ago, bar, dots, foreign_line, lasting, mark, money, moved_in_words, pulse, run_path, tokens,
};
use super::{Document, Here, Section, badge, document, forms};
use crate::app::App;
use crate::problem::Problem;

const KEYS: &[(&str, &str)] = &[
    ("j k", "move"),
    ("Enter", "open"),
    ("a", "answer"),
    ("s", "say"),
    ("p", "pause, resume"),
    ("x", "cancel"),
    ("n", "new run"),
    ("i", "inbox"),
    ("o", "idle runs"),
    ("/", "filter"),
];

pub(super) async fn home(State(app): State<Arc<App>>) -> Result<Markup, Problem> {
    let runs = app.groups().await?;
    let sections = sections(&app, &runs);
    let newest = runs.groups.iter().flat_map(|group| &group.runs).max_by_key(|run| run.item.started_at_ms);
    let folder = newest.map(|run| run.item.workspace.display().to_string()).unwrap_or_default();
    let body = html! {
        @for section in &sections { (maud::PreEscaped(&section.html)) }
        (forms::start(&folder))
    };
    Ok(document(&Document {
        title: "Runs".to_owned(),
        live: "/live/home".to_owned(),
        here: Here::Runs,
        questions: runs.questions,
        body,
        keys: KEYS,
    }))
}

/// The parts of the document that change.
pub(super) async fn live_sections(app: &App) -> Result<Vec<Section>, Problem> {
    let runs = app.groups().await?;
    let mut all = sections(app, &runs);
    all.push(Section::new("badge", badge(runs.questions)));
    Ok(all)
}

fn sections(app: &App, runs: &GroupedRuns) -> Vec<Section> {
    let count = runs.groups.iter().map(|group| group.runs.len()).sum::<usize>();
    let folders = runs.groups.iter().flat_map(|group| &group.runs).map(|run| &run.item.workspace);
    let folders = folders.collect::<std::collections::HashSet<_>>().len();
    let head = html! {
        div.sum id="sum" {
            h1 { "Runs" }
            @if count == 0 {
                span { "no runs yet; start one with " code { "provost run \"GOAL\"" } }
            } @else {
                span { (count) " in " (provost_event::counted(folders as u64, "folder")) }
                span.dim { (provost_event::counted(runs.agents_at_work as u64, "agent")) " at work" }
                span.dim { (money(runs.spent_today(app.now()))) " in runs of today" }
            }
            button.btn.main.end type="button" data-key="n" data-dialog="start" { "New run " kbd { "n" } }
        }
    };
    let mut all = vec![Section::new("sum", head)];
    // Each group is there, also an empty one: what is replaced keeps its place.
    for group in RunGroup::ALL {
        let found = runs.groups.iter().find(|found| found.group == group);
        all.push(Section::new(group_id(group), group_section(app, group, found)));
    }
    all
}

const fn group_id(group: RunGroup) -> &'static str {
    match group {
        RunGroup::NeedsYou => "g-needs",
        RunGroup::Working => "g-work",
        RunGroup::Stuck => "g-stuck",
        RunGroup::Finished => "g-done",
        RunGroup::Failed => "g-fail",
        RunGroup::Waiting => "g-wait",
        RunGroup::Idle => "g-idle",
    }
}

const fn group_mark(group: RunGroup) -> StateMark {
    match group {
        RunGroup::NeedsYou => StateMark::NeedsYou,
        RunGroup::Working => StateMark::Working,
        RunGroup::Stuck => StateMark::Stuck,
        RunGroup::Finished => StateMark::Finished,
        RunGroup::Failed => StateMark::Failed,
        RunGroup::Waiting => StateMark::Waiting,
        RunGroup::Idle => StateMark::Idle,
    }
}

const fn title(group: RunGroup) -> &'static str {
    match group {
        RunGroup::Finished => "Finished, not looked at",
        group => group.title(),
    }
}

/// The order of a group's runs.
const fn order(group: RunGroup) -> &'static str {
    match group {
        RunGroup::NeedsYou => "longest wait first",
        RunGroup::Working => "by start",
        RunGroup::Stuck | RunGroup::Finished | RunGroup::Failed | RunGroup::Waiting | RunGroup::Idle => {
            "newest first"
        }
    }
}

fn group_section(app: &App, group: RunGroup, found: Option<&RunsOfGroup>) -> Markup {
    let Some(found) = found else { return html! { section.group id=(group_id(group)) hidden {} } };
    let now = app.now();
    let rows = html! {
        ol class=(if group == RunGroup::NeedsYou { "rows ask" } else { "rows" }) {
            @for run in &found.runs { (row(run, now)) }
        }
    };
    let heading = html! { (mark(group_mark(group))) (title(group)) " " span.n { (found.runs.len()) } };
    html! {
        section.group id=(group_id(group)) aria-label=(title(group)) {
            @if group == RunGroup::Idle {
                details id="idle-runs" { summary { svg.tw aria-hidden="true" { use href="#tw" {} } (heading) } (rows) }
            } @else {
                h2 { (heading) span.why { (order(group)) } }
                (rows)
            }
        }
    }
}

fn row(run: &GroupedRun, now: Timestamp) -> Markup {
    let item = &run.item;
    let is_unseen = run.group == RunGroup::Finished;
    let (_, class) = super::parts::shape(StateMark::of_run(run));
    let others = run.agents.len();
    html! {
        li class=(if is_unseen { "row unseen" } else { "row" }) data-row id={ "r-" (item.run) } {
            div.gl {
                p.goal.cut { a href=(run_path(item.run)) { (foreign_line(&item.goal)) } }
                p.sub.cut { code { (item.workspace.display()) } " · " (item.run) " · " (foreign_line(&item.model)) }
            }
            div."dots-c" { @if others > 0 { (dots(&run.agents)) } }
            div.ph {
                p class={ "state " (class) } { (mark(StateMark::of_run(run))) span.cut { (run.phase()) } }
                p.two.cut { (provost_event::counted(item.turns.into(), "turn")) " · " (lasting(item.elapsed_ms.0)) }
            }
            div.last {
                p.cut { @if let Some(text) = &run.outcome_text { (foreign_line(text)) } @else { (others_at_work(run)) } }
                p.two.cut { (ago(item.updated_at_ms, now)) }
            }
            div."pulse-c" { (pulse(&run.moved)) p.two.cut { (moved_in_words(&run.moved)) } }
            div.money { (spent(run)) }
            @if let Some(question) = run.asks.first() { (ask_line(question, run.asks.len())) }
        }
    }
}

fn others_at_work(run: &GroupedRun) -> String {
    let at_work = run.agents.iter().filter(|agent| agent.state.holds_slot()).count();
    match run.agents.len() {
        0 | 1 => "last change".to_owned(),
        all => format!("{at_work} of {all} agents at work"),
    }
}

/// What was spent, of which limit.
fn spent(run: &GroupedRun) -> Markup {
    let cost = run.item.cost_micro_usd;
    let shown = money(cost);
    if let Some(MicroDollars(max)) = run.budget.money {
        let limit = money(MicroDollars(max));
        let says = format!("{shown} of {limit} spent");
        return html! {
            p { b { (shown) } span.dim { "of " (limit) } }
            (bar(Used { used: cost.0, held: 0, max, says: &says }))
        };
    }
    let used = tokens(run.item.tokens);
    match run.budget.tokens {
        Some(max) => {
            let says = format!("{used} of {} tokens", tokens(max));
            html! {
                p { b { (shown) } span.dim { (used) " of " (tokens(max)) } }
                (bar(Used { used: run.item.tokens, held: 0, max, says: &says }))
            }
        }
        None => html! { p { b { (shown) } span.dim { (used) } } },
    }
}

fn ask_line(question: &ApprovalQuestion, count: usize) -> Markup {
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    html! {
        div.ask-line {
            span.nowrap { "Agent " (question.session.agent) " asks" (more) }
            code.cut { (foreign_line(&super::inbox::call(question))) }
            a.btn data-key="a" href={ "/inbox#" (super::inbox::question_id(question)) } { "Answer " kbd { "a" } }
        }
    }
}
