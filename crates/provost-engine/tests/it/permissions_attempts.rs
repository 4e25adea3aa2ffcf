//! Attempts to run a command despite the permissions, each with its effect in real shells.
//!
//! `v` is a program that no rule allows, and that leaves a mark when it runs. The rows are in
//! `shell_attempts.txt`: in which shells it was seen to run (`b`ash, `d`ash, `-` for none), a tab, the command
//! with `␤` for a newline. The one law: if the permissions allow a command, the command doesn't run `v`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use provost_engine::Permissions;
use provost_event::Permission;

use crate::permissions::{command, permissions};

const ROWS: &str = include_str!("shell_attempts.txt");

/// Denials that the text doesn't reach, by class: SECURITY.md lists the classes.
const MISSED: &str = include_str!("shell_missed.txt");

/// Programs that are allowed with any arguments: all but `v`, so that only the ruling on the arguments can prevent
/// it.
const ALLOWED: &[&str] = &[
    "echo",
    "printf",
    "test",
    "[",
    "[[",
    "read",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "let",
    "set",
    "shopt",
    "wait",
    "mapfile",
    "readarray",
    "getopts",
    "compgen",
    "complete",
    "trap",
    "eval",
    "exec",
    "command",
    "builtin",
    "hash",
    "enable",
    "alias",
    "bind",
    "type",
    ":",
    "true",
    "false",
    "cd",
    "pwd",
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "tee",
    "touch",
    "cp",
    "mv",
    "ln",
    "mkdir",
    "chmod",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "grep",
    "rg",
    "find",
    "fd",
    "xargs",
    "env",
    "nice",
    "nohup",
    "timeout",
    "time",
    "stdbuf",
    "setsid",
    "ionice",
    "chrt",
    "taskset",
    "setpriv",
    "setarch",
    "linux64",
    "linux32",
    "unshare",
    "nsenter",
    "chroot",
    "flock",
    "watch",
    "parallel",
    "script",
    "su",
    "runuser",
    "sudo",
    "doas",
    "ssh",
    "scp",
    "rsync",
    "tar",
    "zip",
    "git",
    "make",
    "man",
    "less",
    "vim",
    "vi",
    "ex",
    "ed",
    "sh",
    "bash",
    "dash",
    "busybox",
    "strace",
    "ltrace",
    "gdb",
    "split",
    "install",
    "diff",
    "sdiff",
    "diff3",
    "patch",
    "date",
    "seq",
    "sleep",
    "dirname",
    "basename",
    "jobs",
    "fc",
    "history",
    "coproc",
    "systemd-run",
    "at",
    "batch",
    "prlimit",
    "expect",
    "screen",
    "tmux",
    "start-stop-daemon",
    "runcon",
    "ldd",
    "cargo",
    "npm",
    "npx",
    "go",
    "sqlite3",
    "ip",
    "hg",
    "capsh",
    "zless",
    "zmore",
    "pip",
    "cloc",
    "mypy",
    "pandoc",
    "gpg-agent",
    "rustup",
    "dbus-run-session",
    "fakeroot",
    "systemd-inhibit",
    "systemd-cat",
    "choom",
    "ssh-agent",
    "sshpass",
    "dpkg-architecture",
    "docker",
    "kubectl",
    "rename",
    "envdir",
    "ifne",
    "chronic",
    "mispipe",
    "pee",
    "newgrp",
    "sg",
    "bunx",
    "yarn",
    "pnpm",
    "f",
    "x",
    "a",
    "for",
    "IFS=,",
];

/// The rules of a user who lets an agent look around.
const LOOKING: &[&str] = &[
    "ls *",
    "cat *",
    "head *",
    "tail *",
    "wc *",
    "grep *",
    "rg *",
    "find *",
    "fd *",
    "sort *",
    "uniq *",
    "cut *",
    "tr *",
    "awk *",
    "sed -n *",
    "echo *",
    "printf *",
    "pwd",
    "test *",
    "[ *",
    "[[ *",
    "cd *",
    "git status *",
    "git log *",
    "git diff *",
    "git show *",
    "git grep *",
    "git branch *",
    "tree *",
    "file *",
    "stat *",
    "du *",
    "diff *",
    "date *",
    "type *",
    "command -v *",
    "true",
    "xargs *",
    "env *",
    "read *",
    "man *",
    "less *",
    "git *",
    "tar -t*",
    "zip -sf *",
    "time *",
    "timeout *",
    "nice *",
    "jq *",
    "seq *",
    "basename *",
    "dirname *",
    "export *",
    "set *",
    "for *",
    ": *",
];

struct Lists {
    deny: Permissions,
    ask: Permissions,
    allow: Permissions,
    looking: Permissions,
}

impl Lists {
    fn new() -> Self {
        let with = |patterns: Vec<String>, default: &str| {
            let rules: Vec<String> = patterns.into_iter().chain([default.to_owned()]).collect();
            permissions(&rules.iter().map(String::as_str).collect::<Vec<_>>())
        };
        Self {
            deny: permissions(&["deny shell(v *)"]),
            ask: permissions(&["ask shell(v *)"]),
            allow: with(ALLOWED.iter().map(|name| format!("allow shell({name} *)")).collect(), "default ask"),
            looking: with(
                LOOKING.iter().map(|pattern| format!("allow shell({pattern})")).collect(),
                "default deny",
            ),
        }
    }

