//! Checks whether a [`SessionStore`] is correct. For tests: each function panics at the first violation.
//!
//! ```
//! provost_backend::conformance::check_store(provost_backend::MemoryStore::new);
//! ```

#![expect(clippy::panic, reason = "that is how a check says that something is wrong")]

mod mailbox;
mod order;
mod runs;

use provost_engine::{Effect, Uncertain};
use provost_event::{
    ActorKey, Block, ConversationEntry, EffectId, Elapsed, Entry, Json, LifecycleEntry, MicroDollars, Record,
    RunId, Seq, SessionId, Snapshot, Timestamp, UserMessage,
};
use provost_harness::BackendError;

use crate::embedded::blob_id;
use crate::{NewEntry, OpenEffect, SessionStore, StoreReader, StoredRun};

/// Checks one store at a time. `make` creates an empty store at each call.
///
/// # Panics
/// When the store violates a check.
pub fn check_store<S: SessionStore>(make: impl Fn() -> S) {
    an_empty_store_has_nothing(make());
    a_log_is_read_as_it_was_appended(make());
    logs_written_in_turn_are_read_each_by_itself(make());
    order::the_logs_of_a_run_have_one_order(make());
    the_newest_snapshot_of_a_log_is_found(make());
    a_stale_append_is_refused_and_leaves_nothing(make());
    what_is_rolled_back_never_was(make());
    readers_see_commits_only(make());
    open_effects_are_listed_by_run(make());
    posts_are_marked_by_actor(make());
    runs::runs_are_listed_newest_first(make());
    runs::a_run_is_found_by_its_id_and_the_beginning_of_it(make());
    bodies_are_kept_once(make());
    owners_are_counted(make());
    mailbox::requests_wait_in_order_until_they_are_answered(make());
    mailbox::a_request_is_withdrawn_or_answered(make());
    mailbox::what_is_rolled_back_was_never_requested(make());
    mailbox::a_run_that_is_removed_has_no_requests(make());
    mailbox::old_replies_are_removed(make());
}

/// Runs [`check_store`]'s checks, and those of several stores at one place, concurrently and one after another.
/// `place` creates an empty place, `open` opens a store there, as another process would.
///
/// # Panics
/// When the store violates a check.
pub fn check_shared_store<P, S: SessionStore>(place: impl Fn() -> P, open: impl Fn(&P) -> S) {
    // A place may be removed when its value is dropped: they live as long as the checks.
    let places = std::cell::RefCell::new(Vec::new());
    check_store(|| {
        let place = place();
        let store = open(&place);
        places.borrow_mut().push(place);
        store
    });
    what_is_committed_is_there_when_opened_again(&place(), &open);
    logs_written_in_turn_are_there_when_opened_again(&place(), &open);
    what_is_not_committed_is_gone_when_opened_again(&place(), &open);
    a_snapshot_is_found_when_opened_again(&place(), &open);
    two_writers_take_turns(&place(), &open);
    a_run_is_claimed_once(&place(), &open);
    a_note_outlives_its_lease(&place(), &open);
    mailbox::requests_are_there_for_other_writers(&place(), &open);
    mailbox::a_writer_that_listens_is_woken(&place(), &open);
}

fn an_empty_store_has_nothing(mut store: impl SessionStore) {
    let (run, actor) = (run(1), session(1));
    assert_eq!(ok(store.head(actor)), Seq::START);
    assert!(ok(store.read(actor, Seq::START, 10)).is_empty());
    assert!(ok(store.actors(run)).is_empty() && ok(store.runs(None, 10)).is_empty());
    assert!(ok(store.open_effects(run)).is_empty() && !ok(store.has_post(actor, "a")));
    assert_eq!((ok(store.owner_epoch(run)), ok(store.get_blob(&blob_id(b"a")))), (0, None));
}

