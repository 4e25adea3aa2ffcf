//! The tools of a run change while it lives, from an embedding program's view.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::Answer;
use provost_event::{
    Access, AgentPolicy, Budget, Entry, ModelFailure, ModelPolicy, Outcome, RunId, RunPolicy, Seq, SessionId,
    StepMode, ToolEntry, ToolFinished, ToolStatus,
};
use provost_harness::{
    AgentHarness, DeltaSink, HarnessDeps, Log as _, Model, ModelRequest, Models, SystemClock, Tool,
    ToolOutput, ToolRegistry, TurnState,
};
use provost_llm::ScriptedModel;
use tokio_util::sync::CancellationToken;

use crate::embedding::{made, open_when_free};

const RUN: RunId = RunId::from_entropy(77);

/// A scripted model that records the names of the tools that each request offers.
struct Offered {
    script: ScriptedModel,
    requests: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Model for Offered {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let names = request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ");
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(names);
        self.script.answer(request, deltas, cancel).await
    }
}

/// A stepped run whose processes may change.
struct Scene {
    store: MemoryStore,
    script: &'static str,
    requests: Arc<Mutex<Vec<String>>>,
    workspace: tempfile::TempDir,
}

impl Scene {
    fn new(script: &'static str) -> Self {
        let workspace = tempfile::tempdir().expect("a folder");
        Self { store: MemoryStore::new(), script, requests: Arc::default(), workspace }
    }

    /// A harness in a separate process, as far as the store can tell.
    fn harness(&self, tools: ToolRegistry) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let backend = EmbeddedBackend::new(self.store.clone(), Arc::new(SystemClock)).expect("a backend");
        let backend = Arc::new(backend);
        let script = ScriptedModel::parse(self.script, "script").expect("a script");
        let model = Offered { script, requests: self.requests.clone() };
        let models = Models::new().with("script:test", Arc::new(model));
        (AgentHarness::new(HarnessDeps::new(backend.clone(), models, tools)), backend)
    }

    fn policy(&self, tools: &ToolRegistry) -> RunPolicy {
        let model = ModelPolicy::new("script:test", 1_000);
        RunPolicy::new(AgentPolicy {
            tools: tools.specs(),
            step_mode: StepMode::Stepped,
            ..AgentPolicy::new(model, self.workspace.path().to_owned())
        })
    }

    fn offered(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn finished(&self) -> Vec<ToolFinished> {
        let (_, backend) = self.harness(ToolRegistry::new());
        let records = backend.read(SessionId::root(RUN).into(), Seq::START, 1_000).await.expect("a log");
        let result = |entry: &Entry| match entry {
            Entry::Tool(ToolEntry::Finished(finished)) => Some(finished.clone()),
            _ => None,
        };
        records.iter().filter_map(|record| result(&record.entry)).collect()
    }
}

fn says(name: &str, text: &'static str) -> impl Tool + use<> {
    made(name, Access::Reads, move |_, _| async move { ToolOutput::ok(text) })
}

#[tokio::test]
async fn a_tool_that_is_added_after_a_turn_is_offered_called_and_there_after_a_restart() {
    let scene = Scene::new("answers: [{tools: [look]}, {tools: [ask]}, {tools: [ask]}, {text: done}]");
    let tools = ToolRegistry::new().with(says("look", "a file"));
    let (harness, _backend) = scene.harness(tools.clone());
    let cancel = CancellationToken::new();
    let mut run = harness.start(RUN, "the goal", scene.policy(&tools)).await.expect("it starts");
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    let handle = run.tools();
    handle.change(vec![Arc::new(says("ask", "an answer"))], &[], "me").await.expect("it is recorded");
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    assert_eq!(scene.offered(), ["look", "look ask"]);
    drop(run);
    // The log has the new tool; the process that goes on has it in its registry.
    let (harness, _backend) = scene.harness(tools.with(says("ask", "another answer")));
    let mut run = open_when_free(&harness, RUN).await;
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Done(Outcome::UNVERIFIED));
    assert_eq!(scene.offered(), ["look", "look ask", "look ask", "look ask"]);
    let outputs = scene.finished().await.into_iter().map(|one| one.output).collect::<Vec<_>>();
    assert_eq!(outputs, ["a file", "an answer", "another answer"]);
}

