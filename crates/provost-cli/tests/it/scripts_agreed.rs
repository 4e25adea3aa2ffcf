//! An approval of a command that names a script of the workspace is bound to the script's content, from outside.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::approvals::{asks, killed, waiting};
use crate::support::{Done, Scene, json};

const GOOD: &str = "#!/bin/sh\necho good >> effects\n";
const BAD: &str = "#!/bin/sh\necho bad >> effects\n";
const PYTHON: &str = "open('effects', 'a').write('good\\n')\n";

/// An agent that makes this call, and then claims to be done.
fn calls(command: &str) -> Scene {
    let command = command.replace('\'', "''");
    let scene =
        asks(&format!("answers:\n  - tools: [{{ shell: {{ command: '{command}' }} }}]\n  - text: done\n"));
    for (path, text) in [
        ("build.sh", GOOD),
        ("new\nline.sh", GOOD),
        ("-dash.sh", GOOD),
        ("tools/x.sh", GOOD),
        ("other.sh", BAD),
        ("tools/x.py", PYTHON),
        ("tools/__main__.py", PYTHON),
    ] {
        put(&scene, path, text);
    }
    scene
}

fn put(scene: &Scene, path: &str, text: &str) {
    scene.write(&format!("work/{path}"), text);
    fs::set_permissions(scene.path("work").join(path), fs::Permissions::from_mode(0o755)).unwrap();
}

fn effects(scene: &Scene) -> String {
    let all = ["effects", "tools/effects"]
        .map(|path| fs::read_to_string(scene.path("work").join(path)).unwrap_or_default());
    all.concat()
}

/// The result of the call, as the model gets it.
#[track_caller]
fn result(scene: &Scene) -> String {
    let log = scene.provost(&["export", "last"]).stdout;
    let lines = log
        .lines()
        .map(json)
        .find(|line| line["type"] == "tool_finished" || line["entry"]["type"] == "tool_finished");
    lines.unwrap_or_else(|| panic!("no result: {log}")).to_string()
}

/// Approves the call after `change`, and returns the run's output.
fn agreed_after(scene: &Scene, change: impl FnOnce(&Scene)) -> Done {
    let (running, name) = waiting(scene);
    change(scene);
    let approved = scene.provost(&["approve", &name]);
    assert_eq!(approved.status, 0, "{approved:?}");
    running.end()
}

#[test]
fn a_script_that_changes_before_the_answer_is_not_run_however_it_is_named() {
    for (command, script) in [
        ("sh ./build.sh", "build.sh"),
        ("./build.sh", "build.sh"),
        ("bash build.sh some arguments", "build.sh"),
        ("true && CI=1 sh -e build.sh", "build.sh"),
        ("env A=b timeout 20 ./build.sh", "build.sh"),
        ("sh -c 'sh build.sh'", "build.sh"),
        ("sh < build.sh", "build.sh"),
        (". ./build.sh", "build.sh"),
        ("cd tools && sh x.sh", "tools/x.sh"),
        ("cd tools && ../build.sh", "build.sh"),
        ("python3 tools/x.py", "tools/x.py"),
        ("find . -name none -o -name tools -exec ./build.sh ;", "build.sh"),
    ] {
        check_refused(command, script);

        let scene = calls(command);
        let done = agreed_after(&scene, |scene| put(scene, "unnamed.sh", BAD));
        let told = result(&scene);
        assert!(done.status == 0 && !told.contains("Not run"), "{command}: {done:?} {told}");
    }
}

/// Changes `script` between the question about `command` and its answer, and checks that it isn't run.
#[track_caller]
fn check_refused(command: &str, script: &str) {
    let scene = calls(command);
    let done = agreed_after(&scene, |scene| put(scene, script, BAD));
    assert_eq!((done.status, effects(&scene).as_str()), (0, ""), "{command}: {done:?}");
    let told = result(&scene);
    assert!(
        told.contains("denied") && told.contains(&format!("`{}` has changed", script.replace('\n', "\\n"))),
        "{command}: {told}"
    );
}

