//! `[engine]`: the distributed engine that runs are kept in, in place of the store of this machine.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::Settings;
use super::declare::{From, Kind, Setting, SettingDefault};

/// What `[engine]` is for.
pub(crate) const ENGINE_WORDS: &str = "The engine: a Restate cluster that keeps runs and hands their work to `provost worker` \
    processes, in place of the store of this machine. See docs/cluster.md.";

/// Maximum bytes of a label.
const LABEL_BYTES_MAX: usize = 63;

/// Where an engine is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineUrl {
    /// The cluster on this machine that `provost cluster up` started.
    Local,
    /// The ingress of its nodes, as `http` or `https` addresses without a path; at least one. Each is asked until one answers.
    At(Vec<String>),
}

/// The port of the ingress where the address names none.
const INGRESS_PORT: u16 = 8080;
/// The port of the admin API.
pub const ENGINE_ADMIN_PORT: u16 = 9070;

impl EngineUrl {
    /// The word for the cluster on this machine.
    pub const LOCAL: &str = "local";
}

impl FromStr for EngineUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "must be restate://HOST:PORT, restates://HOST:PORT for TLS, several hosts with commas between, or {}",
                Self::LOCAL
            )
        };
        if text == Self::LOCAL {
            return Ok(Self::Local);
        }
        let (scheme, hosts) = match (text.strip_prefix("restate://"), text.strip_prefix("restates://")) {
            (Some(hosts), _) => ("http", hosts),
            (None, Some(hosts)) => ("https", hosts),
            (None, None) => return Err(wrong()),
        };
        let address = |host: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
            if host.is_empty() || !host.chars().all(fits) {
                return Err(wrong());
            }
            // In brackets is an address with colons of its own.
            let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
            match behind.rsplit_once(':') {
                Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => {
                    Ok(format!("{scheme}://{host}"))
                }
                Some(_) => Err(wrong()),
                None => Ok(format!("{scheme}://{host}:{INGRESS_PORT}")),
            }
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        Ok(Self::At(hosts.split(',').map(address).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::At(addresses) = self else { return f.write_str(Self::LOCAL) };
        for (at, address) in addresses.iter().enumerate() {
            let (scheme, host) = address.split_once("://").unwrap_or(("http", address));
            let scheme = if scheme == "https" { "restates" } else { "restate" };
            match at {
                0 => write!(f, "{scheme}://{host}")?,
                _ => write!(f, ",{host}")?,
            }
        }
        Ok(())
    }
}

/// Where bodies are kept that are too large for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineBlobs {
    /// A folder that all workers and clients see at this path.
    Folder(PathBuf),
    /// A bucket of an object store, as `s3://BUCKET/PREFIX`.
    Bucket(String),
}

/// A label of a worker: a letter or digit, then letters, digits, `.`, `-` and `_`, at most 63.
///
/// # Errors
/// When it isn't one.
pub fn engine_label(label: String) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let begins = label.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && label.len() <= LABEL_BYTES_MAX && label.chars().all(fits) {
        return Ok(label);
    }
    Err(format!(
        "must be letters, digits, `.`, `-` and `_`, at most {LABEL_BYTES_MAX}, with a letter or digit first (is `{label}`)"
    ))
}

/// The settings of the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSettings {
    /// Where it is; unset: runs are kept on this machine.
    pub url: Option<EngineUrl>,
    /// Its admin API; unset: port 9070 of each host.
    pub admin_url: Option<String>,
    /// The variable with the public key that its requests to workers are signed for.
    pub identity_key_env: Option<String>,
    /// Where large bodies are kept.
    pub blobs: Option<EngineBlobs>,
    /// The label of this machine; unset: its host name.
    pub host: Option<String>,
    /// The labels of workers on this machine besides that one.
    pub labels: Vec<String>,
    /// What the names of Provost's services in the engine begin with; unset: `provost`.
    pub namespace: Option<String>,
    /// Milliseconds that a model or tool call may take before it counts as hung; unset: 6 hours.
    pub effect_deadline_ms: Option<u64>,
    /// The remote git repository that new runs get their files from and give them to: the name of one of the project's
    /// remotes, or an address; unset: files stay where they are.
    pub git_remote: Option<String>,
    /// Where worktrees of agents and copies of those repositories are; unset: in the state folder.
    pub worktrees: Option<PathBuf>,
    /// The engine's server, for `cluster up`.
    pub server: Option<PathBuf>,
}

