//! Helpers of the checks: backends on one place, effects performed by hand, and waits with a deadline.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent, ToolResult};
use provost_event::{
    Access, ActorKey, AgentPolicy, Block, Budget, EffectId, ErrorClass, Json, ModelFailure, ModelPolicy,
    Record, RunId, RunPolicy, Seq, SessionId, StopReason, Timestamp, ToolCall, ToolSpec, ToolStatus, Usage,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{BackendMaker, StuckHolder};
use provost_harness::{Backend, BackendError, Clock, Executor, Posted, RunLease, SimulatedClock};

/// The deadline of every wait.
const DEADLINE: Duration = Duration::from_secs(10);
/// The start time of a backend's clock.
const START: Timestamp = Timestamp(100_000_000);

/// One place, and a clock for all backends on it.
pub(super) struct Bench<'a, M: BackendMaker> {
    maker: &'a M,
    place: M::StoreLocation,
    pub(super) clock: Arc<SimulatedClock>,
}

impl<'a, M: BackendMaker> Bench<'a, M> {
    pub(super) async fn new(maker: &'a M) -> Self {
        Self { maker, place: maker.place().await, clock: Arc::new(SimulatedClock::at(START)) }
    }

    pub(super) async fn open(&self) -> Arc<dyn Backend> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        soon("a backend opens", self.maker.open(&self.place, clock)).await
    }

    pub(super) async fn hold(&self, run: RunId) -> Option<Box<dyn StuckHolder>> {
        soon("a run is held", self.maker.hold(&self.place, run)).await
    }
}

/// A served run, and the effects it requests.
pub(super) struct Served {
    pub(super) guard: Box<dyn RunLease>,
    pub(super) stop: CancellationToken,
    calls: mpsc::UnboundedReceiver<Call>,
}

/// An effect to be performed.
pub(super) struct Call {
    pub(super) id: EffectId,
    pub(super) effect: Effect,
    pub(super) cancel: CancellationToken,
    pub(super) answer: oneshot::Sender<Event>,
}

/// Passes every effect to the check.
struct Hands(mpsc::UnboundedSender<Call>);

#[async_trait]
impl Executor for Hands {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        let (answer, answered) = oneshot::channel();
        let told = self.0.send(Call { id, effect, cancel, answer });
        match (told, answered.await) {
            (Ok(()), Ok(event)) => event,
            // The check has dropped the call: it is never answered.
            _ => std::future::pending().await,
        }
    }
}

pub(super) async fn try_serve(backend: &Arc<dyn Backend>, run: RunId) -> Result<Served, BackendError> {
    let (sender, calls) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let guard = soon("a claim is decided", backend.serve(run, Arc::new(Hands(sender)), stop.clone())).await?;
    assert_eq!(guard.run(), run);
    Ok(Served { guard, stop, calls })
}

pub(super) async fn serve(backend: &Arc<dyn Backend>, run: RunId) -> Served {
    ok(try_serve(backend, run).await)
}

