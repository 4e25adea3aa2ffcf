//! Where commands begin in arguments.

use super::super::runner::{Operand, Runner, Takes};
use super::{At, Reach, Word, joined};
use crate::permission::glob::HOLE;

const UNKNOWN: &str = "what this option makes it run isn't known";
const SPLITS: &str = "the shell may put in several words here, and which command it runs with them";
const SETS: &str = "a variable that it sets changes what the command does";
const RUNS: &str = "an option of it runs a command, or loads what does";
const FOLDER: &str = "it takes programs or variables from this folder";
const CREATES: &str = "it creates this file";

/// Maximum positions in the arguments of one program at which a command may begin.
const STARTS_MAX: usize = 8;

impl Reach {
    pub(super) fn runner(&mut self, command: usize, runner: &'static Runner, at: At<'_>) {
        let Some(from) = behind(runner, at) else { return };
        if at.program == "command" && at.value(0).is_some_and(|first| matches!(first, "-v" | "-V")) {
            return;
        }
        let Starts { places: starts, unknown, operands } = starts(at.arguments, from, runner);
        let options_end = starts.iter().copied().max().unwrap_or(at.arguments.len());
        self.runner_values(command, runner, at, (from, options_end));
        self.runner_settings(at, (from, options_end));
        self.unknown_words(at, (from, options_end), &unknown);
        self.operand(runner, at, &operands);
        if starts.len() > STARTS_MAX {
            self.doubt("where a command in it begins can't be told");
        }
        let named = starts.iter().any(|start| *start < at.arguments.len());
        let asks = at.value(from).is_some_and(|first| matches!(first, "--version" | "--help"));
        if runner.alone && !named && !asks {
            self.doubt("a shell in it reads its commands from elsewhere");
        }
        let mut scripts = Vec::new();
        if runner.takes == Takes::TextBehindC {
            scripts = self.texts_behind_c(at);
            if !scripts.is_empty() {
                // The options before and behind the script may be other ones.
                self.unknown_words(at, (0, at.arguments.len()), &[]);
                let words = at.arguments.iter().enumerate().filter(|(place, _)| !scripts.contains(place));
                for (place, _) in words.filter(|(_, word)| super::may_be_option(word)) {
                    self.put_in(command, at, place);
                }
            }
            if super::identity::identity(self, at, &scripts) {
                return;
            }
        }
        for start in
            starts.into_iter().filter(|start| *start < at.arguments.len() && !scripts.contains(start))
        {
            self.begins(runner, at, start);
        }
    }

    fn begins(&mut self, runner: &'static Runner, at: At<'_>, start: usize) {
        let words = at.arguments.get(start..).unwrap_or_default();
        match runner.takes {
            Takes::Text => self.joined_text(at, start),
            Takes::Words | Takes::TextBehindC => self.words(at, start, words),
            Takes::WordsAndMore => {
                let words = super::replace::xargs(self, at, start);
                self.words(at, start, &words);
            }
        }
    }

    /// Words before the command with which another one may be run: options that aren't known, and what the shell may
    /// expand to several words.
    fn unknown_words(&mut self, at: At<'_>, (from, end): (usize, usize), unknown: &[usize]) {
        for (place, word) in at.arguments.iter().enumerate().take(end) {
            let why = match word.splits {
                true => SPLITS,
                false if place >= from && unknown.contains(&place) => UNKNOWN,
                false => continue,
            };
            self.names(at.trails.last().map_or(0, |trail| trail.command), &word.raw);
            self.unread(why, at, place);
        }
    }

    /// The first operand before the command, at any of the positions at which it may be.
    fn operand(&mut self, runner: &Runner, at: At<'_>, places: &[usize]) {
        for place in places {
            let value = at.value(*place).unwrap_or_default();
            match runner.operand {
                Operand::Folder => self.unread(FOLDER, at, *place),
                Operand::Lock if !names_no_file(value) => self.unread(CREATES, at, *place),
                Operand::Lock | Operand::Value => {}
            }
        }
    }

