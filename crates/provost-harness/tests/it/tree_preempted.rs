//! A preempted agent: its own log, and that it ends the same way as without a preemption.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use expect_test::{Expect, expect};
use provost_backend::EmbeddedBackend;
use provost_event::{
    ActorKey, AgentEntry, Block, Budget, ConversationEntry, Entry, Json, LifecycleEntry, ModelEntry, Outcome,
    Record, RunPolicy, Seq, SessionId, SpawnBudget, Timestamp, ToolEntry, ToolSpec,
};
use provost_harness::{
    AgentHarness, Clock, Harness, HarnessDeps, Log as _, Models, SimulatedClock, SystemClock, Tool,
    ToolContext, ToolOutput, ToolRegistry,
};
use provost_llm::ScriptedModel;
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::tree_stage::{MODEL, RUN, act, policy};

const DEADLINE: Duration = Duration::from_secs(10);
const DONE: Outcome = Outcome::UNVERIFIED;
const VICTIM: SessionId = SessionId { run: RUN, agent: 1 };
const BOSS: SessionId = SessionId { run: RUN, agent: 2 };

/// Three slots: for the root, the victim, and the boss, which spawns an urgent third agent. Both use the gate
/// once.
const AT_A_TOOL: &str = "
answers:
  - tools: [low: { goal: clean up }, normal: { goal: look after it }]
  - text: all is done
agents:
  - goal: clean up
    answers:
      - tools: [{ act: { agent: 1 } }]
      - text: Now for the long one.
        tools: [{ act: { agent: 2 } }, { act: { agent: 1 } }]
      - { expect: { messages: 5, tool_result: { contains: passed 2 } }, text: It is clean. }
  - goal: look after it
    answers:
      - tools: [{ act: { agent: 2 } }]
      - tools: [{ critical: { goal: the fire } }]
      - text: I have looked after it.
  - goal: the fire
    answers: [{ text: It is out. }]
";

/// The same, but the victim waits for its model, for a minute.
const AT_A_MODEL: &str = "
answers:
  - tools: [low: { goal: clean up }, normal: { goal: look after it }]
  - text: all is done
agents:
  - goal: clean up
    answers:
      - tools: [{ act: { agent: 1 } }]
      - { delay_ms: 60000, text: It is clean. }
  - goal: look after it
    answers:
      - tools: [{ act: { agent: 2 } }]
      - tools: [{ critical: { goal: the fire } }]
      - text: I have looked after it.
  - goal: the fire
    answers: [{ text: It is out. }]
";

/// `act` with 1 returns at once, with 2 it waits until the gate of its agent is opened.
struct Gate(ToolSpec, [Arc<Semaphore>; 3]);

#[async_trait]
impl Tool for Gate {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let ActorKey::Session(session) = context.effect.actor else { panic!("a run calls a tool") };
        if input.text().contains('2') {
            self.1[session.agent as usize].acquire().await.unwrap().forget();
            return ToolOutput::ok("passed 2");
        }
        ToolOutput::ok("passed 1")
    }
}

struct Stage {
    backend: Arc<EmbeddedBackend>,
    gates: [Arc<Semaphore>; 3],
    run: Harness,
    _folder: TempDir,
}

impl Stage {
    async fn start(script: &str, allow_preempt: bool, clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        let backend = Arc::new(EmbeddedBackend::new(store, clock.clone()).unwrap());
        let gates = std::array::from_fn(|_| Arc::new(Semaphore::new(0)));
        let model = ScriptedModel::parse(script, "tree").unwrap().with_clock(clock.clone());
        let tools = ToolRegistry::new().with(Gate(act(), gates.clone()));
        let models = Models::new().with(MODEL, Arc::new(model));
        let deps = HarnessDeps { clock, ..HarnessDeps::new(backend.clone(), models, tools) };
        let spawn = SpawnBudget { max_agents: 3, allow_preempt, max_depth: 4 };
        let policy: RunPolicy = policy(spawn, |_| Budget::default());
        let run = AgentHarness::new(deps).start(RUN, "all of it", policy).await.unwrap();
        Self { backend, gates, run, _folder: folder }
    }

