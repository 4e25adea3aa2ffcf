//! The questions of all runs, each in full.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use provost_event::Timestamp;
use provost_view::{
    AnswerChoice, AnswerField, AnswerKind, Approval, ApprovalQuestion, StateMark, ToolQuestion,
    open_approvals, visible,
};
use serde_json::Value;

use super::parts::{ago, foreign_line, in_time, lasting, mark, named_mark, run_path};
use super::{Document, Here, Section, badge, document};
use crate::app::App;
use crate::problem::Problem;

const KEYS: &[(&str, &str)] = &[
    ("j k", "question"),
    ("a", "approve once"),
    ("r", "for this run"),
    ("A", "always"),
    ("d", "deny"),
    ("l", "later"),
    ("v", "whole text"),
    ("Enter", "open the run"),
];

pub(super) async fn inbox(State(app): State<Arc<App>>) -> Result<Markup, Problem> {
    let asked = read(&app).await?;
    let at_work = if asked.is_empty() { app.groups().await?.agents_at_work } else { 0 };
    Ok(document(&Document {
        title: "Inbox".to_owned(),
        live: "/live/inbox".to_owned(),
        here: Here::Inbox,
        questions: asked.len(),
        body: body(&asked, at_work, app.now()),
        keys: KEYS,
    }))
}

/// The parts of the document that change.
pub(super) async fn live_sections(app: &App) -> Result<Vec<Section>, Problem> {
    let asked = read(app).await?;
    let at_work = if asked.is_empty() { app.groups().await?.agents_at_work } else { 0 };
    Ok(vec![
        Section::new("inbox", body(&asked, at_work, app.now())),
        Section::new("badge", badge(asked.len())),
    ])
}

async fn read(app: &App) -> Result<Vec<Approval>, Problem> {
    let mut all = Vec::new();
    for run in open_approvals(&*app.backend).await?.runs {
        all.extend(run.views(&*app.backend).await);
    }
    all.sort_by_key(|approval| approval.question.since);
    Ok(all)
}

fn body(asked: &[Approval], at_work: usize, now: Timestamp) -> Markup {
    html! {
        div.inbox id="inbox" {
            div {
                section.panel aria-labelledby="h-q" {
                    h2 id="h-q" { "Waiting for you " span.n { (asked.len()) } }
                    @if asked.is_empty() {
                        p.empty { "Nothing waits for you. " (provost_event::counted(at_work as u64, "agent")) (if at_work == 1 { " is" } else { " are" }) " at work." }
                    } @else {
                        ol.queue { @for approval in asked { (queued(approval, now)) } }
                    }
                }
            }
            div { @for approval in asked { (question(approval, now)) } }
        }
    }
}

fn queued(approval: &Approval, now: Timestamp) -> Markup {
    let question = &approval.question;
    html! {
        li {
            a href={ "#" (question_id(question)) } {
                (named_mark(StateMark::NeedsYou))
                code.cut { (foreign_line(&call(question))) }
                span.dim.two { (lasting(now.since_ms(question.since))) }
                span.sub.cut { (who(question)) " · " (foreign_line(&approval.goal)) }
            }
        }
    }
}

/// The id of a question's element.
pub(super) fn question_id(question: &ApprovalQuestion) -> String {
    format!("q-{}-{}-{}", question.session.run, question.session.agent, question.asked.0)
}

fn who(question: &ApprovalQuestion) -> String {
    let name = if question.name.is_empty() { "root".to_owned() } else { visible(&question.name) };
    format!("agent {} {name}", question.session.agent)
}

fn question(approval: &Approval, now: Timestamp) -> Markup {
    let question = &approval.question;
    let session = question.session;
    let path = format!("/v1/runs/{}/approvals/{}/{}", session.run, session.agent, question.asked.0);
    html! {
        article.panel.ask-full id=(question_id(question)) data-question=(path) data-pattern=(visible(&question.pattern)) tabindex="-1"
            aria-labelledby={ "h-" (question_id(question)) } {
            header {
                p.crumb.cut { a.cut href=(run_path(approval.run)) { (foreign_line(&approval.goal)) } " / " (who(question)) }
                h1 id={ "h-" (question_id(question)) } {
                    (mark(StateMark::NeedsYou)) @if question.question.is_some() { " A tool asks: " } @else { " May it? " }
                    code { (visible(&question.tool)) }
                }
            }
            div.body {
                @if let Some(asked) = &question.question {
                    @for line in asked.message.split('\n') { p { (visible(line)) } }
                }
                pre.cmd tabindex="0" aria-label="The call in full" { (in_full(question)) }
                dl.why {
                    @if question.question.is_none() { dt { "Why you" } dd { (visible(&question.why)) } }
                    dt { "Asked" } dd { (ago(question.since, now)) }
                    dt { "No answer" } dd { "decided without you at " (in_time(question.due, now)) }
                    @for script in &question.scripts { dt { "Runs" } dd { code { (visible(&script.path)) } ", as it is now" } }
                    @if let Some(outside) = &question.outside {
                        dt { "Leaves" } dd { "the sandbox: it runs with all your rights" }
                        @for denied in &outside.denied { dt { "Denied inside" } dd { (visible(denied)) } }
                    }
                    @if question.unnamed { dt { "Runs" } dd { "it may run files that its text doesn't name: what they hold isn't checked" } }
                }
            }
            @match &question.question {
                Some(asked) => (fields(question, asked)),
                None => (answers(question)),
            }
        }
    }
}

