//! Who started this process.

use std::ffi::OsStr;

/// Processes looked at on the way up; a chain that is longer isn't one.
const ANCESTORS_MAX: usize = 256;

/// Tells whether a process of a program of this name (its file's, without folders) is among those that started this
/// one. On Linux nothing that a [`run`](crate::run) has started gets out of it: what is orphaned is adopted by its
/// guard, a fork of the caller. Elsewhere nothing is known, and the answer is `false`.
#[must_use]
pub fn runs_below(program: &OsStr) -> bool {
    let ancestors = std::iter::successors(parent_of("self"), |process| parent_of(process));
    ancestors.take(ANCESTORS_MAX).any(|process| is_of(&process, program))
}

/// The parent of a process, as `/proc` names it; `None` for the first one, and where there is no `/proc`.
fn parent_of(process: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let (_, fields) = stat.rsplit_once(')')?;
    let parent = fields.split_whitespace().nth(1)?;
    (parent != "0").then(|| parent.to_owned())
}

fn is_of(process: &str, program: &OsStr) -> bool {
    let Ok(file) = std::fs::read_link(format!("/proc/{process}/exe")) else { return false };
    let Some(name) = file.file_name() else { return false };
    // A program that was replaced while it runs is still the one.
    let name = name.as_encoded_bytes();
    name.strip_suffix(b" (deleted)").unwrap_or(name) == program.as_encoded_bytes()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn it_finds_those_above_and_not_itself() {
        let me = std::env::current_exe().unwrap();
        assert!(!runs_below(me.file_name().unwrap()));
        let parent = parent_of("self").unwrap();
        let above = std::fs::read_link(format!("/proc/{parent}/exe")).unwrap();
        assert!(runs_below(above.file_name().unwrap()));
        assert!(!runs_below(OsStr::new("no such program")));
    }
}
