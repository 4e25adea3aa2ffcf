//! The files that a command names as scripts: they, and not its text, contain what it runs.

use super::super::glob::HOLE;
use super::program::{Program, program_of};
use super::scan::Word;
use super::variable::is_harmless_name;

/// Maximum names examined in one command.
const NAMES_MAX: usize = 512;
/// Maximum bytes of a path.
const PATH_BYTES_MAX: usize = 4_096;
/// Maximum option letters before a name in the same word.
const LETTERS_MAX: usize = 8;

/// Programs that change into folders that their arguments name, besides those that only run others.
const CHANGE_FOLDERS: [&str; 11] =
    ["cd", "pushd", "env", "parallel", "make", "gmake", "cmake", "git", "find", "gfind", "bfs"];
/// Builtins of the shell that work on names and texts of commands.
const KEEP_COMMANDS: [&str; 8] = ["alias", "hash", "enable", "trap", "bind", "complete", "eval", "fc"];
/// Variables with the folders in which programs look for what they run or load.
const FOLDERS_OF_PROGRAMS: [&str; 12] = [
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "PERL5LIB",
    "PERLLIB",
    "RUBYLIB",
    "LD_LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "BASH_LOADABLES_PATH",
];
/// Calculators: their input is no script.
const CALCULATE: [&str; 2] = ["bc", "dc"];

/// Files that a command may run as scripts, as it names them: programs given by their paths, and arguments of
/// shells, interpreters, `source` and `make`. Which of them are files is only known where the command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptNames {
    /// The files.
    pub files: Vec<String>,
    /// Names that, if they are folders, the command may change into or look for programs in: the files may be
    /// relative to them.
    pub folders: Vec<String>,
    /// Whether it may run a file that its text doesn't name. Then all its words that are files count as named.
    pub unnamed: bool,
    /// All words, for commands where it is unknown which of them are run.
    words: Vec<String>,
    /// The programs that are looked up in `PATH`.
    programs: Vec<String>,
    /// Whether a shell or an interpreter reads its program from its input.
    reads_input: bool,
    /// Whether a shell does.
    shell_reads_input: bool,
    /// Whether `PATH` is set.
    sets_path: bool,
    /// Whether words are added to a command that runs scripts, or a folder is unknown.
    adds: bool,
    runs_scripts: bool,
}

impl ScriptNames {
    /// Records what a command of these words names; `program` is its name without its folder, in lower case.
    pub(super) fn note(&mut self, program: &str, first: &Word, arguments: &[Word]) {
        let named = resolved(first);
        self.unnamed |= named.contains(HOLE) || (!first.plain && !first.value.contains(HOLE));
        self.unnamed |= named.contains("{}");
        self.unnamed |= std::iter::once(first).chain(arguments).any(|word| names_folder_by_tilde(&word.raw));
        match named.contains('/') {
            true => add(&mut self.files, &named),
            false => add(&mut self.programs, &named),
        }
        for word in arguments {
            add(&mut self.words, &resolved(word));
            self.note_path(word);
        }
        if CHANGE_FOLDERS.contains(&program) || matches!(program_of(program), Program::Runner) {
            let folders = &mut self.folders;
            arguments.iter().for_each(|word| parts_of(&resolved(word), |name| add(folders, name)));
        }
        match (program, program_of(program)) {
            ("cd" | "pushd", _) => self.adds |= arguments.iter().any(|word| resolved(word).contains(HOLE)),
            ("xargs" | "gxargs" | "parallel", _) => self.adds = true,
            ("." | "source" | "make" | "gmake", _) => self.note_scripts(program, arguments),
            (_, Program::Shell | Program::Interpreter) => {
                self.note_scripts(program, arguments);
                self.note_folder_run(program, arguments);
                self.note_reading(program, arguments);
            }
            (_, Program::Awk | Program::Sed) => self.note_behind_options(arguments),
            (_, Program::Find) => self.unnamed |= arguments.iter().any(runs_in_each_folder),
            (_, Program::Git) => self.note_settings(arguments),
            _ if KEEP_COMMANDS.contains(&program) => {
                arguments.iter().for_each(|word| self.note_text(&word.value));
            }
            _ => {}
        }
    }

