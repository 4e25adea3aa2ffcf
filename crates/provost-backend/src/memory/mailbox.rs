//! The mailboxes of runs.

use std::collections::BTreeMap;

use provost_event::RunId;
use provost_harness::BackendError;

use super::{Data, MemoryStore, Undo};
use crate::{ANSWERED_REQUESTS_MAX, Mailbox, MailboxState};

/// All requests and replies, by their numbers.
#[derive(Default)]
pub(super) struct Requests {
    last: u64,
    all: BTreeMap<u64, Stored>,
}

#[derive(Clone)]
struct Stored {
    run: RunId,
    request: String,
    reply: Option<String>,
}

impl Requests {
    /// Removes those of `run`, and returns them.
    pub(super) fn remove_run(&mut self, run: RunId) -> Removed {
        Removed(self.all.extract_if(.., |_, stored| stored.run == run).collect())
    }

    pub(super) fn put_back(&mut self, Removed(removed): Removed) {
        self.all.extend(removed);
    }

    /// Sets one, and returns what was there.
    fn set(&mut self, number: u64, stored: Option<Stored>) -> Option<Stored> {
        match stored {
            Some(stored) => self.all.insert(number, stored),
            None => self.all.remove(&number),
        }
    }
}

/// Removed requests.
pub(super) struct Removed(Vec<(u64, Stored)>);

impl MemoryStore {
    fn set_request(&mut self, number: u64, stored: Option<Stored>) {
        self.write(|data| {
            let before = data.requests.set(number, stored);
            let undo: Undo = Box::new(move |data: &mut Data| drop(data.requests.set(number, before)));
            ((), Some(undo))
        });
    }

    fn request(&self, number: u64) -> Option<Stored> {
        self.look().requests.all.get(&number).cloned()
    }
}

impl Mailbox for MemoryStore {
    fn put_request(&mut self, run: RunId, request: &str) -> Result<u64, BackendError> {
        let number = self.write(|data| {
            data.requests.last += 1;
            (data.requests.last, None)
        });
        self.set_request(number, Some(Stored { run, request: request.to_owned(), reply: None }));
        Ok(number)
    }

    fn runs_with_requests(&mut self) -> Result<Vec<RunId>, BackendError> {
        let data = self.look();
        let waiting = data.requests.all.values().filter(|stored| stored.reply.is_none());
        let mut runs = waiting.map(|stored| stored.run).collect::<Vec<_>>();
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    fn waiting_requests(&mut self, run: RunId, max: usize) -> Result<Vec<(u64, String)>, BackendError> {
        let data = self.look();
        let all = data.requests.all.iter();
        let waiting = all.filter(|(_, stored)| stored.run == run && stored.reply.is_none());
        Ok(waiting.take(max).map(|(number, stored)| (*number, stored.request.clone())).collect())
    }

    fn answer_request(&mut self, number: u64, reply: &str) -> Result<(), BackendError> {
        if let Some(stored) = self.request(number) {
            self.set_request(number, Some(Stored { reply: Some(reply.to_owned()), ..stored }));
        }
        let oldest = number.saturating_sub(ANSWERED_REQUESTS_MAX);
        let is_old = |(number, stored): (&u64, &Stored)| stored.reply.is_some().then_some(*number);
        let old = self.look().requests.all.range(..=oldest).filter_map(is_old).collect::<Vec<_>>();
        old.into_iter().for_each(|number| self.set_request(number, None));
        Ok(())
    }

    fn request_state(&mut self, number: u64) -> Result<Option<MailboxState>, BackendError> {
        Ok(self
            .request(number)
            .map(|stored| stored.reply.map_or(MailboxState::Waiting, MailboxState::Answered)))
    }

    fn withdraw_request(&mut self, number: u64) -> Result<bool, BackendError> {
        let is_waiting = self.request(number).is_some_and(|stored| stored.reply.is_none());
        if is_waiting {
            self.set_request(number, None);
        }
        Ok(is_waiting)
    }
}
