//! Backups, checking the store, salvaging it, removing runs; and a damaged store in other commands.

use std::fs;

use crate::support::{Scene, json};

const SCRIPT: &str = "
answers:
  - text: looking
    tools: [list_dir, { shell: { command: 'seq 1 40000' } }]
  - text: 'done. VERDICT: PASS'
";

/// A scene in which this many runs have ended.
fn scene(runs: usize) -> Scene {
    let scene = Scene::scripted(SCRIPT);
    (0..runs).for_each(|_| assert_eq!(scene.provost(&["run", "look"]).status, 0));
    scene
}

/// Changes a byte in the last result of a tool in the agent's log of the newest run, as a disk might.
fn damage(scene: &Scene) {
    let path = scene.path("state/provost.db");
    let mut bytes = fs::read(&path).unwrap();
    let needle = b"\"status\":\"ok\"";
    let place = bytes.windows(needle.len()).rposition(|window| window == needle).unwrap();
    bytes[place + 11] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_database_alone_is_a_backup_after_a_clean_exit() {
    let scene = scene(1);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert_eq!(fs::metadata(scene.path("state/provost.db-wal")).map_or(0, |facts| facts.len()), 0);
    for name in ["provost.db-wal", "provost.db-shm", "provost.db-count"] {
        let _ = fs::remove_file(scene.path("state").join(name));
    }
    assert_eq!(scene.provost(&["show", "last"]).stdout, shown);
}

#[test]
fn a_backup_is_restored_by_putting_it_into_a_state_folder() {
    let scene = scene(2);
    let looks = [&["ps", "--json"][..], &["logs", "last"], &["export", "last"]];
    let before = looks.map(|look| scene.provost(look).stdout);
    let file = scene.path("copy.db");
    let name = file.to_str().unwrap();
    let made = scene.provost(&["backup", name]);
    assert_eq!(made.status, 0, "{made:?}");
    assert!(made.stdout.starts_with("2 runs, ") && made.stdout.ends_with("; checked\n"), "{made:?}");
    let again = scene.provost(&["backup", name]);
    assert_eq!(again.status, 1);
    assert!(again.stderr.contains("a backup is never written over another file"), "{again:?}");
    fs::remove_dir_all(scene.path("state")).unwrap();
    fs::create_dir(scene.path("state")).unwrap();
    fs::copy(&file, scene.path("state/provost.db")).unwrap();
    assert_eq!(looks.map(|look| scene.provost(look).stdout), before);
}

#[test]
fn of_a_damaged_log_what_stands_before_is_shown_and_the_entry_named() {
    let scene = scene(1);
    let run = scene.last_run();
    damage(&scene);
    let words = format!("error: the log of {run}.0 can't be read at entry ");
    for look in [&["show", &run][..], &["logs", &run]] {
        let looked = scene.provost(look);
        assert_eq!(looked.status, 1, "{looked:?}");
        assert!(looked.stderr.contains(&words) && !looked.stdout.is_empty(), "{look:?}: {looked:?}");
    }
    assert_eq!(scene.provost(&["ps"]).status, 0, "the list is whole");
    let resumed = scene.provost(&["resume", &run, "go on"]);
    assert_eq!(resumed.status, 1);
    assert!(
        resumed.stderr.contains("it is damaged") && resumed.stderr.contains("provost doctor --store"),
        "{resumed:?}"
    );
    let exported = scene.provost(&["export", &run, "-o", "part.jsonl"]);
    assert_eq!(exported.status, 1);
    assert!(exported.stderr.contains("error: the export is incomplete: "), "{exported:?}");
    let elsewhere = Scene::new();
    let file = scene.path("work/part.jsonl");
    let file = file.to_str().unwrap();
    let refused = elsewhere.provost(&["import", file]);
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("hint: `provost import --incomplete`"), "{refused:?}");
    let imported = elsewhere.provost(&["import", "--incomplete", file]);
    assert_eq!(imported.status, 0, "{imported:?}");
    assert!(imported.stderr.contains(&format!("warning: not imported: {run}.0 from entry ")), "{imported:?}");
    assert_eq!(elsewhere.provost(&["logs", &run]).status, 0);
}

