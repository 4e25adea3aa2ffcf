//! Runs from seeds, with trees of agents, workflows, denials, approvals, pauses, budgets that are used up and
//! processes that end: observers, traces and callbacks get the events of all logs in one order, which fits the logs.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::{FutureExt as _, StreamExt as _};
use provost_backend::{EmbeddedBackend, MemoryStore, export_run, import_run};
use provost_engine::{Event, RunEvent, SessionEvent};
use provost_event::{
    ActorKey, AgentEntry, ApprovalAnswer, ApprovalScope, Budget, CallId, Entry, GateEntry, LifecycleEntry,
    Outcome, Permission, Record, Seq, ToolEntry, ToolStatus,
};
use provost_harness::{
    AgentHarness, Backend, BackendError, Harness, HarnessCallback, HarnessDeps, HarnessError, JsonlTrace,
    Log as _, Models, ObservedBody, ObserverEvent, ObserverOptions, Observers, Redactor, RunPosition,
    SystemClock, ToolRegistry, TraceError, TraceEvent, TraceSink, observe_with, read_run,
};
use provost_llm::ScriptedModel;
use provost_sqlite::SqliteStore;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::observers_order_script::{Script, policy_of};
use crate::tree_stage::{Act, AtWork, MODEL, RUN, act};

const DEADLINE: Duration = Duration::from_secs(30);
const SEEDS: u64 = 120;

// ---- what observers, traces and callbacks get ---------------------------------------------------------------------

type Place = (ActorKey, Seq);

/// What each got, in its order.
#[derive(Default)]
struct Recorded {
    observer: Mutex<Vec<Arc<ObserverEvent>>>,
    callback: Mutex<Vec<Arc<Record>>>,
}

struct Recorder(Arc<Recorded>);

impl HarnessCallback for Recorder {
    fn on_record(&self, record: &Arc<Record>) {
        self.0.callback.lock().unwrap().push(Arc::clone(record));
    }
}

impl Recorded {
    fn callback(&self) -> Vec<Arc<Record>> {
        self.callback.lock().unwrap().clone()
    }

    /// The observer's events of entries: name and place.
    fn observer(&self) -> Vec<(&'static str, Place)> {
        let events = self.observer.lock().unwrap();
        let of = |event: &Arc<ObserverEvent>| match &event.body {
            ObservedBody::Entry(record) => Some((event.kind.name(), (event.actor, record.seq))),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    }
}

/// The events of entries in a trace file: name and place.
fn traced(path: &Path) -> Vec<(String, Place)> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let entries = lines.filter(|line| line.get("entry").is_some());
    let of = |line: serde_json::Value| {
        let actor = line.get("session").or(line.get("run")).unwrap().as_str().unwrap();
        (
            line["event"].as_str().unwrap().to_owned(),
            (actor.parse().unwrap(), Seq(line["seq"].as_u64().unwrap())),
        )
    };
    entries.map(of).collect()
}

// ---- one run ------------------------------------------------------------------------------------------------------

struct Stage {
    seed: u64,
    random: Rng,
    folder: tempfile::TempDir,
    memory: MemoryStore,
    model: Arc<ScriptedModel>,
    recorded: Arc<Recorded>,
    /// How many observers there are at the moment.
    observing: watch::Sender<usize>,
}

/// An observer that is there.
struct Observing(watch::Sender<usize>);

impl Observing {
    fn begin(observing: &watch::Sender<usize>) -> Self {
        observing.send_modify(|observing| *observing += 1);
        Self(observing.clone())
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        self.0.send_modify(|observing| *observing -= 1);
    }
}

/// A trace's sink, as an observer that is there.
struct Sink {
    sink: Box<dyn TraceSink>,
    _observing: Observing,
}

impl TraceSink for Sink {
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
        self.sink.event(event)
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        self.sink.flush()
    }
}

