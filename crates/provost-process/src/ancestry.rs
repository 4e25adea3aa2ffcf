//! Whether a run has started this process, whatever lies between.
//!
//! A process that works on a run marks itself, and whatever it starts inherits the mark: the *hard limit of file locks*
//! (`RLIMIT_LOCKS`), which has had no effect since Linux 2.4.25 and which nobody else sets. Every process inherits it
//! over fork and exec, also into namespaces and under another name or environment; without `CAP_SYS_RESOURCE` it can be
//! lowered and never raised. So any finite value is a mark. The number in it says which run, for people only: whoever
//! inherits the mark may lower it to another one.
//!
//! Beside its own mark a process looks at those of the processes above it, for the sake of the administrator's, who
//! can take the own one off.

/// Processes looked at on the way up; a chain that is longer isn't one.
#[cfg(target_os = "linux")]
const ANCESTORS_MAX: usize = 256;
/// The greatest number that a mark has room for.
const NUMBER_MAX: u64 = (1 << 60) - 2;
/// A mark without a number; those with one lie below.
const ANONYMOUS: u64 = BASE + NUMBER_MAX + 1;
/// What distinguishes our marks from a limit that somebody set otherwise.
const BASE: u64 = 1 << 62;

/// By what is known that a run has started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// A mark with this number.
    Of(u64),
    /// A mark without a number.
    Unnamed,
    /// There is a limit where nobody but [`mark_descendants`] sets one, and not one of its values: a mark that was
    /// lowered, or a system that has a limit there.
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

/// Tells whether a process that called [`mark_descendants`] has started this one, directly or not. `None` too where the
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

/// Marks this process and all that it starts from now on, for good; `number` says later on whose they are. One beyond
/// 2^60 − 2 is left out. Called again, a number takes the place of none, and nothing else does.
///
/// # Errors
/// When the system refuses. Nothing is marked, and no error, anywhere but on Linux.
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
    /// The parent of a process, as `/proc` names it; `None` for the first one, and where there is no `/proc`.
    pub(super) fn parent_of(process: &str) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in parentheses may hold anything, parentheses too.
        let (_, fields) = stat.rsplit_once(')')?;
        let parent = fields.split_whitespace().nth(1)?;
        (parent != "0").then(|| parent.to_owned())
    }

    /// The hard limit of file locks of a process; `None` when it can't be read, and within when there is none.
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
