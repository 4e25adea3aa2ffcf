//! Skills: folders with a `SKILL.md`, whose front matter says what it is for and whose body an agent gets when it asks
//! for it. The user's own count everywhere; a project's only as the user has agreed to them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::errors::ConfigError;
use crate::project::{Project, ProjectFile, ProjectRequest};
use crate::trust::{TrustStore, Trusted};

/// The file of a skill.
const FILE: &str = "SKILL.md";
/// The folders in a project that have skills in them.
const PROJECT_FOLDERS: [&str; 2] = [".provost/skills", ".claude/skills"];
/// The folder beside the user's settings.
const USER_FOLDER: &str = "skills";
/// The line before and after the front matter.
const FENCE: &str = "---";

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum skills.
const COUNT_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 64;
/// Maximum characters of a description; a longer one is cut.
const DESCRIPTION_CHARS_MAX: usize = 500;

/// A skill that agents may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for, as one line.
    pub description: String,
    /// What an agent gets when it asks for it.
    pub body: String,
    /// Its file.
    pub file: PathBuf,
}

/// A skill that isn't used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSkill {
    /// Its file.
    pub file: PathBuf,
    /// Why, in words that follow the file.
    pub why: String,
}

/// The skills of the user and of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// Those that agents may use, by name.
    pub usable: Vec<Skill>,
    /// The others.
    pub skipped: Vec<SkippedSkill>,
    /// Those of the project, agreed to or not.
    of_project: Vec<(ProjectFile, ProjectRequest)>,
}

impl Skills {
    /// Finds the skills beside the user's settings, `user_file`, and in the folder of a project, by what is trusted in
    /// `store`. Of several with one name the user's own counts, then the first.
    ///
    /// # Errors
    /// When what is trusted can't be read.
    pub fn find(user_file: &Path, project: &Path, store: &TrustStore) -> Result<Self, ConfigError> {
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let mut skills = Self::default();
        let mut names = BTreeSet::new();
        let users = user_file.parent().map(|folder| folder.join(USER_FOLDER));
        for file in users.iter().flat_map(|folder| files_in(folder)) {
            let read = read(&file, None).map(|text| (text, true));
            skills.take(file, read, &mut names);
        }
        let projects = PROJECT_FOLDERS.iter().flat_map(|folder| files_in(&project.join(folder)));
        let projects = projects.collect::<Vec<_>>();
        if projects.is_empty() {
            return Ok(skills);
        }
        let trusted = store.all()?.remove(&project).unwrap_or_default();
        for file in projects {
            let read = read(&file, Some(&project));
            let read = read.map(|text| {
                let is_agreed = skills.note_of_project(&project, &file, &text, &trusted);
                (text, is_agreed)
            });
            skills.take(file, read, &mut names);
        }
        Ok(skills)
    }

    /// `project` with its skills among what needs the user's consent.
    #[must_use]
    pub fn with_requests(&self, mut project: Project) -> Project {
        for (file, request) in self.of_project.iter().cloned() {
            project.files.push(file);
            project.requests.push(request);
        }
        project
    }

    /// Notes what the user would agree to; returns whether they have.
    fn note_of_project(&mut self, project: &Path, file: &Path, text: &str, trusted: &Trusted) -> bool {
        let name = file.strip_prefix(project).unwrap_or(file).to_string_lossy().into_owned();
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        let is_agreed = trusted.files.get(&name).is_some_and(|file| file.blake3 == hash);
        let request = ProjectRequest {
            file: name.clone(),
            place: name.clone(),
            what: "tells agents how to do something when they use this skill".to_owned(),
            body: text.to_owned(),
        };
        self.of_project.push((ProjectFile { name, hash }, request));
        is_agreed
    }

    fn take(&mut self, file: PathBuf, read: Result<(String, bool), String>, names: &mut BTreeSet<String>) {
        let parsed = read.and_then(|(text, is_agreed)| Ok((parsed(&text)?, is_agreed)));
        let why = match parsed {
            Err(why) => why,
            Ok((_, false)) => "isn't used before you agree to it: `provost trust`".to_owned(),
            Ok((skill, true)) if names.contains(&skill.name) => {
                format!("isn't used: there is another skill `{}`", skill.name)
            }
            Ok(_) if self.usable.len() >= COUNT_MAX => {
                format!("isn't used: there are more than {COUNT_MAX} skills")
            }
            Ok((skill, true)) => {
                names.insert(skill.name.clone());
                return self.usable.push(Skill { file, ..skill });
            }
        };
        self.skipped.push(SkippedSkill { file, why });
    }
}

/// The files of the skills in a folder, in the order of their folders' names.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files =
        entries.map(|entry| entry.path().join(FILE)).filter(|file| file.is_file()).collect::<Vec<_>>();
    files.sort_unstable();
    files
}

/// The text of a file that doesn't lead out of the folder `within`, or why it doesn't count.
fn read(file: &Path, within: Option<&Path>) -> Result<String, String> {
    let cant = |error: std::io::Error| format!("can't be read: {error}");
    let real = file.canonicalize().map_err(cant)?;
    if within.is_some_and(|within| !real.starts_with(within)) {
        return Err("leads out of the project: it doesn't count".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(&real).map_err(cant)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cant)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is longer than {} KiB: it doesn't count", FILE_BYTES_MAX / 1024));
    }
    String::from_utf8(bytes).map_err(|_| "isn't UTF-8: it doesn't count".to_owned())
}

/// What the front matter says; other fields are for other programs.
#[derive(Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// The skill that a file describes, or why it describes none.
fn parsed(text: &str) -> Result<Skill, String> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let none = || {
        format!(
            "has no front matter: its first line must be `{FENCE}`, then `name: …`, `description: …` and `{FENCE}`"
        )
    };
    let rest = text.strip_prefix(FENCE).and_then(|rest| rest.strip_prefix('\n')).ok_or_else(none)?;
    let (front, body) = rest
        .split_once(&format!("\n{FENCE}\n"))
        .or_else(|| Some((rest.strip_suffix(&format!("\n{FENCE}"))?, "")))
        .ok_or_else(|| format!("has front matter that isn't closed: a line `{FENCE}` must end it"))?;
    let front: FrontMatter = serde_saphyr::from_str(front).map_err(|error| {
        let error = error.to_string();
        format!("has front matter that can't be read: {}", error.lines().next().unwrap_or_default())
    })?;
    let field = |name: &str, value: Option<String>| {
        let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("has no `{name}` in its front matter"))
    };
    let name = field("name", front.name)?;
    let is_name = name.len() <= NAME_CHARS_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !is_name {
        return Err(format!(
            "has the name `{name}`: letters, digits, `-` and `_` are possible, at most {NAME_CHARS_MAX}"
        ));
    }
    let description = field("description", front.description)?;
    let description = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    Ok(Skill { name, description, body: body.trim().to_owned(), file: PathBuf::new() })
}
