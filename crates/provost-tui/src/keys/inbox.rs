//! Keys of the inbox: an answer counts only for a question that is in view as a whole, and has been for a moment.

use std::time::Instant;

use crossterm::event::KeyCode;
use provost_event::{ApprovalAnswer, ApprovalScope};
use serde_json::Map;

use super::{PAGE, Taken, ask, refuse};
use crate::app::{App, DEAD_FOR, Purpose};
use crate::order::{Act, Order};

pub(super) fn key(app: &mut App, code: KeyCode, at: Instant) -> Option<Taken> {
    match code {
        KeyCode::Char('j') | KeyCode::Down if app.whole => scroll(app, 1),
        KeyCode::Char('k') | KeyCode::Up if app.whole => scroll(app, -1),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll(app, page(app)),
        KeyCode::PageUp => scroll(app, -page(app)),
        KeyCode::Char('j') | KeyCode::Down => step(app, 1),
        KeyCode::Char('k') | KeyCode::Up => step(app, -1),
        KeyCode::Char('v') => app.whole = !app.whole,
        KeyCode::Char('a') => return Some(allow(app, ApprovalScope::Once, at)),
        KeyCode::Char('r') => return Some(allow(app, ApprovalScope::Run, at)),
        KeyCode::Char('A') => return Some(allow(app, ApprovalScope::Always, at)),
        KeyCode::Char('d') => {
            if may_answer(app, at)
                && let Some(question) = app.current
            {
                ask(app, Purpose::Deny { question });
            }
        }
        KeyCode::Char('l') => later(app),
        KeyCode::Enter => {
            let run = app.asked_now().map(|asked| (asked.run.item.run, asked.run.item.updated_at_ms));
            if let Some((run, changed_at)) = run {
                return Some(Taken::Orders(super::open(app, run, changed_at)));
            }
        }
        KeyCode::Esc if app.whole => app.whole = false,
        KeyCode::Esc => app.screen = app.came_from,
        _ => return None,
    }
    Some(Taken::Done)
}

fn page(app: &App) -> isize {
    let rows = crate::draw::question_place(app).rows;
    isize::try_from(rows.saturating_sub(1)).unwrap_or(1).max(1).min(isize::try_from(PAGE * 10).unwrap_or(100))
}

fn scroll(app: &mut App, by: isize) {
    let rows = crate::draw::question_place(app).rows;
    if let Some(shown) = &mut app.in_view {
        let most = shown.body.lines().len().saturating_sub(rows);
        shown.scroll = shown.scroll.saturating_add_signed(by).min(most);
    }
}

fn step(app: &mut App, by: isize) {
    let asked = app.asked().iter().map(|asked| asked.question.id()).collect::<Vec<_>>();
    let here = asked.iter().position(|id| Some(*id) == app.current).unwrap_or(0);
    let place = here.saturating_add_signed(by).min(asked.len().saturating_sub(1));
    app.current = asked.get(place).copied();
    app.whole = false;
}

/// The question goes behind the others.
fn later(app: &mut App) {
    let Some(current) = app.current else { return };
    app.later.retain(|id| *id != current);
    app.later.push(current);
    app.current = app.asked().first().map(|asked| asked.question.id());
    app.whole = false;
}

/// Whether the question in view may be answered; says why not.
fn may_answer(app: &mut App, at: Instant) -> bool {
    let Some(shown) = app.in_view.as_ref().filter(|shown| Some(shown.id) == app.current) else {
        refuse(app, "nothing waits for you");
        return false;
    };
    if at < shown.since + DEAD_FOR {
        refuse(app, "this question has just come up: read it first");
        return false;
    }
    if !shown.is_read {
        refuse(app, "it is longer than the screen: v shows the whole text; go to its end first");
        return false;
    }
    true
}

fn allow(app: &mut App, scope: ApprovalScope, at: Instant) -> Taken {
    if !may_answer(app, at) {
        return Taken::Done;
    }
    let Some(question) = app.asked_now().map(|asked| asked.question.clone()) else { return Taken::Done };
    if scope != ApprovalScope::Once && question.is_for_once() {
        refuse(
            app,
            match question.question {
                Some(_) => "a tool asks something else each time: a answers it once",
                None => "only this call can be approved: what it runs may be something else next time",
            },
        );
        return Taken::Done;
    }
    if question.question.as_ref().is_some_and(|asked| !asked.fields().is_empty()) {
        ask(app, Purpose::Field { question: question.id(), number: 0, given: Map::new() });
        return Taken::Done;
    }
    if scope == ApprovalScope::Always {
        ask(app, Purpose::Always { question: question.id() });
        return Taken::Done;
    }
    let pattern = (scope != ApprovalScope::Once).then(|| question.pattern.clone());
    app.whole = false;
    Taken::Orders(Order::Act(Act::Answer {
        question: Box::new(question),
        answer: ApprovalAnswer::Allow { scope, pattern },
    }))
}
