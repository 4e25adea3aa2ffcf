//! The kill matrix, as far as there is time for it: `cargo xtask kill-matrix` runs all of it.

use std::process::Command;

/// One in so many points is tried.
const EVERY: &str = "13";
/// The same points each time; another seed tries others.
const SEED: &str = "5";

#[test]
fn nothing_is_lost_or_doubled_wherever_a_run_is_killed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["kill-matrix", "--every", EVERY]).env("KILL_MATRIX_SEED", SEED);
    let output = command.output().expect("the matrix");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    println!("{}", text(&output.stdout));
}