    /// The lists that allow it.
    fn let_through(&self, text: &str) -> Vec<&'static str> {
        let lists =
            [("deny", &self.deny), ("ask", &self.ask), ("allow", &self.allow), ("looking", &self.looking)];
        let made = |list: &Permissions| list.judge("shell", &command(text)).permission == Permission::Allow;
        lists.into_iter().filter(|(_, list)| made(list)).map(|(name, _)| name).collect()
    }
}

/// Runs scripts in folders of their own.
pub(crate) struct Shells {
    folder: tempfile::TempDir,
    runs: AtomicUsize,
}

impl Shells {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), runs: AtomicUsize::new(0) }
    }

    /// Runs `script` and returns whether `v` was run. Processes that a script leaves running find the programs and
    /// the mark of its own run.
    pub(crate) fn runs_v(&self, shell: &str, script: &str) -> bool {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let root = self.folder.path().join(number.to_string());
        let (mark, bin, cwd) = (root.join("mark"), root.join("bin"), root.join("cwd"));
        fs::create_dir_all(&bin).expect("a folder");
        fs::create_dir(&cwd).expect("a folder");
        program(&bin.join("v"), &format!(": > '{}'", mark.display()));
        program(&bin.join("a"), ":");
        fs::write(cwd.join("f"), "one\ntwo\n").expect("a file");
        fs::write(cwd.join("x.sh"), "v\n").expect("a file");
        let mut child = Command::new("setsid")
            .args(["timeout", "-s", "KILL", "5", shell, "-c", script])
            .current_dir(&cwd)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", bin.display()))
            .env("HOME", &cwd)
            .env("q", "x[$(v)0]")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        child.wait().expect("a status");
        let runs = mark.exists();
        _ = fs::remove_dir_all(&root);
        runs
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

pub(crate) fn rows(text: &'static str) -> Vec<(&'static str, String)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines
        .map(|line| line.split_once('\t').unwrap_or_else(|| panic!("a tab is missing: {line}")))
        .map(|(seen, text)| (seen, text.replace('␤', "\n")))
        .collect()
}

/// What `examine` returns for each item, several at a time: a shell mostly waits for its time to end.
pub(crate) fn side_by_side<T: Sync, R: Send>(items: &[T], examine: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const AT_A_TIME: usize = 8;
    let examined = &|first: usize| {
        let items = items.iter().enumerate().skip(first).step_by(AT_A_TIME);
        items.map(|(at, item)| (at, examine(item))).collect::<Vec<_>>()
    };
    let mut all = thread::scope(|scope| {
        let threads = (0..AT_A_TIME).map(|first| scope.spawn(move || examined(first))).collect::<Vec<_>>();
        threads.into_iter().flat_map(|thread| thread.join().expect("it doesn't panic")).collect::<Vec<_>>()
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

fn seen(shells: &Shells, text: &str) -> String {
    let runs = |shell| Path::new(shell).exists() && shells.runs_v(shell, text);
    let seen = [("/bin/bash", "b"), ("/bin/dash", "d")].into_iter().filter(|(shell, _)| runs(*shell));
    let letters: String = seen.map(|(_, letter)| letter).collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

#[test]
fn no_attempt_is_let_through_that_runs_what_is_not_listed() {
    let lists = Lists::new();
    let missed: Vec<String> = rows(MISSED).into_iter().map(|(_, text)| text).collect();
    let shells = Shells::new();
    let all = rows(ROWS);
    assert!(all.len() >= 400, "{} rows", all.len());
    let show = std::env::var("PROVOST_SHELL_ROWS").ok();
    let (mut wrong, mut shown) = (Vec::new(), String::new());
    let examined = side_by_side(&all, |(_, text)| {
        let through = lists.let_through(text);
        // A command that no list allows needn't be run again.
        let is_run = show.is_some() || !through.is_empty();
        (through, is_run.then(|| seen(&shells, text)))
    });
    for ((recorded, text), (through, seen)) in all.iter().zip(examined) {
        let Some(seen) = seen else { continue };
        shown.push_str(&format!("{seen}\t{}\n", text.replace('\n', "␤")));
        let runs = seen != "-" || *recorded != "-";
        let listed = missed.contains(text);
        let bad: Vec<_> =
            through.into_iter().filter(|list| !(listed && matches!(*list, "deny" | "ask"))).collect();
        if runs && !bad.is_empty() {
            wrong.push(format!("{seen} {bad:?} {text}"));
        }
    }
    if let Some(path) = show {
        fs::write(path, shown).expect("the rows");
    }
    assert!(
        wrong.is_empty(),
        "run and let through ({} of {}):\n{}",
        wrong.len(),
        all.len(),
        wrong.join("\n")
    );
}
