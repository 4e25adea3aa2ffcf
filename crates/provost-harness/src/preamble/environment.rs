//! The place that an agent works in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::listing::Listing;
use crate::fence::{Label, spelled};
use crate::git::{Git, GitError};

/// Maximum bytes of the text.
pub const ENVIRONMENT_BYTES_MAX: usize = 1_536;
/// Maximum names of files and folders in it.
const NAMES_MAX: usize = 60;
/// Names that are left out at a time where the text would be too long.
const NAMES_STEP: usize = 5;
/// Maximum characters of a value.
const VALUE_CHARS_MAX: usize = 80;
/// Time limit of the question what has changed in the work tree.
const GIT_MAX: Duration = Duration::from_secs(5);

/// Programs that decide how a project is built, tested and searched.
const PROGRAMS: [&str; 44] = [
    "git", "rg", "fd", "jq", "curl", "wget", "tmux", "make", "cmake", "ninja", "gcc", "clang", "gdb",
    "cargo", "rustc", "go", "java", "mvn", "gradle", "node", "npm", "pnpm", "yarn", "bun", "deno", "python3",
    "python", "pip", "uv", "poetry", "pytest", "ruby", "bundle", "php", "perl", "dotnet", "swift", "zig",
    "docker", "podman", "sqlite3", "psql", "gh", "ffmpeg",
];

/// What only the calling program knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Today's date.
    pub date: String,
    /// The user's name.
    pub user: Option<String>,
    /// The folders that programs are looked for in: `PATH`.
    pub path: String,
    /// The limits of the run, in words.
    pub limits: String,
}

/// What is worth to know of `workspace` and the machine: at most [`ENVIRONMENT_BYTES_MAX`] bytes. What can't be found
/// out is left out.
pub async fn environment(workspace: &Path, facts: HostFacts) -> String {
    let git = git_in_words(workspace).await;
    let folder = workspace.to_owned();
    let look = move || {
        let programs = Programs::on(&facts.path);
        let lines = [
            ("date", Some(facts.date)),
            ("system", Some(system())),
            ("shell", Some(if programs.has("bash") { "bash" } else { "sh" }.to_owned())),
            ("user", facts.user),
            ("network", network().map(str::to_owned)),
            ("git", git),
            ("programs", Some(programs.known().join(" "))),
            ("limits", Some(facts.limits).filter(|limits| !limits.is_empty())),
        ];
        let lines = lines.into_iter().filter_map(|(name, value)| Some(line(name, &value?)));
        fitting(&lines.collect::<String>(), &Listing::of(&folder))
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn line(name: &str, value: &str) -> String {
    let value = if name == "programs" { value.to_owned() } else { short(value) };
    format!("{name}: {value}\n")
}

/// As one line without anything that would make it look like something else.
fn short(value: &str) -> String {
    let value = spelled(value);
    if value.chars().count() <= VALUE_CHARS_MAX {
        return value;
    }
    value.chars().take(VALUE_CHARS_MAX).chain(['…']).collect()
}

/// The text with as many names as there is room for.
fn fitting(facts: &str, listing: &Listing) -> String {
    let with = |names: usize| {
        let (shown, is_whole) = listing.lines(names);
        let mut text = format!("Where you work, as of the beginning of the run:\n{facts}");
        if !shown.is_empty() {
            let rest = if is_whole { "" } else { "; … stands for more" };
            text.push_str(&format!("Names in the workspace, two deep, quoted{rest}:\n"));
            text.extend(shown.iter().map(|line| Label::Name.quote_line(line)));
        }
        text
    };
    let counts = (0..=NAMES_MAX).rev().step_by(NAMES_STEP);
    counts.map(with).find(|text| text.len() <= ENVIRONMENT_BYTES_MAX).unwrap_or_default()
}

fn system() -> String {
    let about = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map(|name| format!(", {}", name.trim_matches('"'))).unwrap_or_default();
    format!("{} {}{name}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Whether anything beyond this machine can be addressed; `None` where that isn't known.
fn network() -> Option<&'static str> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let routes6 = std::fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    let is_out = routes.lines().skip(1).any(|route| route.split_whitespace().next() != Some("lo"));
    let is_out6 = routes6.lines().any(|route| {
        let is_default = route.starts_with("00000000000000000000000000000000 00 ");
        is_default && !route.trim_end().ends_with(" lo")
    });
    Some(if is_out || is_out6 { "there is a route out" } else { "none beyond this machine" })
}

/// The branch and how much has changed since its last commit.
async fn git_in_words(workspace: &Path) -> Option<String> {
    let cancel = CancellationToken::new();
    let git = match Git::within(workspace, &cancel).await {
        Ok(git) => git.inspecting(Vec::new()).await,
        Err(GitError::Refused(_)) => return Some("not a repository".to_owned()),
        Err(_) => return None,
    };
    let arguments = ["status", "--porcelain=v1", "--branch", "--untracked-files=normal"];
    let said = git.run(GIT_MAX, arguments.map(OsStr::new)).await.ok()?;
    let (branch, rest) = said.split_once('\n').unwrap_or((&said, ""));
    let branch = branch.trim_start_matches("## ").split("...").next().unwrap_or_default();
    let branch = branch
        .strip_prefix("No commits yet on ")
        .map_or_else(|| branch.to_owned(), |b| format!("{b} without commits"));
    let untracked = rest.lines().filter(|line| line.starts_with("??")).count();
    let changed = rest.lines().count().saturating_sub(untracked);
    Some(match (changed, untracked) {
        (0, 0) => format!("branch {branch}, nothing changed"),
        _ => format!("branch {branch}, {changed} changed, {untracked} untracked"),
    })
}

/// Which programs can be started.
struct Programs {
    folders: Vec<PathBuf>,
}

impl Programs {
    fn on(path: &str) -> Self {
        Self { folders: std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.folders.iter().any(|folder| is_program(&folder.join(name)))
    }

    fn known(&self) -> Vec<&'static str> {
        PROGRAMS.into_iter().filter(|name| self.has(name)).collect()
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
