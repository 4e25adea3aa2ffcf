//! Effects that take too long, and what isn't one of them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_engine::{Actor, Effect, Event, SessionEvent};
use provost_event::{ApprovalAnswer, ApprovalScope, EffectId, Outcome, SessionId, ToolStatus};
use provost_harness::{Executor, Log as _, Worker as _};
use provost_restate::{Engine, RestateBackend};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Scripted, Server, calls, ended, engine, kinds, log, policy, run, start, start_with, tool_statuses, until,
    work_as_worker, worker,
};

fn scripted(folder: &Path) -> Scripted {
    Scripted { folder: folder.to_owned(), tool: "once", turns: 2, takes: Duration::from_millis(100) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_past_its_deadline_loses_its_run_to_the_next_holder() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("hang"), "").unwrap();
    let deadline = Duration::from_secs(3);
    let engine = Engine { effect_deadline: deadline, ..engine(&server, folder.path()) };
    let (backend, _worker) = worker(engine, "w").await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(work_as_worker(backend.clone(), scripted(folder.path()), stop.clone()));
    backend.post(run(1).into(), start().into(), Some("start")).await.unwrap();
    until("a tool hangs", || !folder.path().join("hang").exists()).await;
    let hangs = Instant::now();
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    let took = hangs.elapsed();
    eprintln!("a run has ended {took:?} after an effect with a deadline of {deadline:?} hung");
    assert!(took < deadline + Duration::from_secs(10), "it took {took:?}");
    assert_eq!(tool_statuses(&backend, 1).await.first(), Some(&ToolStatus::Unknown));
    stop.cancel();
    working.await.unwrap();
}

/// Its first answer calls two tools.
struct Pair(Scripted);

#[async_trait::async_trait]
impl Executor for Pair {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        match effect {
            Effect::CallModel(call) if call.answers_before == 0 => {
                SessionEvent::Answered { seq: id.seq, answer: calls(&["once", "look"], id.seq) }.into()
            }
            other => self.0.run(id, other, cancel).await,
        }
    }
}

async fn approve_what_is_asked(backend: &RestateBackend, session: SessionId) {
    let Actor::Session(state) = backend.state(session.into()).await.unwrap() else { panic!("a session") };
    let asked = state.approvals().next().expect("a question").asked;
    let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
    let resolve = SessionEvent::Resolve { asked, answer, by: "ann".into() };
    backend.post(session.into(), resolve.into(), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_waits_for_an_approval_of_an_earlier_call_is_not_late() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let deadline = Duration::from_secs(3);
    let engine = Engine { effect_deadline: deadline, ..engine(&server, folder.path()) };
    let (backend, _worker) = worker(engine, "w").await;
    let mut policy = policy();
    policy.agent.permissions.ask = vec!["once".to_owned()];
    backend.post(run(1).into(), start_with(policy).into(), Some("start")).await.unwrap();
    let executor = Arc::new(Pair(Scripted { turns: 0, ..scripted(folder.path()) }));
    let guard = backend.serve(run(1), executor, CancellationToken::new()).await.unwrap();
    until("the second call is made", || !crate::support::tools_run(folder.path()).is_empty()).await;
    let late = tokio::time::timeout(deadline * 2, guard.failed()).await;
    assert!(late.is_err(), "its worker has lost the run: {late:?}");
    approve_what_is_asked(&backend, SessionId::root(run(1))).await;
    assert!(matches!(ended(&backend, run(1)).await, Outcome::Completed { .. }));
    assert_eq!(tool_statuses(&backend, 1).await, [ToolStatus::Ok; 2]);
    assert!(!kinds(&log(&backend, run(1)).await).contains(&"resumed"), "it counts as interrupted");
}
