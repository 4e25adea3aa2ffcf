//! The kill matrix, as far as there is time for it: `cargo xtask kill-matrix` runs all of it.

use std::process::Command;

/// One in this many points is tried.
const EVERY: &str = "13";
/// The same points each time; another seed tries others.
const SEED: &str = "5";

#[test]
fn nothing_is_lost_or_doubled_wherever_a_run_is_killed() {
    kill(&["--every", EVERY]);
}

#[test]
fn a_call_that_was_agreed_to_from_elsewhere_is_made_once() {
    kill(&["--scenario", "approval"]);
}

fn kill(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_provost-dev"));
    command.arg("kill-matrix").args(arguments).env("KILL_MATRIX_SEED", SEED);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    println!("{}", text(&output.stdout));
}
