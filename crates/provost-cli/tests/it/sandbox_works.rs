//! What must work in the sandbox, with the real programs: version control, compilers, package managers, a debugger.

use std::fs;
use std::process::Output;

use crate::sandbox_stage::{Stage, User};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stage(name: &str) -> Stage {
    Stage::new(User::Mine, &format!("{name}-{}", std::process::id()))
}

/// Whether this machine has the program; a test that needs it says so otherwise.
fn has(stage: &Stage, program: &str) -> bool {
    let found = stage.outside(&format!("command -v {program}")).status.success();
    if !found {
        eprintln!("not tested: there is no {program}");
    }
    found
}

#[track_caller]
fn works(stage: &Stage, script: &str) -> String {
    let who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e\n";
    let done = stage.inside(&format!("{who}{script}"));
    assert!(done.status.success(), "{}", text(&done));
    text(&done)
}

#[test]
fn git_commits_rebases_stashes_clones_and_has_submodules_in_new_repositories() {
    let stage = stage("git");
    works(
        &stage,
        "git checkout -qb topic; echo 1 > a; git add a; git commit -qm a; git checkout -q main; echo 2 > b; git add b; \
                   git commit -qm b; git rebase -q main topic; git log --oneline | wc -l | grep -qx 3",
    );
    works(
        &stage,
        "echo x >> a; git stash -q; git stash pop -q; git diff --quiet && exit 1; git checkout -q a; git switch -q main; \
                   git merge -q topic; git tag v1; git branch -d topic; git gc -q",
    );
    works(
        &stage,
        "git clone -q . copy; cd copy; echo 3 > c; git add c; git commit -qm c; git push -q origin HEAD:refs/heads/pushed",
    );
    works(
        &stage,
        "git init -q lib; cd lib; echo l > l; git add l; git commit -qm l; cd ../copy; \
                   git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; \
                   git -c protocol.file.allow=always submodule --quiet update --init --recursive; test -f lib/l",
    );
    let branches = text(&stage.outside("git branch"));
    assert!(branches.contains("pushed"), "{branches}");
}

#[test]
fn hooks_that_settings_name_in_the_work_tree_run_and_stay_as_they_are() {
    let stage = stage("husky");
    let made = stage.outside(
        "mkdir -p .husky/_ scripts; printf '#!/bin/sh\\n. ./.husky/pre-commit\\n' > .husky/_/pre-commit; \
         echo 'echo checked > checked' > .husky/pre-commit; chmod 755 .husky/_/pre-commit .husky/pre-commit; \
         git config core.hooksPath .husky/_; git config include.path ../scripts/more",
    );
    assert!(made.status.success(), "{}", text(&made));
    works(&stage, "echo 1 > a; git add a; git commit -qm a; grep -q checked checked");
    for attack in [
        "echo evil > .husky/pre-commit",
        "echo evil > .husky/_/pre-commit",
        "echo evil > .husky/_/post-commit",
        "mv .husky gone",
        "echo '[core]' > scripts/more",
        "mv scripts gone",
    ] {
        let done = stage.inside(attack);
        assert!(!done.status.success(), "{attack}: {}", text(&done));
        assert!(
            !text(&stage.outside("cat .husky/_/* .husky/pre-commit scripts/more")).contains("evil"),
            "{attack}"
        );
    }
    assert!(!stage.path("work/scripts/more").exists(), "what covers an absent file is removed");
}

