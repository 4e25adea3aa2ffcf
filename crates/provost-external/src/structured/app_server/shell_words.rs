//! The script in a command line that the server has joined from words.

use std::borrow::Cow;

/// Programs that run a script given after one of [`OPTIONS`].
const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "dash"];

/// What stands before a script.
const OPTIONS: [&str; 2] = ["-lc", "-c"];

/// The script that `command` gives to a shell; `command` itself if it is anything else, or can't be taken apart beyond doubt.
pub(super) fn script_of(command: &str) -> Cow<'_, str> {
    let Some([shell, option, script]) = words(command).and_then(|words| <[String; 3]>::try_from(words).ok())
    else {
        return command.into();
    };
    let name = shell.rsplit('/').next().unwrap_or_default();
    if SHELLS.contains(&name) && OPTIONS.contains(&option.as_str()) { script.into() } else { command.into() }
}

/// The words of a line that has nothing but words: quoted as POSIX shells read it, without anything that a shell would
/// expand or act upon.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' => words.extend(word.take()),
            '\'' => single(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(rest.next().filter(|next| *next != '\n')?),
            plain if is_plain(plain) => word.get_or_insert_default().push(plain),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

fn single(rest: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '\'' => return Some(()),
            character => word.push(character),
        }
    }
}

fn double(rest: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '"' => return Some(()),
            '\\' => match rest.next()? {
                escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                // Before a line's end it joins two lines, before anything else it stands for itself.
                '\n' => return None,
                other => word.extend(['\\', other]),
            },
            '$' | '`' => return None,
            character => word.push(character),
        }
    }
}

/// Characters that mean themselves outside of quotes.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_=+./:,@%^".contains(character) || !character.is_ascii()
}