/// Serves a run that another backend may still be releasing.
pub(super) async fn serve_when_free(backend: &Arc<dyn Backend>, run: RunId) -> Served {
    let free = async {
        loop {
            match try_serve(backend, run).await {
                Err(BackendError::Held { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
                other => return ok(other),
            }
        }
    };
    soon("the run is given up", free).await
}

impl Served {
    /// The next effect that is started.
    pub(super) async fn call(&mut self) -> Call {
        tokio::select! {
            call = soon("an effect is begun", self.calls.recv()) => {
                call.unwrap_or_else(|| panic!("no executor performs effects any more"))
            }
            error = self.guard.failed() => panic!("the backend gave up: {error}"),
        }
    }

    /// The next effect, which must be a call of this tool.
    pub(super) async fn tool(&mut self, name: &str) -> Call {
        let call = self.call().await;
        assert!(call.is_of(name), "not a call of `{name}`: {:?}", call.effect);
        call
    }

    /// The next two effects: a call of `look` and one of `once`, which may begin in any order.
    pub(super) async fn look_and_once(&mut self) -> LookAndOnce {
        let mut look = self.call().await;
        let mut once = self.call().await;
        if once.is_of("look") {
            std::mem::swap(&mut look, &mut once);
        }
        assert!(look.is_of("look") && once.is_of("once"), "{:?}, {:?}", look.effect, once.effect);
        LookAndOnce { look, once }
    }

    pub(super) fn no_call(&mut self) {
        if let Ok(call) = self.calls.try_recv() {
            panic!("{} was begun: {:?}", call.id, call.effect);
        }
    }
}

/// The calls of a turn with [`asks_for_both`].
pub(super) struct LookAndOnce {
    pub(super) look: Call,
    pub(super) once: Call,
}

impl Call {
    fn is_of(&self, name: &str) -> bool {
        matches!(&self.effect, Effect::RunTool(tool) if tool.tool == name)
    }

    pub(super) fn answer(self, event: Event) {
        assert!(self.answer.send(event).is_ok(), "nothing waits for the result of {}", self.id);
    }

    /// The model gives its final answer.
    pub(super) fn done(self) {
        let event = done(self.id.seq);
        self.answer(event);
    }

    pub(super) fn aborted(self) {
        let failure = ModelFailure::new(ErrorClass::Aborted, "cancelled");
        let event = SessionEvent::ModelFailed { seq: self.id.seq, failure };
        self.answer(event.into());
    }
}

/// `what` must happen before the deadline.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

pub(super) fn ok<T>(result: Result<T, BackendError>) -> T {
    result.unwrap_or_else(|error| panic!("the backend failed: {error}"))
}

pub(super) fn run(number: u64) -> RunId {
    RunId::from_entropy(number)
}

pub(super) fn root(number: u64) -> ActorKey {
    SessionId::root(run(number)).into()
}

pub(super) async fn post(
    backend: &Arc<dyn Backend>,
    key: impl Into<ActorKey>,
    event: impl Into<Event>,
) -> Posted {
    ok(soon("a post is answered", backend.post(key.into(), event.into(), None)).await)
}

pub(super) async fn say(backend: &Arc<dyn Backend>, number: u64, text: String) {
    let said = RunEvent::Say { agent: 0, text, by: "ann".to_owned() };
    post(backend, run(number), said).await;
}

/// All entries of `key`.
pub(super) async fn log(backend: &Arc<dyn Backend>, key: impl Into<ActorKey>) -> Vec<Arc<Record>> {
    let (key, mut all, mut after) = (key.into(), Vec::new(), Seq::START);
    loop {
        let records = ok(soon("a log is read", backend.read(key, after, 100)).await);
        let Some(last) = records.last() else { return all };
        after = last.seq;
        all.extend(records);
    }
}

pub(super) async fn kinds(backend: &Arc<dyn Backend>, key: impl Into<ActorKey>) -> Vec<&'static str> {
    log(backend, key).await.iter().map(|record| record.entry.kind()).collect()
}

/// Waits until the log of `key` has an entry of kind `kind`.
pub(super) async fn entry(backend: &Arc<dyn Backend>, key: impl Into<ActorKey>, kind: &str) -> Arc<Record> {
    use futures::StreamExt as _;
    let mut records = backend.subscribe(key.into(), Seq::START);
    let found = async {
        while let Some(record) = records.next().await {
            let record = ok(record);
            if record.entry.kind() == kind {
                return record;
            }
        }
        panic!("the subscription ended")
    };
    soon(&format!("a `{kind}` is committed"), found).await
}

/// Has a tool that may be repeated, `look`, and one that may not be, `once`.
pub(super) fn policy(budget: Budget) -> RunPolicy {
    let tool = |name: &str, idempotent: bool| ToolSpec {
        access: Access::Reads,
        idempotent,
        output_bytes_max: 1000,
        ..ToolSpec::new(name, "does something", Json::empty_object())
    };
    let model = ModelPolicy::new("by/hand", 1000);
    let agent = AgentPolicy {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![tool("look", true), tool("once", false)],
        ..AgentPolicy::new(model, PathBuf::from("/somewhere"))
    };
    RunPolicy { budget, spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) }
}

pub(super) fn start(budget: Budget) -> RunEvent {
    RunEvent::Start {
        goal: "a goal".to_owned(),
        images: Vec::new(),
        policy: Box::new(policy(budget)),
        baseline: None,
    }
}

pub(super) fn done(seq: Seq) -> Event {
    answered(seq, vec![Block::Text("Done.".to_owned())], StopReason::EndTurn)
}

/// The model calls `look` this many times at once.
pub(super) fn asks_for_tools(seq: Seq, count: usize) -> Event {
    asks_for(seq, &vec!["look"; count])
}

/// The model calls `look` and then `once`, at once.
pub(super) fn asks_for_both(seq: Seq) -> Event {
    asks_for(seq, &["look", "once"])
}

fn asks_for(seq: Seq, tools: &[&str]) -> Event {
    let call = |(number, name): (usize, &&str)| {
        Block::ToolCall(ToolCall {
            id: format!("call-{number}").as_str().into(),
            name: (*name).to_owned(),
            input: Json::empty_object(),
            malformed: None,
        })
    };
    answered(seq, tools.iter().enumerate().map(call).collect(), StopReason::ToolUse)
}

fn answered(seq: Seq, content: Vec<Block>, stop: StopReason) -> Event {
    let answer = Answer { cost: None, content, usage: Usage::default(), model: "by-hand".to_owned(), stop };
    SessionEvent::Answered { seq, answer }.into()
}

pub(super) fn tool_done(seq: Seq, output: String) -> Event {
    let result = ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: provost_event::CallFacts::default(),
        status: ToolStatus::Ok,
        output,
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
    };
    SessionEvent::ToolDone { seq, result }.into()
}
