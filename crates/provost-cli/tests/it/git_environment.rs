//! Variables of the environment that make git start programs: with plain git each of them does, in a run that
//! reads a repository with Provost's own git none does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Scene, done};

const ANSWERS: &str = "answers: [{ tools: [{ shell: { command: echo new > new.txt } }] }, { text: done }]";
const GOAL: &str = "[goal]\ncondition = \"new.txt is there\"\njudge = \"script:judge.yaml\"\n";
const JUDGE: &str = "verdicts: [{ achieved: true, confidence: 1.0, reasoning: it is there }]";
const REPOSITORY: &str = "git init -q && git config user.name a && git config user.email a@b && echo 1 > old.txt && \
     git add -A && git commit -qm 1 && git remote add origin ssh://nowhere.invalid/x && \
     git remote add proxied git://nowhere.invalid/x && echo 2 > old.txt";

/// Variables, with `CANARY` for the program that they name, and a command of git that starts it then.
const HOSTILE: [(&[(&str, &str)], &str); 12] = [
    (&[("GIT_EXTERNAL_DIFF", "CANARY")], "git diff HEAD"),
    (
        &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", "CANARY"),
        ],
        "git status",
    ),
    (&[("GIT_CONFIG_PARAMETERS", "'diff.external'='CANARY'")], "git diff HEAD"),
    (&[("GIT_CONFIG_GLOBAL", "FOLDER/hostile.cfg")], "git diff HEAD"),
    (&[("GIT_CONFIG_SYSTEM", "FOLDER/hostile.cfg")], "git diff HEAD"),
    (&[("GIT_SSH_COMMAND", "CANARY")], "git fetch origin"),
    (&[("GIT_PROXY_COMMAND", "CANARY")], "git fetch proxied"),
    (&[("GIT_PAGER", "CANARY")], "script -qc 'git log' /dev/null"),
    (&[("GIT_EDITOR", "CANARY")], "git commit --allow-empty"),
    // Git looks there for programs of its own: `git-remote-https`, `git-status` where it is a program.
    (&[("GIT_EXEC_PATH", "FOLDER/programs")], "git ls-remote https://nowhere.invalid/x"),
    (&[("GIT_EXEC_PATH", "FOLDER/programs")], "git canary"),
    // What is copied into a new repository, hooks among it.
    (
        &[("GIT_TEMPLATE_DIR", "FOLDER/template")],
        "git init -q new && cd new && git -c user.name=a -c user.email=a@b commit --allow-empty -m 1",
    ),
];

/// A program that records its start.
fn canary(folder: &Path, name: &str) {
    let program = folder.join(name);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("#!/bin/sh\necho sung >> '{}/song'\nexit 1\n", folder.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_variable_has_provosts_own_git_start_a_program() {
    for (variables, provoke) in HOSTILE {
        let scene = Scene::scripted(ANSWERS).with_settings(GOAL);
        scene.write("work/judge.yaml", JUDGE);
        let (folder, work) = (scene.path(""), scene.path("work"));
        for name in [
            "canary",
            "programs/git-canary",
            "programs/git-remote-https",
            "programs/git-diff",
            "programs/git-status",
            "programs/git-ls-files",
            "template/hooks/pre-commit",
        ] {
            canary(&folder, name);
        }
        let program = folder.join("canary").display().to_string();
        scene.write("hostile.cfg", &format!("[diff]\n\texternal = {program}\n"));
        let hostile = variables.iter().map(|(name, value)| {
            let value = value.replace("CANARY", &program);
            (*name, value.replace("FOLDER/", &format!("{}/", folder.display())))
        });
        let hostile = hostile.collect::<Vec<_>>();
        let shell = |script: &str, variables: &[(&str, String)]| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(&work).stdin(Stdio::null()).env("HOME", &folder);
            command.envs(variables.iter().map(|(name, value)| (name, value))).output().unwrap()
        };
        assert!(shell(REPOSITORY, &[]).status.success());
        let mut run = scene.command(&["run", "do it"]);
        run.envs(hostile.iter().map(|(name, value)| (name, value)));
        let ran = done(&run.output().unwrap());
        assert_eq!(ran.status, 0, "{hostile:?}: {ran:?}");
        let log = scene.provost(&["export", "last"]).stdout;
        assert!(log.contains("goal_verdict"), "{hostile:?}: else this shows nothing: {log}");
        assert!(!folder.join("song").exists(), "{hostile:?}: Provost's git has started it");
        let provoked = shell(provoke, &hostile);
        assert!(folder.join("song").exists(), "{hostile:?}: git as it is doesn't start it: {provoked:?}");
    }
}
