//! The engine's server program: where it is found.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The version that Provost is tested with.
pub const ENGINE_VERSION: &str = "1.7.12";
/// The name of the program.
pub const SERVER_PROGRAM: &str = "restate-server";

const SCOPE: &str = "node_modules/@restatedev";

/// The npm package with the program for this machine; `None` where there is none.
#[must_use]
pub fn npm_package() -> Option<String> {
    Some(format!("@restatedev/{}@{ENGINE_VERSION}", platform_package()?))
}

fn platform_package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("restate-server-linux-x64"),
        ("linux", "aarch64") => Some("restate-server-linux-arm64"),
        _ => None,
    }
}

/// The program that npm has installed in `folder`, if it has.
#[must_use]
pub fn installed_server(folder: &Path) -> Option<PathBuf> {
    let program = folder.join(SCOPE).join(platform_package()?).join("bin").join(SERVER_PROGRAM);
    program.is_file().then_some(program)
}

/// The program in one of the folders of `search_path`. What npm has put there is a script; then it is the program that
/// the script would start, so that signals reach it.
#[must_use]
pub fn find_server(search_path: &OsStr) -> Option<PathBuf> {
    let found = std::env::split_paths(search_path).map(|folder| folder.join(SERVER_PROGRAM));
    let found = found.filter(|program| program.is_file()).find_map(|program| program.canonicalize().ok())?;
    if found.extension().is_none() {
        return Some(found);
    }
    // node_modules/@restatedev/restate-server/lib/index.js
    let root = found.ancestors().nth(5)?;
    installed_server(root)
}
