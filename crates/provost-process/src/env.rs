//! The environment that children may see: an allow list, so that provider keys never reach them.

use std::ffi::OsString;

const ALLOWED: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME"];
const ALLOWED_PREFIX: &str = "LC_";

/// Returns the variables of this process's environment that children may see: those about the user and the system
/// (`PATH HOME USER LOGNAME SHELL LANG LC_* TZ TERM TMPDIR CARGO_HOME RUSTUP_HOME`), and those named in
/// `extra_allowed` (whole names). Unset variables are left out.
pub fn allowed_env(extra_allowed: &[&str]) -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| allowed(name, extra_allowed)))
        .collect()
}

fn allowed(name: &str, extra_allowed: &[&str]) -> bool {
    ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX) || extra_allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::allowed;

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
}
