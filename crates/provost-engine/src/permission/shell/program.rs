//! Programs and how they take commands in their arguments: only data.

use super::plain;

/// What a program does with its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    /// It runs them as a command, after options and operands of its own.
    Runner,
    /// Some of its options take commands.
    Options(&'static Options),
    /// It runs some of them, and the text doesn't show where the command begins.
    Anywhere,
    /// The words after certain options are a command: `find`.
    Find,
    /// The same, for `fd`.
    Fd,
    /// A shell.
    Shell,
    /// Its own subcommands, preceded by options; aliases.
    Git,
    /// Its first operand is a program of its own language.
    Awk,
    /// The same.
    Sed,
    /// A builtin of the shell.
    Builtin,
    /// It runs a language: code in that language isn't parsed.
    Interpreter,
    /// It runs none of its arguments.
    Plain,
    /// An unknown program.
    Unknown,
}

/// How a program takes the command that it runs.
#[derive(Debug)]
pub(super) struct Runner {
    names: &'static [&'static str],
    /// Arguments before the options that make it run something: `uv run`.
    pub(super) behind: &'static [&'static str],
    /// Letters of options without a value, and of those with one.
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    /// Long options without a value, and those with a value in the next word.
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_valued: &'static [&'static str],
    /// Letters of options that set a variable for the command, and of those that name a file to write.
    pub(super) sets: &'static str,
    pub(super) writes: &'static str,
    /// The number of operands between the options and the command.
    pub(super) operands: usize,
    pub(super) takes: Takes,
    /// Whether it starts a shell if there is no command.
    pub(super) alone: bool,
}

/// The form in which a command is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Word by word.
    Words,
    /// Word by word, with more words added at run time.
    WordsAndMore,
    /// As text: the words joined.
    Text,
    /// As text after `-c`, or word by word.
    TextBehindC,
}

/// The options of a program that take commands, or write files although the program otherwise reads.
#[derive(Debug)]
pub(super) struct Options {
    names: &'static [&'static str],
    /// Long options that take a command, also when abbreviated.
    pub(super) runs_long: &'static [&'static str],
    /// Letters of such options.
    pub(super) runs: &'static str,
    /// Letters of options that take a value: the rest of the same word is no option.
    pub(super) valued: &'static str,
    /// Letters of options whose value, if there is one, is in the same word.
    pub(super) attached: &'static str,
    /// Long options that take a value, in the next word if there is no `=`.
    pub(super) valued_long: &'static [&'static str],
    /// Long options and letters with which it writes a file, or changes the machine.
    pub(super) writes_long: &'static [&'static str],
    pub(super) writes: &'static str,
    /// Whether it writes to its operands.
    pub(super) operands: Operands,
    /// Prefixes of words that make it run or load something.
    pub(super) begins: &'static [&'static str],
    /// Whether it runs the project's own code anyway: then expansions by the shell add nothing to that.
    pub(super) builds: bool,
}

/// What a program does to its operands: the words that are neither options nor their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Reads,
    /// It reads the first and writes the second.
    WritesSecond,
    /// It sets something by them, except if they begin with `+`.
    Sets,
    /// It sets something by those that contain `=`.
    SetsByName,
}

const RUNNER: Runner = Runner {
    names: &[],
    behind: &[],
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
    sets: "",
    writes: "",
    operands: 0,
    takes: Takes::Words,
    alone: false,
};

const OPTIONS: Options = Options {
    names: &[],
    runs_long: &[],
    runs: "",
    valued: "",
    attached: "",
    valued_long: &[],
    writes_long: &[],
    writes: "",
    operands: Operands::Reads,
    begins: &[],
    builds: false,
};

impl Runner {
    /// A runner with these options, those without a value first.
    pub(super) const fn of(
        flags: &'static str,
        valued: &'static str,
        long_flags: &'static [&'static str],
        long_valued: &'static [&'static str],
    ) -> Self {
        Self { flags, valued, long_flags, long_valued, ..RUNNER }
    }
}

/// A runner with unknown options: each may take a value or not.
const fn behind(names: &'static [&'static str], behind: &'static [&'static str]) -> Runner {
    Runner { names, behind, ..RUNNER }
}

