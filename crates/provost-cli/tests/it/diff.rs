//! `provost diff`: what a run changed, apart from what was changed before it.

use std::process::Command;

use crate::support::{Scene, json};

/// In the workspace, before the run: commits, then changes that aren't committed.
const BEFORE: &str = "git init -q && git config user.name a && git config user.email a@b && \
     printf 'one\\ntwo\\n' > kept.txt && printf 'old\\n' > gone.txt && git add -A && git commit -qm first && \
     printf 'one\\ntwo\\nmine, before\\n' > kept.txt && echo note > untracked.txt && echo other > same.txt";

const WORK: &str = r#"
answers:
  - tools:
      - shell: { command: "sed -i 's/two/2/' kept.txt; rm gone.txt; echo more >> untracked.txt; mkdir -p src; echo new > 'src/a b.txt'; head -c 999 /dev/zero > zero.bin; git add -A; git commit -qm done" }
  - text: done
"#;

fn sh(scene: &Scene, script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).current_dir(scene.path("work")).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A run that has changed files in a repository with uncommitted changes.
fn worked() -> Scene {
    let scene = Scene::new();
    scene.write("work/script.yaml", WORK);
    sh(&scene, &format!("{BEFORE} && echo script.yaml >> .git/info/exclude"));
    let run = scene.provost(&["run", "Change files.", "--model", "script:script.yaml"]);
    assert_eq!(run.status, 0, "{run:?}");
    scene
}

#[test]
fn it_shows_what_the_run_changed_and_not_what_was_changed_before() {
    let scene = worked();
    let listed = scene.provost(&["diff", "last", "--stat"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let files = listed.stdout.lines().skip(1).collect::<Vec<_>>();
    let expected = [
        "D +0 -1     gone.txt",
        "M +1 -1     kept.txt",
        "A +1 -0     src/a b.txt",
        "M +1 -0     untracked.txt",
        "A not text  zero.bin",
    ];
    assert_eq!(files, expected, "{listed:?}");
    assert!(listed.stdout.starts_with("5 files changed, +3 -2 in "), "{listed:?}");
    let one = scene.provost(&["diff", "last", "src", "--stat"]).stdout;
    assert_eq!(one.lines().skip(1).collect::<Vec<_>>(), ["A +1 -0  src/a b.txt"]);
}

#[test]
fn its_patch_undoes_the_run_and_leaves_the_users_own_changes() {
    let scene = worked();
    let patch = scene.provost(&["diff", "last"]);
    assert_eq!(patch.status, 0, "{patch:?}");
    scene.write("work/undo.patch", &patch.stdout);
    sh(&scene, "git apply -R undo.patch");
    assert_eq!(sh(&scene, "cat kept.txt gone.txt untracked.txt"), "one\ntwo\nmine, before\nold\nnote\n");
    assert!(!scene.path("work/src/a b.txt").exists() && !scene.path("work/zero.bin").exists());
    let undone = scene.provost(&["diff", "last", "--stat", "--json"]);
    let files = json(&undone.stdout)["files"].as_array().unwrap().clone();
    let paths = files.iter().map(|file| file["path"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(paths, ["undo.patch"], "{undone:?}");
}

#[test]
fn an_imported_run_knows_the_files_at_its_start() {
    let scene = worked();
    let before = scene.provost(&["diff", "last"]).stdout;
    let file = scene.path("run.jsonl");
    assert_eq!(scene.provost(&["export", "last", "-o", file.to_str().unwrap()]).status, 0);
    std::fs::remove_dir_all(scene.path("state")).unwrap();
    assert_eq!(scene.provost(&["import", file.to_str().unwrap()]).status, 0);
    assert!(!before.is_empty());
    assert_eq!(scene.provost(&["diff", "last"]).stdout, before);
}

#[test]
fn what_a_run_refers_to_stays_when_another_is_pruned() {
    let scene = worked();
    scene.write("work/dirty.txt", "before the second run\n");
    let again = "answers: [{ tools: [{ shell: { command: 'echo x >> dirty.txt' } }] }, { text: done }]";
    scene.write("work/script.yaml", again);
    assert_eq!(scene.provost(&["run", "Again.", "--model", "script:script.yaml"]).status, 0);
    let before = scene.provost(&["diff", "last"]).stdout;
    assert!(before.contains("+x"), "{before}");
    let pruned = scene.provost(&["prune", "--keep", "1", "--yes", "--json"]);
    assert_eq!(pruned.status, 0, "{pruned:?}");
    assert_eq!(scene.provost(&["ps", "--json"]).stdout.lines().count(), 1);
    assert_eq!(scene.provost(&["diff", "last"]).stdout, before);
}

#[test]
fn outside_of_a_repository_it_says_that_it_does_not_know() {
    let scene = Scene::new();
    scene.write("work/script.yaml", "answers: [{ text: done }]");
    assert_eq!(scene.provost(&["run", "Nothing.", "--model", "script:script.yaml"]).status, 0);
    let refused = scene.provost(&["diff", "last"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("it began outside of a git work tree"), "{refused:?}");
    assert!(refused.stderr.contains("hint: `provost logs "), "{refused:?}");
    let unknown = scene.provost(&["diff", "last.7"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("has no agent 7"), "{unknown:?}");
}

#[test]
fn a_secret_and_a_large_file_are_named_and_not_kept_in_the_store() {
    let scene = Scene::new();
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    scene.write("work/.env", &format!("TOKEN={secret}\n"));
    scene.write("work/large.txt", &"0\n".repeat(1024 * 1024));
    let work = "answers: [{ tools: [{ shell: { command: 'echo A=1 >> .env; echo 1 >> large.txt' } }] }, { text: done }]";
    scene.write("work/script.yaml", work);
    sh(&scene, "git init -q && echo script.yaml >> .git/info/exclude");
    assert_eq!(scene.provost(&["run", "Write.", "--model", "script:script.yaml"]).status, 0);
    let diff = scene.provost(&["diff", "last"]);
    assert_eq!((diff.status, diff.stdout.as_str()), (0, ""), "{diff:?}");
    for name in [".env", "large.txt"] {
        let line = format!("not in the patch: {name}, whose content wasn't compared");
        assert!(diff.stderr.contains(&line), "{diff:?}");
    }
    let listed = scene.provost(&["diff", "last", "--stat"]).stdout;
    assert!(listed.contains("M not compared  .env") && !listed.contains(secret), "{listed}");
}
