//! Marks, colours, and what stands in for them where there are none.

use provost_view::StateMark;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// What marks, bars and lines are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Characters of Unicode.
    Unicode,
    /// ASCII only, also in place of texts' other characters.
    Ascii,
}

/// Whether states have colours; each also has a mark of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen of the terminal's palette.
    Sixteen,
    /// None.
    None,
}

/// How it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) glyphs: Glyphs,
    pub(crate) colours: Colours,
}

/// What a text says of itself by its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Dim,
    NeedsYou,
    /// The one reversed word of a screen.
    Count,
    Working,
    Stuck,
    Done,
    Failed,
    Warning,
}

impl Look {
    pub(crate) fn style(self, tone: Tone) -> Style {
        let (colour, modifier) = match tone {
            Tone::Plain => (None, Modifier::empty()),
            Tone::Strong => (None, Modifier::BOLD),
            Tone::Dim => (None, Modifier::DIM),
            Tone::NeedsYou => (Some(Color::Yellow), Modifier::BOLD),
            Tone::Count => (Some(Color::Yellow), Modifier::BOLD.union(Modifier::REVERSED)),
            Tone::Working => (Some(Color::Blue), Modifier::empty()),
            Tone::Stuck => (Some(Color::Magenta), Modifier::empty()),
            Tone::Done => (Some(Color::Green), Modifier::empty()),
            Tone::Failed => (Some(Color::Red), Modifier::empty()),
            Tone::Warning => (Some(Color::Yellow), Modifier::empty()),
        };
        let style = Style::default().add_modifier(modifier);
        match colour.filter(|_| self.colours == Colours::Sixteen) {
            Some(colour) => style.fg(colour),
            None => style,
        }
    }

    pub(crate) fn span(self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    /// Puts ASCII in the place of everything else, if that is asked for.
    pub(crate) fn finish(self, buffer: &mut Buffer) {
        if self.glyphs == Glyphs::Unicode {
            return;
        }
        for cell in &mut buffer.content {
            if !cell.symbol().is_ascii() {
                let stands_in = stands_in(cell.symbol());
                cell.set_symbol(stands_in);
            }
        }
    }
}

/// The mark of a state, and its tone.
pub(crate) const fn mark(state: StateMark) -> (&'static str, Tone) {
    match state {
        StateMark::NeedsYou => ("◆", Tone::NeedsYou),
        StateMark::Working => ("●", Tone::Working),
        StateMark::Stuck => ("↻", Tone::Stuck),
        StateMark::Blocked => ("⊘", Tone::Stuck),
        StateMark::Finished => ("✓", Tone::Done),
        StateMark::Failed => ("✗", Tone::Failed),
        StateMark::Waiting => ("◌", Tone::Dim),
        StateMark::Paused => ("‖", Tone::Dim),
        StateMark::Idle => ("·", Tone::Dim),
    }
}

/// What is drawn here in ASCII; a character of others that has none is a question mark.
fn stands_in(symbol: &str) -> &'static str {
    const PAIRS: [(&str, &str); 32] = [
        ("◆", "!"),
        ("●", "*"),
        ("◎", "?"),
        ("↻", "~"),
        ("⊘", "#"),
        ("✓", "+"),
        ("✗", "x"),
        ("◌", "o"),
        ("‖", "="),
        ("·", "."),
        ("•", "*"),
        ("━", "#"),
        ("─", "-"),
        ("▮", "|"),
        ("▯", "."),
        ("▌", ">"),
        ("▏", "_"),
        ("│", "|"),
        ("├", "|"),
        ("└", "`"),
        ("┌", "+"),
        ("┐", "+"),
        ("┘", "+"),
        ("▸", ">"),
        ("▾", "v"),
        ("…", "~"),
        ("›", ">"),
        ("−", "-"),
        ("–", "-"),
        ("’", "'"),
        ("“", "\""),
        ("”", "\""),
    ];
    PAIRS.iter().find(|(drawn, _)| *drawn == symbol).map_or("?", |(_, ascii)| ascii)
}
