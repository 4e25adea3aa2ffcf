//! Which limits, hooks and rules took effect in a run.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::MicroDollars;
use provost_view::explain::{
    AgentExplanation, ExplainedAgents, LimitUnit, LimitUse, RuleUse, RunExplanation, UseState,
};
use provost_view::{StateMark, safe};

use super::parts::{foreign, money, named_mark, span, tokens};
use super::run::{RunPage, Shown, Tab, head, tabs};
use super::{Document, Here, document};
use crate::app::App;
use crate::problem::Problem;

const KEYS: &[(&str, &str)] = &[("1–6", "tabs"), ("Esc", "back")];

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let none = || Problem::not_found(format!("there is no run {run}"));
    let summary = app.backend.get(page.run()).await?.ok_or_else(none)?;
    let only = ExplainedAgents::One(shown.agent);
    let explained = RunExplanation::read(&*app.backend, &summary, only, &[], page.now()).await?;
    let (explained, _) = explained.ok_or_else(none)?;
    let body = html! {
        (head(&page))
        (tabs(&page, Tab::Explain))
        p.filter { span {
            (provost_event::counted(explained.tally.configured, "rule")) " configured, "
            (explained.tally.never_consulted) " never consulted, of them " (explained.tally.unreachable) " can't be reached"
        } }
        (limits("Limits of the run", "h-run", &explained.limits))
        @for agent in &explained.agents { (self::agent(agent)) }
    };
    Ok(document(&Document {
        title: format!("What took effect in {}", page.title()),
        live: String::new(),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

fn amount(unit: LimitUnit, value: u64) -> String {
    match unit {
        LimitUnit::Tokens => tokens(value),
        LimitUnit::MicroUsd => money(MicroDollars(value)),
        LimitUnit::Ms => span(value),
        LimitUnit::Times => value.to_string(),
    }
}

fn limits(title: &str, id: &str, limits: &[LimitUse]) -> Markup {
    html! {
        section.panel.uses aria-labelledby=(id) {
            h2 id=(id) { (title) }
            div.in.scroll tabindex="0" role="group" aria-labelledby=(id) { table.tab {
                thead { tr { th { span.vh { "Took effect" } } th { "Limit" } th.num { "Set to" } th.num { "Most" } th.num { "Decided" } th { "Why not" } } }
                tbody { @for limit in limits { tr {
                    td { (standing(&limit.standing)) }
                    th scope="row" { (safe(&limit.name)) }
                    td.num { @if let Some(set) = limit.set_to { (amount(limit.unit, set)) } @else { "no limit" } }
                    td.num { (amount(limit.unit, limit.most)) }
                    td.num { (limit.decided) }
                    td.dim { (why(&limit.standing)) }
                } } }
            } }
        }
    }
}

fn standing(used: &RuleUse) -> Markup {
    named_mark(match used.say {
        UseState::Consulted => StateMark::Finished,
        UseState::NotSet | UseState::Never => StateMark::Idle,
        UseState::NotReported => StateMark::Waiting,
        UseState::Unreachable => StateMark::Blocked,
    })
}

fn why(used: &RuleUse) -> Markup {
    html! { @if let Some(why) = &used.why { (foreign(why)) } }
}

/// A rule: its name, how often it was asked, how often it decided.
struct Rule<'a> {
    name: String,
    consulted: u64,
    decided: u64,
    standing: &'a RuleUse,
}

fn agent(agent: &AgentExplanation) -> Markup {
    let hooks = agent.hooks.iter().map(|hook| Rule {
        name: format!("{} at {}", hook.name, hook.point.name()),
        consulted: hook.counts.consulted,
        decided: hook.counts.consulted - hook.counts.continued.min(hook.counts.consulted),
        standing: &hook.standing,
    });
    let stop_hooks = agent.stop_hooks.iter().map(|hook| Rule {
        name: hook.name.clone(),
        consulted: hook.consulted,
        decided: hook.consulted,
        standing: &hook.standing,
    });
    let patterns = agent.permissions.patterns.iter().map(|rule| Rule {
        name: rule.pattern.clone(),
        consulted: rule.consulted,
        decided: rule.decided,
        standing: &rule.standing,
    });
    let asked = &agent.approvals;
    html! {
        (limits(&format!("Limits of agent {}", agent.agent), "h-agent", &agent.limits))
        (rules("Permissions", "h-perm", patterns.collect()))
        (rules("Hooks", "h-hooks", hooks.collect()))
        (rules("Stop hooks", "h-stops", stop_hooks.collect()))
        @if asked.asked > 0 {
            p.filter { span {
                (provost_event::counted(asked.asked, "question")) ": " (asked.allowed_once) " allowed once, "
                (asked.allowed_for_run) " for the run, " (asked.allowed_always) " always, " (asked.denied) " denied, "
                (asked.timed_out) " without an answer"
            } }
        }
    }
}

fn rules(title: &str, id: &str, rules: Vec<Rule<'_>>) -> Markup {
    if rules.is_empty() {
        return html! { p.empty { (title) ": none" } };
    }
    html! {
        section.panel.uses aria-labelledby=(id) {
            h2 id=(id) { (title) " " span.n { (rules.len()) } }
            div.in.scroll tabindex="0" role="group" aria-labelledby=(id) { table.tab {
                thead { tr { th { span.vh { "Took effect" } } th { "Rule" } th.num { "Asked" } th.num { "Decided" } th { "Why not" } } }
                tbody { @for rule in &rules { tr {
                    td { (standing(rule.standing)) }
                    th scope="row" { code { (safe(&rule.name)) } }
                    td.num { (rule.consulted) }
                    td.num { (rule.decided) }
                    td.dim { (why(rule.standing)) }
                } } }
            } }
        }
    }
}
