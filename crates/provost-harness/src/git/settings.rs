//! The few git settings without which it would misread a repository: numbers, switches and names of formats. Each
//! value is checked, so that no value of a repository's settings can inject other settings.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum bytes read of a settings file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A setting copied from the repository: its section, its name, and its allowed values.
const TAKEN: [(&str, &str, &[&str]); 14] = [
    ("core", "repositoryformatversion", &["0", "1"]),
    ("core", "filemode", SWITCH),
    ("core", "symlinks", SWITCH),
    ("core", "ignorecase", SWITCH),
    ("core", "precomposeunicode", SWITCH),
    ("core", "trustctime", SWITCH),
    ("core", "longpaths", SWITCH),
    ("core", "sparsecheckout", SWITCH),
    ("core", "sparsecheckoutcone", SWITCH),
    ("core", "checkstat", &["default", "minimal"]),
    ("core", "autocrlf", &["true", "false", "input"]),
    ("core", "eol", &["lf", "crlf", "native"]),
    ("extensions", "objectformat", &["sha1", "sha256"]),
    ("extensions", "refstorage", &["files", "reftable"]),
];
const SWITCH: &[&str] = &["true", "false"];

/// Extensions of a repository's format that don't affect reading it.
const HARMLESS: [&str; 6] =
    ["noop", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees", "compatobjectformat"];

/// A line of a settings file, in lower case except for its value.
struct Setting {
    section: String,
    name: String,
    value: String,
}

/// The text of the settings that replace those in the folder `common`. Blocking.
///
/// # Errors
/// The name of an unknown extension: the repository's data can't be interpreted then.
pub(super) fn of_repository(common: &Path) -> Result<String, String> {
    let settings = read(&common.join("config"));
    let unknown = settings.iter().find(|setting| {
        setting.section == "extensions"
            && !HARMLESS.contains(&setting.name.as_str())
            && !TAKEN.iter().any(|(section, name, _)| *section == "extensions" && *name == setting.name)
    });
    if let Some(unknown) = unknown {
        return Err(format!("unknown repository extension: {}", unknown.name));
    }
    let mut text = "[core]\n\tbare = false\n".to_owned();
    for (section, name, values) in TAKEN {
        let last = settings.iter().rev().find(|setting| setting.section == section && setting.name == name);
        let value = last.and_then(|setting| values.iter().find(|value| **value == setting.value));
        if let Some(value) = value {
            text.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
        }
    }
    Ok(text)
}

/// The files with the user's own git settings, the later ones first.
pub(super) fn user_files(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, value)| PathBuf::from(value));
    home.map(|home| vec![home.join(".gitconfig"), home.join(".config/git/config")]).unwrap_or_default()
}

/// The user's global ignore rules and line end settings, as arguments for the stand-in's settings. Blocking.
pub(super) fn of_user(files: &[PathBuf]) -> String {
    let settings: Vec<Setting> = files.iter().flat_map(|file| read(file).into_iter().rev()).collect();
    let value = |name: &str| {
        settings
            .iter()
            .find(|setting| setting.section == "core" && setting.name == name)
            .map(|found| &found.value)
    };
    let mut text = String::new();
    if let Some(path) = value("excludesfile").filter(|path| !path.contains(['"', '\\', '\n', '\r', '\0'])) {
        text.push_str(&format!("[core]\n\texcludesFile = \"{path}\"\n"));
    }
    if let Some(value) =
        value("autocrlf").filter(|value| ["true", "false", "input"].contains(&value.as_str()))
    {
        text.push_str(&format!("[core]\n\tautocrlf = {value}\n"));
    }
    text
}

/// The settings in a file without a sub-section, if each is one plain line.
fn read(path: &Path) -> Vec<Setting> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX);
    let bytes = is_small.then(|| fs::read(path).ok()).flatten().unwrap_or_default();
    let (mut section, mut settings) = (None, Vec::new());
    for line in String::from_utf8_lossy(&bytes).lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let is_plain = header.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
            section = is_plain.then(|| header.to_ascii_lowercase());
            line = rest.trim();
        }
        let Some(section) = section.clone().filter(|_| !line.is_empty() && !line.starts_with(['#', ';']))
        else {
            continue;
        };
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = value.split([';', '#']).next().unwrap_or_default().trim().trim_matches('"');
        let value = if value.len() <= 6 { value.to_ascii_lowercase() } else { value.to_owned() };
        settings.push(Setting { section, name: name.trim().to_ascii_lowercase(), value });
    }
    settings
}
