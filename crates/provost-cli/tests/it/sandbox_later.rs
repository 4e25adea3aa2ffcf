//! What an agent in the sandbox leaves for later: for git, for hooks, for Provost's own programs, for who trusts nothing.

use std::fs;
use std::process::Output;

use crate::sandbox_stage::{Stage, User};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stage(name: &str) -> Stage {
    Stage::new(User::Mine, &format!("{name}-{}", std::process::id()))
}

/// What makes the shell's folder a repository without a work tree, whose settings have git run something.
const BARE: &str = "mkdir -p objects refs/heads; echo 'ref: refs/heads/main' > HEAD; \
    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"touch %s #\"\\n' $OUT/ran > config";

/// Plants something by this script in the box, in this folder of the stage; whether the user's own git then runs it.
fn is_run_by_git(stage: &Stage, folder: &str, script: &str) -> bool {
    let folder = stage.path(folder).display().to_string();
    stage.provost(&["sandbox", "run", "-C", &folder, "--", "sh", "-c", &format!("cd {folder}; {script}")]);
    stage.outside(&format!(
        "cd {folder}; git status --short; git -c user.name=a -c user.email=b@c commit -q --allow-empty -m x"
    ));
    stage.path("out/ran").exists()
}

#[test]
fn git_runs_nothing_of_a_repository_that_was_made_at_the_top_of_the_workspace() {
    for (name, folder, script) in [
        ("valid", "work", format!("mv .git/HEAD .git/H; {BARE}")),
        (
            "elsewhere",
            "work",
            format!(
                "mv .git/HEAD .git/H; {BARE}; rm -rf refs objects; mkdir -p evil/objects evil/refs; \
            cp config evil; echo evil > commondir"
            ),
        ),
        ("none", "work2", BARE.to_owned()),
        ("below", "work/sub", BARE.to_owned()),
    ] {
        let stage = stage(name);
        stage.write("work/sub/file", "");
        assert!(!is_run_by_git(&stage, folder, &script), "{name}");
    }
}