fn a_log_is_read_as_it_was_appended(mut store: impl SessionStore) {
    let (run, session, other) = (ActorKey::Run(run(1)), session(1), ActorKey::Run(self::run(2)));
    within(&mut store, |store| {
        ok(store.append(session, Seq::START, &entries(session, 1..=3)));
        ok(store.append(session, Seq(3), &entries(session, 4..=5)));
        ok(store.append(run, Seq::START, &entries(run, 1..=1)));
        ok(store.append(SessionId { run: self::run(1), agent: 1 }.into(), Seq::START, &[]));
        ok(store.append(other, Seq::START, &entries(other, 1..=1)));
    });
    assert_eq!((ok(store.head(session)), ok(store.head(run))), (Seq(5), Seq(1)));
    let read = |store: &mut dyn SessionStore, after, max| {
        ok(store.read(session, Seq(after), max)).iter().map(|record| (**record).clone()).collect::<Vec<_>>()
    };
    assert_eq!(read(&mut store, 0, 10), records(session, 1..=5), "all of it");
    assert_eq!(read(&mut store, 1, 2), records(session, 2..=3), "a piece of it");
    assert_eq!(read(&mut store, 5, 10), [], "nothing after the end");
    assert_eq!(read(&mut store, 0, usize::MAX).len(), 5, "without a limit");
    assert_eq!(ok(store.actors(self::run(1))), [run, session], "only this run's");
}

fn logs_written_in_turn_are_read_each_by_itself(mut store: impl SessionStore) {
    write_in_turn(&mut store);
    check_written_in_turn(&mut store);
    check_written_in_turn(&mut *ok(store.reader()));
}

/// Writes 100 records to each of nine logs, two to each in one transaction.
fn write_in_turn(store: &mut impl SessionStore) {
    for first in (1..100).step_by(2) {
        within(store, |store| {
            for actor in (1..=9).map(session) {
                ok(store.append(actor, Seq(first - 1), &entries(actor, first..=first + 1)));
            }
        });
    }
}

fn check_written_in_turn(store: &mut (impl StoreReader + ?Sized)) {
    for actor in (1..=9).map(session) {
        assert_eq!(ok(store.head(actor)), Seq(100));
        let mut found = Vec::new();
        for after in (0..100).step_by(7) {
            found.extend(ok(store.read(actor, Seq(after), 7)).iter().map(|record| (**record).clone()));
        }
        assert_eq!(found, records(actor, 1..=100), "its own, in order");
    }
}

fn the_newest_snapshot_of_a_log_is_found(mut store: impl SessionStore) {
    let (one, two, none) = (session(1), session(2), session(3));
    let mut reader = ok(store.reader());
    assert_eq!(ok(store.newest_snapshot(one)), None, "of an unknown log");
    within(&mut store, |store| {
        for (actor, snapshots) in [(one, &[3, 5][..]), (two, &[2]), (none, &[])] {
            ok(store.append(actor, Seq::START, &entries_with(actor, 1..=6, snapshots)));
        }
        assert_eq!(newest(store, one), Some(5), "the writer sees its own");
    });
    for reader in [&mut *reader, &mut store] {
        assert_eq!([one, two, none].map(|actor| newest(reader, actor)), [Some(5), Some(2), None]);
        let found = ok(reader.newest_snapshot(one));
        assert_eq!(found, ok(reader.read(one, Seq(4), 1)).first().cloned(), "as it is read");
    }
    ok(store.begin());
    ok(store.append(one, Seq(6), &entries_with(one, 7..=8, &[7])));
    store.rollback();
    assert_eq!(newest(&mut store, one), Some(5), "one that was rolled back never was");
    within(&mut store, |store| ok(store.append(one, Seq(6), &entries_with(one, 7..=8, &[8]))));
    assert_eq!((newest(&mut *reader, one), newest(&mut *reader, two)), (Some(8), Some(2)));
}

fn newest(store: &mut (impl StoreReader + ?Sized), actor: ActorKey) -> Option<u64> {
    ok(store.newest_snapshot(actor)).map(|record| {
        assert!(
            record.actor == actor && matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))),
            "{record:?}"
        );
        record.seq.0
    })
}

fn a_stale_append_is_refused_and_leaves_nothing(mut store: impl SessionStore) {
    let actor = session(1);
    within(&mut store, |store| ok(store.append(actor, Seq::START, &entries(actor, 1..=2))));
    for expected in [0, 1, 3] {
        ok(store.begin());
        let refused = store.append(actor, Seq(expected), &entries(actor, expected + 1..=expected + 1));
        assert!(
            matches!(refused, Err(BackendError::Conflict { actor: found }) if found == actor),
            "an append after {expected} instead of 2 gave {refused:?}"
        );
        store.rollback();
    }
    assert_eq!(ok(store.head(actor)), Seq(2));
    within(&mut store, |store| ok(store.append(actor, Seq(2), &entries(actor, 3..=3))));
    assert_eq!(ok(store.head(actor)), Seq(3), "it goes on after a refusal");
}

