//! The port's implementation: counts the guards that keep the machine awake.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use provost_harness::{Power, PowerGuard};

use crate::keeper::keep;
use crate::shared::Shared;

/// How long the machine is kept awake after the last guard is dropped: an agent's next step follows within that
/// time, and the system doesn't get a request per step.
pub const LINGER: Duration = Duration::from_secs(2);
/// How long the system may take to answer before a log line says that the machine may sleep. A later answer still
/// counts.
pub const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The options of a [`KeepAwake`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAwakeOptions {
    /// How long the machine is kept awake after the last guard is dropped; with zero there is one request per
    /// step.
    pub linger: Duration,
    /// How long the system may take to answer before a log line says that it didn't.
    pub answer_max: Duration,
    /// Whether to inhibit requested sleep too (a closed lid, `systemctl suspend`), and not only idle sleep. Linux
    /// only.
    pub blocks_sleep: bool,
}

impl Default for KeepAwakeOptions {
    fn default() -> Self {
        Self { linger: LINGER, answer_max: ANSWER_MAX, blocks_sleep: false }
    }
}

/// Keeps the machine awake for as long as there are guards, and a little longer ([`KeepAwakeOptions::linger`]).
///
/// All guards share the locks; the system shows users the reason of the first guard. Requests run on threads of
/// their own, started with the first guard: neither taking nor dropping a guard waits for them. Dropping the
/// `KeepAwake` lets the machine sleep at once, even if guards are left; so does any end of the process.
///
/// ```
/// use provost_harness::Power as _;
/// use provost_power::KeepAwake;
///
/// let power = KeepAwake::default();
/// let guard = power.hold("a long calculation");
/// drop(guard);
/// ```
#[derive(Debug)]
pub struct KeepAwake {
    shared: Arc<Shared>,
    options: KeepAwakeOptions,
    begun: OnceLock<()>,
}

impl KeepAwake {
    /// Makes no request to the system yet.
    #[must_use]
    pub fn new(options: KeepAwakeOptions) -> Self {
        Self { shared: Arc::default(), options, begun: OnceLock::new() }
    }

    fn begin(&self) {
        let (shared, options) = (Arc::clone(&self.shared), self.options);
        let thread = thread::Builder::new().name("keep-awake".to_owned());
        // Not joined: dropping must not block. The thread ends with `Shared::end`.
        if let Err(error) = thread.spawn(move || keep(&shared, options)) {
            tracing::debug!(%error, "the machine may fall asleep while agents work");
        }
    }
}

impl Default for KeepAwake {
    fn default() -> Self {
        Self::new(KeepAwakeOptions::default())
    }
}

impl Power for KeepAwake {
    fn hold(&self, reason: &str) -> Box<dyn PowerGuard> {
        self.begun.get_or_init(|| self.begin());
        self.shared.hold(reason);
        Box::new(Guard { shared: Arc::clone(&self.shared), wait: self.options.linger })
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.shared.end();
    }
}

struct Guard {
    shared: Arc<Shared>,
    wait: Duration,
}

impl PowerGuard for Guard {
    fn release_after(mut self: Box<Self>, wait: Duration) {
        self.wait = self.wait.max(wait);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.release(self.wait);
    }
}
