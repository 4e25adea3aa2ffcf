//! The requests to the system, one lock each: if one is refused, the other is still held.

use std::fmt;

/// The kind of sleep that a lock inhibits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Idle sleep.
    Idle,
    /// Requested sleep: by a user, or by a desktop that uses its own idle detection instead of logind's.
    #[cfg(target_os = "linux")]
    Sleep,
}

impl Lock {
    /// The locks to request, each separately: a refusal of one doesn't affect the others. Off Linux, inhibiting
    /// requested sleep works differently (macOS, when on mains) or is meant for media players only (Windows).
    pub(crate) const fn wanted(blocks_sleep: bool) -> &'static [Self] {
        #[cfg(target_os = "linux")]
        if blocks_sleep {
            return &[Self::Idle, Self::Sleep];
        }
        let _ = blocks_sleep;
        &[Self::Idle]
    }

    /// Takes the lock; the result holds it until it is dropped, on the same thread. Blocks without a limit until
    /// the system answers.
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    pub(crate) fn take(self, reason: &str) -> Result<impl Sized, String> {
        let mut ask = keepawake::Builder::default();
        ask.app_name("Provost").reason(reason);
        match self {
            Self::Idle => ask.idle(true),
            #[cfg(target_os = "linux")]
            Self::Sleep => ask.sleep(true),
        };
        ask.create().map_err(|error| error.to_string())
    }

    /// This platform has no locks.
    #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
    pub(crate) fn take(self, _reason: &str) -> Result<impl Sized, String> {
        Err::<(), _>("there is no way to do that on this system".to_owned())
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            #[cfg(target_os = "linux")]
            Self::Sleep => "sleep",
        })
    }
}
