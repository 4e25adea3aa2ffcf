//! What confines Provost's own git when it only looks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use provost_process::Confinement;

use crate::{AgentSandbox, FolderAccess, GrantedFolder, Inspection, Sandbox};

/// The sandbox of this process's own git, as long as its maker keeps it.
static OWN: Mutex<Option<Weak<dyn Sandbox>>> = Mutex::new(None);

/// Has Provost's own git run in boxes of `sandbox` where it looks into folders that agents write: evidence, comparisons,
/// what an agent is told of its workspace. Counts for the whole process, until `sandbox` is dropped.
pub fn confine_own_git(sandbox: &Arc<dyn Sandbox>) {
    *OWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(sandbox));
}

/// The box of one look: it is there as long as this.
#[derive(Clone, Default)]
pub(super) struct GitBox(Option<Arc<dyn AgentSandbox>>);

impl std::fmt::Debug for GitBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GitBox").field(&self.0.is_some()).finish()
    }
}

impl GitBox {
    /// A box for a look into `folder` that reads `read` and writes `write`; none where nothing is to be confined.
    /// Blocking.
    pub(super) fn of(folder: &Path, read: &[&Path], write: &[PathBuf]) -> Self {
        let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(sandbox) = own.and_then(|own| own.upgrade()) else { return Self(None) };
        let Ok(folder) = folder.canonicalize() else { return Self(None) };
        let granted = |path: &Path, access| Some(GrantedFolder { path: path.canonicalize().ok()?, access });
        let read = read.iter().filter_map(|path| granted(path, FolderAccess::Read));
        let write = write.iter().filter_map(|path| granted(path, FolderAccess::Write));
        let granted = read.chain(write).collect::<Vec<_>>();
        Self(sandbox.of_inspection(Inspection { folder: &folder, granted: &granted }))
    }

    pub(super) fn confinement(&self) -> Confinement {
        self.0.as_ref().map_or(Confinement::Strongest, |made| made.confinement())
    }
}
