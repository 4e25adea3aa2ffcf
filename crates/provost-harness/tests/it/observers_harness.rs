//! Observers of runs in a harness: real backend, real loop, scripted answers.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    Access, AgentPolicy, Budget, Entry, Json, LifecycleEntry, ModelPolicy, Outcome, RunId, RunPolicy, Seq,
    StepMode, ToolSpec, ToolSubject,
};
use provost_harness::{
    AgentHarness, HarnessDeps, Log as _, Models, ObservedBody, Observer, ObserverError, ObserverEvent,
    ObserverOptions, ObserverState, Observers, Tool, ToolContext, ToolOutput, ToolRegistry, TurnState,
    observe_with,
};
use provost_llm::ScriptedModel;
use tokio_util::sync::CancellationToken;

pub(crate) const RUN: RunId = RunId::from_entropy(11);
const ANSWERS: &str = "answers: [{tools: [{nothing: {}}]}, {text: 'all is well'}]";

/// A harness with these observers, and its backend.
pub(crate) fn harness(script: &str, observers: Observers) -> (AgentHarness, Arc<EmbeddedBackend>) {
    let clock = Arc::new(provost_harness::SystemClock);
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock).expect("a backend"));
    let model = ScriptedModel::parse(script, "script").expect("a script");
    let models = Models::new().with("script:test", Arc::new(model));
    let tools = ToolRegistry::new().with(Nothing(spec()));
    let deps = HarnessDeps { observers, ..HarnessDeps::new(backend.clone(), models, tools) };
    (AgentHarness::new(deps), backend)
}

/// A tool that does nothing.
struct Nothing(ToolSpec);

#[async_trait]
impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, _: &ToolContext) -> ToolOutput {
        ToolOutput::ok("nothing")
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "nothing".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 10_000,
        output_bytes_max: 100,
    }
}

pub(crate) fn policy() -> RunPolicy {
    RunPolicy {
        observers: vec!["another".into()],
        spawn: provost_event::SpawnBudget::default(),
        ..RunPolicy::new(AgentPolicy {
            system_prompt: "be good".into(),
            tools: vec![spec()],
            ..AgentPolicy::new(ModelPolicy::new("script:test", 1_000), std::env::temp_dir())
        })
    }
}

/// An observer that forwards its events.
fn eyes() -> (impl Fn(RunId) -> Box<dyn Observer> + Send + Sync, Receiver<Arc<ObserverEvent>>) {
    let (sees, seen) = channel();
    let sees = Mutex::new(sees);
    let make = move |_| {
        let sees = sees.lock().expect("sees").clone();
        observe_with(move |event| Ok(sees.send(event.clone())?))
    };
    (make, seen)
}

fn names(seen: &Receiver<Arc<ObserverEvent>>) -> Vec<&'static str> {
    seen.try_iter().map(|event| event.kind.name()).collect()
}

const DONE: Outcome = Outcome::UNVERIFIED;

#[tokio::test]
async fn an_observer_sees_a_run_from_its_start_to_its_end() {
    let (make, seen) = eyes();
    let observers = Observers::new().with("eyes", ObserverOptions::default(), make);
    let (harness, backend) = harness(ANSWERS, observers);
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    assert_eq!(run.run(&CancellationToken::new()).await.expect("it ends"), DONE);
    let events = seen.try_iter().collect::<Vec<_>>();
    let (of_run, of_session) = events
        .iter()
        .filter(|event| matches!(event.body, ObservedBody::Entry(_)))
        .partition::<Vec<_>, _>(|event| matches!(event.actor, provost_event::ActorKey::Run(_)));
    let names = |events: &[&Arc<ObserverEvent>]| {
        events.iter().map(|event| event.kind.name()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&of_run), "RUN_START BUDGET BUDGET BUDGET BUDGET RUN_END");
    assert_eq!(
        names(&of_session),
        "SESSION_START TURN_START LLM_START LLM_END TOOL_START TOOL_END TURN_END \
         TURN_START LLM_START LLM_END TURN_END SESSION_END"
    );
    let pieces = events.iter().filter_map(|event| match &event.body {
        ObservedBody::Delta(delta) => Some(delta.text.as_str()),
        _ => None,
    });
    assert_eq!(pieces.collect::<String>(), "all is well");
    let report = &run.observer_reports()[0];
    assert_eq!((report.state, report.lost), (ObserverState::Finished, 0));
    assert_eq!(report.delivered, u64::try_from(events.len()).expect("few"));
    let first = backend.read(RUN.into(), Seq::START, 1).await.expect("a log").remove(0);
    let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = &first.entry else { panic!("{first:?}") };
    assert_eq!(started.policy.observers, ["another", "eyes"]);
}

