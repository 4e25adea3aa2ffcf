//! What is asked of the system, one lock each: where one is refused, the other is still held.

use std::fmt;

/// What of the system's falling asleep is held off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Falling asleep because nobody is there.
    Idle,
    /// Being sent to sleep, by somebody or by a desktop that finds nobody there whatever logind says of being idle.
    #[cfg(target_os = "linux")]
    Sleep,
}

impl Lock {
    /// Those that are asked for, each for itself: one that is refused takes no other with it. Elsewhere than on Linux,
    /// holding off a sleep that somebody asks for is of another kind (macOS, when on mains) or meant for players of
    /// media only (Windows).
    pub(crate) const fn wanted(blocks_sleep: bool) -> &'static [Self] {
        #[cfg(target_os = "linux")]
        if blocks_sleep {
            return &[Self::Idle, Self::Sleep];
        }
        let _ = blocks_sleep;
        &[Self::Idle]
    }

    /// Takes it; what is returned holds it until it is dropped, on the same thread. Blocks for as long as the system
    /// likes, which may be for ever.
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

    /// There is nothing to take.
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
