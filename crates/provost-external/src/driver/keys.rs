//! A prompt's text as keys.

use provost_terminal::{Modes, Profile, ProgramKind};

const PASTE_BEGIN: &str = "\u{1b}[200~";
const PASTE_END: &str = "\u{1b}[201~";

/// The keys for one prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typing {
    /// The text, in one write.
    pub(super) text: String,
    /// The keys that submit it, after a pause.
    pub(super) submit: String,
}

/// How to type `text` at a terminal with these modes. Control characters are left out, since they could end a
/// bracketed paste early.
pub(super) fn typing_of(text: &str, modes: &Modes, profile: &Profile) -> Typing {
    let text = typeable(text);
    let submit = profile.keys.submit.clone();
    let is_long = text.contains('\n');
    let typed = if modes.bracketed_paste {
        // As terminals paste: a carriage return for each line end.
        format!("{PASTE_BEGIN}{}{PASTE_END}", text.replace('\n', "\r"))
    } else if !is_long {
        text.replace('\t', " ")
    } else {
        by_hand(&text, profile)
    };
    Typing { text: typed, submit }
}

/// The keys for several lines without bracketed paste.
fn by_hand(text: &str, profile: &Profile) -> String {
    let keys = &profile.keys;
    match (&keys.multiline, &keys.newline, profile.kind) {
        (Some([open, close]), newline, _) => {
            let newline = newline.as_deref().unwrap_or("\r");
            [open, text, close].map(|part| part.replace('\n', newline)).join(newline)
        }
        (None, Some(newline), _) => text.replace('\n', newline),
        // Line by line, as a user would type it.
        (None, None, ProgramKind::Plain) => text.replace('\n', "\r"),
        // A return would submit only a part.
        (None, None, ProgramKind::Agent) => text.split('\n').map(str::trim).collect::<Vec<_>>().join(" "),
    }
}

fn typeable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    text.trim_matches('\n').to_owned()
}
