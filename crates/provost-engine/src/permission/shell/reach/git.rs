//! Git: leading options that run commands, subcommands that aren't its own, options that name programs.

use super::{At, Reach, may_be_option};

/// Git's own subcommands whose behavior depends on their arguments alone and not on the configuration: any other
/// name may be an alias, which runs anything.
#[rustfmt::skip]
const OWN: &[&str] = &[
    "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore", "check-mailmap",
    "check-ref-format", "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "commit-graph", "commit-tree", "config", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "init", "log", "ls-files", "ls-remote", "ls-tree",
    "merge", "merge-base", "merge-tree", "mktree", "mv", "name-rev", "notes", "pack-refs", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote", "replace", "rerere",
    "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-branch", "show-ref", "sparse-checkout", "stage", "stash", "status", "stripspace", "submodule",
    "switch", "symbolic-ref", "tag", "unpack-objects", "update-index", "update-ref", "var", "verify-commit", "verify-tag", "version", "whatchanged", "worktree", "write-tree", "help",
];

/// Options of the subcommands that run or load something, by subcommand.
const RUNS: &[(&[&str], &[&str], &str)] = &[
    (&["fetch", "pull"], &["upload-pack"], ""),
    (&["ls-remote", "fetch-pack"], &["upload-pack", "exec"], ""),
    (&["send-pack"], &["receive-pack", "exec"], ""),
    (&["clone"], &["upload-pack", "config", "template"], "uc"),
    (&["push"], &["receive-pack", "exec"], ""),
    (&["archive"], &["exec"], ""),
    (&["rebase"], &["exec"], "x"),
    (&["grep"], &["open-files-in-pager"], "O"),
    (&["init"], &["template"], ""),
    (&["help"], &["web", "man", "info"], "wmi"),
];

/// Subcommands that print and have an option to write to a file.
const WRITES: [&str; 17] = [
    "log",
    "diff",
    "show",
    "archive",
    "diff-files",
    "diff-tree",
    "diff-index",
    "whatchanged",
    "shortlog",
    "range-diff",
    "stash",
    "reflog",
    "rev-list",
    "format-patch",
    "cherry",
    "blame",
    "annotate",
];

/// Options before the subcommand that run nothing.
const FRONT: [&str; 10] = [
    "-P",
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "-v",
    "-h",
];

/// Settings that only change what is shown or recorded.
const SETTINGS: [&str; 11] = [
    "color.",
    "user.name",
    "user.email",
    "commit.gpgsign",
    "tag.gpgsign",
    "core.quotepath",
    "core.quotePath",
    "advice.",
    "init.defaultbranch",
    "init.defaultBranch",
    "pull.rebase",
];

const SETS: &str = "a setting of git may run a command";

pub(super) fn git(reach: &mut Reach, index: usize, at: At<'_>) {
    let Some(command) = git_front(reach, index, at) else { return };
    let Some(word) = at.arguments.get(command) else { return };
    let name = word.value.as_str();
    if !matches!(name, "clone" | "init" | "version" | "help") {
        reach.repository(at);
    }
    if !OWN.contains(&name) {
        for word in at.arguments.get(command + 1..).unwrap_or_default() {
            reach.names(index, &word.value);
        }
        return reach.unread("a command of git that isn't its own may be an alias", at, command);
    }
    if WRITES.contains(&name) {
        git_output(reach, at, command);
    }
    match name {
        "config" => git_config(reach, index, at, command),
        "bisect" if at.value(command + 1) == Some("run") => {
            let words = at.arguments.get(command + 2..).unwrap_or_default();
            reach.words(at, command + 2, words);
        }
        "bisect" | "submodule" => git_each(reach, at, command),
        "push" => git_target(reach, at, command),
        _ => {}
    }
    git_options(reach, index, at, (command, name));
}

/// Skips the options before git's subcommand; returns its position.
fn git_front(reach: &mut Reach, index: usize, at: At<'_>) -> Option<usize> {
    let mut place = 0;
    while let Some(word) = at.arguments.get(place) {
        let value = word.value.as_str();
        if value.starts_with("--exec-path=") {
            reach.doubt("the programs of git are in another folder");
        }
        if value.starts_with("--config-env") && !is_harmless(value.trim_start_matches("--config-env=")) {
            reach.doubt("a setting of git is in a variable, and may run a command");
        }
        if word.value.contains(super::HOLE) || !word.plain {
            reach.put_in(index, at, place);
            return None;
        }
        match value {
            "-C" => {
                git_folder(reach, at, place + 1);
                place += 2;
            }
            "-c" | "--config-env" => {
                let setting = at.value(place + 1).unwrap_or_default();
                if !is_harmless(setting) || at.arguments.get(place + 1).is_some_and(|word| word.splits) {
                    reach.names(index, setting);
                    let only_shows = SETTINGS.iter().any(|known| setting.starts_with(known));
                    if setting.contains(super::HOLE) && !only_shows {
                        reach.doubt("which command a setting of git runs shows only when it runs");
                    }
                    reach.unread(SETS, at, place + 1);
                }
                place += 2;
            }
            "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {
                reach.unread("it takes its settings from elsewhere", at, place + 1);
                place += 2;
            }
            "--version" | "--help" | "--html-path" | "--man-path" | "--info-path" => return None,
            _ if FRONT.contains(&value) => place += 1,
            _ if value.starts_with('-') => {
                reach.names(index, value);
                reach.scripts.note_text(value);
                reach.unread("an option of git may run a command", at, place);
                place += 1;
            }
            _ => return Some(place),
        }
    }
    None
}

