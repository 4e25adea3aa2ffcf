//! The commands that a command runs in its arguments, each as a command of its own.

mod builtin;
mod folder;
mod git;
mod identity;
mod language;
mod operand;
mod option;
mod replace;
mod runner;

use std::path::Path;

use super::super::glob::HOLE;
use super::facts::Facts;
use super::files::ScriptNames;
use super::program::{Program, program_of};
use super::runner::runners_of;
use super::scan::{SimpleCommand, Word, scan};
use super::variable::{is_harmless, starts_something};
use super::{Command, Reader, Within, joined};
use builtin::Builtins;

/// Maximum nesting of commands in the arguments of commands.
const DEPTH_MAX: usize = 8;

/// Maximum number of commands examined in the arguments of others, in the whole script.
const RUNS_MAX: usize = 128;

/// Programs that run commands elsewhere: in containers, on other machines, in environments.
#[rustfmt::skip]
const CONTAINERS: &[&str] = &[
    "docker", "docker-compose", "podman", "podman-compose", "nerdctl", "kubectl", "oc", "crictl", "ctr", "lxc", "incus", "multipass", "vagrant", "flatpak", "toolbox", "distrobox", "gcloud", "aws", "az", "heroku",
    "fly", "flyctl", "adb", "ansible", "pnpm", "yarn", "bun", "npm", "colima", "limactl", "orb", "minikube", "runc", "crun", "buildah", "cargo", "nomad", "railway", "vercel",
];
const RUN_WORDS: &[&str] = &[
    "exec",
    "run",
    "ssh",
    "shell",
    "debug",
    "console",
    "enter",
    "dlx",
    "x",
    "attach",
    "-a",
    "watch",
    "run-script",
];
/// Programs that run a package by its name, or a program of that name.
const PACKAGES: &[&str] = &["npx", "bunx", "pnpx", "dpkg-architecture"];

/// Maximum bytes of all forms of a script's commands together, which patterns are compared to.
const FORM_BYTES_MAX: usize = 6 * super::COMMAND_BYTES_MAX;

/// Collects the commands of a script; the limits apply to the whole script.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) commands: Vec<Command>,
    pub(super) facts: Facts,
    pub(super) scripts: ScriptNames,
    /// Where it runs.
    folders: folder::Folders,
    bytes: usize,
    runs: usize,
}

/// The words of one command, as positions in the commands that have them in their arguments.
#[derive(Debug, Clone)]
struct Trail {
    command: usize,
    /// Where each of the words ends in the text of that command.
    ends: Vec<usize>,
}

/// A command whose arguments are examined.
#[derive(Clone, Copy)]
struct At<'w> {
    /// The program without its folder, in lower case.
    program: &'w str,
    arguments: &'w [Word],
    trails: &'w [Trail],
    depth: usize,
}

impl<'w> At<'w> {
    /// The position of the argument at `index` in this command and in those that contain it.
    fn within(&self, index: usize) -> Vec<Within> {
        let place = |trail: &Trail| {
            let end = trail.ends.get(index.saturating_add(1)).copied().unwrap_or(usize::MAX);
            Within { command: trail.command, end }
        };
        self.trails.iter().map(place).collect()
    }

    fn value(&self, index: usize) -> Option<&'w str> {
        self.arguments.get(index).map(|word| word.value.as_str())
    }
}

impl Reach {
    /// For a script that `reader` runs in `workspace`.
    pub(super) fn new(workspace: &Path, reader: Reader) -> Self {
        Self { folders: folder::Folders::of(workspace, reader), ..Self::default() }
    }

    pub(super) fn doubt(&mut self, why: &'static str) {
        self.facts.doubt(why);
    }

    /// Reads the commands of a script in the arguments of others at these positions.
    pub(super) fn script(&mut self, text: &str, within: &[Within], depth: usize) {
        if depth > 0 && text.contains(HOLE) {
            self.scripts.note_unread();
            self.doubt("a script in it shows only when it runs");
        }
        let mut parts = Vec::new();
        if let Err(unclear) = scan(text, &mut parts, &mut self.facts) {
            self.scripts.note_unread();
            self.scripts.note_text(text);
            self.doubt(unclear.0);
        }
        for part in &parts {
            self.part(part, within, depth);
        }
    }