fn what_is_rolled_back_never_was(mut store: impl SessionStore) {
    let (actor, open) = (session(1), model_call(1, 1, None));
    within(&mut store, |store| {
        ok(store.append(actor, Seq::START, &entries(actor, 1..=1)));
        ok(store.put_effect(&open));
        ok(store.put_run(&listed(1, 10)));
    });
    ok(store.begin());
    ok(store.append(actor, Seq(1), &entries(actor, 2..=2)));
    ok(store.append(session(2), Seq::START, &entries(session(2), 1..=1)));
    assert_eq!(ok(store.head(actor)), Seq(2), "the writer sees its own");
    ok(store.close_effect(open.id));
    ok(store.put_effect(&model_call(2, 1, None)));
    ok(store.mark_post(actor, "a"));
    ok(store.put_run(&StoredRun { turns: 7, ..listed(1, 10) }));
    ok(store.put_run(&listed(2, 20)));
    ok(store.put_blob(&blob_id(b"a"), b"a"));
    assert_eq!(ok(store.bump_owner_epoch(run(1))), 1);
    store.rollback();
    store.rollback();
    assert_eq!((ok(store.head(actor)), ok(store.head(session(2)))), (Seq(1), Seq::START));
    assert_eq!(ok(store.open_effects(run(1))), [open]);
    assert!(ok(store.open_effects(run(2))).is_empty() && ok(store.actors(run(2))).is_empty());
    assert!(!ok(store.has_post(actor, "a")));
    assert_eq!(ok(store.runs(None, 10)), [listed(1, 10)]);
    assert_eq!((ok(store.get_blob(&blob_id(b"a"))), ok(store.owner_epoch(run(1)))), (None, 0));
}

fn readers_see_commits_only(mut store: impl SessionStore) {
    let actor = session(1);
    let mut reader = ok(store.reader());
    assert_eq!(ok(reader.head(actor)), Seq::START);
    within(&mut store, |store| ok(store.append(actor, Seq::START, &entries(actor, 1..=2))));
    assert_eq!(ok(reader.head(actor)), Seq(2), "what is committed is seen at once");
    assert_eq!(ok(reader.read(actor, Seq(1), 9)).len(), 1);
    ok(store.begin());
    ok(store.append(actor, Seq(2), &entries(actor, 3..=3)));
    let (sender, seen) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || sender.send(ok(reader.head(actor))));
    // A reader may wait for the end of the transaction, but not see its writes before.
    let early = seen.recv_timeout(std::time::Duration::from_millis(50));
    assert_ne!(early, Ok(Seq(3)), "a reader saw what wasn't committed");
    ok(store.commit());
    assert!(reading.join().is_ok(), "the reader failed");
    let mut reader = ok(store.reader());
    assert_eq!(ok(reader.head(actor)), Seq(3));
    assert_eq!(ok(reader.actors(run(1))), [actor]);
}

fn open_effects_are_listed_by_run(mut store: impl SessionStore) {
    let of_run = |seq, effect| OpenEffect {
        id: EffectId { actor: run(1).into(), seq: Seq(seq) },
        effect,
        epoch: Some(3),
        abort: false,
    };
    let timer = of_run(2, Effect::Timer { due: Timestamp(99), remaining_ms: 9 });
    let (first, second) = (model_call(1, 5, None), model_call(1, 12, Some(1)));
    within(&mut store, |store| {
        for open in [&second, &timer, &first, &model_call(2, 1, None)] {
            ok(store.put_effect(open));
        }
    });
    assert_eq!(ok(store.open_effects(run(1))), [timer.clone(), first.clone(), second.clone()]);
    within(&mut store, |store| {
        ok(store.request_abort(second.id));
        ok(store.request_abort(EffectId { seq: Seq(77), ..first.id }));
        ok(store.close_effect(first.id));
        ok(store.close_effect(EffectId { seq: Seq(78), ..first.id }));
    });
    assert_eq!(ok(store.open_effects(run(1))), [timer, OpenEffect { abort: true, ..second }]);
    assert_eq!(ok(store.open_effects(run(2))).len(), 1);
}

fn posts_are_marked_by_actor(mut store: impl SessionStore) {
    let (one, two) = (session(1), session(2));
    within(&mut store, |store| {
        ok(store.mark_post(one, "start"));
        ok(store.mark_post(one, "start"));
        assert!(ok(store.has_post(one, "start")), "the writer sees its own");
    });
    assert!(ok(store.has_post(one, "start")));
    assert!(!ok(store.has_post(two, "start")) && !ok(store.has_post(one, "star")));
}