#[test]
fn a_script_that_changes_before_the_answer_is_not_run_where_it_is_named_in_passing() {
    for (command, script) in [
        ("sh $'new\\nline.sh'", "new\nline.sh"),
        ("sh -- -dash.sh", "-dash.sh"),
        ("env -C tools ./x.sh", "tools/x.sh"),
        ("cat build.sh | sh", "build.sh"),
        ("BASH_ENV=build.sh bash -c true", "build.sh"),
        ("PATH=.:$PATH build.sh", "build.sh"),
        ("python3 tools", "tools/__main__.py"),
    ] {
        check_refused(command, script);
    }
}

#[test]
fn a_script_that_stays_as_it_was_is_run() {
    for command in
        ["sh ./build.sh", "./build.sh", "sh < build.sh", "cd tools && sh x.sh", "python3 tools/x.py"]
    {
        let scene = calls(command);
        let done = agreed_after(&scene, |_| ());
        assert_eq!((done.status, effects(&scene).as_str()), (0, "good\n"), "{command}: {done:?}");
    }
}

#[test]
fn a_script_that_is_gone_or_made_or_has_become_a_link_is_not_run() {
    let script = |scene: &Scene| scene.path("work/build.sh");
    let gone = |scene: &Scene| fs::remove_file(script(scene)).unwrap();
    let linked = |scene: &Scene| {
        fs::remove_file(script(scene)).unwrap();
        symlink("other.sh", script(scene)).unwrap();
    };
    let same_bytes = |scene: &Scene| {
        fs::rename(script(scene), scene.path("work/moved.sh")).unwrap();
        symlink("moved.sh", script(scene)).unwrap();
    };
    let made = |scene: &Scene| put(scene, "new.sh", BAD);
    type Change<'c> = &'c dyn Fn(&Scene);
    let cases: [(&str, Change<'_>, &str); 4] = [
        ("sh build.sh", &gone, "`build.sh` is gone"),
        ("sh build.sh", &linked, "`build.sh` leads elsewhere"),
        ("sh build.sh", &same_bytes, "`build.sh` leads elsewhere"),
        ("sh new.sh", &made, "`new.sh` was made"),
    ];
    for (command, change, words) in cases {
        let scene = calls(command);
        let done = agreed_after(&scene, change);
        assert_eq!((done.status, effects(&scene).as_str()), (0, ""), "{words}: {done:?}");
        assert!(result(&scene).contains(words), "{words}: {}", result(&scene));
    }
}

#[test]
fn an_answer_from_elsewhere_is_bound_to_the_script_that_was_asked_about_before_the_restart() {
    for (text, told) in [(BAD, "`build.sh` has changed"), (GOOD, "\"status\":\"ok\"")] {
        let scene = calls("sh build.sh");
        let name = killed(&scene);
        put(&scene, "build.sh", text);
        assert_eq!(scene.provost(&["approve", &name]).status, 0);
        let resumed = scene.provost(&["resume", "last"]);
        assert_eq!(resumed.status, 0, "{resumed:?}");
        assert!(result(&scene).contains(told), "{}", result(&scene));
        assert_eq!(effects(&scene), if text == GOOD { "good\n" } else { "" });
    }
}

#[test]
fn the_question_shows_the_script_and_is_answered_for_this_call_only() {
    let scene = calls("sh build.sh");
    let (running, name) = waiting(&scene);
    let hash = blake3::hash(GOOD.as_bytes()).to_hex().to_string();
    let listed = scene.provost(&["approvals"]).stdout;
    assert!(listed.contains(&format!("script  build.sh, as it is now (BLAKE3 {})", &hash[..12])), "{listed}");
    assert_eq!(json(&scene.provost(&["approvals", "--json"]).stdout)["scripts"][0]["blake3"], *hash);
    for longer in ["--for-run", "--always"] {
        let refused = scene.provost(&["approve", &name, longer]);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains("only this call can be agreed to"), "{refused:?}");
    }
    assert_eq!(scene.provost(&["approve", &name]).status, 0);
    assert_eq!(running.end().status, 0);
    let log = scene.provost(&["export", "last"]).stdout;
    let holds_hash = log.lines().filter(|line| line.contains(&hash)).count();
    assert_eq!(holds_hash, 2, "what was looked at, and the question: {log}");
}

