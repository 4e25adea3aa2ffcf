//! The box of one agent: opened once, then each of its programs is started in it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_event::{SandboxNetwork, SandboxPolicy};
use provost_harness::FolderAccess;
use provost_process::{BoxedCommand, Confinement, Launch, run_helper};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::mounts::{BoxPaths, arguments};
use super::plan::{Layer, Plan};
use super::steps::OwnNetwork;
use super::{STEP, sys};
use crate::covers::{CoverKind, Covers};
use crate::folders;
use crate::{Cover, FileRules};

/// How long opening a box may take; only a machine without processes left takes that long.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// What all boxes of a process share.
#[derive(Debug)]
pub(crate) struct SharedParts {
    /// The program whose hidden first argument runs a step.
    pub(crate) helper: PathBuf,
    /// `bwrap`.
    pub(crate) bwrap: PathBuf,
    /// Provost's folder for sandboxes.
    pub(crate) folder: PathBuf,
    pub(crate) covers: Arc<Covers>,
}

/// What a box is made of.
#[derive(Debug)]
pub(crate) struct ProgramBoxParts<'a> {
    pub(crate) policy: &'a SandboxPolicy,
    pub(crate) rules: &'a FileRules,
    pub(crate) shared: &'a SharedParts,
}

/// A box that is open: its namespaces are there as long as this is, or a program in them.
#[derive(Debug)]
pub(crate) struct OpenBox {
    user: OwnedFd,
    network: Option<OwnedFd>,
    temporary: Arc<BoxFolder>,
    layers: Vec<Layer>,
}

/// The folder of a box, which is removed with this.
#[derive(Debug)]
pub(crate) struct BoxFolder {
    path: PathBuf,
    /// Locked, so that no other process removes the folder.
    _lock: File,
}

