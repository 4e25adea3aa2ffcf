//! What each key does.

mod inbox;
mod prompt;

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use provost_event::{Outcome, RunId, SessionId};
use provost_view::RunGroup;

use crate::app::{App, Note, Prompt, Purpose, Screen, Tab};
use crate::line::Line;
use crate::order::{Act, Order};

/// Rows that a page key moves, where the part's rows aren't known.
const PAGE: usize = 10;

/// Takes a key; what it orders.
pub(crate) fn key(app: &mut App, key: KeyEvent, at: Instant) -> Option<Order> {
    app.note = None;
    app.typed_at(at);
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return Some(Order::Quit),
            KeyCode::Char('z') => return Some(Order::Suspend),
            KeyCode::Char('l') => return Some(Order::Redraw),
            _ => {}
        }
    }
    let order = if app.prompt.is_some() {
        prompt::key(app, key, at)
    } else if app.help {
        app.help = false;
        None
    } else if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        None
    } else {
        plain(app, key.code, at)
    };
    app.keep_question(at);
    order
}

/// Takes in pasted text: only a line that is typed takes any, so that no paste acts.
pub(crate) fn paste(app: &mut App, text: &str) {
    match app.prompt.as_mut().filter(|prompt| prompt.purpose.takes_text()) {
        Some(prompt) => prompt.line.insert(text),
        None => refuse(app, "pasted text does nothing here: s says something, n starts a run"),
    }
}

fn plain(app: &mut App, code: KeyCode, at: Instant) -> Option<Order> {
    let of_screen = match app.screen {
        Screen::Home => home(app, code),
        Screen::Run(run) => of_run(app, run, code),
        Screen::Inbox => inbox::key(app, code, at),
    };
    match of_screen {
        Some(Taken::Done) => None,
        Some(Taken::Orders(order)) => Some(order),
        None => anywhere(app, code),
    }
}

/// A key that a screen has taken.
enum Taken {
    Done,
    Orders(Order),
}

fn home(app: &mut App, code: KeyCode) -> Option<Taken> {
    match code {
        KeyCode::Char('j') | KeyCode::Down => step(app, 1),
        KeyCode::Char('k') | KeyCode::Up => step(app, -1),
        KeyCode::Char('g') | KeyCode::Home => step(app, isize::MIN),
        KeyCode::Char('G') | KeyCode::End => step(app, isize::MAX),
        KeyCode::Char('o') => app.idle_open = !app.idle_open,
        KeyCode::Char('a') => open_question(app),
        KeyCode::Esc if !app.filter.is_empty() => app.filter.clear(),
        KeyCode::Enter => {
            let (run, changed_at) = app.at_hand().map(|run| (run.item.run, run.item.updated_at_ms))?;
            return Some(Taken::Orders(open(app, run, changed_at)));
        }
        _ => return None,
    }
    Some(Taken::Done)
}

/// Opens a run: it has been looked at then.
fn open(app: &mut App, run: RunId, changed_at: provost_event::Timestamp) -> Order {
    app.screen = Screen::Run(run);
    app.selected = Some(run);
    app.tab = Tab::Live;
    app.agent = 0;
    app.scroll = None;
    Order::Act(Act::LookAt(run, changed_at))
}

fn step(app: &mut App, by: isize) {
    let listed = app.listed();
    let here = listed.iter().position(|run| Some(run.item.run) == app.selected).unwrap_or(0);
    let last = listed.len().saturating_sub(1);
    let place = here.saturating_add_signed(by.clamp(-(1 << 30), 1 << 30)).min(last);
    app.selected = listed.get(place).map(|run| run.item.run);
}

/// Opens the question of the run at hand, or the one that waits longest.
fn open_question(app: &mut App) {
    let of_run = app.at_hand().and_then(|run| run.asks.first()).map(provost_view::ApprovalQuestion::id);
    let first = app.asked().first().map(|asked| asked.question.id());
    match of_run.or(first) {
        Some(id) => {
            app.current = Some(id);
            enter_inbox(app);
        }
        None => refuse(app, "nothing waits for you"),
    }
}

pub(super) fn enter_inbox(app: &mut App) {
    if app.screen != Screen::Inbox {
        app.came_from = app.screen;
    }
    app.screen = Screen::Inbox;
    app.whole = false;
}

