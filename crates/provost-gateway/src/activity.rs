//! The calls of a session's program, counted: what the driver of the program can follow.

use provost_harness::{GatewayActivity, GatewayFailure};
use tokio::sync::watch;

/// Counts the calls of one program.
#[derive(Debug)]
pub(crate) struct ActivityCounter(watch::Sender<GatewayActivity>);

impl ActivityCounter {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(GatewayActivity::default()))
    }

    pub(crate) fn follow(&self) -> watch::Receiver<GatewayActivity> {
        self.0.subscribe()
    }

    pub(crate) fn begins(&self) {
        self.0.send_modify(|activity| activity.open = activity.open.saturating_add(1));
    }

    /// A request was refused, and no call made of it.
    pub(crate) fn refused(&self, failure: GatewayFailure) {
        self.0.send_modify(|activity| activity.failure = Some(failure));
    }

    /// A call is over: with a complete answer, or with a failure. A call that the program gave up is neither.
    pub(crate) fn ends(&self, end: CallEnd) {
        self.0.send_modify(|activity| {
            activity.open = activity.open.saturating_sub(1);
            match end {
                CallEnd::Answered => {
                    activity.answered = activity.answered.saturating_add(1);
                    activity.failure = None;
                }
                CallEnd::GivenUp => {}
                CallEnd::Failed(failure) => activity.failure = Some(failure),
            }
        });
    }
}

/// How a call ended, for who follows.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Answered,
    GivenUp,
    Failed(GatewayFailure),
}