#[rustfmt::skip]
const RUNNERS: &[Runner] = &[
    Runner { names: &["sudo"], flags: "AbEeHiKklnPSsVvN", valued: "CDghpRrTtUu", alone: true,
        long_flags: &["askpass", "background", "preserve-env", "set-home", "login", "stdin", "shell", "non-interactive", "reset-timestamp", "validate", "list"],
        long_valued: &["user", "group", "host", "prompt", "chdir", "chroot", "close-from", "role", "type", "other-user", "command-timeout"], ..RUNNER },
    Runner { names: &["doas"], flags: "Lns", valued: "uCa", alone: true, ..RUNNER },
    Runner { names: &["nohup", "busybox", "toybox", "builtin"], ..RUNNER },
    Runner { names: &["command"], flags: "pvV", ..RUNNER },
    Runner { names: &["exec"], flags: "cl", valued: "a", ..RUNNER },
    Runner { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..RUNNER },
    Runner { names: &["nice"], flags: "0123456789", valued: "n", long_valued: &["adjustment"], ..RUNNER },
    Runner { names: &["ionice"], flags: "t", valued: "cnpPu", long_flags: &["ignore"], long_valued: &["class", "classdata", "pid", "pgid", "uid"], ..RUNNER },
    Runner { names: &["timeout", "gtimeout"], flags: "vfp", valued: "ks", long_flags: &["foreground", "preserve-status", "verbose"], long_valued: &["kill-after", "signal"], operands: 1, ..RUNNER },
    Runner { names: &["chroot"], long_flags: &["skip-chdir"], long_valued: &["userspec", "groups"], operands: 1, alone: true, ..RUNNER },
    Runner { names: &["chrt"], flags: "abdefimoprvGR", valued: "TPD", operands: 1, ..RUNNER },
    Runner { names: &["taskset"], flags: "ap", valued: "c", operands: 0, ..RUNNER },
    Runner { names: &["taskset"], flags: "apc", operands: 1, ..RUNNER },
    Runner { names: &["stdbuf"], valued: "ioe", long_valued: &["input", "output", "error"], ..RUNNER },
    Runner { names: &["time", "gtime"], flags: "apqvV", valued: "fo", writes: "o", long_flags: &["append", "portability", "quiet", "verbose"], long_valued: &["format", "output"], ..RUNNER },
    Runner { names: &["strace"], flags: "cCdfFhiknqrtTvVwxyYzZ", valued: "abeEIoOpPsSuUX", sets: "E", writes: "o", long_valued: &["env", "output"], ..RUNNER },
    Runner { names: &["ltrace"], flags: "bcCfhiLrStTV", valued: "aAeDFlnopsuwx", writes: "o", long_valued: &["output"], ..RUNNER },
    Runner { names: &["unshare"], flags: "muinpUCTfrc", valued: "RwSGl", alone: true, long_flags: &["mount", "uts", "ipc", "net", "pid", "user", "cgroup", "time", "fork", "map-root-user", "map-current-user", "mount-proc", "keep-caps", "kill-child"], ..RUNNER },
    Runner { names: &["nsenter"], flags: "amuinpUCTrwFeZ", valued: "tSG", alone: true, long_flags: &["all", "mount", "uts", "ipc", "net", "pid", "user", "cgroup", "time", "root", "wd", "no-fork", "preserve-credentials"], long_valued: &["target", "setuid", "setgid"], ..RUNNER },
    Runner { names: &["setpriv"], flags: "dhV", long_flags: &["dump", "nnp", "no-new-privs", "clear-groups", "init-groups", "keep-groups", "reset-env"],
        long_valued: &["ambient-caps", "inh-caps", "bounding-set", "ruid", "euid", "reuid", "rgid", "egid", "regid", "groups", "securebits", "pdeathsig", "selinux-label", "apparmor-profile"], ..RUNNER },
    Runner { names: &["setarch", "linux64", "linux32", "i386", "i686", "x86_64", "uname26", "arch"], flags: "BFILRSTXZv3", alone: true,
        long_flags: &["32bit", "addr-no-randomize", "whole-seconds", "sticky-timeouts", "read-implies-exec", "addr-compat-layout", "3gb", "4gb", "uname-2.6", "verbose"], ..RUNNER },
    Runner { names: &["setarch"], flags: "BFILRSTXZv3", operands: 1, alone: true, ..RUNNER },
    Runner { names: &["prlimit"], flags: "hVcdefilmnqrstuvxy", valued: "p", ..RUNNER },
    Runner { names: &["runcon"], flags: "c", valued: "turl", ..RUNNER },
    Runner { names: &["runcon"], flags: "c", valued: "turl", operands: 1, ..RUNNER },
    Runner { names: &["caffeinate"], flags: "disum", valued: "tw", ..RUNNER },
    Runner { names: &["chronic"], flags: "ev", ..RUNNER },
    Runner { names: &["unbuffer"], flags: "p", ..RUNNER },
    Runner { names: &["catchsegv", "torsocks", "torify", "proxychains", "proxychains4", "fakechroot", "eatmydata", "pkexec", "gksudo", "kdesu", "nocache", "ts-node-run", "fakeroot", "ssh-agent", "dbus-launch", "aoss", "cgexec", "numactl", "stdoutisatty", "firejail", "setuidgid", "envuidgid", "softlimit", "chpst", "envdir", "envfile", "with-contenv", "s6-setuidgid", "gosu", "su-exec", "tini", "dumb-init", "catatonit", "xvfb-run", "dbus-run-session", "faketime", "rlwrap", "ld.so", "systemd-inhibit", "cpulimit", "trickle", "choom", "uclampset", "coresched", "enosys"], ..RUNNER },
    Runner { names: &["setuidgid", "envuidgid", "chpst", "envdir", "gosu", "su-exec", "s6-setuidgid", "faketime"], operands: 1, ..RUNNER },
    Runner { names: &["systemd-run"], flags: "rtPqGSd", valued: "HMpEu", sets: "E", alone: true, long_flags: &["user", "system", "scope", "wait", "pty", "pipe", "quiet", "collect", "no-block", "same-dir", "remain-after-exit", "no-ask-password"], ..RUNNER },
    Runner { names: &["xargs", "gxargs"], flags: "0eiloprtx", valued: "adEILnPs", takes: Takes::WordsAndMore,
        long_flags: &["null", "exit", "interactive", "no-run-if-empty", "verbose", "open-tty", "show-limits"], long_valued: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars"], ..RUNNER },
    Runner { names: &["watch"], flags: "bcdegtwxC", valued: "nq", takes: Takes::Text,
        long_flags: &["beep", "color", "no-color", "errexit", "chgexit", "precise", "no-title", "no-wrap", "exec"], long_valued: &["interval", "equexit"], ..RUNNER },
    Runner { names: &["flock"], flags: "Fnoesxu", valued: "wE", operands: 1, takes: Takes::TextBehindC,
        long_flags: &["close", "exclusive", "nonblock", "nb", "no-fork", "shared", "unlock", "verbose"], long_valued: &["timeout", "wait", "conflict-exit-code"], ..RUNNER },
    Runner { names: &["ssh", "slogin", "rsh"], flags: "46AaCfGgKkMNnqsTtVvXxYy", valued: "BbcDEeFIiJLlmOoPpQRSWw", operands: 1, takes: Takes::Text, ..RUNNER },
    Runner { names: &["su", "runuser", "sg", "newgrp", "script", "capsh", "scriptlive"], flags: "flmpPaeqhV", valued: "gGsuwtTIOBmEo", alone: true, takes: Takes::TextBehindC, long_flags: &["login", "preserve-environment", "pty", "quiet", "append", "flush", "return"],
        long_valued: &["user", "group", "supp-group", "shell"], ..RUNNER },
    behind(&["uv", "poetry", "pipenv", "hatch", "rye", "pdm", "pixi", "conda", "mamba", "dotenvx"], &["run"]),
    behind(&["bundle", "npm", "pnpm", "yarn", "mise", "rtx", "asdf", "rbenv", "pyenv", "nodenv", "composer", "aws-vault", "chamber", "nvm", "opam", "stack", "cabal"], &["exec"]),
    behind(&["npm", "mise"], &["x"]),
    Runner { names: &["direnv"], behind: &["exec"], operands: 1, ..RUNNER },
    Runner { names: &["ip"], behind: &["netns", "exec"], operands: 1, ..RUNNER },
    Runner { names: &["ip"], behind: &["vrf", "exec"], operands: 1, ..RUNNER },
    behind(&["op"], &["run"]),
    behind(&["cmake"], &["-E", "env"]),
    behind(&["cmake"], &["-E", "time"]),
    behind(&["cmake"], &["-E", "chdir"]),
];

#[rustfmt::skip]
const WITH_OPTIONS: &[Options] = &[
    Options { names: &["sort", "gsort"], runs_long: &["compress-program"], valued: "kStT", writes_long: &["output"], writes: "o", ..OPTIONS },
    Options { names: &["rg", "ripgrep"], runs_long: &["pre", "hostname-bin"], ..OPTIONS },
    Options { names: &["split", "gsplit"], runs_long: &["filter"], ..OPTIONS },
    Options { names: &["install", "ginstall"], runs_long: &["strip-program"], ..OPTIONS },
    Options { names: &["tree"], writes: "oR", ..OPTIONS },
    Options { names: &["sdiff", "diff3"], runs_long: &["diff-program"], writes_long: &["output"], writes: "o", ..OPTIONS },
    Options { names: &["patch"], runs_long: &["ed"], runs: "e", valued: "pidorBDFVYz", ..OPTIONS },
    Options { names: &["tar", "gtar", "bsdtar"], runs_long: &["checkpoint-action", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command", "files-from"], runs: "IFT", valued: "fCbgHKLNVX", ..OPTIONS },
    Options { names: &["cpio", "mt"], runs_long: &["rsh-command", "rmt-command", "to-stdout"], ..OPTIONS },
    Options { names: &["zip"], runs_long: &["unzip-command", "test"], runs: "T", valued: "bnt", begins: &["-TT"], ..OPTIONS },
    Options { names: &["rsync"], runs_long: &["rsh", "rsync-path", "early-exec", "remote-option"], runs: "eM", valued: "BTfL", ..OPTIONS },
    Options { names: &["scp", "sftp"], runs: "SoDFJ", valued: "ciPlX", ..OPTIONS },
    Options { names: &["man"], runs_long: &["pager", "html", "config-file", "preprocessor", "gxditview", "ditroff", "troff"], runs: "PHCpXtTZ", valued: "LmMSsReErl", ..OPTIONS },
    Options { names: &["less", "more", "most", "lesspipe", "zless", "bzless", "xzless", "lzless", "zstdless", "zmore", "bzmore", "xzmore", "lzmore", "pg"], runs_long: &["lesskey-src", "lesskey-content", "lesskey-file"], runs: "k", valued: "bhjpPtTxyz", writes: "oO", writes_long: &["log-file", "LOG-FILE"], begins: &["+"] , ..OPTIONS },
    Options { names: &["wget", "wget2"], runs_long: &["use-askpass", "execute", "config"], runs: "e", valued: "OoaiPUtTwQBDIlRA", ..OPTIONS },
    Options { names: &["npm", "pnpm", "yarn", "npx", "bunx", "bun", "pnpx"], runs_long: &["call", "script-shell", "shell-mode", "node-options", "node-arg", "prefix", "userconfig", "globalconfig", "scripts-prepend-node-path", "shell", "git", "editor", "viewer"], runs: "c", valued: "pw", begins: &["script-shell"], builds: true, ..OPTIONS },
    Options { names: &["go"], begins: &["-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay", "--overlay"], builds: true, ..OPTIONS },
    Options { names: &["cargo"], runs_long: &["config"], begins: &["-Zscript"], builds: true, ..OPTIONS },
    Options { names: &["cmake"], runs: "P", valued: "DSBGATUC", builds: true, ..OPTIONS },
    Options { names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "cpp", "tcc", "gfortran"], begins: &["-wrapper", "--wrapper", "-specs", "--specs", "-fplugin", "-B", "--prefix", "-Xclang", "-fuse-ld", "--ld-path", "-ld-path", "@"], builds: true, ..OPTIONS },
    Options { names: &["rustc", "rustdoc"], begins: &["-C", "--codegen", "-Z", "@", "--test-builder", "--runtool", "--test-runtool"], builds: true, ..OPTIONS },
    Options { names: &["ld", "ld.gold", "ld.lld", "ld.bfd", "ar", "nm", "objdump", "ranlib", "strip"], begins: &["-plugin", "--plugin", "@"], builds: true, ..OPTIONS },
    Options { names: &["nc", "ncat", "netcat"], runs_long: &["exec", "sh-exec", "lua-exec"], runs: "ec", valued: "pswqioXx", ..OPTIONS },
    Options { names: &["tcpdump"], runs: "z", valued: "iwrsWCGFBcTyZ", writes: "w", ..OPTIONS },
    Options { names: &["nmap"], runs_long: &["script", "interactive", "resume", "datadir"], ..OPTIONS },
    Options { names: &["apt", "apt-get", "aptitude", "apt-cache"], runs_long: &["option", "config-file"], runs: "oc", valued: "t", ..OPTIONS },
    Options { names: &["dpkg", "dpkg-deb", "rpm", "dnf", "yum"], runs_long: &["pre-invoke", "post-invoke", "pipe", "eval", "define", "setopt", "status-logger"], runs: "DE", ..OPTIONS },
    Options { names: &["gpg", "gpg2", "gpgv"], runs_long: &["photo-viewer", "exec-path", "agent-program", "dirmngr-program", "pinentry-mode", "keyserver-options", "options"], ..OPTIONS },
    Options { names: &["pg_dump", "sqlite3", "sqlite"], runs_long: &["command", "execute", "file", "pager", "init", "cmd", "init-command"], runs: "cefi", valued: "dhUpuP", begins: &[".", "-cmd", "-init", "\\"], ..OPTIONS },
    Options { names: &["mosh", "autossh"], runs_long: &["ssh", "server", "client"], ..OPTIONS },
    Options { names: &["rclone", "restic", "borg", "aria2c", "yt-dlp", "youtube-dl", "mpv"], runs_long: &["password-command", "rsh", "exec", "on-download-complete", "script", "on-download-start", "on-download-stop", "on-bt-download-complete", "exec-before-download", "downloader", "option", "config", "input-conf", "conf-path", "include", "external-downloader", "netrc-cmd"], runs: "o", ..OPTIONS },
    Options { names: &["file"], writes: "C", writes_long: &["compile"], ..OPTIONS },
    Options { names: &["uniq", "guniq"], valued: "fsw", valued_long: &["skip-fields", "skip-chars", "check-chars"], operands: Operands::WritesSecond, ..OPTIONS },
    Options { names: &["xxd"], valued: "cglsonR", operands: Operands::WritesSecond, ..OPTIONS },
    Options { names: &["ptx", "gptx"], writes: "G", writes_long: &["traditional"], ..OPTIONS },
    Options { names: &["shuf", "gshuf"], valued: "in", writes: "o", writes_long: &["output"], ..OPTIONS },
    Options { names: &["iconv"], valued: "ft", writes: "o", writes_long: &["output"], ..OPTIONS },
    Options { names: &["base64", "diffstat", "ncdu", "info"], writes: "o", writes_long: &["output"], ..OPTIONS },
    Options { names: &["date", "gdate"], valued: "dfrv", attached: "I", valued_long: &["date", "file", "reference", "rfc-3339"], writes: "s", writes_long: &["set"], operands: Operands::Sets, ..OPTIONS },
    Options { names: &["hostname", "domainname", "nisdomainname", "ypdomainname"], writes: "Fb", writes_long: &["file", "boot"], operands: Operands::Sets, ..OPTIONS },
    Options { names: &["sysctl"], valued: "r", writes: "wpf", writes_long: &["write", "load", "system"], operands: Operands::SetsByName, ..OPTIONS },
    Options { names: &["ss"], valued: "fAFN", writes: "DK", writes_long: &["diag", "kill"], ..OPTIONS },
    Options { names: &["fuser"], valued: "n", writes: "k", writes_long: &["kill"], ..OPTIONS },
    Options { names: &["dmesg"], valued: "lfsF", writes: "cCDEn", writes_long: &["clear", "read-clear", "console-off", "console-on", "console-level"], ..OPTIONS },
    Options { names: &["journalctl"], valued: "nobutpgSUcMDp", writes_long: &["cursor-file", "vacuum-size", "vacuum-time", "vacuum-files", "rotate", "flush", "sync", "relinquish-var", "smart-relinquish-var", "setup-keys", "update-catalog"], ..OPTIONS },
    Options { names: &["blkid"], writes: "cwg", writes_long: &["cache-file", "garbage-collect"], ..OPTIONS },
    Options { names: &["cloc"], runs_long: &["extract-with", "vcs", "config"], writes_long: &["out", "report-file", "sql", "write-lang-def", "counted", "found", "ignored", "categorized", "unicode"], begins: &["-extract-with", "-vcs", "-config", "-out", "-report-file", "-sql", "-write-lang-def"], ..OPTIONS },
    Options { names: &["pip", "pipenv", "virtualenv"], runs_long: &["python", "editor"], runs: "p", valued: "rceti", builds: true, ..OPTIONS },
    Options { names: &["uv"], runs_long: &["python"], runs: "p", builds: true, ..OPTIONS },
    Options { names: &["mypy", "dmypy"], runs_long: &["python-executable"], builds: true, ..OPTIONS },
    Options { names: &["pylint"], runs_long: &["init-hook", "load-plugins"], builds: true, ..OPTIONS },
    Options { names: &["pandoc"], runs_long: &["filter", "lua-filter", "pdf-engine", "defaults"], runs: "FLd", valued: "frtowDVMHBAT", ..OPTIONS },
    Options { names: &["hg", "jj"], runs_long: &["config", "config-file", "tool"], ..OPTIONS },
    Options { names: &["svn"], runs_long: &["editor-cmd", "diff-cmd", "diff3-cmd", "config-option", "config-dir"], ..OPTIONS },
    Options { names: &["helm"], runs_long: &["post-renderer"], ..OPTIONS },
    Options { names: &["ssh-keygen", "ssh-add"], runs: "Dws", ..OPTIONS },
    Options { names: &["ssh-copy-id"], runs: "oF", ..OPTIONS },
    Options { names: &["ip"], runs_long: &["batch"], begins: &["-b"], ..OPTIONS },
    Options { names: &["ctags"], runs_long: &["options"], ..OPTIONS },
    Options { names: &["openssl"], begins: &["-engine", "-provider"], ..OPTIONS },
    Options { names: &["yq"], valued: "opI", writes: "is", writes_long: &["inplace", "in-place", "split-exp", "split-exp-file"], ..OPTIONS },
    Options { names: &["xmllint"], runs_long: &["shell"], begins: &["-shell", "-output", "-o"], writes_long: &["output"], ..OPTIONS },
    Options { names: &["bat", "batcat", "delta", "fzf"], runs_long: &["pager", "preview", "bind", "diff-so-fancy"], ..OPTIONS },
    Options { names: &["ag", "ack"], runs_long: &["pager"], ..OPTIONS },
    Options { names: &["gh"], runs_long: &["editor", "browser"], begins: &["alias", "extension", "ext"], ..OPTIONS },
    Options { names: &["crontab"], begins: &["-", "/", ".", "~"], ..OPTIONS },
];

/// Their options alone don't show where a command begins, or they keep it for later.
#[rustfmt::skip]
const ANYWHERE: &[&str] = &[
    "vim", "vi", "nvim", "view", "ex", "gvim", "vimdiff", "rvim", "emacs", "emacsclient", "nano", "pico", "joe", "micro", "kak", "helix", "hx", "mcedit", "ed", "red",
    "psql", "mysql", "mariadb", "ftp", "lftp", "telnet", "at", "batch", "bwrap", "gdb", "lldb", "rr", "perf", "valgrind", "hyperfine", "entr", "watchexec", "nodemon", "concurrently",
    "tmux", "screen", "byobu", "dtach", "abduco", "zellij", "expect", "socat", "websocat", "start-stop-daemon", "daemonize", "daemon", "run-parts",
    "nix-shell", "nix", "guix", "proot", "systemd-nspawn", "machinectl", "lxc-execute", "runit", "runsv", "s6-svscan",
    "xterm", "gnome-terminal", "konsole", "alacritty", "kitty", "urxvt", "foot", "wezterm", "cmd", "powershell", "pwsh", "osascript", "wsl",
    "anacron", "fcrontab", "incrontab", "logrotate", "sem", "niceload", "onchange", "chokidar", "reflex", "air", "modd", "forever", "pm2",
    "apptainer", "singularity", "strace-log-merge", "heaptrack", "callgrind", "sh-shell", "dialog", "zsh-defer", "mapfile-run", "launchctl", "debugfs",
];

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "lksh", "oksh", "yash", "posh",
    "tcsh", "csh", "hush", "elvish", "nu", "xonsh", "rksh", "pdksh", "rc", "es", "osh", "ysh", "brush",
    "pfsh",
];

/// Interpreters, and tools that do what files of the project or their standard input contain.
#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "ipython", "perl", "ruby", "node", "nodejs", "deno", "php", "lua", "luajit", "tclsh", "wish", "guile", "julia", "r", "rscript", "irb", "mongosh", "ghci", "runghc", "ocaml",
    "scala", "groovy", "kotlin", "jshell", "java", "erl", "elixir", "iex", "swift", "octave", "m4", "bc", "dc", "ts-node", "tsx", "racket", "sbcl", "clisp", "gawk-run", "jrunscript", "crystal", "nim", "raku", "qjs", "mujs", "bpython", "uvx", "pipx",
];

