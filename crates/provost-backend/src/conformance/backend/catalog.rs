//! The list of runs, and finding one of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use provost_event::{Budget, RunId};
use provost_harness::{Backend, RunFilter, RunQuery, RunStatus, RunStatusFilter};

use super::BackendMaker;
use super::bench::{Bench, entry, ok, post, run, serve, start};

const TOLD_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn runs_are_listed_in_pages_and_by_what_is_asked_for(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let _first = serve(&backend, run(1)).await;
    let mut second = serve(&backend, run(2)).await;
    for number in 1..=5 {
        post(&backend, run(number), start(Budget::default())).await;
        // Two of them start at the same time.
        if number != 3 {
            bench.clock.advance_ms(10);
        }
    }
    second.call().await.done();
    entry(&backend, run(2), "ended").await;
    second.guard.release().await;
    let all = listed(&other, RunQuery::newest(9)).await;
    assert_eq!(all, [5, 4, 3, 2, 1].map(run));
    let mut paged = Vec::new();
    let mut query = RunQuery::newest(2);
    for _ in 0..=all.len() {
        let page = ok(other.list(query.clone()).await);
        let Some(last) = page.last() else { break };
        query.after = Some(last.cursor());
        paged.extend(page.iter().map(|run| run.run));
    }
    assert_eq!(paged, all);
    assert_eq!(listed(&other, RunQuery::with_status(RunStatusFilter::Running)).await, [run(1)]);
    let not_ended = RunQuery::with_status(RunStatusFilter::NotEnded);
    assert_eq!(listed(&other, not_ended.clone()).await, [5, 4, 3, 1].map(run));
    assert_eq!(listed(&other, RunQuery { max: 2, ..not_ended.clone() }).await, [5, 4].map(run));
    let after = ok(other.get(run(4)).await).map(|run| run.cursor());
    assert_eq!(listed(&other, RunQuery { after, ..not_ended }).await, [3, 1].map(run));
    let workspace = ok(other.get(run(1)).await).map(|run| run.workspace);
    for (workspace, count) in [(workspace, 5), (Some(PathBuf::from("/not/there")), 0)] {
        let filter = RunFilter { workspace, ..RunFilter::default() };
        let query = RunQuery { filter, ..RunQuery::newest(9) };
        assert_eq!(listed(&other, query).await.len(), count);
    }
}

pub(super) async fn a_run_is_found_by_its_id_and_the_beginning_of_it(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let _first = serve(&backend, run(1)).await;
    for number in [33, 2, 1] {
        post(&backend, run(number), start(Budget::default())).await;
    }
    let found = ok(other.get(run(1)).await);
    assert_eq!(found.map(|run| (run.status, run.goal)), Some((RunStatus::Running, "a goal".to_owned())));
    let found = ok(other.get(run(2)).await);
    assert_eq!(found.map(|run| run.status), Some(RunStatus::Interrupted));
    assert_eq!(ok(other.get(run(3)).await), None);
    // The last two of the twelve characters tell them apart.
    let [first, last] = [1, 33].map(|number| run(number).to_string());
    for (prefix, max, expected) in [
        (&first[..9], 9, &[1, 2, 33][..]),
        (&first[..9], 2, &[1, 2]),
        (&first[..11], 9, &[1, 2]),
        (&last, 9, &[33]),
        ("", 9, &[]),
        ("zzz", 9, &[]),
    ] {
        let found = ok(other.find(prefix, max).await).into_iter().map(|run| run.run).collect::<Vec<_>>();
        assert_eq!(found, expected.iter().copied().map(run).collect::<Vec<_>>(), "{prefix}");
    }
}

/// Who reads again at each change sees all that any process has written.
pub(super) async fn who_reads_at_each_change_misses_nothing(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let mut changes = other.changes();
    for number in 1..=6 {
        let writer = if number % 2 == 0 { &backend } else { &other };
        post(writer, run(number), start(Budget::default())).await;
        loop {
            let told = tokio::time::timeout(TOLD_WITHIN, changes.next()).await;
            assert!(matches!(told, Ok(Some(()))), "run {number} wasn't told of");
            if listed(&other, RunQuery::newest(1)).await == [run(number)] {
                break;
            }
        }
        bench.clock.advance_ms(10);
    }
}

async fn listed(backend: &Arc<dyn Backend>, query: RunQuery) -> Vec<RunId> {
    ok(backend.list(query).await).into_iter().map(|run| run.run).collect()
}
