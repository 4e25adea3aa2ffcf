//! A stage for runs with goals: an agent and judges with scripted answers, a store on disk, and the log in short
//! lines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, SessionStore};
use provost_engine::{Actor, Answer, GoalStatus, RunEvent};
use provost_event::{
    Access, ActorKey, AgentEntry, AgentPolicy, Block, Budget, BudgetEntry, CallId, ConversationEntry, Entry,
    ErrorClass, GateEntry, GoalEntry, GoalFinding, GoalPolicy, Json, JudgeAnswer, LifecycleEntry,
    MicroDollars, ModelEntry, ModelFailure, ModelPolicy, Outcome, Price, Purpose, Record, RunId, RunPolicy,
    Seq, SessionId, StopReason, Timestamp, ToolCall, ToolSpec, ToolSubject, Usage,
};
use provost_harness::{
    AgentHarness, Backend, BackendError, Clock, DeltaSink, Harness, HarnessDeps, HarnessError, Log as _,
    Model, ModelRequest, Models, Observers, Part, SimulatedClock, SystemClock, Tool, ToolContext, ToolOutput,
    ToolRegistry,
};
use provost_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const RUN: RunId = RunId::from_entropy(107);
pub(crate) const ROOT: SessionId = SessionId::root(RUN);
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// The start of a simulated clock.
pub(crate) const BEGIN: Timestamp = Timestamp(1_000_000);
pub(crate) const DONE: Outcome = Outcome::VERIFIED;
pub(crate) const AGENT: &str = "agent";
pub(crate) const JUDGE: &str = "judge";
/// A dollar for a million tokens of any kind.
pub(crate) const PRICE: Price = Price {
    input: MicroDollars(1_000_000),
    output: MicroDollars(1_000_000),
    cache_read: MicroDollars(1_000_000),
    cache_write: MicroDollars(1_000_000),
    long: None,
};
/// The usage of each answer, and of each failed call.
pub(crate) const OF_AGENT: u64 = 110;
pub(crate) const OF_JUDGE: u64 = 55;
pub(crate) const OF_FAILURE: u64 = 7;

// ---- the models
// ---------------------------------------------------------------------------------------------------

