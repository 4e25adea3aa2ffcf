//! What a policy means in a folder: the paths that may be written, that may not be read, and that stay as they are.

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use provost_event::{SandboxMode, SandboxPolicy};
use provost_harness::{GrantedFolder, PROTECTED_FILES, PROTECTED_FOLDERS, masked_paths};
use provost_process::MASKED_IN_HOME;

use crate::caches::{Cache, caches, layers};
use crate::denial::real;
use crate::homes::homes;
use crate::repository::{self, Exclude, Kept, Repository};
use crate::shown::Shown;

/// The user and the folders that rules are made for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Provost's folder for state.
    pub state: PathBuf,
    /// The environment, for the folders of tools.
    pub variables: BTreeMap<String, String>,
}

/// What programs and file tools of an agent may do with files.
#[derive(Debug, Clone)]
pub struct FileRules {
    /// The mode they follow from.
    pub mode: SandboxMode,
    /// Where the agent works.
    pub workspace: PathBuf,
    /// What may be written, besides a temporary folder.
    pub write: Vec<PathBuf>,
    /// What may not be read though it is there; without symlinks.
    pub masked: Vec<PathBuf>,
    /// What stays as it is, in a folder that may be written.
    pub protected: Vec<Protected>,
    /// The only folders that may be read; empty: all.
    pub read_only_from: Vec<PathBuf>,
    /// Caches of packages.
    pub caches: Vec<Cache>,
    /// The repository's file of ignored names, which shows covers as ignored in the box.
    pub exclude: Option<Exclude>,
    /// Folders of which only some entries are seen.
    pub shown: Vec<Shown>,
    /// What the settings deny to be read.
    pub denied: Vec<PathBuf>,
    /// What can't be protected, and why.
    pub gaps: Vec<String>,
    /// Folders of Provost's that programs use.
    pub granted: Vec<GrantedFolder>,
    /// Folders that aren't there: what programs make of them is kept apart, and only seen in the box.
    pub private: Vec<PrivateFolder>,
}

/// A folder of which only the agent's programs know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFolder {
    /// Where they see it.
    pub place: PathBuf,
    /// Where it is.
    pub source: PathBuf,
}

/// A path that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// The path.
    pub path: PathBuf,
    /// What covers it.
    pub cover: Cover,
}

/// What covers a protected path in the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// Itself, read-only.
    Itself,
    /// Itself, writable: so that it can't be renamed.
    Pinned,
    /// It isn't there: an empty folder.
    EmptyFolder,
    /// It isn't there: an empty file.
    EmptyFile,
    /// It isn't there: a file that can't be opened, which version control doesn't see.
    Nothing,
    /// It isn't there, and an empty one would be an error: a file that names the folder it is in.
    ThisFolder,
}

/// Folders of the system that programs need in the mode `strict`.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/run/current-system",
];
/// Folders of tools below a home folder that they need too.
const TOOLS: &[&str] = &[
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".asdf",
    ".local/share/mise",
    ".local/share/uv",
    ".local/bin",
    ".deno",
    ".bun",
    ".sdkman",
    ".gitconfig",
    ".config/git",
];
/// Files of projects that usually hold secrets.
const ENVIRONMENT_FILES: &[&str] =
    &[".env", ".env.local", ".env.development", ".env.production", ".env.test"];
/// Folders beside a workspace, and in the home folder, that are looked into for such files.
const SIBLINGS_MAX: usize = 500;
/// Those of them whose name stands for nothing else: what an agent makes there isn't run by others.
const PRIVATE_VENVS: &[&str] = &[".venv", "venv"];
/// Settings of agents that are files at the top of a workspace. Where they aren't there they can't be covered: agents fail
/// at one that they can't read.
const AGENTS_FILES: &[&str] = &[".mcp.json", "opencode.json", "opencode.jsonc", ".aider.conf.yml"];
/// Folders that may hold a virtual environment of Python.
const VENVS: &[&str] = &[".venv", "venv", "env"];