impl Stage {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Rng::with_seed(!seed),
            folder: tempfile::tempdir().unwrap(),
            memory: MemoryStore::new(),
            model: Arc::new(ScriptedModel::parse(&Script::of(seed), "order").unwrap()),
            recorded: Arc::default(),
            observing: watch::Sender::new(0),
        }
    }

    fn trace(&self) -> std::path::PathBuf {
        self.folder.path().join("trace.jsonl")
    }

    /// A process of its own.
    fn process(&self) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let clock = Arc::new(SystemClock);
        let backend = if self.seed.is_multiple_of(2) {
            EmbeddedBackend::new(self.memory.clone(), clock)
        } else {
            EmbeddedBackend::new(SqliteStore::open(self.folder.path().join("provost.db")).unwrap(), clock)
        };
        let backend = Arc::new(backend.unwrap());
        let recorded = Arc::clone(&self.recorded);
        let (observer, tracing) = (self.observing.clone(), self.observing.clone());
        let sink = JsonlTrace::new(self.trace(), Arc::new(Redactor::default())).sink();
        let options = ObserverOptions { queue_max: 100_000, ..ObserverOptions::default() };
        let observers = Observers::new()
            .finish_within(DEADLINE)
            .with("observer", options, move |_| {
                let recorded = Arc::clone(&recorded);
                let observing = Observing::begin(&observer);
                observe_with(move |event| {
                    let _ = &observing;
                    recorded.observer.lock().unwrap().push(Arc::clone(event));
                    Ok(())
                })
            })
            .with_trace("trace", options, move |run| {
                Box::new(Sink { sink: sink(run), _observing: Observing::begin(&tracing) })
            });
        let mut tools = ToolRegistry::new();
        for name in ["act", "asked", "denied"] {
            let spec = provost_event::ToolSpec { name: name.into(), ..act() };
            tools = tools.with(Act(spec, AtWork::default()));
        }
        let models = Models::new().with(MODEL, self.model.clone());
        let callback = Arc::new(Recorder(Arc::clone(&self.recorded)));
        let deps = HarnessDeps { observers, callback, ..HarnessDeps::new(backend.clone(), models, tools) };
        (AgentHarness::new(deps), backend)
    }

    /// The run from its start to its end; returns how many processes there were.
    async fn play(&mut self) -> u32 {
        let mut processes = 1;
        let (mut harness, mut backend) = self.process();
        let mut run = harness.start(RUN, "all of it", policy_of(self.seed)).await.unwrap();
        let mut interruptions = self.seed % 7;
        loop {
            let cancel = CancellationToken::new();
            let outcome = tokio::select! {
                outcome = run.run(&cancel) => Some(outcome.unwrap()),
                () = self.meddle(&backend, &mut interruptions) => None,
            };
            match outcome {
                Some(outcome) if outcome.is_final() => return processes,
                Some(Outcome::Paused { .. } | Outcome::BudgetExhausted(_)) => {
                    let more = Budget { tokens: Some(1_000_000), ..Budget::default() };
                    run.resume("ann", more, None).await.unwrap();
                }
                Some(other) => panic!("it is suspended at {other}"),
                None => {
                    // What this process's observers have got is complete before the next one begins.
                    while run.observer_reports().iter().any(|report| report.waiting > 0) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    drop(run);
                    self.observing.subscribe().wait_for(|observing| *observing == 0).await.unwrap();
                    processes += 1;
                    (harness, backend) = self.process();
                    run = opened(&harness).await;
                }
            }
        }
    }

    /// Answers questions and pauses the run; returns when the process is to end.
    async fn meddle(&mut self, backend: &Arc<EmbeddedBackend>, interruptions: &mut u64) {
        let mut records = backend.subscribe_run(RUN, RunPosition::START);
        let mut left = self.random.u32(20..120);
        while let Some(Ok(placed)) = records.next().await {
            let actor = placed.record.actor;
            if let Entry::Gate(GateEntry::ApprovalRequested(_)) = &placed.record.entry {
                let answer = match self.random.bool() {
                    true => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
                    false => ApprovalAnswer::Deny { reason: "ann says no".to_owned() },
                };
                let asked = placed.record.seq;
                let event = SessionEvent::Resolve { asked, answer, by: "ann".to_owned() };
                let _ = backend.post(actor, Event::Session(event), None).await;
            }
            left = left.saturating_sub(1);
            if left > 0 || *interruptions == 0 {
                continue;
            }
            left = self.random.u32(20..120);
            *interruptions -= 1;
            let by = "ann".to_owned();
            let event = match self.random.u32(0..4) {
                0 => return,
                1 => RunEvent::Cancel { agent: Some(self.random.u32(1..6)), by },
                _ => RunEvent::Pause { agent: None, by },
            };
            let _ = backend.post(RUN.into(), Event::Run(event), None).await;
        }
        std::future::pending().await
    }
}