#[tokio::test]
async fn a_run_does_not_wait_for_an_observer_that_hangs_and_its_end_only_so_long() {
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
    let observers = Observers::new()
        .finish_within(Duration::from_millis(50))
        .with("hangs", ObserverOptions::default(), hangs)
        .with("eyes", ObserverOptions::default(), make);
    let (harness, _backend) = harness(ANSWERS, observers);
    let mut policy = policy();
    policy.agent.step_mode = StepMode::Stepped;
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    let cancel = CancellationToken::new();
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    let hung = &run.observer_reports()[0];
    assert_eq!((hung.state, hung.lost), (ObserverState::Working, 0), "{hung:?}");
    assert!(hung.delivered <= 1 && hung.waiting > 5, "{hung:?}");
    assert_eq!(run.run(&cancel).await.expect("it ends"), DONE);
    let reports = run.observer_reports();
    assert_eq!((reports[0].state, reports[0].hung), (ObserverState::LeftBehind, 1));
    assert_eq!(reports[0].delivered + reports[0].lost, reports[1].delivered);
    assert_eq!(reports[1].state, ObserverState::Finished);
    let names = names(&seen);
    assert!(names.contains(&"RUN_END") && names.contains(&"SESSION_END"), "{names:?}");
    drop(open);
}

#[tokio::test]
async fn nothing_is_missed_while_the_run_is_not_polled() {
    let (make, seen) = eyes();
    let observers = Observers::new().with("eyes", ObserverOptions::default(), make);
    let (harness, backend) = harness(ANSWERS, observers);
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    let mut log = backend.subscribe(RUN.into(), Seq::START);
    while let Some(record) = log.next().await {
        if matches!(record.expect("readable").entry, Entry::Lifecycle(LifecycleEntry::Ended(_))) {
            break;
        }
    }
    let committed = seen.try_iter().filter(|event| matches!(event.body, ObservedBody::Entry(_))).count();
    assert_eq!(committed, 0, "entries are told by the process that polls");
    assert_eq!(run.run(&CancellationToken::new()).await.expect("it ends"), DONE);
    let entries = seen.try_iter().filter(|event| matches!(event.body, ObservedBody::Entry(_))).count();
    assert_eq!(entries, 18);
}

/// Reports how often it was created and finished.
struct Lives(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl Observer for Lives {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        if event.kind.name().starts_with("RUN_") {
            self.0.lock().expect("lives").push(event.kind.name());
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        self.0.lock().expect("lives").push("finished");
        Ok(())
    }
}

#[tokio::test]
async fn a_run_that_goes_on_after_a_rest_has_observers_that_are_new() {
    let lives = Arc::new(Mutex::new(Vec::new()));
    let lived = lives.clone();
    let make = move |_| -> Box<dyn Observer> {
        lived.lock().expect("lives").push("made");
        Box::new(Lives(lived.clone()))
    };
    let observers = Observers::new().with("lives", ObserverOptions::default(), make);
    let (harness, _backend) = harness(ANSWERS, observers);
    let mut policy = policy();
    policy.agent.limits.turns_max = 1;
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    let suspended = run.run(&CancellationToken::new()).await.expect("it is suspended");
    assert!(matches!(suspended, Outcome::BudgetExhausted(_)), "{suspended}");
    run.resume("me", Budget::default(), Some(5)).await.expect("it goes on");
    assert_eq!(run.run(&CancellationToken::new()).await.expect("it ends"), DONE);
    let expected = ["made", "RUN_START", "RUN_END", "finished", "made", "RUN_START", "RUN_END", "finished"];
    assert_eq!(*lives.lock().expect("lives"), expected);
}

#[tokio::test]
async fn a_run_that_is_given_up_finishes_its_observers() {
    let lives = Arc::new(Mutex::new(Vec::new()));
    let lived = lives.clone();
    let make = move |_| -> Box<dyn Observer> { Box::new(Lives(lived.clone())) };
    let observers = Observers::new().with("lives", ObserverOptions::default(), make);
    let (harness, _backend) = harness(ANSWERS, observers);
    let mut policy = policy();
    policy.agent.step_mode = StepMode::Stepped;
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    run.run_turn(&CancellationToken::new()).await.expect("a turn");
    drop(run);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while *lives.lock().expect("lives") != ["RUN_START", "finished"] {
        assert!(std::time::Instant::now() < deadline, "it never finished");
        tokio::task::yield_now().await;
    }
}
