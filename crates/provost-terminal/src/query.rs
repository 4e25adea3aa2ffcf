//! A terminal's replies to a program's queries, in xterm's format.
//!
//! The program reads a reply as if it had been typed. So replies never contain what a program, or a displayed
//! file, has put into the terminal: the title is reported as empty, the clipboard isn't reported at all, and names
//! of capabilities aren't repeated. A reply that arrives when the program no longer waits for it ends up in a
//! prompt: programs query the device attributes last and take their reply as the end of all, so it is sent last.

use provost_event::WindowSize;

use crate::screen::csi::Csi;
use crate::screen::scan::Terminator;

/// Maximum bytes of queued replies for a program that queries and doesn't read; further ones are dropped.
const REPLIES_BYTES_MAX: usize = 16 * 1_024;
/// The reported size of a cell, in pixels.
const CELL_PIXELS: (u32, u32) = (20, 10);
/// Text, background and cursor, as the dynamic colours 10, 11 and 12: light on dark.
const COLOURS: [u8; 3] = [0xcc, 0x11, 0xff];
/// xterm's first sixteen colours.
const PALETTE: [(u8, u8, u8); 16] = [
    (0x00, 0x00, 0x00),
    (0xcd, 0x00, 0x00),
    (0x00, 0xcd, 0x00),
    (0xcd, 0xcd, 0x00),
    (0x00, 0x00, 0xee),
    (0xcd, 0x00, 0xcd),
    (0x00, 0xcd, 0xcd),
    (0xe5, 0xe5, 0xe5),
    (0x7f, 0x7f, 0x7f),
    (0xff, 0x00, 0x00),
    (0x00, 0xff, 0x00),
    (0xff, 0xff, 0x00),
    (0x5c, 0x5c, 0xff),
    (0xff, 0x00, 0xff),
    (0x00, 0xff, 0xff),
    (0xff, 0xff, 0xff),
];

/// Queued replies.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    sent_first: Vec<u8>,
    sent_last: Vec<u8>,
}

impl Replies {
    /// In order, device attributes after all others.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.sent_first);
        all.append(&mut self.sent_last);
        all
    }

    pub(crate) fn push(&mut self, reply: Reply) {
        let (to, text) = match reply {
            Reply::Ordinary(text) => (&mut self.sent_first, text),
            Reply::Attributes => (&mut self.sent_last, "\x1b[?62;22c".to_owned()),
        };
        if to.len() + text.len() <= REPLIES_BYTES_MAX {
            to.extend(text.bytes());
        }
    }
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// These bytes.
    Ordinary(String),
    /// The primary device attributes: a VT220 with colours.
    Attributes,
}

/// The state that replies depend on.
pub(crate) struct QueryState<'a> {
    pub(crate) size: WindowSize,
    /// Counted from 1.
    pub(crate) cursor: (u16, u16),
    pub(crate) keyboard_flags: u8,
    pub(crate) modify_other_keys: u8,
    /// A mode by its number and kind: set, reset, or unknown.
    pub(crate) mode: &'a dyn Fn(u16, Dec) -> Option<bool>,
}

/// Whether a mode is one of DEC's private modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dec {
    Private,
    Ansi,
}

/// The reply to a control sequence, if it is a query.
pub(crate) fn answer_csi(csi: &Csi, asked: &QueryState<'_>) -> Option<Reply> {
    let first = csi.parameter(0);
    let (row, col) = asked.cursor;
    let text = match (csi.name.as_str(), first) {
        ("c", 0) => return Some(Reply::Attributes),
        (">c", 0) => "\x1b[>41;390;0c".to_owned(),
        ("=c", 0) => "\x1bP!|00000000\x1b\\".to_owned(),
        (">q", 0) => format!("\x1bP>|Provost({})\x1b\\", env!("CARGO_PKG_VERSION")),
        ("n", 5) => "\x1b[0n".to_owned(),
        ("n", 6) => format!("\x1b[{row};{col}R"),
        ("?n", 6) => format!("\x1b[?{row};{col}R"),
        // No printer; user-defined keys can be set; a North American keyboard.
        ("?n", 15) => "\x1b[?13n".to_owned(),
        ("?n", 25) => "\x1b[?20n".to_owned(),
        ("?n", 26) => "\x1b[?27;1;0;0n".to_owned(),
        // The colour scheme is dark.
        ("?n", 996) => "\x1b[?997;1n".to_owned(),
        ("?u", _) => format!("\x1b[?{}u", asked.keyboard_flags),
        ("?m", 4) => format!("\x1b[>4;{}m", asked.modify_other_keys),
        ("x", 0 | 1) => format!("\x1b[{};1;1;128;128;1;0x", first + 2),
        ("?$p", mode) => format!("\x1b[?{mode};{}$y", is_set((asked.mode)(mode, Dec::Private))),
        ("$p", mode) => format!("\x1b[{mode};{}$y", is_set((asked.mode)(mode, Dec::Ansi))),
        ("t", report) => return window_report(report, asked.size).map(Reply::Ordinary),
        _ => return None,
    };
    Some(Reply::Ordinary(text))
}

