//! All keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text::padded;
use super::{Tone, clear, put};
use crate::app::App;

const KEYS: [(&str, &str); 22] = [
    ("j k, arrows", "move; in a run: scroll"),
    ("Enter / Esc", "open / back"),
    ("a", "open the question; there: approve once"),
    ("r", "approve for this run"),
    ("A", "approve for all runs: shows pattern, wants Enter"),
    ("d", "deny; asks for a reason"),
    ("l", "later: the next question"),
    ("v", "whole text of a question"),
    ("h l", "in a run: the agent before, after"),
    ("1-5", "in a run: live, agents, goal, cost, changes"),
    ("o", "fold, unfold: idle runs, outputs"),
    ("s", "say something to the agent"),
    ("p", "pause, or resume"),
    ("x", "cancel; wants Enter"),
    ("f", "fork at what is shown last"),
    ("n", "new run"),
    ("t", "terminal of an external agent; {detach} detaches"),
    ("i", "inbox: the questions of all runs"),
    ("/", "filter: goal, folder, agent, state"),
    ("Ctrl-L", "draw anew"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("q, Ctrl-C", "leave; runs go on"),
];

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let columns = 64.min(app.columns);
    let wanted = u16::try_from(KEYS.len() + 2).unwrap_or(u16::MAX);
    let rows = wanted.min(app.rows);
    let area = Rect::new((app.columns - columns) / 2, (app.rows - rows) / 2, columns, rows);
    clear(frame, area);
    let inner = usize::from(columns).saturating_sub(4);
    let edge = |left: &str, right: &str| format!("{left}{}{right}", "─".repeat(inner + 2));
    let look = app.look;
    let mut lines = vec![Line::from(look.span(edge("┌", "┐"), Tone::Dim))];
    for (key, does) in KEYS.iter().take(usize::from(rows.saturating_sub(2))) {
        let does = does.replace("{detach}", &app.detach_key);
        lines.push(Line::from(vec![
            look.span("│ ", Tone::Dim),
            look.span(format!("{key:<12}"), Tone::Strong),
            Span::raw(padded(&does, inner.saturating_sub(12))),
            look.span(" │", Tone::Dim),
        ]));
    }
    lines.push(Line::from(look.span(edge("└", "┘"), Tone::Dim)));
    for (row, line) in lines.iter().enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or_default();
        put(frame, (area.x, y), line, columns);
    }
}
