//! What ends with the process that works on a run.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{
    Access, AgentPolicy, ConversationEntry, Entry, Json, ModelPolicy, Outcome, RunPolicy, SessionId, ToolSpec,
};
use provost_harness::{
    AgentHarness, HarnessDeps, Models, SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry,
};
use provost_llm::ScriptedModel;
use provost_restate::RestateBackend;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::{Server, engine, kinds, log, run, until, worker};

const SCRIPT: &str = "answers: [{tools: [{act: {}}]}, {tools: [{act: {}}]}, {text: done}, {text: noted}]";

/// Leaves a background command running, and takes as long as the test wants it to.
struct Act {
    spec: ToolSpec,
    begun: Arc<Semaphore>,
    may_end: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl Tool for Act {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: &Json, _: &ToolContext) -> ToolOutput {
        self.begun.add_permits(1);
        self.may_end.acquire().await.expect("a permit").forget();
        let mut output = ToolOutput::ok("it runs");
        output.facts.jobs = Some(vec!["j1 (npm start)".to_owned()]);
        output
    }
}

fn harness(backend: RestateBackend, act: Act) -> (AgentHarness, RunPolicy) {
    let tools = ToolRegistry::new().with(act);
    let model = ScriptedModel::parse(SCRIPT, "script").expect("a script");
    let models = Models::new().with("script:test", Arc::new(model));
    let policy = RunPolicy::new(AgentPolicy {
        tools: tools.specs(),
        ..AgentPolicy::new(ModelPolicy::new("script:test", 1_000), "/somewhere".into())
    });
    let deps = HarnessDeps::new(Arc::new(backend), models, tools);
    (AgentHarness::new(HarnessDeps { clock: Arc::new(SystemClock), ..deps }), policy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_told_that_its_background_commands_ended_with_a_worker_that_drained() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let begun = Arc::new(Semaphore::new(0));
    let may_end = Arc::new(Semaphore::new(1));
    let act = || Act {
        spec: ToolSpec { access: Access::Reads, ..ToolSpec::new("act", "acts", Json::empty_object()) },
        begun: Arc::clone(&begun),
        may_end: Arc::clone(&may_end),
    };
    let (backend, first) = worker(engine(&server, folder.path()), "one").await;
    let (one, policy) = harness(backend, act());
    let mut working = one.start(run(1), "a goal", policy).await.unwrap();
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    let task = tokio::spawn(async move {
        let goes_on = CancellationToken::new();
        tokio::select! {
            outcome = working.run(&goes_on) => panic!("it has ended: {outcome:?}"),
            () = cancelled.cancelled() => working.release().await,
        }
    });
    // The second call, with the command of the first one in the background.
    until("the second call runs", || begun.available_permits() == 2).await;
    let (other, _second) = worker(engine(&server, folder.path()), "two").await;
    // No further call is begun before this one ends.
    let (left, ()) = tokio::join!(first.drain(Duration::from_secs(60)), async { may_end.add_permits(1) });
    assert_eq!(left, 0);
    stop.cancel();
    task.await.unwrap();
    first.stop().await;
    let (two, _) = harness(other.clone(), act());
    let outcome = two.open(run(1)).await.unwrap().run(&CancellationToken::new()).await.unwrap();
    assert_eq!(outcome, Outcome::UNVERIFIED);
    let log = log(&other, SessionId::root(run(1))).await;
    assert!(!kinds(&log).contains(&"resumed"), "it was handed over without an interruption");
    let told = log.iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::UserMessage(message)) if message.by == "provost" => {
            Some(format!("{:?}", message.content))
        }
        _ => None,
    });
    let told = told.collect::<Vec<_>>();
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("j1 (npm start)")), "{told:?}");
}