    /// The scripts after `-c`, at any position; returns the positions of the words with them.
    fn texts_behind_c(&mut self, at: At<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, word) in at.arguments.iter().enumerate() {
            let value = word.value.as_str();
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            let (name, long) = value.split_once('=').map_or((value, None), |(name, text)| (name, Some(text)));
            let is_long = name.len() > 3
                && ["--command", "--session-command"].iter().any(|known| known.starts_with(name));
            let behind = letters.and_then(|letters| letters.split_once('c')).map(|(_, behind)| behind);
            let attached = if is_long { long } else { behind };
            let place = match attached.filter(|text| !text.is_empty()) {
                Some(_) => index,
                None if attached.is_some() || is_long => index + 1,
                None => continue,
            };
            if let Some(script) = attached.filter(|text| !text.is_empty()).or_else(|| at.value(place)) {
                self.text(at, place, script);
            }
            found.push(place);
        }
        found
    }

    /// Variables that runners set for the command, and libraries that they load.
    fn runner_settings(&mut self, at: At<'_>, (from, end): (usize, usize)) {
        for (index, word) in at.arguments.iter().enumerate().take(end).skip(from) {
            let value = word.value.as_str();
            let variable = value.split_once('=').filter(|(name, _)| super::super::facts::is_identifier(name));
            let preloads = at.program.starts_with("ld") && value.contains("preload");
            if variable.is_some_and(|(name, value)| super::starts_something(name, Some(value))) {
                self.doubt("a variable that it sets has a shell or a loader run something");
            }
            if preloads || variable.is_some_and(|(name, value)| !super::is_harmless(name, value)) {
                self.unread(SETS, at, index);
            }
        }
    }

    /// Values of options, between these positions, that set a variable for the command, name a file to write, or
    /// run something.
    fn runner_values(
        &mut self,
        command: usize,
        runner: &'static Runner,
        at: At<'_>,
        (from, end): (usize, usize),
    ) {
        for index in from..end {
            let Some((option, attached)) = at.value(index).and_then(|value| option_of(runner, value)) else {
                continue;
            };
            let place = index + usize::from(attached.is_none());
            let value = attached.or_else(|| at.value(place)).unwrap_or_default();
            if runner.writes.contains(&option) {
                match value.strip_prefix(['|', '!', HOLE]) {
                    // strace passes its output to a command.
                    Some(command) => self.text(at, place, command),
                    None => self.unread(super::option::WRITES, at, place),
                }
            }
            let only_connects = option == "o" && is_harmless_ssh(value);
            if runner.runs.contains(&option) && !only_connects {
                self.names(command, value);
                self.scripts.note_text(value);
                if value.contains(HOLE) {
                    self.doubt("which command it runs shows only when it runs");
                }
                self.unread(RUNS, at, place);
            }
            let name = value.split('=').next().unwrap_or_default();
            if runner.sets.contains(&option) && (super::starts_something(name, None) || name.contains(HOLE)) {
                self.doubt("a variable that it sets has a shell or a loader run something");
            } else if runner.sets.contains(&option) {
                self.unread(SETS, at, place);
            }
        }
    }

    pub(super) fn env(&mut self, command: usize, at: At<'_>) {
        let mut index = 0;
        while let Some(word) = at.arguments.get(index) {
            let value = word.value.as_str();
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            let attached = value
                .split_once('=')
                .filter(|(name, _)| name.len() > 3 && "--split-string".starts_with(name))
                .map(|(_, rest)| rest)
                .or_else(|| letters?.split_once('S').map(|(_, rest)| rest));
            let first =
                attached.or_else(|| (value.len() > 3 && "--split-string".starts_with(value)).then_some(""));
            if let Some(first) = first {
                let rest = at.arguments.get(index + 1..).unwrap_or_default();
                let texts = std::iter::once(first).chain(rest.iter().map(|word| word.value.as_str()));
                let text = joined(texts);
                if text.contains('\\') {
                    // `\_` and `\c` mean something to it, and nothing to a shell.
                    self.doubt("a script in it isn't read as a shell reads it");
                }
                return self.text(at, at.arguments.len().saturating_sub(1), text.trim());
            }
            index += match step(word, &ENV) {
                WrapperStep::ListEnd | WrapperStep::Starts => break,
                WrapperStep::Two => 2,
                WrapperStep::One | WrapperStep::Unknown | WrapperStep::Either => 1,
            };
        }
        self.runner(command, &ENV, at);
    }

    pub(super) fn parallel(&mut self, at: At<'_>) {
        let end = at.arguments.iter().position(|word| word.value.starts_with(":::"));
        let words = at.arguments.get(..end.unwrap_or(at.arguments.len())).unwrap_or_default();
        let Starts { places, unknown, .. } = starts(words, 0, &PARALLEL);
        // One of two programs of this name runs each word behind `--`.
        let several = words.iter().any(|word| word.value == "--");
        if several || !unknown.is_empty() || !places.iter().any(|start| *start < words.len()) {
            self.doubt("which commands it runs isn't told by the text");
        }
        let start = places.iter().copied().max().unwrap_or(words.len());
        self.unknown_words(at, (0, start), &[]);
        for start in places.into_iter().filter(|start| *start < words.len()) {
            super::replace::parallel_command(self, at, words.get(start..).unwrap_or_default());
        }
    }
}

