//! What an agent did, as lines: its words, its calls, the last lines of their outputs.

use provost_event::Seq;
use provost_view::{AgentTimeline, StateMark, TimelineCall, TimelineEvent, TimelineItem, TimelineTurn};
use ratatui::text::{Line, Span};

use super::numbers::took;
use super::parts::mark_span;
use super::text::{Breaks, cut, lines_of, one_line, padded, width, wrapped};
use super::{Look, Tone};

/// Lines of an output: of one that went well, of one that failed, and unfolded from its beginning and its end each.
const LINES: usize = 5;
const LINES_FAILED: usize = 12;
const LINES_UNFOLDED: usize = 20;
const INDENT: usize = 3;

/// How outputs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outputs {
    Folded,
    Unfolded,
}

/// Lines, and the entry that each belongs to.
#[derive(Default)]
pub(super) struct Live {
    pub(super) lines: Vec<Line<'static>>,
    pub(super) entries: Vec<Seq>,
}

pub(super) struct Making {
    pub(super) look: Look,
    pub(super) columns: usize,
    pub(super) outputs: Outputs,
}

impl Making {
    pub(super) fn live(&self, timeline: &AgentTimeline) -> Live {
        let mut live = Live::default();
        if timeline.left_out > 0 {
            let text = format!("{} earlier; provost logs has all", timeline.left_out);
            live.lines.push(Line::from(self.look.span(text, Tone::Dim)));
        }
        if timeline.items.is_empty() {
            live.lines.push(Line::from(self.look.span("nothing yet", Tone::Dim)));
        }
        live.entries.resize(live.lines.len(), timeline.head);
        for item in &timeline.items {
            live.lines.extend(self.happened(item));
            live.entries.resize(live.lines.len(), item.entry);
        }
        live
    }

    fn happened(&self, item: &TimelineItem) -> Vec<Line<'static>> {
        match &item.what {
            TimelineEvent::Turn(turn) => self.turn(turn),
            TimelineEvent::Said { by, text } => {
                self.mile(StateMark::Idle, &format!("{} says:", one_line(by)), text)
            }
            TimelineEvent::StopHooks { allowed: true, hooks } => {
                self.mile(StateMark::Finished, "stop hooks", &hooks.join(", "))
            }
            TimelineEvent::StopHooks { allowed: false, hooks } => {
                self.mile(StateMark::Blocked, "stop hooks object:", &hooks.join(", "))
            }
            TimelineEvent::Goal { achieved: true, reason } => {
                self.mile(StateMark::Finished, "goal reached:", reason)
            }
            TimelineEvent::Goal { achieved: false, reason } => {
                self.mile(StateMark::Blocked, "goal not reached:", reason)
            }
            TimelineEvent::Outcome { text } => self.mile(StateMark::Paused, "stopped:", text),
            TimelineEvent::Resumed => self.mile(StateMark::Working, "goes on", ""),
        }
    }

    fn mile(&self, state: StateMark, says: &str, text: &str) -> Vec<Line<'static>> {
        let room = self.columns.saturating_sub(INDENT + 2);
        let text = lines_of(text).join(" ");
        let pieces = wrapped(format!("{says} {text}").trim_end(), room, Breaks::AtBlanks);
        let mark = mark_span(self.look, state);
        let lines = pieces.into_iter().enumerate().map(|(number, piece)| {
            let mark = if number == 0 { mark.clone() } else { Span::raw(" ") };
            Line::from(vec![Span::raw(" ".repeat(INDENT)), mark, Span::raw(" "), Span::raw(piece)])
        });
        lines.collect()
    }

    fn turn(&self, turn: &TimelineTurn) -> Vec<Line<'static>> {
        let number = turn.turn.to_string();
        let indent = INDENT.max(number.len() + 1);
        let room = self.columns.saturating_sub(indent);
        let mut said = lines_of(&turn.text)
            .iter()
            .flat_map(|line| wrapped(line, room, Breaks::AtBlanks))
            .collect::<Vec<_>>();
        if said.is_empty() && turn.calls.is_empty() {
            said.push(String::new());
        }
        let mut lines = Vec::new();
        for (at, line) in said.into_iter().enumerate() {
            let begin = if at == 0 { padded(&number, indent) } else { " ".repeat(indent) };
            lines.push(Line::from(vec![self.look.span(begin, Tone::Dim), Span::raw(line)]));
        }
        for call in &turn.calls {
            let begin = if lines.is_empty() { padded(&number, indent) } else { " ".repeat(indent) };
            lines.extend(self.call(call, begin));
        }
        lines
    }

    fn call(&self, call: &TimelineCall, begin: String) -> Vec<Line<'static>> {
        let state = call.mark();
        let indent = width(&begin);
        let result = call.duration_ms.map_or_else(|| call.progress.label().to_owned(), took);
        let text = format!("{} {}", one_line(&call.tool), one_line(&call.summary));
        let room = self.columns.saturating_sub(indent + 2 + 1 + width(&result));
        let mut lines = vec![Line::from(vec![
            self.look.span(begin, Tone::Dim),
            mark_span(self.look, state),
            Span::raw(" "),
            Span::raw(padded(&text, room)),
            self.look.span(format!(" {result}"), Tone::Dim),
        ])];
        if let Some(output) = &call.output {
            lines.extend(self.output(output, state, indent + 2));
        }
        lines
    }

    fn output(&self, output: &str, state: StateMark, indent: usize) -> Vec<Line<'static>> {
        let all = lines_of(output);
        let is_diff = all.iter().any(|line| line.starts_with("@@ "));
        let kept = match (self.outputs, state) {
            (Outputs::Unfolded, _) => (LINES_UNFOLDED, LINES_UNFOLDED),
            (Outputs::Folded, StateMark::Failed) => (0, LINES_FAILED),
            (Outputs::Folded, _) if is_diff => (LINES_FAILED, 0),
            (Outputs::Folded, _) => (0, LINES),
        };
        let (first, last) = kept;
        let room = self.columns.saturating_sub(indent);
        let line = |text: &str| {
            let tone = match text.as_bytes().first() {
                Some(b'+') if is_diff => Tone::Done,
                Some(b'-') if is_diff => Tone::Failed,
                _ => Tone::Dim,
            };
            Line::from(vec![Span::raw(" ".repeat(indent)), self.look.span(cut(text, room), tone)])
        };
        let left_out = all.len().saturating_sub(first + last);
        if left_out <= 1 {
            return all.iter().map(|text| line(text)).collect();
        }
        let mut lines = all.iter().take(first).map(|text| line(text)).collect::<Vec<_>>();
        lines.push(line(&format!("… {left_out} more lines, o unfolds")));
        lines.extend(all.iter().skip(first + left_out).map(|text| line(text)));
        lines
    }
}
