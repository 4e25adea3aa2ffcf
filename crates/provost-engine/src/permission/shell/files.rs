//! Which files a command names as scripts: what it runs is in them, and not in its text.

use super::super::glob::HOLE;
use super::program::{Program, program_of};
use super::scan::Word;
use super::variable::is_harmless_name;

/// Names looked at in one command.
const NAMES_MAX: usize = 512;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 4_096;
/// Letters of options that may stand in one word in front of a name.
const LETTERS_MAX: usize = 8;

/// Programs that change into folders that their arguments name, besides those that only run others.
const CHANGE_FOLDERS: [&str; 11] =
    ["cd", "pushd", "env", "parallel", "make", "gmake", "cmake", "git", "find", "gfind", "bfs"];
/// What the shell does itself with names and texts of commands.
const KEEP_COMMANDS: [&str; 8] = ["alias", "hash", "enable", "trap", "bind", "complete", "eval", "fc"];
/// Variables that name folders in which programs look for what they run or load.
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
/// Calculators: what they read is no script.
const CALCULATE: [&str; 2] = ["bc", "dc"];

/// Files that a command may run as scripts, as it names them: programs given by their paths, and arguments of shells,
/// interpreters, `source` and `make`. What of them is a file shows where it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptNames {
    /// The files.
    pub files: Vec<String>,
    /// What of it is a folder may be one that the command changes into, or looks for programs in: the files may be named
    /// from there.
    pub folders: Vec<String>,
    /// Whether it may run a file that its text doesn't name. All its words that are files count as named then.
    pub unnamed: bool,
    /// All words, for where it isn't told which of them are run.
    words: Vec<String>,
    /// The programs that are looked for in `PATH`.
    programs: Vec<String>,
    /// Whether a shell or an interpreter reads what to do from its input.
    reads_input: bool,
    /// Whether a shell does.
    shell_reads_input: bool,
    /// Whether `PATH` is set.
    sets_path: bool,
    /// Whether words are added to a command that runs scripts, or a folder isn't known.
    adds: bool,
    runs_scripts: bool,
}

impl ScriptNames {
    /// Notes what a command of these words names; `program` is its name without its folder, in lower case.
    pub(super) fn note(&mut self, program: &str, first: &Word, arguments: &[Word]) {
        let named = resolved(first);
        self.unnamed |= named.contains(HOLE) || (!first.plain && !first.value.contains(HOLE));
        self.unnamed |= named.contains("{}");
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

    /// The files of a module that `python` is told to run, if it is one of the workspace's.
    fn note_module(&mut self, arguments: &[Word]) {
        let mut is_module = false;
        for word in arguments {
            let value = resolved(word);
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            // Behind other letters, too: `-Im x`.
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

    /// Notes a variable that is set: where it changes what programs do, it may name what they run.
    pub(super) fn note_variable(&mut self, word: &Word) {
        self.note_path(word);
        let name = word.value.split_once('=').map_or("", |(name, _)| name);
        self.unnamed |= name == "PWD";
    }

    /// Notes that what stands in `word` may be run.
    pub(super) fn note_text(&mut self, text: &str) {
        for name in tokens(text) {
            add(&mut self.files, name);
        }
    }

    /// What a text may name that isn't read.
    pub(super) fn unread(text: &str) -> Self {
        let mut names = Self { unnamed: true, ..Self::default() };
        names.note_text(text);
        names
    }

    /// Notes that what runs can't be told from the text.
    pub(super) const fn note_unread(&mut self) {
        self.unnamed = true;
    }

    /// Notes the files that are read as input.
    pub(super) fn note_input(&mut self, written: &[String]) {
        let inputs = written.iter().filter_map(|text| text.trim_start_matches('0').strip_prefix('<'));
        for file in inputs.filter(|file| !file.starts_with(['<', '(', '&'])) {
            add(&mut self.words, &file.trim().replace(['\'', '"', '\\'], ""));
        }
    }

    /// Concludes of all of the script: what is run where no command names it.
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

    /// The arguments of a program that runs files.
    fn note_scripts(&mut self, program: &str, arguments: &[Word]) {
        let is_make = program.ends_with("make");
        self.runs_scripts |= !is_make;
        let (mut before_operand, mut option) = (true, "");
        for word in arguments {
            let value = resolved(word);
            parts_of(&value, |name| add(&mut self.files, name));
            let fills_in = value.contains(HOLE) || (!word.plain && !word.value.contains(HOLE));
            let names_file = !is_make || names_makefile(&value) || names_makefile(option);
            self.unnamed |= (before_operand && fills_in && names_file) || value.contains("{}");
            // Behind the file, or the code, stand its own arguments; what stands behind an option may be its value.
            let is_code = |option: &str| !option.starts_with("--") && option.ends_with(['c', 'e', 'm']);
            before_operand &= is_make || value.starts_with('-') || (!option.is_empty() && !is_code(option));
            option = if word.value.starts_with('-') { word.value.as_str() } else { "" };
        }
    }

    /// Files that an interpreter runs where a folder is named.
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

    /// Whether a shell or an interpreter reads what to do from its input.
    fn note_reading(&mut self, program: &str, arguments: &[Word]) {
        let is_shell = matches!(program_of(program), Program::Shell);
        let is_input = |value: &str| {
            let letters = value.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            value == "-"
                || value.starts_with("/dev/")
                || value.starts_with("/proc/")
                || (is_shell && letters.is_some_and(|letters| letters.contains('s')))
        };
        // Code in the same word, or only a question about the program.
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

    /// Files behind options, in the same word or the next.
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

    /// Settings of git for one command: they may be commands.
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

    /// A variable that programs take programs, files or options from.
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

/// Whether the value of this option, or what is behind its letter, is a makefile.
fn names_makefile(option: &str) -> bool {
    ["-f", "--f", "--m"].iter().any(|begin| option.starts_with(begin))
}

/// Whether it has `find` run a command in the folder of each file.
fn runs_in_each_folder(word: &Word) -> bool {
    matches!(word.value.as_str(), "-execdir" | "-okdir")
}

/// The value of a word, with the folder that the shell stands in for `$PWD`, which is the workspace or one of those that
/// the command changes into.
fn resolved(word: &Word) -> String {
    let put_in = word.value.matches(HOLE).count();
    let written = word.raw.matches(['$', '`', '<', '>']).count();
    // Only where each of the two is sure to belong to the other; of braces nothing but one hole is left.
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

/// What may be a name in an argument: all of it; of an option, what stands behind `=` or its letters.
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

/// What may be names in a text that some program reads in its own way.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`;|&(){}<>=$!\\:,".contains(c))
}

fn add(names: &mut Vec<String>, name: &str) {
    let is_name = !name.is_empty() && name.len() <= PATH_BYTES_MAX && !name.contains([HOLE, '\0']);
    if is_name && names.len() < NAMES_MAX && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
