//! The environments that children get: of this process's own, an allow list, or all but what is a secret, gives a
//! power, or changes what runs.

use std::ffi::OsString;

const ALLOWED: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME"];
const ALLOWED_PREFIX: &str = "LC_";
/// Names that programs beside an agent see besides: certificates, displays, languages.
const FOR_HELPERS: [&str; 9] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "LANGUAGE",
];
/// The same, of proxies: in capital or small letters, and without credentials.
const PROXIES: [&str; 5] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"];

/// Parts of names of secrets.
const SECRET_PARTS: [&str; 11] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
    "HEADERS",
    "CONNECTION_STRING",
    "PRIVATE",
];
/// The same, as whole words of a name.
const SECRET_WORDS: [&str; 8] = ["AUTH", "PASS", "PAT", "DSN", "PWD", "PIN", "JWT", "SAS"];
/// Names of secrets by those parts and words that are none.
const NO_SECRETS: [&str; 2] = ["PWD", "OLDPWD"];
/// Beginnings of names that lead to an agent's keys, a session bus, a display or a container engine, or that change
/// which code a shell, the loader, git or Provost itself runs.
const POWERFUL_PREFIXES: [&str; 19] = [
    "SSH_",
    "GPG_",
    "DBUS_",
    "DOCKER_",
    "PODMAN_",
    "CONTAINER_",
    "CONTAINERD_",
    "KUBE",
    "VSCODE_",
    "LISTEN_",
    "LD_",
    "DYLD_",
    "BASH_",
    "GIT_",
    "PROVOST_",
    "TMUX",
    "WAYLAND_",
    "XAUTH",
    "SUDO_",
];
/// The same, as whole names.
const POWERFUL: [&str; 14] = [
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "GLOBIGNORE",
    "EXECIGNORE",
    "IFS",
    "PS4",
    "PROMPT_COMMAND",
    "DISPLAY",
    "XDG_RUNTIME_DIR",
    "STY",
    "ZDOTDIR",
    "INPUTRC",
];
/// Ends of names of sockets.
const SOCKETS: [&str; 2] = ["_SOCK", "_SOCKET"];

/// Returns the variables of this process's environment that children may see: those about the user and the system
/// (`PATH HOME USER LOGNAME SHELL LANG LC_* TZ TERM TMPDIR CARGO_HOME RUSTUP_HOME`), and those named in
/// `extra_allowed` (whole names). Unset variables are left out.
pub fn allowed_env(extra_allowed: &[&str]) -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| allowed(name, extra_allowed)))
        .collect()
}

/// Returns the variables for programs that the user has beside an agent, such as hooks: those of [`allowed_env`], and
/// those of proxies (without a user name and a password in their URL), certificates, displays and languages.
pub fn helper_env(extra_allowed: &[&str]) -> Vec<(OsString, OsString)> {
    let all = std::env::vars_os().filter_map(|(name, value)| {
        let text = name.to_str()?;
        if allowed(text, extra_allowed) || FOR_HELPERS.contains(&text) {
            return Some((name, value));
        }
        let is_proxy = PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(text));
        let value = value.to_str().filter(|_| is_proxy).map(without_credentials)?;
        Some((name, value.into()))
    });
    all.collect()
}

/// `text` without what stands before the host of its URL.
fn without_credentials(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest.get(..end).and_then(|authority| authority.rsplit_once('@')).map(|(_, host)| host);
    match host {
        Some(host) => format!("{scheme}://{host}{}", rest.get(end..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn allowed(name: &str, extra_allowed: &[&str]) -> bool {
    ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX) || extra_allowed.contains(&name)
}

/// Returns this process's environment for the commands of an agent. Left out are variables that
///
/// - look secret by their names (`GITHUB_TOKEN`, `DB_PASSWORD`), hold a URL with credentials, or of which
///   `is_secret` says so, by their values;
/// - lead to what acts for the user: SSH and GPG agents, the session bus, displays, container engines, other sockets;
/// - change which code runs: those of the loader and of git, `BASH_ENV` and exported functions, `ENV`, shell options;
/// - are Provost's own settings, or aren't UTF-8.
///
/// What [`allowed_env`] passes on is never left out.
pub fn inherited_env(extra_allowed: &[&str], is_secret: impl Fn(&str) -> bool) -> Vec<(OsString, OsString)> {
    let texts = std::env::vars_os().filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value)));
    let inherited = |(name, value): &(String, OsString)| {
        allowed(name, extra_allowed)
            || (is_inherited(name)
                && value.to_str().is_some_and(|value| !has_credentials(value) && !is_secret(value)))
    };
    texts.filter(inherited).map(|(name, value)| (name.into(), value)).collect()
}

