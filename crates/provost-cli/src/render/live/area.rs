//! The lines that are drawn again and again: what is being written, what runs, the status, and what is typed.

use console::{Style, measure_text_width, truncate_str};

use super::lines::wrapped;
use crate::render::safe;
use crate::render::status::status_line;
use crate::render::tracker::{RunningCall, Tracker};

/// Last lines of a running command that are shown.
const OUTPUT_LINES: usize = 5;
/// Other agents that have a line each.
const AGENT_LINES: usize = 6;
/// Rows of a terminal below which only the status and what is typed are shown.
const ROWS_MIN: usize = 14;
const HINT: &str = "Enter sends it to the agent · Ctrl-C pauses · ? lists keys";

/// What there is to show.
pub(super) struct Area<'a> {
    pub(super) tracker: &'a Tracker,
    pub(super) open_line: String,
    pub(super) prompt: Option<&'a str>,
    /// What is typed and not sent; absent where nothing can be.
    pub(super) typed: Option<String>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Area<'_> {
    pub(super) fn lines(self) -> Vec<String> {
        let dim = Style::new().for_stderr().dim();
        let mut lines = Vec::new();
        lines.extend(Some(self.open_line.clone()).filter(|line| !line.trim().is_empty()));
        if self.rows >= ROWS_MIN {
            self.running(&mut lines);
        }
        lines.push(dim.apply_to("─".repeat(self.columns.saturating_sub(1))).to_string());
        let status = status_line(&self.tracker.status(), self.columns.saturating_sub(1));
        match (self.prompt, &self.typed) {
            (Some(prompt), typed) => {
                let typed = typed.as_deref().unwrap_or_default();
                lines.pop();
                lines.push(status);
                let prompt = wrapped(&format!("{prompt} › "), "  ", self.columns);
                let bold = Style::new().for_stderr().bold();
                let mut prompt =
                    prompt.lines().map(|line| bold.apply_to(line).to_string()).collect::<Vec<_>>();
                if let Some(last) = prompt.last_mut() {
                    *last = end_of(&format!("{} {}", last.trim_end(), on_one_line(typed)), self.columns);
                }
                lines.extend(prompt);
            }
            (None, Some(typed)) if typed.is_empty() => {
                lines.push(status);
                // The cursor stands behind what was typed.
                let back = measure_text_width(HINT);
                let fits = back + 10 < self.columns;
                let hint = if fits { format!("{}\u{1b}[{back}D", dim.apply_to(HINT)) } else { String::new() };
                lines.push(format!("say › {hint}"));
            }
            (None, Some(typed)) => {
                lines.push(status);
                lines.push(end_of(&format!("say › {}", on_one_line(typed)), self.columns));
            }
            (None, None) => lines.push(status),
        }
        lines
    }

    /// The calls that run, with the last lines that they have printed, and what other agents do.
    fn running(&self, lines: &mut Vec<String>) {
        let width = self.columns.saturating_sub(1);
        let blue = Style::new().for_stderr().blue();
        let dim = Style::new().for_stderr().dim();
        for RunningCall { words, took, output } in self.tracker.running_of_root() {
            let room = width.saturating_sub(measure_text_width(&took) + 7);
            let words = truncate_str(&words, room, "…").into_owned();
            let gap = " ".repeat(room.saturating_sub(measure_text_width(&words)) + 1);
            lines.push(format!("   {} {words}{gap}{}", blue.apply_to("●"), dim.apply_to(took)));
            let output = safe(&output);
            let shown = output.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
            let shown = shown.get(shown.len().saturating_sub(OUTPUT_LINES)..).unwrap_or_default();
            lines.extend(shown.iter().map(|line| {
                let line = line.replace('\t', "    ");
                dim.apply_to(truncate_str(&format!("     {line}"), width, "…")).to_string()
            }));
        }
        let others = self.tracker.others();
        let more = others.len().saturating_sub(AGENT_LINES);
        lines.extend(others.iter().take(AGENT_LINES).map(|(agent, doing)| {
            let line = format!("   {} {agent} {doing}", "●");
            truncate_str(&line, width, "…").into_owned()
        }));
        if more > 0 {
            lines.push(dim.apply_to(format!("   … {more} more agents")).to_string());
        }
    }
}

/// What is typed, on one line: what was pasted may have several.
fn on_one_line(typed: &str) -> String {
    safe(typed).replace('\n', "⏎").replace('\t', " ")
}

/// The end of a line that is longer than the terminal is wide: what was typed last is seen.
fn end_of(line: &str, columns: usize) -> String {
    let surplus = (measure_text_width(line) + 2).saturating_sub(columns);
    if surplus == 0 {
        return line.to_owned();
    }
    let plain = console::strip_ansi_codes(line).into_owned();
    let mut dropped = 0;
    let kept = plain.char_indices().find(|(_, c)| {
        dropped += measure_text_width(c.encode_utf8(&mut [0; 4]));
        dropped > surplus
    });
    format!("…{}", kept.and_then(|(at, _)| plain.get(at..)).unwrap_or_default())
}
