//! Programs that start a shell as another user or group: `su`, `runuser`, `sg`, `newgrp`, `capsh`.

use super::super::program::{Program, program_of};
use super::{At, Reach};
use crate::permission::glob::HOLE;

const ELSEWHERE: &str = "a shell in it reads its commands from elsewhere";

impl Reach {
    /// The program that it starts in place of a shell, and whether that reads its commands from a file or its input;
    /// `has_script` tells whether there is a script after `-c`.
    pub(super) fn identity(&mut self, at: At<'_>, has_script: bool) {
        for index in 0..at.arguments.len() {
            let Some((place, shell)) = named_shell(at, index) else { continue };
            match shell {
                "" => {}
                _ if shell.contains(HOLE) => self.doubt("which command it runs shows only when it runs"),
                _ if is_installed_shell(shell) => {}
                _ => {
                    let splits = at.arguments.get(place).is_some_and(|word| word.splits);
                    let word = super::Word {
                        raw: shell.to_owned(),
                        value: shell.to_owned(),
                        plain: !splits,
                        ..super::Word::default()
                    };
                    self.words(at, place, &[word]);
                }
            }
        }
        let has = |texts: &[&str]| at.arguments.iter().any(|word| texts.contains(&word.value.as_str()));
        let letters = |letter| {
            at.arguments.iter().any(|word| {
                word.value.starts_with('-') && !word.value.starts_with("--") && word.value.contains(letter)
            })
        };
        let operands = at.arguments.iter().filter(|word| !word.value.starts_with('-')).count();
        let reads = match at.program {
            "capsh" => has(&["--", "==", "-+", "=+"]),
            "runuser" => !letters('u') && !has(&["--user"]),
            "sg" => operands < 2,
            _ => true,
        };
        if reads && !has_script && !has(&["--help", "--version"]) {
            self.doubt(ELSEWHERE);
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
