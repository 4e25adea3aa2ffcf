//! Shared test helpers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent, ToolResult};
use provost_event::{
    Access, AgentPolicy, BlobId, Block, Budget, EffectId, Entry, Json, LifecycleEntry, Limits, ModelPolicy,
    Outcome, RunId, RunPolicy, Seq, StopReason, ToolCall, ToolSpec, ToolStatus, ToolSubject, Usage,
};
use provost_harness::{Backend, Executor};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) fn run(number: u64) -> RunId {
    RunId::from_entropy(number)
}

pub(crate) fn policy(budget: Budget, turns_max: u32) -> RunPolicy {
    let look = ToolSpec {
        name: "look".to_owned(),
        description: "looks".to_owned(),
        input_schema: Json::empty_object(),
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 60_000,
        output_bytes_max: 1000,
    };
    let agent = AgentPolicy {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![look],
        limits: Limits { turns_max, ..Limits::default() },
        ..AgentPolicy::new(ModelPolicy::new("by/hand", 1000), PathBuf::from("/somewhere"))
    };
    RunPolicy { budget, spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) }
}

pub(crate) fn start(policy: RunPolicy) -> RunEvent {
    RunEvent::Start {
        goal: "a goal".to_owned(),
        images: Vec::new(),
        policy: Box::new(policy),
        baseline: None,
    }
}

/// Waits for something that must happen soon.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it didn't come")
}

/// Waits for the end of `run`.
pub(crate) async fn ended(backend: &dyn Backend, run: RunId) -> Outcome {
    let mut records = backend.subscribe(run.into(), Seq::START);
    while let Some(record) = records.next().await {
        if let Entry::Lifecycle(LifecycleEntry::Ended(ended)) = &record.unwrap().entry {
            return ended.outcome.clone();
        }
    }
    panic!("the subscription ended")
}

/// An effect to be performed.
pub(crate) struct Call {
    pub(crate) id: EffectId,
    answer: oneshot::Sender<Event>,
}

impl Call {
    pub(crate) fn answer(self, event: Event) {
        self.answer.send(event).expect("a receiver");
    }

    pub(crate) fn done(self) {
        let event = done(self.id.seq);
        self.answer(event);
    }
}

/// Performs effects by hand.
pub(crate) struct Hands(mpsc::UnboundedSender<Call>);

impl Hands {
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Call>) {
        let (sender, calls) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), calls)
    }
}

#[async_trait]
impl Executor for Hands {
    async fn run(&self, id: EffectId, _: Effect, _cancel: CancellationToken) -> Event {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Call { id, answer });
        match answered.await {
            Ok(event) => event,
            Err(_forgotten) => std::future::pending().await,
        }
    }
}

fn answered(seq: Seq, content: Vec<Block>, stop: StopReason) -> Event {
    let answer = Answer { cost: None, content, usage: Usage::default(), model: "by-hand".to_owned(), stop };
    SessionEvent::Answered { seq, answer }.into()
}

pub(crate) fn done(seq: Seq) -> Event {
    answered(seq, vec![Block::Text("Done.".to_owned())], StopReason::EndTurn)
}

pub(crate) fn asks_for_tools(seq: Seq, count: usize) -> Event {
    let calls = (0..count).map(|number| {
        Block::ToolCall(ToolCall {
            id: format!("call-{number}").as_str().into(),
            name: "look".to_owned(),
            input: Json::empty_object(),
            malformed: None,
        })
    });
    answered(seq, calls.collect(), StopReason::ToolUse)
}

pub(crate) fn tool_done(seq: Seq, whole: Option<BlobId>) -> Event {
    let output = format!("seen {seq}");
    let result = ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: provost_event::CallFacts::default(),
        status: ToolStatus::Ok,
        output,
        images: Vec::new(),
        whole,
        duration_ms: 1,
        memory: None,
    };
    SessionEvent::ToolDone { seq, result }.into()
}
