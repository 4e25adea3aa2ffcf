//! Programs that normally only read but can also write, each form with its effect in real shells.
//!
//! The rows are in `shell_writes.txt`: in which shells the command was seen to change the folder it ran in
//! (`b`ash, `d`ash, `-` for none, `m` if only the manual says so), a tab, the command. The one law: if patterns
//! with a star allow only reading programs, a command that changes a file isn't allowed. Commands that would
//! change the machine instead (`date -s`) are in a list here, and are never run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use provost_event::Permission;

use crate::permissions::{command, permissions};
use crate::permissions_attempts::{rows, side_by_side};

const ROWS: &str = include_str!("shell_writes.txt");

/// Programs that normally only read, each allowed with any arguments. `touch`, `set` and the like prepare a row;
/// `git *` is a list of git's subcommands that only read.
#[rustfmt::skip]
const LOOKING: &[&str] = &[
    "uniq", "xxd", "ptx", "shuf", "iconv", "ss", "sort", "tree", "file", "less", "zless", "zmore", "more", "diffstat", "info", "base64", "yq", "xmllint",
    "cloc", "ncdu", "blkid", "sdiff", "time", "find", "fd", "awk", "sed -n", "rg", "cat", "printf", "echo", "jq", "column", "diff", "cmp", "comm", "hexdump",
    "od", "stat", "strings", "nl", "cut", "wc", "tail", "tac", "head", "grep", "paste", "join", "fold", "fmt", "pr", "du", "ls", "ps", "seq", "basename",
    "rev", "nm", "objdump", "readelf", "man", "sha256sum", "numfmt", "tsort", "look", "lsblk", "pstree", "date", "hostname", "sysctl", "dmesg",
    "journalctl", "fuser", "true", "test", "[", "xargs", "env", "timeout", "flock", "command", "for", "set", "x=",
    "git diff", "git log", "git show", "git stash list", "git stash show", "git reflog", "git diff-files", "git diff-tree", "git diff-index", "git shortlog",
    "git whatchanged", "git range-diff", "git archive", "git blame", "git rev-list", "git cherry", "git rev-parse", "git grep", "git merge-tree", "git bisect log",
    "git for-each-ref", "git status", "git notes show", "git -C . diff", "git submodule summary", "git help",
];

fn looking() -> provost_engine::Permissions {
    let pattern = |name: &&str| match name.ends_with('=') {
        true => format!("allow shell({name}*)"),
        false => format!("allow shell({name} *)"),
    };
    let rules: Vec<String> = LOOKING.iter().map(pattern).chain(["default ask".to_owned()]).collect();
    permissions(&rules.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The contents of a folder, by path; git's own folder is left out.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == ".git" {
            continue;
        }
        match entry.path().is_dir() {
            true => all.extend(
                contents(&entry.path()).into_iter().map(|(path, held)| (format!("{name}/{path}"), held)),
            ),
            false => _ = all.insert(name, fs::read(entry.path()).unwrap_or_default()),
        }
    }
    all
}

fn prepared(cwd: &Path) {
    fs::write(cwd.join("f"), "one\ntwo\n").expect("a file");
    fs::write(cwd.join("f2"), "f\nout\n").expect("a file");
    fs::write(cwd.join("m"), "0 string x y\n").expect("a file");
    fs::write(cwd.join("y.yaml"), "a: b\n").expect("a file");
    fs::write(cwd.join("x.xml"), "<a/>\n").expect("a file");
    let script = "git init -q && git add f && git commit -qm a && echo a >> f && git stash -q && echo b >> f";
    let git = ["-c", script];
    let mut child = shell("/bin/sh", cwd, &git);
    assert!(child.status().expect("git").success());
}

