//! The scripts that a command names, and their content: an approval covers that too.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use provost_engine::{CallDetails, HookCall, HookCallDetails, ScriptNames, ToolRun, scripts_named};
use provost_event::{HookTrigger, Json, NamedScript};

use super::HarnessExecutor;
use super::links::{cleaned, real};
use crate::harness::LiveTools;
use crate::session_cache::Opening;

/// Maximum bytes of a script; a longer one isn't bound, like an unreadable one.
const SCRIPT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum folders in which a command's names are looked up.
const FOLDERS_MAX: usize = 64;

impl HarnessExecutor {
    /// The current scripts of a call that needs approval; `None` if it names none.
    pub(super) async fn scripts_of(&self, hook_call: &HookCall) -> Option<Vec<NamedScript>> {
        let (HookTrigger::Approval { .. }, HookCallDetails::Call(details)) =
            (&hook_call.about, &hook_call.details)
        else {
            return None;
        };
        let CallDetails { tool, input, memory, .. } = details;
        let names = scripts_named(tool, input)?;
        let opening = self.known.opening(self.backend(), hook_call.session).await.ok()?;
        Some(look_at(&self.tools, &tool.name, memory.as_ref(), names, &opening).await)
    }

    /// Why an approved call isn't made any more: a script that it names has changed.
    pub(super) async fn no_longer_agreed(&self, run: &ToolRun, opening: &Opening) -> Option<String> {
        let agreed = run.scripts.as_ref()?;
        let names = scripts_named(&opening.tool_identity(&run.tool), &run.input).unwrap_or_default();
        let now = look_at(&self.tools, &run.tool, run.memory.as_ref(), names, opening).await;
        let what = differences(agreed, &now);
        (!what.is_empty()).then(|| {
            format!(
                "Not run: {} since approval of this call was asked for. Make the call again, and approval is asked for it \
                 as it is then.",
                what.join(", and ")
            )
        })
    }
}

async fn look_at(
    tools: &LiveTools,
    tool: &str,
    memory: Option<&Json>,
    names: ScriptNames,
    opening: &Opening,
) -> Vec<NamedScript> {
    let folder = tools.get(tool).and_then(|tool| tool.folder(memory));
    let workspace = opening.workspace.clone();
    let looked = tokio::task::spawn_blocking(move || look(&workspace, folder, &names)).await;
    looked.unwrap_or_default()
}

/// The changes of the approved scripts, in words.
fn differences(agreed: &[NamedScript], now: &[NamedScript]) -> Vec<String> {
    let paths: BTreeSet<&str> = agreed.iter().chain(now).map(|script| script.path.as_str()).collect();
    let at = |all: &[NamedScript], path: &str| all.iter().find(|script| script.path == path).cloned();
    let told = paths.into_iter().filter_map(|path| {
        Some(match (at(agreed, path), at(now, path)) {
            (Some(then), Some(now)) if then == now => return None,
            (Some(then), Some(now)) if then.leads_to != now.leads_to => {
                format!("`{path}` leads elsewhere")
            }
            (Some(_), Some(_)) => format!("`{path}` has changed"),
            (Some(_), None) => format!("`{path}` is gone"),
            (None, _) => format!("`{path}` was made"),
        })
    });
    told.collect()
}

/// The named files of the workspace, ordered by path.
fn look(workspace: &Path, folder: Option<PathBuf>, names: &ScriptNames) -> Vec<NamedScript> {
    let mut folders = vec![workspace.to_owned()];
    folders.extend(folder);
    for named in &names.folders {
        for folder in folders.clone() {
            let below = cleaned(&folder.join(named));
            if folders.len() < FOLDERS_MAX && below.is_dir() && !folders.contains(&below) {
                folders.push(below);
            }
        }
    }
    let paths =
        names.files.iter().flat_map(|file| folders.iter().map(move |folder| cleaned(&folder.join(file))));
    let paths: BTreeSet<PathBuf> = paths.filter(|path| path.starts_with(workspace)).collect();
    paths.iter().filter_map(|path| script_at(workspace, path)).collect()
}

/// The script at `path`; `None` if there is no file.
fn script_at(workspace: &Path, path: &Path) -> Option<NamedScript> {
    let shown = |path: &Path| path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().into_owned();
    let target = real(path).ok()?;
    if !target.metadata().ok()?.is_file() {
        return None;
    }
    Some(NamedScript {
        path: shown(path),
        leads_to: (target != path).then(|| shown(&target)),
        blake3: hash(&target).ok(),
    })
}

fn hash(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.len() > SCRIPT_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut file.take(SCRIPT_BYTES_MAX), &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}
