//! Long runs in a small window, from outside: with a real tokenizer, and providers with different counts.

use std::sync::Arc;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{Budget, CompactionKind, RunPolicy};
use provost_harness::SystemClock;
use tokio_util::sync::CancellationToken;

use super::embedding::open_when_free;
use super::long_job::{GOAL, Job};
use super::long_provider::{Counting, Provider};
use super::long_stage::{RUN, harness, policy};
use super::long_trial::{DONE, Ran, Trial};

const WINDOW: u64 = 32_000;

/// Maximum bytes of shown output here; the benchmark has the usual ones.
const OUTPUT_BYTES_MAX: usize = 8 << 10;

/// A job of this many calls with this provider; the policy has its window if `known`.
async fn ran(calls: u32, counting: Counting, known: Option<u64>) -> Ran {
    let bound = |policy: &mut RunPolicy| {
        policy.agent.tools.iter_mut().for_each(|tool| tool.output_bytes_max = OUTPUT_BYTES_MAX);
    };
    Trial { known, bound, ..Trial::new(Job::of(calls), counting) }.run().await
}

#[tokio::test]
async fn a_long_run_stays_within_its_window() {
    let ran = ran(300, Counting::fair(WINDOW), Some(WINDOW)).await;
    ran.went_well();
    let seen = &ran.seen;
    assert_eq!(seen.refused, 0, "a request was longer than the window");
    assert!(seen.most <= WINDOW);
    let kinds = [CompactionKind::Trim, CompactionKind::Summary, CompactionKind::Emergency];
    let shortened = kinds.map(|how| ran.compactions(how));
    assert!(shortened.iter().sum::<usize>() > 0);
    let changed = usize::try_from(seen.changed).unwrap();
    assert!(changed <= shortened.iter().sum(), "the beginning changed {changed} times, {shortened:?}");
    assert!(changed * 3 < usize::try_from(seen.turns).unwrap(), "{}", seen.figures());
}

#[tokio::test]
async fn a_provider_that_reports_nothing_gets_what_it_takes() {
    let counting = Counting { reported_percent: 0, ..Counting::fair(WINDOW) };
    ran(80, counting, Some(WINDOW)).await.went_well();
}

#[tokio::test]
async fn a_provider_that_reports_a_third_gets_what_it_takes() {
    let counting = Counting { reported_percent: 33, ..Counting::fair(WINDOW) };
    ran(80, counting, Some(WINDOW)).await.went_well();
}

#[tokio::test]
async fn a_provider_that_reports_twice_as_much_gets_what_it_takes() {
    let counting = Counting { reported_percent: 200, ..Counting::fair(WINDOW) };
    let ran = ran(80, counting, Some(WINDOW)).await;
    ran.went_well();
    assert_eq!(ran.seen.refused, 0, "{}", ran.seen.figures());
}

#[tokio::test]
async fn a_provider_that_counts_twice_as_much_gets_what_it_takes() {
    let counting = Counting { density_percent: 200, ..Counting::fair(WINDOW) };
    ran(80, counting, Some(WINDOW)).await.went_well();
}

#[tokio::test]
async fn an_unknown_window_is_kept_all_the_same() {
    let ran = ran(80, Counting::fair(WINDOW), None).await;
    ran.went_well();
    assert!(ran.seen.refused > 0 && ran.compactions(CompactionKind::Emergency) > 0);
}

#[tokio::test]
async fn a_run_that_another_process_takes_over_sends_the_same_beginning() {
    let store = MemoryStore::new();
    let tokenizer = tiktoken_rs::cl100k_base_singleton();
    let provider = Arc::new(Provider::new(Job::of(110), Counting::fair(WINDOW), tokenizer));
    let open = || {
        let backend = Arc::new(EmbeddedBackend::new(store.clone(), Arc::new(SystemClock)).unwrap());
        (harness(backend.clone(), provider.clone()), backend)
    };
    let mut policy = policy(Some(WINDOW), &std::env::temp_dir());
    policy.agent.limits.turns_max = 12;
    let (harness, _backend) = open();
    let mut run = harness.start(RUN, GOAL, policy).await.unwrap();
    let cancel = CancellationToken::new();
    run.run(&cancel).await.unwrap();
    drop((run, harness, _backend));
    let mut outcome = None;
    for turns_max in (24..).step_by(12) {
        // This one has only the log.
        let (harness, _backend) = open();
        let mut run = open_when_free(&harness, RUN).await;
        run.resume("ann", Budget::default(), Some(turns_max)).await.unwrap();
        let suspended = run.run(&cancel).await.unwrap();
        if suspended.is_final() {
            outcome = Some(suspended);
            break;
        }
    }
    assert_eq!(outcome, Some(DONE));
    let seen = provider.seen.lock().unwrap();
    assert_eq!(seen.faults, [""; 0]);
    assert!(seen.restarted > 3, "{}", seen.figures());
}
