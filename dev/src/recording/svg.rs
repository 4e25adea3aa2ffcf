//! A recording as an animated SVG: all frames under each other, of which one is shown at a time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::BufRead;
use std::time::Duration;

use anyhow::Result;
use provost_terminal::{CastReader, Colour, Happened, Run, Screen, Style};
use unicode_width::UnicodeWidthStr as _;

/// Frames are at least this far apart.
const FRAME: Duration = Duration::from_millis(100);
/// A pause in the recording is at most this long.
const PAUSE_MAX: Duration = Duration::from_millis(1_500);
/// How long the last frame is shown.
const LAST: Duration = Duration::from_secs(6);

/// Sizes in pixels.
const CELL: f32 = 8.4;
const ROW: u32 = 18;
const MARGIN: u32 = 12;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d4d7dd";
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d7dd", "#7f848e",
    "#ef8991", "#b1d196", "#f0d197", "#86c3f5", "#d699e6", "#7fcbd4", "#ffffff",
];

/// A screen and when it is shown first.
struct Frame {
    at: Duration,
    rows: Vec<usize>,
}

/// The frames, with each different row once.
#[derive(Default)]
struct Film {
    frames: Vec<Frame>,
    rows: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Film {
    fn take(&mut self, at: Duration, screen: &Screen, height: u16) {
        let rows = (0..height).map(|row| self.number(drawn(&screen.runs(row)))).collect::<Vec<_>>();
        match self.frames.last_mut() {
            Some(last) if last.rows == rows => {}
            Some(last) if at.saturating_sub(last.at) < FRAME => last.rows = rows,
            _ => self.frames.push(Frame { at, rows }),
        }
    }

    fn number(&mut self, row: String) -> usize {
        if let Some(number) = self.numbers.get(&row) {
            return *number;
        }
        self.rows.push(row.clone());
        let number = self.rows.len() - 1;
        self.numbers.insert(row, number);
        number
    }
}

/// Draws a recording.
///
/// # Errors
/// When it can't be read.
pub(super) fn svg(recording: impl BufRead) -> Result<String> {
    let reader = CastReader::new(recording)?;
    let size = reader.header().size;
    let mut screen = Screen::new(size);
    let mut film = Film::default();
    let (mut before, mut now) = (Duration::ZERO, Duration::ZERO);
    for event in reader {
        let event = event?;
        now += event.at.saturating_sub(before).min(PAUSE_MAX);
        before = event.at;
        if let Happened::Output(text) = event.what {
            screen.feed(text.as_bytes());
            film.take(now, &screen, size.rows);
        }
    }
    let columns = u32::from(size.cols);
    Ok(page(&film, now + LAST, columns, u32::from(size.rows)))
}

fn page(film: &Film, length: Duration, columns: u32, rows: u32) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a window's size"
    )]
    let width = (columns as f32 * CELL) as u32 + 2 * MARGIN;
    let (frame, count) = (rows * ROW, film.frames.len());
    let height = frame + 2 * MARGIN;
    let last = frame * u32::try_from(count.saturating_sub(1)).unwrap_or_default();
    // Writing to a String can't fail, here and below.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"A recording of a terminal\">\n<style>\n\
         text{{font:14px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:{FOREGROUND};white-space:pre}}\n\
         #film{{transform:translateY(-{last}px);animation:film {:.2}s steps(1,end) infinite}}\n@keyframes film{{\n",
        length.as_secs_f32()
    );
    for (number, shown) in film.frames.iter().enumerate() {
        let percent = 100.0 * shown.at.as_secs_f32() / length.as_secs_f32();
        let start = if number == 0 { 0.0 } else { percent };
        let _ = writeln!(out, "{start:.3}%{{transform:translateY(-{}px)}}", number as u64 * u64::from(frame));
    }
    let _ = writeln!(out, "100%{{transform:translateY(-{last}px)}}\n}}\n</style>\n<defs>");
    for (number, row) in film.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let _ = writeln!(out, "<g id=\"r{number}\">{row}</g>");
    }
    let _ = writeln!(
        out,
        "</defs>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <svg x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{}\" height=\"{frame}\"><g id=\"film\">",
        width - 2 * MARGIN
    );
    for (number, shown) in (0_u32..).zip(&film.frames) {
        for (row, content) in (0_u32..).zip(&shown.rows) {
            if film.rows.get(*content).is_some_and(|text| !text.is_empty()) {
                let _ = write!(out, "<use href=\"#r{content}\" y=\"{}\"/>", number * frame + row * ROW);
            }
        }
        out.push('\n');
    }
    out.push_str("</g></svg>\n</svg>\n");
    out
}

