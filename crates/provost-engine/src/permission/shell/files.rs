//! Which files a command names as scripts: what it runs is in them, and not in its text.

use super::super::glob::HOLE;
use super::program::{Program, program_of};
use super::scan::Word;

/// Names looked at in one command.
const NAMES_MAX: usize = 64;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 4_096;

/// Files that a command may run as scripts, as it names them: programs given by their paths, and arguments of shells,
/// interpreters, `source` and `make`. What of them is a file shows where it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptNames {
    /// The files.
    pub files: Vec<String>,
    /// The folders that the command changes into, from which the files may be named.
    pub folders: Vec<String>,
}

impl ScriptNames {
    /// Notes what a command of these words names; `program` is its name without its folder, in lower case.
    pub(super) fn note(&mut self, program: &str, first: &Word, arguments: &[Word]) {
        if first.value.contains('/') {
            add(&mut self.files, &first.value);
        }
        let values = arguments.iter().map(|word| word.value.as_str());
        match program {
            "cd" | "pushd" => values.for_each(|value| add(&mut self.folders, value)),
            "." | "source" | "make" | "gmake" => values.for_each(|value| add(&mut self.files, value)),
            _ => match program_of(program) {
                Program::Shell | Program::Interpreter => values.for_each(|value| add(&mut self.files, value)),
                Program::Awk | Program::Sed => {
                    let behind = arguments
                        .windows(2)
                        .filter(|pair| matches!(pair, [flag, _] if is_file_flag(&flag.value)));
                    behind.filter_map(|pair| pair.last()).for_each(|word| add(&mut self.files, &word.value));
                    values.filter_map(attached).for_each(|value| add(&mut self.files, value));
                }
                _ => {}
            },
        }
    }

    /// Notes the file that a shell or interpreter reads from its input.
    pub(super) fn note_input(&mut self, first: Option<&Word>, written: &[String]) {
        let program =
            first.map(|word| word.value.rsplit('/').next().unwrap_or_default().to_ascii_lowercase());
        let reads = |name: &String| matches!(program_of(name), Program::Shell | Program::Interpreter);
        if !program.as_ref().is_some_and(reads) {
            return;
        }
        let inputs = written.iter().filter_map(|text| text.trim_start_matches('0').strip_prefix('<'));
        for file in inputs.filter(|file| !file.starts_with(['<', '(', '&'])) {
            add(&mut self.files, file.trim().trim_matches(['\'', '"']));
        }
    }
}

fn is_file_flag(word: &str) -> bool {
    matches!(word, "-f" | "--file" | "-i" | "--include" | "-E" | "--exec")
}

/// The file in an option that has it in one word.
fn attached(word: &str) -> Option<&str> {
    word.strip_prefix("--file=").or_else(|| word.strip_prefix("-f")).filter(|file| !file.is_empty())
}

fn add(names: &mut Vec<String>, name: &str) {
    // An option may have its file behind `=`: `node --require=./hook.js`.
    let name = match name.strip_prefix('-') {
        Some(option) => option.split_once('=').map_or("", |(_, file)| file),
        None => name,
    };
    let is_name = !name.is_empty() && name.len() <= PATH_BYTES_MAX && !name.contains([HOLE, '\0', '\n']);
    if is_name && names.len() < NAMES_MAX && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