const fn is_set(mode: Option<bool>) -> u8 {
    match mode {
        Some(true) => 1,
        Some(false) => 2,
        None => 0,
    }
}

fn window_report(report: u16, size: WindowSize) -> Option<String> {
    let (rows, cols) = (u32::from(size.rows), u32::from(size.cols));
    Some(match report {
        11 => "\x1b[1t".to_owned(),
        13 => "\x1b[3;0;0t".to_owned(),
        14 => format!("\x1b[4;{};{}t", rows * CELL_PIXELS.0, cols * CELL_PIXELS.1),
        15 => format!("\x1b[5;{};{}t", rows * CELL_PIXELS.0, cols * CELL_PIXELS.1),
        16 => format!("\x1b[6;{};{}t", CELL_PIXELS.0, CELL_PIXELS.1),
        18 => format!("\x1b[8;{rows};{cols}t"),
        19 => format!("\x1b[9;{rows};{cols}t"),
        20 => "\x1b]L\x1b\\".to_owned(),
        21 => "\x1b]l\x1b\\".to_owned(),
        _ => return None,
    })
}

/// The replies to an operating system command that queries colours; none to any other.
pub(crate) fn answer_osc(payload: &[u8], terminator: Terminator) -> Vec<Reply> {
    let Ok(payload) = std::str::from_utf8(payload) else { return Vec::new() };
    let mut fields = payload.split(';');
    let end = match terminator {
        Terminator::Bell => "\x07",
        Terminator::Esc => "\x1b\\",
    };
    match fields.next().map(str::parse::<usize>) {
        Some(Ok(4)) => palette_answers(fields, end),
        Some(Ok(first @ 10..=12)) => (first..)
            .zip(fields)
            .filter(|(_, value)| *value == "?")
            .filter_map(|(number, _)| {
                let grey = COLOURS.get(number.checked_sub(10)?)?;
                Some(Reply::Ordinary(format!("\x1b]{number};{}{end}", rgb((*grey, *grey, *grey)))))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Pairs of a number and a colour, in which a question mark is a query.
fn palette_answers<'a>(mut fields: impl Iterator<Item = &'a str>, end: &str) -> Vec<Reply> {
    let mut answers = Vec::new();
    while let (Some(number), Some(value)) = (fields.next(), fields.next()) {
        if let (Ok(number), "?") = (number.parse::<u8>(), value) {
            answers.push(Reply::Ordinary(format!("\x1b]4;{number};{}{end}", rgb(palette(number)))));
        }
    }
    answers
}

/// xterm's 256 colours: sixteen named ones, a cube of six by six by six, 24 greys.
fn palette(number: u8) -> (u8, u8, u8) {
    if let Some(colour) = PALETTE.get(usize::from(number)) {
        return *colour;
    }
    if number >= 232 {
        let grey = 8 + 10 * (number - 232);
        return (grey, grey, grey);
    }
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let number = number - 16;
    (level(number / 36), level(number / 6 % 6), level(number % 6))
}

fn rgb((red, green, blue): (u8, u8, u8)) -> String {
    format!("rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}")
}

/// The reply to a device control string that queries a setting (DECRQSS) or a capability (XTGETTCAP).
pub(crate) fn answer_dcs(content: &[u8], cursor_style: u8, attributes: &str) -> Option<Reply> {
    if content.starts_with(b"+q") {
        return Some(Reply::Ordinary("\x1bP0+r\x1b\\".to_owned()));
    }
    let setting = content.strip_prefix(b"$q")?;
    Some(Reply::Ordinary(match setting {
        b" q" => format!("\x1bP1$r{cursor_style} q\x1b\\"),
        b"m" => format!("\x1bP1$r{attributes}m\x1b\\"),
        b"\"p" => "\x1bP1$r62;1\"p\x1b\\".to_owned(),
        b"\"q" => "\x1bP1$r0\"q\x1b\\".to_owned(),
        _ => "\x1bP0$r\x1b\\".to_owned(),
    }))
}
