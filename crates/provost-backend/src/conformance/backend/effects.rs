//! How effects are performed, stopped and timed.

use std::time::{Duration, Instant};

use provost_engine::{Effect, RunEvent, SessionEvent};
use provost_event::{Budget, Entry, ErrorClass, LifecycleEntry, ModelFailure, Outcome, ToolEntry};

use super::BackendMaker;
use super::bench::{
    Bench, asks_for_tools, done, entry, kinds, log, post, root, run, serve, serve_when_free, soon, start,
    tool_done,
};

/// An abort must reach its effect within this time, wherever it was decided.
const ABORT_WITHIN: Duration = Duration::from_secs(1);
pub(super) const SECOND_MS: u64 = 1000;

pub(super) async fn a_result_counts_once(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let first = served.call().await;
    let seq = first.id.seq;
    first.answer(asks_for_tools(seq, 1));
    let tool = served.call().await;
    let before = log(&backend, root(1)).await.len();
    for late in [done(seq), asks_for_tools(seq, 2)] {
        assert!(!post(&backend, root(1), late).await.changed, "a second result of an effect counted");
    }
    assert_eq!(log(&backend, root(1)).await.len(), before);
    let seq = tool.id.seq;
    tool.answer(tool_done(seq, "seen".to_owned()));
    let second = served.call().await;
    assert!(!post(&backend, root(1), tool_done(seq, "again".to_owned())).await.changed);
    let seq = second.id.seq;
    second.done();
    entry(&backend, run(1), "ended").await;
    assert!(!post(&backend, root(1), done(seq)).await.changed, "a result counted after the end");
    served.no_call();
}

pub(super) async fn results_may_come_in_any_order(maker: &impl BackendMaker) {
    const TOOLS: usize = 100;
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let model_call = served.call().await;
    let seq = model_call.id.seq;
    model_call.answer(asks_for_tools(seq, TOOLS));
    let mut tools = Vec::new();
    for _ in 0..TOOLS {
        tools.push(served.call().await);
    }
    served.no_call();
    tools.sort_by_key(|call| std::cmp::Reverse(call.id.seq));
    for call in tools {
        let Effect::RunTool(tool) = &call.effect else { panic!("{:?} isn't a tool call", call.effect) };
        let event = tool_done(call.id.seq, tool.call.to_string());
        call.answer(event);
    }
    let next = served.call().await;
    assert!(matches!(next.effect, Effect::CallModel(_)), "{:?}", next.effect);
    let outputs = log(&backend, root(1)).await.into_iter().filter_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some(finished.output.clone()),
        _ => None,
    });
    let expected = (0..TOOLS).map(|number| format!("call-{number}"));
    assert_eq!(outputs.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

pub(super) async fn an_abort_reaches_a_running_effect(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    for (number, from) in [(1, &backend), (2, &other)] {
        let mut served = serve(&backend, run(number)).await;
        post(&backend, run(number), start(Budget::default())).await;
        let call = served.call().await;
        assert!(!call.cancel.is_cancelled());
        let asked = Instant::now();
        post(from, run(number), RunEvent::Cancel { agent: None, by: "ann".to_owned() }).await;
        soon("an abort arrives", call.cancel.cancelled()).await;
        assert!(asked.elapsed() < ABORT_WITHIN, "an abort took {:?}", asked.elapsed());
        assert!(!kinds(&backend, run(number)).await.contains(&"ended"), "it ended before its effect had");
        call.aborted();
        let ended = entry(from, run(number), "ended").await;
        let Entry::Lifecycle(LifecycleEntry::Ended(ended)) = &ended.entry else { panic!("{ended:?}") };
        assert_eq!(ended.outcome, Outcome::Cancelled { by: "ann".to_owned() });
    }
}

pub(super) async fn what_others_decide_is_performed_where_the_run_is_served(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let mut served = serve(&backend, run(1)).await;
    post(&other, run(1), start(Budget::default())).await;
    let call = served.call().await;
    let seq = call.id.seq;
    // Its result comes from elsewhere too: the local execution may stop.
    post(&other, root(1), asks_for_tools(seq, 1)).await;
    soon("a closed effect is stopped", call.cancel.cancelled()).await;
    let tool = served.call().await;
    assert!(matches!(tool.effect, Effect::RunTool(_)), "{:?}", tool.effect);
    served.no_call();
    let seq = tool.id.seq;
    tool.answer(tool_done(seq, "seen".to_owned()));
    served.call().await.done();
    entry(&other, run(1), "ended").await;
}

pub(super) fn come_back_after(ms: u64) -> ModelFailure {
    let failure = ModelFailure::new(ErrorClass::RateLimited, "later");
    ModelFailure { retry_after_ms: Some(ms), ..failure }
}

pub(super) async fn timers_fire_in_order(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    let budget = Budget { wall_time_ms: Some(10 * SECOND_MS), ..Budget::default() };
    post(&backend, run(1), start(budget)).await;
    let call = served.call().await;
    let seq = call.id.seq;
    call.answer(SessionEvent::ModelFailed { seq, failure: come_back_after(5 * SECOND_MS) }.into());
    entry(&backend, root(1), "retry").await;
    soon("the retry is timed", bench.clock.sleeper_within(5 * SECOND_MS)).await;
    bench.clock.advance_ms(4 * SECOND_MS);
    served.no_call();
    // Both are overdue now: the retry is the earlier one, so there is a call for the deadline to stop.
    bench.clock.advance_ms(10 * SECOND_MS);
    let call = served.call().await;
    soon("the deadline stops the call", call.cancel.cancelled()).await;
    call.aborted();
    let paused = entry(&backend, run(1), "paused").await;
    let Entry::Lifecycle(LifecycleEntry::Paused(paused)) = &paused.entry else { panic!("{paused:?}") };
    assert!(matches!(paused.outcome, Outcome::BudgetExhausted(_)), "{:?}", paused.outcome);
    let exhausted =
        kinds(&backend, run(1)).await.into_iter().filter(|kind| *kind == "budget_exhausted").count();
    assert_eq!(exhausted, 1, "a timer fired twice");
}

pub(super) async fn timers_survive_a_restart(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    let budget = Budget { wall_time_ms: Some(60 * SECOND_MS), ..Budget::default() };
    post(&backend, run(1), start(budget)).await;
    let call = served.call().await;
    drop(call);
    served.guard.release().await;
    drop(backend);
    bench.clock.advance_ms(20 * SECOND_MS);
    let backend = bench.open().await;
    let mut served = serve_when_free(&backend, run(1)).await;
    let call = served.call().await;
    // The time in between doesn't count: the minute continues from what was used before. A tenth is kept for the
    // final summary.
    bench.clock.advance_ms(53 * SECOND_MS);
    assert!(!call.cancel.is_cancelled() && !kinds(&backend, run(1)).await.contains(&"budget_exhausted"));
    bench.clock.advance_ms(2 * SECOND_MS);
    soon("the deadline stops the call", call.cancel.cancelled()).await;
    call.aborted();
    entry(&backend, run(1), "paused").await;
}
