//! A task is typed where a task is read: never as the choice of a menu, a name to sign in with, or a consent.

use std::thread;

use crate::support::Scene;

/// A program that shows this and writes the line that it reads to `got`.
const READER: &str = "import sys\nsys.stdout.write(open('shown').read()); sys.stdout.flush()\n\
                      line = sys.stdin.readline()\nopen('got', 'w').write(line)\nprint('thanks')\n";

/// What the program got, after a run with the task `fix the tests` in which nothing is consented to. A program that gets
/// nothing is ended after `idle`; one that gets its line ends by itself.
fn got(shown: &str, idle: &str) -> Option<String> {
    let scene = Scene::new();
    scene.write("home/.config/provost/config.toml", "[permissions]\ndeny = [\"consent\"]\n");
    scene.write("work/shown", shown);
    scene.write("work/reader.py", READER);
    let args = ["exec", "--unattended", "--unmetered", "--idle-time", idle, "--prompt", "fix the tests"];
    scene.provost(&[&args[..], &["--", "python3", "reader.py"]].concat());
    std::fs::read_to_string(scene.path("work/got")).ok()
}

fn each(texts: &[&'static str], idle: &str, check: fn(&str, Option<String>)) {
    thread::scope(|scope| {
        for text in texts {
            scope.spawn(move || check(text, got(text, idle)));
        }
    });
}

#[test]
fn nothing_is_typed_into_menus_sign_ins_and_consents() {
    each(
        &[
            "Sign in to continue:\n  1. Google account\n  2. API key\n\nChoice: ",
            "Log in with:\n 1) Google\n 2) GitHub\nWith which? ",
            "Username: ",
            "Email address: ",
            "Choose an option [1-4]: ",
            "Continue? Answer with the word DESTROY: ",
            "Confirm transfer: ",
            "Really remove all data?\n>>> ",
            "Do you trust this folder?\n\n",
            "Waiting for your confirmation...",
            "OK to delete 4 files",
        ],
        "2s",
        |text, got| assert!(matches!(got.as_deref(), None | Some("" | "n\n" | "no\n")), "{text}: {got:?}"),
    );
}

#[test]
fn a_task_is_typed_where_text_is_read() {
    each(
        &[
            "> ",
            "Task> ",
            "Tips:\n1. Ask questions\n2. Edit files\n\nYour task: ",
            "Done:\n1. one\n2. two\n\n> ",
            "What would you like to do? ",
        ],
        // Only where a task isn't typed is this over before the program ends.
        "60s",
        |text, got| assert_eq!(got.as_deref(), Some("fix the tests\n"), "{text}"),
    );
}
