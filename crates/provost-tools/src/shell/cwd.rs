//! The working directory, kept between calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::Json;
use provost_harness::{FileReach, ToolContext};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// The state that the tool stores for its next call.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    /// Absolute, in the workspace.
    cwd: String,
}

/// The working directory at the start of a call.
pub(crate) struct Cwd {
    pub(crate) path: PathBuf,
    /// A line for the model, or empty.
    pub(crate) notice: String,
}

/// The working directory after a call.
pub(crate) struct CwdEnd {
    pub(crate) memory: Option<Json>,
    /// A line for the model, or empty.
    pub(crate) notice: String,
}

/// The remembered folder.
pub(crate) fn folder(memory: Option<&Json>) -> Option<PathBuf> {
    let memory: Memory = memory?.read().ok()?;
    Some(memory.cwd.into())
}

impl Cwd {
    /// The folder of the last call's end, if it still is a folder in the workspace; else the workspace.
    pub(crate) fn remembered(context: &ToolContext) -> Self {
        let memory: Option<Memory> = context.memory.as_ref().and_then(|memory| memory.read().ok());
        let Some(Memory { cwd }) = memory else {
            return Self { path: context.workspace.to_path_buf(), notice: String::new() };
        };
        match still_there(context, &cwd) {
            Some(path) => Self { path, notice: String::new() },
            None => Self {
                path: context.workspace.to_path_buf(),
                notice: format!(
                    "[the working directory `{}` is gone; this ran in the workspace]\n",
                    shown(Path::new(&cwd), &context.workspace)
                ),
            },
        }
    }

    /// The state after a call that started here and ended in `last`, if known.
    pub(crate) fn end(&self, last: Option<&Path>, workspace: &Path) -> CwdEnd {
        let Some(last) = last else {
            // The remembered folder may be gone, which was already reported.
            let memory = if self.notice.is_empty() { None } else { remember(&self.path) };
            return CwdEnd { memory, notice: String::new() };
        };
        let here = shown(&self.path, workspace);
        if !last.starts_with(workspace) {
            let notice = format!(
                "[it ended in `{}`, outside of the workspace: the next command starts in `{here}` again]\n",
                last.display()
            );
            return CwdEnd { memory: remember(&self.path), notice };
        }
        let notice = if last == self.path {
            String::new()
        } else {
            format!("[working directory is now `{}`]\n", shown(last, workspace))
        };
        CwdEnd { memory: remember(last), notice }
    }
}

fn remember(cwd: &Path) -> Option<Json> {
    let cwd = cwd.to_str()?.to_owned();
    Json::of(&Memory { cwd }).ok()
}

fn still_there(context: &ToolContext, cwd: &str) -> Option<PathBuf> {
    let (root, sandbox) = (Arc::clone(&context.workspace), Arc::clone(&context.sandbox));
    let workspace = Workspace::open(root, &FileReach::default(), sandbox).ok()?;
    let place = workspace.locate(cwd).ok()?;
    place.absolute.is_dir().then_some(place.absolute)
}

/// A path relative to the workspace.
fn shown(path: &Path, workspace: &Path) -> String {
    match path.strip_prefix(workspace) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