#[test]
fn a_call_that_may_run_a_file_it_does_not_name_says_so_and_is_answered_for_this_call_only() {
    let scene = calls("for f in bu*.sh; do sh $f; done");
    let (running, name) = waiting(&scene);
    let listed = scene.provost(&["approvals"]).stdout;
    assert!(listed.contains("it may run files that its text doesn't name"), "{listed}");
    assert_eq!(json(&scene.provost(&["approvals", "--json"]).stdout)["unnamed"], true);
    for longer in ["--for-run", "--always"] {
        let refused = scene.provost(&["approve", &name, longer]);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains("only this call can be agreed to"), "{refused:?}");
    }
    assert_eq!(scene.provost(&["approve", &name]).status, 0);
    assert_eq!((running.end().status, effects(&scene).as_str()), (0, "good\n"));
}

/// A question about a call that isn't bound to any file says so, and is answered for this call only.
#[track_caller]
fn is_unnamed(scene: &Scene) -> crate::support::Running {
    let (running, name) = waiting(scene);
    let listed = scene.provost(&["approvals"]).stdout;
    assert!(listed.contains("it may run files that its text doesn't name"), "{listed}");
    for longer in ["--for-run", "--always"] {
        let refused = scene.provost(&["approve", &name, longer]);
        assert_eq!(refused.status, 2, "{refused:?}");
    }
    assert_eq!(scene.provost(&["approve", &name]).status, 0);
    running
}

#[test]
fn a_script_in_a_folder_that_the_shell_puts_in_is_not_said_to_be_bound() {
    for command in ["~+/build.sh", "cd tools; ~-/build.sh", "cd tools && cd .. && sh ~+/build.sh"] {
        let scene = calls(command);
        assert_eq!(is_unnamed(&scene).end().status, 0, "{command}");
        assert_eq!(effects(&scene), "good\n", "{command}");
    }
}

#[test]
fn a_script_at_a_terminal_in_another_folder_is_not_said_to_be_bound() {
    let start = |command: &str| {
        let scene = Scene::scripted(&format!(
            "answers:\n  - tools: [{{ terminal: {{ action: start, command: '{command}', cwd: tools }} }}]\n  - text: done\n"
        ))
        .with_settings("[permissions]\nask = [\"terminal\"]\n");
        put(&scene, "x.sh", BAD);
        put(&scene, "tools/x.sh", GOOD);
        scene
    };
    for command in ["sh x.sh", "./x.sh", "~+/x.sh"] {
        let scene = start(command);
        assert_eq!(is_unnamed(&scene).end().status, 0, "{command}");
        assert_eq!(effects(&scene), "good\n", "{command}");
    }
}

#[test]
fn a_call_that_runs_nothing_but_what_it_names_can_be_agreed_to_for_longer() {
    for command in ["ls *.sh", "grep x $HOME/none || true", "make -j$(nproc) --version"] {
        let scene = calls(command);
        let (running, name) = waiting(&scene);
        let listed = scene.provost(&["approvals"]).stdout;
        assert!(!listed.contains("  script"), "{listed}");
        let approved = scene.provost(&["approve", &name, "--for-run"]);
        assert_eq!((approved.status, running.end().status), (0, 0), "{approved:?}");
    }
}

#[test]
fn what_is_not_allowed_of_a_command_is_named() {
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ shell: { command: \"find . -name x -exec sh -c 'rm x' \\\\;\" } }]\n  - text: done\n",
    )
    .with_settings("[permissions]\nallow = [\"shell(find *)\"]\ndefault = \"ask\"\n")
    .trusted();
    let (running, name) = waiting(&scene);
    let listed = scene.provost(&["approvals"]).stdout;
    assert!(
        listed.contains("no pattern allows `sh -c 'rm x' \\;`")
            || listed.contains("no pattern allows `sh -c 'rm x'`"),
        "{listed}"
    );
    assert!(!listed.contains("allows `find"), "{listed}");
    assert_eq!(scene.provost(&["deny", &name]).status, 0);
    assert_eq!(running.end().status, 0);
}