#[test]
fn cargo_builds_and_tests() {
    let stage = stage("cargo");
    if !has(&stage, "cargo") {
        return;
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{home}/.rustup"));
    stage.write(
        "work/Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    stage.write(
        "work/src/lib.rs",
        "pub fn two() -> u32 { 2 }\n#[test]\nfn is_two() { assert_eq!(two(), 2); }\n",
    );
    stage.write("work/build.rs", "fn main() { println!(\"cargo:rerun-if-changed=build.rs\"); }\n");
    let said = works(&stage, &format!("RUSTUP_HOME={rustup} cargo test --offline 2>&1"));
    assert!(said.contains("test is_two ... ok"), "{said}");
}

#[test]
fn npm_installs_offline_and_runs_scripts() {
    let stage = stage("npm");
    if !has(&stage, "npm") {
        return;
    }
    stage.write("work/lib/package.json", r#"{"name":"lib","version":"1.0.0","main":"i.js"}"#);
    stage.write("work/lib/i.js", "module.exports = 42;\n");
    stage.write("work/package.json", r#"{"name":"x","version":"1.0.0","scripts":{"test":"node -e \"process.exit(require('lib') === 42 ? 0 : 1)\""}}"#);
    works(
        &stage,
        "npm pack --silent ./lib > /dev/null; npm install --offline --no-audit --no-fund ./lib-1.0.0.tgz 2>&1; npm test 2>&1; test -f package-lock.json",
    );
}

#[test]
fn a_virtual_environment_of_python_runs_tests() {
    let stage = stage("python");
    let python = "python3 -m venv --system-site-packages own && . own/bin/activate";
    stage.write("work/test_it.py", "import unittest\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(1 + 1, 2)\n");
    works(&stage, &format!("{python} && python -m unittest -q test_it 2>&1"));
    if stage.outside("python3 -m pytest --version").status.success() {
        works(&stage, &format!("{python} && python -m pytest -q test_it.py 2>&1 | grep '1 passed'"));
    } else {
        eprintln!("not tested: there is no pytest");
    }
}

#[test]
fn a_virtual_environment_that_was_not_there_is_the_agents_alone_and_stays_in_its_box() {
    let stage = stage("venv");
    fs::remove_dir_all(stage.path("work/.venv")).unwrap();
    let make = "python3 -m venv --without-pip .venv && .venv/bin/python -c 'print(6 * 7)' | grep -qx 42";
    works(&stage, make);
    assert!(!stage.path("work/.venv").exists(), "nothing is left that the user would run");
    works(&stage, ".venv/bin/python -c 'print(6 * 7)' | grep -qx 42; mkdir -p env && touch env/file");
    assert!(stage.path("work/env/file").exists(), "a folder with an ordinary name is the project's");
}

#[test]
fn compilers_and_a_debugger_of_an_own_child_work() {
    let stage = stage("gdb");
    if !has(&stage, "cc") {
        return;
    }
    stage.write("work/x.c",
        "#include <stdio.h>\nint seen = 0;\nint main(void) {\n  seen = 41;\n  seen++;\n  printf(\"%d\\n\", seen);\n  return 0;\n}\n",
    );
    works(&stage, "cc -g -o x x.c; ./x | grep -qx 42");
    if has(&stage, "gdb") {
        let said =
            works(&stage, "gdb -nx -batch -ex 'break main' -ex run -ex next -ex 'print seen' ./x 2>&1");
        assert!(said.contains("$1 = 41"), "{said}");
    }
}

#[test]
fn a_program_that_only_the_workspace_has_and_a_long_path_are_no_obstacle() {
    let stage = stage("paths");
    works(
        &stage,
        "d=$(printf 'x%.0s' $(seq 100)); mkdir -p \"$d/$d\"; printf '#!/bin/sh\\necho ran\\n' > \"$d/$d/p\"; chmod 755 \"$d/$d/p\"; \
                   \"./$d/$d/p\" | grep -qx ran; ln a.txt b.txt 2>/dev/null || { echo 1 > a.txt; ln a.txt b.txt; }; ln -s a.txt c.txt; \
                   mkfifo f; ( echo through > f & ) ; cat f | grep -qx through; df . > /dev/null; stat / > /dev/null; \
                   python3 -c 'import multiprocessing as m; m.Lock(); m.Pool(2).map(abs, [1])'",
    );
    assert!(fs::read_to_string(stage.path("work/b.txt")).is_ok());
}