/// The run, as soon as the previous process has released it.
async fn opened(harness: &AgentHarness) -> Harness {
    loop {
        match harness.open(RUN).await {
            Err(HarnessError::Backend(BackendError::Held { .. })) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

// ---- what must be so ----------------------------------------------------------------------------------------------

async fn whole(backend: &dyn Backend) -> Vec<Arc<Record>> {
    let (mut all, mut after) = (Vec::new(), RunPosition::START);
    loop {
        let records = read_run(backend, RUN, after, 100).await.unwrap();
        let Some(last) = records.last() else { return all };
        after = last.position;
        all.extend(records.into_iter().map(|placed| placed.record));
    }
}

fn places(records: &[Arc<Record>]) -> Vec<Place> {
    records.iter().map(|record| (record.actor, record.seq)).collect()
}

/// The order fits the logs: each of them, and what leads from one to another.
fn check_fits_the_logs(order: &[Arc<Record>]) {
    let mut heads = HashMap::<ActorKey, Seq>::new();
    let (mut spawned, mut ended) = (HashSet::new(), HashSet::new());
    for record in order {
        let head = heads.insert(record.actor, record.seq).unwrap_or_default();
        assert_eq!(record.seq, head.next(), "{} is out of order", record.actor);
        if let ActorKey::Session(session) = record.actor {
            let is_known = session.agent == 0 || spawned.contains(&session);
            assert!(is_known, "{session} begins before it is spawned");
        }
        match &record.entry {
            Entry::Agent(AgentEntry::Spawned(entry)) => assert!(spawned.insert(entry.child)),
            Entry::Agent(AgentEntry::AskedAgain(entry)) => drop(ended.remove(&entry.child)),
            Entry::Agent(AgentEntry::Finished(entry)) => drop(ended.insert(entry.child)),
            _ => {}
        }
    }
}

/// What a person requests of a suspended run, and what follows from it. The result of an agent that a person ended may
/// follow the suspension that this caused.
fn between_segments(order: &[Arc<Record>]) -> HashSet<Place> {
    let mut between = HashSet::new();
    let (mut suspended, mut requested, mut ended) = (false, false, false);
    for record in order {
        let is_run = matches!(record.actor, ActorKey::Run(_));
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) if is_run => {
                (suspended, requested) = (true, false);
                continue;
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) if is_run => (suspended, ended) = (false, false),
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => requested |= resolved.by == "ann",
            Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => {
                ended |= stop.outcome == Outcome::Cancelled { by: "ann".to_owned() };
                requested |= ended;
            }
            _ => {}
        }
        if suspended {
            let is_result = matches!(&record.entry, Entry::Tool(ToolEntry::Finished(result))
                if result.status == ToolStatus::Cancelled);
            assert!(
                requested || (ended && is_result),
                "{}/{} is after the end of its segment",
                record.actor,
                record.seq
            );
            between.insert((record.actor, record.seq));
        }
    }
    between
}

/// A segment begins with RUN_START and ends with RUN_END, a workflow's with FLOW_START and FLOW_END inside of
/// them; between segments is only what a person requests of the suspended run.
fn check_segments(order: &[Arc<Record>], events: &[(&'static str, Place)], is_flow: bool) {
    let between = between_segments(order);
    let mut open = false;
    for (at, (name, place)) in events.iter().enumerate() {
        if between.contains(place) {
            assert!(!open);
            continue;
        }
        match *name {
            "RUN_START" => assert!(!std::mem::replace(&mut open, true), "{place:?}: two starts"),
            _ => assert!(open, "{place:?}: {name} is outside of a segment"),
        }
        let neighbour = |at: Option<usize>| at.and_then(|at| events.get(at)).map(|(name, _)| *name);
        match *name {
            "RUN_END" => open = false,
            "FLOW_START" => assert_eq!(neighbour(at.checked_sub(1)), Some("RUN_START")),
            "FLOW_END" => assert_eq!(neighbour(Some(at + 1)), Some("RUN_END")),
            _ => {}
        }
    }
    assert!(!open, "the last segment has no end");
    assert_eq!(events.iter().any(|(name, _)| *name == "FLOW_START"), is_flow);
    assert_eq!(events.iter().any(|(name, _)| name.starts_with("STEP_")), is_flow);
}

/// Each call has a start and an end or neither, each denial one GUARDRAIL_TRIP, and a question that is allowed none.
fn check_calls(order: &[Arc<Record>], events: &[(&'static str, Place)]) {
    let at = order
        .iter()
        .enumerate()
        .map(|(at, record)| ((record.actor, record.seq), at))
        .collect::<HashMap<_, _>>();
    let count = |wanted: &str| events.iter().filter(|(name, _)| *name == wanted).count();
    let per_call = |wanted: &str| {
        let events = events.iter().filter(|(name, _)| *name == wanted);
        let mut calls = HashMap::<(ActorKey, CallId), u32>::new();
        for (_, place) in events {
            let entry = &order[at[place]].entry;
            let call = match entry {
                Entry::Tool(ToolEntry::Started(started)) => started.call.clone(),
                Entry::Tool(ToolEntry::Finished(finished)) => finished.call.clone(),
                other => panic!("{wanted} of {}", other.kind()),
            };
            *calls.entry((place.0, call)).or_default() += 1;
        }
        calls
    };
    assert_eq!(per_call("TOOL_START"), per_call("TOOL_END"), "a call has a start or an end alone");
    let denied = order.iter().filter(|record| match &record.entry {
        Entry::Gate(GateEntry::PermissionDecided(decided)) => decided.permission == Permission::Deny,
        Entry::Gate(GateEntry::ApprovalResolved(resolved)) => {
            matches!(resolved.answer, ApprovalAnswer::Deny { .. })
        }
        _ => false,
    });
    assert_eq!(count("GUARDRAIL_TRIP"), denied.count(), "a denial has another number of events than one");
    let sessions = order
        .iter()
        .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::SessionStarted(_))));
    assert!(count("SESSION_START") >= sessions.count());
}

/// Plays the run of `seed` and checks all that it must be.
async fn check(seed: u64) {
    let mut stage = Stage::new(seed);
    let processes = timeout(DEADLINE, stage.play()).await.expect("it comes to its end");
    let (_, backend) = stage.process();
    let order = whole(&*backend).await;
    check_fits_the_logs(&order);
    let callback = places(&stage.recorded.callback());
    let observer = stage.recorded.observer();
    let traced = traced(&stage.trace());
    let traced = traced.iter().map(|(name, place)| (name.as_str(), *place)).collect::<Vec<_>>();
    assert!(traced == observer, "the trace isn't what the observer got");
    let in_order = places(&order);
    if processes == 1 {
        let differs = callback.iter().zip(&in_order).find(|(got, due)| got != due);
        assert_eq!(differs, None, "the callback didn't get each entry in order");
        assert_eq!(callback.len(), in_order.len(), "the callback didn't get each entry");
        check_segments(&order, &observer, policy_of(seed).flow.is_some());
        check_calls(&order, &observer);
    }
    let at = in_order.iter().enumerate().map(|(at, place)| (*place, at)).collect::<HashMap<_, _>>();
    assert!(callback.is_sorted_by(|one, next| at[one] < at[next]), "the callback's order isn't the log's");
    assert!(
        observer.is_sorted_by(|one, next| at[&one.1] <= at[&next.1]),
        "the observer's order isn't the log's"
    );
    let mut file = Vec::new();
    export_run(&*backend, RUN, &mut file).await.unwrap();
    let copy = EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap();
    import_run(&copy, &mut &*file).await.unwrap();
    assert!(places(&whole(&copy).await) == in_order, "an import has another order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_traces_and_callbacks_have_one_order_which_fits_the_logs() {
    let first = std::env::var("PROVOST_ORDER_FROM").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let seeds = std::env::var("PROVOST_ORDER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let mut failed = Vec::new();
    for seed in first..first + seeds {
        if let Err(panic) = AssertUnwindSafe(check(seed)).catch_unwind().await {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            failed.push(format!(
                "seed {seed}: {}",
                text.unwrap_or_default().chars().take(400).collect::<String>()
            ));
        }
    }
    assert!(failed.is_empty(), "{} of {seeds} runs: {failed:#?}", failed.len());
}
