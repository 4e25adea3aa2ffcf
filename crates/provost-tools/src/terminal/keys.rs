//! Keys by name, and their bytes.

/// Maximum keys of one call.
const KEYS_MAX: usize = 200;

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// A key that always sends the same bytes.
    Plain(String),
    /// A cursor key: its final byte; the prefix depends on the terminal's mode.
    Cursor(char),
}

/// The named keys, and their bytes.
const NAMED: [(&str, &str); 24] = [
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("shift-tab", "\u{1b}[Z"),
    ("esc", "\u{1b}"),
    ("escape", "\u{1b}"),
    ("space", " "),
    ("backspace", "\u{7f}"),
    ("delete", "\u{1b}[3~"),
    ("insert", "\u{1b}[2~"),
    ("pageup", "\u{1b}[5~"),
    ("pagedown", "\u{1b}[6~"),
    ("f1", "\u{1b}OP"),
    ("f2", "\u{1b}OQ"),
    ("f3", "\u{1b}OR"),
    ("f4", "\u{1b}OS"),
    ("f5", "\u{1b}[15~"),
    ("f6", "\u{1b}[17~"),
    ("f7", "\u{1b}[18~"),
    ("f8", "\u{1b}[19~"),
    ("f9", "\u{1b}[20~"),
    ("f10", "\u{1b}[21~"),
    ("f11", "\u{1b}[23~"),
    ("f12", "\u{1b}[24~"),
];

const CURSOR: [(&str, char); 6] =
    [("up", 'A'), ("down", 'B'), ("right", 'C'), ("left", 'D'), ("home", 'H'), ("end", 'F')];

impl Key {
    /// The key's bytes.
    pub(super) fn bytes(&self, is_application_mode: bool) -> String {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Cursor(letter) if is_application_mode => format!("\u{1b}O{letter}"),
            Self::Cursor(letter) => format!("\u{1b}[{letter}"),
        }
    }

    /// Whether it only interrupts, and so isn't part of a password: Ctrl-C, Ctrl-\, Ctrl-Z, Esc.
    pub(super) fn stops(&self) -> bool {
        matches!(self, Self::Plain(bytes) if matches!(bytes.as_str(), "\u{3}" | "\u{1c}" | "\u{1a}" | "\u{1b}"))
    }
}

/// Parses key names, or explains which one is unknown.
pub(super) fn read(names: &[String]) -> Result<Vec<Key>, String> {
    if names.len() > KEYS_MAX {
        return Err(format!("`keys` has more than {KEYS_MAX} keys: send them in parts"));
    }
    names.iter().map(|name| read_one(name)).collect()
}

fn read_one(name: &str) -> Result<Key, String> {
    let folded = name.trim().to_ascii_lowercase();
    if let Some((_, letter)) = CURSOR.iter().find(|(known, _)| *known == folded) {
        return Ok(Key::Cursor(*letter));
    }
    if let Some((_, bytes)) = NAMED.iter().find(|(known, _)| *known == folded) {
        return Ok(Key::Plain((*bytes).to_owned()));
    }
    let held = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| folded.strip_prefix(prefix));
    let only = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|_| characters.next().is_none())
    };
    if let Some(control) = held(["ctrl-", "c-"]).and_then(only).and_then(control) {
        return Ok(Key::Plain(control.to_string()));
    }
    // With Alt the letter's case matters.
    let alt = ["alt-", "meta-"].iter().find(|prefix| folded.starts_with(*prefix));
    if let Some(letter) = alt.and_then(|prefix| name.trim().get(prefix.len()..)).and_then(only) {
        return Ok(Key::Plain(format!("\u{1b}{letter}")));
    }
    match only(name) {
        Some(letter) if !letter.is_control() => Ok(Key::Plain(letter.to_string())),
        _ => Err(format!(
            "`{name}` is no key: there are Enter, Tab, Esc, Space, Backspace, Delete, Insert, Up, Down, Left, Right, \
             Home, End, PageUp, PageDown, F1 to F12, Shift-Tab, Ctrl-A and the like, Alt-a and the like, and single \
             characters"
        )),
    }
}

/// The control character of a key.
fn control(letter: char) -> Option<char> {
    let code = match letter {
        'a'..='z' => u32::from(letter).checked_sub(u32::from('a'))?.checked_add(1)?,
        '@' | ' ' => 0,
        '[' => 0x1b,
        '\\' => 0x1c,
        ']' => 0x1d,
        '^' => 0x1e,
        '_' => 0x1f,
        _ => return None,
    };
    char::from_u32(code)
}