fn is_inherited(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // The name of an exported function of bash has other characters.
    let is_name = upper.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let mut words = upper.split('_');
    let looks_secret = !NO_SECRETS.contains(&&*upper)
        && (SECRET_PARTS.iter().any(|part| upper.contains(part))
            || words.any(|word| SECRET_WORDS.contains(&word)));
    let is_powerful = POWERFUL.contains(&&*upper)
        || POWERFUL_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        || SOCKETS.iter().any(|end| upper.ends_with(end));
    is_name && !looks_secret && !is_powerful
}

/// Whether a text has a URL with a user name or a password.
fn has_credentials(text: &str) -> bool {
    let rests = text.split("://").skip(1);
    let mut authorities =
        rests.map(|rest| rest.split(['/', '?', '#', ' ', ',', ';']).next().unwrap_or_default());
    authorities.any(|authority| authority.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::{allowed, has_credentials, is_inherited, without_credentials};

    #[test]
    fn a_proxys_url_goes_without_its_credentials() {
        assert_eq!(without_credentials("http://me:pw@proxy:3128/x"), "http://proxy:3128/x");
        assert_eq!(without_credentials("http://proxy:3128"), "http://proxy:3128");
        assert_eq!(without_credentials("localhost,.corp"), "localhost,.corp");
        assert_eq!(without_credentials("http://proxy/a@b"), "http://proxy/a@b");
    }

    #[test]
    fn only_listed_names_and_locales_and_extras_pass() {
        for name in ["PATH", "HOME", "LC_ALL", "LC_CTYPE", "RUSTUP_HOME"] {
            assert!(allowed(name, &[]), "{name}");
        }
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "path", "PATHS", "XLC_ALL", "SSH_AUTH_SOCK", ""] {
            assert!(!allowed(name, &["GOPATH"]), "{name}");
        }
        assert!(allowed("GOPATH", &["GOPATH"]));
    }

    #[test]
    fn an_agents_commands_inherit_what_is_neither_a_secret_nor_a_power() {
        let inherited = [
            "PATH",
            "HOME",
            "JAVA_HOME",
            "VIRTUAL_ENV",
            "PYTHONPATH",
            "GOPATH",
            "NVM_DIR",
            "HTTPS_PROXY",
            "http_proxy",
            "NO_PROXY",
            "CI",
            "CC",
            "PWD",
            "COMPASS",
            "PATTERN",
            "NODE_OPTIONS",
            "AUTHOR",
        ];
        for name in inherited {
            assert!(is_inherited(name), "{name} is left out");
        }
        let left_out = [
            "OPENAI_API_KEY",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "MYSQL_PWD",
            "DB_PASS",
            "AZURE_DEVOPS_EXT_PAT",
            "SENTRY_DSN",
            "NPM_AUTH",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "XDG_RUNTIME_DIR",
            "DOCKER_HOST",
            "KUBECONFIG",
            "NOTIFY_SOCKET",
            "LD_PRELOAD",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "ENV",
            "GIT_DIR",
            "GIT_SSH_COMMAND",
            "PROVOST_STATE",
            "SHELLOPTS",
            "CDPATH",
        ];
        for name in left_out {
            assert!(!is_inherited(name), "{name} is inherited");
        }
    }

    #[test]
    fn credentials_in_a_url_are_found() {
        for text in
            ["http://ann:pw@proxy:3128", "postgres://u@db/x", "a=b;url=amqp://x:y@h", "https://token@h"]
        {
            assert!(has_credentials(text), "{text}");
        }
        for text in ["http://proxy:3128", "https://h/a@b", "ann@example.org", "http://a, me@b", "://", ""] {
            assert!(!has_credentials(text), "{text}");
        }
    }
}
