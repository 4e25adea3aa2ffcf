//! Git in another folder: it runs what the settings of that folder's repository name.

use std::fs;
use std::path::Path;
use std::process::Command;

use provost_engine::Permissions;
use provost_event::{Json, Permission};

use crate::permissions::{command, permissions, policy};
use crate::world::known_tools;

const RULES: [&str; 9] = [
    "allow shell(git *)",
    "allow shell(cd *)",
    "allow shell(pushd *)",
    "allow shell(popd)",
    "allow shell(env *)",
    "allow shell(find *)",
    "allow shell(for *)",
    "allow shell(xargs *)",
    "default ask",
];

#[test]
fn git_outside_of_the_workspace_needs_approval() {
    let rules = permissions(&RULES);
    let asked = |text: &&str| rules.judge("shell", &command(text)).permission == Permission::Ask;
    let outside = [
        "git -C .. status",
        "git -C /other status",
        "git -C sub/../.. status",
        "git -C ~ log",
        "git -C ~other log",
        "git -C $x status",
        "git -C \"$x\" status",
        "git -C \"$PWD\"/.. status",
        "git -C * status",
        "git -C sub -C .. status",
        "git -C /srv/project-other status",
        "cd .. && git status",
        "cd /other; git log",
        "cd; git log",
        "cd ~-; git log",
        "cd -P /other; (git log)",
        "cd \"$x\"; git log",
        "pushd /other; git log; popd",
        "for x in a b; do git log; cd ..; done",
        "env -C /other git log",
        "env --chdir=/other git log",
        "env --chdir /other git log",
        "find /other -maxdepth 0 -execdir git status ';'",
        "find .. -name .git -execdir git status ';'",
        "xargs -I % git -C % status",
        "git push ../other main",
        "git push /other main",
        "git push file:///other main",
        "git push --repo=../other",
    ];
    let inside = [
        "git -C sub status",
        "git -C ./sub/.. status",
        "git -C /srv/project status",
        "git -C /srv/project/sub log",
        "git -C \"$PWD\" status",
        "cd sub && git status",
        "cd sub; git log; cd -; git log",
        "cd \"$(git rev-parse --show-toplevel)\" && git status",
        "pushd sub; git log; popd",
        "find . -name .git -execdir git status ';'",
        "env -C sub git log",
        "cd /other; git clone https://example.org/x",
        "cd /other",
        "git push origin main",
        "git push ./sub main",
        "git push https://example.org/x main",
    ];
    assert_eq!(outside.iter().filter(|text| !asked(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(inside.iter().filter(|text| asked(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn a_pattern_may_name_the_other_folder() {
    let rules = permissions(&["allow shell(git -C /other *)", "default ask"]);
    let judge = |text| rules.judge("shell", &command(text)).permission;
    assert_eq!(judge("git -C /other status"), Permission::Allow);
    assert_eq!(judge("git -C /other/.. status"), Permission::Ask);
}

#[test]
fn a_terminal_is_led_out_of_the_workspace_with_approval_only() {
    let rules = permissions(&["allow terminal(cd *)", "allow terminal(git *)", "default ask"]);
    let judge = |text: &str| {
        let input = Json::of(&serde_json::json!({ "action": "send", "text": text })).expect("JSON");
        rules.judge("terminal", &input).permission
    };
    assert_eq!(judge("cd sub"), Permission::Allow);
    assert_eq!(judge("git status"), Permission::Allow);
    for text in ["cd ..", "cd /other", "cd", "cd $x", "cd ~"] {
        assert_eq!(judge(text), Permission::Ask, "{text}");
    }
}

/// What git really does there: it starts the watcher that the repository's settings name.
#[test]
fn git_runs_what_another_repository_names_and_that_needs_approval() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workspace, other) = (folder.path().join("workspace"), folder.path().join("other"));
    fs::create_dir_all(&workspace).expect("a folder");
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(&workspace)
            .env("HOME", &workspace)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git")
            .status;
        assert!(status.success(), "{arguments:?}");
    };
    let mark = folder.path().join("mark");
    git(&["init", "-q", "../other"]);
    fs::write(other.join("f"), "one\n").expect("a file");
    let hook = format!(": > '{}'; false", mark.display());
    git(&["-C", "../other", "config", "core.fsmonitor", &hook]);
    let rules = Permissions::of_policy(&policy(&RULES), Path::new(&workspace), &known_tools());
    let judge = |text: &str| rules.judge("shell", &command(text)).permission;
    assert_eq!(judge("git -C ../other status"), Permission::Ask);
    assert_eq!(judge("cd ../other && git status"), Permission::Ask);
    assert!(!mark.exists());
    git(&["-C", "../other", "status"]);
    assert!(mark.exists(), "git ran nothing: there is nothing to ask about");
}
