//! An exported and imported run is the same.

use crate::support::Scene;

const SCRIPT: &str = "
answers:
  - text: looking
    tools: [list_dir, { shell: { command: 'seq 1 40000' } }]
  - text: 'done. VERDICT: PASS'
";

#[test]
fn an_export_shows_the_same_where_it_is_imported() {
    let (here, there) = (Scene::scripted(SCRIPT), Scene::new());
    assert_eq!(here.provost(&["run", "look"]).status, 0);
    let run = here.last_run();
    let file = here.path("run.jsonl");
    let exported = here.provost(&["export", &run, "-o", file.to_str().unwrap()]);
    assert_eq!((exported.status, exported.stdout.as_str()), (0, ""), "{exported:?}");
    let imported = there.provost(&["import", file.to_str().unwrap()]);
    assert_eq!((imported.status, imported.stdout), (0, format!("{run}\n")));
    for command in [&["show", &run][..], &["logs", &run], &["logs", &run, "--json"], &["export", &run]] {
        assert_eq!(here.provost(command).stdout, there.provost(command).stdout, "{command:?}");
    }
}

#[test]
fn an_import_that_cant_be_is_told_with_its_line() {
    let scene = Scene::scripted(SCRIPT);
    scene.provost(&["run", "look"]);
    scene.provost(&["export", "last", "-o", "run.jsonl"]);
    let again = scene.provost(&["import", "run.jsonl"]);
    assert_eq!(again.status, 0);
    let words = "run RUN was there already, with all that the file has: nothing changed\n";
    assert_eq!(scene.stable(&again.stderr), words);
    let text = std::fs::read_to_string(scene.path("work/run.jsonl")).unwrap();
    scene.write("work/cut.jsonl", &text[..text.len() / 2]);
    let fresh = Scene::new();
    let cut = fresh.provost(&["import", scene.path("work/cut.jsonl").to_str().unwrap()]);
    assert_eq!(cut.status, 1);
    assert!(cut.stderr.contains("cut.jsonl: the file is cut: it ends after entry "), "{}", cut.stderr);
    assert_eq!(fresh.provost(&["ps"]).stdout, "no runs yet; start one with `provost run \"GOAL\"`\n");
    let missing = fresh.provost(&["import", "missing.jsonl"]);
    assert_eq!(missing.status, 1);
    assert!(missing.stderr.starts_with("error: can't import missing.jsonl: "), "{}", missing.stderr);
}

#[test]
fn a_file_that_was_cut_at_the_end_of_a_line_is_not_taken_for_whole() {
    let script = "answers:\n  - tools: [list_dir]\n  - { text: done }\n";
    let scene = Scene::scripted(script);
    assert_eq!(scene.provost(&["run", "look"]).status, 0);
    let whole = scene.provost(&["export", "last"]).stdout;
    std::fs::remove_dir_all(scene.path("state")).unwrap();
    let lines = whole.lines().collect::<Vec<_>>();
    let file = scene.path("cut.jsonl");
    let file = file.to_str().unwrap();
    for kept in 1..lines.len() {
        std::fs::write(file, format!("{}\n", lines[..kept].join("\n"))).unwrap();
        let imported = scene.provost(&["import", file]);
        assert_eq!(imported.status, 1, "{kept} of {} lines: {imported:?}", lines.len());
        assert!(imported.stderr.contains("the file is cut"), "{kept}: {}", imported.stderr);
    }
    std::fs::write(file, &whole).unwrap();
    assert_eq!(scene.provost(&["import", file]).status, 0);
}

#[cfg(unix)]
#[test]
fn an_export_is_readable_by_its_owner_only_and_follows_no_link() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.provost(&["run", "x"]);
    scene.write("work/victim", "kept");
    std::os::unix::fs::symlink(scene.path("work/victim"), scene.path("work/run.jsonl.new")).unwrap();
    let exported = scene.provost(&["export", "last", "-o", "run.jsonl"]);
    assert_eq!(exported.status, 0, "{exported:?}");
    let mode = fs::metadata(scene.path("work/run.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_to_string(scene.path("work/victim")).unwrap(), "kept");
}

/// A file in the place of a device or a pipe would reach no reader, and the export would be reported as written.
#[cfg(unix)]
#[test]
fn an_export_to_a_pipe_or_a_device_is_written_to_it() {
    use std::os::unix::fs::FileTypeExt as _;

    let scene = Scene::scripted(SCRIPT);
    assert_eq!(scene.provost(&["run", "look"]).status, 0);
    let pipe = scene.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let exported = scene.provost(&["export", "last", "-o", pipe.to_str().unwrap()]);
    assert_eq!(exported.status, 0, "{exported:?}");
    assert_eq!(reader.join().unwrap(), scene.provost(&["export", "last"]).stdout);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    // A link of our own to the device: what would replace the name replaces the link only.
    let full = scene.path("full");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let exported = scene.provost(&["export", "last", "-o", full.to_str().unwrap()]);
    assert_eq!(exported.status, 1, "{exported:?}");
    assert!(exported.stderr.contains("No space left on device"), "{exported:?}");
    assert!(std::fs::symlink_metadata(&full).unwrap().is_symlink());
}
