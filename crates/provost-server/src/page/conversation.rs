//! The conversation as an agent's model sees it.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::{Block, SessionId};
use provost_view::{ConversationView, SeenMessage, SeenPart, SeenRole, safe};

use super::parts::{cut_lines, foreign, tokens};
use super::run::{RunPage, Shown, Tab, head, tabs};
use super::timeline::folded;
use super::{Document, Here, document};
use crate::app::App;
use crate::problem::Problem;

const KEYS: &[(&str, &str)] = &[("j k", "message"), ("o", "unfold"), ("1–6", "tabs"), ("Esc", "back")];

pub(super) async fn conversation(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let session = SessionId { run: page.run(), agent: shown.agent };
    let seen = ConversationView::read(&*app.backend, session).await?;
    let body = html! {
        (head(&page))
        (tabs(&page, Tab::Conversation))
        @match &seen {
            None => p.empty { "Agent " (shown.agent) " hasn't begun." },
            Some(seen) => (messages(seen)),
        }
    };
    Ok(document(&Document {
        title: format!("Conversation of {}", page.title()),
        live: String::new(),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

fn messages(seen: &ConversationView) -> Markup {
    html! {
        p.filter {
            span { "As the next call would send it: about " (tokens(seen.estimated_tokens)) " tokens"
                @if let Some(max) = seen.tokens_max { " of " (tokens(max)) } ", with " (provost_event::counted(seen.tools as u64, "tool")) }
            @if let Some(at) = seen.summed_up_at { span.dim { "older messages are summed up by entry " (at.0) } }
        }
        section.panel aria-label="Messages" {
            @for (number, message) in seen.messages.iter().enumerate() { (self::message(number + 1, message)) }
        }
    }
}

fn message(number: usize, message: &SeenMessage) -> Markup {
    let who = match message.role {
        SeenRole::User => "to the agent",
        SeenRole::Assistant => "the agent",
    };
    html! {
        article.turn data-row id={ "m-" (number) } aria-label={ "Message " (number) } {
            p.no { (number) }
            div {
                header { b { (who) } }
                @for (at, part) in message.parts.iter().enumerate() { (self::part(&format!("p-{number}-{at}"), part)) }
            }
        }
    }
}

fn part(id: &str, part: &SeenPart) -> Markup {
    match part {
        SeenPart::Block(Block::Text(text)) => {
            html! { p.said { @for line in text.lines() { (foreign(line)) br; } } }
        }
        SeenPart::Block(Block::Thinking { text, .. }) => details(id, "thinks", "", text),
        SeenPart::Block(Block::Opaque { wire, .. }) => {
            html! { p.dim { "a block that only " (safe(wire)) " understands" } }
        }
        SeenPart::Block(Block::ToolCall(call)) => details(id, "calls", &call.name, call.input.text()),
        SeenPart::Block(Block::Image(_)) => html! { p.dim { "a picture" } },
        SeenPart::Image { image } => html! { p.dim { "a picture of " (image.bytes) " bytes" } },
        SeenPart::ToolResult { tool_result } => {
            let says = if tool_result.is_error { "failed" } else { "result of" };
            details(id, says, &tool_result.tool, &tool_result.output)
        }
    }
}

fn details(id: &str, says: &str, tool: &str, text: &str) -> Markup {
    html! {
        details.call id=(id) {
            summary {
                svg.tw aria-hidden="true" { use href="#tw" {} }
                code.what.cut { (says) " " b { (safe(tool)) } " " (cut_lines(&safe(text.lines().next().unwrap_or_default()))) }
            }
            pre tabindex="0" { (folded(text)) }
        }
    }
}