/// The letter or the long name of an option that has a value, and the value if it is in the same word.
fn option_of<'w>(runner: &Runner, word: &'w str) -> Option<(&'w str, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let known = [runner.sets, runner.writes, runner.runs, runner.long_valued].concat();
        let known = known.into_iter().find(|known| !name.is_empty() && known.starts_with(name))?;
        return Some((known, attached));
    }
    let letters = word.strip_prefix('-')?;
    let (at, letter) = letters.char_indices().find(|(_, letter)| runner.valued.contains(*letter))?;
    let end = at + letter.len_utf8();
    let behind = letters.get(end..).filter(|behind| !behind.is_empty());
    Some((letters.get(at..end)?, behind))
}

const ENV: Runner = Runner::of(
    "i0v",
    "uCPa",
    &[
        "ignore-environment",
        "null",
        "debug",
        "list-signal-handling",
        "block-signal",
        "default-signal",
        "ignore-signal",
    ],
    &["unset", "chdir", "argv0"],
);
const PARALLEL: Runner = Runner::of(
    "kmXuqtv0",
    "ajLnN",
    &["keep-order", "dry-run", "bar", "progress", "verbose", "null", "eta"],
    &["jobs", "colsep", "delay", "timeout", "retries", "max-args"],
);

/// The index after the words that make a program a runner, if they are there.
fn behind(runner: &Runner, at: At<'_>) -> Option<usize> {
    let mut index = 0;
    for word in runner.behind {
        // They may be preceded by the program's own options, which may have values.
        let rest = at.arguments.get(index..).unwrap_or_default();
        let is_word = |argument: &Word| {
            let short = at.program == "ip" && !argument.value.is_empty();
            argument.value == *word || (short && word.starts_with(argument.value.as_str()))
        };
        let found = rest.iter().position(is_word)?;
        let before = rest.get(..found).unwrap_or_default();
        if !before.is_empty() && !before.iter().any(|argument| argument.value.starts_with('-')) {
            return None;
        }
        index += found + 1;
    }
    Some(index)
}

/// Where commands may begin in arguments.
#[derive(Default)]
struct Starts {
    /// More than one if an option is unknown and may take the next word. If there are more than [`STARTS_MAX`], one
    /// more is listed.
    places: Vec<usize>,
    /// The positions of options that aren't known.
    unknown: Vec<usize>,
    /// The positions at which the first operand may be.
    operands: Vec<usize>,
}

