//! All runs, in groups by what they need.

use provost_event::RunId;
use provost_view::{GroupedRun, RunGroup, RunsOfGroup, StateMark};
use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::numbers::money;
use super::parts::{age, asker, bar, call, folder_name, head, mark_span, state_words, watched_limit};
use super::text::{cut, one_line, padded, to_right, width};
use super::{Place, Tone, put, run, write};
use crate::app::App;

pub(super) const KEYS: &[(&str, &str)] = &[
    ("a", "approve"),
    ("Enter", "open"),
    ("s", "say"),
    ("p", "pause"),
    ("x", "cancel"),
    ("n", "new run"),
    ("i", "inbox"),
    ("/", "filter"),
    ("t", "terminal"),
    ("f", "fork"),
    ("o", "idle runs"),
    ("j k", "move"),
    ("q", "leave"),
];

/// A line of the list.
struct Row {
    line: Line<'static>,
    run: Option<RunId>,
}

/// The columns of a list.
struct Columns {
    goal: usize,
    folder: usize,
    state: usize,
    since: usize,
    turns: usize,
    bar: usize,
}

const MONEY: usize = 8;
/// Columns of the last turns, a mark each.
const TURNS: usize = 10;
/// From this many rows on groups have a blank line between them.
const AIRY_ROWS: u16 = 40;

impl Columns {
    /// Narrow lists lose turns, then bars and folders; never state, goal and spend.
    fn of(width: usize) -> Self {
        let (folder, state, since, turns, bar) = match width {
            0..50 => (0, 13, 0, 0, 0),
            50..70 => (0, 14, 0, 0, 6),
            70..100 => (10, 14, 0, 0, 6),
            100..110 => (14, 15, 7, 6, 8),
            _ => (14, 15, 7, TURNS, 8),
        };
        let others = [folder, state, since, turns, bar].into_iter().filter(|columns| *columns > 0);
        let others = others.map(|columns| columns + 1).sum::<usize>();
        Self { goal: width.saturating_sub(3 + others + MONEY + 2), folder, state, since, turns, bar }
    }
}