    fn open(&self, agent: SessionId) {
        self.gates[agent.agent as usize].add_permits(1);
    }

    async fn log(&self, actor: impl Into<ActorKey>) -> Vec<Arc<Record>> {
        self.backend.read(actor.into(), Seq::START, 10_000).await.unwrap()
    }

    /// Waits until `actor`'s log has this many entries of `kind`.
    async fn until(&self, actor: impl Into<ActorKey> + Copy, kind: &str, times: usize) {
        let look = async {
            while self.log(actor).await.iter().filter(|record| record.entry.kind() == kind).count() < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(DEADLINE, look).await.unwrap_or_else(|_| panic!("{times} of {kind}"));
    }

    async fn ends(mut self) -> (String, Vec<String>, Vec<String>) {
        let cancel = CancellationToken::new();
        let outcome = timeout(DEADLINE, self.run.run(&cancel)).await.expect("it ends").unwrap();
        assert_eq!(outcome, DONE);
        let (victim, run) = (self.log(VICTIM).await, self.log(RUN).await);
        (shown(&victim), said(&victim), slots(&run))
    }
}

/// A session's log, a line an entry.
fn shown(log: &[Arc<Record>]) -> String {
    let line = |record: &Arc<Record>| match &record.entry {
        Entry::Agent(AgentEntry::MustYield(wish)) => {
            format!("yield_requested for {:?}\n", wish.to.map(|to| to.agent))
        }
        Entry::Lifecycle(LifecycleEntry::Paused(paused)) => format!("paused: {}\n", paused.outcome),
        Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => format!("resumed: {:?}\n", resumed.cause),
        Entry::Model(ModelEntry::Retried(retry)) => format!("retry: {:?}\n", retry.cause),
        Entry::Lifecycle(LifecycleEntry::Ended(ended)) => format!("ended: {}\n", ended.outcome),
        other => format!("{}\n", other.kind()),
    };
    log.iter().map(line).collect()
}

/// An agent's messages, and its calls' results.
fn said(log: &[Arc<Record>]) -> Vec<String> {
    let blocks =
        |content: &[Block]| content.iter().map(|block| serde_json::to_string(block).unwrap()).collect();
    let said = |record: &Arc<Record>| match &record.entry {
        Entry::Conversation(ConversationEntry::AssistantMessage(message)) => Some(blocks(&message.content)),
        Entry::Tool(ToolEntry::Finished(finished)) => Some(format!("{} {}", finished.call, finished.output)),
        _ => None,
    };
    log.iter().filter_map(said).collect()
}

/// The events of slots until the preempted agent continues; after that no agent is queued.
fn slots(run: &[Arc<Record>]) -> Vec<String> {
    let line = |record: &Arc<Record>| match &record.entry {
        Entry::Agent(AgentEntry::Spawned(spawned)) => {
            Some(format!("{} is asked for: {:?}", spawned.child.agent, spawned.slot))
        }
        Entry::Agent(AgentEntry::Started(started)) => Some(format!("{} works", started.child.agent)),
        Entry::Agent(AgentEntry::YieldRequested(yields)) => {
            Some(format!("{} shall yield", yields.child.agent))
        }
        Entry::Agent(AgentEntry::Suspended(paused)) => Some(format!("{} has yielded", paused.child.agent)),
        Entry::Agent(AgentEntry::Finished(finished)) => Some(format!("{} is done", finished.child.agent)),
        _ => None,
    };
    let mut slots = run.iter().filter_map(line).collect::<Vec<_>>();
    let back = slots.iter().rposition(|line| line == "1 works").unwrap();
    slots.truncate(back + 1);
    slots
}

fn check(shown: &str, slots: &[String], expected: Expect) {
    expected.assert_eq(&format!("{shown}---\n{}\n", slots.join("\n")));
}

/// With `allow_preempt` the boss preempts the victim while that is in a tool call.
async fn at_a_tool(allow_preempt: bool) -> (String, Vec<String>, Vec<String>) {
    let stage = Stage::start(AT_A_TOOL, allow_preempt, Arc::new(SystemClock)).await;
    stage.until(VICTIM, "tool_started", 2).await;
    stage.until(BOSS, "tool_started", 1).await;
    stage.open(BOSS);
    if allow_preempt {
        stage.until(VICTIM, "yield_requested", 1).await;
    } else {
        stage.until(BOSS, "ended", 1).await;
    }
    stage.open(VICTIM);
    stage.ends().await
}

#[tokio::test]
async fn an_agent_that_makes_way_amid_a_tool_rests_behind_it_and_comes_to_the_same_end() {
    let (shown, said, slots) = at_a_tool(true).await;
    check(
        &shown,
        &slots,
        expect![[r#"
            session_started
            model_called
            assistant_message
            tool_started
            tool_finished
            turn_ended
            model_called
            assistant_message
            tool_started
            tool_started
            yield_requested for Some(3)
            tool_finished
            tool_finished
            turn_ended
            paused: yields to agent 000000000022.3
            resumed: SlotFree
            model_called
            assistant_message
            turn_ended
            ended: completed, not verified
            ---
            1 is asked for: Free
            1 works
            2 is asked for: Free
            2 works
            3 is asked for: After(000000000022.1)
            1 shall yield
            1 has yielded
            3 works
            3 is done
            1 works
        "#]],
    );
    let (shown_without, said_without, _) = at_a_tool(false).await;
    assert!(!shown_without.contains("paused"), "{shown_without}");
    assert_eq!(said, said_without);
}

/// The victim waits for its model for longer than its time to yield.
async fn at_a_model(allow_preempt: bool) -> (String, Vec<String>, Vec<String>) {
    let clock = Arc::new(SimulatedClock::at(Timestamp(1_000_000)));
    let stage = Stage::start(AT_A_MODEL, allow_preempt, clock.clone()).await;
    stage.until(VICTIM, "turn_ended", 1).await;
    stage.until(BOSS, "tool_started", 1).await;
    stage.open(BOSS);
    if allow_preempt {
        stage.until(VICTIM, "yield_requested", 1).await;
        clock.advance_ms(29_999);
        assert_eq!(
            stage.log(VICTIM).await.last().unwrap().entry.kind(),
            "yield_requested",
            "it has time left"
        );
        clock.advance_ms(1);
        stage.until(VICTIM, "resumed", 1).await;
    } else {
        stage.until(BOSS, "ended", 1).await;
    }
    let moves = tokio::spawn(async move {
        loop {
            clock.advance_to_next_sleeper().await;
            tokio::task::yield_now().await;
        }
    });
    let ends = stage.ends().await;
    moves.abort();
    ends
}

#[tokio::test]
async fn an_agent_that_waits_for_its_model_is_given_half_a_minute_and_then_asks_again() {
    let (shown, said, slots) = at_a_model(true).await;
    check(
        &shown,
        &slots,
        expect![[r#"
            session_started
            model_called
            assistant_message
            tool_started
            tool_finished
            turn_ended
            model_called
            yield_requested for Some(3)
            yield_requested for Some(3)
            retry: Interrupted
            paused: yields to agent 000000000022.3
            resumed: SlotFree
            model_called
            assistant_message
            turn_ended
            ended: completed, not verified
            ---
            1 is asked for: Free
            1 works
            2 is asked for: Free
            2 works
            3 is asked for: After(000000000022.1)
            1 shall yield
            1 has yielded
            3 works
            3 is done
            1 works
        "#]],
    );
    let (shown_without, said_without, _) = at_a_model(false).await;
    assert!(!shown_without.contains("paused"), "{shown_without}");
    assert_eq!(said, said_without);
}