/// A row; empty if it shows nothing.
fn drawn(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let Style { foreground, background, inverse, .. } = run.style;
        let (text, behind) = if inverse {
            (or(colour(background), BACKGROUND), Some(or(colour(foreground), FOREGROUND)))
        } else {
            (or(colour(foreground), FOREGROUND), colour(background))
        };
        let columns = u16::try_from(run.text.width()).unwrap_or(u16::MAX);
        let (x, width) = (f32::from(run.col) * CELL, f32::from(columns) * CELL);
        if let Some(behind) = behind {
            let _ =
                write!(out, "<rect x=\"{x:.1}\" width=\"{width:.1}\" height=\"{ROW}\" fill=\"{behind}\"/>");
        }
        let shown = run.text.trim_end();
        if shown.is_empty() {
            continue;
        }
        let length = f32::from(u16::try_from(shown.width()).unwrap_or(u16::MAX)) * CELL;
        let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let style = style(run.style, &text);
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"14\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{style}>{escaped}</text>"
        );
    }
    out
}

fn style(style: Style, colour: &str) -> String {
    let mut out = String::new();
    let parts = [
        (colour != FOREGROUND, format!(" style=\"fill:{colour}\"")),
        (style.bold, " font-weight=\"bold\"".to_owned()),
        (style.dim, " opacity=\"0.65\"".to_owned()),
        (style.italic, " font-style=\"italic\"".to_owned()),
        (style.underline, " text-decoration=\"underline\"".to_owned()),
    ];
    for (_, part) in parts.iter().filter(|(is_set, _)| *is_set) {
        out.push_str(part);
    }
    out
}

fn or(colour: Option<String>, default: &str) -> String {
    colour.unwrap_or_else(|| default.to_owned())
}

/// `None` for the terminal's own.
fn colour(colour: Colour) -> Option<String> {
    match colour {
        Colour::Default => None,
        Colour::Indexed(index) => Some(indexed(index)),
        Colour::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// A colour of the palette's 256: 16 of their own, a cube of 6 levels each, 24 greys.
fn indexed(index: u8) -> String {
    if let Some(own) = PALETTE.get(usize::from(index)) {
        return (*own).to_owned();
    }
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let (red, green, blue) = match index.checked_sub(232) {
        Some(grey) => (8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey),
        None => {
            let cube = index.saturating_sub(16);
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::svg;

    #[test]
    fn a_recording_becomes_frames_with_text_colours_and_times() {
        let recording = "{\"version\":2,\"width\":20,\"height\":2}\n\
            [0.5,\"o\",\"$ a <b>\\r\\n\"]\n[0.52,\"o\",\"\\u001b[31mred\\u001b[m\"]\n[60.0,\"o\",\"\\u001b[2J\\u001b[Hend\"]\n";
        let drawn = svg(recording.as_bytes()).unwrap();
        assert!(drawn.contains(">$ a &lt;b&gt;</text>"), "{drawn}");
        assert!(drawn.contains(" style=\"fill:#e06c75\">red</text>"), "{drawn}");
        assert!(drawn.contains("animation:film 8.02s "), "pauses are cut: {drawn}");
        assert_eq!(drawn.matches("%{transform").count(), 3, "two frames and the end: {drawn}");
    }
}
