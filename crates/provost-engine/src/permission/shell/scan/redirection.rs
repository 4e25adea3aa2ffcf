//! Redirections and the bodies of here-documents.

use super::super::super::glob::HOLE;
use super::{HereDoc, Read, ScriptScan, SimpleCommand, Unclear};

impl ScriptScan<'_, '_> {
    /// A redirection, after the number of its descriptor if it has one.
    pub(super) fn redirection(&mut self, part: &mut SimpleCommand, number: &str) -> Read<()> {
        const ALL: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">"];
        let Some(operator) = ALL.into_iter().find(|operator| self.cursor.rest().starts_with(operator)) else {
            return Err(Unclear("a redirection isn't understood"));
        };
        self.cursor.at += operator.len();
        part.split_in_dash |= operator.starts_with('&');
        let before = self.cursor.at;
        self.blanks()?;
        let gap = if self.cursor.at > before { " " } else { "" };
        let target = self.some_word()?;
        if matches!(operator, "<<" | "<<-") {
            if !target.plain || target.raw.contains('$') || target.value.contains('\n') {
                return Err(Unclear("the end of a here-document isn't understood"));
            }
            self.pending.push(HereDoc {
                delimiter: target.value,
                literal: !target.bare,
                strips_tabs: operator == "<<-",
            });
        } else {
            // bash expands what such a redirection names once more, quoted or not.
            if operator == ">&" && target.value.contains(['$', '`', HOLE]) {
                self.facts.doubt("the shell works out twice what a redirection names");
            }
            part.writes |= writes(operator, &target.value);
        }
        part.written.push(format!("{number}{operator}{gap}{}", target.raw));
        Ok(())
    }

    /// Skips the body of a here-document; its substitutions are read.
    pub(super) fn body(&mut self, document: &HereDoc) -> Read<()> {
        let start = self.cursor.at;
        let mut end = self.cursor.text.len();
        while self.cursor.at < self.cursor.text.len() {
            let line = self.cursor.rest().split('\n').next().unwrap_or_default();
            let line_start = self.cursor.at;
            self.cursor.at = (self.cursor.at + line.len() + 1).min(self.cursor.text.len());
            let shown = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            if shown == document.delimiter {
                end = line_start;
                break;
            }
            if !document.literal && line.ends_with('\\') {
                return Err(Unclear("a line of a here-document ends in a backslash"));
            }
        }
        if document.literal {
            return Ok(());
        }
        let body = self.cursor.text.get(start..end).unwrap_or_default();
        self.inner(body, |scan| scan.substitutions())
    }
}

/// Whether a redirection may change a file.
fn writes(operator: &str, target: &str) -> bool {
    if !operator.contains('>') || matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
        return false;
    }
    let is_descriptor = target.strip_suffix('-').unwrap_or(target).bytes().all(|byte| byte.is_ascii_digit());
    !(operator == ">&" && is_descriptor && !target.is_empty())
}
