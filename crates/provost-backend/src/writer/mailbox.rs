//! The writer's part in mailboxes: requests to the processes that hold runs, and decisions on such requests.
//!
//! No process can take a run over while a transaction is open, so a run without a holder at that time has none until
//! the commit: this process may decide for it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use provost_event::{Elapsed, RunId};
use provost_harness::{BackendError, Posted};

use super::{BATCH_MAX, Batch, Writer};
use crate::job::{Job, Post, Reply, send};
use crate::mailbox::{MailboxReply, MailboxState, Request};
use crate::queue::Queue;
use crate::{Listening, WakeUps};

/// How long a request waits for its decision before it is withdrawn.
const DECISION_MAX_MS: u64 = 5_000;
/// How often to check for a decision without being woken.
const REPLY_EVERY: Duration = Duration::from_millis(20);
/// Maximum requests without a reply.
const SENT_MAX: usize = 1024;

/// A request to the process that holds a run.
pub(super) struct Sent {
    number: u64,
    run: RunId,
    /// When it is withdrawn, by the process's monotonic clock.
    until: Elapsed,
    reply: Reply<Posted>,
}

impl Sent {
    pub(super) fn refuse(self, error: &BackendError) {
        send(self.reply, Err(error.clone()));
    }
}

/// Requests without a reply, and the wake-ups that go with them.
pub(super) struct Outbox {
    wake_ups: Arc<dyn WakeUps>,
    jobs: Weak<Queue<Job>>,
    /// `None` until it is needed.
    listening: Option<Listening>,
    /// Whether a wake-up is queued: further ones add nothing.
    is_woken: Arc<AtomicBool>,
    sent: Vec<Sent>,
}

impl Outbox {
    pub(super) fn new(wake_ups: Arc<dyn WakeUps>, jobs: Weak<Queue<Job>>) -> Self {
        Self { wake_ups, jobs, listening: None, is_woken: Arc::default(), sent: Vec::new() }
    }

    /// From here on other processes can wake this one.
    pub(super) fn listen(&mut self) {
        if self.listening.is_some() {
            return;
        }
        let jobs = self.jobs.clone();
        let is_woken = Arc::clone(&self.is_woken);
        self.listening = self.wake_ups.listen(Box::new(move || {
            let Some(jobs) = jobs.upgrade() else { return false };
            if !is_woken.swap(true, Ordering::SeqCst) {
                jobs.send_at_once(Job::Look);
            }
            true
        }));
    }

    /// No longer reachable for other processes, until it is needed again.
    pub(super) fn close(&mut self) {
        self.listening = None;
    }

    /// All queued wake-ups are taken, and the next step is to look for commits of other processes: a later wake-up is
    /// queued again.
    pub(super) fn hears(&self) {
        self.is_woken.store(false, Ordering::SeqCst);
    }

    /// These requests, or replies, are in the store.
    pub(super) fn sent(&mut self, sent: Vec<Sent>) {
        self.sent.extend(sent);
        self.wake_ups.wake();
    }

    pub(super) fn look_every(&self) -> Option<Duration> {
        (!self.sent.is_empty()).then_some(REPLY_EVERY)
    }
}

