//! Removes secrets from what is shown and stored. The mask is passed in: this crate doesn't know what secrets look
//! like.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Screen;

/// Replaces each secret in a text.
pub type Mask = Arc<dyn for<'t> Fn(&'t str) -> Cow<'t, str> + Send + Sync>;

/// A screen's rows, as from [`Screen::rows`], with the secrets masked; the number of rows doesn't change.
///
/// A secret is found within a line, also where the line is wrapped, and over several lines where the mask knows
/// such secrets. It isn't found where the program itself broke it, as in a box narrower than the secret.
#[must_use]
pub fn masked_rows(screen: &Screen, mask: &Mask) -> Vec<String> {
    let rows = screen.rows();
    let lines = lines(screen, &rows);
    let text = joined(&lines);
    let masked = mask(&text);
    if masked == text {
        return rows;
    }
    let masked: Vec<&str> = masked.split('\n').collect();
    let same_first = lines.iter().zip(&masked).take_while(|(line, masked)| line.text == **masked).count();
    let rest = lines.len().min(masked.len()) - same_first;
    let same_last = lines
        .iter()
        .rev()
        .zip(masked.iter().rev())
        .take(rest)
        .take_while(|(line, m)| line.text == **m)
        .count();
    let height = |lines: &[ScreenLine]| lines.iter().map(|line| line.rows).sum::<usize>();
    let first = height(lines.get(..same_first).unwrap_or_default());
    let last = height(lines.get(lines.len() - same_last..).unwrap_or_default());
    let changed = masked.get(same_first..masked.len() - same_last).unwrap_or_default();
    let width = usize::from(screen.size().cols);
    let changed =
        changed.iter().flat_map(|line| broken(line, width)).chain(std::iter::repeat_with(String::new));
    rows.iter()
        .take(first)
        .cloned()
        .chain(changed.take(rows.len() - first - last))
        .chain(rows.iter().skip(rows.len() - last).cloned())
        .collect()
}

/// A line and its number of rows.
struct ScreenLine {
    text: String,
    rows: usize,
}

fn lines(screen: &Screen, rows: &[String]) -> Vec<ScreenLine> {
    let mut lines: Vec<ScreenLine> = Vec::new();
    let mut goes_on = false;
    for (row, text) in (0_u16..).zip(rows) {
        match lines.last_mut().filter(|_| goes_on) {
            Some(line) => {
                line.text.push_str(text);
                line.rows += 1;
            }
            None => lines.push(ScreenLine { text: text.clone(), rows: 1 }),
        }
        goes_on = screen.row_wraps(row);
    }
    lines
}

fn joined(lines: &[ScreenLine]) -> String {
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// A line split into rows of `width` characters.
fn broken(line: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(width.max(1)).map(|row| row.iter().collect()).collect()
}
