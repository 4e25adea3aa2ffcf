//! `[sandbox]`: what agents' programs and file tools may read, write and reach.

use std::path::{Path, PathBuf};

use provost_event::{SandboxLimits, SandboxMode, SandboxNetwork, SandboxPolicy};

use crate::Settings;
use crate::declare::{Kind, Setting, SettingDefault};
use crate::errors::Source;
use crate::hook_scripts::hook_scripts;
use crate::project::{Before, ProjectRequest};
use crate::value::variable_name;
use crate::{FILE_NAME, Loading};

/// What `[sandbox]` is for.
pub(crate) const SANDBOX_WORDS: &str = "What the programs and file tools of agents may read, write and reach, whatever \
    they are told. See docs/sandbox.md. A project's file may only narrow it; what it widens must be trusted first.";
/// What `[sandbox.limits]` is for.
pub(crate) const LIMITS_WORDS: &str = "Limits of each program in the sandbox.";

/// The sandbox as the settings have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether nothing is started where no sandbox is possible.
    pub require: bool,
    /// What may be written besides, as it was written.
    pub write: Vec<String>,
    /// What may not be read besides, as it was written.
    pub deny_read: Vec<String>,
    /// What of the network is reached.
    pub network: SandboxNetwork,
    /// The hosts that the proxy reaches.
    pub allow_hosts: Vec<String>,
    /// Variables that programs get besides.
    pub env: Vec<String>,
    /// Whether hooks are confined too.
    pub hooks: bool,
    /// Whether external agents are confined too.
    pub external: bool,
    /// Limits of each program.
    pub limits: SandboxLimits,
}

/// The home folder of this user, if there is one.
#[must_use]
pub fn home_folder() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

impl SandboxSettings {
    /// The same with this mode, if it has none. What isn't confined by it then says nothing of hooks and external agents.
    pub(crate) fn assuming(&self, mode: SandboxMode) -> Self {
        if self.mode != SandboxMode::Off || mode == SandboxMode::Off {
            return self.clone();
        }
        Self { mode, external: false, hooks: false, ..self.clone() }
    }

    /// The policy of agents in `workspace`, of a user with this home folder.
    pub fn policy(&self, workspace: &Path, home: Option<&Path>) -> SandboxPolicy {
        if self.mode == SandboxMode::Off {
            return SandboxPolicy::default();
        }
        let paths = |all: &[String]| all.iter().map(|text| absolute(text, workspace, home)).collect();
        SandboxPolicy {
            mode: self.mode,
            require: self.require,
            write: paths(&self.write),
            deny_read: paths(&self.deny_read),
            protect: Vec::new(),
            network: self.network,
            allow_hosts: self.allow_hosts.clone(),
            env: self.env.clone(),
            limits: self.limits,
            hooks: self.hooks,
        }
    }
}

impl Settings {
    /// The policy of the sandbox for agents in `workspace`, of a user with this home folder.
    pub fn sandbox_policy(&self, workspace: &Path, home: Option<&Path>) -> SandboxPolicy {
        let policy = self.sandbox.policy(workspace, home);
        if policy.is_off() {
            return policy;
        }
        SandboxPolicy { protect: hook_scripts(self, workspace), ..policy }
    }
}

/// A path of the settings: below the home folder with `~/`, else relative to the workspace.
fn absolute(text: &str, workspace: &Path, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => workspace.join(text),
    }
}