#[test]
fn doctor_names_what_is_damaged_and_saves_the_rest() {
    let scene = scene(2);
    let whole = scene.provost(&["doctor", "--store"]);
    assert_eq!(whole.status, 0, "{whole:?}");
    assert!(whole.stdout.ends_with("nothing is damaged, nothing is lost\n"), "{whole:?}");
    damage(&scene);
    let found = scene.provost(&["doctor", "--store", "--json"]);
    assert_eq!(found.status, 1, "{found:?}");
    let found = json(found.stdout.trim());
    assert_eq!((&found["whole"], found["problems"].as_array().unwrap().len()), (&false.into(), 1), "{found}");
    let saved = scene.provost(&["doctor", "--store", "--salvage", "saved"]);
    assert_eq!(saved.status, 1);
    assert!(
        saved.stdout.contains("damaged: the log of ") && saved.stdout.contains("\n  without "),
        "{saved:?}"
    );
    let files =
        fs::read_dir(scene.path("work/saved")).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(files.len(), 1, "only the damaged run is exported");
    let imported = Scene::new().provost(&["import", "--incomplete", files[0].to_str().unwrap()]);
    assert_eq!(imported.status, 0, "{imported:?}");
}

#[test]
fn a_lost_log_of_writes_is_told_until_it_is_acknowledged() {
    let scene = scene(1);
    fs::remove_file(scene.path("state/provost.db")).unwrap();
    for _ in 0..2 {
        let listed = scene.provost(&["ps"]);
        assert_eq!(listed.status, 0);
        assert!(
            listed.stderr.contains("entries that were acknowledged are gone from the end of the store"),
            "{listed:?}"
        );
    }
    assert_eq!(scene.provost(&["doctor", "--store"]).status, 1);
    scene.provost(&["doctor", "--store", "--acknowledge"]);
    assert_eq!(scene.provost(&["ps"]).stderr, "");
    assert_eq!(scene.provost(&["doctor", "--store"]).status, 0);
}

#[test]
fn prune_removes_what_is_asked_for_and_says_what_it_frees() {
    let scene = scene(3);
    let runs = || scene.provost(&["ps", "--json"]).stdout.lines().count();
    assert_eq!(scene.provost(&["prune"]).status, 2, "everything isn't to go unasked");
    let dry = scene.provost(&["prune", "--keep", "1", "--dry-run"]);
    assert_eq!((dry.status, dry.stdout.matches("would remove").count(), runs()), (0, 2, 3), "{dry:?}");
    let unasked = scene.provost(&["prune", "--keep", "1"]);
    assert_eq!((unasked.status, runs()), (2, 3), "{unasked:?}");
    assert!(unasked.stderr.contains("this is no terminal, so you can't be asked"), "{unasked:?}");
    assert_eq!(scene.provost(&["prune", "--older", "1h", "--yes"]).stdout, "no run is to be removed\n");
    let pruned = scene.provost(&["prune", "--keep", "1", "--yes"]);
    assert_eq!((pruned.status, runs()), (0, 1), "{pruned:?}");
    assert!(pruned.stdout.contains("removed 2 runs and 0 outputs: "), "{pruned:?}");
    assert_eq!(scene.provost(&["show", "last"]).status, 0);
    assert_eq!(scene.provost(&["doctor", "--store"]).status, 0);
}

#[test]
fn a_run_that_a_fork_refers_to_is_kept() {
    let scene = scene(1);
    let base = scene.last_run();
    scene.write("work/agent.yaml", "answers:\n  - text: a\n  - text: b\n  - text: c\n  - text: d\n");
    assert_eq!(scene.provost(&["fork", "last", "and more"]).status, 0);
    let fork = scene.last_run();
    let pruned = scene.provost(&["prune", "--keep", "1", "--yes"]);
    assert!(
        pruned.stdout.contains(&format!("{base} "))
            && pruned.stdout.contains(&format!("run {fork} is a fork of it")),
        "{pruned:?}"
    );
    assert!(pruned.stdout.contains("no run is to be removed"), "{pruned:?}");
    assert_eq!(scene.provost(&["prune", "--keep", "0", "--yes"]).status, 0);
    assert_eq!(scene.provost(&["ps", "--json"]).stdout, "");
}