    /// The files of a module that `python` runs, if it is one of the workspace's.
    fn note_module(&mut self, arguments: &[Word]) {
        let mut is_module = false;
        for word in arguments {
            let value = resolved(word);
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            // Also after other letters: `-Im x`.
            let glued = letters.and_then(|letters| letters.split_once('m')).map(|(_, name)| name);
            let name = if is_module { Some(value.as_str()) } else { glued };
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                is_module = glued.is_some();
                continue;
            };
            self.unnamed |= name.contains(HOLE);
            let path = name.replace('.', "/");
            for file in [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")] {
                add(&mut self.files, &file);
            }
            for (at, _) in path.match_indices('/') {
                add(&mut self.files, &format!("{}/__init__.py", path.get(..at).unwrap_or_default()));
            }
            return;
        }
    }

    /// Records a variable that is set: if it changes what programs do, it may name what they run.
    pub(super) fn note_variable(&mut self, word: &Word) {
        self.note_path(word);
        let name = word.value.split_once('=').map_or("", |(name, _)| name);
        self.unnamed |= name == "PWD" || names_folder_by_tilde(&word.raw);
    }

    /// Records that the text in `word` may be run.
    pub(super) fn note_text(&mut self, text: &str) {
        for name in tokens(text) {
            add(&mut self.files, name);
        }
    }

    /// It may run files that aren't known here.
    pub(in crate::permission) fn unknown() -> Self {
        Self { unnamed: true, ..Self::default() }
    }

    /// The names in a text that isn't parsed.
    pub(super) fn unread(text: &str) -> Self {
        let mut names = Self::unknown();
        names.note_text(text);
        names
    }

    /// Records that the text doesn't show what runs.
    pub(super) const fn note_unread(&mut self) {
        self.unnamed = true;
    }

    /// Records the files that are read as input.
    pub(super) fn note_input(&mut self, written: &[String]) {
        let inputs = written.iter().filter_map(|text| text.trim_start_matches('0').strip_prefix('<'));
        for file in inputs.filter(|file| !file.starts_with(['<', '(', '&'])) {
            add(&mut self.words, &file.trim().replace(['\'', '"', '\\'], ""));
        }
    }

    /// Completes the record at the end of the script: what is run without a command that names it.
    pub(super) fn end(&mut self, text: &str) {
        let piped = text.replace("||", "").contains('|');
        self.unnamed |= self.reads_input && piped;
        self.unnamed |= self.adds && (self.runs_scripts || !self.files.is_empty());
        self.unnamed |= self.files.len() >= NAMES_MAX || self.folders.len() >= NAMES_MAX;
        let reads_file = self.reads_input && text.contains('<') && !text.contains("<<");
        let reads_text = self.shell_reads_input && text.contains("<<");
        if self.sets_path || self.unnamed {
            std::mem::take(&mut self.programs).iter().for_each(|name| add(&mut self.files, name));
        }
        if self.unnamed || reads_file || reads_text {
            std::mem::take(&mut self.words).iter().for_each(|name| add(&mut self.files, name));
            self.note_text(text);
        }
    }

    /// Records the arguments of a program that runs files.
    fn note_scripts(&mut self, program: &str, arguments: &[Word]) {
        let is_make = program.ends_with("make");
        self.runs_scripts |= !is_make;
        let mut before_operand = true;
        let mut option = "";
        for word in arguments {
            let value = resolved(word);
            parts_of(&value, |name| add(&mut self.files, name));
            let fills_in = value.contains(HOLE) || (!word.plain && !word.value.contains(HOLE));
            let names_file = !is_make || names_makefile(&value) || names_makefile(option);
            self.unnamed |= (before_operand && fills_in && names_file) || value.contains("{}");
            // The file, or the code, is followed by its own arguments; a word after an option may be its value.
            let is_code = |option: &str| !option.starts_with("--") && option.ends_with(['c', 'e', 'm']);
            before_operand &= is_make || value.starts_with('-') || (!option.is_empty() && !is_code(option));
            option = if word.value.starts_with('-') { word.value.as_str() } else { "" };
        }
    }

    /// The files that an interpreter runs if a folder is named.
    fn note_folder_run(&mut self, program: &str, arguments: &[Word]) {
        let inside: &[&str] = match program {
            _ if program.starts_with("python") || program.starts_with("pypy") => &["__main__.py"],
            "node" | "nodejs" => &["index.js", "package.json"],
            _ => &[],
        };
        if program.starts_with("python") || program.starts_with("pypy") {
            self.note_module(arguments);
        }
        for word in arguments.iter().filter(|word| !word.value.starts_with('-')) {
            let folder = resolved(word);
            inside.iter().for_each(|file| add(&mut self.files, &format!("{folder}/{file}")));
        }
    }

    /// Whether a shell or an interpreter reads its program from its input.
    fn note_reading(&mut self, program: &str, arguments: &[Word]) {
        let is_shell = matches!(program_of(program), Program::Shell);
        let is_input = |value: &str| {
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            value == "-"
                || value.starts_with("/dev/")
                || value.starts_with("/proc/")
                || (is_shell && letters.is_some_and(|letters| letters.contains('s')))
        };
        // Code in the same word, or an option that only prints information about the program.
        let is_told = |value: &str| {
            matches!(value, "--version" | "--help" | "-V" | "-h" | "-v" | "-version")
                || (!value.starts_with("--") && value.starts_with("-c"))
                || (value.len() > 2 && (value.starts_with("-e") || value.starts_with("-m")))
        };
        let values = || arguments.iter().map(|word| word.value.as_str());
        let reads = values().any(is_input) || values().all(|value| value.starts_with('-') && !is_told(value));
        let reads = reads && !CALCULATE.contains(&program);
        self.reads_input |= reads;
        self.shell_reads_input |= reads && is_shell;
    }

    /// Records files after options, in the same word or the next.
    fn note_behind_options(&mut self, arguments: &[Word]) {
        for pair in arguments.windows(2) {
            if let [option, word] = pair
                && option.value.starts_with('-')
                && option.value != "--"
            {
                add(&mut self.files, &resolved(word));
                let takes_file = option.value.ends_with(['f', 'i', 'E']) || option.value.starts_with("--");
                self.unnamed |= takes_file && resolved(word).contains(HOLE);
            }
        }
        for word in arguments.iter().filter(|word| word.value.starts_with('-')) {
            parts_of(&word.value, |name| add(&mut self.files, name));
        }
    }

    /// Records settings of git for one command: they may be commands.
    fn note_settings(&mut self, arguments: &[Word]) {
        let mut is_setting = false;
        for word in arguments {
            if is_setting || word.value.starts_with("-c") {
                self.note_text(&word.value);
            }
            self.unnamed |= word.value.starts_with("--exec-path=");
            is_setting = matches!(word.value.as_str(), "-c" | "--config-env");
        }
    }

    /// Records a variable from which programs take programs, files or options.
    fn note_path(&mut self, word: &Word) {
        let Some((name, text)) = word.value.split_once('=') else { return };
        let name = name.strip_suffix('+').unwrap_or(name);
        if name.starts_with('-') || is_harmless_name(name) {
            return;
        }
        self.note_text(text);
        self.sets_path |= name == "PATH";
        self.unnamed |= FOLDERS_OF_PROGRAMS.contains(&name);
        if matches!(name, "PATH" | "CDPATH") {
            let value = resolved(word);
            let (_, folders) = value.split_once('=').unwrap_or_default();
            folders.split(':').for_each(|folder| add(&mut self.folders, folder));
        }
    }
}

