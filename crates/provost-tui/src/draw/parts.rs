//! What all screens are made of: bars, folders, states, the head.

use std::path::Path;

use provost_event::{MicroDollars, Outcome};
use provost_view::{ApprovalQuestion, GroupedRun, RunGroup, StateMark};
use ratatui::Frame;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::look::mark;
use super::numbers::{money, span};
use super::text::{cut_middle, one_line, spelled_out, width};
use super::{Look, Tone, put};
use crate::app::App;

/// From this percentage on a bar warns.
const WARNS_AT: u64 = 80;

/// How much is used of a limit.
pub(super) fn bar(look: Look, used: u64, max: u64, columns: usize) -> Vec<Span<'static>> {
    let percent = used.saturating_mul(100).checked_div(max).unwrap_or_default();
    let tone = match percent {
        0..WARNS_AT => Tone::Plain,
        WARNS_AT..=100 => Tone::Warning,
        _ => Tone::Failed,
    };
    let filled = used.saturating_mul(columns as u64).div_ceil(max.max(1));
    let filled = usize::try_from(filled).unwrap_or(columns).min(columns);
    vec![look.span("━".repeat(filled), tone), look.span("─".repeat(columns - filled), Tone::Dim)]
}

/// What of a run's limits is the one that people watch: money, else tokens.
pub(super) fn watched_limit(run: &GroupedRun) -> Option<(u64, u64)> {
    let money = run.budget.money.map(|MicroDollars(max)| (run.item.cost_micro_usd.0, max));
    money.or(run.budget.tokens.map(|max| (run.item.tokens, max))).filter(|(_, max)| *max > 0)
}

/// A folder's last name, or more of it if there is room.
pub(super) fn folder(app: &App, path: &Path, columns: usize) -> String {
    let below = app.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
    let whole = match below {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    cut_middle(&spelled_out(&whole), columns)
}

/// The last name of a folder.
pub(super) fn folder_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    spelled_out(&name.to_string_lossy())
}

/// A state's mark.
pub(super) fn mark_span(look: Look, state: StateMark) -> Span<'static> {
    let (shape, tone) = mark(state);
    look.span(shape, tone)
}

/// What a run does or why it does nothing, and for how long.
pub(super) fn state_words(app: &App, run: &GroupedRun) -> (String, u64) {
    let item = &run.item;
    let since_change = app.now.since_ms(item.updated_at_ms);
    let at_work = run.agents.iter().filter(|agent| agent.state.holds_slot()).count();
    match (run.group, &item.outcome) {
        (RunGroup::NeedsYou, _) => {
            let since = run.asks.first().map_or(since_change, |ask| app.now.since_ms(ask.since));
            let words = match run.asks.len() {
                0 => item.status.strip_prefix("needs ").unwrap_or(&item.status).to_owned(),
                1 => "approval".to_owned(),
                count => format!("{count} approvals"),
            };
            (words, since)
        }
        (RunGroup::Working, _) if run.agents.len() > 1 => {
            (format!("{at_work} of {}", run.agents.len()), app.now.since_ms(item.started_at_ms))
        }
        (RunGroup::Working, _) => (format!("turn {}", item.turns), app.now.since_ms(item.started_at_ms)),
        (RunGroup::Waiting, None) => {
            match item.awaits_provider.as_ref().and_then(|awaited| awaited.next_try_ms) {
                Some(ms) => ("again in".to_owned(), ms),
                None => (item.status.clone(), since_change),
            }
        }
        (_, Some(outcome)) => match outcome.verdict_not_passed() {
            Some(verdict) => (format!("says {verdict}"), since_change),
            None => (of_outcome(run, outcome), since_change),
        },
        (_, None) => (run.phase(), since_change),
    }
}

fn of_outcome(run: &GroupedRun, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Aborted { hook, .. } => format!("hook {}", spelled_out(hook)),
        Outcome::Blocked { .. } => "not allowed".to_owned(),
        Outcome::BudgetExhausted(_) => "budget".to_owned(),
        _ => run.phase(),
    }
}

/// A call in one line: a command as it is, else its arguments.
pub(super) fn call(question: &ApprovalQuestion) -> String {
    let text = match question.input.read::<Value>() {
        Ok(Value::Object(fields)) if fields.len() == 1 => {
            let only = fields.values().next();
            only.and_then(Value::as_str).map_or_else(|| question.input.text().to_owned(), str::to_owned)
        }
        _ => format!("{} {}", question.tool, question.input.text()),
    };
    spelled_out(&text)
}

/// Who asks, in front of what is asked.
pub(super) fn asker(question: &ApprovalQuestion) -> String {
    let who = match (&question.program, question.session.agent) {
        (Some(program), _) => one_line(program),
        (None, 0) => "it".to_owned(),
        (None, agent) => format!("{agent} {}", one_line(&question.name)),
    };
    format!("{who} asks: ")
}

/// The first line of every screen.
pub(super) fn head(frame: &mut Frame<'_>, app: &App) {
    let look = app.look;
    let mut left = vec![look.span("Provost", Tone::Strong), Span::raw("  ")];
    let asked = app.runs.questions;
    if asked > 0 {
        let need = if asked == 1 { "needs you" } else { "need you" };
        left.push(look.span("◆ ", Tone::NeedsYou));
        left.push(look.span(format!("{asked} {need}"), Tone::Count));
        left.push(look.span(" · ", Tone::Dim));
    }
    let agents = provost_event::counted(app.runs.agents_at_work as u64, "agent");
    left.push(Span::raw(format!("{agents} at work")));
    if app.is_wide() {
        let folders =
            app.runs.runs().map(|run| &run.item.workspace).collect::<std::collections::HashSet<_>>();
        let runs = provost_event::counted(app.runs.runs().count() as u64, "run");
        let folders = provost_event::counted(folders.len() as u64, "folder");
        left.push(look.span(format!(" · {runs} in {folders}"), Tone::Dim));
    }
    put(frame, (0, 0), &Line::from(left), app.columns);
    let spent = app.runs.spent_today(app.now);
    let right = format!("{} in runs of today", money(spent));
    let (at, text) = match usize::from(app.columns).checked_sub(width(&right)) {
        Some(at) if at > 46 => (at, right),
        _ => (usize::from(app.columns).saturating_sub(width(&money(spent))), money(spent)),
    };
    if at > 42 {
        let x = u16::try_from(at).unwrap_or_default();
        put(frame, (x, 0), &Line::from(look.span(text, Tone::Dim)), app.columns - x);
    }
}

/// An age, as it stands behind a state.
pub(super) fn age(ms: u64) -> String {
    span(ms)
}