/// A model's answer.
#[derive(Clone)]
pub(crate) enum Say {
    Text(String),
    Calls(Vec<(&'static str, Value)>),
    Fails(ErrorClass, Option<u64>),
    /// No answer until it is cancelled; then it stops.
    Hangs,
    /// No answer until it is released or cancelled.
    Stuck(Arc<Semaphore>, Box<Self>),
    /// No answer until it is cancelled; then it answers all the same.
    Late(Box<Self>),
    /// No answer until it is released, cancelled or not.
    Held(Arc<Semaphore>, Box<Self>),
}

pub(crate) fn text(text: &str) -> Say {
    Say::Text(text.to_owned())
}

/// A call of `act` that differs from all calls with another `n`.
pub(crate) fn act(n: u32) -> Say {
    Say::Calls(vec![("act", json!({ "n": n }))])
}

pub(crate) fn yes() -> Say {
    verdict(true, 0.9)
}

pub(crate) fn no() -> Say {
    verdict(false, 0.8)
}

pub(crate) fn verdict(achieved: bool, confidence: f64) -> Say {
    let reasoning = if achieved { "It is there." } else { "It isn't there." };
    let suggestions: &[&str] = if achieved { &[] } else { &["make it"] };
    let json = json!({
        "achieved": achieved, "reasoning": reasoning, "confidence": confidence, "suggestions": suggestions,
    });
    Say::Text(json.to_string())
}

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct JudgeRequest {
    pub(crate) session: SessionId,
    pub(crate) model: &'static str,
    pub(crate) purpose: Purpose,
    pub(crate) system: String,
    /// A line for each message.
    pub(crate) conversation: Vec<String>,
}

/// All requests to all models.
pub(crate) type Tape = watch::Sender<Vec<JudgeRequest>>;

/// Answers with its lines for each agent, the last one forever; agents without lines of their own share the
/// root's.
struct Voice {
    name: &'static str,
    lines: BTreeMap<u32, Vec<Say>>,
    tape: Tape,
    /// Whether a request's reported tokens are at least a quarter of its bytes.
    counts: bool,
}

#[async_trait]
impl Model for Voice {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        self.tape.send_modify(|tape| {
            tape.push(JudgeRequest {
                session: request.session,
                model: self.name,
                purpose: request.purpose,
                system: request.system.to_owned(),
                conversation: request
                    .messages
                    .iter()
                    .map(|m| format!("{:?} {:?}", m.role, m.parts))
                    .collect(),
            });
        });
        let say = match request.purpose {
            Purpose::Turn | Purpose::Judge | Purpose::External | Purpose::Hook => {
                self.line(request.session.agent, request.answers_before)
            }
            Purpose::FinalSummary => text("So far, so good."),
            Purpose::Summary => text("In short: it was worked on."),
        };
        let mut answer = speak(say, &request, cancel).await?;
        if self.counts {
            let text = |part: &Part| match part {
                Part::Block(Block::Text(text)) => text.len(),
                Part::Block(Block::ToolCall(call)) => call.input.text().len(),
                Part::ToolResult { output, .. } => output.len(),
                Part::Block(_) | Part::Image(_) => 0,
            };
            let bytes = request.messages.iter().flat_map(|message| &message.parts).map(text).sum::<usize>();
            answer.usage.input_tokens = answer.usage.input_tokens.max(bytes as u64 / 4);
        }
        Ok(answer)
    }
}

impl Voice {
    fn line(&self, agent: u32, answers_before: u32) -> Say {
        let lines = self.lines.get(&agent).or_else(|| self.lines.get(&0)).unwrap();
        lines.get(answers_before as usize).or(lines.last()).unwrap().clone()
    }
}

async fn speak(
    mut say: Say,
    request: &ModelRequest<'_>,
    cancel: &CancellationToken,
) -> Result<Answer, ModelFailure> {
    let (input_tokens, output_tokens) = if request.purpose == Purpose::Judge { (50, 5) } else { (100, 10) };
    loop {
        let content = match say {
            Say::Text(text) => vec![Block::Text(text)],
            Say::Calls(calls) => {
                let call = |(place, (tool, input)): (usize, &(&str, Value))| {
                    let id = CallId(format!("{}-{place}", request.answers_before).into());
                    let input = Json::of(input).unwrap();
                    Block::ToolCall(ToolCall { id, name: (*tool).to_owned(), input, malformed: None })
                };
                calls.iter().enumerate().map(call).collect()
            }
            Say::Fails(class, retry_after_ms) => {
                let usage = Usage { input_tokens: OF_FAILURE, ..Usage::default() };
                let failure = ModelFailure::new(class, "not now");
                return Err(ModelFailure { usage, retry_after_ms, ..failure });
            }
            Say::Hangs => {
                cancel.cancelled().await;
                say = Say::Fails(ErrorClass::Aborted, None);
                continue;
            }
            Say::Stuck(gate, then) => {
                say = tokio::select! {
                    _ = gate.acquire() => *then,
                    () = cancel.cancelled() => Say::Fails(ErrorClass::Aborted, None),
                };
                continue;
            }
            Say::Late(then) => {
                cancel.cancelled().await;
                // The task that cancelled it has continued by then.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                say = *then;
                continue;
            }
            Say::Held(gate, then) => {
                gate.acquire().await.unwrap().forget();
                say = *then;
                continue;
            }
        };
        let has_calls = content.iter().any(|block| matches!(block, Block::ToolCall(_)));
        let stop = if has_calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        return Ok(Answer { cost: None, content, usage, model: "the voice".to_owned(), stop });
    }
}

// ---- the tools
// ----------------------------------------------------------------------------------------------------

/// Returns its arguments, or always the same.
struct Act(ToolSpec);

#[async_trait]
impl Tool for Act {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        ToolOutput::ok(format!("acted on {}", input.text()))
    }
}

pub(crate) fn act_spec() -> ToolSpec {
    ToolSpec {
        name: "act".into(),
        description: "Acts.".into(),
        input_schema: Json::empty_object(),
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 60_000,
        output_bytes_max: 10_000,
    }
}