/// Whether the value of this option, in the next word or after its letter, is a makefile.
fn names_makefile(option: &str) -> bool {
    ["-f", "--f", "--m"].iter().any(|begin| option.starts_with(begin))
}

/// Whether it lets `find` run a command in the folder of each file.
fn runs_in_each_folder(word: &Word) -> bool {
    matches!(word.value.as_str(), "-execdir" | "-okdir")
}

/// Whether a shell puts a folder of its own in place of the beginning of a word or of a variable's part: the current
/// one, the one before, or one of the stack.
fn names_folder_by_tilde(raw: &str) -> bool {
    let is_folder = |part: &str| {
        let rest = part.strip_prefix('~').unwrap_or_default();
        rest.starts_with(|c: char| matches!(c, '+' | '-') || c.is_ascii_digit())
    };
    raw.split(['=', ':']).any(is_folder)
}

/// The value of a word, with the current folder in place of `$PWD`: the workspace or one of the folders that the
/// command changes into.
pub(super) fn resolved(word: &Word) -> String {
    let put_in = word.value.matches(HOLE).count();
    let written = word.raw.matches(['$', '`', '<', '>']).count();
    // Only if each expansion certainly belongs to its hole; braces leave just one hole.
    if put_in == 0 || put_in != written || word.value.chars().count() == 1 {
        return word.value.clone();
    }
    let mut behind = word.raw.split(['$', '`', '<', '>']).skip(1);
    let mut value = String::with_capacity(word.value.len());
    for c in word.value.chars() {
        let text = if c == HOLE { behind.next().unwrap_or_default() } else { "" };
        let name = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next();
        let is_folder = text.starts_with("{PWD}") || name == Some("PWD");
        value.push(if is_folder { '.' } else { c });
    }
    value
}

/// The possible names in an argument: all of it; of an option, the text after `=` or after its letters.
fn parts_of(value: &str, mut each: impl FnMut(&str)) {
    each(value);
    let Some(option) = value.strip_prefix('-') else { return };
    if let Some((_, name)) = option.split_once('=') {
        each(name);
    }
    if !option.starts_with('-') {
        let behind = option.char_indices().skip(1).take(LETTERS_MAX);
        behind.filter_map(|(at, _)| option.get(at..)).for_each(each);
    }
}

/// The possible names in a text that a program parses in its own way.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`;|&(){}<>=$!\\:,".contains(c))
}

fn add(names: &mut Vec<String>, name: &str) {
    let is_name = !name.is_empty() && name.len() <= PATH_BYTES_MAX && !name.contains([HOLE, '\0']);
    if is_name && names.len() < NAMES_MAX && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
