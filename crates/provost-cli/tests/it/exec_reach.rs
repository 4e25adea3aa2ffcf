//! What a rule for files allows an external agent: files of the workspace, and elsewhere only what it names.

use std::fs;

use crate::support::{Done, Scene};

/// A program that asks about this path as Claude Code does, and writes the key that answers it to `key`.
fn asks(scene: &Scene, path: &str) -> Done {
    scene.write("claude", CLAUDE);
    let program = scene.path("claude");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let _ = fs::remove_file(scene.path("work/key"));
    let program = program.display().to_string();
    scene.provost(&["exec", "--unattended", "--unmetered", "--channel", "terminal", "--", &program, path])
}

const CLAUDE: &str = r"#!/usr/bin/env python3
import os, select, sys, tty
tty.setraw(0)
def show(text):
    sys.stdout.write(text.replace('\n', '\r\n')); sys.stdout.flush()
show(' \u273b Welcome to Claude Code\n\n')
show('Do you want to create %s?\n\u276f 1. Yes\n  2. Yes, allow all edits during this session (shift+tab)\n'
     '  3. No, and tell Claude what to do differently (esc)\n' % sys.argv[1])
ready = select.select([0], [], [], 12)[0]
key = os.read(0, 100) if ready else b''
open('key', 'wb').write(key)
show('\x1b[2J\x1b[H\u25cf done\n')
";

#[track_caller]
fn is_allowed(patterns: &[&str], path: &str, expected: bool) {
    let scene = Scene::new();
    scene.write("home/.ssh/config", "");
    scene.write("outside/a.txt", "");
    scene.write("work/d/ok.txt", "");
    std::os::unix::fs::symlink(scene.path("outside"), scene.path("work/out")).unwrap();
    std::os::unix::fs::symlink(scene.path("work/d/ok.txt"), scene.path("work/link.txt")).unwrap();
    let outside = scene.path("outside").display().to_string();
    let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.replace("OUT", &outside)).collect();
    let rules = format!(
        "[permissions]\nallow = {patterns:?}\ndeny = [\"consent\"]\ndefault = \"deny\"\n[exec]\nidle_time = \"1s\"\n"
    );
    scene.write("home/.config/provost/config.toml", &rules);
    let ran = asks(&scene, &path.replace("OUT", &outside));
    let key = fs::read_to_string(scene.path("work/key")).unwrap_or_default();
    assert_eq!(key == "1", expected, "{patterns:?} {path}: {key:?} {ran:?}");
}

#[test]
fn a_name_alone_is_the_file_of_the_workspace() {
    is_allowed(&["edit_file(ok.txt)"], "ok.txt", true);
    is_allowed(&["edit_file(ok.txt)"], "d/ok.txt", false);
    is_allowed(&["edit_file(ok.txt)"], "/etc/ok.txt", false);
    is_allowed(&["edit_file(ok.txt)"], "~/ok.txt", false);
    is_allowed(&["edit_file(ok.txt)"], "../../ok.txt", false);
    is_allowed(&["edit_file(*.txt)"], "d/ok.txt", true);
}

#[test]
fn elsewhere_a_rule_must_name_the_folder() {
    is_allowed(&["edit_file(**)", "edit_file", "edit_file(*.txt)"], "OUT/a.txt", false);
    is_allowed(&["edit_file(**)"], "../outside/a.txt", false);
    is_allowed(&["edit_file(OUT/**)"], "../outside/a.txt", true);
}

#[test]
fn a_link_is_judged_by_where_it_leads() {
    is_allowed(&["edit_file(**)"], "out/a.txt", false);
    is_allowed(&["edit_file(OUT/**)"], "out/a.txt", true);
    is_allowed(&["edit_file(**)"], "link.txt", false);
}

#[test]
fn credentials_and_provosts_own_files_are_allowed_by_no_rule() {
    let home = ["edit_file(config)", "edit_file(**)", "edit_file(/**)"];
    is_allowed(&home, "~/.ssh/config", false);
    is_allowed(&home, "../home/.ssh/config", false);
    is_allowed(&home, "../state/provost.db", false);
}
