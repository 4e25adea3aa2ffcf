//! Programs that run a command in their arguments: only data.

/// How a program takes the command that it runs.
#[derive(Debug)]
pub(super) struct Runner {
    names: &'static [&'static str],
    /// Arguments before the options that make it run something: `uv run`.
    pub(super) behind: &'static [&'static str],
    /// Letters of options without a value, of those with one, and of those whose value, if there is one, is in the
    /// same word.
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    pub(super) attached: &'static str,
    /// Long options without a value, and those with a value in the next word.
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_valued: &'static [&'static str],
    /// Options with a value, by their letters and long names: those that set a variable for the command, that name
    /// a file to write, and that run or load something or name the folder of the programs.
    pub(super) sets: &'static [&'static str],
    pub(super) writes: &'static [&'static str],
    pub(super) runs: &'static [&'static str],
    /// The number of operands between the options and the command.
    pub(super) operands: usize,
    /// What the first of them is.
    pub(super) operand: Operand,
    pub(super) takes: Takes,
    /// Whether it starts a shell if there is no command.
    pub(super) alone: bool,
}

/// What the first operand of a runner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    /// A value without effect on the files.
    Value,
    /// A file that is created if it isn't there.
    Lock,
    /// A folder from which it takes programs, or variables.
    Folder,
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

