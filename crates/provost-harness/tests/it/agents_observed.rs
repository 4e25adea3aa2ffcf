//! Observers of runs with sub-agents, through the real harness.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use expect_test::expect;
use provost_event::{ActorKey, AgentEntry, Budget, Entry, Outcome, RunId, SessionId};
use provost_harness::{
    AgentHarness, BackendError, CostTracker, Harness, HarnessError, MemoryTrace, ObservedBody, Observer,
    ObserverEvent, ObserverEventKind, ObserverOptions, ObserverState, Observers, Redactor, RunLogger,
    observe_with,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agents_stage::*;

const DEADLINE: Duration = Duration::from_secs(20);
const DONE: Outcome = Outcome::UNVERIFIED;

fn eyes() -> (impl Fn(RunId) -> Box<dyn Observer> + Send + Sync, Receiver<Arc<ObserverEvent>>) {
    let (sees, seen) = channel();
    let sees = Mutex::new(sees);
    let make = move |_| {
        let sees = sees.lock().expect("sees").clone();
        observe_with(move |event| Ok(sees.send(event.clone())?))
    };
    (make, seen)
}

async fn finish(run: &mut Harness) -> Outcome {
    timeout(DEADLINE, run.run(&CancellationToken::new())).await.expect("in time").expect("it is suspended")
}

/// Opens the run as soon as its last holder has released it.
async fn open(harness: &AgentHarness) -> Harness {
    loop {
        match harness.open(RUN).await {
            Ok(run) => return run,
            Err(HarnessError::Backend(BackendError::Held { .. })) => tokio::task::yield_now().await,
            Err(error) => panic!("it can't be opened: {error}"),
        }
    }
}

/// The events of one log, a line each: kind, depth and parent, and the content of a handoff.
fn of_log(events: &[Arc<ObserverEvent>], actor: ActorKey) -> String {
    let mut out = String::new();
    let entries = events.iter().filter(|event| matches!(event.body, ObservedBody::Entry(_)));
    for event in entries.filter(|event| event.actor == actor) {
        let parent = event.chain.parent.map(|parent| parent.agent.to_string()).unwrap_or_default();
        let call = event.call.map(|call| format!(" called by entry {call}")).unwrap_or_default();
        write!(out, "{} {}<{parent}{call}", event.kind.name(), event.chain.depth).expect("text");
        if let ObservedBody::Entry(record) = &event.body {
            match &record.entry {
                Entry::Agent(AgentEntry::Spawned(to)) => {
                    let parent = to.parent.expect("a parent").agent;
                    let (child, brief) = (to.child.agent, &to.brief);
                    write!(out, " {parent} -> {child} {} ({}, {})", brief.goal, brief.name, to.priority)
                }
                Entry::Agent(AgentEntry::Finished(from)) => {
                    write!(out, " {} is done: {}", from.child.agent, from.outcome)
                }
                _ => Ok(()),
            }
            .expect("text");
        }
        out.push('\n');
    }
    out
}

#[tokio::test]
async fn each_agent_s_events_come_in_the_order_of_its_log_with_its_place_in_the_chain() {
    let (make, seen) = eyes();
    let observers = Observers::new().with("eyes", ObserverOptions::default(), make);
    let harness = harness(&backend(), TWO_LEVELS, observers, no_hooks());
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    assert_eq!(finish(&mut run).await, DONE);
    let events = seen.try_iter().collect::<Vec<_>>();
    let agent = |agent| ActorKey::from(SessionId { run: RUN, agent });
    expect![[r#"
        RUN_START 0<
        BUDGET 0<
        BUDGET 0<
        HANDOFF 0< 0 -> 1 review it (reviewer, high)
        BUDGET 0<
        BUDGET 0<
        BUDGET 0<
        HANDOFF 0< 1 -> 2 work on it (worker, normal)
        BUDGET 0<
        BUDGET 0<
        BUDGET 0<
        HANDOFF 0< 2 is done: completed, not verified
        BUDGET 0<
        BUDGET 0<
        HANDOFF 0< 1 is done: completed, not verified
        BUDGET 0<
        BUDGET 0<
        RUN_END 0<
    "#]]
    .assert_eq(&of_log(&events, RUN.into()));
    expect![[r#"
        SESSION_START 0<
        TURN_START 0<
        LLM_START 0<
        LLM_END 0<
        TOOL_START 0<
        TOOL_END 0<
        TURN_END 0<
        TURN_START 0<
        LLM_START 0<
        LLM_END 0<
        TURN_END 0<
        SESSION_END 0<
    "#]]
    .assert_eq(&of_log(&events, agent(0)));
    expect![[r#"
        SESSION_START 1<0 called by entry 4
        TURN_START 1<0 called by entry 4
        LLM_START 1<0 called by entry 4
        LLM_END 1<0 called by entry 4
        TOOL_START 1<0 called by entry 4
        TOOL_END 1<0 called by entry 4
        TURN_END 1<0 called by entry 4
        TURN_START 1<0 called by entry 4
        LLM_START 1<0 called by entry 4
        LLM_END 1<0 called by entry 4
        TURN_END 1<0 called by entry 4
        SESSION_END 1<0 called by entry 4
    "#]]
    .assert_eq(&of_log(&events, agent(1)));
    expect![[r#"
        SESSION_START 2<1 called by entry 4
        TURN_START 2<1 called by entry 4
        LLM_START 2<1 called by entry 4
        LLM_END 2<1 called by entry 4
        TURN_END 2<1 called by entry 4
        SESSION_END 2<1 called by entry 4
    "#]]
    .assert_eq(&of_log(&events, agent(2)));
    assert!(events.iter().all(|event| event.chain.chain == RUN));
}

#[tokio::test]
async fn the_shipped_observers_tell_the_agents_apart() {
    let (costs, trace) = (CostTracker::new(), MemoryTrace::new().events_max(10_000));
    let logger = RunLogger::new(Arc::new(Redactor::default()));
    let observers = Observers::new()
        .with("costs", ObserverOptions::default(), costs.observer())
        .with("logger", ObserverOptions::default(), logger.observer())
        .with_trace("trace", ObserverOptions::default(), trace.sink());
    let harness = harness(&backend(), TWO_LEVELS, observers, no_hooks());
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    assert_eq!(finish(&mut run).await, DONE);
    let totals = costs.totals();
    let calls = |agent| totals.by_agent.get(&SessionId { run: RUN, agent }).map(|spent| spent.calls);
    assert_eq!([calls(0), calls(1), calls(2), calls(3)], [Some(2), Some(2), Some(1), None]);
    assert_eq!(totals.by_run.get(&RUN).map(|spent| spent.calls), Some(5));
    let lines = logger.lines(RUN);
    let handoffs = lines.iter().filter_map(|line| line.split_once(" HANDOFF ")).map(|(_, words)| words);
    let id = RUN.to_string();
    expect![[r#"
        from RUN.0 to RUN.1 (reviewer, high, depth 1): review it
        from RUN.1 to RUN.2 (worker, normal, depth 2): work on it
        back from RUN.2: completed, not verified
        back from RUN.1: completed, not verified
    "#]]
    .assert_eq(&handoffs.map(|words| words.replace(&id, "RUN") + "\n").collect::<String>());
    let traced = trace.events();
    let handoff = traced.iter().find(|event| event.name == "HANDOFF").expect("a handing over");
    let json = handoff.to_json().expect("JSON").replace(&id, "RUN");
    for words in [r#""type":"agent_spawned""#, r#""parent":"RUN.0""#, r#""call":"#, r#""depth":1"#] {
        assert!(json.contains(words), "{words}: {json}");
    }
    let starts = traced.iter().filter(|event| event.name == "SESSION_START");
    let spans = starts.map(|event| (event.span.clone(), event.parent_span.clone().unwrap_or_default()));
    let named = |(span, above): (String, String)| (span.replace(&id, "RUN"), above.replace(&id, "RUN"));
    let expected = [("RUN.0", "RUN"), ("RUN.1", "RUN.0"), ("RUN.2", "RUN.1")];
    let expected = expected.map(|(span, above)| (span.to_owned(), above.to_owned()));
    assert_eq!(spans.map(named).collect::<BTreeSet<_>>(), BTreeSet::from(expected));
}

#[tokio::test]
async fn agents_that_go_on_in_another_process_keep_their_places() {
    let script = "
answers: [{tools: [{reviewer: {goal: review it}}]}, {text: all is reviewed}]
agents:
  - {goal: review it, answers: [{tools: [{worker: {goal: work on it}}]}, {text: reviewed}]}
  - {goal: work on it, answers: [{delay_ms: 60000, text: worked}]}
";
    let backend = backend();
    let (make, seen) = eyes();
    let observers = Observers::new().with("eyes", ObserverOptions::default(), make);
    let mut policy = policy();
    policy.agent.limits.turns_max = 50;
    {
        let first = harness(&backend, script, observers, no_hooks());
        let mut run = first.start(RUN, "the goal", policy).await.expect("it starts");
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        // It is suspended as soon as the worker runs.
        let watched = tokio::task::spawn_blocking(move || {
            while let Ok(event) = seen.recv_timeout(DEADLINE) {
                let is_worker = matches!(event.actor, ActorKey::Session(session) if session.agent == 2);
                if is_worker && event.kind == ObserverEventKind::LlmStart {
                    return stop.cancel();
                }
            }
            panic!("no worker");
        });
        let outcome = timeout(DEADLINE, run.run(&cancel)).await.expect("in time").expect("it is suspended");
        assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome}");
        watched.await.expect("it saw");
    }
    let (make, seen) = eyes();
    let observers = Observers::new().with("eyes", ObserverOptions::default(), make);
    let second = harness(&backend, TWO_LEVELS, observers, no_hooks());
    let mut run = timeout(DEADLINE, open(&second)).await.expect("it is given up");
    run.resume("alice", Budget::default(), None).await.expect("it goes on");
    assert_eq!(finish(&mut run).await, DONE);
    let events = seen.try_iter().collect::<Vec<_>>();
    assert!(events.iter().all(|event| event.kind != ObserverEventKind::SessionStart), "they began before");
    for agent in [1, 2] {
        let session = SessionId { run: RUN, agent };
        let its = events.iter().filter(|event| event.actor == session.into()).collect::<Vec<_>>();
        assert!(!its.is_empty());
        for event in its {
            let above = SessionId { run: RUN, agent: agent - 1 };
            assert_eq!((event.chain.depth, event.chain.parent), (agent, Some(above)), "{event:?}");
            assert!(event.call.is_some(), "{event:?}");
        }
    }
    let ends = events.iter().filter(|event| event.kind == ObserverEventKind::SessionEnd).count();
    assert_eq!(ends, 3);
}

/// Seven reviewers, each with six workers: with the root fifty agents.
fn fifty() -> String {
    let reviewers = "{reviewer: {goal: review it}}, ".repeat(7);
    let workers = "{worker: {goal: work on it}}, ".repeat(6);
    format!(
        "answers: [{{tools: [{reviewers}]}}, {{text: all is reviewed}}]\nagents:\n\
         - {{goal: review it, answers: [{{tools: [{workers}]}}, {{text: reviewed}}]}}\n\
         - {{goal: work on it, answers: [{{text: worked}}]}}\n"
    )
}

#[tokio::test]
async fn an_observer_that_hangs_hurts_none_of_fifty_agents_and_no_other_observer() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(Some(gate));
    let hangs = move |_| {
        let gate = gate.lock().expect("gate").take();
        observe_with(move |_| {
            let _ = gate.as_ref().map(Receiver::recv);
            Ok(())
        })
    };
    let (make, seen) = eyes();
    let few = ObserverOptions { queue_max: 16, ..ObserverOptions::default() };
    let observers = Observers::new()
        .finish_within(Duration::from_secs(2))
        .with("hangs", few, hangs)
        .with("panics", ObserverOptions::default(), |_| {
            observe_with(|event| match event.kind {
                ObserverEventKind::RunStart | ObserverEventKind::RunEnd => {
                    std::panic::resume_unwind(Box::new("it can't look"))
                }
                _ => Ok(()),
            })
        })
        .with("eyes", ObserverOptions::default(), make);
    let harness = harness(&backend(), &fifty(), observers, no_hooks());
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    assert_eq!(finish(&mut run).await, DONE);
    let events = seen.try_iter().collect::<Vec<_>>();
    let of_kind = |kind| events.iter().filter(|event| event.kind == kind).collect::<Vec<_>>();
    let count = |kind| of_kind(kind).len();
    use ObserverEventKind as K;
    assert_eq!([K::SessionStart, K::SessionEnd, K::Handoff, K::RunEnd].map(count), [50, 50, 98, 1]);
    let depths = of_kind(K::SessionStart).iter().map(|event| event.chain.depth).collect::<Vec<_>>();
    let at = |depth| depths.iter().filter(|one| **one == depth).count();
    assert_eq!([at(0), at(1), at(2)], [1, 7, 42]);
    // Each log is reported in order, regardless of the others.
    for agent in 0..50 {
        let actor = ActorKey::from(SessionId { run: RUN, agent });
        let seqs = events.iter().filter(|event| event.actor == actor).filter_map(|event| match &event.body {
            ObservedBody::Entry(record) => Some(record.seq),
            _ => None,
        });
        assert!(seqs.is_sorted(), "{actor}");
    }
    let reports = run.observer_reports();
    assert_eq!(
        reports.iter().map(|report| report.state).collect::<Vec<_>>(),
        [ObserverState::LeftBehind, ObserverState::Finished, ObserverState::Finished]
    );
    let all = reports[2].delivered;
    assert_eq!((reports[1].panicked, reports[1].delivered), (2, all));
    assert_eq!((reports[0].delivered + reports[0].lost, reports[2].lost), (all, 0));
    drop(open);
}