fn shell(shell: &str, cwd: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command
        .args(["timeout", "-s", "KILL", "5", shell])
        .args(arguments)
        .current_dir(cwd)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", "/nonexistent")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a"), ("GIT_COMMITTER_NAME", "a")])
        .envs([("GIT_COMMITTER_EMAIL", "a"), ("GIT_CONFIG_NOSYSTEM", "1"), ("TERM", "dumb")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// In which shells `text` changes the folder that it runs in.
fn seen(text: &str) -> String {
    let changes = |path: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        prepared(folder.path());
        let before = contents(folder.path());
        let mut child = shell(path, folder.path(), &["-c", text]);
        _ = child.status().expect("a shell");
        let mut after = contents(folder.path());
        // Files that a row itself prepares.
        after.retain(|name, held| !(held.is_empty() && name.starts_with('-')));
        before != after
    };
    let shells = [("/bin/bash", "b"), ("/bin/dash", "d")];
    let letters: String =
        shells.into_iter().filter(|(path, _)| changes(path)).map(|(_, letter)| letter).collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

#[test]
fn no_star_lets_a_program_that_looks_write_a_file() {
    let looking = looking();
    let show = std::env::var("PROVOST_SHELL_ROWS").ok();
    let (mut wrong, mut shown) = (Vec::new(), String::new());
    let all = rows(ROWS);
    let examined = side_by_side(&all, |(_, text)| {
        let through = looking.judge("shell", &command(text)).permission == Permission::Allow;
        (through, if show.is_some() || through { seen(text) } else { "-".to_owned() })
    });
    for ((recorded, text), (through, seen)) in all.iter().zip(examined) {
        shown.push_str(&format!("{seen}\t{text}\n"));
        if through && (seen != "-" || *recorded != "-") {
            wrong.push(format!("{seen} {text}"));
        }
    }
    if let Some(path) = show {
        fs::write(path, shown).expect("the rows");
    }
    assert!(wrong.is_empty(), "let through and seen to write ({}):\n{}", wrong.len(), wrong.join("\n"));
}

/// Never run: they would change the machine.
const MACHINE: &[&str] = &[
    "date -s 2020-01-01",
    "date -us 2020-01-01",
    "date --set=2020-01-01",
    "date --se 2020-01-01",
    "date 010100002020",
    "date -u 010100002020",
    "date -- 010100002020",
    "date +%F 010100002020",
    "date \"$x\"",
    "date $x",
    "hostname other",
    "hostname -F f",
    "hostname --file=f",
    "hostname $x",
    "sysctl kernel.core_pattern=x",
    "sysctl -w kernel.core_pattern=x",
    "sysctl -qw kernel.core_pattern=x",
    "sysctl -p f",
    "sysctl --load=f",
    "sysctl --system",
    "dmesg -C",
    "dmesg -c",
    "dmesg --clear",
    "dmesg --read-clear",
    "dmesg -n 1",
    "dmesg -D",
    "journalctl --vacuum-size=1K",
    "journalctl --rotate",
    "journalctl --cursor-file=f",
    "fuser -k f",
    "fuser -mk .",
    "fuser --kill f",
    "ss -K dst 127.0.0.1",
    "ss -tK",
    "ss --kill",
];

#[test]
fn no_star_lets_a_program_that_looks_change_the_machine() {
    let looking = looking();
    let through = |text: &&&str| looking.judge("shell", &command(text)).permission == Permission::Allow;
    let wrong: Vec<&&str> = MACHINE.iter().filter(through).collect();
    assert!(wrong.is_empty(), "let through: {wrong:#?}");
}

/// Reading needs no approval.
const LOOKS: &[&str] = &[
    "uniq",
    "uniq f",
    "uniq -c f",
    "uniq -f 1 f",
    "uniq -f1 -s 2 -w 3 f",
    "sort f | uniq -c | sort -rn | head -3",
    "uniq --count --skip-fields=1 f",
    "uniq -- f",
    "xxd f",
    "xxd -l 16 f",
    "xxd -c 4 -g 1 -s 2 f",
    "xxd -p -l 16 f",
    "ptx f f2",
    "shuf -n 1 f",
    "shuf -i 1-9",
    "shuf --head-count=3 f",
    "iconv -f utf8 -t latin1 f",
    "iconv --from-code=utf8 f",
    "ss -tlnp",
    "ss -f inet -s",
    "ss state established",
    "date",
    "date +%F",
    "date -u +%FT%TZ",
    "date -d yesterday +%F",
    "date -d 'now + 1 day'",
    "date --date='1 day ago' '+%s'",
    "date --date yesterday +%s",
    "date -r f",
    "date -Iseconds",
    "date +\"%F $x\"",
    "hostname",
    "hostname -I",
    "hostname --fqdn",
    "sysctl -a",
    "sysctl -n kernel.ostype",
    "dmesg",
    "dmesg -T -l err",
    "journalctl -u ssh -n 20 --no-pager",
    "journalctl -f",
    "journalctl --follow --unit=ssh",
    "fuser -v f",
    "file f",
    "file -b --mime-type f",
    "tree -L 2",
    "tree -a -I target",
    "base64 f",
    "base64 -d f",
    "less f",
    "time ls",
    "time -p ls",
    "command time -v ls",
    "git diff",
    "git diff HEAD~1 -- f",
    "git log --oneline -5",
    "git show HEAD",
    "git show HEAD:f",
    "git log -- \"$x\"",
    "git stash list",
    "git stash show -p",
    "git reflog",
    "diff -u f f2",
    "column -t f",
    "yq .a y.yaml",
    "jq .a f",
];

#[test]
fn looking_goes_on_without_a_question() {
    let looking = looking();
    let asked = |text: &&&str| looking.judge("shell", &command(text)).permission != Permission::Allow;
    let wrong: Vec<&&str> = LOOKS.iter().filter(asked).collect();
    assert!(wrong.is_empty(), "asked about: {wrong:#?}");
}
