//! Builtins of the shell that read words as scripts, arithmetic expressions, or names of variables.

use super::super::facts::{is_identifier, is_number};
use super::{At, Reach, Word, is_harmless, starts_something};
use crate::permission::glob::HOLE;

const NAMES: &str = "the shell works out what it takes for the name of a variable";
const SUMS: &str = "the shell works out a sum in it, and runs what is in there";
const STARTS_UP: &str = "a shell in it runs its start-up files";
const MEANS: &str = "it gives words another meaning";

/// Reads the builtins of shells, and what works like them.
pub(super) struct Builtins<'r> {
    pub(super) reach: &'r mut Reach,
}

impl Builtins<'_> {
    pub(super) fn builtin(&mut self, index: usize, at: At<'_>) {
        match at.program {
            "env" => self.reach.env(index, at),
            "parallel" => {
                self.reach.all_names(index, at);
                self.reach.parallel(at);
            }
            "make" | "gmake" => self.make(index, at),
            "eval" => self.reach.joined_text(at, 0),
            "trap" => {
                let first = at.arguments.iter().position(|word| word.value != "--");
                if let Some(first) = first
                    && let Some(script) = at.value(first)
                {
                    self.reach.text(at, first, script);
                }
            }
            "alias" => self.alias(at),
            "source" | "." => {
                // A name without a folder is looked for where programs are.
                self.reach.names(index, at.value(0).unwrap_or_default());
                self.source(at);
            }
            "test" | "[" => self.test(at),
            "printf" => self.printf(at),
            "let" => self.reach.doubt(SUMS),
            "declare" | "typeset" | "local" | "export" | "readonly" => self.declare(index, at),
            "read" | "readarray" | "mapfile" | "unset" | "wait" | "getopts" => self.takes_names(index, at),
            "compgen" | "complete" | "compopt" | "bind" | "fc" | "history" => {
                self.reach.all_names(index, at);
                self.reach.doubt("the shell runs what is in its arguments");
            }
            "hash" | "enable" => self.renames(index, at),
            "jobs" => self.jobs(at),
            "set" | "shopt" => self.modes(at),
            _ => {}
        }
    }

    pub(super) fn shell(&mut self, at: At<'_>) {
        let mut has_script = false;
        let mut place = 0;
        while let Some(value) = at.value(place) {
            if value == "-" || value == "--" || !value.starts_with(['-', '+']) {
                break;
            }
            if matches!(value, "--version" | "--help") {
                return;
            }
            let next = at.arguments.get(place + 1).filter(|_| value.ends_with(['o', 'O', 'e']));
            if value.contains(HOLE) || next.is_some_and(|word| word.splits) {
                self.reach.doubt("a shell in it reads its commands from elsewhere");
            }
            // `--login`, `--interactive`, `--init-file`, `--rcfile`, which bash takes with one hyphen, too.
            let names_files = ["--l", "--i", "--rc"].iter().any(|begin| value.starts_with(begin));
            if names_files || (!value.starts_with("--") && value.contains(['l', 'i'])) {
                self.reach.doubt(STARTS_UP);
            }
            // For them `+c` is `-c`.
            has_script |= !value.starts_with("--") && value.contains('c');
            let letters = value.get(1..).unwrap_or_default();
            let takes_next = !value.starts_with("--") && letters.ends_with(['o', 'O']);
            place += if takes_next || matches!(value, "--rcfile" | "--init-file") { 2 } else { 1 };
        }
        if at.value(place).is_some_and(|value| matches!(value, "-" | "--")) {
            place += 1;
        }
        match at.arguments.get(place) {
            Some(_) if has_script => self.reach.text(at, place, at.value(place).unwrap_or_default()),
            Some(file) if is_file(file) => {}
            _ => self.reach.doubt("a shell in it reads its commands from elsewhere"),
        }
    }

    /// A program that is given another name for itself: a shell whose name begins with a hyphen is a login shell.
    pub(super) fn renamed(&mut self, at: At<'_>) {
        let renames = |(place, word): (usize, &Word)| match at.program {
            "exec" => word.value.contains(['l', 'a', HOLE]),
            _ => {
                word.value.starts_with("--a")
                    || word.value == "-a" && at.value(place + 1).is_some_and(|name| name.starts_with('-'))
            }
        };
        let options = at.arguments.iter().enumerate();
        if options.take_while(|(_, word)| word.value.starts_with(['-', HOLE])).any(renames) {
            self.reach.doubt(STARTS_UP);
        }
    }

    fn source(&mut self, at: At<'_>) {
        let first = usize::from(at.value(0) == Some("--"));
        if !at.arguments.get(first).is_some_and(is_file) {
            self.reach.doubt("a script in it shows only when it runs");
        }
    }

    fn alias(&mut self, at: At<'_>) {
        for place in 0..at.arguments.len() {
            let value = at.value(place).unwrap_or_default();
            if let Some((_, script)) = value.split_once('=') {
                self.reach.doubt(MEANS);
                self.reach.text(at, place, script);
            } else if value.contains(HOLE) {
                self.reach.doubt(MEANS);
            }
        }
    }

    /// Names of variables: nothing in them may be evaluated, and none may change what commands do.
    fn takes_names(&mut self, index: usize, at: At<'_>) {
        let is_callback = |word: &Word| word.value.starts_with('-') && word.value.contains(['C', 'c']);
        if matches!(at.program, "readarray" | "mapfile") && at.arguments.iter().any(is_callback) {
            self.reach.all_names(index, at);
            for place in 0..at.arguments.len() {
                let behind = at.value(place).unwrap_or_default();
                let attached = behind.strip_prefix("-C").filter(|rest| !rest.is_empty());
                if let Some(script) = attached.or_else(|| at.value(place + 1).filter(|_| behind == "-C")) {
                    self.reach.text(at, place, script);
                }
            }
            self.reach.doubt("the shell runs what is in its arguments");
        }
        for word in at.arguments {
            let value = word.value.as_str();
            if value.contains(['[', '(', '`', '$', HOLE]) {
                self.reach.doubt(NAMES);
            } else if is_identifier(value)
                && !(at.program == "wait" || at.program == "unset" && value == "-f")
            {
                self.reach.facts.bind(value, false);
            }
        }
        if at.program == "read" && !at.arguments.iter().any(|word| is_identifier(&word.value)) {
            self.reach.facts.bind("reply", false);
        }
    }

    fn declare(&mut self, index: usize, at: At<'_>) {
        for (place, word) in at.arguments.iter().enumerate() {
            let value = word.value.as_str();
            let letters = value.strip_prefix(['-', '+']);
            if letters.is_some_and(|letters| letters.chars().any(|c| !"xrpgFl-".contains(c))) {
                self.reach.doubt("the shell works out what such a variable holds");
            } else if letters.is_none() {
                match value.split_once('=') {
                    Some((name, value)) if is_identifier(name) => {
                        // The value may be anything but a list, since it is stored without evaluation.
                        if value.starts_with('(') || word.splits && !word.assigns {
                            self.reach.doubt("the shell works out what such a variable holds");
                        }
                        if starts_something(name, Some(value)) {
                            self.reach.doubt("a variable that it sets has a shell or a loader run something");
                        }
                        if !is_harmless(name, "") {
                            self.reach.names(index, value);
                            self.reach.unread("it sets a variable that changes what commands do", at, place);
                        }
                    }
                    None if is_identifier(value) => {}
                    _ => self.reach.doubt(NAMES),
                }
            }
        }
    }

    fn printf(&mut self, at: At<'_>) {
        let mut place = 0;
        while let Some(first) = at.arguments.get(place) {
            if super::may_be_option(first) {
                return self.reach.doubt(NAMES);
            }
            let Some(rest) = first.value.strip_prefix("-v") else { return };
            let name = if rest.is_empty() { at.value(place + 1).unwrap_or_default() } else { rest };
            self.reach.facts.bind(name, false);
            place += if rest.is_empty() { 2 } else { 1 };
        }
    }

    fn test(&mut self, at: At<'_>) {
        for (place, word) in at.arguments.iter().enumerate() {
            let next = at.arguments.get(place + 1);
            let unknown = |word: &Word| word.value.starts_with(HOLE) && !counts(word);
            let may_split = word.splits && word.value.contains(HOLE) && !counts(word);
            let name = word.raw.strip_prefix('$').filter(|name| is_identifier(name));
            if may_split && name.is_some() {
                self.reach.facts.count_with_put_in(&word.raw);
            } else if may_split
                || (unknown(word) && next.is_some_and(unknown))
                || (word.splits
                    && !word.plain
                    && !word.value.contains(HOLE)
                    && word.value.starts_with(['*', '?', '[']))
            {
                self.reach.doubt("what is tested shows only when it runs");
            }
            if matches!(word.value.as_str(), "-v" | "-R")
                && next.is_some_and(|word| !is_identifier(&word.value))
            {
                self.reach.doubt(NAMES);
            }
        }
    }

    /// `[[ … ]]`, which this parser splits into several commands at `&&` and `||`.
    pub(super) fn condition(&mut self, at: At<'_>) {
        let ends = at.arguments.iter().any(|word| word.value == "]]");
        if at.program != "[[" && !ends {
            return;
        }
        const SUMS_OF: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        for (place, word) in at.arguments.iter().enumerate() {
            let value = word.value.as_str();
            let next = at.arguments.get(place + 1);
            if matches!(value, "-v" | "-R") && next.is_some_and(|word| !is_identifier(&word.value)) {
                self.reach.doubt(NAMES);
            }
            if !SUMS_OF.contains(&value) {
                continue;
            }
            // The word before the first argument was taken for the program.
            let before = place.checked_sub(1).and_then(|before| at.arguments.get(before));
            match (before, next) {
                (Some(before), Some(next)) => {
                    self.counted(before);
                    self.counted(next);
                }
                _ => self.reach.doubt(SUMS),
            }
        }
        let operator = at.arguments.iter().any(|word| SUMS_OF.contains(&word.value.as_str()));
        if at.program == "-v"
            || (operator && at.program != "[[" && at.value(0).is_some_and(|first| SUMS_OF.contains(&first)))
        {
            self.reach.doubt(SUMS);
        }
    }

    fn counted(&mut self, word: &Word) {
        let raw = word.raw.trim_matches('"');
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        if is_number(word) || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())) {
            return;
        }
        if raw.starts_with('$') {
            self.reach.facts.count_with_put_in(raw);
        } else if is_identifier(raw) {
            self.reach.facts.count_with(raw);
        } else {
            self.reach.doubt(SUMS);
        }
    }

    fn renames(&mut self, index: usize, at: At<'_>) {
        if at.arguments.iter().any(|word| {
            word.value.starts_with('-') && word.value.contains(['p', 'f']) || word.value.contains(HOLE)
        }) {
            self.reach.all_names(index, at);
            self.reach.doubt(MEANS);
        }
    }

    fn jobs(&mut self, at: At<'_>) {
        if let Some(place) =
            at.arguments.iter().position(|word| word.value.starts_with('-') && word.value.contains('x'))
        {
            let words = at.arguments.get(place + 1..).unwrap_or_default();
            self.reach.words(at, place + 1, words);
        }
    }

    /// Options of the shell: those that change how the rest is read or run.
    fn modes(&mut self, at: At<'_>) {
        let known = |word: &Word| {
            let value = word.value.as_str();
            let letters = value.strip_prefix(['-', '+']).unwrap_or_default();
            let is_letters = !letters.is_empty() && letters.chars().all(|c| "euxfCvno-".contains(c));
            let named = [
                "pipefail",
                "errexit",
                "nounset",
                "xtrace",
                "noglob",
                "noclobber",
                "nullglob",
                "globstar",
                "failglob",
                "dotglob",
                "nocaseglob",
            ];
            is_letters
                || named.contains(&value)
                || (at.program == "shopt" && matches!(value, "-s" | "-u" | "-q"))
        };
        let sets_words = at.program == "set" && at.value(0) == Some("--");
        if !sets_words && !at.arguments.iter().all(known) {
            self.reach.doubt("it changes how the shell reads what follows");
        }
    }

    fn make(&mut self, index: usize, at: At<'_>) {
        for (place, word) in at.arguments.iter().enumerate() {
            let value = word.value.as_str();
            let long = value.split('=').next().unwrap_or_default();
            let evaluates =
                (long.len() > 3 && "--eval".starts_with(long)) || (value.starts_with("-E") && at.depth > 0);
            let file = value
                .strip_prefix("-f")
                .map(|rest| if rest.is_empty() { at.value(place + 1).unwrap_or_default() } else { rest });
            let elsewhere = file.is_some_and(|file| {
                file == "-" || file.contains(HOLE) || file.starts_with("/dev/") || file.starts_with("/proc/")
            });
            let simple = |(name, value): (&str, &str)| {
                !matches!(name, "SHELL" | "MAKE" | "MAKEFLAGS" | "MAKEFILES" | ".SHELLFLAGS" | "GNUMAKEFLAGS")
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:+-/= ".contains(c))
                    && !name.ends_with([':', '!'])
            };
            let sets =
                value.split_once('=').filter(|_| !value.starts_with('-')).is_some_and(|set| !simple(set));
            if elsewhere || (evaluates && value.contains(HOLE)) {
                self.reach.doubt("what it makes is read from elsewhere");
            }
            if evaluates || elsewhere || sets {
                self.reach.names(index, value);
                self.reach.names(index, at.value(place + 1).unwrap_or_default());
                self.reach.unread("it is told in its arguments what to run", at, place);
            }
        }
    }
}

/// A script file at a fixed path.
fn is_file(word: &Word) -> bool {
    word.plain && !word.value.starts_with("/dev/") && !word.value.starts_with("/proc/") && word.value != "-"
}

/// Whether the shell expands it to one number and nothing else.
fn counts(word: &Word) -> bool {
    let raw = word.raw.trim_matches('"');
    matches!(raw, "$?" | "$#" | "$$" | "$!")
        || raw.starts_with("${#") && !raw.contains(['[', '}'])
        || is_number(word)
        || (raw.starts_with("${#")
            && raw.strip_suffix('}').is_some_and(|rest| rest.get(3..).is_some_and(is_identifier)))
}
