//! The list of runs, and finding one of them.

use provost_engine::Uncertain;
use provost_event::{Elapsed, MicroDollars, Outcome, Timestamp};

use super::{listed, ok, run, within};
use crate::{SessionStore, StoredRun};

pub(super) fn runs_are_listed_newest_first(mut store: impl SessionStore) {
    within(&mut store, |store| {
        for (number, at) in [(1, 10), (2, 30), (3, 20), (4, 20)] {
            ok(store.put_run(&listed(number, at)));
        }
    });
    let order = |store: &mut dyn SessionStore, max| {
        ok(store.runs(None, max)).into_iter().map(|run| run.run).collect::<Vec<_>>()
    };
    assert_eq!(order(&mut store, 9), [run(2), run(4), run(3), run(1)]);
    assert_eq!(order(&mut store, 2), [run(2), run(4)]);
    assert_eq!(order(&mut store, 0), []);
    let page = |store: &mut dyn SessionStore, after: StoredRun| {
        ok(store.runs(Some(after.cursor()), 2)).into_iter().map(|run| run.run).collect::<Vec<_>>()
    };
    assert_eq!(page(&mut store, listed(2, 30)), [run(4), run(3)]);
    assert_eq!(page(&mut store, listed(4, 20)), [run(3), run(1)]);
    assert_eq!(page(&mut store, listed(3, 20)), [run(1)]);
    assert_eq!(page(&mut store, listed(1, 10)), []);
    let outcome = Some(Outcome::Cancelled { by: "ann".to_owned() });
    let later = StoredRun {
        outcome,
        updated_at: Timestamp(99),
        turns: 3,
        tokens: 4,
        cost: MicroDollars(5),
        uncertain: Uncertain { tokens: 2, cost: MicroDollars(1) },
        elapsed: Elapsed(60),
        ..listed(1, 10)
    };
    within(&mut store, |store| ok(store.put_run(&later)));
    assert_eq!(ok(store.runs(None, 9)).last(), Some(&later), "a row is replaced, its place stays");
}

pub(super) fn a_run_is_found_by_its_id_and_the_beginning_of_it(mut store: impl SessionStore) {
    let ids = [1, 2, 33].map(run);
    within(&mut store, |store| {
        for number in [33, 2, 1] {
            ok(store.put_run(&listed(number, number)));
        }
    });
    assert_eq!(ok(store.run(run(33))), Some(listed(33, 33)));
    assert_eq!(ok(store.run(run(3))), None);
    let mut found = |prefix: &str, max| {
        ok(store.runs_with_prefix(prefix, max)).into_iter().map(|run| run.run).collect::<Vec<_>>()
    };
    // The last two of the twelve characters tell them apart.
    let (first, last) = (ids[0].to_string(), ids[2].to_string());
    assert_eq!(found(&first[..9], 9), ids);
    assert_eq!(found(&first[..9], 2), [run(1), run(2)]);
    assert_eq!(found(&first[..9], 0), []);
    assert_eq!(found(&first[..11], 9), [run(1), run(2)]);
    assert_eq!(found(&last[..11], 9), [run(33)]);
    assert_eq!(found(&last, 9), [run(33)]);
    for none in ["", "zzz", "0000000000001", "%", "'", "\u{10ffff}"] {
        assert_eq!(found(none, 9), [], "{none:?}");
    }
}
