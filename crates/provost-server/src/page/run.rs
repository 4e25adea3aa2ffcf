//! One run: its limits, its agents, what they did, its goal.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::{
    Dimension, Entry, HookDecision, LifecycleEntry, MicroDollars, Outcome, Record, RunId, Seq, SessionId,
    Timestamp,
};
use provost_harness::RunStatus;
use provost_view::{
    AgentGoal, AgentTimeline, AgentsRead, GroupedRun, RunAgent, RunDetails, SpendCurve, StateMark, safe,
};
use serde::Deserialize;

use super::chart::spend_over_time;
use super::parts::{
    Used, ago, bar, foreign, foreign_line, mark, money, moved_in_words, named_mark, pulse, run_path, shape,
    span, tokens,
};
use super::timeline::timeline;
use super::{Document, Here, Section, badge, document, forms};
use crate::app::App;
use crate::problem::Problem;

/// Things that an agent did that are shown; the log has all.
const ITEMS_MAX: usize = 60;
const KEYS: &[(&str, &str)] = &[
    ("j k", "turn"),
    ("h l", "agent"),
    ("o", "unfold"),
    ("a", "answer"),
    ("s", "say"),
    ("p", "pause, resume"),
    ("f", "fork"),
    ("x", "cancel"),
    ("t", "terminal"),
    ("1–6", "tabs"),
    ("Esc", "back"),
];

/// Which agent's doings are shown.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Shown {
    #[serde(default)]
    pub(super) agent: u32,
}

/// A run with what its document shows.
pub(super) struct RunPage {
    pub(super) details: RunDetails,
    pub(super) grouped: GroupedRun,
    timeline: AgentTimeline,
    curve: SpendCurve,
    status: RunStatus,
    /// Whether the agent is a program.
    is_program: bool,
    agent: u32,
    now: Timestamp,
}

impl RunPage {
    pub(super) async fn read(app: &App, run: &str, agent: u32) -> Result<Self, Problem> {
        let none = || Problem::not_found(format!("there is no run {run}"));
        let id = run.parse::<RunId>().map_err(|_| none())?;
        let now = app.now();
        let summary = app.backend.get(id).await?.ok_or_else(none)?;
        let details = RunDetails::read(&*app.backend, id, AgentsRead::All, now).await?.ok_or_else(none)?;
        let grouped = GroupedRun::read(&*app.backend, &summary, now).await;
        let session = SessionId { run: id, agent };
        let timeline = AgentTimeline::read(&*app.backend, session, ITEMS_MAX).await?;
        let curve = SpendCurve::read(&*app.backend, id, &summary.model).await?;
        let first = app.backend.read(session.into(), Seq::START, 1).await?;
        let is_program = first.iter().any(|record| is_program(record));
        Ok(Self { details, grouped, timeline, curve, status: summary.status, is_program, agent, now })
    }

    /// The limit that the run has used up.
    fn used_up(&self) -> Option<Dimension> {
        match &self.status {
            RunStatus::Stopped(Outcome::BudgetExhausted(used)) => Some(used.dimension),
            RunStatus::Stopped(_) | RunStatus::Running | RunStatus::Interrupted => None,
        }
    }

    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn run(&self) -> RunId {
        self.details.item.run
    }

    pub(super) fn title(&self) -> String {
        safe(self.details.item.goal.lines().next().unwrap_or_default())
    }
}