/// The settings of the sandbox.
pub(crate) const SANDBOX: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Choice {
            of: &["off", "read-only", "workspace", "strict"],
            put: |s, word| {
                s.sandbox.mode =
                    SandboxMode::ALL.into_iter().find(|mode| mode.name() == word).unwrap_or_default();
            },
        },
        default: SettingDefault::Is(r#""off""#),
        example: r#""workspace""#,
        words: "off: agents' programs have the user's rights. read-only: they write only a temporary folder of their own, \
                and read everything but credentials and Provost's own state. workspace: they write the workspace too. \
                strict: the same, and they read only the system's folders, the workspace and caches. `provost init` \
                writes workspace where that is possible.",
        ..sandbox("mode")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.sandbox.require = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether programs need the sandbox: where none is possible they aren't started. false: they are \
                started unconfined, with a warning.",
        ..sandbox("require")
    },
    Setting {
        kind: Kind::List(|s, text| add(&mut s.sandbox.write, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["../shared-cache"]"#,
        words: "Further folders and files that may be written: absolute, below the home folder with ~/, or \
                relative to the workspace.",
        ..sandbox("write")
    },
    Setting {
        kind: Kind::List(|s, text| {
            if text.contains(['*', '?', '[']) {
                return Err(format!("each must be a file or folder, not a pattern (is `{text}`)"));
            }
            add(&mut s.sandbox.deny_read, text)
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["~/.config/gh"]"#,
        words: "Folders and files that may not be read, besides the built-in list: keys of ssh and of clouds, credentials \
                of registries and browsers, keyrings, shell histories, Provost's own state.",
        ..sandbox("deny_read")
    },
    Setting {
        kind: Kind::Choice {
            of: &["none", "proxy", "open"],
            put: |s, word| {
                let found = SandboxNetwork::ALL.into_iter().find(|network| network.name() == word);
                s.sandbox.network = found.unwrap_or_default();
            },
        },
        default: SettingDefault::Is(r#""none""#),
        example: r#""proxy""#,
        words: "none: programs reach only each other, on a loopback interface of the agent's own. proxy: also the hosts of \
                allow_hosts, through a proxy. open: everything that the user's programs reach.",
        ..sandbox("network")
    },
    Setting {
        kind: Kind::List(|s, text| host(&mut s.sandbox.allow_hosts, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["api.example.com", "*.example.org:443"]"#,
        words: "Hosts that the proxy reaches: a name, `*.` for all names below one, or an address; with a port, else 80 and \
                443. A name that leads to an address of this machine or of a private network is refused unless the \
                address is listed too.",
        ..sandbox("allow_hosts")
    },
    Setting {
        kind: Kind::List(|s, name| {
            s.sandbox.env.push(variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["DATABASE_URL"]"#,
        words: "Further environment variables for programs, also those that look like secrets. A project's file \
                that names any must be trusted first.",
        ..sandbox("env")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.sandbox.hooks = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether hooks and stop hooks that are commands run in the agent's sandbox too. false: they have \
                your rights, and so have files that the agent writes and they run: a Makefile, a test, a build \
                script. The files that their commands name can't be written by the agent either way.",
        ..sandbox("hooks")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.sandbox.external = truth),
        default: SettingDefault::Is("true"),
        example: "false",
        words: "Whether external agents run in the sandbox too. They need their provider's host in allow_hosts then, and \
                their own folder for settings in write; switch their own sandbox off, since sandboxes don't nest.",
        ..sandbox("external")
    },
    Setting {
        kind: Kind::Checked(|s, text| {
            s.sandbox.limits.memory_bytes = Some(size(&text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("no limit"),
        example: r#""8GiB""#,
        words: "Address space of each process.",
        ..limit("memory")
    },
    Setting {
        kind: Kind::Count { min: 1, max: 1_000_000, put: |s, n| s.sandbox.limits.processes = Some(n) },
        default: SettingDefault::Unset("no limit"),
        example: "512",
        words: "Processes and threads of the user in the sandbox. The kernel doesn't count those of root.",
        ..limit("processes")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.sandbox.limits.cpu_time_ms = Some(ms)),
        default: SettingDefault::Unset("no limit"),
        example: r#""1h""#,
        words: "Processor time of each process.",
        ..limit("cpu_time")
    },
    Setting {
        kind: Kind::Checked(|s, text| {
            s.sandbox.limits.file_size_bytes = Some(size(&text)?);
            Ok(())
        }),
        default: SettingDefault::Is(r#""8GiB""#),
        example: r#""2GiB""#,
        words: "Size of each file that is written.",
        ..limit("file_size")
    },
];

const fn sandbox(name: &'static str) -> Setting<Settings> {
    Setting::declared("sandbox", name)
}

const fn limit(name: &'static str) -> Setting<Settings> {
    Setting::declared("sandbox.limits", name)
}

fn add(list: &mut Vec<String>, text: String) -> Result<(), String> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err("each must be a path (is empty, or has control characters)".to_owned());
    }
    list.push(text);
    Ok(())
}

fn host(list: &mut Vec<String>, text: String) -> Result<(), String> {
    let name = text.strip_prefix("*.").unwrap_or(&text);
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!(
            "each must be a host such as api.example.com, *.example.org:443 or 10.0.0.5:5432 (is `{text}`)"
        ));
    }
    list.push(text);
    Ok(())
}

/// A size such as `512MiB`.
fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let wrong = || format!("must be a size such as 512MiB or 2GiB (is `{text}`)");
    let found = UNITS.iter().find_map(|(unit, bytes)| Some((text.trim().strip_suffix(unit)?, bytes)));
    let (number, bytes) = found.ok_or_else(wrong)?;
    let number = number.trim().parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    number.checked_mul(*bytes).ok_or_else(wrong)
}

/// What a project's file widens, compared with the settings before it.
pub(crate) fn widenings(loading: &Loading, before: &Before) -> Vec<ProjectRequest> {
    let now = loading.settings.sandbox.assuming(before.assumed_mode);
    let before = &before.sandbox;
    let mut all = Vec::new();
    let mut add = |source: &Source, what: &str, body: String| {
        if source.is_projects() {
            let (file, place) = (FILE_NAME.to_owned(), source.to_string());
            all.push(ProjectRequest { file, place, what: what.to_owned(), body });
        }
    };
    let was_on = before.mode != SandboxMode::Off;
    for (key, given) in loading.items.iter().filter(|(key, _)| key.starts_with("sandbox.")) {
        let body = format!("{} = {}", key.trim_start_matches("sandbox."), given.shown);
        match key.as_str() {
            "sandbox.write" if was_on => {
                add(&given.source, "lets agents write outside of the workspace", body)
            }
            "sandbox.allow_hosts" if was_on => add(&given.source, "lets agents reach a host", body),
            "sandbox.env" => add(&given.source, "hands a variable to agents' programs", body),
            _ => {}
        }
    }
    if !was_on {
        return all;
    }
    let values = [
        ("mode", now.mode.strictness() < before.mode.strictness(), "confines agents less"),
        ("require", before.require && !now.require, "lets agents' programs run where they can't be confined"),
        (
            "network",
            now.network.openness() > before.network.openness(),
            "lets agents reach more of the network",
        ),
        ("external", before.external && !now.external, "lets external agents run outside of the sandbox"),
        ("hooks", before.hooks && !now.hooks, "lets hooks run outside of the sandbox"),
        ("limits.memory", is_higher(now.limits.memory_bytes, before.limits.memory_bytes), "raises a limit"),
        ("limits.processes", is_higher(now.limits.processes, before.limits.processes), "raises a limit"),
        ("limits.cpu_time", is_higher(now.limits.cpu_time_ms, before.limits.cpu_time_ms), "raises a limit"),
        (
            "limits.file_size",
            is_higher(now.limits.file_size_bytes, before.limits.file_size_bytes),
            "raises a limit",
        ),
    ];
    for (name, _, what) in values.into_iter().filter(|(_, widens, _)| *widens) {
        if let Some(given) = loading.given.get(&format!("sandbox.{name}")) {
            add(&given.source, what, format!("{name} = {}", given.shown));
        }
    }
    all
}

fn is_higher(now: Option<u64>, before: Option<u64>) -> bool {
    before.is_some_and(|before| now.is_none_or(|now| now > before))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{absolute, size};

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size(" 2 GB "), Ok(2_000_000_000));
        for wrong in ["", "5", "GiB", "0B", "-1B", "1.5GiB", "99999999999TiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_are_below_home_or_relative_to_the_workspace() {
        let whole = |text| absolute(text, Path::new("/w"), Some(Path::new("/h"))).display().to_string();
        assert_eq!(whole("~/x"), "/h/x");
        assert_eq!(whole("~"), "/h");
        assert_eq!(whole("../y"), "/w/../y");
        assert_eq!(whole("/z"), "/z");
        assert_eq!(whole("~other/x"), "/w/~other/x");
    }
}