const RUNNER: Runner = Runner {
    names: &[],
    behind: &[],
    flags: "",
    valued: "",
    attached: "",
    long_flags: &[],
    long_valued: &[],
    sets: &[],
    writes: &[],
    runs: &[],
    operands: 0,
    operand: Operand::Value,
    takes: Takes::Words,
    alone: false,
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
    Runner { names: &["sudo"], flags: "AbEeHiKklnPSsVvN", valued: "CDghpRrTtUu", runs: &["R", "chroot"], alone: true,
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
    Runner { names: &["chroot"], long_flags: &["skip-chdir"], long_valued: &["userspec", "groups"], operands: 1, operand: Operand::Folder, alone: true, ..RUNNER },
    Runner { names: &["chrt"], flags: "abdefimoprvGR", valued: "TPD", operands: 1, ..RUNNER },
    Runner { names: &["taskset"], flags: "ap", valued: "c", operands: 0, ..RUNNER },
    Runner { names: &["taskset"], flags: "apc", operands: 1, ..RUNNER },
    Runner { names: &["stdbuf"], valued: "ioe", long_valued: &["input", "output", "error"], ..RUNNER },
    Runner { names: &["time", "gtime"], flags: "apqvV", valued: "fo", writes: &["o", "output"], long_flags: &["append", "portability", "quiet", "verbose"], long_valued: &["format", "output"], ..RUNNER },
    Runner { names: &["strace"], flags: "cCdfFhiknqrtTvVwxyYzZ", valued: "abeEIoOpPsSuUX", sets: &["E", "env"], writes: &["o", "output"], long_flags: &["follow-forks", "summary-only", "quiet"], long_valued: &["env", "output", "trace", "string-limit"], ..RUNNER },
    Runner { names: &["ltrace"], flags: "bcCfhiLrStTV", valued: "aAeDFlnopsuwx", writes: &["o", "output"], long_valued: &["output"], ..RUNNER },
    Runner { names: &["unshare"], flags: "muinpUCTfrc", valued: "RwSGl", runs: &["R", "root"], long_valued: &["root", "wd", "setuid", "setgid", "map-user", "map-group", "map-users", "map-groups", "propagation"], alone: true, long_flags: &["mount", "uts", "ipc", "net", "pid", "user", "cgroup", "time", "fork", "map-root-user", "map-current-user", "mount-proc", "keep-caps", "kill-child"], ..RUNNER },
    Runner { names: &["nsenter"], flags: "amuinpUCTrwFeZ", valued: "tSG", alone: true, long_flags: &["all", "mount", "uts", "ipc", "net", "pid", "user", "cgroup", "time", "root", "wd", "no-fork", "preserve-credentials"], long_valued: &["target", "setuid", "setgid"], ..RUNNER },
    Runner { names: &["setpriv"], flags: "dhV", long_flags: &["dump", "nnp", "no-new-privs", "clear-groups", "init-groups", "keep-groups", "reset-env"],
        long_valued: &["ambient-caps", "inh-caps", "bounding-set", "ruid", "euid", "reuid", "rgid", "egid", "regid", "groups", "securebits", "pdeathsig", "selinux-label", "apparmor-profile"], ..RUNNER },
    Runner { names: &["setarch", "linux64", "linux32", "i386", "i686", "x86_64", "uname26", "arch"], flags: "BFILRSTXZv3", alone: true,
        long_flags: &["32bit", "addr-no-randomize", "whole-seconds", "sticky-timeouts", "read-implies-exec", "addr-compat-layout", "3gb", "4gb", "uname-2.6", "verbose"], ..RUNNER },
    Runner { names: &["setarch"], flags: "BFILRSTXZv3", operands: 1, alone: true, ..RUNNER },
    Runner { names: &["prlimit"], flags: "hV", attached: "cdefilmnqrstuvxy", valued: "p", long_flags: &["core", "data", "nice", "fsize", "sigpending", "memlock", "rss", "nofile", "msgqueue", "rtprio", "stack", "cpu", "nproc", "as", "locks", "rttime"], ..RUNNER },
    Runner { names: &["runcon"], flags: "c", valued: "turl", ..RUNNER },
    Runner { names: &["runcon"], flags: "c", valued: "turl", operands: 1, ..RUNNER },
    Runner { names: &["caffeinate"], flags: "disum", valued: "tw", ..RUNNER },
    Runner { names: &["chronic"], flags: "ev", ..RUNNER },
    Runner { names: &["unbuffer"], flags: "p", ..RUNNER },
    Runner { names: &["catchsegv", "torsocks", "torify", "tsocks", "socksify", "proxychains", "proxychains4"], flags: "iqd", ..RUNNER },
    Runner { names: &["fakeroot", "fakeroot-ng", "fakechroot"], flags: "ub", ..RUNNER },
    Runner { names: &["ssh-agent"], flags: "csDdk", valued: "aEtO", ..RUNNER },
    Runner { names: &["gpg-agent"], flags: "qvsc", long_flags: &["daemon", "quiet", "verbose", "sh", "csh", "no-detach", "enable-ssh-support", "batch"], long_valued: &["homedir", "default-cache-ttl", "max-cache-ttl"], ..RUNNER },
    Runner { names: &["sshpass"], flags: "ev", valued: "fdpP", ..RUNNER },
    Runner { names: &["xvfb-run"], flags: "a", valued: "n", long_flags: &["auto-servernum"], long_valued: &["server-num"], ..RUNNER },
    Runner { names: &["numactl"], flags: "l", valued: "iNCmpP", long_flags: &["localalloc", "all"], long_valued: &["interleave", "cpunodebind", "physcpubind", "membind", "preferred"], ..RUNNER },
    Runner { names: &["firejail"], long_flags: &["quiet", "noprofile", "private", "net=none", "noroot", "seccomp"], long_valued: &["net"], ..RUNNER },
    Runner { names: &["cpulimit"], flags: "zvicqk", valued: "leLp", long_valued: &["limit"], ..RUNNER },
    Runner { names: &["choom"], valued: "np", long_valued: &["adjust", "pid"], ..RUNNER },
    Runner { names: &["systemd-inhibit"], long_valued: &["what", "who", "why", "mode"], ..RUNNER },
    Runner { names: &["systemd-cat"], valued: "tp", long_valued: &["identifier", "priority", "stderr-priority", "level-prefix"], ..RUNNER },
    Runner { names: &["cgexec"], valued: "g", long_flags: &["sticky"], ..RUNNER },
    Runner { names: &["tini", "dumb-init", "catatonit"], flags: "gsvwc", ..RUNNER },
    Runner { names: &["pkexec", "gksudo", "gksu", "kdesu", "kdesudo", "run0"], long_valued: &["user"], ..RUNNER },
    Runner { names: &["timelimit"], flags: "pq", valued: "sStT", ..RUNNER },
    Runner { names: &["retry"], valued: "dt", long_valued: &["delay", "times"], ..RUNNER },
    Runner { names: &["ifne"], flags: "n", ..RUNNER },
    Runner { names: &["annotate-output"], flags: "h", ..RUNNER },
    Runner { names: &["debconf"], valued: "ofp", long_valued: &["frontend", "priority", "owner"], ..RUNNER },
    Runner { names: &["lckdo"], flags: "weqsx", valued: "W", operands: 1, operand: Operand::Lock, ..RUNNER },
    Runner { names: &["setlock"], flags: "nNxX", operands: 1, operand: Operand::Lock, ..RUNNER },
    Runner { names: &["with-lock-ex"], operands: 2, operand: Operand::Lock, ..RUNNER },
    Runner { names: &["kcov"], operands: 1, operand: Operand::Lock, ..RUNNER },
    Runner { names: &["datefudge"], flags: "s", long_flags: &["static"], operands: 1, ..RUNNER },
    Runner { names: &["gdbserver"], long_flags: &["once", "debug"], operands: 1, ..RUNNER },
    Runner { names: &["envchain"], operands: 1, ..RUNNER },
    Runner { names: &["ccache", "sccache", "distcc", "icecc", "bear", "intercept-build", "scan-build", "compiledb", "libtool", "nyc", "c8", "cross-env", "env-cmd", "dotenv", "wine", "wine64", "mono", "qemu-x86_64", "qemu-aarch64", "qemu-arm", "qemu-i386", "box64",
        "eatmydata", "nocache", "ts-node-run", "dbus-launch", "dbus-run-session", "aoss", "stdoutisatty", "setuidgid", "envuidgid", "softlimit", "chpst", "envfile", "with-contenv", "s6-setuidgid", "gosu", "su-exec", "faketime", "rlwrap", "rlfe", "ledit", "grc",
        "ld.so", "trickle", "uclampset", "coresched", "enosys", "setpgid", "systemd-socket-activate", "systemd-pty-forward", "debconf-apt-progress", "schroot", "dchroot", "checkinstall", "installwatch", "pgrphack", "fghack", "recordio", "argv0", "with-readline", "zrun",
        "gamemoderun", "mangohud", "optirun", "primusrun", "prime-run", "vglrun", "gamescope", "sotruss", "memusage", "latrace", "tracexec", "multitime", "likwid-perfctr", "turbostat", "ef", "duma", "aa-exec", "rootlesskit", "lxc-attach", "lxc-usernsexec", "lxc-unshare",
        "flatpak-spawn", "host-spawn", "distrobox-host-exec", "tsp", "nq", "srun", "cronic", "cronlog", "alltray", "kstart", "kstart5", "hwloc-bind", "xcrun", "summon", "fiu-run", "strangle", "steam-run"], ..RUNNER },
    Runner { names: &["setuidgid", "envuidgid", "chpst", "gosu", "su-exec", "s6-setuidgid", "faketime"], operands: 1, ..RUNNER },
    Runner { names: &["envdir"], operands: 1, operand: Operand::Folder, ..RUNNER },
    Runner { names: &["systemd-run"], flags: "rtPqGSd", valued: "HMpEu", sets: &["E", "setenv"], runs: &["p", "property"], long_valued: &["setenv", "property", "unit", "slice", "description"], alone: true, long_flags: &["user", "system", "scope", "wait", "pty", "pipe", "quiet", "collect", "no-block", "same-dir", "remain-after-exit", "no-ask-password"], ..RUNNER },
    Runner { names: &["xargs", "gxargs"], flags: "0oprtx", attached: "eil", valued: "adEIJLnPs", sets: &["process-slot-var"], takes: Takes::WordsAndMore,
        long_flags: &["null", "exit", "interactive", "no-run-if-empty", "verbose", "open-tty", "show-limits", "replace", "eof", "max-lines"], long_valued: &["process-slot-var", "arg-file", "delimiter", "max-args", "max-procs", "max-chars"], ..RUNNER },
    Runner { names: &["watch"], flags: "bcdegtwxC", valued: "nq", takes: Takes::Text,
        long_flags: &["beep", "color", "no-color", "errexit", "chgexit", "precise", "no-title", "no-wrap", "exec"], long_valued: &["interval", "equexit"], ..RUNNER },
    Runner { names: &["flock"], flags: "Fnoesxu", attached: "c", valued: "wE", operands: 1, operand: Operand::Lock, takes: Takes::TextBehindC,
        long_flags: &["command", "close", "exclusive", "nonblock", "nb", "no-fork", "shared", "unlock", "verbose"], long_valued: &["timeout", "wait", "conflict-exit-code"], ..RUNNER },
    Runner { names: &["ssh", "slogin", "rsh"], flags: "46AaCfGgKkMNnqsTtVvXxYy", valued: "BbcDEeFIiJLlmOoPpQRSWw", writes: &["E"], runs: &["o", "F", "I", "S"], operands: 1, takes: Takes::Text, ..RUNNER },
    Runner { names: &["su", "runuser", "sg", "newgrp", "script", "capsh", "scriptlive"], flags: "flmpPaeqhV", valued: "gGsuwtTIOBmEo", attached: "c", alone: true, takes: Takes::TextBehindC, long_flags: &["login", "preserve-environment", "pty", "quiet", "append", "flush", "return", "print"],
        long_valued: &["command", "session-command", "user", "group", "supp-group", "shell", "keep", "caps", "drop", "inh"], ..RUNNER },
    Runner { names: &["uv"], behind: &["run"], flags: "qvn", long_flags: &["frozen", "locked", "no-sync", "isolated", "all-extras", "no-dev", "dev", "all-groups", "exact", "quiet", "verbose", "offline"],
        long_valued: &["with", "extra", "group", "no-group", "only-group", "package"], ..RUNNER },
    Runner { names: &["conda", "mamba", "micromamba"], behind: &["run"], valued: "np", long_flags: &["no-capture-output", "live-stream"], long_valued: &["name", "prefix"], ..RUNNER },
    behind(&["poetry", "pipenv", "hatch", "rye", "pdm", "pixi", "dotenvx", "volta", "devbox", "doppler", "infisical", "teller", "honcho", "foreman", "forego", "mr", "snap"], &["run"]),
    Runner { names: &["rustup"], behind: &["run"], long_flags: &["install"], operands: 1, ..RUNNER },
    Runner { names: &["vcsh"], behind: &["run"], operands: 1, ..RUNNER },
    Runner { names: &["npm"], behind: &["explore"], operands: 1, takes: Takes::Text, alone: true, ..RUNNER },
    Runner { names: &["sops"], behind: &["exec-env"], operands: 1, takes: Takes::Text, ..RUNNER },
    behind(&["podman", "buildah"], &["unshare"]),
    behind(&["quilt", "devenv"], &["shell"]),
    behind(&["meson"], &["devenv"]),
    behind(&["pueue"], &["add"]),
    Runner { names: &["npm", "pnpm", "yarn"], behind: &["exec"], flags: "ysw", valued: "pc", long_flags: &["yes", "no", "silent", "quiet", "workspaces"], long_valued: &["package", "workspace"], ..RUNNER },
    behind(&["bundle", "mise", "rtx", "asdf", "rbenv", "pyenv", "nodenv", "composer", "aws-vault", "saml2aws", "chamber", "nvm", "fnm", "opam", "stack", "cabal", "nx", "lerna", "tox"], &["exec"]),
    behind(&["npm", "mise", "esy"], &["x"]),
    Runner { names: &["direnv"], behind: &["exec"], operands: 1, ..RUNNER },
    Runner { names: &["ip"], behind: &["netns", "exec"], operands: 1, ..RUNNER },
    Runner { names: &["ip"], behind: &["vrf", "exec"], operands: 1, ..RUNNER },
    behind(&["op"], &["run"]),
    behind(&["cmake"], &["-E", "env"]),
    behind(&["cmake"], &["-E", "time"]),
    behind(&["cmake"], &["-E", "chdir"]),
];

/// Whether it runs its arguments, whatever the first of them is.
pub(super) fn is_runner(name: &str) -> bool {
    RUNNERS.iter().any(|runner| runner.names.contains(&name) && runner.behind.is_empty())
}

/// The ways in which it runs its arguments: more than one if its operands may be left out.
pub(super) fn runners_of(name: &str) -> impl Iterator<Item = &'static Runner> {
    let name = if name.starts_with("ld-") || name.starts_with("ld64") { "ld.so" } else { name };
    RUNNERS.iter().filter(move |runner| runner.names.contains(&name))
}
