//! Where a path really leads. Permissions are judged by a call's text, and a link may make that text untrue.

use std::path::{Component, Path, PathBuf};

use provost_engine::{Permissions, ToolRun};
use provost_event::{Json, Permission};
use serde_json::Value;

use crate::known::Opening;

/// The argument by which tools name a file or folder.
const PATH: &str = "path";

/// Why a call isn't made though its text is allowed: its path leads over a link to where the permissions don't let it
/// go. Looks at the files once, and only where there are permissions and a path. Between this look and the tool's own
/// a link may still be made; what holds then is only that the file tools stay in the workspace.
pub(super) async fn leads_astray(run: &ToolRun, opening: &Opening) -> Option<String> {
    if opening.permissions.is_open() {
        return None;
    }
    let mut input = run.input.read::<Value>().ok()?;
    let path = input.get(PATH)?.as_str()?.to_owned();
    let workspace = opening.workspace.clone();
    let target = tokio::task::spawn_blocking(move || target(&workspace, &path)).await.ok()??;
    let shown = target.strip_prefix(&opening.workspace).unwrap_or(&target).to_string_lossy().into_owned();
    *input.get_mut(PATH)? = Value::String(shown.clone());
    refusal(&opening.permissions, &run.tool, &shown, &Json::parse(input.to_string()).ok()?)
}

fn refusal(permissions: &Permissions, tool: &str, target: &str, input: &Json) -> Option<String> {
    let ruling = permissions.judge(tool, input);
    let why = format!("Not made: a link leads it to `{target}`, and {}.", ruling.why);
    match ruling.permission {
        Permission::Allow => None,
        Permission::Ask => Some(format!("{why} Name that path itself, and somebody is asked.")),
        Permission::Deny => Some(why),
    }
}

/// Where `path` leads if that isn't what its text says; `None` if it is.
fn target(workspace: &Path, path: &str) -> Option<PathBuf> {
    let named = cleaned(&workspace.join(path));
    let mut missing = Vec::new();
    let mut there = workspace.join(path);
    let real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            // What isn't there yet leads nowhere else, but for a link to what isn't there yet.
            Err(_) => match std::fs::read_link(&there) {
                Ok(link) => there = there.parent()?.join(link),
                Err(_) => {
                    missing.push(there.file_name()?.to_owned());
                    there.pop();
                }
            },
        }
        if missing.len() > DEPTH_MAX {
            return None;
        }
    };
    let real = missing.iter().rev().fold(real, |path, name| path.join(name));
    (real != named).then_some(real)
}

/// Folders of a path that aren't there, at most; no system has paths that deep.
const DEPTH_MAX: usize = 4_096;

/// The path without `.` and `..`, by its text alone.
fn cleaned(path: &Path) -> PathBuf {
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::target;

    #[test]
    fn links_are_followed_and_what_has_none_is_itself() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("secret/deep")).unwrap();
        std::fs::write(top.join("plain"), "x").unwrap();
        symlink("secret", top.join("link")).unwrap();
        symlink("secret/new", top.join("dangling")).unwrap();
        symlink("round", top.join("round")).unwrap();
        for plain in ["plain", "new", "new/er", "./secret/../plain", "secret/deep/x", "."] {
            assert_eq!(target(&top, plain), None, "{plain}");
        }
        for (path, leads) in [
            ("link", "secret"),
            ("link/.env", "secret/.env"),
            ("link/deep/../x", "secret/x"),
            ("dangling", "secret/new"),
        ] {
            assert_eq!(target(&top, path), Some(top.join(leads)), "{path}");
        }
    }
}