impl Columns {
    /// What stands above wide columns.
    fn titles(&self) -> String {
        if self.turns == 0 {
            return String::new();
        }
        let before = " ".repeat(self.goal + 3);
        let folder = padded("FOLDER", self.folder);
        let state = padded("STATE", self.state);
        let since = to_right("SINCE", self.since);
        let turns = to_right("TURNS", self.turns);
        let spent = to_right("SPENT", MONEY);
        format!("{before} {folder} {state} {since} {turns} {spent} OF LIMIT")
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    head(frame, app);
    let middle = Place::middle(app);
    let left = if app.is_wide() { Place { columns: middle.columns * 57 / 100, ..middle } } else { middle };
    let rows = rows(app, left.columns);
    let place = rows.iter().position(|row| row.run.is_some() && row.run == app.selected);
    let end = rows.iter().rposition(|row| row.run.is_some() && row.run == app.selected);
    if let (Some(place), Some(end)) = (place, end) {
        // The group's title comes into view with its first run.
        let place = if place <= 1 { 0 } else { place };
        app.top = app.top.min(place).max((end + 1).saturating_sub(left.rows));
    }
    app.top = app.top.min(rows.len().saturating_sub(left.rows));
    let lines = rows.into_iter().map(|row| row.line).collect::<Vec<_>>();
    write(frame, left, &lines, app.top);
    if app.is_wide() {
        let x = u16::try_from(left.columns).unwrap_or_default();
        for row in 0..middle.rows {
            let y = middle.y + u16::try_from(row).unwrap_or_default();
            put(frame, (x, y), &Line::from(app.look.span("│", Tone::Dim)), 1);
        }
        run::beside(frame, app, middle.right_of(x + 2));
    }
}

fn rows(app: &App, columns: usize) -> Vec<Row> {
    if !app.is_loaded {
        return Vec::new();
    }
    if app.runs.groups.is_empty() {
        let text = "no runs yet: n starts one, or `provost run \"GOAL\"` in a folder";
        return vec![Row { line: Line::from(app.look.span(text, Tone::Dim)), run: None }];
    }
    let widths = Columns::of(columns);
    let mut rows = Vec::new();
    for group in &app.runs.groups {
        let shown = group.runs.iter().filter(|run| app.matches(run)).collect::<Vec<_>>();
        if shown.is_empty() {
            continue;
        }
        if app.rows >= AIRY_ROWS && !rows.is_empty() {
            rows.push(Row { line: Line::default(), run: None });
        }
        let titles = if rows.is_empty() { widths.titles() } else { String::new() };
        rows.push(title(app, group, shown.len(), &titles));
        if group.group == RunGroup::Idle && !app.shows_idle() {
            continue;
        }
        for run in shown {
            rows.extend(of_run(app, run, &widths, columns));
        }
    }
    if rows.is_empty() {
        let line = Line::from(app.look.span("no run matches the filter; Esc clears it", Tone::Dim));
        rows.push(Row { line, run: None });
    }
    rows
}

fn title(app: &App, group: &RunsOfGroup, count: usize, titles: &str) -> Row {
    let name = match group.group {
        RunGroup::Finished => "FINISHED, NOT LOOKED AT".to_owned(),
        group => group.title().to_uppercase(),
    };
    let fold = match (group.group, app.shows_idle()) {
        (RunGroup::Idle, false) => "▸ ",
        (RunGroup::Idle, true) => "▾ ",
        _ => "",
    };
    let name = format!("{fold}{name} {count}");
    let line = match titles.split_at_checked(width(&name)) {
        Some((_, titles)) => format!("{name}{titles}"),
        None => name,
    };
    Row { line: Line::from(app.look.span(line.trim_end().to_owned(), Tone::Dim)), run: None }
}

/// Which of the last turns moved something; where that isn't known, or has no room, how many there were.
fn turns(run: &GroupedRun, columns: usize) -> String {
    if run.moved.is_empty() || columns < TURNS {
        return run.item.turns.to_string();
    }
    run.moved.iter().map(|moved| if *moved { '▮' } else { '▯' }).collect()
}

/// A run's line, and one for what it asks.
fn of_run(app: &App, run: &GroupedRun, widths: &Columns, columns: usize) -> Vec<Row> {
    let look = app.look;
    let is_selected = app.selected == Some(run.item.run);
    let bar_of_selection = || if is_selected { look.span("▌", Tone::Strong) } else { Span::raw(" ") };
    let (words, ms) = state_words(app, run);
    let mut spans = vec![bar_of_selection(), mark_span(look, StateMark::of_run(run)), Span::raw(" ")];
    let is_unseen = run.group == RunGroup::Finished;
    let goal = one_line(&run.item.goal);
    let room = widths.goal.saturating_sub(if is_unseen { 2 } else { 0 });
    if is_unseen {
        spans.push(look.span("• ", Tone::Done));
    }
    let tone = if is_selected { Tone::Strong } else { Tone::Plain };
    spans.push(look.span(padded(&goal, room), tone));
    if widths.folder > 0 {
        let folder = padded(&folder_name(&run.item.workspace), widths.folder);
        spans.push(look.span(format!(" {folder}"), Tone::Dim));
    }
    let state = if widths.since > 0 {
        format!(" {} {}", padded(&words, widths.state), to_right(&age(ms), widths.since))
    } else {
        let age = age(ms);
        let words = cut(&words, widths.state.saturating_sub(age.len() + 1));
        format!(" {}", padded(&format!("{words} {age}"), widths.state))
    };
    spans.push(Span::raw(state));
    if widths.turns > 0 {
        spans.push(look.span(format!(" {}", to_right(&turns(run, widths.turns), widths.turns)), Tone::Dim));
    }
    spans.push(Span::raw(format!(" {}", to_right(&money(run.item.cost_micro_usd), MONEY))));
    if let Some((used, max)) = watched_limit(run).filter(|_| widths.bar > 0) {
        spans.push(Span::raw(" "));
        spans.extend(bar(look, used, max, widths.bar));
    }
    let mut rows = vec![Row { line: Line::from(spans), run: Some(run.item.run) }];
    if let Some(question) = run.asks.first() {
        let more = match run.asks.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let text = format!("{}{}", asker(question), call(question));
        let text = format!("{}{more}", cut(&text, columns.saturating_sub(4 + more.len())));
        let line = Line::from(vec![bar_of_selection(), Span::raw("  "), look.span(text, Tone::NeedsYou)]);
        rows.push(Row { line, run: Some(run.item.run) });
    }
    rows
}
