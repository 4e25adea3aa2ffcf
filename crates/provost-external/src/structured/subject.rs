//! What a question is about, as permissions and people may see it: beyond doubt, or not at all.

use provost_event::{AskKind, AskOption, OptionMeaning, TerminalAsk};
use provost_terminal::{consents_plainly, is_seen_whole};

/// Bytes of a subject beyond which no one can be expected to read it as a whole.
const SUBJECT_BYTES_MAX: usize = 16 * 1024;

/// The kind and the subject of a change of these files. Permissions are checked for each of them, so a name that spans lines,
/// which would look like several, leaves it without a subject.
pub(super) fn changed_files(mut paths: Vec<String>) -> (AskKind, Option<String>) {
    match paths.len() {
        0 => (AskKind::Edit, None),
        1 => (AskKind::Edit, paths.pop()),
        _ if paths.iter().any(|path| path.contains('\n')) => (AskKind::Edits, None),
        _ => (AskKind::Edits, Some(paths.join("\n"))),
    }
}

/// Bytes shown of a subject that decides nothing.
const SHOWN_BYTES_MAX: usize = 2 * 1024;

/// A question as the program's stream has it.
pub(super) struct StreamAsk {
    pub(super) fingerprint: String,
    pub(super) kind: AskKind,
    /// Its words; a placeholder if they are empty.
    pub(super) question: String,
    /// All that it is about, if the stream says it completely.
    pub(super) subject: Option<String>,
    /// What it seems to be about, for people, where the subject is absent.
    pub(super) hint: Option<String>,
    pub(super) options: Vec<AskOption>,
}

impl StreamAsk {
    /// The question to pass on. It keeps its subject only if that is read in one way, and if consent for this time means
    /// nothing more than that; otherwise a person reads it.
    pub(super) fn settled(self) -> TerminalAsk {
        let Self { fingerprint, kind, question, subject, hint, options } = self;
        let is_clear = |subject: &String| {
            !subject.trim().is_empty() && subject.len() <= SUBJECT_BYTES_MAX && is_plain(subject, kind)
        };
        let kept = subject.clone().filter(is_clear).filter(|_| consent_is_plain(&options));
        let about = subject.or(hint).filter(|about| kept.is_none() && *about != question);
        let question = match (question.trim(), about) {
            ("", None) => format!("{UNNAMED}, and doesn't say to what."),
            ("", Some(about)) => format!("{UNNAMED}: {}", shown(&about)),
            (_, None) => shown(&question),
            (_, Some(about)) => format!("{}: {}", shown(&question), shown(&about)),
        };
        TerminalAsk { fingerprint, kind, question, subject: kept, options, default: None }
    }
}

/// The beginning of a question that the program doesn't put in words.
const UNNAMED: &str = "It asks for consent";

/// Whether all of it is seen and stands where it is. A command may have several lines.
fn is_plain(subject: &str, kind: AskKind) -> bool {
    // Blanks at its ends are part of a name, and aren't seen.
    let is_name = |name: &str| !name.is_empty() && is_seen_whole(name) && name.trim() == name;
    match kind {
        AskKind::Command => subject.split(['\n', '\t']).all(is_seen_whole),
        AskKind::Edits => subject.split('\n').all(is_name),
        _ => is_name(subject),
    }
}

/// Whether the option that consents for this time says so and no more. What goes beyond the question, no rule chooses.
fn consent_is_plain(options: &[AskOption]) -> bool {
    options
        .iter()
        .find(|option| option.meaning == OptionMeaning::ApproveOnce)
        .is_none_or(|option| consents_plainly(&option.label))
}

/// The text with every character that isn't seen written out, cut to a length that a person reads.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        if shown.len() >= SHOWN_BYTES_MAX {
            return format!("{shown}… ({} bytes in all)", text.len());
        }
        if character == '\n' || is_seen_whole(character.encode_utf8(&mut [0; 4])) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}
