//! Reports of programs in escape sequences. Any program can forge them: they are claims.
//!
//! Texts are shown, logged and forwarded, so they have neither control characters nor characters that change the
//! writing direction, and at most `TEXT_CHARS_MAX` characters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Maximum characters of a report's text; the rest is cut off.
const TEXT_CHARS_MAX: usize = 1_024;
/// Maximum fields of a status; further ones are dropped.
const FIELDS_MAX: usize = 16;

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The window's title (OSC 0 and 2).
    Title(String),
    /// Program status (OSC 7501): the fields in order, including `state`.
    Status(Vec<(String, String)>),
    /// A shell's mark (OSC 133): `A` prompt starts, `B` it ends, `C` output starts, `D` the command ended, with
    /// its exit status if known.
    Mark(char, Option<i32>),
    /// Progress (ConEmu's OSC 9;4): a state (0 none, 1 normal, 2 error, 3 indeterminate, 4 paused) and a
    /// percentage.
    Progress(u8, Option<u8>),
    /// A notification (OSC 9, 99, 777).
    Notification(String),
    /// The bell.
    Bell,
}

/// Parses reports from operating system commands; holds the parts of a notification in several parts (OSC 99).
#[derive(Debug, Default)]
pub(crate) struct Reports {
    partial: Option<(String, String)>,
}

impl Reports {
    /// The report in the payload of an operating system command, if it is one.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Option<Signal> {
        let payload = String::from_utf8_lossy(payload);
        let (number, rest) = payload.split_once(';').unwrap_or((&payload, ""));
        match number {
            "0" | "2" => Some(Signal::Title(plain(rest))),
            "9" => conemu_or_notification(rest),
            "99" => self.kitty_notification(rest),
            "133" => mark(rest),
            "777" => urxvt_notification(rest),
            "7501" => status(rest),
            _ => None,
        }
    }

    /// `OSC 99 ; key=value:key=value ; payload`, as kitty's protocol for desktop notifications has it.
    fn kitty_notification(&mut self, rest: &str) -> Option<Signal> {
        let (metadata, payload) = rest.split_once(';')?;
        let value = |key: &str| {
            metadata
                .split(':')
                .filter_map(|field| field.split_once('='))
                .find(|field| field.0 == key)
                .map(|f| f.1)
        };
        if !matches!(value("p").unwrap_or("title"), "title" | "body") {
            return None;
        }
        let text = match value("e") {
            Some("1") => String::from_utf8_lossy(&BASE64.decode(payload).ok()?).into_owned(),
            _ => payload.to_owned(),
        };
        let id = value("i").unwrap_or_default();
        let before = self.partial.take().filter(|partial| partial.0 == id).map(|partial| partial.1);
        let text = match before {
            Some(before) if text.is_empty() => before,
            Some(before) => plain(&format!("{before} {text}")),
            None => plain(&text),
        };
        if value("d") == Some("0") {
            self.partial = Some((plain(id), text));
            return None;
        }
        notification(&text)
    }
}

/// A text without control characters and direction marks, and not too long.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: &char| !c.is_control() && !turns_direction(*c);
    text.chars().filter(harmless).take(TEXT_CHARS_MAX).collect::<String>().trim().to_owned()
}

/// The marks of Unicode's bidirectional algorithm: with them a text reads differently from its bytes.
const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn notification(text: &str) -> Option<Signal> {
    let text = plain(text);
    (!text.is_empty()).then_some(Signal::Notification(text))
}

/// ConEmu's commands begin with a number; any other text is a notification in iTerm2's format.
fn conemu_or_notification(rest: &str) -> Option<Signal> {
    let mut fields = rest.splitn(3, ';');
    let command = fields.next().and_then(|first| first.parse::<u8>().ok());
    match (command, fields.next()) {
        (Some(4), Some(state)) => {
            let state = state.parse().ok().filter(|state| *state <= 4)?;
            let percent = fields.next().and_then(|percent| percent.parse::<u8>().ok());
            Some(Signal::Progress(state, percent.map(|percent| percent.min(100))))
        }
        (Some(1..=12), Some(_)) | (Some(4), None) => None,
        _ => notification(rest),
    }
}

/// `OSC 777 ; notify ; title ; body`.
fn urxvt_notification(rest: &str) -> Option<Signal> {
    let mut fields = rest.splitn(3, ';');
    if fields.next() != Some("notify") {
        return None;
    }
    let title = fields.next().unwrap_or_default();
    match fields.next() {
        Some(body) if !body.is_empty() => notification(&format!("{title}: {body}")),
        _ => notification(title),
    }
}

/// `OSC 133 ; letter` with optional fields; only the exit status after `D` is used.
fn mark(rest: &str) -> Option<Signal> {
    let mut fields = rest.split(';');
    let letter = match fields.next()? {
        "A" => 'A',
        "B" => 'B',
        "C" => 'C',
        "D" => 'D',
        _ => return None,
    };
    let status = fields.next().and_then(|status| status.parse().ok()).filter(|_| letter == 'D');
    Some(Signal::Mark(letter, status))
}

/// Fields are separated by `;` or, from Codex, by `:`. A colon within a value (an address, a time) is kept.
fn status(rest: &str) -> Option<Signal> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for part in rest.split(';').flat_map(|fields| fields.split(':')) {
        match (part.split_once('='), fields.last_mut()) {
            (Some((key, value)), _) if is_key(key) => fields.push((key.to_owned(), plain(value))),
            (_, Some((_, value))) => *value = plain(&format!("{value}:{part}")),
            (_, None) => {}
        }
        if fields.len() >= FIELDS_MAX {
            break;
        }
    }
    fields.iter().any(|field| field.0 == "state").then_some(Signal::Status(fields))
}

fn is_key(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}
