//! The real target of a path. Permissions are checked against a call's text, and a link may make that text untrue.

use std::ffi::OsString;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Component, Path, PathBuf};

use provost_engine::{Permissions, ToolRun};
use provost_event::{Json, Permission, ToolSubject, patched_paths};
use serde_json::Value;

use crate::session_cache::Opening;

/// The argument with a path of a file or folder, of tools whose calls aren't about one.
const PATH: &str = "path";
/// Maximum links on a path; Linux itself follows no more.
const LINKS_MAX: usize = 40;

/// Why a call isn't made though its text is allowed: its path leads over a link to a place that the permissions
/// don't allow, or its target can't be determined. Looks at the files once, and only if there are permissions and
/// a path. A link may still be created between this check and the tool's own access; then the only guarantee is
/// that the file tools stay in the workspace.
pub(super) async fn leads_astray(run: &ToolRun, opening: &Opening) -> Option<String> {
    if opening.permissions.is_open() {
        return None;
    }
    if let Some(field) = patch_field(run, opening) {
        return patch_leads_astray(field, run, opening).await;
    }
    let field = path_field(run, opening);
    let mut input = run.input.read::<Value>().ok()?;
    let path = input.get(field)?.as_str()?.to_owned();
    let (workspace, asked) = (opening.workspace.clone(), path.clone());
    let looked = tokio::task::spawn_blocking(move || target(&workspace, &asked)).await;
    let target = match looked.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(target) => target?,
        Err(why) => return Some(format!("Not made: it can't be told where `{path}` leads: {why}.")),
    };
    let shown = target.strip_prefix(&opening.workspace).unwrap_or(&target).to_string_lossy().into_owned();
    *input.get_mut(field)? = Value::String(shown.clone());
    refusal(&opening.permissions, &run.tool, &shown, &Json::parse(input.to_string()).ok()?)
}

/// The argument with the path.
fn path_field<'o>(run: &ToolRun, opening: &'o Opening) -> &'o str {
    let tool = opening.policy.tools.iter().find(|tool| tool.name == run.tool);
    match tool.map(|tool| &tool.subject) {
        Some(ToolSubject::Path { field, .. }) => field,
        _ => PATH,
    }
}

/// The argument with a patch, if the tool takes one.
fn patch_field<'o>(run: &ToolRun, opening: &'o Opening) -> Option<&'o str> {
    let tool = opening.policy.tools.iter().find(|tool| tool.name == run.tool)?;
    match &tool.subject {
        ToolSubject::Patch { field } => Some(field),
        _ => None,
    }
}

/// The same for every path that a patch names.
async fn patch_leads_astray(field: &str, run: &ToolRun, opening: &Opening) -> Option<String> {
    let input = run.input.read::<Value>().ok()?;
    for path in patched_paths(input.get(field)?.as_str()?) {
        let (workspace, asked) = (opening.workspace.clone(), path.to_owned());
        let looked = tokio::task::spawn_blocking(move || target(&workspace, &asked)).await;
        let target = match looked.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(Some(target)) => target,
            Ok(None) => continue,
            Err(why) => return Some(format!("Not made: it can't be told where `{path}` leads: {why}.")),
        };
        let shown = target.strip_prefix(&opening.workspace).unwrap_or(&target).to_string_lossy().into_owned();
        let patch = serde_json::json!({ field: format!("*** Update File: {shown}") });
        let input = Json::parse(patch.to_string()).ok()?;
        if let Some(refusal) = refusal(&opening.permissions, &run.tool, &shown, &input) {
            return Some(refusal);
        }
    }
    None
}

fn refusal(permissions: &Permissions, tool: &str, target: &str, input: &Json) -> Option<String> {
    let ruling = permissions.judge(tool, input);
    let why = format!("Not made: a link leads it to `{target}`, and {}.", ruling.why);
    match ruling.permission {
        Permission::Allow => None,
        Permission::Ask => Some(format!("{why} Name that path itself, so that approval can be asked for.")),
        Permission::Deny => Some(why),
    }
}

