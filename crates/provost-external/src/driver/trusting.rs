//! The folder that a question for trust is about, where the dialog doesn't have it as a subject of its own.

use std::path::Path;

use provost_event::{AskKind, OptionMeaning, TerminalAsk};
use provost_terminal::consents_plainly;

/// The workspace, if the program asks whether to trust it: one of the rows is its path, or the option that consents
/// names it in parentheses. The program was started there, so that "this folder" is no other one.
pub(super) fn subject_of(ask: &TerminalAsk, rows: &[String], workspace: &Path) -> Option<String> {
    if ask.kind != AskKind::Trust || ask.subject.is_some() {
        return None;
    }
    let path = workspace.to_str()?;
    let name = workspace.file_name()?.to_str()?;
    let is_path = |row: &String| row.trim_matches(|c: char| c.is_whitespace() || is_frame(c)) == path;
    let consents = ask.option(OptionMeaning::ApproveOnce)?;
    let named = consents.label.strip_suffix(&format!("folder ({name})"));
    if !consents_plainly(named.unwrap_or(&consents.label)) {
        return None;
    }
    let is_named = named.is_some();
    (is_named || rows.iter().filter(|row| is_path(row)).count() == 1).then(|| path.to_owned())
}

/// Box drawing and block elements.
fn is_frame(character: char) -> bool {
    matches!(character, '\u{2500}'..='\u{259f}')
}