#[test]
fn git_runs_nothing_that_its_settings_name_in_the_workspace() {
    let stage = stage("named");
    stage.outside("mkdir -p .husky/_ tools; echo '#!/bin/sh' > .husky/_/pre-commit; echo '#!/bin/sh' > tools/watch; chmod +x .husky/_/* tools/*; \
        git config core.hooksPath .husky/_; git config include.path ../team.gitconfig; git config alias.x '!tools/watch -v'; echo '[alias]' > team.gitconfig");
    for script in [
        "echo 'touch $OUT/ran' >> .husky/_/pre-commit",
        "echo 'touch $OUT/ran' > .husky/pre-commit",
        "mv .husky .h; cp -r .h .husky; echo 'touch $OUT/ran' >> .husky/_/pre-commit",
        "printf '[core]\\n\\tfsmonitor = \"touch %s #\"\\n' $OUT/ran >> team.gitconfig",
        "echo 'touch $OUT/ran' >> tools/watch; test $(wc -l < tools/watch) = 1 || touch changed",
        "mv tools t; test ! -e tools && touch changed",
    ] {
        assert!(!is_run_by_git(&stage, "work", script), "{script}");
        assert!(!stage.path("work/changed").exists(), "{script}");
    }
    let works = stage.outside("git config user.name mine; touch mine").status.success()
        && stage.inside("echo x > mine").status.success();
    assert!(works, "a name in the settings is no file");
    let listed = text(&stage.provost(&["sandbox", "explain"]));
    for name in ["work/.husky  decides", "work/team.gitconfig  decides", "work/tools/watch  decides"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
}

#[test]
fn git_runs_nothing_of_submodules_that_were_added_or_replaced() {
    let evil = "printf '[core]\\n\\tfsmonitor = \"touch %s #\"\\n' $OUT/ran";
    let who = "-c user.name=a -c user.email=b@c";
    let added = format!(
        "git init -q s; cd s; git {who} commit -q --allow-empty -m i; cd ..; mkdir -p .git/modules; mv s/.git .git/modules/s; \
         echo 'gitdir: ../.git/modules/s' > s/.git; {evil} >> .git/modules/s/config; git add s"
    );
    let stage = stage("added");
    assert!(!is_run_by_git(&stage, "work", &added));
    for script in [
        format!(
            "mv sm sm0; cp -r sm0 sm; rm -f sm/.git; cp -r .git/modules/sm sm/.git; printf '[core]\\n\\tworktree = ..\\n' >> sm/.git/config; {evil} >> sm/.git/config"
        ),
        format!("rm -f sm/.git; git init -q sm; {evil} >> sm/.git/config"),
        format!("{evil} >> .git/modules/sm/config"),
    ] {
        let stage = self::stage("replaced");
        let made = stage.outside(&format!(
            "git init -q ../lib; git -C ../lib {who} commit -q --allow-empty -m i; \
             git -c protocol.file.allow=always submodule add -q ../lib sm && git {who} commit -qm s"
        ));
        assert!(made.status.success(), "{}", text(&made));
        assert!(!is_run_by_git(&stage, "work", &script), "{script}");
        let works = stage.inside(&format!("cd sm && git {who} commit -q --allow-empty -m two"));
        assert!(works.status.success(), "{}", text(&works));
    }
}

#[test]
fn provosts_git_is_not_one_that_an_agent_made() {
    let stage = stage("git");
    let ran = stage.path("out/ran").display().to_string();
    let script = format!("mkdir -p bin; printf \"#!/bin/sh\\ntouch {ran}\\n\" > bin/git; chmod +x bin/git");
    stage
        .project(&format!("{{ tools: [{{ shell: {{ command: '{}' }} }}] }}", script.replace('\'', "''")), "");
    let path = format!("{}:{}", stage.path("work/bin").display(), std::env::var("PATH").unwrap());
    for args in [["run", "do it"].as_slice(), &["diff", "last", "--stat"]] {
        let done = stage.command(env!("CARGO_BIN_EXE_provost"), args).env("PATH", &path).output().unwrap();
        assert!(stage.path("work/bin/git").exists(), "{}", text(&done));
        assert!(!stage.path("out/ran").exists(), "{}", text(&done));
    }
}

#[test]
fn what_an_agent_writes_is_not_run_unconfined_by_a_stop_hook() {
    let stage = stage("make");
    let out = stage.path("out/ran").display().to_string();
    stage.write("work/check", "sh ./inner\n");
    stage.write("work/inner", "true\n");
    let tools = format!("{{ tools: [{{ shell: {{ command: 'echo \"touch {out}; true\" > inner' }} }}] }}");
    stage.project(&tools, "[[stop_hooks]]\nname = \"check\"\ncommand = \"sh ./check\"\n");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    assert_ne!(fs::read_to_string(stage.path("work/inner")).unwrap(), "true\n");
    assert!(!stage.path("out/ran").exists());
}

#[test]
fn the_scripts_of_hooks_are_not_the_agents_to_write() {
    let stage = stage("scripts");
    stage.write("work/scripts/guard.sh", "exit 0\n");
    let attack = "echo x >> scripts/guard.sh; mv scripts s; rm -rf scripts";
    let tools = format!(
        "{{ tools: [{{ shell: {{ command: '{attack}' }} }}] }}, {{ tools: [{{ write_file: {{ path: scripts/guard.sh, content: x }} }}] }}"
    );
    for hooks in ["", "hooks = false\n"] {
        stage.project(
            &tools,
            &format!("{hooks}[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"sh ./scripts/guard.sh\"\n"),
        );
        let done = stage.provost(&["run", "do it"]);
        assert!(done.status.success(), "{}", text(&done));
        assert_eq!(fs::read_to_string(stage.path("work/scripts/guard.sh")).unwrap(), "exit 0\n");
        assert!(stage.log().contains("guard.sh decides what runs later"), "{}", stage.log());
    }
}

#[test]
fn a_projects_file_widens_nothing_where_the_users_settings_have_no_sandbox() {
    let stage = stage("untrusted");
    stage.write("work/provost.toml", "[sandbox]\nmode = \"workspace\"\nexternal = false\n");
    assert!(
        stage.provost(&["sandbox", "run", "--", "true"]).status.success(),
        "what `init` writes widens nothing"
    );
    let out = stage.path("out").display().to_string();
    for widening in [
        format!("write = [\"{out}\"]"),
        "network = \"open\"".to_owned(),
        "allow_hosts = [\"evil.example\"]".to_owned(),
    ] {
        stage.write("work/provost.toml", &format!("[sandbox]\n{widening}\n"));
        let done = stage.inside("echo x > $OUT/new");
        assert_eq!(done.status.code(), Some(2), "{widening}: {}", text(&done));
        assert!(!stage.path("out/new").exists(), "{widening}");
        assert!(text(&done).contains(&widening.replace(['"', '[', ']'], "")), "{}", text(&done));
    }
    assert!(stage.provost(&["trust", "--yes"]).status.success());
    assert!(stage.provost(&["sandbox", "run", "--", "true"]).status.success());
}

#[test]
fn hooks_in_the_box_read_the_transcript_and_set_variables_which_the_agent_cannot() {
    let stage = stage("informed");
    let state = stage.path("state").display().to_string();
    let steps = [
        "echo $SEEN > said",
        &format!("find {state} -name '*.jsonl' -o -name '*.sh' > listed 2>&1"),
        "for file in $(cat names); do echo 'export SEEN=mine' >> $file; cat $file; done > stolen 2>/dev/null",
    ];
    let tools = format!("{{ tools: [{{ shell: {{ command: \"{}; true\" }} }}] }}", steps.join("; "));
    let settings = "[[hooks]]\nevent = \"session_start\"\ncontract = \"claude\"\n\
         command = \"echo 'export SEEN=yes' >> $CLAUDE_ENV_FILE; echo $CLAUDE_ENV_FILE >> names\"\n\
         [[hooks]]\nevent = \"pre_tool_call\"\ncontract = \"claude\"\n\
         command = '''file=$(sed 's/.*\"transcript_path\":\"\\([^\"]*\\)\".*/\\1/'); echo $file >> names; cat $file > seen'''\n";
    stage.project(&tools, settings);
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    let read = |name: &str| fs::read_to_string(stage.path(&format!("work/{name}"))).unwrap_or_default();
    assert!(read("seen").contains("\"type\":\"user\""), "{} {}", read("seen"), text(&done));
    assert_eq!(read("said"), "yes\n");
    assert_eq!(read("names").lines().count(), 2);
    assert_eq!((read("listed"), read("stolen")), (String::new(), String::new()));
}
