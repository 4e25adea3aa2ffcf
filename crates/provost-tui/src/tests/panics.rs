//! After a panic the terminal is as before, and the message isn't lost with the screen.

use std::process::Command;

#[test]
#[ignore = "the test below runs it in a process of its own"]
fn panics_in_its_own_screen() {
    crate::terminal::restore_after_panics();
    panic!("the reason");
}

#[test]
fn a_panic_leaves_the_screen_and_says_why() {
    let own = std::env::current_exe().unwrap();
    let test = "tests::panics::panics_in_its_own_screen";
    let done = Command::new(own).args(["--exact", test, "--ignored", "--nocapture"]).output().unwrap();
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(!done.status.success());
    assert!(shown.contains("\u{1b}[?1049l") && shown.contains("\u{1b}[?25h"), "{shown:?}");
    assert!(shown.contains("\u{1b}[?2004l"), "{shown:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("the reason"), "{said:?}");
}
