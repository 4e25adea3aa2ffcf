//! Programs that start a shell as another user or group: `su`, `runuser`, `sg`, `newgrp`, `capsh`.

use super::super::program::{Program, program_of};
use super::{At, Reach};
use crate::permission::glob::HOLE;

const ELSEWHERE: &str = "a shell in it reads its commands from elsewhere";

/// Reads the programs that start a shell: the program in its place, and whether it reads its commands from a file
/// or its input. `scripts` are the positions of words with scripts after `-c`. Returns whether that is all that
/// the program does.
pub(super) fn identity(reach: &mut Reach, at: At<'_>, scripts: &[usize]) -> bool {
    let as_user = |word: &super::Word| {
        let letters = word.value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.starts_with('u')) || word.value.starts_with("--u")
    };
    match at.program {
        "script" | "scriptlive" => {
            let behind = at.arguments.iter().any(|word| word.value == "--");
            if scripts.is_empty() || behind {
                reach.doubt(ELSEWHERE);
            }
            return true;
        }
        "sg" => return group_command(reach, at, scripts),
        "runuser" if at.arguments.first().is_some_and(as_user) => return false,
        "su" | "runuser" | "newgrp" | "capsh" => {}
        _ => return false,
    }
    named_shells(reach, at);
    let is_end = |word: &super::Word| matches!(word.value.as_str(), "--" | "==" | "-+" | "=+");
    let end = at.arguments.iter().position(is_end);
    let behind = end.and_then(|end| at.arguments.get(end + 1));
    // The shell gets what is behind it.
    let is_script = behind.is_some_and(|word| !word.value.starts_with("-c") && !is_end(word));
    let asks = at.arguments.iter().any(|word| matches!(word.value.as_str(), "--help" | "--version"));
    let starts_shell = at.program != "capsh" || end.is_some();
    if is_script || (starts_shell && scripts.is_empty() && !asks) {
        reach.doubt(ELSEWHERE);
    }
    true
}

/// `sg GROUP [-c] COMMAND`: a shell reads the word after the group.
fn group_command(reach: &mut Reach, at: At<'_>, scripts: &[usize]) -> bool {
    let mut words = at.arguments.iter().enumerate().filter(|(_, word)| !word.value.starts_with('-'));
    match words.nth(1) {
        Some((place, word)) if !scripts.contains(&place) => reach.text(at, place, &word.value),
        Some(_) => {}
        None => reach.doubt(ELSEWHERE),
    }
    true
}

fn named_shells(reach: &mut Reach, at: At<'_>) {
    for index in 0..at.arguments.len() {
        let Some((place, shell)) = named_shell(at, index) else { continue };
        match shell {
            "" => {}
            _ if shell.contains(HOLE) => reach.doubt("which command it runs shows only when it runs"),
            _ if is_installed_shell(shell) => {}
            _ => {
                let splits = at.arguments.get(place).is_some_and(|word| word.splits);
                let word = super::Word {
                    raw: shell.to_owned(),
                    value: shell.to_owned(),
                    plain: !splits,
                    ..super::Word::default()
                };
                reach.words(at, place, &[word]);
            }
        }
    }
}

/// The value of an option that names the shell, with its position.
fn named_shell<'w>(at: At<'w>, index: usize) -> Option<(usize, &'w str)> {
    let value = at.value(index)?;
    if let Some(long) = value.strip_prefix("--") {
        let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let is_shell = name.len() > 1 && "shell".starts_with(name);
        return is_shell.then(move || match attached {
            Some(attached) => (index, attached),
            None => (index + 1, at.value(index + 1).unwrap_or_default()),
        });
    }
    let letters = value.strip_prefix('-').filter(|_| matches!(at.program, "su" | "runuser"))?;
    let (before, behind) = letters.split_once('s')?;
    // A letter before it takes the rest as its value.
    if before.contains(|c| "cgGuwT".contains(c)) {
        return None;
    }
    Some(match behind {
        "" => (index + 1, at.value(index + 1).unwrap_or_default()),
        attached => (index, attached),
    })
}

/// Whether it is a shell in a folder of the system's.
fn is_installed_shell(path: &str) -> bool {
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|folder| path.strip_prefix(folder));
    name.is_some_and(|name| !name.contains('/') && matches!(program_of(name), Program::Shell))
}