/// A goal with `judges`, each with this output cap.
pub(crate) fn goal(judges: &[&str]) -> GoalPolicy {
    let judge = |name: &&str| ModelPolicy { price: Some(PRICE), ..ModelPolicy::new(*name, 300) };
    let goal = GoalPolicy::new("It is there.", judge(&judges[0]));
    GoalPolicy { judges: judges.iter().map(judge).collect(), ..goal }
}

// ---- the stage ----------------------------------------------------------------------------------------------------

/// A store, a clock, and the models; any number of processes can serve its run, one after the other.
pub(crate) struct Stage {
    pub(crate) folder: Arc<TempDir>,
    pub(crate) clock: Arc<dyn Clock>,
    voices: BTreeMap<&'static str, BTreeMap<u32, Vec<Say>>>,
    others: Vec<(&'static str, Arc<dyn Model>)>,
    pub(crate) tape: Tape,
    observers: Observers,
    counts: bool,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            folder,
            clock: Arc::new(SystemClock),
            voices: BTreeMap::new(),
            others: Vec::new(),
            tape: watch::Sender::default(),
            observers: Observers::new(),
            counts: false,
        }
    }

    /// A stage with a simulated clock.
    pub(crate) fn simulated() -> (Self, Arc<SimulatedClock>) {
        let clock = Arc::new(SimulatedClock::at(BEGIN));
        (Self { clock: clock.clone(), ..Self::new() }, clock)
    }

    /// The root's lines.
    pub(crate) fn agent(self, lines: impl Into<Vec<Say>>) -> Self {
        self.voice(AGENT, 0, lines)
    }

    /// The only judge's lines.
    pub(crate) fn judge(self, lines: impl Into<Vec<Say>>) -> Self {
        self.voice(JUDGE, 0, lines)
    }

    /// The answers of `name` to `agent`, or about it.
    pub(crate) fn voice(mut self, name: &'static str, agent: u32, lines: impl Into<Vec<Say>>) -> Self {
        self.voices.entry(name).or_default().insert(agent, lines.into());
        self
    }

    pub(crate) fn model(mut self, name: &'static str, model: Arc<dyn Model>) -> Self {
        self.others.push((name, model));
        self
    }

    pub(crate) fn watched(self, observers: Observers) -> Self {
        Self { observers, ..self }
    }

    /// A stage whose models count their requests.
    pub(crate) fn counting(self) -> Self {
        Self { counts: true, ..self }
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("provost.db")
    }

    /// A policy with a goal and its only judge, changed by `change`.
    pub(crate) fn policy(&self, change: impl FnOnce(&mut RunPolicy)) -> RunPolicy {
        let mut policy = RunPolicy::new(AgentPolicy {
            goal: Some(Box::new(goal(&[JUDGE]))),
            system_prompt: "Be good.".to_owned(),
            tools: vec![act_spec()],
            ..AgentPolicy::new(
                ModelPolicy { price: Some(PRICE), ..ModelPolicy::new(AGENT, 1_000) },
                self.folder.path().join("work"),
            )
        });
        change(&mut policy);
        policy
    }

    /// A separate process, as far as the store can tell.
    pub(crate) fn process(&self, store: impl SessionStore) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let backend = Arc::new(EmbeddedBackend::new(store, self.clock.clone()).unwrap());
        let mut models = Models::new();
        for (name, lines) in &self.voices {
            let voice = Voice { name, lines: lines.clone(), tape: self.tape.clone(), counts: self.counts };
            models = models.with(*name, Arc::new(voice));
        }
        for (name, model) in &self.others {
            models = models.with(*name, model.clone());
        }
        let tools = ToolRegistry::new().with(Act(act_spec()));
        let deps = HarnessDeps {
            clock: self.clock.clone(),
            observers: self.observers.clone(),
            ..HarnessDeps::new(backend.clone(), models, tools)
        };
        (AgentHarness::new(deps), backend)
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(self.database()).unwrap()
    }

    /// Starts a run whose policy is changed by `change`.
    pub(crate) async fn start(&self, change: impl FnOnce(&mut RunPolicy)) -> Playing {
        let (harness, backend) = self.process(self.store());
        let run = harness.start(RUN, "Make it.", self.policy(change)).await.unwrap();
        Playing { run, backend, tape: self.tape.clone(), _folder: self.folder.clone() }
    }

    /// Continues the run in another process, as soon as the previous one has released it.
    pub(crate) async fn open(&self) -> Playing {
        let (harness, backend) = self.process(self.store());
        let claim = async {
            loop {
                match harness.open(RUN).await {
                    Err(HarnessError::Backend(BackendError::Held { .. })) => tokio::task::yield_now().await,
                    opened => return opened.unwrap(),
                }
            }
        };
        let run = timeout(DEADLINE, claim).await.expect("the run is let go of");
        Playing { run, backend, tape: self.tape.clone(), _folder: self.folder.clone() }
    }

    /// Another process, which only posts.
    pub(crate) fn elsewhere(&self) -> Arc<EmbeddedBackend> {
        Arc::new(EmbeddedBackend::new(self.store(), self.clock.clone()).unwrap())
    }
}

