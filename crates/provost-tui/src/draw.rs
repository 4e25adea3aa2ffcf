//! The screens.

mod body;
mod help;
mod home;
mod inbox;
mod live;
mod look;
mod numbers;
mod parts;
mod run;
mod text;

use provost_view::ToolQuestion;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

pub(crate) use body::Body;
pub(crate) use inbox::question_place;
pub use look::{Colours, Glyphs};
pub(crate) use look::{Look, Tone};

use crate::app::{App, Note, Purpose, Screen};
use text::{cut, spelled_out, width};

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Place {
    /// The screen without its head, and without the lines at its foot.
    fn middle(app: &App) -> Self {
        Self {
            x: 0,
            y: 2,
            columns: usize::from(app.columns),
            rows: usize::from(app.rows).saturating_sub(2 + FOOT_ROWS),
        }
    }

    /// The columns from `x` on.
    fn right_of(self, x: u16) -> Self {
        let columns = self.columns.saturating_sub(usize::from(x - self.x));
        Self { x, columns, ..self }
    }

    /// Without its first rows.
    fn below(self, rows: usize) -> Self {
        let rows = rows.min(self.rows);
        Self { y: self.y + u16::try_from(rows).unwrap_or_default(), rows: self.rows - rows, ..self }
    }
}

/// The line for notes and for what is typed, and that of the keys.
const FOOT_ROWS: usize = 2;
/// Below this nothing is drawn but that the screen is too small.
const COLUMNS_MIN: u16 = 20;
const ROWS_MIN: u16 = 6;

/// Draws all of it.
pub(crate) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    (app.columns, app.rows) = (area.width, area.height);
    app.prepare();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        put(frame, (0, 0), &Line::raw("too small"), area.width);
        return;
    }
    match app.screen {
        Screen::Home => home::draw(frame, app),
        Screen::Run(run) => run::draw(frame, app, run),
        Screen::Inbox => inbox::draw(frame, app),
    }
    foot(frame, app);
    if app.help {
        help::draw(frame, app);
    }
    app.look.finish(frame.buffer_mut());
}

/// Writes lines into a place, from `first` on.
fn write(frame: &mut Frame<'_>, place: Place, lines: &[Line<'_>], first: usize) {
    let columns = u16::try_from(place.columns).unwrap_or(u16::MAX);
    for (row, line) in lines.iter().skip(first).take(place.rows).enumerate() {
        let y = place.y + u16::try_from(row).unwrap_or_default();
        put(frame, (place.x, y), line, columns);
    }
}

/// Writes a line, if its beginning is on the screen.
fn put(frame: &mut Frame<'_>, (x, y): (u16, u16), line: &Line<'_>, columns: u16) {
    let area = frame.area();
    if x < area.width && y < area.height {
        frame.buffer_mut().set_line(x, y, line, columns.min(area.width - x));
    }
}

/// Writes a line over the last row of a place.
fn put_last(frame: &mut Frame<'_>, place: Place, line: &Line<'_>) {
    if let Some(row) = place.rows.checked_sub(1) {
        let y = place.y + u16::try_from(row).unwrap_or_default();
        put(frame, (place.x, y), line, u16::try_from(place.columns).unwrap_or(u16::MAX));
    }
}

/// The last two lines: what came of something or what is typed, and the keys.
fn foot(frame: &mut Frame<'_>, app: &App) {
    let columns = usize::from(app.columns);
    let y = app.rows.saturating_sub(2);
    let line = match (&app.prompt, &app.note, &app.trouble) {
        (Some(_), ..) => prompt(app, columns),
        (None, Some(note), _) => noted(app, note, columns),
        (None, None, Some(trouble)) => {
            let text = format!("can't read the runs: {}", spelled_out(trouble));
            Line::from(app.look.span(cut(&text, columns), Tone::Failed))
        }
        (None, None, None) => Line::default(),
    };
    put(frame, (0, y), &line, app.columns);
    let last = match (&app.prompt, &app.note) {
        // Why what was typed isn't taken.
        (Some(_), Some(note)) => noted(app, note, columns),
        _ => keys_line(app, columns),
    };
    put(frame, (0, app.rows.saturating_sub(1)), &last, app.columns);
}

fn noted(app: &App, note: &Note, columns: usize) -> Line<'static> {
    let tone = if note.is_refusal { Tone::Warning } else { Tone::Strong };
    Line::from(app.look.span(cut(&spelled_out(&note.text), columns), tone))
}