/// The target of `path` if that differs from its text; `None` if it doesn't.
///
/// # Errors
/// Why that can't be determined, in words.
fn target(workspace: &Path, path: &str) -> Result<Option<PathBuf>, String> {
    let path = workspace.join(path);
    let real = real(&path)?;
    Ok((real != cleaned(&path)).then_some(real))
}

/// The path with all links resolved as the system does it: `..` goes up from their target. A part that doesn't
/// exist stays as written.
///
/// # Errors
/// When there are too many links, or a part can't be read; in words.
pub(super) fn real(path: &Path) -> Result<PathBuf, String> {
    let mut real = PathBuf::new();
    let mut links = 0;
    // How many of the last parts don't exist. Below a missing part nothing exists, so it isn't looked up.
    let mut missing = 0_usize;
    let mut ahead = parts(path);
    while let Some(part) = ahead.pop() {
        if part == ".." {
            real.pop();
            missing = missing.saturating_sub(1);
            continue;
        }
        // The root starts anew.
        real.push(&part);
        if missing > 0 {
            missing += 1;
            continue;
        }
        match real.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(format!("it goes over more than {LINKS_MAX} links"));
                }
                ahead.extend(parts(&real.read_link().map_err(|error| error.to_string())?));
                real.pop();
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => missing = 1,
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(real)
}

/// The parts of a path without `.`, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

/// The path without `.` and `..`, by its text alone.
pub(super) fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::{LINKS_MAX, target};

    /// A folder with a secret subfolder, and links.
    fn stage() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("secret/deep")).unwrap();
        std::fs::write(top.join("plain"), "x").unwrap();
        for (to, link) in [
            ("secret", "link"),
            ("secret/new", "dangling"),
            ("../secret/deep", "secret/up"),
            ("link", "twice"),
            ("round", "round"),
            ("ping", "pong"),
            ("pong", "ping"),
        ] {
            symlink(to, top.join(link)).unwrap();
        }
        symlink(top.join("secret"), top.join("absolute")).unwrap();
        (folder, top)
    }

    #[test]
    fn what_has_no_link_is_itself_whether_it_is_there_or_not() {
        let (_folder, top) = stage();
        let plain = ["plain", "new", "new/er", "./secret/../plain", "secret/deep/x", ".", "new/../plain"];
        for path in plain.into_iter().chain(["plain/below", "plain/../new", "link/..", "/nowhere/at/all"]) {
            assert_eq!(target(&top, path), Ok(None), "{path}");
        }
    }

    #[test]
    fn links_are_followed_whatever_stands_behind_them() {
        let (_folder, top) = stage();
        for (path, leads) in [
            ("link", "secret"),
            ("link/.env", "secret/.env"),
            ("link/deep/../x", "secret/x"),
            ("link/missing/../.env", "secret/.env"),
            ("link/missing/deeper/../../.env", "secret/.env"),
            ("missing/../link/.env", "secret/.env"),
            ("dangling", "secret/new"),
            ("dangling/../.env", "secret/.env"),
            ("twice/.env", "secret/.env"),
            ("twice/up/x", "secret/deep/x"),
            ("absolute/.env", "secret/.env"),
            ("absolute/up/../.env", "secret/.env"),
        ] {
            assert_eq!(target(&top, path), Ok(Some(top.join(leads))), "{path}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_no_harmless_path() {
        let (_folder, top) = stage();
        for path in ["round", "round/.env", "round/../plain", "ping", "pong/x", "link/../pong"] {
            let lost = target(&top, path).unwrap_err();
            assert_eq!(lost, "it goes over more than 40 links", "{path}");
        }
        assert!(target(&top, "plain\0").is_err());
    }

    #[test]
    fn as_many_links_as_the_system_follows_are_followed() {
        let (_folder, top) = stage();
        symlink("plain", top.join("l1")).unwrap();
        for number in 1..=LINKS_MAX {
            symlink(format!("l{number}"), top.join(format!("l{}", number + 1))).unwrap();
        }
        assert_eq!(target(&top, "l40"), Ok(Some(top.join("plain"))));
        assert!(target(&top, "l41").is_err());
        #[cfg(target_os = "linux")]
        assert_eq!(["l40", "l41"].map(|link| top.join(link).metadata().is_ok()), [true, false]);
    }
}