/// A served run.
pub(crate) struct Playing {
    pub(crate) run: Harness,
    pub(crate) backend: Arc<EmbeddedBackend>,
    tape: Tape,
    /// Keeps the store's folder until the run is dropped.
    _folder: Arc<TempDir>,
}

impl Playing {
    pub(crate) async fn goes(&mut self) -> Outcome {
        let cancel = CancellationToken::new();
        match timeout(DEADLINE, self.run.run(&cancel)).await {
            Ok(outcome) => outcome.unwrap(),
            Err(_) => panic!("it hangs:\n{}", told(&self.log(ROOT).await)),
        }
    }

    pub(crate) async fn resumed(&mut self, turns_max: Option<u32>) -> Outcome {
        self.run.resume("ann", Budget::default(), turns_max).await.unwrap();
        self.goes().await
    }

    /// Does something while the run continues by itself, and then waits for its suspension or end.
    pub(crate) async fn goes_while(&mut self, meanwhile: impl Future<Output = ()>) -> Outcome {
        let cancel = CancellationToken::new();
        let both = timeout(DEADLINE, async { tokio::join!(self.run.run(&cancel), meanwhile) }).await;
        match both {
            Ok((outcome, ())) => outcome.unwrap(),
            Err(_) => panic!("it hangs:\n{}", self.told_of_all().await),
        }
    }

    pub(crate) async fn log(&self, actor: impl Into<ActorKey>) -> Vec<Arc<Record>> {
        self.backend.read(actor.into(), Seq::START, 10_000).await.unwrap()
    }

    pub(crate) async fn told(&self) -> String {
        told(&self.log(ROOT).await)
    }

    async fn told_of_all(&self) -> String {
        let mut all = String::new();
        for actor in self.backend.actors(RUN).await.unwrap() {
            all += &format!("{actor}\n{}", told(&self.log(actor).await));
        }
        all
    }

    pub(crate) async fn goal(&self) -> GoalStatus {
        goal_of(&*self.backend, ROOT).await
    }

    /// Calls and tokens charged to the run, by model.
    pub(crate) async fn charged(&self) -> BTreeMap<String, (usize, u64)> {
        charged(&self.log(RUN).await)
    }

    pub(crate) fn asked(&self) -> Vec<JudgeRequest> {
        self.tape.borrow().clone()
    }
}

/// Waits until judges were called this many times.
pub(crate) async fn judges_asked(tape: &Tape, times: usize) {
    let mut tape = tape.subscribe();
    let are_asked = |tape: &Vec<JudgeRequest>| {
        tape.iter().filter(|asked| asked.purpose == Purpose::Judge).count() >= times
    };
    timeout(DEADLINE, tape.wait_for(are_asked)).await.expect("a judge is asked").unwrap();
}

