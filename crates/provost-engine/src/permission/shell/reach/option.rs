//! Options that take commands, and the words after certain options.

use super::super::program::Options;
use super::replace::{PLACEHOLDERS, put_in};
use super::{At, Reach, Word, may_be_option};

/// Options whose value is a command, word by word or as a shell reads it.
const COMMANDS: [(&str, &str); 31] = [
    ("rsync", "e"),
    ("rsync", "rsh"),
    ("tar", "I"),
    ("tar", "use-compress-program"),
    ("tar", "to-command"),
    ("tar", "rsh-command"),
    ("sort", "compress-program"),
    ("man", "P"),
    ("man", "pager"),
    ("split", "filter"),
    ("rg", "pre"),
    ("rg", "hostname-bin"),
    ("sdiff", "diff-program"),
    ("diff3", "diff-program"),
    ("scp", "S"),
    ("sftp", "S"),
    ("zip", "unzip-command"),
    ("install", "strip-program"),
    ("npm", "c"),
    ("npx", "c"),
    ("npm", "call"),
    ("npx", "call"),
    ("pip", "python"),
    ("pip", "editor"),
    ("pipenv", "python"),
    ("virtualenv", "python"),
    ("virtualenv", "p"),
    ("uv", "python"),
    ("uv", "p"),
    ("mypy", "python-executable"),
    ("helm", "post-renderer"),
];

/// Those of them whose command gets names of files or of hosts, at its end.
const ADDS: [(&str, &str); 10] = [
    ("rsync", "e"),
    ("rsync", "rsh"),
    ("tar", "rsh-command"),
    ("rg", "pre"),
    ("sdiff", "diff-program"),
    ("diff3", "diff-program"),
    ("scp", "S"),
    ("sftp", "S"),
    ("zip", "unzip-command"),
    ("install", "strip-program"),
];

/// Functions of `sqlite3`'s SQL that run an editor, load a library or write a file.
const SQL_RUNS: [&str; 4] = ["edit", "load_extension", "writefile", "fts3_tokenizer"];

const RUNS: &str = "an option of it runs a command, or loads what does";
pub(super) const WRITES: &str = "an option of it writes a file, or changes the machine";
pub(super) const PUT_IN_WRITES: &str = "what the shell puts in may be an option that writes a file";

impl Reach {
    pub(super) fn options(&mut self, index: usize, options: &'static Options, at: At<'_>) {
        if at.program.starts_with("sqlite") {
            self.sqlite(index, at);
        }
        let runs_any = !options.builds
            && (!options.runs.is_empty() || !options.runs_long.is_empty() || !options.begins.is_empty());
        let writes_any = !options.writes.is_empty() || !options.writes_long.is_empty();
        self.operands(options, at);
        if at.program == "cargo" {
            self.cargo(index, at);
        }
        for (place, word) in at.arguments.iter().enumerate() {
            let value = word.value.as_str();
            if value == "--" {
                break;
            }
            if runs_any && may_be_option(word) {
                self.put_in(index, at, place);
            } else if writes_any && may_be_option(word) {
                self.unread(PUT_IN_WRITES, at, place);
            } else if options.begins.iter().any(|begin| value.starts_with(begin)) && !is_a_look(value) {
                self.names(index, value);
                self.names(index, at.value(place + 1).unwrap_or_default());
                self.scripts.note_text(value);
                self.scripts.note_text(at.value(place + 1).unwrap_or_default());
                self.unread(RUNS, at, place);
            } else if let Some(long) = value.strip_prefix("--") {
                self.long_option(index, options, at, (place, long));
            } else if let Some(letters) = value.strip_prefix('-') {
                self.letters(index, options, at, (place, letters));
            } else if place == 0 && at.program.ends_with("tar") && value.contains(['I', 'F', 'T']) {
                // It reads its first word as letters, and their values from the following words.
                self.all_names(index, at);
                self.unread(RUNS, at, place);
            }
            if at.program.ends_with("tar") && value.contains(':') {
                self.unread("it may reach another host", at, place);
            }
        }
    }

