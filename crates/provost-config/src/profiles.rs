//! The profiles that say what the screens of external programs mean: the built-in ones, and the user's own over
//! them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use provost_terminal::{Profile, ProfileError};

use crate::{ConfigError, Problem, Problems, Source, Spot, nearest};

/// The folder of the user's own, beside the user's settings file.
const FOLDER: &str = "profiles";
const ENDING: &str = "toml";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// All profiles there are.
pub struct Profiles {
    /// The user's own, by name.
    own: Vec<(PathBuf, Profile)>,
    folder: PathBuf,
}

impl Profiles {
    /// The built-in ones, and those in the folder beside `user_file`, which need not exist.
    ///
    /// # Errors
    /// [`Problems`] that name the file and the line of each that is no profile.
    pub fn load(user_file: &Path) -> Result<Self, Problems> {
        let folder = user_file.with_file_name(FOLDER);
        let mut files = match files_in(&folder) {
            Ok(files) => files,
            Err(error) => return Err(Problems(vec![wrong(&folder, 0, format!("can't be read: {error}"))])),
        };
        files.sort();
        let (mut own, mut problems) = (Vec::with_capacity(files.len()), Vec::new());
        for file in files {
            match read_profile(&file) {
                Ok(profile) => own.push((file, profile)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(Self { own, folder }) } else { Err(Problems(problems)) }
    }

    /// The user's own.
    pub fn own(&self) -> Vec<Profile> {
        self.own.iter().map(|(_, profile)| profile.clone()).collect()
    }

    /// Each with the file that it stands in, unless it is built in; the user's own first. A built-in one of the
    /// same name isn't among them.
    pub fn all(&self) -> Vec<(Option<&Path>, Profile)> {
        let own = self.own.iter().map(|(file, profile)| (Some(file.as_path()), profile.clone()));
        let is_own = |profile: &Profile| self.own.iter().any(|(_, own)| own.name == profile.name);
        let shipped = Profile::shipped().into_iter().filter(|profile| !is_own(profile));
        own.chain(shipped.map(|profile| (None, profile))).collect()
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownProfile`], which says which there are.
    pub fn named(&self, name: &str) -> Result<Profile, ConfigError> {
        let mut all = self.all().into_iter().map(|(_, profile)| profile);
        if let Some(profile) = all.find(|profile| profile.name == name) {
            return Ok(profile);
        }
        let names = self.all().into_iter().map(|(_, profile)| profile.name).collect::<Vec<_>>();
        let remedy = match nearest(name, names.iter().cloned()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}; your own go into {}", names.join(", "), self.folder.display()),
        };
        Err(ConfigError::UnknownProfile { name: name.to_owned(), remedy })
    }

    /// The one that matches this command; the generic one if none does.
    pub fn for_command(&self, program: &str, args: &[String]) -> Profile {
        let own = self.own.iter().map(|(_, profile)| profile).find(|profile| profile.is_for(program, args));
        let shipped = || Profile::for_command(program, args);
        let found = own.cloned().unwrap_or_else(shipped);
        // The user's own generic profile replaces the built-in one here too.
        self.own.iter().map(|(_, own)| own).find(|own| own.name == found.name).cloned().unwrap_or(found)
    }
}

fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == ENDING)).collect())
}

/// Reads a profile, called by its file's name where it names itself nothing else.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read_profile(file: &Path) -> Result<Profile, Problem> {
    let cant = |error: std::io::Error| wrong(file, 0, format!("can't be read: {error}"));
    let length = std::fs::metadata(file).map_err(cant)?.len();
    if length > FILE_BYTES_MAX {
        return Err(wrong(file, 0, format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(cant)?;
    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Profile::parse(&name, &text).map_err(|error| match error {
        ProfileError::Rule { line, rule, message, .. } => {
            wrong(file, line, format!("rule `{rule}`: {message}"))
        }
        other => wrong(file, 0, other.to_string()),
    })
}

fn wrong(file: &Path, line: usize, what: String) -> Problem {
    let mut spot = Spot::at(&file.display().to_string(), "", 0);
    spot.line = line.max(1);
    let remedy = "correct it, or move it elsewhere".to_owned();
    Problem { source: Source::File(spot), key: String::new(), what, remedy }
}
