//! Variables that change what commands do.

use super::super::glob::HOLE;

/// Variables that programs read and for which they run nothing.
const HARMLESS: [&str; 22] = [
    "RUST_LOG",
    "RUST_BACKTRACE",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "CI",
    "DEBUG",
    "VERBOSE",
    "NODE_ENV",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "FORCE_COLOR",
    "NO_COLOR",
    "CLICOLOR",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "COLUMNS",
    "LINES",
];

/// Prefixes of names from which shells, loaders, interpreters and tools take programs, files or options.
const BEGINS: [&str; 44] = [
    "BASH", "ENV", "SHELL", "IFS", "PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT", "GLOB", "HIST", "CDPATH",
    "OPT", "LD_", "DYLD_", "GCONV", "LOCPATH", "MALLOC", "GIT", "SSH", "SUDO", "DOAS", "LESS", "MORE", "MAN",
    "PERL", "PYTHON", "RUBY", "NODE", "NPM", "JAVA", "JDK", "_JAVA", "MAKE", "GCC", "RUST", "CARGO", "GO",
    "CC", "CXX", "XDG", "TAR", "ZIP",
];

/// Parts of names that are used for programs, folders of programs, and options.
const CONTAINS: [&str; 27] = [
    "PATH", "PAGER", "EDITOR", "VISUAL", "BROWSER", "OPTIONS", "OPTS", "FLAGS", "WRAPPER", "CONFIG",
    "COMMAND", "CMD", "EXEC", "PROG", "PRELOAD", "PRE_", "POST_", "STARTUP", "HOME", "TMP", "TEMP", "RSH",
    "PLUGIN", "MODULE", "ASKPASS", "DRIVER", "LOADER",
];

/// Whether a variable of this name may be set to any single word.
pub(super) fn is_harmless_name(name: &str) -> bool {
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        return true;
    }
    let upper = name.to_ascii_uppercase();
    let is_short = upper == "CC" || upper == "CXX";
    // Variables that programs look for are in capitals; a script's own mostly aren't.
    let looked_for = !name.contains(|c: char| c.is_ascii_lowercase());
    let is_special = BEGINS.iter().any(|begin| upper.starts_with(begin)) && looked_for;
    let proxy = upper.ends_with("_PROXY") || name.starts_with("npm_");
    !(is_short || is_special || proxy || (looked_for && CONTAINS.iter().any(|part| upper.contains(part))))
}

/// Whether `name=value` before a command, or in its environment, leaves the command's behavior unchanged.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    let simple = |c: char| c.is_ascii_alphanumeric() || "_.,:+-=".contains(c);
    is_harmless_name(name) && value.chars().all(simple)
}

/// Variables that name files or folders of programs and code, which a program runs without being told to.
const FILES: [&str; 36] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "INPUTRC",
    "SSH_CLIENT",
    "SSH2_CLIENT",
    "WGETRC",
    "CURL_HOME",
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "PYTHONUSERBASE",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_LOADABLES_PATH",
    "ZDOTDIR",
    "GCONV_PATH",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "MAKEFILES",
    "VIMINIT",
    "EXINIT",
];

/// Variables with options, and the parts of options that name code to run.
const OPTIONS: [(&str, &[&str]); 6] = [
    ("NODE_OPTIONS", &["-r", "--require", "--import", "loader"]),
    ("JAVA_TOOL_OPTIONS", &["agent", "-XX:On", "@"]),
    ("_JAVA_OPTIONS", &["agent", "-XX:On", "@"]),
    ("JDK_JAVA_OPTIONS", &["agent", "-XX:On", "@"]),
    ("MAKEFLAGS", &["f", "I", "eval", "="]),
    ("TAR_OPTIONS", &["-"]),
];

/// Whether a shell, the loader or another program runs what such a variable names or contains; `value` may be
/// unknown.
pub(super) fn starts_something(name: &str, value: Option<&str>) -> bool {
    let loads = |(option, parts): &(&str, &[&str])| {
        *option == name
            && value.is_none_or(|value| value.contains(HOLE) || parts.iter().any(|part| value.contains(part)))
    };
    if matches!(value, Some("" | "/dev/null")) {
        return false;
    }
    let is_loaders = ["LD_", "DYLD_", "BASH_FUNC"].iter().any(|begin| name.starts_with(begin));
    is_loaders || FILES.contains(&name) || OPTIONS.iter().any(loads)
}
