//! `cargo xtask fix-the-bug`: the demo as a first look at Provost.

use std::process::Command;

use anyhow::Result;
use xtask::shell::{built_provost, must, tests_are_built, workspace};

/// Lets the agent repair the demo's project in a fresh folder.
pub(crate) fn fix_the_bug() -> Result<()> {
    if !tests_are_built() {
        eprintln!(
            "Builds `provost`, which takes 2 to 10 minutes the first time; then the run takes some seconds."
        );
    }
    let program = built_provost(&[])?;
    let folder = workspace().join("target").join("fix-the-bug");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    eprintln!("$ provost demo");
    let mut command = Command::new(&program);
    command.arg("demo").arg(folder.join("project")).env("PROVOST_STATE_DIR", folder.join("state"));
    must(&mut command)?;
    eprintln!(
        "\nHere the run is kept in target/fix-the-bug/state: set PROVOST_STATE_DIR to that for these commands."
    );
    Ok(())
}
