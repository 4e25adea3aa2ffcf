//! The profiles shipped with Provost. Each is parsed on first use: compiling its patterns takes a while.

use std::sync::OnceLock;

use super::{Profile, parse};

pub(super) const GENERIC: &str = "generic";

pub(super) const NAMES: [&str; 13] = [
    "codex",
    "claude",
    "gemini",
    "qwen",
    "opencode",
    "aider",
    "pi",
    "copilot",
    "cline",
    "vibe",
    "openhands",
    GENERIC,
    "gateway",
];

pub(super) fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "codex" => include_str!("../profiles/codex.toml"),
        "claude" => include_str!("../profiles/claude.toml"),
        "gemini" => include_str!("../profiles/gemini.toml"),
        "qwen" => include_str!("../profiles/qwen.toml"),
        "opencode" => include_str!("../profiles/opencode.toml"),
        "aider" => include_str!("../profiles/aider.toml"),
        "pi" => include_str!("../profiles/pi.toml"),
        "copilot" => include_str!("../profiles/copilot.toml"),
        "cline" => include_str!("../profiles/cline.toml"),
        "vibe" => include_str!("../profiles/vibe.toml"),
        "openhands" => include_str!("../profiles/openhands.toml"),
        GENERIC => include_str!("../profiles/generic.toml"),
        "gateway" => include_str!("../profiles/gateway.toml"),
        _ => return None,
    })
}

/// The profile with this name. An invalid shipped text counts as absent; a test ensures that there is none.
pub(super) fn profile(name: &str) -> Option<&'static Profile> {
    static READ: [OnceLock<Option<Profile>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let at = NAMES.iter().position(|known| *known == name)?;
    let read = || text(name).and_then(|text| parse::parse(name, text).ok());
    READ.get(at)?.get_or_init(read).as_ref()
}

/// The profile for a command, found by its commands alone.
pub(super) fn known(is_for: impl Fn(&[String]) -> bool) -> Option<&'static Profile> {
    let knows = |name: &&&str| text(name).is_some_and(|text| is_for(&parse::commands(text)));
    NAMES.iter().find(knows).and_then(|name| profile(name))
}
