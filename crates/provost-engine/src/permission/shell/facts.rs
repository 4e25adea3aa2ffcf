//! What a script's text shows about its variables: which of them hold numbers, and which the shell evaluates.
//!
//! Where a shell expects a number it evaluates the text of a variable as an arithmetic expression, and runs the
//! commands in it. So each operand must be known to be a number; a variable that the script doesn't set isn't one.

use std::collections::BTreeSet;

use super::scan::Word;
use super::variable::is_harmless_name;

/// Variables to which the shell itself assigns numbers.
const COUNTS: [&str; 7] = ["RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID"];

/// Variables with bash's integer attribute that a script may set: values assigned to them are evaluated, with the
/// commands in them.
const INTEGERS: [&str; 8] =
    ["RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "EPOCHSECONDS", "BASH_SUBSHELL"];

/// The facts about a script's variables, including all scripts in its arguments.
#[derive(Debug, Default)]
pub(super) struct Facts {
    numbers: BTreeSet<String>,
    others: BTreeSet<String>,
    counted: BTreeSet<String>,
    unclear: Option<&'static str>,
}

impl Facts {
    /// Records why the script may do more than its commands show.
    pub(super) fn doubt(&mut self, why: &'static str) {
        self.unclear.get_or_insert(why);
    }

    /// Records an assignment, and whether the value is a number.
    pub(super) fn bind(&mut self, name: &str, is_number: bool) {
        if !is_identifier(name) {
            return self.doubt("which variable it sets shows only when it runs");
        }
        if !is_harmless_name(name) {
            self.doubt("it sets a variable that changes what commands do");
        }
        if !is_number {
            self.doubt_integer(name);
        }
        if is_number { &mut self.numbers } else { &mut self.others }.insert(name.to_owned());
    }

    /// Records an assignment of a value that isn't known to be a number.
    fn doubt_integer(&mut self, name: &str) {
        if INTEGERS.contains(&name) {
            self.doubt("it sets a variable whose value the shell works out");
        }
    }

    /// Records what a word of a command sets, if it sets anything.
    pub(super) fn see(&mut self, word: &Word, in_front: bool) {
        let Some((name, value)) = word.value.split_once('=') else { return };
        let name = name.strip_suffix('+').unwrap_or(name);
        if let Some((name, index)) = name.split_once('[') {
            if in_front && word.assigns {
                if !index.strip_suffix(']').is_some_and(is_digits) {
                    self.doubt("an index in it is worked out by the shell");
                }
                self.others.insert(name.to_owned());
            }
            return;
        }
        if is_identifier(name) {
            let raw = word.raw.split_once('=').map_or("", |(_, raw)| raw);
            if !is_digits(value) && !is_sum(raw) {
                self.doubt_integer(name);
            }
            let is_number = in_front && (is_digits(value) || is_sum(raw));
            if is_number { &mut self.numbers } else { &mut self.others }.insert(name.to_owned());
        }
    }

    /// Records a name or a number in an arithmetic expression.
    pub(super) fn count_with(&mut self, name: &str) {
        if name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) {
            self.counted.insert(name.to_owned());
        }
    }

    /// Records an expansion with `$` where a number is expected.
    pub(super) fn count_with_put_in(&mut self, written: &str) {
        let bare = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let name = bare.or_else(|| written.strip_prefix('$')).unwrap_or_default();
        match name {
            "#" | "?" | "$" | "!" => {}
            _ if is_sum(written) || name.strip_prefix('#').is_some_and(is_identifier) => {}
            _ if is_identifier(name) => self.count_with(name),
            _ => self.doubt("it calculates with what shows only when it runs"),
        }
    }

    /// Why more may run than the text shows, once all of the script was read. If earlier commands may have set
    /// variables (at a terminal), none is known.
    pub(super) fn unclear(&self, alone: bool) -> Option<&'static str> {
        let known = |name: &String| {
            let own = COUNTS.contains(&name.as_str()) || self.numbers.contains(name);
            alone && own && !self.others.contains(name)
        };
        let counts = self.counted.iter().all(known);
        self.unclear.or((!counts).then_some("it calculates with a variable that may hold a command"))
    }
}

pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether it is one `$((…))`, whose value is a number.
fn is_sum(raw: &str) -> bool {
    let inner = raw.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
    inner.is_some_and(|inner| !inner.contains("))"))
}

/// Whether a word expands to numbers alone: digits, a range of them, an arithmetic expansion, `$(seq …)`.
pub(super) fn is_number(word: &Word) -> bool {
    let raw = word.raw.as_str();
    let range = || {
        let inner = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        inner.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let counted = || {
        let inner = raw.strip_prefix("$(seq ").and_then(|rest| rest.strip_suffix(')'));
        inner.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b' '))
    };
    (is_digits(raw) && !raw.is_empty()) || is_sum(raw) || range() || counted()
}