impl Writer {
    /// Puts a post into the mailbox of its run.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    pub(super) fn send_to_holder(
        &mut self,
        post: Post,
        reply: Reply<Posted>,
        batch: &mut Batch,
    ) -> Result<(), BackendError> {
        if self.outbox.sent.len() + batch.sent.len() >= SENT_MAX {
            send(reply, Err(too_many()));
            return Ok(());
        }
        self.outbox.listen();
        let run = post.key.run();
        let request = Request { key: post.key, event: post.event, dedup: post.dedup };
        match request.text().and_then(|request| self.store.mailbox().put_request(run, &request)) {
            Ok(number) => {
                let until = self.clock.monotonic().plus_ms(DECISION_MAX_MS);
                batch.sent.push(Sent { number, run, until, reply });
                Ok(())
            }
            Err(error) => {
                send(reply, Err(error.clone()));
                Err(error)
            }
        }
    }

    /// Decides on what waits in the mailbox of `run`, the oldest first. Only for a run that this process holds, or
    /// no process.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    pub(super) fn decide_requests(&mut self, run: RunId, batch: &mut Batch) -> Result<(), BackendError> {
        let is_owned = self.owned.contains_key(&run);
        loop {
            let waiting = self.store.mailbox().waiting_requests(run, BATCH_MAX)?;
            if waiting.is_empty() {
                return Ok(());
            }
            for (number, request) in waiting {
                let result = match Request::parse(&request, run) {
                    Ok(Request { key, event, dedup }) => {
                        self.decide_and_keep(Post { key, event, dedup, epoch: None }, batch)?
                    }
                    Err(message) => Err(BackendError::Storage { attempt: "decide", message, hint: None }),
                };
                if is_owned && matches!(result, Err(BackendError::Conflict { .. })) {
                    // The run has another owner, who decides.
                    return Ok(());
                }
                let reply = MailboxReply::of(result).text()?;
                self.store.mailbox().answer_request(number, &reply)?;
                batch.replies = true;
                if is_owned && !self.owned.contains_key(&run) {
                    return Ok(());
                }
            }
        }
    }

    /// Decides on the requests to a run, unless another process holds it.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    pub(super) fn empty_mailbox(&mut self, run: RunId, batch: &mut Batch) -> Result<(), BackendError> {
        if !self.owned.contains_key(&run) && self.leases.is_claimed(run)? {
            return Ok(());
        }
        self.decide_requests(run, batch)
    }

    /// Decides on the requests to all runs that this process holds.
    pub(super) fn empty_mailboxes(&mut self) {
        if self.owned.is_empty() {
            return;
        }
        match self.store.mailbox().runs_with_requests() {
            Ok(runs) => {
                let owned = runs.into_iter().filter(|run| self.owned.contains_key(run));
                let jobs = owned.map(|run| Job::EmptyMailbox { run }).collect::<Vec<_>>();
                if !jobs.is_empty() {
                    self.transact(jobs);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "can't look for requests");
                self.outdated = true;
            }
        }
    }

    /// Passes replies on, decides for runs whose process is gone, and withdraws requests that have waited too long.
    pub(super) fn attend_outbox(&mut self) {
        if self.outbox.sent.is_empty() {
            return;
        }
        let runs = self.outbox.sent.iter().map(|sent| sent.run).collect::<BTreeSet<_>>();
        let is_free = |run: &RunId| matches!(self.leases.is_claimed(*run), Ok(false));
        let free = runs.into_iter().filter(is_free).map(|run| Job::EmptyMailbox { run }).collect::<Vec<_>>();
        if !free.is_empty() {
            self.transact(free);
        }
        let now = self.clock.monotonic();
        for sent in std::mem::take(&mut self.outbox.sent) {
            let is_late = now >= sent.until;
            match self.store.mailbox().request_state(sent.number) {
                Ok(Some(MailboxState::Answered(reply))) => send(sent.reply, MailboxReply::result(&reply)),
                // The run was removed.
                Ok(None) => self.report_unanswered(sent),
                Ok(Some(MailboxState::Waiting)) if is_late => self.withdraw(sent),
                Err(_) if is_late => self.report_unanswered(sent),
                Ok(Some(MailboxState::Waiting)) | Err(_) => self.outbox.sent.push(sent),
            }
        }
    }

    fn withdraw(&mut self, sent: Sent) {
        match self.try_withdraw(sent.number) {
            Ok(true) => {
                let error = BackendError::Undecided { run: sent.run, by: self.holder(sent.run) };
                sent.refuse(&error);
            }
            Ok(false) => match self.store.mailbox().request_state(sent.number) {
                Ok(Some(MailboxState::Answered(reply))) => send(sent.reply, MailboxReply::result(&reply)),
                Ok(_) | Err(_) => self.report_unanswered(sent),
            },
            Err(error) => {
                tracing::warn!(%error, run = %sent.run, "can't withdraw a request");
                self.report_unanswered(sent);
            }
        }
    }

    /// Whether the request waited until now, and never has an effect.
    fn try_withdraw(&mut self, number: u64) -> Result<bool, BackendError> {
        let withdrawn = self.begin().and_then(|()| {
            let withdrawn = self.store.mailbox().withdraw_request(number)?;
            self.store.commit()?;
            Ok(withdrawn)
        });
        if withdrawn.is_err() {
            self.store.rollback();
        }
        withdrawn
    }

    fn report_unanswered(&self, sent: Sent) {
        let error = BackendError::Unanswered { run: sent.run, by: self.holder(sent.run) };
        sent.refuse(&error);
    }

    /// The process that holds `run`, in words.
    fn holder(&self, run: RunId) -> String {
        let holder = self.leases.holder(run).ok().flatten();
        holder.map_or_else(|| "another process".to_owned(), |holder| holder.by)
    }
}

fn too_many() -> BackendError {
    BackendError::Storage {
        attempt: "ask the process that holds the run",
        message: format!("{SENT_MAX} requests have no reply yet"),
        hint: None,
    }
}