/// The fields of an answer to a tool; the page's module sends them.
fn fields(question: &ApprovalQuestion, asked: &ToolQuestion) -> Markup {
    let id = question_id(question);
    html! {
        form.answer.asks data-answers {
            @for (number, field) in asked.fields().iter().enumerate() { (field_of(&format!("{id}-{number}"), field)) }
            div.btns {
                button.btn.main type="button" data-answer="once" { "Answer " kbd { "a" } }
                button.btn.danger type="button" data-answer="deny" { "Decline… " kbd { "d" } }
            }
            p.two { "The answer goes to the program that has the tool, and into the log: give no password, key or token." }
            p.two role="alert" data-refusal {}
        }
    }
}

fn field_of(id: &str, field: &AnswerField) -> Markup {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = field.default.as_ref().map(text).unwrap_or_default();
    let chosen = |choice: &AnswerChoice| match &field.default {
        Some(Value::Array(all)) => all.iter().any(|value| value.as_str() == Some(&choice.value)),
        _ => !default.is_empty() && default == choice.value,
    };
    let options = |choices: &[AnswerChoice]| {
        html! {
            @for choice in choices { option value=(choice.value) selected[chosen(choice)] { (choice.label) } }
        }
    };
    let hint = field.expected();
    html! {
        div {
            label for=(id) { (field.label) @if field.is_required { " (required)" } @if !field.about.is_empty() { ": " (field.about) } }
            @match &field.kind {
                AnswerKind::Text { .. } => input type="text" id=(id) name=(field.name) data-kind="text" value=(default) placeholder=(hint) autocomplete="off" spellcheck="false";,
                AnswerKind::Number { .. } => input type="text" inputmode="decimal" id=(id) name=(field.name) data-kind="json" value=(default) placeholder=(hint) autocomplete="off";,
                AnswerKind::Truth => select id=(id) name=(field.name) data-kind="json" {
                    @if field.default.is_none() { option value="" { "" } }
                    option value="true" selected[default == "true"] { "yes" }
                    option value="false" selected[default == "false"] { "no" }
                },
                AnswerKind::OneOf(choices) => select id=(id) name=(field.name) data-kind="text" {
                    @if field.default.is_none() { option value="" { "" } }
                    (options(choices))
                },
                AnswerKind::SomeOf(choices) => select id=(id) name=(field.name) data-kind="list" multiple { (options(choices)) },
                AnswerKind::Other => input type="text" id=(id) name=(field.name) data-kind="json" value=(default) placeholder=(hint) autocomplete="off" spellcheck="false";,
            }
        }
    }
}

fn answers(question: &ApprovalQuestion) -> Markup {
    html! {
        div.answer {
            div.btns {
                button.btn.main type="button" data-answer="once" { "Approve once " kbd { "a" } }
                @if question.is_for_once() {
                    span.end { "only this call can be allowed: what it runs may be something else next time" }
                } @else {
                    button.btn type="button" data-answer="run" { "For this run " kbd { "r" } }
                    button.btn type="button" data-answer="always" { "Always… " kbd { "A" } }
                }
                button.btn.danger type="button" data-answer="deny" { "Deny… " kbd { "d" } }
            }
            @if !question.is_for_once() {
                p.two { "For longer it covers " code { (visible(&question.pattern)) } ". A deny rule still wins." }
            }
            p.two role="alert" data-refusal {}
        }
    }
}

/// A call in one line: a command as it is, else its arguments.
pub(super) fn call(question: &ApprovalQuestion) -> String {
    match question.input.read::<Value>() {
        Ok(Value::Object(fields)) if fields.len() == 1 => {
            let only = fields.values().next();
            only.and_then(Value::as_str).map_or_else(|| question.input.text().to_owned(), str::to_owned)
        }
        _ => format!("{} {}", question.tool, question.input.text()),
    }
}

/// All of a call, with everything spelled out that can't be seen: it is what is agreed to.
fn in_full(question: &ApprovalQuestion) -> Markup {
    let fields = match question.input.read::<Value>() {
        Ok(Value::Object(fields)) => fields.into_iter().collect::<Vec<_>>(),
        Ok(other) => vec![(String::new(), other)],
        Err(_) => vec![(String::new(), Value::from(question.input.text()))],
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    html! {
        @for (name, value) in &fields {
            b { (visible(name)) }
            @for line in text(value).split('\n') { "\n  " (visible(line)) }
            "\n"
        }
    }
}
