//! `cargo xtask fix-the-bug`: the example as a first look at Provost.

use std::process::Command;

use anyhow::Result;

use crate::shell::{built_provost, copy_folder, must, workspace};

/// Copies the example's project to a fresh folder and lets the agent repair it there.
pub(crate) fn fix_the_bug() -> Result<()> {
    let program = built_provost(&[])?;
    let folder = workspace().join("target").join("fix-the-bug");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let project = folder.join("project");
    copy_folder(&workspace().join("examples/fix-the-bug/project"), &project)?;
    let provost = |args: &[&str]| {
        eprintln!("$ provost {}", args.join(" "));
        let mut command = Command::new(&program);
        command.args(args).current_dir(&project).env("PROVOST_STATE_DIR", folder.join("state"));
        must(&mut command)
    };
    // Its settings name a command, so the project must be trusted first.
    provost(&["trust", "--yes"])?;
    provost(&["run", "Make the tests of this project pass."])?;
    eprintln!("\nThe repaired project is in target/fix-the-bug/project.");
    Ok(())
}