fn is_program(record: &Record) -> bool {
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &record.entry else { return false };
    started.policy.external.is_some()
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    app.seen.look_at(page.run(), page.details.item.updated_at_ms);
    let sections = sections(&page);
    let part = |id: &str| {
        let html = sections.iter().find(|section| section.id == id).map(|section| section.html.as_str());
        maud::PreEscaped(html.unwrap_or_default())
    };
    let body = html! {
        (part("run-head")) (part("facts")) (part("notice")) (tabs(&page, Tab::Timeline))
        div.cols {
            (part("tree"))
            section.panel.line-col aria-labelledby="h-tl" {
                div.line-head { h2 id="h-tl" { "Timeline of agent " (page.agent) } }
                (part("timeline"))
                button.btn."more-turns" type="button" id="more-turns" hidden {}
                form.sayer id="sayer" data-say={ "/v1" (run_path(page.run())) "/say" } data-agent=(page.agent) {
                    label.vh for="say" { "Say to agent " (page.agent) }
                    input type="text" id="say" autocomplete="off" placeholder={ "Say something to agent " (page.agent) "; it reads it before its next turn" };
                    button.btn.main type="submit" { "Say" }
                    p.two role="alert" data-refusal {}
                }
            }
            div."side-col" { (part("goal")) (part("hooks")) (part("cost")) (part("spend")) }
        }
    };
    Ok(document(&Document {
        title: page.title(),
        live: format!("/live{}?agent={}", run_path(page.run()), page.agent),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

/// The parts of the document that change.
pub(super) async fn live_sections(app: &App, run: &str, agent: u32) -> Result<Vec<Section>, Problem> {
    let page = RunPage::read(app, run, agent).await?;
    let mut all = sections(&page);
    all.push(Section::new("badge", badge(page.grouped.asks.len())));
    Ok(all)
}

fn sections(page: &RunPage) -> Vec<Section> {
    vec![
        Section::new("run-head", head(page)),
        Section::new("facts", facts(page)),
        Section::new("notice", notice(page)),
        Section::new("tree", tree(page)),
        Section::new("timeline", timeline(&page.timeline)),
        Section::new("goal", goal(page.details.root_goal())),
        Section::new("hooks", hooks(page)),
        Section::new("cost", cost(page)),
        Section::new("spend", spend(page)),
    ]
}

/// The parts of a run.
#[derive(PartialEq, Eq)]
pub(super) enum Tab {
    Timeline,
    Changes,
    Terminal,
    Conversation,
    Explain,
    Log,
}

impl Tab {
    const ALL: [(Self, &str, &str); 6] = [
        (Self::Timeline, "", "Timeline"),
        (Self::Changes, "/changes", "Changes"),
        (Self::Terminal, "/terminal", "Terminal"),
        (Self::Conversation, "/conversation", "Conversation"),
        (Self::Explain, "/explain", "Explain"),
        (Self::Log, "/log", "Log"),
    ];
}

pub(super) fn tabs(page: &RunPage, here: Tab) -> Markup {
    let path = run_path(page.run());
    let act = format!("/v1{path}");
    let shown = Tab::ALL.iter().filter(|(tab, ..)| *tab != Tab::Terminal || page.is_program);
    html! {
        nav.tabs aria-label="This run" {
            @for (tab, below, title) in shown {
                a href={ (path) (below) "?agent=" (page.agent) } aria-current=[(*tab == here).then_some("page")]
                    data-key=[(*tab == Tab::Terminal).then_some("t")] { (title) }
            }
        }
        (forms::resume(&act, page.used_up()))
        (forms::fork(&act, page.agent))
    }
}

pub(super) fn head(page: &RunPage) -> Markup {
    let item = &page.details.item;
    let state = StateMark::of_run(&page.grouped);
    let (_, class) = shape(state);
    let (is_held, has_ended) = match &page.status {
        RunStatus::Running => (true, false),
        RunStatus::Interrupted => (false, false),
        RunStatus::Stopped(outcome) => (false, outcome.is_final()),
    };
    let act = format!("/v1{}", run_path(item.run));
    html! {
        div.run-head id="run-head" {
            div {
                p.crumb.cut { a href="/" { "Runs" } " / " code { (item.workspace.display()) } " / " code { (item.run) } }
                h1 { (foreign_line(&item.goal)) }
                p.say {
                    span class={ "state " (class) } { (mark(state)) (page.grouped.phase()) }
                    " · " (provost_event::counted(item.turns.into(), "turn")) " · started " (ago(item.started_at_ms, page.now))
                    @if let Some(text) = &page.details.outcome_text { " · " (foreign_line(text)) }
                }
            }
            div.btns {
                @if !has_ended { button.btn type="button" data-key="s" data-focus="say" { "Say " kbd { "s" } } }
                @if is_held {
                    button.btn type="button" data-key="p" data-act={ (act) "/pause" } { "Pause " kbd { "p" } }
                } @else {
                    button.btn type="button" data-key="p" data-dialog="resume" { "Resume " kbd { "p" } }
                }
                button.btn type="button" data-key="f" data-dialog="fork" { "Fork " kbd { "f" } }
                @if !has_ended {
                    button.btn.danger type="button" data-key="x" data-act={ (act) "/cancel" } data-confirm="Cancel this run?" { "Cancel " kbd { "x" } }
                }
            }
        }
    }
}

fn facts(page: &RunPage) -> Markup {
    let (item, budget) = (&page.details.item, &page.details.budget);
    let slots = &page.details.slots;
    let spent = money(item.cost_micro_usd);
    let of =
        |limit: Option<String>| limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {limit}"));
    let moved = page.details.facts.as_ref().and_then(|facts| facts.progress.as_ref());
    let max = slots.budget.slots() as u64;
    html! {
        dl.facts.panel id="facts" {
            div { dt { "Spent" } dd { b { (spent) } " " span { (of(budget.money.map(money))) } (limit_bar(item.cost_micro_usd.0, budget.money.map(|max| max.0), "spent")) } }
            div { dt { "Tokens" } dd { b { (tokens(item.tokens)) } " " span { (of(budget.tokens.map(tokens))) } (limit_bar(item.tokens, budget.tokens, "of tokens")) } }
            div { dt { "Time" } dd { b { (span(page.details.active_ms)) } " " span { (of(budget.wall_time_ms.map(span))) } (limit_bar(page.details.active_ms, budget.wall_time_ms, "of time")) } }
            div { dt { "Slots in use" } dd { b { (slots.held) } " " span { "of " (max) } (limit_bar(slots.held as u64, Some(max), "of slots")) } }
            div { dt { "Progress" } dd { @if let Some(progress) = moved { b { (progress.state) } " " span { (moved_in_words(&progress.moved)) } (pulse(&progress.moved)) } @else { "–" } } }
        }
    }
}

fn limit_bar(used: u64, max: Option<u64>, what: &str) -> Markup {
    let Some(max) = max.filter(|max| *max > 0) else { return html! {} };
    let says = format!("{} % {what}", used.saturating_mul(100) / max);
    bar(Used { used, held: 0, max, says: &says })
}

fn notice(page: &RunPage) -> Markup {
    let Some(question) = page.grouped.asks.first() else { return html! { div id="notice" hidden {} } };
    html! {
        section.notice id="notice" aria-label="Needs you" {
            (mark(StateMark::NeedsYou))
            p.what.cut { b { "Agent " (question.session.agent) " asks" } " " code { (foreign_line(&super::inbox::call(question))) } }
            a.btn data-key="a" href={ "/inbox#" (super::inbox::question_id(question)) } { "Answer " kbd { "a" } }
        }
    }
}

fn tree(page: &RunPage) -> Markup {
    let agents = &page.details.tree.agents;
    html! {
        section.panel."tree-col" id="tree" aria-labelledby="h-tree" {
            h2 id="h-tree" { "Agents " span.n { (agents.len()) } }
            ul.tree { @for agent in agents.iter().filter(|agent| agent.parent.is_none()) { (branch(page, agent)) } }
        }
    }
}

fn branch(page: &RunPage, agent: &RunAgent) -> Markup {
    let below =
        page.details.tree.agents.iter().filter(|other| other.parent == Some(agent.agent)).collect::<Vec<_>>();
    let path = format!("{}?agent={}", run_path(page.run()), agent.agent);
    html! {
        li {
            a.ag href=(path) aria-current=[(agent.agent == page.agent).then_some("true")] {
                (named_mark(StateMark::of_agent(agent)))
                span.nm.cut { span.id { (agent.agent) } b.cut { (foreign_line(&agent.name)) } }
                span.usd { @if let Some(cost) = agent.cost { (money(cost)) } @else { "–" } }
                span.sub.cut { (agent.state.word()) " · " (provost_event::counted(agent.turns.into(), "turn")) }
                span { (limit_bar(agent.cost.map_or(0, |cost| cost.0), agent.budget.money.map(|MicroDollars(max)| max), "of its budget")) }
            }
            @if !below.is_empty() { ul { @for agent in below { (branch(page, agent)) } } }
        }
    }
}

fn goal(goal: Option<&AgentGoal>) -> Markup {
    let Some(goal) = goal else { return html! { section id="goal" hidden {} } };
    html! {
        section.panel id="goal" aria-labelledby="h-goal" {
            h2 id="h-goal" { "Goal " span.n { "round " (goal.rounds) " of " (goal.rounds_max) } }
            div.in {
                p.cond { (foreign(&goal.condition)) }
                ol.rounds {
                    @for (number, verification) in goal.verifications.iter().enumerate().rev() {
                        li {
                            (verdict_mark(verification.finding.as_ref()))
                            p.hd { b { "Round " (number + 1) ": " (verdict(verification.finding.as_ref())) } }
                            @if let Some(reason) = verification.finding.as_ref().map(reasons) { p { (foreign(reason)) } }
                        }
                    }
                }
            }
        }
    }
}

fn verdict_mark(finding: Option<&provost_event::GoalFinding>) -> Markup {
    named_mark(match finding {
        Some(provost_event::GoalFinding::Achieved { .. }) => StateMark::Finished,
        Some(_) => StateMark::Blocked,
        None => StateMark::Working,
    })
}

const fn verdict(finding: Option<&provost_event::GoalFinding>) -> &'static str {
    match finding {
        Some(provost_event::GoalFinding::Achieved { .. }) => "reached",
        Some(provost_event::GoalFinding::NotAchieved { .. }) => "not reached",
        Some(provost_event::GoalFinding::Unverified { .. }) => "not verified",
        None => "being verified",
    }
}

fn reasons(finding: &provost_event::GoalFinding) -> &str {
    match finding {
        provost_event::GoalFinding::Achieved { reasoning, .. }
        | provost_event::GoalFinding::NotAchieved { reasoning, .. } => reasoning,
        provost_event::GoalFinding::Unverified { why } => why,
    }
}

fn hooks(page: &RunPage) -> Markup {
    let reports = page.details.facts.as_ref().map(|facts| facts.stop_hooks.as_slice()).unwrap_or_default();
    if reports.is_empty() {
        return html! { section id="hooks" hidden {} };
    }
    html! {
        section.panel id="hooks" aria-labelledby="h-stop" {
            h2 id="h-stop" { "Stop hooks " span.n { "when last asked" } }
            div.in { table.tab { tbody { @for report in reports {
                tr { th scope="row" { (safe(&report.hook)) } td.dim { (decided(&report.decision)) } td.num.dim { (span(report.duration_us / 1_000)) } }
            } } } }
        }
    }
}

const fn decided(decision: &HookDecision) -> &'static str {
    match decision {
        HookDecision::Continue | HookDecision::Allow => "allowed",
        HookDecision::Ask(_) => "asked",
        HookDecision::Deny(_) => "objected",
        HookDecision::Pause(_) => "suspended it",
        HookDecision::Abort(_) => "aborted it",
        HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => "no answer",
    }
}

fn cost(page: &RunPage) -> Markup {
    html! {
        section.panel id="cost" aria-labelledby="h-curve" {
            h2 id="h-curve" { "Spend by model" }
            div.in { (spend_over_time(&page.curve, page.details.budget.money)) }
        }
    }
}

fn spend(page: &RunPage) -> Markup {
    html! {
        section.panel id="spend" aria-labelledby="h-cost" {
            h2 id="h-cost" { "Spend by agent" }
            div.in { table.tab {
                thead.vh { tr { th { "Agent" } th { "Tokens" } th { "Spent" } } }
                tbody { @for agent in page.details.tree.agents.iter().filter(|agent| agent.tokens > 0) {
                    tr {
                        th scope="row" { (agent.agent) " " (foreign_line(&agent.name)) }
                        td.num.dim { (tokens(agent.tokens)) }
                        td.num { @if let Some(cost) = agent.cost { (money(cost)) } @else { "–" } }
                    }
                } }
            } }
        }
    }
}