fn bodies_are_kept_once(mut store: impl SessionStore) {
    let body = vec![0xff_u8; 300 << 10];
    let id = blob_id(&body);
    within(&mut store, |store| {
        ok(store.put_blob(&id, &body));
        ok(store.put_blob(&id, &body));
    });
    assert_eq!(ok(store.get_blob(&id)), Some(body.clone()));
    assert_eq!(ok(ok(store.reader()).get_blob(&id)), Some(body));
    assert_eq!(ok(store.get_blob(&blob_id(b""))), None);
}

fn owners_are_counted(mut store: impl SessionStore) {
    within(&mut store, |store| {
        assert_eq!(ok(store.bump_owner_epoch(run(1))), 1);
        assert_eq!(ok(store.bump_owner_epoch(run(1))), 2);
    });
    assert_eq!((ok(store.owner_epoch(run(1))), ok(store.owner_epoch(run(2)))), (2, 0));
}

fn what_is_committed_is_there_when_opened_again<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let (actor, effect) = (session(1), model_call(1, 2, None));
    let mut store = open(place);
    within(&mut store, |store| {
        ok(store.append(actor, Seq::START, &entries(actor, 1..=2)));
        ok(store.put_effect(&effect));
        ok(store.mark_post(actor, "a"));
        ok(store.put_run(&listed(1, 10)));
        ok(store.put_blob(&blob_id(b"a"), b"a"));
        ok(store.bump_owner_epoch(run(1)));
    });
    drop(store);
    let mut store = open(place);
    assert_eq!(ok(store.read(actor, Seq::START, 9)).len(), 2);
    assert_eq!(ok(store.open_effects(run(1))), [effect]);
    assert!(ok(store.has_post(actor, "a")));
    assert_eq!(ok(store.runs(None, 9)), [listed(1, 10)]);
    assert_eq!((ok(store.get_blob(&blob_id(b"a"))), ok(store.owner_epoch(run(1)))), (Some(b"a".to_vec()), 1));
}

fn logs_written_in_turn_are_there_when_opened_again<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    write_in_turn(&mut open(place));
    let mut store = open(place);
    check_written_in_turn(&mut store);
    let actor = session(5);
    within(&mut store, |store| ok(store.append(actor, Seq(100), &entries(actor, 101..=101))));
    assert_eq!(ok(store.head(actor)), Seq(101), "it goes on");
}

fn a_snapshot_is_found_when_opened_again<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let actor = session(1);
    let mut store = open(place);
    within(&mut store, |store| {
        ok(store.append(actor, Seq::START, &entries_with(actor, 1..=4, &[2, 3])));
    });
    drop(store);
    assert_eq!(newest(&mut open(place), actor), Some(3));
}

fn what_is_not_committed_is_gone_when_opened_again<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let actor = session(1);
    let mut store = open(place);
    ok(store.begin());
    ok(store.append(actor, Seq::START, &entries(actor, 1..=1)));
    drop(store);
    let mut store = open(place);
    assert_eq!(ok(store.head(actor)), Seq::START);
    within(&mut store, |store| ok(store.append(actor, Seq::START, &entries(actor, 1..=1))));
}

fn two_writers_take_turns<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let actor = session(1);
    let (mut one, mut two) = (open(place), open(place));
    let (before, own) = (ok(two.change_marker()), ok(one.change_marker()));
    within(&mut one, |store| ok(store.append(actor, Seq::START, &entries(actor, 1..=1))));
    assert_eq!(ok(one.change_marker()), own, "one's own commits change nothing");
    assert_ne!(ok(two.change_marker()), before, "another's do");
    ok(two.begin());
    let stale = two.append(actor, Seq::START, &entries(actor, 1..=1));
    assert!(matches!(stale, Err(BackendError::Conflict { .. })), "a stale append gave {stale:?}");
    ok(two.append(actor, Seq(1), &entries(actor, 2..=2)));
    ok(two.commit());
    ok(one.begin());
    let stale = one.append(actor, Seq(1), &entries(actor, 2..=2));
    assert!(matches!(stale, Err(BackendError::Conflict { .. })), "a stale append gave {stale:?}");
    one.rollback();
    assert_eq!(ok(one.head(actor)), Seq(2));
}