    fn part(&mut self, part: &SimpleCommand, within: &[Within], depth: usize) {
        let index = self.commands.len();
        let words = joined(part.words.iter().map(|word| word.raw.as_str()));
        let written = part.written.join(" ");
        self.commands.push(Command {
            words: words.clone(),
            written: written.clone(),
            writes: part.writes,
            within: within.to_vec(),
            ..Command::default()
        });
        self.add(index, &words);
        self.add(index, &written);
        let trails = trails(index, &part.words, within);
        let first = part.words.iter().position(|word| !word.assigns).unwrap_or(part.words.len());
        for (at, word) in part.words.iter().take(first).enumerate() {
            let Some((name, value)) = word.value.split_once('=') else { continue };
            self.scripts.note_variable(word);
            if !is_harmless(name, value) && first < part.words.len() {
                let within = places(&trails, at);
                self.push_unread("a variable that it is given changes what it does", within);
            }
            if starts_something(name, Some(value)) {
                self.doubt("a variable that it sets has a shell or a loader run something");
            }
            if !is_harmless(name, "") {
                self.names(index, value);
            }
        }
        self.scripts.note_input(&part.written);
        let behind = trails.into_iter().map(|trail| skipped(trail, first)).collect::<Vec<_>>();
        self.run(index, part.words.get(first..).unwrap_or_default(), &behind, depth);
    }

    /// Reads a command of these words, which are arguments of another.
    fn inner(&mut self, words: &[Word], trails: &[Trail], depth: usize) {
        // If options may take a value or not, a command may begin at several positions, at each level.
        self.runs += 1;
        if self.runs > RUNS_MAX {
            self.scripts.note_unread();
            return self.doubt("it runs too many commands through others");
        }
        let index = self.commands.len();
        let text = joined(words.iter().map(|word| word.raw.as_str()));
        let within = places(trails, 0);
        self.commands.push(Command {
            words: text.clone(),
            written: text.clone(),
            within,
            ..Command::default()
        });
        self.add(index, &text);
        let mut all = trails.to_vec();
        all.push(Trail { command: index, ends: ends(words) });
        self.run(index, words, &all, depth);
    }

    /// Records the names by which a command may match, and what it runs.
    fn run(&mut self, index: usize, words: &[Word], trails: &[Trail], depth: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        if !first.plain {
            self.doubt("which command it runs shows only when it runs");
        }
        let program = first.value.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let rest = || arguments.iter().map(|word| word.value.as_str());
        self.add(index, &joined(std::iter::once(first.value.as_str()).chain(rest())));
        if program != first.value {
            self.add(index, &joined(std::iter::once(program.as_str()).chain(rest())));
        }
        if first.value.starts_with("/proc/") || first.value.starts_with("/dev/") {
            self.doubt("which program it runs shows only when it runs");
        }
        if arguments.iter().any(|word| word.value.starts_with("BASH_FUNC_")) {
            self.doubt("a variable that it sets is a function of bash");
        }
        if depth >= DEPTH_MAX {
            self.scripts.note_unread();
            return self.doubt("it runs commands through too many others");
        }
        self.scripts.note(&program, first, arguments);
        let at = At { program: &program, arguments, trails, depth: depth + 1 };
        self.arguments(index, at);
    }

    fn arguments(&mut self, index: usize, at: At<'_>) {
        for runner in runners_of(at.program) {
            self.runner(index, runner, at);
        }
        match program_of(at.program) {
            Program::Runner | Program::Plain => {}
            Program::Options(options) => self.options(index, options, at),
            Program::Anywhere => {
                self.unread("which of its arguments it runs isn't told by the text", at, usize::MAX);
                self.all_names(index, at);
                if at.arguments.iter().any(|word| word.value.contains(HOLE)) {
                    self.doubt("which command it runs shows only when it runs");
                }
            }
            Program::Find => self.find(index, at),
            Program::Fd => self.fd(index, at),
            Program::Shell => self.builtins().shell(at),
            Program::Git => git::git(self, index, at),
            Program::Awk => language::awk(self, index, at),
            Program::Sed => language::sed(self, index, at),
            Program::Builtin => self.builtins().builtin(index, at),
            Program::Interpreter | Program::Unknown => self.all_names(index, at),
        }
        self.changes_folder(at);
        self.named_elsewhere(index, at);
        if matches!(at.program, "exec" | "env") {
            self.builtins().renamed(at);
        }
        self.builtins().condition(at);
    }