/// The folder in which git runs.
fn git_folder(reach: &mut Reach, at: At<'_>, place: usize) {
    if let Some(word) = at.arguments.get(place).filter(|word| reach.folders.is_outside(word)) {
        reach.names(at.trails.last().map_or(0, |trail| trail.command), &word.raw);
        reach.unread(super::folder::REPOSITORY, at, place);
    }
}

/// The repository that git pushes to: the hooks of one in a folder run.
fn git_target(reach: &mut Reach, at: At<'_>, command: usize) {
    for (place, word) in at.arguments.iter().enumerate().skip(command + 1) {
        let path = word.value.strip_prefix("file://").unwrap_or(&word.value);
        let path = path.strip_prefix("--repo=").unwrap_or(path);
        let folder = super::Word { value: path.to_owned(), ..word.clone() };
        if path.starts_with(['/', '.', '~']) && reach.folders.is_outside(&folder) {
            reach.unread(super::folder::REPOSITORY, at, place);
        }
    }
}

fn git_options(reach: &mut Reach, index: usize, at: At<'_>, (command, name): (usize, &str)) {
    let known = RUNS.iter().find(|(names, ..)| names.contains(&name));
    let (long, letters) = known.map_or((&[] as &[&str], ""), |(_, long, letters)| (*long, *letters));
    for (offset, word) in at.arguments.iter().enumerate().skip(command + 1) {
        let value = word.value.as_str();
        if value.contains("::") {
            reach.names(index, value);
            reach.unread("it may reach a program through git", at, offset);
        }
        if value == "--" {
            return;
        }
        let option = value.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
        let is_long = option
            .is_some_and(|option| !option.is_empty() && long.iter().any(|known| known.starts_with(option)));
        let cluster = value.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        let is_short = !letters.is_empty() && cluster.contains(|c| letters.contains(c));
        if is_short {
            // The letters before it may be options without values.
            reach.names(index, cluster.split_once(|c| letters.contains(c)).map_or("", |(_, value)| value));
        }
        if is_long || is_short {
            git_value(reach, index, at, (offset, name));
        } else if known.is_some() && may_be_option(word) {
            reach.put_in(index, at, offset);
        }
    }
}

/// The value of an option that is run.
fn git_value(reach: &mut Reach, index: usize, at: At<'_>, (place, name): (usize, &str)) {
    let value = at.value(place).unwrap_or_default();
    let attached = value.split_once('=').map(|(_, rest)| rest).filter(|_| value.starts_with("--"));
    let next = place + usize::from(attached.is_none());
    match attached.or_else(|| at.value(next)) {
        Some(script) if name == "rebase" && (value.starts_with("--") || value == "-x") => {
            reach.text(at, next, script);
        }
        script => {
            reach.names(
                index,
                value.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_uppercase()),
            );
            reach.names(index, script.unwrap_or_default());
            reach.scripts.note_text(script.unwrap_or(value));
            if script.unwrap_or(value).contains(super::HOLE) {
                reach.doubt("which command it runs shows only when it runs");
            }
            reach.unread("an option of git runs a command", at, place);
        }
    }
}

fn git_output(reach: &mut Reach, at: At<'_>, command: usize) {
    for (place, word) in at.arguments.iter().enumerate().skip(command + 1) {
        let value = word.value.as_str();
        let name = value.split('=').next().unwrap_or_default();
        let is_output = name.len() > 3 && "--output".starts_with(name);
        if value == "--" {
            return;
        }
        if is_output || (at.value(command) == Some("archive") && value.starts_with("-o")) {
            reach.unread(super::option::WRITES, at, place);
        } else if may_be_option(word) {
            reach.unread(super::option::PUT_IN_WRITES, at, place);
        }
    }
}

fn git_config(reach: &mut Reach, index: usize, at: At<'_>, command: usize) {
    let words = at.arguments.get(command + 1..).unwrap_or_default();
    let asks = |value: &str| matches!(value, "-l" | "--list" | "list" | "get") || value.starts_with("--get");
    let names = words.iter().filter(|word| !word.value.starts_with('-')).collect::<Vec<_>>();
    let changes = |value: &str| {
        let long = value.strip_prefix("--").unwrap_or_default();
        ["add", "unset", "replace-all", "rename-section", "remove-section", "edit"]
            .iter()
            .any(|known| !long.is_empty() && known.starts_with(long))
    };
    let edits = words.iter().any(|word| changes(&word.value) || word.value == "-e" || may_be_option(word));
    let reads = words.first().is_some_and(|word| asks(&word.value)) || names.len() <= 1;
    let harmless = names.first().is_some_and(|name| is_harmless(&name.value));
    if edits || !(reads || harmless) {
        for word in words {
            reach.names(index, &word.value);
        }
        let last = at.arguments.len().saturating_sub(1);
        reach.unread(SETS, at, last);
    }
}

/// `submodule foreach COMMAND`, and subcommands of the same form.
fn git_each(reach: &mut Reach, at: At<'_>, command: usize) {
    let each = at.arguments.iter().skip(command + 1).position(|word| word.value == "foreach");
    if let Some(each) = each {
        let start = at
            .arguments
            .iter()
            .enumerate()
            .skip(command + each + 2)
            .find(|(_, word)| !word.value.starts_with('-'));
        if let Some((start, _)) = start {
            reach.joined_text(at, start);
        }
    }
    for (place, word) in at.arguments.iter().enumerate().skip(command + 1) {
        if may_be_option(word) || matches!(word.value.as_str(), "run" | "visualize" | "view") {
            reach.unread("which command of git it is shows only when it runs", at, place);
        }
    }
}

fn is_harmless(setting: &str) -> bool {
    SETTINGS.iter().any(|known| setting.starts_with(known)) && !setting.contains(super::HOLE)
}