    fn long_option(&mut self, index: usize, options: &Options, at: At<'_>, (place, long): (usize, &str)) {
        let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        // Some programs accept an abbreviated name.
        let of = |names: &[&'static str]| names.iter().find(|known| known.starts_with(name)).copied();
        if let Some(known) = of(options.runs_long) {
            return self.value(index, at, place, (known, attached));
        }
        if of(options.writes_long).is_some() {
            self.unread(WRITES, at, place);
        }
    }

    fn letters(&mut self, index: usize, options: &Options, at: At<'_>, (place, letters): (usize, &str)) {
        for (offset, letter) in letters.char_indices() {
            let behind = letters.get(offset + letter.len_utf8()..).unwrap_or_default();
            if options.runs.contains(letter) {
                let mut name = [0; 4];
                let attached = Some(behind).filter(|behind| !behind.is_empty());
                return self.value(index, at, place, (letter.encode_utf8(&mut name), attached));
            }
            if options.writes.contains(letter) {
                self.unread(WRITES, at, place);
            }
            if options.valued.contains(letter) || options.attached.contains(letter) {
                return;
            }
            if letter == super::HOLE {
                return self.put_in(index, at, place);
            }
        }
    }

    /// The value of an option that is run.
    fn value(&mut self, index: usize, at: At<'_>, place: usize, (name, attached): (&str, Option<&str>)) {
        let next = place + usize::from(attached.is_none());
        let Some(value) = attached.or_else(|| at.value(next)) else {
            return self.unread(RUNS, at, place);
        };
        let program = at.program.trim_start_matches('g').trim_start_matches("bsd");
        let bare = at.program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is = |known: &[(&str, &str)]| {
            [program, at.program, bare].iter().any(|program| known.contains(&(*program, name)))
        };
        if is(&COMMANDS) {
            // What it adds may be the command: `rg --pre env` runs each file.
            let added = if is(&ADDS) { " \"$_\"" } else { "" };
            return self.text(at, next, &format!("{value}{added}"));
        }
        if value.contains(super::HOLE) {
            self.doubt("which command it runs shows only when it runs");
        }
        self.names(index, value);
        self.scripts.note_text(value);
        self.unread(RUNS, at, place);
    }

    /// Commands in the arguments of cargo's subcommands: `cargo rustc -- -C linker=…`, `cargo watch -s …`.
    fn cargo(&mut self, index: usize, at: At<'_>) {
        let named =
            at.arguments.iter().find(|word| matches!(word.value.as_str(), "rustc" | "rustdoc" | "watch"));
        let begins: &[&str] = match named.map(|word| word.value.as_str()) {
            Some("watch") => &["-s", "--shell", "--use-shell", "-x", "--exec"],
            Some(_) => &["-C", "--codegen", "-Z", "@", "--test-builder", "--runtool", "--test-runtool"],
            None => return,
        };
        for (place, word) in at.arguments.iter().enumerate() {
            let watched = word.value == "--" && begins.contains(&"-x");
            if watched || begins.iter().any(|begin| word.value.starts_with(begin)) {
                at.arguments.iter().for_each(|word| self.names(index, &word.value));
                self.unread(RUNS, at, place);
            } else if may_be_option(word) {
                self.put_in(index, at, place);
            }
        }
    }

    /// What SQL makes it do besides reading and writing a database.
    fn sqlite(&mut self, index: usize, at: At<'_>) {
        let operands = at.arguments.iter().filter(|word| !word.value.starts_with('-')).count();
        if operands < 2 {
            self.unread("it may read commands from its input", at, usize::MAX);
        }
        for (place, word) in at.arguments.iter().enumerate() {
            let text = word.value.to_ascii_lowercase();
            if text.contains(super::HOLE) || SQL_RUNS.iter().any(|function| text.contains(function)) {
                self.names(index, &word.value);
                self.unread("its SQL may run a command, load a library or write a file", at, place);
            }
        }
    }

    pub(super) fn find(&mut self, command: usize, at: At<'_>) {
        let mut index = 0;
        while let Some(word) = at.arguments.get(index) {
            let value = word.value.as_str();
            index += 1;
            match value {
                _ if FIND_RUNS.contains(&value) => index = self.until_end(at, index),
                _ if FIND_VALUED.contains(&value) || value.starts_with("-newer") => {
                    // A single word after it is no option, whatever its value.
                    let ends_plain = |word: &Word| {
                        word.value.rsplit(['*', '?', ']']).next().is_some_and(|end| end.contains('.'))
                    };
                    if let Some(next) = at.arguments.get(index) {
                        if next.splits && (next.value.contains(super::HOLE) || !ends_plain(next)) {
                            self.put_in(command, at, index);
                        }
                        index += 1;
                    }
                }
                _ if FIND_ALONE.contains(&value) => {}
                _ if value.starts_with('-') => {
                    self.unread("it does more than look for files", at, index.saturating_sub(1));
                }
                _ if may_be_option(word) => self.put_in(command, at, index.saturating_sub(1)),
                _ => {}
            }
        }
    }

    /// A command that ends with `;` or `+`; returns where it ends.
    fn until_end(&mut self, at: At<'_>, start: usize) -> usize {
        let behind = at.arguments.get(start..).unwrap_or_default();
        let is_end = |(place, word): (usize, &Word)| {
            let before = place.checked_sub(1).and_then(|place| behind.get(place));
            word.value == ";" || (word.value == "+" && before.is_some_and(|word| word.value == "{}"))
        };
        let end = behind.iter().enumerate().position(is_end).unwrap_or(behind.len());
        let mut words: Vec<Word> = behind.iter().take(end).map(|word| put_in(word, &PLACEHOLDERS)).collect();
        if at.program.starts_with("fd")
            && !words.is_empty()
            && !words.iter().any(|word| word.value.contains(super::HOLE))
        {
            // It adds what it found.
            let hole = super::HOLE.to_string();
            words.push(Word { raw: hole.clone(), value: hole, ..Word::default() });
        }
        match words.is_empty() {
            true => self.unread("the command that it runs is missing", at, start),
            false => self.words(at, start, &words),
        }
        start + end + 1
    }

    pub(super) fn fd(&mut self, command: usize, at: At<'_>) {
        let mut index = 0;
        while let Some(word) = at.arguments.get(index) {
            let value = word.value.as_str();
            index += 1;
            if value == "--" {
                return;
            }
            if may_be_option(word) {
                self.put_in(command, at, index.saturating_sub(1));
            }
            let letters =
                value.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
            let place = letters.find(|c| "edEtScgjp".contains(c)).unwrap_or(letters.len());
            let runs = letters.get(..place).unwrap_or_default().find(['x', 'X']);
            let long = value.split('=').next().unwrap_or_default();
            let is_long = long.len() > 3 && "--exec-batch".starts_with(long);
            let attached = value.contains('=') || runs.is_some_and(|at| at + 1 < letters.len());
            match (runs.is_some() || is_long, attached) {
                (true, false) => index = self.until_end(at, index),
                (true, true) => self.unread(RUNS, at, index.saturating_sub(1)),
                (false, _) => {}
            }
        }
    }
}

/// Arguments of pagers after `+` that only go to a position.
fn is_a_look(value: &str) -> bool {
    value.strip_prefix('+').is_some_and(|rest| {
        let digits = rest.bytes().all(|byte| byte.is_ascii_digit());
        digits || rest == "G" || rest == "F"
    })
}

const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Tests and options of `find` with one value, without side effects.
const FIND_VALUED: [&str; 34] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-lname",
    "-ilname",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-inum",
    "-samefile",
    "-links",
    "-maxdepth",
    "-mindepth",
    "-printf",
];

/// Those without a value.
const FIND_ALONE: [&str; 32] = [
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "-true",
    "-false",
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-daystart",
    "-follow",
    "-noleaf",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-nouser",
    "-nogroup",
    "-warn",
    "-nowarn",
    "-H",
    "-L",
    "-P",
];
