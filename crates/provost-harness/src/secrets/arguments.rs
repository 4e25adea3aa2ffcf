//! Keys among the arguments of a command, which have no shape of their own: the option's name says what they are.

use std::sync::LazyLock;

use regex::Regex;

use super::{HIDDEN, constant};

/// The name of an option or a variable that holds a secret.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    constant(
        r"(?i)^-{0,2}(?:[\w.-]*[-_.])?(?:api[-_]?key|(?:access|auth|private|secret)[-_]?key|token|secret|password|passwd|passphrase)$",
    )
});

/// The words of a command without the values of options and variables whose name says that they are keys, tokens or
/// passwords: `--api-key KEY`, `--token=KEY`, `API_KEY=KEY`.
#[must_use]
pub fn without_keys(words: &[String]) -> Vec<String> {
    let mut names_next = false;
    let masked = words.iter().map(|word| {
        let is_value = std::mem::take(&mut names_next) && !word.starts_with('-');
        if is_value {
            return HIDDEN.to_owned();
        }
        match word.split_once('=') {
            Some((name, value)) if NAME.is_match(name) && !value.is_empty() => format!("{name}={HIDDEN}"),
            Some(_) => word.clone(),
            None => {
                names_next = word.starts_with('-') && NAME.is_match(word);
                word.clone()
            }
        }
    });
    masked.collect()
}
