//! The questions of all runs, one of them in full.

use provost_event::Timestamp;
use provost_view::{StateMark, WaitLeft};
use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::numbers::span;
use super::parts::{asker, call, folder_name, head, mark_span};
use super::text::{cut, one_line, padded, spelled_out, to_right};
use super::{Place, Tone, put_last, write};
use crate::app::{App, Asked};

pub(super) const KEYS: &[(&str, &str)] = &[
    ("a", "once"),
    ("r", "this run"),
    ("A", "always"),
    ("d", "deny"),
    ("l", "later"),
    ("v", "whole text"),
    ("j k", "question"),
    ("Enter", "run"),
    ("s", "say"),
    ("Esc", "back"),
];

/// Rows of the queue above the question, where there is no room beside it.
const QUEUE_ROWS: usize = 4;
/// The lines above the call: what, and who.
const HEAD_ROWS: usize = 3;

/// Where the queue is, if it is shown, and where the question.
fn places(app: &App) -> (Option<Place>, Place) {
    let middle = Place::middle(app);
    if app.whole {
        return (None, middle);
    }
    if app.columns >= 120 {
        let queue = Place { columns: middle.columns / 3, ..middle };
        let x = u16::try_from(queue.columns + 2).unwrap_or_default();
        return (Some(queue), middle.right_of(x));
    }
    let rows = app.asked().len().min(QUEUE_ROWS);
    (Some(Place { rows, ..middle }), middle.below(rows + 1))
}

/// Where the text of the question is.
pub(crate) fn question_place(app: &App) -> Place {
    places(app).1.below(HEAD_ROWS)
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    head(frame, app);
    let asked = app.asked();
    let (queue, question) = places(app);
    let Some(now) = app.asked_now() else {
        let agents = provost_event::counted(app.runs.agents_at_work as u64, "agent");
        let verb = if app.runs.agents_at_work == 1 { "is" } else { "are" };
        let text = format!("Nothing waits for you. {agents} {verb} at work.");
        write(frame, Place::middle(app), &[Line::from(app.look.span(text, Tone::Dim))], 0);
        return;
    };
    if let Some(queue) = queue {
        let lines = asked.iter().map(|asked| queued(app, asked, queue.columns)).collect::<Vec<_>>();
        let here = asked.iter().position(|asked| Some(asked.question.id()) == app.current).unwrap_or(0);
        write(frame, queue, &lines, (here + 1).saturating_sub(queue.rows));
    }
    let place = asked.iter().position(|asked| Some(asked.question.id()) == app.current).unwrap_or(0) + 1;
    let lines = question_head(app, &now, (place, asked.len()), question.columns);
    write(frame, Place { rows: HEAD_ROWS, ..question }, &lines, 0);
    let Some(shown) = &app.in_view else { return };
    let text = question_place(app);
    let body = shown.body.lines();
    let lines = body
        .iter()
        .skip(shown.scroll)
        .take(text.rows)
        .map(|(line, tone)| Line::from(app.look.span(line.clone(), *tone)))
        .collect::<Vec<_>>();
    write(frame, text, &lines, 0);
    let below = body.len().saturating_sub(shown.scroll + text.rows);
    if below > 0 {
        let more = format!(" {below} more lines: space, PgDn ");
        put_last(frame, text, &Line::from(app.look.span(padded(&more, text.columns), Tone::Warning)));
    }
}

fn queued(app: &App, asked: &Asked<'_>, columns: usize) -> Line<'static> {
    let look = app.look;
    let is_here = Some(asked.question.id()) == app.current;
    let is_later = app.later.contains(&asked.question.id());
    let age = to_right(&span(app.now.since_ms(asked.question.since)), 6);
    let folder = folder_name(&asked.run.item.workspace);
    let text = format!("{}{}", asker(asked.question), call(asked.question));
    let text = padded(&text, columns.saturating_sub(3 + 7 + 12));
    let tone = if is_here { Tone::Strong } else { Tone::Plain };
    Line::from(vec![
        if is_here { look.span("▌", Tone::Strong) } else { Span::raw(" ") },
        mark_span(look, if is_later { StateMark::Waiting } else { StateMark::NeedsYou }),
        Span::raw(" "),
        look.span(text, tone),
        look.span(format!(" {}{age}", padded(&folder, 11)), Tone::Dim),
    ])
}

fn question_head(
    app: &App,
    asked: &Asked<'_>,
    (place, all): (usize, usize),
    columns: usize,
) -> Vec<Line<'static>> {
    let look = app.look;
    let question = asked.question;
    let who = match question.session.agent {
        0 => "the agent".to_owned(),
        agent => format!("agent {agent} {}", one_line(&question.name)),
    };
    let program = question.program.as_deref().map(|program| format!(" ({})", one_line(program)));
    let tool = spelled_out(&question.tool);
    let title = match question.question {
        Some(_) => format!("{tool}, called by {who}, asks"),
        None => format!("May {who}{} use {tool}?", program.unwrap_or_default()),
    };
    let goal = format!("{} · {}", one_line(&asked.run.item.goal), folder_name(&asked.run.item.workspace));
    let number = format!("{place} of {all}");
    let title = cut(&title, columns.saturating_sub(number.len() + 3));
    let blanks = columns.saturating_sub(2 + super::text::width(&title) + number.len());
    vec![
        Line::from(vec![
            mark_span(look, StateMark::NeedsYou),
            Span::raw(" "),
            look.span(title, Tone::NeedsYou),
            Span::raw(" ".repeat(blanks)),
            look.span(number, Tone::Dim),
        ]),
        Line::from(vec![Span::raw("  "), look.span(cut(&goal, columns.saturating_sub(2)), Tone::Plain)]),
        Line::from(vec![
            Span::raw("  "),
            look.span(cut(&waits(asked, app.now), columns.saturating_sub(2)), Tone::Dim),
        ]),
    ]
}

/// Since when it waits, and how long an answer counts.
fn waits(asked: &Asked<'_>, now: Timestamp) -> String {
    let question = asked.question;
    let is_held = asked.run.item.outcome.is_none() && asked.run.item.status != "interrupted";
    let since = span(now.since_ms(question.since));
    let end = match question.wait().left(now, is_held) {
        _ if asked.run.item.outcome.is_some() => "the run is suspended; p resumes it".to_owned(),
        WaitLeft::Of(ms) => format!("an answer counts for {}", span(ms)),
        WaitLeft::AtMost(ms) => format!("an answer counts for at most {}", span(ms)),
        WaitLeft::Over => "the time for an answer is over".to_owned(),
    };
    format!("asked {since} ago · {end}")
}