fn prompt(app: &App, columns: usize) -> Line<'static> {
    let Some(prompt) = &app.prompt else { return Line::default() };
    let label = label(app, &prompt.purpose);
    let label = cut(&label, columns.saturating_sub(12).max(columns / 2));
    let before = spelled_out(prompt.line.before());
    let room = columns.saturating_sub(width(&label) + 2);
    // The end of what was typed stays in view.
    let mut shown = before.as_str();
    while width(shown) > room {
        shown = shown.chars().next().and_then(|c| shown.get(c.len_utf8()..)).unwrap_or_default();
    }
    let after = spelled_out(prompt.line.after());
    let mut spans = vec![app.look.span(label, Tone::Strong)];
    if prompt.purpose.takes_text() {
        spans.push(Span::raw(shown.to_owned()));
        spans.push(app.look.span("▏", Tone::Dim));
        spans.push(Span::raw(cut(&after, room.saturating_sub(width(shown)))));
    }
    Line::from(spans)
}

fn label(app: &App, purpose: &Purpose) -> String {
    match purpose {
        Purpose::Filter => "filter › ".to_owned(),
        Purpose::Say { agent, .. } => format!("say to agent {agent} › "),
        Purpose::Resume { .. } => "resume with a message (Enter alone: without) › ".to_owned(),
        Purpose::More { of, .. } => format!("resume with this much more {} › ", more_of(*of)),
        Purpose::Fork { at: Some(at), .. } => format!("fork at entry {at} with a message › "),
        Purpose::Fork { at: None, .. } => "fork at the newest entry with a message › ".to_owned(),
        Purpose::New { is_here } => {
            let there = app.at_hand().map(|run| run.item.workspace.as_path()).filter(|_| !is_here);
            let folder = there.unwrap_or(&app.folder);
            format!("new run in {} (Tab: other folder) › ", parts::folder(app, folder, 24))
        }
        Purpose::Deny { .. } => "deny; why (Enter alone: no reason) › ".to_owned(),
        Purpose::Field { number, .. } => {
            let fields =
                app.asked_now().and_then(|asked| asked.question.question.as_ref()).map(ToolQuestion::fields);
            let Some(field) = fields.as_ref().and_then(|fields| fields.get(*number)) else {
                return String::new();
            };
            let default = field
                .default
                .as_ref()
                .map(|value| format!("; Enter alone: {}", spelled_out(&value.to_string())));
            format!("{} ({}{}) › ", field.label, field.expected(), default.unwrap_or_default())
        }
        Purpose::Always { .. } => {
            let pattern = app.asked_now().map(|asked| asked.question.pattern.clone()).unwrap_or_default();
            format!("always allow {} in all runs? Enter does it, Esc doesn't", spelled_out(&pattern))
        }
        Purpose::Cancel { run } => {
            let goal = app.found(*run).map(|run| text::one_line(&run.item.goal)).unwrap_or_default();
            format!("cancel \"{}\"? Enter does it, Esc doesn't", cut(&goal, 40))
        }
    }
}

const fn more_of(dimension: provost_event::Dimension) -> &'static str {
    match dimension {
        provost_event::Dimension::Tokens => "tokens",
        provost_event::Dimension::Money => "money in US dollars",
        provost_event::Dimension::Turns => "turns",
        provost_event::Dimension::WallTime => "time, such as 1h",
    }
}

/// The keys of a screen, the important ones first: as many as fit.
fn keys_line(app: &App, columns: usize) -> Line<'static> {
    let keys: &[(&str, &str)] = match (&app.prompt, app.screen) {
        (Some(prompt), _) if prompt.purpose.takes_text() => {
            &[("Enter", "does it"), ("Esc", "doesn't"), ("Ctrl-U", "empties the line")]
        }
        (Some(_), _) => &[("Enter", "does it"), ("Esc", "doesn't")],
        (None, Screen::Home) => home::KEYS,
        (None, Screen::Run(_)) => run::KEYS,
        (None, Screen::Inbox) => inbox::KEYS,
    };
    const MORE: &str = "? keys";
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, does) in keys {
        let needs = width(key) + 1 + width(does) + 2;
        if used + needs + MORE.len() > columns {
            break;
        }
        used += needs;
        spans.push(app.look.span((*key).to_owned(), Tone::Strong));
        spans.push(app.look.span(format!(" {does}  "), Tone::Dim));
    }
    if app.prompt.is_none() {
        spans.push(app.look.span(MORE, Tone::Dim));
    }
    Line::from(spans)
}

/// Empties a part of the screen.
fn clear(frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(ratatui::widgets::Clear, area);
}