/// In place of a remote: files stay where they are.
const NO_REMOTE: &str = "none";

/// The settings of `[engine]`. They say who gets what agents read and write, and which program is run, so that a project's
/// file may set none of them.
pub(crate) const ENGINE: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Checked(|s, url| {
            s.engine.url = Some(url.parse()?);
            Ok(())
        }),
        default: SettingDefault::Unset("runs are kept on this machine, in [store]"),
        example: r#""restate://10.0.0.4:8080""#,
        words: "The ingress of the engine, restate://HOST:PORT; restates:// with TLS; several hosts with commas between, of \
                which the first that answers is asked; `local` for the cluster that `provost cluster up` runs on this \
                machine. `--engine` is the same for one command.",
        ..engine("url")
    },
    Setting {
        kind: Kind::Address(|s, address| s.engine.admin_url = Some(address)),
        default: SettingDefault::Unset(
            "port 9070 of each host of `url`, of which the first that answers is asked",
        ),
        example: r#""http://10.0.0.4:9070""#,
        words: "The engine's admin API: workers register there, and running effects are stopped by it. One address is that of one \
                node: leave it unset where the engine has several. It has no login of its own: let only workers and operators \
                reach it.",
        ..engine("admin_url")
    },
    Setting {
        kind: Kind::Variable(|s, name| s.engine.identity_key_env = Some(name)),
        default: SettingDefault::Unset("workers accept requests on loopback only"),
        example: r#""RESTATE_IDENTITY_KEY""#,
        words: "The environment variable that holds the engine's public key (publickeyv1_…, as its nodes say at their start). \
                Workers refuse requests that aren't signed with it; one that listens beyond loopback needs it.",
        ..engine("identity_key_env")
    },
    Setting {
        kind: Kind::Checked(|s, place| {
            s.engine.blobs = Some(match place {
                bucket if bucket.starts_with("s3://") && bucket.len() > "s3://".len() => {
                    EngineBlobs::Bucket(bucket)
                }
                folder if folder.starts_with('/') => EngineBlobs::Folder(folder.into()),
                other => {
                    return Err(format!("must be an absolute folder, or s3://BUCKET/PREFIX (is `{other}`)"));
                }
            });
            Ok(())
        }),
        default: SettingDefault::Unset(
            "a folder in the state folder of this machine, which is right for one machine only",
        ),
        example: r#""/srv/provost/blobs""#,
        words: "Where all but the last part of each log is kept, and bodies of more than 256 KiB: a folder that all workers and \
                clients have at this path, or a bucket of an object store, s3://BUCKET/PREFIX.",
        ..engine("blobs")
    },
    Setting {
        kind: Kind::Checked(|s, label| {
            s.engine.host = Some(engine_label(label)?);
            Ok(())
        }),
        default: SettingDefault::Unset("the host name"),
        example: r#""build-3""#,
        words: "The label of this machine. Unless `git_remote` is set, a run's files are on the machine where it was started: its \
                work is handed to workers with this label.",
        ..engine("host")
    },
    Setting {
        kind: Kind::List(|s, label| {
            s.engine.labels.push(engine_label(label)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["gpu"]"#,
        words: "Labels that `provost worker` has besides the one of its machine; --serves adds others.",
        ..engine("labels")
    },
    Setting {
        kind: Kind::Checked(|s, name| {
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(format!("must begin with a letter (is `{name}`)"));
            }
            s.engine.namespace = Some(engine_label(name)?);
            Ok(())
        }),
        default: SettingDefault::Is(r#""provost""#),
        example: r#""team-a""#,
        words: "What the names of Provost's services in the engine begin with: installations with different ones share an engine, \
                and see nothing of each other's runs.",
        ..engine("namespace")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.engine.effect_deadline_ms = Some(ms)),
        default: SettingDefault::Is(r#""6h""#),
        example: r#""12h""#,
        words: "How long one model or tool call may take before its worker counts as hung: the call is ended, and another worker \
                goes on with the run. The same for all workers and clients of an engine, and below its inactivity and abort \
                timeouts.",
        ..engine("effect_deadline")
    },
    Setting {
        kind: Kind::Checked(|s, remote| {
            if remote.starts_with('-') || remote.contains(char::is_whitespace) {
                return Err(format!("must be the name of a remote or an address, or `none` (is `{remote}`)"));
            }
            s.engine.git_remote = Some(remote).filter(|remote| remote != NO_REMOTE);
            Ok(())
        }),
        default: SettingDefault::Unset(
            "runs work in the folder where they are started, on machines that have it",
        ),
        example: r#""origin""#,
        words: "The git repository by which any worker gets a run's files: the name of a remote of the project, or an address. A \
                run begins with the project's last commit; each agent's worktree is pushed to refs/provost-worktrees/ there after each \
                call that changes it, and to a branch provost/RUN-N when the agent is done. `none` for none, also where a file names one.",
        ..engine("git_remote")
    },
    Setting {
        kind: Kind::Folder(|s, path| s.engine.worktrees = Some(path)),
        default: SettingDefault::Unset("a folder in the state folder"),
        example: r#""/srv/provost/worktrees""#,
        words: "Where worktrees of agents are, and copies of the repositories in `git_remote`: with that, the same path on all \
                workers and clients.",
        ..engine("worktrees")
    },
    Setting {
        kind: Kind::Folder(|s, path| s.engine.server = Some(path)),
        default: SettingDefault::Unset(
            "what `provost cluster install` has installed, else `restate-server` in PATH",
        ),
        example: r#""/opt/restate/restate-server""#,
        words: "The engine's server that `provost cluster up` starts.",
        ..engine("server")
    },
];

const fn engine(name: &'static str) -> Setting<Settings> {
    Setting { from: From::User, ..Setting::declared("engine", name) }
}

#[cfg(test)]
mod tests {
    use super::{EngineUrl, engine_label};

    fn check(text: &str, addresses: &[&str]) {
        let url = text.parse::<EngineUrl>().expect("a url");
        assert_eq!(url, EngineUrl::At(addresses.iter().map(|&one| one.to_owned()).collect()), "{text}");
        let shown = url.to_string();
        assert_eq!(shown.parse::<EngineUrl>().expect("the same"), url, "{shown}");
    }

    #[test]
    fn an_engine_is_named_by_its_hosts() {
        check("restate://10.0.0.4:9080", &["http://10.0.0.4:9080"]);
        check("restate://engine", &["http://engine:8080"]);
        check("restates://a.example,b.example:9/", &["https://a.example:8080", "https://b.example:9"]);
        check("restate://[::1]:8080", &["http://[::1]:8080"]);
        assert_eq!("local".parse::<EngineUrl>(), Ok(EngineUrl::Local));
    }

    #[test]
    fn other_addresses_are_refused_with_what_would_be_right() {
        for text in [
            "",
            "http://a:1",
            "restate://",
            "restate://a:0",
            "restate://a:x",
            "restate://a/b",
            "restate://u@a",
            "restate://a,",
        ] {
            let error = text.parse::<EngineUrl>().expect_err(text);
            assert!(error.contains("restate://HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn labels_are_names() {
        assert_eq!(engine_label("gpu-1.a_b".to_owned()), Ok("gpu-1.a_b".to_owned()));
        for text in ["", "-a", "a b", "a/b", &"a".repeat(64)] {
            assert!(engine_label(text.to_owned()).is_err(), "{text}");
        }
    }
}
