//! What `cargo xtask ci` needs besides a toolchain: installed where that is possible, else named at the start.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use xtask::shell::{cargo, must, workspace};

/// Programs that tests talk to or run at a terminal, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 10] = [
    ("bash", "bash"),
    ("bwrap", "bubblewrap"),
    ("dbus-daemon", "dbus-daemon"),
    ("gdb", "gdb"),
    ("git", "git"),
    ("less", "less"),
    ("python3", "python3"),
    ("ssh-keygen", "openssh-client"),
    ("vim", "vim"),
    ("whiptail", "whiptail"),
];

/// Installs the programs that are missing, with apt.
///
/// # Errors
/// When there is no apt, or it can't be used without a password; the message names what is missing.
pub(crate) fn programs() -> Result<()> {
    let missing = PROGRAMS.iter().filter(|(program, _)| !is_there(program));
    let packages = missing.map(|(_, package)| *package).collect::<Vec<_>>();
    if packages.is_empty() {
        return Ok(());
    }
    let all = packages.join(" ");
    let Some(mut before) = with_rights().filter(|_| is_there("apt-get")) else {
        bail!(
            "the tests need programs that aren't here; install the packages {all} first (names as in Debian)"
        );
    };
    eprintln!("installs {all} with apt-get");
    before.push("apt-get".into());
    let apt = |args: &[&str]| {
        let mut words = before.iter().cloned().chain(args.iter().map(OsString::from));
        let mut command = Command::new(words.next().unwrap_or_default());
        must(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-q"])?;
    apt(&[&["install", "-qy", "--no-install-recommends"], packages.as_slice()].concat())
}

/// What stands before a command that root runs, if it can be run without asking for a password.
fn with_rights() -> Option<Vec<OsString>> {
    let runs = |words: &[&str]| {
        let (program, args) = words.split_first()?;
        let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if runs(&["id", "-u"])? == "0" {
        return Some(Vec::new());
    }
    runs(&["sudo", "-n", "true"]).map(|_| vec!["sudo".into(), "-n".into()])
}

/// `cargo nextest`: the user's, or one that is built into `target/tools`, which takes some minutes.
///
/// # Errors
/// When it can't be built.
pub(crate) fn nextest() -> Result<Command> {
    let works = |command: &mut Command| {
        command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if works(&mut cargo()) {
        return Ok(cargo());
    }
    let tools = workspace().join("target").join("tools");
    let with_tools = || {
        let mut command = cargo();
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(tools.join("bin")).chain(env::split_paths(&path));
        if let Ok(path) = env::join_paths(folders) {
            command.env("PATH", path);
        }
        command
    };
    if !works(&mut with_tools()) {
        eprintln!(
            "cargo-nextest, which runs the tests, isn't installed: builds it in target/tools (some minutes)"
        );
        must(cargo().args(["install", "--locked", "cargo-nextest", "--root"]).arg(&tools))?;
    }
    Ok(with_tools())
}

/// The package with the cluster's engine: a prebuilt program for this system is in a package of its own that it names.
const RESTATE_SERVER: &str = "@restatedev/restate-server@1.7.12";

/// Installs the engine of the cluster's tests into `target/tools/restate` with npm, which takes some 10 s. Where that
/// can't be done, says that those tests are skipped.
///
/// # Errors
/// When the folder can't be made.
pub(crate) fn restate_server() -> Result<()> {
    let folder = workspace().join("target").join("tools").join("restate");
    if folder.join("node_modules").is_dir() || env::var_os("PROVOST_RESTATE_SERVER").is_some() {
        return Ok(());
    }
    if !is_there("npm") {
        eprintln!("there is no npm to install {RESTATE_SERVER}: tests on a cluster are skipped");
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    let args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", RESTATE_SERVER];
    let installed = must(Command::new("npm").args(args).arg("--prefix").arg(&folder).current_dir(&folder));
    if let Err(error) = installed {
        eprintln!("{RESTATE_SERVER} can't be installed, and tests on a cluster are skipped: {error:#}");
    }
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
