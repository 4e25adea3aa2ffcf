//! The crates as packages: quickly for `ci`, thoroughly for `cargo xtask release-check`.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use xtask::shell::{cargo, must, workspace};

/// Packs every crate without building it. Needs no network.
pub(crate) fn pack() -> Result<()> {
    must(package()?.args(["--no-verify", "--offline", "--quiet"]))
}

/// Builds every crate from its package, and installs and runs the program as a user would.
pub(crate) fn release_check() -> Result<()> {
    eprintln!(
        "Builds every crate from its package, then installs the program in release mode: 20 minutes or more."
    );
    let root = workspace().join("target").join("release-check");
    // Cargo keeps the sources of packages by where they are packed, and their version: of those that were packed there before
    // it would build the old ones.
    let packed = root.join(format!("packed-{}", std::process::id()));
    must(package()?.arg("--target-dir").arg(&packed))?;
    fs::remove_dir_all(&packed)?;
    must(
        cargo().args(["install", "--locked", "--force", "--path", "crates/provost-cli", "--root"]).arg(&root),
    )?;
    let project = root.join("demo");
    if project.exists() {
        fs::remove_dir_all(&project)?;
    }
    let mut demo = Command::new(root.join("bin").join("provost"));
    must(demo.arg("demo").arg(&project).env("PROVOST_STATE_DIR", root.join("state")))
}

/// `cargo package` for all crates that can be published.
fn package() -> Result<Command> {
    let mut command = cargo();
    command.args(["package", "--locked", "--allow-dirty"]);
    for entry in fs::read_dir(workspace().join("crates")).context("can't read the crates")? {
        command.arg("--package").arg(entry?.file_name());
    }
    Ok(command)
}
