//! Whether a run has started this process, directly or through other processes.
//!
//! A process that works on a run marks itself, and all its descendants inherit the mark: the *hard limit of file
//! locks* (`RLIMIT_LOCKS`), which has had no effect since Linux 2.4.25 and which no other program sets. Every
//! process inherits it over fork and exec, also into namespaces and under another name or environment; without
//! `CAP_SYS_RESOURCE` it can be lowered and never raised. So any finite value is a mark. The number in it
//! identifies the run for display only: a process that inherits the mark may lower it to another number.
//!
//! Besides its own mark a process checks those of its ancestors, because an administrator can remove a mark.

/// Maximum ancestors to check.
#[cfg(target_os = "linux")]
const ANCESTORS_MAX: usize = 256;
/// The largest number that fits in a mark.
const NUMBER_MAX: u64 = (1 << 60) - 2;
/// A mark without a number; numbered marks are below it.
const ANONYMOUS: u64 = BASE + NUMBER_MAX + 1;
/// Distinguishes marks from a limit that was set for another purpose.
const BASE: u64 = 1 << 62;

/// How a run was found to be an ancestor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// A mark with this number.
    Of(u64),
    /// A mark without a number.
    Unnamed,
    /// There is a limit, which only [`mark_descendants`] is known to set, but not one of its values: a lowered
    /// mark, or a system with a limit of its own.
    Lowered,
}

impl Descent {
    const fn of_limit(limit: Option<u64>) -> Option<Self> {
        match limit {
            None => None,
            Some(ANONYMOUS) => Some(Self::Unnamed),
            Some(limit) if limit >= BASE && limit < ANONYMOUS => Some(Self::Of(limit - BASE)),
            Some(_) => Some(Self::Lowered),
        }
    }
}

/// Returns whether a process that called [`mark_descendants`] is an ancestor of this one. Also `None` where the
/// system has no such mark (anywhere but on Linux).
#[must_use]
pub fn descent() -> Option<Descent> {
    #[cfg(target_os = "linux")]
    {
        let own = Descent::of_limit(rustix::process::getrlimit(rustix::process::Resource::Locks).maximum);
        let ancestors = std::iter::successors(linux::parent_of("self"), |process| linux::parent_of(process));
        own.or_else(|| {
            ancestors.take(ANCESTORS_MAX).find_map(|process| Descent::of_limit(linux::limit_of(&process)?))
        })
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The same for another process; also `None` if it is gone or can't be looked at.
#[must_use]
pub fn descent_of(process: u32) -> Option<Descent> {
    #[cfg(target_os = "linux")]
    {
        let chain = std::iter::successors(Some(process.to_string()), |process| linux::parent_of(process));
        chain.take(ANCESTORS_MAX).find_map(|process| Descent::of_limit(linux::limit_of(&process)?))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = process;
        None
    }
}

/// Marks this process and all its future descendants permanently; `number` identifies the run. A number beyond
/// 2^60 − 2 is left out. A later call can only add a number to a mark without one.
///
/// # Errors
/// When the system refuses. Off Linux it does nothing and returns no error.
pub fn mark_descendants(number: Option<u64>) -> std::io::Result<()> {
    let mark = number.filter(|number| *number <= NUMBER_MAX).map_or(ANONYMOUS, |number| BASE + number);
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        if getrlimit(Resource::Locks).maximum.is_none_or(|limit| mark < limit) {
            setrlimit(Resource::Locks, Rlimit { current: Some(mark), maximum: Some(mark) })?;
        }
    }
    let _ = mark;
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    /// The parent of a process, from `/proc`; `None` for the first process, and where there is no `/proc`.
    pub(super) fn parent_of(process: &str) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in parentheses may hold anything, parentheses too.
        let (_, fields) = stat.rsplit_once(')')?;
        let parent = fields.split_whitespace().nth(1)?;
        (parent != "0").then(|| parent.to_owned())
    }

    /// The hard limit of file locks of a process. The outer `None`: it can't be read; the inner: there is no
    /// limit.
    pub(super) fn limit_of(process: &str) -> Option<Option<u64>> {
        let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
        match line.split_whitespace().nth(1)? {
            "unlimited" => Some(None),
            limit => limit.parse().ok().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_its_number_and_a_lowered_one_is_one_too() {
        assert_eq!(Descent::of_limit(None), None);
        assert_eq!(Descent::of_limit(Some(ANONYMOUS)), Some(Descent::Unnamed));
        assert_eq!(Descent::of_limit(Some(BASE)), Some(Descent::Of(0)));
        assert_eq!(Descent::of_limit(Some(BASE + NUMBER_MAX)), Some(Descent::Of(NUMBER_MAX)));
        for lowered in [0, 1_000, BASE - 1, ANONYMOUS + 1, u64::MAX - 1] {
            assert_eq!(Descent::of_limit(Some(lowered)), Some(Descent::Lowered), "{lowered}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_is_read_from_where_the_system_shows_it() {
        let shown = linux::limit_of("self");
        let own = rustix::process::getrlimit(rustix::process::Resource::Locks).maximum;
        assert_eq!(shown, Some(own));
        assert_eq!(linux::limit_of(&linux::parent_of("self").unwrap()), Some(own), "inherited");
    }
}
