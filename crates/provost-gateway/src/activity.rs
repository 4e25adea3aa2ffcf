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

    pub(crate) fn begins(&self) -> CallBeginning {
        self.0.send_modify(|activity| {
            activity.open = activity.open.saturating_add(1);
            activity.begun = activity.begun.saturating_add(1);
        });
        CallBeginning { answered: self.0.borrow().answered }
    }

    /// A request was refused, and no call made of it.
    pub(crate) fn refused(&self, failure: GatewayFailure) {
        self.0.send_modify(|activity| {
            activity.begun = activity.begun.saturating_add(1);
            activity.failure = Some(failure);
        });
    }

    /// A call is over: with a complete answer, or with a failure. A call that the program gave up is neither, nor is a
    /// failure beside another call that was answered meanwhile: programs make calls in the background.
    pub(crate) fn ends(&self, beginning: CallBeginning, end: CallEnd) {
        self.0.send_modify(|activity| {
            activity.open = activity.open.saturating_sub(1);
            match end {
                CallEnd::Answered => {
                    activity.answered = activity.answered.saturating_add(1);
                    activity.failure = None;
                }
                CallEnd::Failed(_) if activity.answered > beginning.answered => {}
                CallEnd::GivenUp => {}
                CallEnd::Failed(failure) => activity.failure = Some(failure),
            }
        });
    }
}

/// What there was when a call began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallBeginning {
    answered: u64,
}

/// How a call ended, for who follows.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Answered,
    GivenUp,
    Failed(GatewayFailure),
}
