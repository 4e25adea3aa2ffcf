//! Running programs from the workspace's folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The `cargo` that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// Runs `command` and fails if it fails.
pub fn must(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("can't start {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// Set while the workspace's tests are built: their programs are used then. Building one package alone would build most
/// dependencies again, with fewer features.
pub const TESTS_ARE_BUILT: &str = "PROVOST_TESTS_ARE_BUILT";

/// Whether the workspace's tests are built.
#[must_use]
pub fn tests_are_built() -> bool {
    std::env::var_os(TESTS_ARE_BUILT).is_some()
}

/// Builds the program and returns its path.
pub fn built_provost(profile: &[&str]) -> Result<PathBuf> {
    let is_release = profile.contains(&"--release");
    if is_release || !tests_are_built() {
        must(cargo().args(["build", "--package", "provost-cli", "--bin", "provost"]).args(profile))?;
    }
    Ok(program_in(if is_release { "release" } else { "debug" }, "provost"))
}

/// The path of a program that was built.
#[must_use]
pub fn program_in(profile: &str, name: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    target.join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Copies the folder `from` to `to`, which must not exist, without build output.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("can't make {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("can't read {}", from.display()))? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "target" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_folder(&path, &copy)?;
        } else {
            std::fs::copy(&path, &copy).with_context(|| format!("can't copy {}", path.display()))?;
        }
    }
    Ok(())
}
