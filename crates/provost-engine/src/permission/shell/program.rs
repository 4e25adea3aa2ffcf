//! Programs and how they take commands in their arguments: only data.

use super::{plain, runner};

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
    Options { names: &["less", "more", "most", "lesspipe", "pager", "sensible-pager", "zless", "bzless", "xzless", "lzless", "zstdless", "zmore", "bzmore", "xzmore", "lzmore", "pg"], runs_long: &["lesskey-src", "lesskey-content", "lesskey-file"], runs: "k", valued: "bhjpPtTxyz", writes: "oO", writes_long: &["log-file", "LOG-FILE"], begins: &["+"] , ..OPTIONS },
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
    Options { names: &["dpkg-architecture"], runs_long: &["command"], runs: "c", valued: "aAtTqiL", ..OPTIONS },
    Options { names: &["latex", "pdflatex", "xelatex", "lualatex", "tex", "pdftex", "xetex", "luatex", "latexmk"], begins: &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18", "-e", "-r", "-pdflatex", "-latex", "-pretex", "-usepretex"], ..OPTIONS },
    Options { names: &["exiftool"], begins: &["-if", "-p", "-config", "-api", "-userparam", "-@"], ..OPTIONS },
    Options { names: &["gs", "ghostscript"], begins: &["-c", "-sOutputFile", "-o", "-dNOSAFER", "@", "|", "%pipe"], ..OPTIONS },
    Options { names: &["convert", "magick", "mogrify", "identify", "composite", "montage"], begins: &["|", "msl:", "MSL:", "ephemeral:", "@"], ..OPTIONS },
    Options { names: &["just"], runs_long: &["command", "shell", "chooser", "shell-arg", "shell-command"], runs: "c", builds: true, ..OPTIONS },
    Options { names: &["bazel", "buck2"], runs_long: &["run_under", "bazelrc"], builds: true, ..OPTIONS },
    Options { names: &["mvn", "gradle"], runs_long: &["init-script"], begins: &["-Dexec", "-I"], builds: true, ..OPTIONS },
    Options { names: &["meson"], runs_long: &["wrapper"], builds: true, ..OPTIONS },
    Options { names: &["ctest"], runs_long: &["build-makeprogram", "build-and-test", "script"], runs: "S", valued: "CRELIjDTMOA", builds: true, ..OPTIONS },
    Options { names: &["sshfs"], runs: "oF", valued: "p", ..OPTIONS },
    Options { names: &["unison"], begins: &["-sshcmd", "-servercmd", "-rshcmd", "-sshargs", "-diff", "-merge", "-addprefsto"], ..OPTIONS },
    Options { names: &["rdiff-backup"], runs_long: &["remote-schema"], ..OPTIONS },
    Options { names: &["dar"], runs_long: &["execute"], runs: "EFB", ..OPTIONS },
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
    "apptainer", "singularity", "mispipe", "pee", "multilog", "execlineb", "reprotest", "rename", "prename", "file-rename", "perl-rename", "gpg-connect-agent", "smbclient", "gnuplot", "mutt", "mail", "mailx", "s-nail", "sendmail", "exim", "exim4", "sox", "play", "rec", "mlr",
    "sensible-editor", "select-editor", "editor", "vipe", "vidir", "vigr", "vipw", "visudo", "sudoedit", "agetty", "login", "sulogin", "samply", "trace-cmd", "uftrace", "py-spy", "austin", "apitrace", "bpftrace", "stap", "dtrace", "dtruss", "truss",
    "minijail0", "nsjail", "isolate", "sandbox-exec", "seunshare", "newrole", "ch-run", "websockify", "ttyd", "gotty", "dvtm", "empty", "asciinema", "ttyrec", "termrec", "autoexpect", "luit", "multitail", "viddy", "hwatch", "watchman-make", "inoticoming", "iwatch",
    "when-changed", "watchmedo", "ptw", "x-terminal-emulator", "rxvt", "lxterminal", "xfce4-terminal", "mate-terminal", "terminator", "tilix", "st", "guake", "terminology", "uxterm", "sakura", "roxterm", "kgx", "ptyxis", "ghostty", "openvt", "open", "xinit", "startx",
    "cage", "xdotool", "xautolock", "xss-lock", "swayidle", "i3-msg", "swaymsg", "hyprctl", "mpirun", "mpiexec", "orterun", "pdsh", "clush", "pssh", "parallel-ssh", "dsh", "mussh", "rush", "rargs", "xe", "xapply", "apply", "xjobs", "prll", "lockrun", "solo",
    "dotlockfile", "runitor", "schedtool", "cset", "start-server-and-test", "wait-for-it", "dockerize", "cross-env-shell", "tcpserver", "tcpsvd", "udpsvd", "unixserver", "sslserver", "envconsul", "west", "repo", "strace-log-merge", "heaptrack", "callgrind", "sh-shell", "dialog", "zsh-defer", "mapfile-run", "launchctl", "debugfs",
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
    if runner::is_runner(name) {
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