impl FileRules {
    /// The rules of `policy` for an agent in `workspace`.
    #[must_use]
    pub fn new(policy: &SandboxPolicy, workspace: &Path, places: &Places) -> Self {
        let mode = policy.mode;
        let writes = matches!(mode, SandboxMode::Workspace | SandboxMode::Strict);
        let mut rules = Self {
            mode,
            workspace: workspace.to_owned(),
            write: Vec::new(),
            masked: masked(policy, workspace, places),
            shown: Vec::new(),
            denied: policy.deny_read.iter().map(|path| real(path)).collect(),
            protected: Vec::new(),
            read_only_from: Vec::new(),
            caches: caches(places, workspace),
            exclude: None,
            gaps: Vec::new(),
            granted: Vec::new(),
            private: Vec::new(),
        };
        if mode == SandboxMode::Strict {
            rules.read_only_from = strict_reads(places, workspace, policy);
        }
        if writes {
            rules.write.push(workspace.to_owned());
            rules.write.extend(policy.write.iter().filter_map(|path| path.canonicalize().ok()));
            let home = places.home.as_deref();
            let mut kept = rules.protect(workspace, home);
            let others = rules.write.iter().skip(1).filter(|path| path.join(".git").exists());
            let others = others.filter_map(|path| repository::of(path, home)).collect::<Vec<_>>();
            for other in others {
                rules.protected.extend(other.protected);
                kept.extend(other.kept);
            }
            let scripts = policy.protect.iter().cloned();
            kept.extend(scripts.map(|path| Kept { path, absent: Cover::Itself }));
            kept.extend(settings_folder(places).map(|path| Kept { path, absent: Cover::EmptyFolder }));
            kept.retain(|kept| !rules.masked.contains(&kept.path));
            kept.iter().for_each(|kept| rules.keep(kept));
            rules.masked.clone().iter().for_each(|masked| rules.keep_above(masked));
            let layers = layers(places, workspace);
            rules.private = private_venvs(workspace, &layers);
            rules.private.retain(|private| !policy.write.contains(&private.place));
        }
        if mode != SandboxMode::Strict {
            rules.show_home(places);
        }
        rules.deny_what_is_absent();
        rules
    }

    /// Protects what is at the top of a workspace. Returns what lies further below.
    fn protect(&mut self, workspace: &Path, home: Option<&Path>) -> Vec<Kept> {
        if is_symlink(&workspace.join(".git")) {
            self.gaps
                .push(format!("{} is a symlink, which can't be protected", workspace.join(".git").display()));
        }
        let found = repository::of(workspace, home).unwrap_or_default();
        let Repository { write, protected, exclude, kept, .. } = found;
        self.exclude = exclude;
        self.write.extend(write.into_iter().filter(|path| !path.starts_with(workspace)));
        if protected.is_empty() {
            self.add(workspace.join(".git"), Cover::EmptyFolder);
        }
        self.protected.extend(protected);
        self.no_bare_repository(workspace);
        PROTECTED_FOLDERS.iter().for_each(|name| self.add(workspace.join(name), Cover::EmptyFolder));
        PROTECTED_FILES.iter().for_each(|name| self.add(workspace.join(name), Cover::Nothing));
        AGENTS_FILES.iter().for_each(|name| self.add(workspace.join(name), Cover::Itself));
        for venv in VENVS.iter().map(|name| workspace.join(name)) {
            if venv.join("pyvenv.cfg").is_file() && !is_symlink(&venv) {
                self.protected.push(Protected { path: venv.clone(), cover: Cover::Pinned });
                self.add(venv.join("pyvenv.cfg"), Cover::Itself);
                self.add(venv.join("bin"), Cover::Itself);
            }
        }
        kept
    }

    /// Protects a path; `absent` covers it if it isn't there.
    pub(crate) fn add(&mut self, path: PathBuf, absent: Cover) {
        match path.symlink_metadata() {
            Ok(facts) if facts.is_symlink() => {
                self.gaps.push(format!("{} is a symlink, which can't be protected", path.display()));
            }
            Ok(_) if !is_absent(&path) => self.protected.push(Protected { path, cover: Cover::Itself }),
            _ if absent != Cover::Itself => self.protected.push(Protected { path, cover: absent }),
            _ => {}
        }
    }

    /// Why `path`, absolute and without symlinks, may not be read; `None` if it may.
    #[must_use]
    pub fn read_denied(&self, path: &Path) -> Option<String> {
        let is_within = |all: &[PathBuf]| all.iter().any(|one| path.starts_with(one));
        if let Some(masked) = self.masked.iter().find(|masked| path.starts_with(masked)) {
            // What the agent works in may lie in a folder that is masked.
            let is_own = |own: &PathBuf| path.starts_with(own) && own.starts_with(masked);
            return (!self.write.iter().any(is_own) && !is_own(&self.workspace)).then(|| {
                let why = if self.denied.contains(masked) {
                    "sandbox.deny_read names"
                } else {
                    "credentials or Provost's own state are in"
                };
                format!("{} may not be read: {why} {}", path.display(), masked.display())
            });
        }
        if self.read_only_from.is_empty() || is_within(&self.read_only_from) || is_within(&self.write) {
            return None;
        }
        Some(format!(
            "{} may not be read: in the mode `strict` only the system's folders, the workspace and caches may",
            path.display()
        ))
    }

    /// Why file tools don't have `path`, absolute and without symlinks; `None` if it is in no folder that only programs
    /// see.
    #[must_use]
    pub fn is_private(&self, path: &Path) -> Option<String> {
        let private = self.private.iter().find(|private| path.starts_with(&private.place))?;
        Some(format!(
            "{} is in {}, which only commands in the sandbox have: read or write it with a command",
            path.display(),
            private.place.display()
        ))
    }