fn a_run_is_claimed_once<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let (one, two) = (open(place).leases(), open(place).leases());
    assert!(!ok(one.is_claimed(run(1))));
    let lease = ok(one.claim(run(1)));
    assert!(ok(one.is_claimed(run(1))) && ok(two.is_claimed(run(1))) && !ok(two.is_claimed(run(2))));
    for leases in [&one, &two] {
        match leases.claim(run(1)).map(drop) {
            Err(BackendError::Held { run: held, by }) => {
                assert_eq!(held, run(1));
                assert!(by.contains(&std::process::id().to_string()), "`{by}` doesn't say who holds it");
                assert_eq!(ok(leases.holder(run(1))).map(|holder| holder.by), Some(by));
            }
            other => panic!("a second claim gave {other:?}"),
        }
    }
    let _other_run = ok(two.claim(run(2)));
    drop(lease);
    assert!(!ok(two.is_claimed(run(1))));
    drop(ok(two.claim(run(1))));
}

fn a_note_outlives_its_lease<P, S: SessionStore>(place: &P, open: &impl Fn(&P) -> S) {
    let (one, two) = (open(place).leases(), open(place).leases());
    assert_eq!(two.noted(run(1)), Elapsed(0));
    let lease = ok(one.claim(run(1)));
    for ms in [7, 61_000, 62_000] {
        one.note(run(1), Elapsed(ms));
        assert_eq!(two.noted(run(1)), Elapsed(ms));
    }
    drop(lease);
    assert_eq!((two.noted(run(1)), two.noted(run(2))), (Elapsed(62_000), Elapsed(0)));
    two.forget_note(run(1));
    assert_eq!(one.noted(run(1)), Elapsed(0));
}

fn within<S: SessionStore, T>(store: &mut S, write: impl FnOnce(&mut S) -> T) {
    ok(store.begin());
    write(store);
    ok(store.commit());
}

fn ok<T>(result: Result<T, BackendError>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed: {error}"))
}

fn run(number: u64) -> RunId {
    RunId::from_entropy(number)
}

fn session(number: u64) -> ActorKey {
    SessionId::root(run(number)).into()
}

fn records(actor: ActorKey, seqs: std::ops::RangeInclusive<u64>) -> Vec<Record> {
    seqs.map(|seq| {
        let content = vec![Block::Text(format!("\u{1f980} \"{seq}\"\n"))];
        let entry = Entry::Conversation(ConversationEntry::UserMessage(UserMessage {
            content,
            by: "ann".to_owned(),
        }));
        Record { actor, seq: Seq(seq), at: Timestamp(1000 + seq), elapsed: Elapsed(7 * seq), entry }
    })
    .collect()
}

fn entries(actor: ActorKey, seqs: std::ops::RangeInclusive<u64>) -> Vec<NewEntry> {
    records(actor, seqs).into_iter().map(|record| ok(NewEntry::new(record))).collect()
}

/// Like `entries`, with snapshots at these positions.
fn entries_with(actor: ActorKey, seqs: std::ops::RangeInclusive<u64>, snapshots: &[u64]) -> Vec<NewEntry> {
    let snapshot = |mut record: Record| {
        if snapshots.contains(&record.seq.0) {
            record.entry = Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot {
                layout: 1,
                state: Json::empty_object(),
            }));
        }
        ok(NewEntry::new(record))
    };
    records(actor, seqs).into_iter().map(snapshot).collect()
}

fn model_call(number: u64, seq: u64, epoch: Option<u64>) -> OpenEffect {
    let session = SessionId::root(run(number));
    let effect = Effect::CallModel(provost_engine::CallModel {
        policy_since: Seq::START,
        session,
        turn: 1,
        through: Seq(seq),
        view: provost_engine::View::default(),
        purpose: provost_event::Purpose::Turn,
        question: None,
        answers_before: 0,
        summaries_before: 0,
        output_tokens_max: 9,
        model: String::new(),
        effort: None,
        patience: 1,
    });
    OpenEffect { id: EffectId { actor: session.into(), seq: Seq(seq) }, effect, epoch, abort: false }
}

fn listed(number: u64, started_at: u64) -> StoredRun {
    StoredRun {
        run: run(number),
        goal: format!("goal {number}"),
        workspace: "/somewhere".into(),
        model: "a/b".to_owned(),
        outcome: None,
        started_at: Timestamp(started_at),
        updated_at: Timestamp(started_at),
        turns: 0,
        tokens: 0,
        cost: MicroDollars(0),
        uncertain: Uncertain::default(),
        elapsed: Elapsed::default(),
        damage: None,
    }
}
