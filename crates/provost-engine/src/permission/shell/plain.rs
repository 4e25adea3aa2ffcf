//! Programs that run none of their arguments, as far as is known.
//!
//! A program that is neither listed here nor among those whose arguments are commands may run any of its
//! arguments: if one of them is the name of a denied program, the call needs approval.

#[rustfmt::skip]
const PLAIN: &[&str] = &[
    // Of the shell.
    ":", "true", "false", "echo", "cd", "pwd", "pushd", "popd", "dirs", "type", "which", "whereis", "ulimit", "umask", "times", "kill", "killall", "pkill", "pgrep", "return",
    "exit", "break", "continue", "shift", "unalias", "logout", "suspend", "fg", "bg", "disown", "caller", "help", "whatis", "apropos",
    // Files and text.
    "ls", "dir", "vdir", "cat", "tac", "head", "tail", "wc", "cut", "tr", "paste", "join", "comm", "nl", "od", "hexdump", "fold", "fmt", "pr", "rev", "expand", "unexpand",
    "grep", "egrep", "fgrep", "zgrep", "zcat", "bzcat", "xzcat", "diff", "cmp", "colordiff", "stat", "du", "df", "tee", "touch", "mkdir", "rmdir", "rm", "unlink", "shred", "truncate",
    "chmod", "chown", "chgrp", "basename", "dirname", "realpath", "readlink", "mktemp", "seq", "yes", "sleep", "usleep", "expr", "factor", "bc", "sum", "cksum", "md5sum", "sha1sum",
    "sha256sum", "sha512sum", "b2sum", "shasum", "md5", "base32", "dos2unix", "unix2dos", "strings", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "lz4",
    "unzip", "7z", "7za", "sync", "dd", "locate", "mlocate", "updatedb", "namei", "lsattr", "chattr", "getfacl", "setfacl", "tsort", "numfmt", "csplit", "look", "wdiff", "cal", "jq", "column",
    // The system.
    "ps", "top", "htop", "free", "uptime", "uname", "whoami", "id", "groups", "who", "w", "last", "tty", "stty", "clear", "reset", "tput", "nproc", "lscpu", "lsblk", "lsof",
    "netstat", "ping", "traceroute", "dig", "nslookup", "host", "ifconfig", "route", "printenv", "getent", "locale", "systemctl", "service", "mount", "umount",
    "df", "vmstat", "iostat", "logger", "ldconfig", "ldd", "pmap", "lsmod", "modprobe", "useradd", "userdel", "usermod", "passwd", "mkfifo", "mknod",
    // Developers' tools.
    "docker", "docker-compose", "podman", "kubectl", "helm", "terraform", "tofu", "aws", "gcloud", "az", "svn", "hg", "jj", "brew", "snap", "flatpak", "pacman", "apk",
    "zypper", "emerge", "port", "pip", "gem", "pytest", "tox", "mypy", "ruff", "black", "isort", "flake8", "pylint", "eslint", "prettier", "tsc", "jest", "vitest", "mocha", "webpack", "vite",
    "rollup", "esbuild", "rustup", "rustfmt", "cargo-clippy", "gofmt", "golangci-lint", "javac", "mvn", "gradle", "ant", "ninja", "meson", "bazel", "just", "task", "ctest", "pkg-config", "provost",
    "shellcheck", "shfmt", "hadolint", "yamllint", "markdownlint", "codespell", "curl", "http", "httpie", "tokei", "scc", "sd", "exa", "eza", "lsd", "glow", "tldr", "redis-cli",
    "nvidia-smi", "ffmpeg", "convert", "magick", "identify", "pandoc", "latex", "pdflatex", "dot", "heroku", "vercel", "netlify", "fly", "flyctl", "firebase", "supabase", "wrangler", "doctl", "az",
    "conan", "vcpkg", "buck2", "pants", "sbt", "lein", "rebar3", "mix", "dotnet", "nuget", "msbuild", "xcodebuild", "pod", "flutter", "dart", "adb", "swiftc", "zig", "nimble", "shards",
    "ssh-keygen", "ssh-add", "ssh-keyscan", "ssh-copy-id", "gitk", "tig", "pre-commit", "act", "glab", "hub", "lefthook", "husky", "changeset", "lerna", "nx", "turbo", "rake", "rails", "django-admin",
];

pub(super) fn is_plain(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    PLAIN.contains(&name) || PLAIN.contains(&bare)
}
