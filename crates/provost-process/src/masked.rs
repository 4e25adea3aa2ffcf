//! Files that nothing that works for an agent may read: credentials, keyrings, and Provost's own state.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Masked files and folders below the user's home folder.
pub const MASKED_IN_HOME: &[&str] = &[
    // Remote access and encryption keys.
    ".ssh",
    ".gnupg",
    ".config/age",
    ".config/sops",
    // Clouds and clusters.
    ".config/rclone/rclone.conf",
    ".aws",
    ".azure",
    ".oci",
    ".kube",
    ".fly",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/heroku",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    // Package and container registries.
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    ".docker/config.json",
    ".config/containers/auth.json",
    // Code hosts, servers and databases.
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    // Logins of agent programs.
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".config/github-copilot",
    // Browsers.
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    ".thunderbird",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Cookies",
    "Library/Safari",
    // Keyrings and password stores.
    ".config/1Password",
    ".config/Bitwarden",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    ".config/op",
    ".config/keepassxc",
    "Library/Keychains",
    // What was typed: commands with passwords in them.
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
];

/// The same for the whole machine.
const OF_MACHINE: &[&str] =
    &["/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private"];

/// The folder with the state of processes: each one's environment and memory.
const PROCESSES: &str = "/proc";

/// Files and folders that stay hidden, with everything in them. Paths are absolute; the place that a link leads to is
/// hidden as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedPaths {
    paths: Vec<PathBuf>,
}

impl MaskedPaths {
    /// The built-in list for the home folder of this process's user, as the environment names it.
    #[must_use]
    pub fn of_user() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Self::of_home(home.as_deref())
    }

    /// The built-in list for this home folder; without one only what is masked for the whole machine.
    #[must_use]
    pub fn of_home(home: Option<&Path>) -> Self {
        let of_home = home.into_iter().flat_map(|home| MASKED_IN_HOME.iter().map(|path| home.join(path)));
        Self::default().and(of_home.chain(OF_MACHINE.iter().map(PathBuf::from)))
    }

    /// The same and these: Provost's own state, files with keys.
    #[must_use]
    pub fn and(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        for path in paths {
            let real = path.canonicalize().ok().filter(|real| *real != path);
            self.paths.extend(std::iter::once(path).chain(real));
        }
        self
    }

    /// All of them, for what confines programs.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// Whether `path`, absolute and without links, is hidden from what works in `workspace`. A masked folder that
    /// contains the workspace hides nothing of the workspace itself.
    #[must_use]
    pub fn hides(&self, path: &Path, workspace: &Path) -> bool {
        let is_own = |masked: &Path| is_in(workspace, masked) && path.starts_with(workspace);
        self.paths().any(|masked| is_in(path, masked) && !is_own(masked)) || is_of_process(path)
    }
}

/// Whether `path` is `folder` or in it. Upper and lower case are the same, as in some file systems.
fn is_in(path: &Path, folder: &Path) -> bool {
    let mut names = path.components();
    folder.components().all(|name| {
        names.next().is_some_and(|other| other.as_os_str().eq_ignore_ascii_case(name.as_os_str()))
    })
}

/// Whether it belongs to the state of a process: `/proc/self/environ`, `/proc/1/mem`.
fn is_of_process(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(PROCESSES) else { return false };
    let is_process = |name: &OsStr| {
        let name = name.to_string_lossy();
        name == "self" || name == "thread-self" || name.chars().all(|c| c.is_ascii_digit())
    };
    matches!(rest.components().next(), Some(Component::Normal(name)) if is_process(name))
}
