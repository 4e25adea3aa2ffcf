//! Where the program `git` is looked for: in no folder that an agent can write to, which could hold a `git` of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where it is looked for if nothing else is left.
const USUAL: &str = "/usr/bin:/bin";

/// A search path without relative folders and without those in `avoided`. Folders that only root may write to come
/// first; apart from that the order stays.
pub(super) fn search_path(path: &OsStr, avoided: &[PathBuf]) -> OsString {
    let is_avoided = |folder: &Path| avoided.iter().any(|avoided| folder.starts_with(avoided));
    let is_fine = |folder: &PathBuf| {
        // By both names: a link in the workspace leads where the agent wants, and a link to it leads there.
        let real = folder.canonicalize();
        folder.is_absolute() && !is_avoided(folder) && !real.is_ok_and(|real| is_avoided(&real))
    };
    let (systems, others): (Vec<_>, Vec<_>) =
        std::env::split_paths(path).filter(is_fine).partition(|folder| is_systems(folder));
    let found = systems.into_iter().chain(others).collect::<Vec<_>>();
    // An empty search path means the current folder.
    if found.is_empty() { USUAL.into() } else { std::env::join_paths(found).unwrap_or_else(|_| USUAL.into()) }
}

/// The same folders without symlinks, and as they are named. Where agents write everywhere, nothing can be avoided.
pub(super) fn by_both_names<'a>(folders: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let folders = folders.filter(|folder| folder.parent().is_some());
    folders.flat_map(|folder| [Some(folder.to_owned()), folder.canonicalize().ok()]).flatten().collect()
}

#[cfg(unix)]
fn is_systems(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    const OTHERS_WRITE: u32 = 0o022;
    folder.metadata().is_ok_and(|facts| facts.uid() == 0 && facts.mode() & OTHERS_WRITE == 0)
}

#[cfg(not(unix))]
fn is_systems(_folder: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{by_both_names, search_path};

    #[test]
    fn folders_that_depend_on_where_one_is_are_no_place_to_look_for_git() {
        let path = search_path(":/usr/bin:.:bin:/bin::./node_modules/.bin".as_ref(), &[]);
        assert_eq!(path, "/usr/bin:/bin");
        assert_eq!(search_path(".:".as_ref(), &[]), "/usr/bin:/bin", "an empty path would mean here");
    }

    #[test]
    fn folders_in_a_workspace_are_none_either_under_any_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["work/bin", "other", "own"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("other"), at("work/link")).unwrap();
        symlink(at("work/bin"), at("leads")).unwrap();
        symlink(at("work"), at("named")).unwrap();
        let avoided = by_both_names([at("named")].iter().map(std::path::PathBuf::as_path));
        let all = ["work/bin", "work/link", "leads", "named/bin", "own"].map(at);
        let path = std::env::join_paths(all).unwrap();
        assert_eq!(search_path(&path, &avoided), at("own").into_os_string());
    }

    #[test]
    fn folders_that_only_root_writes_come_first() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let own = folder.path().display();
        let path = search_path(format!("{own}:/usr/bin").as_ref(), &[]);
        assert_eq!(path.to_str().unwrap(), format!("/usr/bin:{own}"));
    }
}
