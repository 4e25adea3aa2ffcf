//! The access of one session's program: its token, its budget, its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use provost_event::SessionId;
use provost_harness::Backend;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::ActivityCounter;
use crate::budget::CallBudget;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;

/// One program's access.
pub(crate) struct ProgramAccess {
    pub(crate) token: String,
    pub(crate) budget: CallBudget,
    pub(crate) activity: ActivityCounter,
    /// Room for further requests.
    pub(crate) room: Arc<Semaphore>,
    /// Ends the program's calls.
    pub(crate) cancel: CancellationToken,
    /// Ends the reading of the session's log, after the calls.
    log: CancellationToken,
    pub(crate) calls: TaskTracker,
    follower: TaskTracker,
    prefix: String,
    requests: AtomicU64,
}

impl ProgramAccess {
    /// A new access, whose session's log is followed until it is closed.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub(crate) fn open(
        backend: Arc<dyn Backend>,
        session: SessionId,
        requests_max: usize,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let prefix = format!("{}-", random_hex(6)?);
        let access = Arc::new(Self {
            token: format!("provost-{}", random_hex(TOKEN_BYTES)?),
            budget: CallBudget::new(backend, session, prefix.clone()),
            activity: ActivityCounter::new(),
            room: Arc::new(Semaphore::new(requests_max)),
            cancel: CancellationToken::new(),
            log: CancellationToken::new(),
            calls: TaskTracker::new(),
            follower: TaskTracker::new(),
            prefix,
            requests: AtomicU64::new(0),
        });
        let followed = Arc::clone(&access);
        access.follower.spawn(async move { followed.budget.follow(followed.log.clone()).await });
        access.follower.close();
        Ok(access)
    }

    /// The id of the next request.
    pub(crate) fn next_request(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        format!("{}{number}", self.prefix)
    }

    /// Ends the program's calls, and returns when each is charged.
    pub(crate) async fn close(&self) {
        self.cancel.cancel();
        self.calls.close();
        self.calls.wait().await;
        self.log.cancel();
        self.follower.wait().await;
    }
}

fn random_hex(bytes: usize) -> Result<String, getrandom::Error> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
