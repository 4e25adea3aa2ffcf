//! The mailboxes of runs, and wake-ups.

use std::sync::mpsc;
use std::time::Duration;

use super::{ok, run, within};
use crate::mailbox::ANSWERED_REQUESTS_MAX;
use crate::{MailboxState, SessionStore};

/// The deadline of a wake-up.
const DEADLINE: Duration = Duration::from_secs(10);

fn put<S: SessionStore>(store: &mut S, number: u64, request: &str) -> u64 {
    let mut id = 0;
    within(store, |store| id = ok(store.mailbox().put_request(run(number), request)));
    id
}

fn waiting(store: &mut dyn SessionStore, number: u64, max: usize) -> Vec<(u64, String)> {
    ok(store.mailbox().waiting_requests(run(number), max))
}

fn is_answered(store: &mut dyn SessionStore, id: u64) -> Option<String> {
    match ok(store.mailbox().request_state(id)) {
        Some(MailboxState::Answered(reply)) => Some(reply),
        Some(MailboxState::Waiting) | None => None,
    }
}

pub(super) fn requests_wait_in_order_until_they_are_answered(mut store: impl SessionStore) {
    assert!(ok(store.mailbox().runs_with_requests()).is_empty());
    let first = put(&mut store, 1, "one");
    let other = put(&mut store, 2, "other");
    let second = put(&mut store, 1, "two");
    assert!(first < other && other < second, "numbers grow");
    let requests = [(first, "one".to_owned()), (second, "two".to_owned())];
    assert_eq!(waiting(&mut store, 1, 9), requests);
    assert_eq!(waiting(&mut store, 1, 1), requests[..1]);
    assert_eq!(ok(store.mailbox().request_state(first)), Some(MailboxState::Waiting));
    within(&mut store, |store| ok(store.mailbox().answer_request(first, "yes")));
    assert_eq!(is_answered(&mut store, first).as_deref(), Some("yes"));
    assert_eq!(waiting(&mut store, 1, 9), requests[1..]);
    let mut runs = ok(store.mailbox().runs_with_requests());
    runs.sort_unstable();
    assert_eq!(runs, [run(1), run(2)]);
    within(&mut store, |store| ok(store.mailbox().answer_request(second, "no")));
    assert_eq!(ok(store.mailbox().runs_with_requests()), [run(2)]);
}

pub(super) fn a_request_is_withdrawn_or_answered(mut store: impl SessionStore) {
    let withdraw = |store: &mut _, id| {
        let mut withdrawn = false;
        within(store, |store| withdrawn = ok(SessionStore::mailbox(store).withdraw_request(id)));
        withdrawn
    };
    let id = put(&mut store, 1, "one");
    assert!(withdraw(&mut store, id) && !withdraw(&mut store, id));
    assert_eq!(ok(store.mailbox().request_state(id)), None);
    assert!(waiting(&mut store, 1, 9).is_empty());
    let next = put(&mut store, 1, "two");
    assert!(next > id, "a number was used twice");
    within(&mut store, |store| ok(store.mailbox().answer_request(next, "yes")));
    assert!(!withdraw(&mut store, next), "what was answered can't be withdrawn");
    assert_eq!(is_answered(&mut store, next).as_deref(), Some("yes"));
}

pub(super) fn what_is_rolled_back_was_never_requested(mut store: impl SessionStore) {
    let answered = put(&mut store, 1, "one");
    let withdrawn = put(&mut store, 1, "two");
    ok(store.begin());
    ok(store.mailbox().answer_request(answered, "yes"));
    assert!(ok(store.mailbox().withdraw_request(withdrawn)));
    ok(store.mailbox().put_request(run(2), "three"));
    store.rollback();
    assert_eq!(waiting(&mut store, 1, 9), [(answered, "one".to_owned()), (withdrawn, "two".to_owned())]);
    assert!(waiting(&mut store, 2, 9).is_empty());
}

pub(super) fn a_run_that_is_removed_has_no_requests(mut store: impl SessionStore) {
    let gone = put(&mut store, 1, "one");
    let stays = put(&mut store, 2, "two");
    within(&mut store, |store| ok(store.remove_run(run(1))));
    assert_eq!(ok(store.mailbox().request_state(gone)), None);
    assert_eq!(ok(store.mailbox().request_state(stays)), Some(MailboxState::Waiting));
}

pub(super) fn old_replies_are_removed(mut store: impl SessionStore) {
    let waits = put(&mut store, 1, "waits");
    let first = put(&mut store, 1, "one");
    let mut last = first;
    within(&mut store, |store| {
        ok(store.mailbox().answer_request(first, "yes"));
        while last < first + ANSWERED_REQUESTS_MAX {
            last = ok(store.mailbox().put_request(run(1), "more"));
        }
    });
    assert!(is_answered(&mut store, first).is_some());
    within(&mut store, |store| ok(store.mailbox().answer_request(last, "yes")));
    assert_eq!(ok(store.mailbox().request_state(first)), None);
    assert_eq!(
        ok(store.mailbox().request_state(waits)),
        Some(MailboxState::Waiting),
        "however long it takes"
    );
}

pub(super) fn requests_are_there_for_other_writers<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let mut sender = open(place);
    let mut holder = open(place);
    let before = ok(holder.change_marker());
    let id = put(&mut sender, 1, "one");
    assert_ne!(ok(holder.change_marker()), before, "a request is a change");
    assert_eq!(waiting(&mut holder, 1, 9), [(id, "one".to_owned())]);
    within(&mut holder, |store| ok(store.mailbox().answer_request(id, "yes")));
    assert_eq!(is_answered(&mut sender, id).as_deref(), Some("yes"));
    drop((sender, holder));
    assert_eq!(is_answered(&mut open(place), id).as_deref(), Some("yes"), "when opened again");
}

/// A store whose wake-ups can't be received may say so; then its writers poll.
pub(super) fn a_writer_that_listens_is_woken<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let one = open(place);
    let two = open(place);
    let (sender, woken) = mpsc::channel();
    let Some(listening) = one.wake_ups().listen(Box::new(move || sender.send(()).is_ok())) else { return };
    two.wake_ups().wake();
    assert!(woken.recv_timeout(DEADLINE).is_ok(), "no holder was woken");
    two.wake_ups().wake();
    assert!(woken.recv_timeout(DEADLINE).is_ok(), "it was woken only once");
    drop((listening, woken));
    two.wake_ups().wake();
}