    const fn builtins(&mut self) -> Builtins<'_> {
        Builtins { reach: self }
    }

    /// Records all words in the arguments that may be names of programs.
    fn all_names(&mut self, index: usize, at: At<'_>) {
        for word in at.arguments {
            self.names(index, &word.value);
        }
    }

    /// Records the names behind the words with which programs run a command in a container, on another host or from a
    /// package. An `allow` for such a program means to trust it with that.
    fn named_elsewhere(&mut self, index: usize, at: At<'_>) {
        let place = match at.program {
            _ if PACKAGES.contains(&at.program) => Some(0),
            _ if CONTAINERS.contains(&at.program) => {
                at.arguments.iter().position(|word| RUN_WORDS.contains(&word.value.as_str()))
            }
            _ => None,
        };
        for word in at.arguments.iter().skip(place.unwrap_or(usize::MAX)) {
            self.names(index, &word.value);
        }
    }

    fn names(&mut self, index: usize, text: &str) {
        let ends = |c: char| c.is_whitespace() || "'\"`;|&(){}[]<>,=$!\\:".contains(c);
        for name in text.split(ends).filter(|name| !name.is_empty()) {
            let name = name.rsplit('/').next().unwrap_or_default();
            self.bytes += name.len();
            if self.bytes > FORM_BYTES_MAX {
                return self.doubt("it runs too much through others");
            }
            if let Some(command) = self.commands.get_mut(index) {
                command.perhaps.push(name.to_ascii_lowercase());
            }
        }
    }

    fn add(&mut self, index: usize, form: &str) {
        let Some(command) = self.commands.get_mut(index) else { return };
        if command.forms.iter().any(|known| known == form) {
            return;
        }
        if self.bytes + form.len() > FORM_BYTES_MAX {
            return self.doubt("it runs too much through others");
        }
        self.bytes += form.len();
        command.forms.push(form.to_owned());
    }

    /// The argument at `index` has an effect that its text doesn't show: only a pattern that contains the argument
    /// covers it.
    fn unread(&mut self, why: &'static str, at: At<'_>, index: usize) {
        self.push_unread(why, at.within(index));
    }

    fn push_unread(&mut self, why: &'static str, within: Vec<Within>) {
        if self.commands.iter().filter(|one| one.unread.is_some()).count() >= RUNS_MAX {
            return self.doubt("it runs too much through others");
        }
        self.commands.push(Command { within, unread: Some(why), ..Command::default() });
    }

    /// The argument at `index` may become an option by an expansion of the shell.
    fn put_in(&mut self, command: usize, at: At<'_>, index: usize) {
        self.all_names(command, at);
        self.unread("what the shell puts in may be an option that runs a command", at, index);
    }

    /// The words from the argument at `start` on are a command.
    fn words(&mut self, at: At<'_>, start: usize, words: &[Word]) {
        let trails = at.trails.iter().cloned().map(|trail| skipped(trail, start + 1)).collect::<Vec<_>>();
        self.inner(words, &trails, at.depth);
    }

    /// The argument at `index` is a script.
    fn text(&mut self, at: At<'_>, index: usize, text: &str) {
        self.runs += 1;
        if self.runs > RUNS_MAX {
            self.scripts.note_unread();
            return self.doubt("it runs too many commands through others");
        }
        if at.depth >= DEPTH_MAX {
            self.scripts.note_unread();
            return self.doubt("it runs commands through too many others");
        }
        self.script(text, &at.within(index), at.depth);
    }

    /// The arguments from `start` on, joined, are a script.
    fn joined_text(&mut self, at: At<'_>, start: usize) {
        let rest = at.arguments.get(start..).unwrap_or_default();
        if !rest.is_empty() {
            let text = joined(rest.iter().map(|word| word.value.as_str()));
            self.text(at, at.arguments.len().saturating_sub(1), &text);
        }
    }
}

fn ends(words: &[Word]) -> Vec<usize> {
    let mut end = 0_usize;
    let ends = words.iter().map(|word| {
        let this = end + word.raw.len();
        end = this + 1;
        this
    });
    ends.collect()
}

fn trails(index: usize, words: &[Word], within: &[Within]) -> Vec<Trail> {
    // All words of a script have the position of the argument that contains it.
    let of_text = |one: &Within| Trail { command: one.command, ends: vec![one.end; words.len()] };
    within.iter().map(of_text).chain([Trail { command: index, ends: ends(words) }]).collect()
}

fn skipped(trail: Trail, first: usize) -> Trail {
    Trail { ends: trail.ends.get(first..).unwrap_or_default().to_vec(), ..trail }
}

fn places(trails: &[Trail], index: usize) -> Vec<Within> {
    let place = |trail: &Trail| Within {
        command: trail.command,
        end: trail.ends.get(index).copied().unwrap_or(usize::MAX),
    };
    trails.iter().map(place).collect()
}

/// Whether the shell may expand it to an option.
fn may_be_option(word: &Word) -> bool {
    let fills = word.value.starts_with(['*', '?', '[']) && !word.plain;
    // An unquoted expansion may be several words, whatever its beginning.
    word.value.starts_with(HOLE) || fills || (word.splits && word.value.contains(HOLE))
}