fn starts(arguments: &[Word], from: usize, runner: &Runner) -> Starts {
    let mut starts = Starts::default();
    let mut ahead = vec![from];
    let mut seen = vec![false; arguments.len() + 3];
    while let Some(mut at) = ahead.pop().filter(|_| starts.places.len() <= STARTS_MAX) {
        while let Some(word) = arguments.get(at) {
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => break,
            }
            match step(word, runner) {
                WrapperStep::ListEnd => {
                    at += 1;
                    break;
                }
                WrapperStep::One => at += 1,
                WrapperStep::Two => at += 2,
                WrapperStep::Unknown => {
                    starts.unknown.push(at);
                    at += 1;
                }
                WrapperStep::Either => {
                    starts.unknown.push(at);
                    ahead.push(at + 2);
                    at += 1;
                }
                WrapperStep::Starts => break,
            }
        }
        if runner.operands > 0 && at < arguments.len() {
            starts.operands.push(at);
        }
        let mut start = at + runner.operands;
        // Some take options again after their operands.
        while runner.operands > 0 && arguments.get(start).is_some_and(|word| word.value.starts_with('-')) {
            start += 1;
        }
        if start < arguments.len() && !starts.places.contains(&start) {
            starts.places.push(start);
        }
    }
    starts
}

/// Whether a lock isn't created under this name: it is the number of an open file, or a folder.
fn names_no_file(name: &str) -> bool {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        || name.ends_with('/')
        || matches!(name, "." | "..")
        || name.ends_with("/.")
        || name == "/dev/null"
}

enum WrapperStep {
    /// The options end here.
    ListEnd,
    One,
    Two,
    /// An option that isn't known, with its value.
    Unknown,
    /// Whether a value follows is unknown.
    Either,
    Starts,
}

fn step(word: &Word, runner: &Runner) -> WrapperStep {
    let value = word.value.as_str();
    if value == "--" {
        return WrapperStep::ListEnd;
    }
    if let Some(long) = value.strip_prefix("--") {
        return match () {
            () if runner.long_flags.contains(&long) => WrapperStep::One,
            () if runner.long_valued.contains(&long) => WrapperStep::Two,
            () => match long.split_once('=') {
                Some((name, _))
                    if runner.long_valued.contains(&name) || runner.long_flags.contains(&name) =>
                {
                    WrapperStep::One
                }
                Some(_) => WrapperStep::Unknown,
                None => WrapperStep::Either,
            },
        };
    }
    let Some(letters) = value.strip_prefix('-') else {
        return if is_setting(value) { WrapperStep::One } else { WrapperStep::Starts };
    };
    for (index, letter) in letters.char_indices() {
        if runner.valued.contains(letter) {
            return if index + letter.len_utf8() == letters.len() {
                WrapperStep::Two
            } else {
                WrapperStep::One
            };
        }
        if runner.attached.contains(letter) {
            return WrapperStep::One;
        }
        if !runner.flags.contains(letter) {
            return WrapperStep::Either;
        }
    }
    WrapperStep::One
}

/// Whether it is a `NAME=value` as `env` and `sudo` take them.
fn is_setting(value: &str) -> bool {
    value.split_once('=').is_some_and(|(name, _)| super::super::facts::is_identifier(name))
}

/// Options of ssh that only configure the connection.
fn is_harmless_ssh(setting: &str) -> bool {
    let known = [
        "batchmode=",
        "stricthostkeychecking=",
        "connecttimeout=",
        "loglevel=",
        "serveraliveinterval=",
        "port=",
        "user=",
    ];
    let setting = setting.to_ascii_lowercase();
    !setting.contains(['\n', HOLE]) && known.iter().any(|known| setting.trim_start().starts_with(known))
}
