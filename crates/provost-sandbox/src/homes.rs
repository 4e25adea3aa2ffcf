//! Whose credentials are masked: those of the user, by the environment and by the system's list of accounts, and where
//! Provost is root, of all users.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Places;

/// The system's list of accounts.
const ACCOUNTS: &str = "/etc/passwd";
/// Where home folders usually are, for accounts that are listed elsewhere.
const HOMES: &str = "/home";

/// The home folders that are there, without symlinks; never the root of the file system.
pub(crate) fn homes(places: &Places) -> BTreeSet<PathBuf> {
    let user = user();
    let accounts = fs::read_to_string(ACCOUNTS).unwrap_or_default();
    let mut all = accounts.lines().filter_map(|line| home_of(line, user)).collect::<Vec<_>>();
    all.extend(places.home.clone());
    if user == 0 {
        all.extend(fs::read_dir(HOMES).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    let absolute = all.into_iter().filter(|home| home.is_absolute());
    let real = absolute.filter_map(|home| home.canonicalize().ok());
    real.filter(|home| home.is_dir() && home.parent().is_some()).collect()
}

/// The home folder in a line of the list of accounts, if it is this user's. Root has all of them.
fn home_of(line: &str, user: u32) -> Option<PathBuf> {
    let mut fields = line.split(':').skip(2);
    let id = fields.next()?.parse::<u32>().ok()?;
    let home = fields.nth(2)?;
    (user == 0 || id == user).then(|| PathBuf::from(home))
}

#[cfg(unix)]
fn user() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    // A process's own state belongs to its user.
    Path::new("/proc/self").metadata().map_or(u32::MAX, |facts| facts.uid())
}

#[cfg(not(unix))]
fn user() -> u32 {
    u32::MAX
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::home_of;

    #[test]
    fn the_list_of_accounts_names_the_home_of_a_user_and_root_has_all() {
        let line = "ann:x:1000:1000:Ann:/home/ann:/bin/sh";
        assert_eq!(home_of(line, 1000), Some(PathBuf::from("/home/ann")));
        assert_eq!(home_of(line, 0), Some(PathBuf::from("/home/ann")));
        assert_eq!(home_of(line, 1001), None);
        assert_eq!(home_of("broken", 0), None);
    }
}
