//! Which process holds a run, and what happens to the run when that process is gone.

use std::sync::Arc;

use provost_engine::{Effect, RunEvent};
use provost_event::{Budget, Entry, LifecycleEntry, ResumeCause, RunId, ToolEntry, ToolStatus};

use super::BackendMaker;
use super::bench::{
    Bench, asks_for_both, done, entry, kinds, log, ok, post, root, run, serve, serve_when_free, soon, start,
    tool_done, try_serve,
};
use provost_harness::{Backend, BackendError, RunQuery, RunStatus};

pub(super) async fn what_a_server_that_vanished_left_is_made_again(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let lost = served.call().await;
    drop((served, backend));
    let backend = bench.open().await;
    let mut served = serve_when_free(&backend, run(1)).await;
    let again = served.call().await;
    assert_ne!(again.id, lost.id);
    assert!(!post(&backend, root(1), done(lost.id.seq)).await.changed, "a zombie's result counted");
    for log in [log(&backend, run(1)).await, log(&backend, root(1)).await] {
        let resumed = log.iter().filter_map(|record| match &record.entry {
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => Some(&resumed.cause),
            _ => None,
        });
        assert_eq!(resumed.collect::<Vec<_>>(), [&ResumeCause::Interrupted]);
    }
    again.done();
    entry(&backend, run(1), "ended").await;
    served.no_call();
    served.guard.release().await;
    // A suspended run needs no recovery.
    let before = kinds(&backend, run(1)).await;
    let mut served = serve(&backend, run(1)).await;
    assert_eq!(kinds(&backend, run(1)).await, before);
    served.no_call();
}

/// Also where the log can't have the result of that call yet, as that of an earlier one is missing.
pub(super) async fn what_may_not_be_repeated_is_not_made_again(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let mut backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let model = served.call().await;
    let seq = model.id.seq;
    model.answer(asks_for_both(seq));
    let mut look = served.look_and_once().await.look;
    for _ in 0..2 {
        drop((served, backend));
        backend = bench.open().await;
        served = serve_when_free(&backend, run(1)).await;
        look = served.tool("look").await;
    }
    let seq = look.id.seq;
    look.answer(tool_done(seq, "seen".to_owned()));
    let model = served.call().await;
    assert!(matches!(model.effect, Effect::CallModel(_)), "{:?}", model.effect);
    assert_eq!(tool_statuses(&backend).await, [ToolStatus::Ok, ToolStatus::Unknown]);
}

/// A call that has ended isn't one that wasn't made, because its agent is stopped before earlier calls have ended.
pub(super) async fn what_was_made_is_not_said_to_have_been_left_out(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let model = served.call().await;
    let seq = model.id.seq;
    model.answer(asks_for_both(seq));
    let begun = served.look_and_once().await;
    let seq = begun.once.id.seq;
    // From here: it is there once that is answered.
    post(&backend, root(1), tool_done(seq, "did".to_owned())).await;
    drop((served, backend));
    let backend = bench.open().await;
    post(&backend, run(1), RunEvent::Cancel { agent: None, by: "ann".to_owned() }).await;
    let mut served = serve_when_free(&backend, run(1)).await;
    entry(&backend, run(1), "ended").await;
    served.no_call();
    let statuses = tool_statuses(&backend).await;
    assert!(matches!(statuses.as_slice(), [_, ToolStatus::Ok | ToolStatus::Unknown]), "{statuses:?}");
}

async fn tool_statuses(backend: &Arc<dyn Backend>) -> Vec<ToolStatus> {
    let log = log(backend, root(1)).await;
    let statuses = log.iter().filter_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some(finished.status),
        _ => None,
    });
    statuses.collect()
}

pub(super) async fn one_of_two_claims_goes_on(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let (one, two) = tokio::join!(try_serve(&backend, run(1)), try_serve(&other, run(1)));
    let (winner, loser) = match (one, two) {
        (Ok(served), Err(error)) => (served, (error, &other)),
        (Err(error), Ok(served)) => (served, (error, &backend)),
        (Ok(_), Ok(_)) => panic!("both claims went on"),
        (Err(one), Err(two)) => panic!("neither claim went on: {one}; {two}"),
    };
    let (refused, loser) = loser;
    assert!(matches!(&refused, BackendError::Held { run: held, .. } if *held == run(1)), "{refused}");
    let again = try_serve(&backend, run(1)).await.map(drop);
    assert!(matches!(again, Err(BackendError::Held { .. })), "the same backend claimed it twice");
    let _another = serve(loser, run(2)).await;
    winner.guard.release().await;
    serve(loser, run(1)).await.guard.release().await;
}

pub(super) async fn a_stopped_server_drops_what_is_in_flight(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let mut call = served.call().await;
    served.stop.cancel();
    soon("what is in flight is dropped", call.answer.closed()).await;
    served.guard.release().await;
    assert!(!kinds(&backend, run(1)).await.contains(&"ended"));
    // No process serves it, but it still accepts messages.
    post(&backend, run(1), RunEvent::Say { agent: 0, text: "hello".to_owned(), by: "ann".to_owned() }).await;
    assert_eq!(kinds(&backend, root(1)).await.last(), Some(&"user_message"));
}

pub(super) async fn a_run_has_a_holder_while_it_is_served(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    assert_eq!(ok(other.holder(run(1)).await), None);
    let served = serve(&backend, run(1)).await;
    for backend in [&backend, &other] {
        let holder = ok(backend.holder(run(1)).await);
        assert!(holder.is_some_and(|holder| !holder.by.is_empty()));
        assert_eq!(ok(backend.holder(run(2)).await), None);
    }
    served.guard.release().await;
    assert_eq!(ok(other.holder(run(1)).await), None);
}

pub(super) async fn runs_are_listed_with_how_they_stand(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    assert!(ok(backend.list(RunQuery::newest(10)).await).is_empty());
    let mut first = serve(&backend, run(1)).await;
    for number in [1, 2] {
        post(&backend, run(number), start(Budget::default())).await;
        bench.clock.advance_ms(10);
    }
    for backend in [&backend, &other] {
        let expected = [(run(2), RunStatus::Interrupted), (run(1), RunStatus::Running)];
        assert_eq!(standing(&**backend, 10).await, expected);
        assert_eq!(standing(&**backend, 1).await.len(), 1);
    }
    let listed = ok(other.list(RunQuery::newest(10)).await);
    let Some(oldest) = listed.last() else { panic!("nothing is listed") };
    assert_eq!((oldest.goal.as_str(), oldest.model.as_str()), ("a goal", "by/hand"));
    first.call().await.done();
    let ended = entry(&backend, run(1), "ended").await;
    let Entry::Lifecycle(LifecycleEntry::Ended(ended)) = &ended.entry else { panic!("{ended:?}") };
    let suspended = (run(1), RunStatus::Stopped(ended.outcome.clone()));
    assert_eq!(standing(&*other, 10).await.last(), Some(&suspended));
    let turns = ok(other.list(RunQuery::newest(10)).await).last().map(|run| run.turns);
    assert_eq!(turns, Some(1));
}

async fn standing(backend: &dyn Backend, max: usize) -> Vec<(RunId, RunStatus)> {
    ok(backend.list(RunQuery::newest(max)).await).into_iter().map(|run| (run.run, run.status)).collect()
}