const BUILTINS: &[&str] = &[
    "test",
    "[",
    "[[",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "readarray",
    "mapfile",
    "printf",
    "unset",
    "wait",
    "getopts",
    "compgen",
    "complete",
    "compopt",
    "bind",
    "hash",
    "enable",
    "shopt",
    "set",
    "alias",
    "trap",
    "eval",
    "source",
    ".",
    "jobs",
    "fc",
    "history",
    "env",
    "parallel",
    "make",
    "gmake",
    "((",
];

/// The entry for a program by its name, without its folder and in lower case.
pub(super) fn program_of(name: &str) -> Program {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if RUNNERS.iter().any(|runner| runner.names.contains(&name) && runner.behind.is_empty()) {
        return Program::Runner;
    }
    match name {
        "find" | "gfind" | "bfs" => return Program::Find,
        "fd" | "fdfind" => return Program::Fd,
        "git" => return Program::Git,
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" => return Program::Awk,
        "sed" | "gsed" => return Program::Sed,
        _ => {}
    }
    if BUILTINS.contains(&name) {
        return Program::Builtin;
    }
    if let Some(options) =
        WITH_OPTIONS.iter().find(|options| options.names.iter().any(|known| [name, bare].contains(known)))
    {
        return Program::Options(options);
    }
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name.starts_with("ld64") {
        return program_of("ld.so");
    }
    let any = |names: &[&str]| names.contains(&name) || names.contains(&bare);
    match () {
        () if any(ANYWHERE) => Program::Anywhere,
        () if any(SHELLS) => Program::Shell,
        () if any(INTERPRETERS) => Program::Interpreter,
        () if plain::is_plain(name) => Program::Plain,
        () => Program::Unknown,
    }
}

/// The ways in which it runs its arguments: more than one if its operands may be left out.
pub(super) fn runners_of(name: &str) -> impl Iterator<Item = &'static Runner> {
    let name = if name.starts_with("ld-") || name.starts_with("ld64") { "ld.so" } else { name };
    RUNNERS.iter().filter(move |runner| runner.names.contains(&name))
}
