//! A wall clock that is set, forward or back, during a wait or during work.

use provost_engine::SessionEvent;
use provost_event::{AgentEntry, Budget, Elapsed, Entry, LifecycleEntry, ModelEntry, Outcome};

use super::BackendMaker;
use super::bench::{Bench, entry, log, post, root, run, serve, serve_when_free, soon, start};
use super::effects::{SECOND_MS, come_back_after};
use provost_harness::Backend;

const HOUR_MS: i64 = 3_600_000;
/// Set back, set forward, and a machine that was suspended for a night.
const JUMPS_MS: [i64; 3] = [-HOUR_MS, HOUR_MS, 8 * HOUR_MS];
const WAIT_MS: u64 = 5 * SECOND_MS;

/// The run's elapsed time at each model call.
async fn called_at(backend: &std::sync::Arc<dyn Backend>) -> Vec<Elapsed> {
    let log = log(backend, root(1)).await;
    let called = log.iter().filter(|record| matches!(record.entry, Entry::Model(ModelEntry::Called(_))));
    called.map(|record| record.elapsed).collect()
}

pub(super) async fn a_wait_lasts_as_long_as_it_says(maker: &impl BackendMaker) {
    for jump_ms in JUMPS_MS {
        let bench = Bench::new(maker).await;
        let backend = bench.open().await;
        let mut served = serve(&backend, run(1)).await;
        post(&backend, run(1), start(Budget::default())).await;
        let call = served.call().await;
        let seq = call.id.seq;
        call.answer(SessionEvent::ModelFailed { seq, failure: come_back_after(WAIT_MS) }.into());
        let retry = entry(&backend, root(1), "retry").await;
        bench.clock.set_wall_ms(jump_ms);
        bench.clock.advance_ms(WAIT_MS - SECOND_MS);
        served.no_call();
        bench.clock.advance_ms(SECOND_MS);
        served.call().await.done();
        entry(&backend, run(1), "ended").await;
        let again = called_at(&backend).await.last().map(|again| again.since_ms(retry.elapsed));
        assert_eq!(again, Some(WAIT_MS), "the wall clock was set by {jump_ms} ms");
    }
}

/// Waits that began in a process that didn't serve the run.
pub(super) async fn a_wait_found_in_the_store_is_over_when_its_time_has_come(maker: &impl BackendMaker) {
    // How far the wall clock was set while no process served the run, and the remaining wait.
    for (jump_ms, waits_ms) in [(-HOUR_MS, WAIT_MS), (2_000, WAIT_MS - 2_000), (HOUR_MS, 0)] {
        let bench = Bench::new(maker).await;
        let backend = bench.open().await;
        post(&backend, run(1), start(Budget::default())).await;
        post(&backend, root(1), SessionEvent::YieldSlot { to: None, grace_ms: WAIT_MS }).await;
        bench.clock.set_wall_ms(jump_ms);
        let mut served = serve(&backend, run(1)).await;
        let call = served.call().await;
        bench.clock.advance_ms(waits_ms);
        soon("the wait is over", call.cancel.cancelled()).await;
        call.aborted();
        let log = log(&backend, root(1)).await;
        let over = |entry: &Entry| matches!(entry, Entry::Agent(AgentEntry::MustYield(yields)) if yields.due.is_none());
        let over = log.iter().find(|record| over(&record.entry)).map(|record| record.elapsed);
        assert_eq!(over, Some(Elapsed(waits_ms)), "the wall clock was set by {jump_ms} ms");
    }
}

pub(super) async fn a_limit_is_reached_by_what_was_worked(maker: &impl BackendMaker) {
    for jump_ms in JUMPS_MS {
        let bench = Bench::new(maker).await;
        let backend = bench.open().await;
        let mut served = serve(&backend, run(1)).await;
        let budget = Budget { wall_time_ms: Some(10 * SECOND_MS), ..Budget::default() };
        post(&backend, run(1), start(budget)).await;
        let call = served.call().await;
        bench.clock.advance_ms(4 * SECOND_MS);
        drop(call);
        served.guard.release().await;
        drop(backend);
        bench.clock.set_wall_ms(jump_ms);
        // No time passes while no process holds it.
        bench.clock.advance_ms(20 * SECOND_MS);
        let backend = bench.open().await;
        let mut served = serve_when_free(&backend, run(1)).await;
        let call = served.call().await;
        bench.clock.set_wall_ms(jump_ms);
        // The first four seconds count, although no entry was written after them.
        bench.clock.advance_ms(5 * SECOND_MS - 1);
        assert!(!call.cancel.is_cancelled(), "the wall clock was set by {jump_ms} ms");
        bench.clock.advance_ms(1);
        soon("the limit stops the call", call.cancel.cancelled()).await;
        call.aborted();
        let paused = entry(&backend, run(1), "paused").await;
        let Entry::Lifecycle(LifecycleEntry::Paused(paused)) = &paused.entry else { panic!("{paused:?}") };
        let Outcome::BudgetExhausted(exhausted) = &paused.outcome else { panic!("{paused:?}") };
        assert_eq!(exhausted.used, 9 * SECOND_MS, "the wall clock was set by {jump_ms} ms");
    }
}
