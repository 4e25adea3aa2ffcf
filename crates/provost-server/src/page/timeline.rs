//! What an agent did, turn by turn.

use maud::{Markup, html};
use provost_view::{AgentTimeline, StateMark, TimelineCall, TimelineEvent, TimelineItem, TimelineTurn, safe};

use super::parts::{clock, cut_lines, diff, foreign, foreign_line, mark, money, named_mark, tokens};

/// Lines of an output from its beginning, and from its end.
const OUTPUT_LINES: usize = 20;

pub(super) fn timeline(timeline: &AgentTimeline) -> Markup {
    html! {
        div role="log" aria-label="Turns" aria-live="off" id="timeline" {
            @if timeline.left_out > 0 { p.empty { (timeline.left_out) " earlier: " code { "provost logs" } " has all" } }
            @if timeline.items.is_empty() { p.empty { "Nothing yet." } }
            @for item in &timeline.items { (happened(item)) }
        }
    }
}

fn happened(item: &TimelineItem) -> Markup {
    match &item.what {
        TimelineEvent::Turn(turn) => self::turn(item, turn),
        TimelineEvent::Said { by, text } => mile(item, StateMark::Idle, &format!("{} says", safe(by)), text),
        TimelineEvent::StopHooks { allowed, hooks } => {
            let (state, says) = if *allowed {
                (StateMark::Finished, "Stop hooks allow it")
            } else {
                (StateMark::Blocked, "Stop hooks object")
            };
            mile(item, state, says, &hooks.join(", "))
        }
        TimelineEvent::Goal { achieved, reason } => {
            let (state, says) = if *achieved {
                (StateMark::Finished, "Goal reached")
            } else {
                (StateMark::Blocked, "Goal not reached")
            };
            mile(item, state, says, reason)
        }
        TimelineEvent::Outcome { text } => mile(item, StateMark::Paused, "Stopped", text),
        TimelineEvent::Resumed => mile(item, StateMark::Working, "Goes on", ""),
    }
}

fn mile(item: &TimelineItem, state: StateMark, says: &str, text: &str) -> Markup {
    html! {
        div.mile id={ "e-" (item.entry.0) } {
            (mark(state))
            div { p { span.end { (clock(item.at_ms)) } b { (says) } } @if !text.is_empty() { p { (foreign(text)) } } }
        }
    }
}

fn turn(item: &TimelineItem, turn: &TimelineTurn) -> Markup {
    let cost = turn.cost_micro_usd.map_or_else(|| "–".to_owned(), money);
    html! {
        article.turn id={ "e-" (item.entry.0) } data-row aria-label={ "Turn " (turn.turn) } {
            p.no { (turn.turn) }
            div {
                header { (clock(item.at_ms)) span.end { (tokens(turn.tokens)) " · " (cost) } }
                @if !turn.text.is_empty() { p.said { @for line in turn.text.lines() { (foreign(line)) br; } } }
                @for (number, call) in turn.calls.iter().enumerate() { (self::call(item, number, call)) }
            }
        }
    }
}

fn call(item: &TimelineItem, number: usize, call: &TimelineCall) -> Markup {
    let state = call.mark();
    let output = call.output.as_deref().unwrap_or_default();
    let is_failed = state == StateMark::Failed;
    html! {
        details.call id={ "c-" (item.entry.0) "-" (number) } open[is_failed || state == StateMark::Working] {
            summary {
                svg.tw aria-hidden="true" { use href="#tw" {} }
                (named_mark(state))
                code.what.cut { b { (safe(&call.tool)) } " " (foreign_line(&call.summary)) }
                span.res { @if let Some(ms) = call.duration_ms { (took(ms)) } @else { (call.progress.label()) } }
            }
            @if let Some(diff) = diff(output, &call.tool) { (diff) } @else if !output.is_empty() { pre tabindex="0" { (folded(output)) } }
        }
    }
}

fn took(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1_000, ms % 1_000 / 100) }
}

/// The beginning and the end of an output.
pub(super) fn folded(output: &str) -> String {
    let text = safe(output);
    let lines = text.lines().collect::<Vec<_>>();
    let left_out = lines.len().saturating_sub(2 * OUTPUT_LINES);
    if left_out <= 1 {
        return cut_lines(&text);
    }
    let begin = lines.get(..OUTPUT_LINES).unwrap_or_default().join("\n");
    let end = lines.get(lines.len() - OUTPUT_LINES..).unwrap_or_default().join("\n");
    cut_lines(&format!("{begin}\n… {left_out} more lines …\n{end}"))
}