impl BoxFolder {
    /// Makes one in the folder for sandboxes.
    pub(crate) fn make(shared: &SharedParts) -> io::Result<Self> {
        let path = shared.folder.join("boxes").join(folders::unique());
        for name in ["tmp", "var-tmp"] {
            folders::private(&path.join(name))?;
        }
        let lock = File::create(path.join("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }

    /// What programs see as `/tmp`.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }
}

impl Drop for BoxFolder {
    fn drop(&mut self) {
        // What is in it was the agent's; a symlink in it is removed, not followed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl OpenBox {
    /// Opens a box. Blocks.
    pub(crate) fn open(parts: &ProgramBoxParts<'_>, temporary: Arc<BoxFolder>) -> io::Result<Self> {
        let own_network = match parts.policy.network {
            SandboxNetwork::None | SandboxNetwork::Proxy => OwnNetwork::Yes,
            SandboxNetwork::Open => OwnNetwork::No,
        };
        let step = vec!["open".into(), own_network.name().into()];
        let mut handed = handed_back(&parts.shared.helper, step, Vec::new())?.into_iter();
        let user = handed.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let network = handed.next();
        let layers = layers(parts.rules)?;
        Ok(Self { user, network, temporary, layers })
    }

    /// A listener on the loopback interface of the box, to accept on from outside; `None` if it has no network of its
    /// own. Blocks.
    pub(crate) fn listen(&self, helper: &Path) -> io::Result<Option<TcpListener>> {
        let Some(network) = &self.network else { return Ok(None) };
        let entered = vec![self.user.try_clone()?, network.try_clone()?];
        let numbers = entered.iter().map(|one| sys::number(one).to_string().into());
        let step = std::iter::once("listen".into()).chain(numbers).collect();
        let listener = handed_back(helper, step, entered)?.into_iter().next();
        Ok(Some(listener.ok_or(io::ErrorKind::UnexpectedEof)?.into()))
    }

    /// What is started in the place of `command`.
    pub(crate) fn enclose(
        &self,
        mut command: BoxedCommand,
        parts: &ProgramBoxParts<'_>,
    ) -> io::Result<BoxedCommand> {
        cover(parts.rules, &parts.shared.covers)?;
        let cwd = fs::canonicalize(&command.cwd)?;
        let program = found(&command.program, &command.env, &cwd)?;
        let shared = parts.shared;
        let empty = shared.folder.join("empty");
        let unreadable = shared.folder.join("unreadable");
        let paths = BoxPaths {
            temporary: &self.temporary.path,
            empty: &empty,
            unreadable: &unreadable,
            helper: &shared.helper,
            exclude: self.exclude(parts.rules)?,
            layered: self.layers.iter().map(|layer| PathBuf::from(&layer.folder)).collect(),
        };
        let mut bwrap = vec![shared.bwrap.clone().into_os_string()];
        bwrap.extend(arguments(parts.rules, parts.policy.network, &paths, &cwd));
        let user = self.user.try_clone()?;
        let network = self.network.as_ref().map(OwnedFd::try_clone).transpose()?;
        let plan = Plan {
            user: sys::number(&user),
            network: network.as_ref().map(sys::number),
            layers: self.layers.clone(),
            bwrap,
            write: self.writable(parts.rules),
            limits: parts.policy.limits,
        };
        let plan = plan.write()?;
        let mut args: Vec<OsString> =
            vec![STEP.into(), "enter".into(), sys::number(&plan).to_string().into(), "--".into(), program];
        args.append(&mut command.args);
        Ok(BoxedCommand {
            program: shared.helper.clone().into_os_string(),
            args,
            cwd: PathBuf::from("/"),
            env: command.env,
            descriptors: [Some(plan), Some(user), network].into_iter().flatten().collect(),
        })
    }

    /// A file of ignored names with the covers that git would list.
    fn exclude(&self, rules: &FileRules) -> io::Result<Option<PathBuf>> {
        let Some(exclude) = &rules.exclude else { return Ok(None) };
        let is_listed = |cover| matches!(cover, Cover::Nothing | Cover::EmptyFolder);
        let covers = rules.protected.iter().filter(|protected| is_listed(protected.cover));
        let text = exclude.with(covers.map(|protected| protected.path.as_path()))?;
        let file = self.temporary.path.join("exclude");
        if fs::read(&file).ok().as_ref() != Some(&text) {
            // A program that is running keeps the old one.
            let new = self.temporary.path.join(folders::unique());
            fs::write(&new, text)?;
            fs::rename(new, &file)?;
        }
        Ok(Some(file))
    }

    /// What Landlock lets programs write.
    fn writable(&self, rules: &FileRules) -> Vec<OsString> {
        let caches = rules
            .caches
            .iter()
            .filter(|cache| !cache.is_there || self.layers.iter().any(|layer| layer.folder == cache.folder));
        let folders = ["/tmp", "/var/tmp", "/dev"].map(PathBuf::from).into_iter();
        let granted = rules.granted.iter().filter(|granted| granted.access == FolderAccess::Write);
        let all = folders.chain(rules.write.iter().cloned()).chain(caches.map(|cache| cache.folder.clone()));
        let all = all.chain(granted.map(|granted| granted.path.clone()));
        all.map(PathBuf::into_os_string).collect()
    }
}

/// The descriptors that a step hands back. It inherits `inherited`, and its first argument is the number of the socket
/// for its answer.
fn handed_back(helper: &Path, step: Vec<OsString>, mut inherited: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let mut args = vec![STEP.into()];
    args.extend(step);
    args.insert(2, sys::number(&theirs).to_string().into());
    inherited.push(theirs);
    let launch = Launch {
        program: helper.as_os_str().to_owned(),
        args,
        env: Vec::new(),
        cwd: PathBuf::from("/"),
        stdio: (),
        confinement: Confinement::Guard,
    };
    run_helper(&launch, inherited, OPEN_MAX)?;
    ours.set_nonblocking(true)?;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(&ours, &mut [IoSliceMut::new(&mut byte)], &mut received, RecvFlags::CMSG_CLOEXEC)?;
    let rights = received.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(all) => Some(all.collect::<Vec<_>>()),
        _ => None,
    });
    Ok(rights.flatten().collect())
}

/// The folders of the caches' layers, made if needed. A folder whose path mount options can't hold has none.
fn layers(rules: &FileRules) -> io::Result<Vec<Layer>> {
    let mut layers = Vec::new();
    for cache in &rules.caches {
        let upper = cache.layer.join("upper");
        let work = cache.layer.join("work");
        folders::private(&upper)?;
        folders::private(&work)?;
        let is_plain = |path: &Path| path.to_str().is_some_and(|text| !text.contains([',', ':', '\\']));
        if cache.is_there && is_plain(&cache.folder) && is_plain(&upper) {
            layers.push(Layer {
                folder: cache.folder.clone().into(),
                upper: upper.into(),
                work: work.into(),
            });
        }
    }
    Ok(layers)
}

/// Makes what protected paths that aren't there are covered by, and what private folders are mounted over.
fn cover(rules: &FileRules, covers: &Covers) -> io::Result<()> {
    for private in &rules.private {
        folders::private(&private.source)?;
        covers.make(&private.place, CoverKind::Folder)?;
    }
    for protected in &rules.protected {
        let kind = match protected.cover {
            Cover::Itself | Cover::Pinned => continue,
            Cover::EmptyFolder => CoverKind::Folder,
            Cover::EmptyFile => CoverKind::File,
            Cover::Nothing => CoverKind::Unlisted,
            Cover::ThisFolder => CoverKind::ThisFolder,
        };
        covers.make(&protected.path, kind).map_err(|error| {
            let path = protected.path.display();
            io::Error::new(error.kind(), format!("{path} can't be protected: {error}"))
        })?;
    }
    Ok(())
}

/// The program's whole path, as the system would find it.
fn found(program: &OsStr, env: &[(OsString, OsString)], cwd: &Path) -> io::Result<OsString> {
    let path = Path::new(program);
    if path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        let whole = cwd.join(path);
        return if whole.exists() { Ok(whole.into()) } else { Err(io::ErrorKind::NotFound.into()) };
    }
    let folders = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let folders = folders.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates = std::env::split_paths(&folders).map(|folder| cwd.join(folder).join(path));
    let runs = |file: &PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(file).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    candidates.into_iter().find(runs).map(PathBuf::into_os_string).ok_or(io::ErrorKind::NotFound.into())
}