#[tokio::test]
async fn a_removed_tool_is_not_offered_also_after_a_restart_and_a_call_of_it_says_so() {
    let scene = Scene::new("answers: [{tools: [ask]}, {tools: [ask]}, {tools: [ask]}, {text: done}]");
    let tools = ToolRegistry::new().with(says("ask", "an answer")).with(says("look", "a file"));
    let (harness, _backend) = scene.harness(tools.clone());
    let cancel = CancellationToken::new();
    let mut run = harness.start(RUN, "the goal", scene.policy(&tools)).await.expect("it starts");
    run.run_turn(&cancel).await.expect("a turn");
    run.tools().change(Vec::new(), &["ask"], "me").await.expect("it is recorded");
    run.run_turn(&cancel).await.expect("a turn");
    drop(run);
    let (harness, _backend) = scene.harness(tools);
    let mut run = open_when_free(&harness, RUN).await;
    let outcome = run.run(&cancel).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
    assert_eq!(scene.offered(), ["ask look", "look", "look", "look"]);
    let finished = scene.finished().await;
    assert_eq!(finished[0].output, "an answer");
    for refused in &finished[1..] {
        assert_eq!(refused.status, ToolStatus::Rejected);
        assert_eq!(refused.output, "The tool `ask` was removed: you no longer have it. There are: look.");
    }
}

#[tokio::test]
async fn a_tool_changes_the_tools_of_its_own_run_and_the_next_request_offers_them() {
    let scene = Scene::new("answers: [{tools: [load]}, {tools: [loaded]}, {text: done}]");
    let (handle, received) = tokio::sync::watch::channel(None::<provost_harness::RunTools>);
    let load = made("load", Access::Anything, move |_, _| {
        let mut received = received.clone();
        async move {
            let tools =
                received.wait_for(Option::is_some).await.expect("a handle").clone().expect("a handle");
            let added: Vec<Arc<dyn Tool>> = vec![Arc::new(says("loaded", "it is there"))];
            tools.change(added, &["load"], "load").await.expect("it is recorded");
            ToolOutput::ok("loaded")
        }
    });
    let tools = ToolRegistry::new().with(load);
    let (harness, _backend) = scene.harness(tools.clone());
    let policy = scene.policy(&tools);
    let agent = AgentPolicy { step_mode: StepMode::Free, ..policy.agent.clone() };
    let policy = RunPolicy { agent, ..policy };
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    handle.send_replace(Some(run.tools()));
    let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
    assert_eq!(scene.offered(), ["load", "loaded", "loaded"]);
    let outputs = scene.finished().await.into_iter().map(|one| one.output).collect::<Vec<_>>();
    assert_eq!(outputs, ["loaded", "it is there"]);
}

#[tokio::test]
async fn a_change_without_a_difference_leaves_log_and_requests_as_they_are() {
    let scene = Scene::new("answers: [{tools: [look]}, {text: done}]");
    let tools = ToolRegistry::new().with(says("look", "a file"));
    let (harness, backend) = scene.harness(tools.clone());
    let cancel = CancellationToken::new();
    let mut run = harness.start(RUN, "the goal", scene.policy(&tools)).await.expect("it starts");
    run.run_turn(&cancel).await.expect("a turn");
    let add: Vec<Arc<dyn Tool>> = vec![Arc::new(says("look", "a file"))];
    run.tools().change(add, &["unknown"], "me").await.expect("it is posted");
    run.run(&cancel).await.expect("it ends");
    run.tools().change(Vec::new(), &["look"], "me").await.expect("it is recorded after the end");
    run.resume("me", Budget::default(), None).await.expect("it goes on");
    for actor in [RUN.into(), SessionId::root(RUN).into()] {
        let records = backend.read(actor, Seq::START, 1_000).await.expect("a log");
        let changes = records.iter().filter(|record| record.entry.kind() == "tools_changed");
        assert_eq!(changes.count(), 1, "only that after the end");
    }
    assert_eq!(scene.offered()[..2], ["look", "look"]);
}
