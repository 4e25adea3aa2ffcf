//! The order of a run's entries.

use provost_event::{ActorKey, Seq, SessionId};
use provost_harness::{PlacedEntry, RunPosition};

use super::{entries, ok, session, within};
use crate::SessionStore;

pub(super) fn the_logs_of_a_run_have_one_order(mut store: impl SessionStore) {
    let (run, other) = (super::run(1), session(7));
    let logs = [ActorKey::Run(run), SessionId::root(run).into(), SessionId { run, agent: 1 }.into()];
    assert_eq!(ok(store.order(run, RunPosition::START, 100)), [], "of an unknown run");
    assert_eq!(ok(store.run_head(run)), RunPosition::START);
    let (mut expected, mut others) = (Vec::new(), 0);
    for round in 0..6_u64 {
        let (before, last) = (Seq(round * 2), Seq(round * 2 + 2));
        ok(store.begin());
        ok(store.append(logs[0], before, &entries(logs[0], before.next().0..=last.0)));
        store.rollback();
        within(&mut store, |store| {
            let first = usize::try_from(round).unwrap_or_default();
            for actor in logs.iter().cycle().skip(first).take(3) {
                let place = ok(store.append(*actor, before, &entries(*actor, before.next().0..=last.0)));
                let place_before = RunPosition(place.0 - 1);
                expected.push(PlacedEntry { position: place_before, actor: *actor, seq: before.next() });
                expected.push(PlacedEntry { position: place, actor: *actor, seq: last });
                others += 1;
                ok(store.append(other, Seq(others - 1), &entries(other, others..=others)));
            }
        });
    }
    assert!(
        expected.is_sorted_by(|one, next| one.position < next.position),
        "a place isn't after the last one"
    );
    let mut reader = ok(store.reader());
    assert_eq!(ok(reader.order(run, RunPosition::START, 100)), expected, "another run's, or rolled back");
    let piece = expected.iter().skip(20).take(4).copied().collect::<Vec<_>>();
    let before = piece.first().map(|entry| entry.position).unwrap_or_default();
    assert_eq!(
        ok(reader.order(run, before, 3)).as_slice(),
        piece.get(1..).unwrap_or_default(),
        "a piece of it"
    );
    let end = expected.last().map(|entry| entry.position).unwrap_or_default();
    assert_eq!(ok(reader.run_head(run)), end);
    assert_eq!(ok(store.order(run, end, 3)), [], "nothing after the end");
    within(&mut store, |store| ok(store.remove_run(run)));
    assert_eq!(ok(store.order(run, RunPosition::START, 100)), [], "of a run that was removed");
}
