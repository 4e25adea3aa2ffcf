//! The port to the sandbox: what confines an agent's programs and its file tools.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::{SandboxPolicy, SessionId};
use provost_process::{BoxedCommand, Confinement, MaskedPaths, ProgramBox};

/// Names at the top of a workspace that decide what runs later, for the user and outside: no program in a sandbox and
/// no file tool of a sandboxed agent writes them. Those of git are protected besides.
pub const PROTECTED_FOLDERS: &[&str] =
    &[".claude", ".codex", ".gemini", ".qwen", ".cursor", ".vscode", ".idea", ".zed"];
/// The same, of files.
pub const PROTECTED_FILES: &[&str] = &[".envrc", "provost.toml"];

/// The paths that are never read, of a user with this home folder and, if known, Provost's own folder for state. Those
/// of the file tools ([`MaskedPaths`]) are the same.
#[must_use]
pub fn masked_paths(home: Option<&Path>, state: Option<&Path>) -> Vec<PathBuf> {
    MaskedPaths::of_home(home).and(state.map(Path::to_owned)).paths().map(Path::to_owned).collect()
}

/// Whether something at the top of a workspace is only what a sandbox covers a protected name with: no work of an agent.
pub(crate) fn is_cover(workspace: &Path, path: &Path) -> bool {
    let names = PROTECTED_FOLDERS.iter().chain(PROTECTED_FILES);
    if path.parent() != Some(workspace) || !names.clone().any(|name| path.ends_with(name)) {
        return false;
    }
    match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => {
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        }
        Ok(facts) => !facts.is_symlink() && facts.len() == 0,
        Err(_) => false,
    }
}

/// What an agent's sandbox is asked for.
#[derive(Debug, Clone, Copy)]
pub struct SandboxRequest<'a> {
    /// The agent's policy.
    pub policy: &'a SandboxPolicy,
    /// The agent. Its programs share a box.
    pub session: SessionId,
    /// Where it works, absolute and without symlinks.
    pub workspace: &'a Path,
}

/// A look of Provost's own git into a folder: it reads, reaches no network, and writes only into folders of Provost's.
#[derive(Debug, Clone, Copy)]
pub struct Inspection<'a> {
    /// The folder, absolute and without symlinks.
    pub folder: &'a Path,
    /// The folders that it uses besides.
    pub granted: &'a [GrantedFolder],
}

/// Makes sandboxes.
pub trait Sandbox: Send + Sync {
    /// Returns the sandbox of an agent: the same one for the same agent, until its [session is
    /// over](Self::session_over). Returns at once; the box is made when its first program starts.
    ///
    /// # Errors
    /// When the policy requires one and this system can't make it: the cause and the remedy.
    fn of_agent(&self, request: SandboxRequest<'_>) -> Result<Arc<dyn AgentSandbox>, String>;

    /// Confines Provost's own git while it looks into a folder; `None` where this system can't: git is deaf to the
    /// repository all the same.
    fn of_inspection(&self, _inspection: Inspection<'_>) -> Option<Arc<dyn AgentSandbox>> {
        None
    }

    /// The session has ended, or is suspended with its run: its box is dropped. Must not block; may be called for a
    /// session without a box, and repeatedly.
    fn session_over(&self, session: SessionId);
}

/// What confines one agent.
pub trait AgentSandbox: Send + Sync {
    /// What its programs are started with.
    fn confinement(&self) -> Confinement;

    /// Whether a file tool may read this path, absolute and without symlinks.
    ///
    /// # Errors
    /// Why not, as a sentence for the model.
    fn may_read(&self, path: &Path) -> Result<(), String>;

    /// The same for writing.
    ///
    /// # Errors
    /// Why not, as a sentence for the model.
    fn may_write(&self, path: &Path) -> Result<(), String>;

    /// What the sandbox has denied, as sentences for the model: what was refused since the last call, and what the
    /// output of a program that failed tells.
    fn denials(&self, output: &str) -> Vec<String>;

    /// Whether anything is confined.
    fn confines(&self) -> bool;

    /// The policy that it enforces; `None` if nothing is confined.
    fn policy(&self) -> Option<&SandboxPolicy> {
        None
    }

    /// A folder that its programs see under another path; `None`: they see all folders under their own.
    fn scratch(&self) -> Option<ScratchFolder> {
        None
    }

    /// What one program is started with that may use these folders besides. The agent's other programs may not.
    fn confinement_with(&self, _granted: Vec<GrantedFolder>) -> Confinement {
        self.confinement()
    }

    /// Lets programs that start from now on use a folder of Provost's that is theirs, under its own path.
    fn grant(&self, _folder: GrantedFolder) {}

    /// Makes one address of this machine reachable for its programs, and returns where they reach it. Of the machine
    /// they reach nothing else by it. A second call with the same address returns the same. Blocks.
    ///
    /// # Errors
    /// When its network can't be opened.
    fn admit(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        Ok(address)
    }

    /// Tries once whether programs run in it, and whether it confines them. Blocks.
    ///
    /// # Errors
    /// What doesn't hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A folder that the programs of an agent may use though it is Provost's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedFolder {
    /// The folder, absolute and without symlinks.
    pub path: PathBuf,
    /// What they may do with it.
    pub access: FolderAccess,
}

/// What may be done with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderAccess {
    /// It may be read.
    Read,
    /// It may be written too.
    Write,
}

/// A folder of an agent's box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchFolder {
    /// Its path for this process.
    pub outside: PathBuf,
    /// Its path for the programs in the box.
    pub inside: PathBuf,
}

/// The sandbox of an agent that can't be made: nothing is started, read or written.
#[derive(Debug, Clone)]
struct Refusing(Arc<str>);

impl ProgramBox for Refusing {
    fn enclose(&self, _command: BoxedCommand) -> io::Result<BoxedCommand> {
        Err(io::Error::other(&*self.0))
    }
}

impl AgentSandbox for Refusing {
    fn confinement(&self) -> Confinement {
        Confinement::Boxed(Arc::new(self.clone()))
    }

    fn may_read(&self, _path: &Path) -> Result<(), String> {
        Err(self.0.to_string())
    }

    fn may_write(&self, _path: &Path) -> Result<(), String> {
        Err(self.0.to_string())
    }

    fn denials(&self, _output: &str) -> Vec<String> {
        Vec::new()
    }

    fn confines(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), String> {
        Err(self.0.to_string())
    }
}

/// The sandbox of an agent; one that refuses everything if it is required and can't be made.
pub(crate) fn sandbox_of(sandbox: &dyn Sandbox, request: SandboxRequest<'_>) -> Arc<dyn AgentSandbox> {
    sandbox.of_agent(request).unwrap_or_else(|why| Arc::new(Refusing(why.into())))
}

/// Confines nothing. A policy that requires a sandbox is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSandbox;

impl Sandbox for NoSandbox {
    fn of_agent(&self, request: SandboxRequest<'_>) -> Result<Arc<dyn AgentSandbox>, String> {
        if request.policy.require && !request.policy.is_off() {
            return Err(
                "the policy requires a sandbox, and this program has none: give the harness one, or set mode = \"off\""
                    .to_owned(),
            );
        }
        Ok(Arc::new(Self))
    }

    fn session_over(&self, _session: SessionId) {}
}

impl AgentSandbox for NoSandbox {
    fn confinement(&self) -> Confinement {
        Confinement::Strongest
    }

    fn may_read(&self, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    fn may_write(&self, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    fn denials(&self, _output: &str) -> Vec<String> {
        Vec::new()
    }

    fn confines(&self) -> bool {
        false
    }
}