/// Waits until `actor`'s log has this many entries that match `wanted`.
pub(crate) async fn until(
    backend: &EmbeddedBackend,
    actor: impl Into<ActorKey>,
    times: usize,
    wanted: impl Fn(&Entry) -> bool,
) {
    let actor = actor.into();
    let look = async {
        loop {
            let log = backend.read(actor, Seq::START, 10_000).await.unwrap();
            if log.iter().filter(|record| wanted(&record.entry)).count() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, look).await.expect("it is in the log");
}

/// Clears the goal of another process's run.
pub(crate) async fn clear(backend: &EmbeddedBackend, agent: u32) {
    let event = RunEvent::ClearGoal { agent, by: "ann".to_owned() };
    backend.post(RUN.into(), event.into(), None).await.unwrap();
}

pub(crate) async fn goal_of(backend: &dyn Backend, session: SessionId) -> GoalStatus {
    match backend.state(session.into()).await.unwrap() {
        Actor::Session(state) => state.goal().expect("it has a goal"),
        Actor::Run(_) => panic!("a session"),
    }
}

/// The usage of each model by its provider's report: how many calls, and tokens. A lost call has none.
pub(crate) fn charged(run: &[Arc<Record>]) -> BTreeMap<String, (usize, u64)> {
    let mut charged = BTreeMap::<String, (usize, u64)>::new();
    for record in run {
        if let Entry::Budget(BudgetEntry::Charged(paid)) = &record.entry {
            let sum = charged.entry(paid.model.clone()).or_default();
            let reported = match paid.usage.certainty {
                provost_event::Certainty::Unconfirmed => 0,
                _ => paid.usage.total(),
            };
            *sum = (sum.0 + 1, sum.1 + reported);
        }
    }
    charged
}

// ---- the log in short ---------------------------------------------------------------------------------------------

/// A session's log, a line for each entry about goals, suspensions and turns.
pub(crate) fn told(log: &[Arc<Record>]) -> String {
    log.iter().filter_map(|record| line(&record.entry)).map(|line| line + "\n").collect()
}

fn line(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::Judge => {
            "  ask a judge".to_owned()
        }
        Entry::Conversation(ConversationEntry::AssistantMessage(_)) => "the agent answers".to_owned(),
        Entry::Conversation(ConversationEntry::FinalSummary(_)) => "final summary".to_owned(),
        Entry::Gate(GateEntry::StopChecked(_)) => "  stop hooks answer".to_owned(),
        Entry::Goal(GoalEntry::CheckStarted(check)) => {
            format!("verify: {:?}, turn {}, generation {}", check.trigger, check.turn, check.generation)
        }
        Entry::Goal(GoalEntry::Judged(judged)) => {
            let stale = if judged.stale { ", too late" } else { "" };
            let wait = judged.wait_ms.map(|ms| format!(", wait {ms} ms")).unwrap_or_default();
            let answer = match &judged.answer {
                JudgeAnswer::Verdict(verdict) => {
                    format!("{} at {}", if verdict.achieved { "yes" } else { "no" }, verdict.confidence)
                }
                JudgeAnswer::Failed(error) => format!("failed: {error}"),
            };
            format!("  {} for generation {}: {answer}{wait}{stale}", judged.judge, judged.generation)
        }
        Entry::Goal(GoalEntry::Verdict(verdict)) => {
            let finding = match &verdict.finding {
                GoalFinding::Achieved { confidence, .. } => format!("achieved at {confidence}"),
                GoalFinding::NotAchieved { reasoning, .. } => format!("not achieved: {reasoning:?}"),
                GoalFinding::Unverified { why } => format!("unverified: {why}"),
            };
            format!("  verdict on turn {}: {finding}", verdict.turn)
        }
        Entry::Goal(GoalEntry::Cleared(cleared)) => format!("cleared by {}", cleared.by),
        Entry::Conversation(ConversationEntry::SystemItem(item)) => format!("  told: {:?}", item.item),
        Entry::Model(ModelEntry::Retried(retry)) => format!("  retry: {:?}", retry.cause),
        Entry::Conversation(ConversationEntry::TurnEnded(ended)) => format!("turn {} ends", ended.turn),
        Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => format!("stop: {}", stop.outcome),
        Entry::Agent(AgentEntry::MustYield(_)) => "yield".to_owned(),
        Entry::Lifecycle(LifecycleEntry::Paused(paused)) => format!("paused: {}", paused.outcome),
        Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => format!("resumed: {:?}", resumed.cause),
        Entry::Lifecycle(LifecycleEntry::Ended(ended)) => format!("ended: {}", ended.outcome),
        _ => return None,
    })
}
