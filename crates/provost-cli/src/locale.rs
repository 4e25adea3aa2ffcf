//! What the user's locale says of characters.

/// Whether the locale's characters are UTF-8; `None` where no locale is set. `get` gives variables of the environment.
pub(crate) fn is_utf8(get: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| get(name).filter(|locale| !locale.is_empty()))?
        .to_ascii_lowercase();
    Some(locale.contains("utf-8") || locale.contains("utf8"))
}

/// Whether the terminal is drawn on with ASCII: its locale is another than UTF-8, or it understands nothing.
pub(crate) fn wants_ascii() -> bool {
    let get = |name: &str| std::env::var(name).ok();
    is_utf8(get) == Some(false) || get("TERM").is_some_and(|term| term == "dumb")
}

/// What Provost draws, each character by one of ASCII; others stay as they are.
pub(crate) fn in_ascii(text: &str) -> String {
    text.chars().map(stands_in).collect()
}

const fn stands_in(drawn: char) -> char {
    match drawn {
        '◆' => '!',
        '●' | '•' => '*',
        '◎' => '?',
        '↻' => '~',
        '⊘' | '■' | '━' => '#',
        '✓' => '+',
        '✗' => 'x',
        '◌' => 'o',
        '‖' => '=',
        '·' => '.',
        '─' | '−' | '–' => '-',
        '│' | '⏎' => '|',
        '▸' | '»' | '›' => '>',
        '…' => '~',
        '’' => '\'',
        '“' | '”' => '"',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{in_ascii, is_utf8};

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let of = |all: &[(&str, &str)]| {
            is_utf8(|name| all.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]), Some(false));
        assert_eq!(of(&[("LC_ALL", ""), ("LANG", "C.utf8")]), Some(true));
    }

    #[test]
    fn marks_keep_their_columns_and_texts_their_characters() {
        assert_eq!(in_ascii("● é 漢 · ━━── say › …"), "* é 漢 . ##-- say > ~");
    }
}
