//! What a box has mounted: the arguments of `bwrap`, ordered so that nothing hides what was mounted before.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use provost_event::{SandboxMode, SandboxNetwork};
use provost_harness::{FolderAccess, GrantedFolder};

use crate::rules::PrivateFolder;
use crate::shown::ShownEntry;
use crate::{Cover, FileRules};

/// What is mounted at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// A folder or file, to read only.
    Reads(PathBuf),
    /// One that may be written.
    Writes(PathBuf),
    /// A folder or file to read only, if it is still there.
    Shows(PathBuf),
    /// An empty folder.
    Empty,
    /// A symlink.
    Leads(PathBuf),
}

/// All mounts by place. Of two at one place the later counts.
#[derive(Debug, Default)]
struct Mounts {
    all: Vec<(PathBuf, What)>,
}

impl Mounts {
    fn put(&mut self, place: &Path, what: What) {
        self.all.retain(|(known, _)| known != place);
        self.all.push((place.to_owned(), what));
    }

    /// The outer before the inner.
    fn arguments(mut self) -> Vec<OsString> {
        self.all.sort_by_key(|(place, _)| place.components().count());
        let mut args = Vec::new();
        for (place, what) in self.all {
            let words: Vec<&OsStr> = match &what {
                What::Reads(source) => vec!["--ro-bind".as_ref(), source.as_ref(), place.as_ref()],
                What::Writes(source) => vec!["--bind".as_ref(), source.as_ref(), place.as_ref()],
                What::Shows(source) => vec!["--ro-bind-try".as_ref(), source.as_ref(), place.as_ref()],
                What::Leads(target) => vec!["--symlink".as_ref(), target.as_ref(), place.as_ref()],
                What::Empty => vec!["--tmpfs".as_ref(), place.as_ref()],
            };
            args.extend(words.into_iter().map(OsStr::to_owned));
        }
        args
    }
}

/// The folders and files that belong to a box.
#[derive(Debug)]
pub(super) struct BoxPaths<'a> {
    /// Its temporary folder.
    pub(super) temporary: &'a Path,
    /// An empty file.
    pub(super) empty: &'a Path,
    /// One that can't be opened.
    pub(super) unreadable: &'a Path,
    /// The program that runs the steps.
    pub(super) helper: &'a Path,
    /// What is mounted over the repository's file of ignored names.
    pub(super) exclude: Option<PathBuf>,
    /// The caches that have a layer mounted over them.
    pub(super) layered: Vec<PathBuf>,
}

/// The arguments of `bwrap` up to the program.
pub(super) fn arguments(
    rules: &FileRules,
    network: SandboxNetwork,
    paths: &BoxPaths<'_>,
    cwd: &Path,
) -> Vec<OsString> {
    let mut args = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    add(&["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]);
    if rules.read_only_from.is_empty() {
        add(&["--ro-bind", "/", "/"]);
    }
    add(&["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]);
    for name in ["/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"] {
        add(&["--ro-bind-try", name, name]);
    }
    args.extend(mounts(rules, network, paths).arguments());
    for shown in &rules.shown {
        args.extend(["--remount-ro".into(), shown.folder.clone().into_os_string()]);
    }
    args.extend(["--chdir".into(), cwd.as_os_str().to_owned(), "--".into()]);
    args
}

fn mounts(rules: &FileRules, network: SandboxNetwork, paths: &BoxPaths<'_>) -> Mounts {
    let mut mounts = Mounts::default();
    for path in &rules.read_only_from {
        mounts.put(path, What::Reads(path.clone()));
    }
    for shown in &rules.shown {
        mounts.put(&shown.folder, What::Empty);
        for ShownEntry { path, target } in &shown.entries {
            let what = target.clone().map_or_else(|| What::Shows(path.clone()), What::Leads);
            mounts.put(path, what);
        }
    }
    mounts.put(Path::new("/tmp"), What::Writes(paths.temporary.join("tmp")));
    mounts.put(Path::new("/var/tmp"), What::Writes(paths.temporary.join("var-tmp")));
    mounts.put(&rules.workspace, What::Reads(rules.workspace.clone()));
    for path in &rules.write {
        mounts.put(path, What::Writes(path.clone()));
    }
    for cache in &rules.caches {
        let is_layered = paths.layered.contains(&cache.folder);
        if is_layered || !cache.is_there {
            mounts.put(&cache.folder, What::Writes(cache.folder.clone()));
        } else if rules.mode == SandboxMode::Strict {
            mounts.put(&cache.folder, What::Reads(cache.folder.clone()));
        }
    }
    let is_seen = |path: &Path| !rules.shown.iter().any(|shown| path.parent() == Some(&shown.folder));
    for masked in rules.masked.iter().filter(|path| is_seen(path)) {
        let file = if rules.denied.contains(masked) { paths.unreadable } else { paths.empty };
        let what = if masked.is_dir() { What::Empty } else { What::Reads(file.to_owned()) };
        mounts.put(masked, what);
    }
    for protected in rules.protected.iter().filter(|protected| !rules.masked.contains(&protected.path)) {
        let path = &protected.path;
        mounts.put(
            path,
            match protected.cover {
                Cover::Pinned => What::Writes(path.clone()),
                Cover::Nothing => What::Reads("/dev/null".into()),
                Cover::Itself | Cover::EmptyFolder | Cover::EmptyFile | Cover::ThisFolder => {
                    What::Reads(path.clone())
                }
            },
        );
    }
    for PrivateFolder { place, source } in &rules.private {
        mounts.put(place, What::Writes(source.clone()));
    }
    for GrantedFolder { path, access } in &rules.granted {
        mounts.put(
            path,
            match access {
                FolderAccess::Read => What::Reads(path.clone()),
                FolderAccess::Write => What::Writes(path.clone()),
            },
        );
    }
    if let (Some(exclude), Some(source)) = (&rules.exclude, &paths.exclude) {
        mounts.put(&exclude.file, What::Reads(source.clone()));
    }
    mounts.put(paths.helper, What::Reads(paths.helper.to_owned()));
    if network == SandboxNetwork::Open {
        name_resolution(&mut mounts);
    }
    mounts
}

/// Where the addresses of name servers are, if that is a link out of what is visible.
fn name_resolution(mounts: &mut Mounts) {
    let Ok(file) = Path::new("/etc/resolv.conf").canonicalize() else { return };
    if !file.starts_with("/etc") {
        mounts.put(&file, What::Reads(file.clone()));
    }
}