    /// Why `path`, absolute and without symlinks, may not be written; `None` if it may.
    #[must_use]
    pub fn write_denied(&self, path: &Path) -> Option<String> {
        let shown = path.display();
        let nearest = self.nearest_protected(path);
        if let Some(protected) = nearest.filter(|one| one.cover != Cover::Pinned) {
            return Some(format!(
                "{shown} may not be written: {} decides what runs later, outside of the sandbox",
                protected.path.display()
            ));
        }
        if self.write.iter().any(|one| path.starts_with(one)) {
            return None;
        }
        let cached = self.caches.iter().any(|cache| path.starts_with(&cache.folder));
        if cached || path.starts_with("/tmp") || path.starts_with("/var/tmp") || path.starts_with("/dev") {
            return None;
        }
        Some(match self.mode {
            SandboxMode::ReadOnly => format!("{shown} may not be written: the sandbox is read-only"),
            SandboxMode::Off | SandboxMode::Workspace | SandboxMode::Strict => {
                format!(
                    "{shown} may not be written: it is outside of the workspace {}",
                    self.workspace.display()
                )
            }
        })
    }
}

/// Whether nothing is there, or something empty, such as what another box covers.
pub(crate) fn is_absent(path: &Path) -> bool {
    let Ok(facts) = path.symlink_metadata() else { return true };
    if facts.is_dir() {
        return fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    }
    !facts.is_symlink() && facts.len() == 0
}

/// The virtual environments that aren't there. `python` in one that an agent makes is run by nothing outside.
fn private_venvs(workspace: &Path, layers: &Path) -> Vec<PrivateFolder> {
    let private =
        |name: &&str| PrivateFolder { place: workspace.join(name), source: layers.join("venvs").join(name) };
    PRIVATE_VENVS.iter().map(private).filter(|private| is_absent(&private.place)).collect()
}

fn is_symlink(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_symlink())
}

/// What is never read in a home folder, without what its entries show to be absent.
fn masked_in(home: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(home)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<HashSet<_>>>());
    let is_there = |path: &&Path| {
        let first = path.components().next().map(Component::as_os_str);
        // A folder that can't be listed may have it.
        first.is_none_or(|first| names.as_ref().map_or(true, |names| names.contains(first)))
    };
    MASKED_IN_HOME.iter().map(Path::new).filter(is_there).map(|path| home.join(path)).collect()
}

/// What is there of all that is never read, without symlinks.
fn masked(policy: &SandboxPolicy, workspace: &Path, places: &Places) -> Vec<PathBuf> {
    let mut all = masked_paths(None, Some(&places.state));
    all.extend(homes(places).iter().flat_map(|home| masked_in(home)));
    all.extend(settings_folder(places));
    let cargo = places.variables.get("CARGO_HOME").map(PathBuf::from);
    let files = ["credentials", "credentials.toml"];
    all.extend(cargo.iter().flat_map(|home| files.map(|name| home.join(name))));
    all.extend(
        ["/var/run/docker.sock", "/run/docker.sock", "/run/podman", "/run/containerd"].map(PathBuf::from),
    );
    all.extend(policy.deny_read.iter().cloned());
    all.extend(environment_files(workspace, places.home.as_deref()));
    let mut found = all.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    found.sort();
    found.dedup();
    found
}

/// The folder of the user's settings of Provost, which decide what agents may.
fn settings_folder(places: &Places) -> Option<PathBuf> {
    let given = places.variables.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = given.or_else(|| places.home.as_ref().map(|home| home.join(".config")))?;
    Some(real(&folder.join("provost")))
}

/// Files with secrets of other projects: those beside the workspace, above it, and one folder deep in the home folder.
fn environment_files(workspace: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let above = workspace.ancestors().skip(1).filter(|folder| folder.parent().is_some());
    let beside = workspace.parent().into_iter().chain(home).flat_map(folders_in);
    let folders = above.map(Path::to_owned).chain(home.map(Path::to_owned)).chain(beside);
    let folders = folders.filter(|folder| folder != workspace).collect::<Vec<_>>();
    let files = folders.iter().flat_map(|folder| ENVIRONMENT_FILES.iter().map(|name| folder.join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// The folders in a folder, of a large one only some.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(SIBLINGS_MAX);
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn strict_reads(places: &Places, workspace: &Path, policy: &SandboxPolicy) -> Vec<PathBuf> {
    let mut all = SYSTEM.iter().map(PathBuf::from).collect::<Vec<_>>();
    all.extend(places.home.iter().flat_map(|home| TOOLS.iter().map(|name| home.join(name))));
    all.extend(
        ["RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR"]
            .iter()
            .filter_map(|name| places.variables.get(*name))
            .map(PathBuf::from),
    );
    let path = places.variables.get("PATH").map(std::ffi::OsStr::new);
    all.extend(path.into_iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute()));
    all.push(workspace.to_owned());
    all.extend(policy.write.iter().cloned());
    all.into_iter().filter(|path| path.exists()).collect()
}