fn of_run(app: &mut App, run: RunId, code: KeyCode) -> Option<Taken> {
    match code {
        KeyCode::Char('j') | KeyCode::Down => scroll(app, 1),
        KeyCode::Char('k') | KeyCode::Up => scroll(app, -1),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll(app, page(app)),
        KeyCode::PageUp => scroll(app, -page(app)),
        KeyCode::Home => app.scroll = Some(0),
        KeyCode::End => app.scroll = None,
        KeyCode::Char('h') | KeyCode::Left => next_agent(app, -1),
        KeyCode::Char('l') | KeyCode::Right => next_agent(app, 1),
        KeyCode::Char('o') => app.unfolded = !app.unfolded,
        KeyCode::Char('a') => open_question(app),
        KeyCode::Char(c @ '1'..='5') => {
            let number = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(1);
            app.tab = Tab::ALL.get(number - 1).copied().unwrap_or(Tab::Live);
            app.scroll = (app.tab != Tab::Live).then_some(0);
        }
        KeyCode::Char('f') => {
            let session = SessionId { run, agent: app.agent };
            let at = app
                .scroll
                .and_then(|first| app.entries.get(first + app.part_rows.saturating_sub(1)).copied());
            ask(app, Purpose::Fork { session, at });
        }
        KeyCode::Esc => app.screen = Screen::Home,
        _ => return None,
    }
    Some(Taken::Done)
}

fn page(app: &App) -> isize {
    isize::try_from(app.part_rows.max(PAGE)).unwrap_or(1)
}

/// Scrolls a part; at its end it is followed again.
fn scroll(app: &mut App, by: isize) {
    let most = app.part_lines.saturating_sub(app.part_rows);
    let place = app.scroll.unwrap_or(most).saturating_add_signed(by).min(most);
    app.scroll = (place < most || app.tab != Tab::Live).then_some(place);
}

fn next_agent(app: &mut App, by: isize) {
    let Some(picture) = app.picture() else { return };
    let agents = picture.details.tree.agents.iter().map(|agent| agent.agent).collect::<Vec<_>>();
    let here = agents.iter().position(|agent| *agent == app.agent).unwrap_or(0);
    let place = here.saturating_add_signed(by).min(agents.len().saturating_sub(1));
    app.agent = agents.get(place).copied().unwrap_or_default();
    app.scroll = None;
}

fn anywhere(app: &mut App, code: KeyCode) -> Option<Order> {
    match code {
        KeyCode::Char('q') => return Some(Order::Quit),
        KeyCode::Char('?') => app.help = true,
        KeyCode::Char('i') => enter_inbox(app),
        KeyCode::Char('/') => {
            app.screen = Screen::Home;
            let line = Line::of(&app.filter);
            app.prompt = Some(Prompt { purpose: Purpose::Filter, line });
        }
        KeyCode::Char('n') => ask(app, Purpose::New { is_here: true }),
        KeyCode::Char('s') => on_run(app, say),
        KeyCode::Char('p') => return pause_or_resume(app),
        KeyCode::Char('x') => on_run(app, |app, run| ask(app, Purpose::Cancel { run })),
        KeyCode::Char('f') => on_run(app, |app, run| {
            ask(app, Purpose::Fork { session: SessionId::root(run), at: None });
        }),
        KeyCode::Char('t') => {
            let agent = if matches!(app.screen, Screen::Run(_)) { app.agent } else { 0 };
            match app.at_hand() {
                Some(run) => return Some(Order::Attach(SessionId { run: run.item.run, agent })),
                None => refuse(app, NO_RUN),
            }
        }
        _ => {}
    }
    None
}

const NO_RUN: &str = "no run is selected";

fn on_run(app: &mut App, act: impl FnOnce(&mut App, RunId)) {
    match app.at_hand().map(|run| run.item.run) {
        Some(run) => act(app, run),
        None => refuse(app, NO_RUN),
    }
}

/// One that is suspended or has ended gets it when it goes on.
fn say(app: &mut App, run: RunId) {
    let agent = match app.screen {
        Screen::Run(_) => app.agent,
        Screen::Inbox => app.asked_now().map_or(0, |asked| asked.question.session.agent),
        Screen::Home => 0,
    };
    let stands = app.found(run).is_none_or(|run| run.item.outcome.is_some());
    ask(app, if stands { Purpose::Resume { run } } else { Purpose::Say { run, agent } });
}

fn pause_or_resume(app: &mut App) -> Option<Order> {
    let Some(found) = app.at_hand() else {
        refuse(app, NO_RUN);
        return None;
    };
    let run = found.item.run;
    match &found.item.outcome {
        None if found.item.status == "interrupted" || found.group == RunGroup::Failed => {
            ask(app, Purpose::Resume { run });
        }
        None => return Some(Order::Act(Act::Pause(run))),
        Some(Outcome::BudgetExhausted(exhausted)) => {
            let of = exhausted.dimension;
            ask(app, Purpose::More { run, of });
        }
        Some(_) => ask(app, Purpose::Resume { run }),
    }
    None
}

fn ask(app: &mut App, purpose: Purpose) {
    app.prompt = Some(Prompt { purpose, line: Line::default() });
}

pub(super) fn refuse(app: &mut App, text: &str) {
    app.note = Some(Note { text: text.to_owned(), is_refusal: true });
}
