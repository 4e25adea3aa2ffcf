//! Random runs, on the embedded backend and on the cluster: the logs are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent};
use provost_event::{ActorKey, Block, EffectId, Json, RunId, Seq, SessionId, StopReason, ToolCall, Usage};
use provost_harness::{Backend, BackendError, Executor, RunLease, RunPosition, SystemClock, read_run};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::support::{Server, engine, run, soon, start, tool_ran, worker};

const SEEDS: u64 = 12;

/// An effect that waits for its result.
struct Call {
    id: EffectId,
    effect: Effect,
    answer: oneshot::Sender<Event>,
}

struct Hands(mpsc::UnboundedSender<Call>);

#[async_trait]
impl Executor for Hands {
    async fn run(&self, id: EffectId, effect: Effect, _: CancellationToken) -> Event {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Call { id, effect, answer });
        match answered.await {
            Ok(event) => event,
            Err(_) => std::future::pending().await,
        }
    }
}

/// A run that is driven by hand.
struct Drive<'a> {
    backend: &'a Arc<dyn Backend>,
    run: RunId,
    random: fastrand::Rng,
    guard: Option<Box<dyn RunLease>>,
    calls: mpsc::UnboundedReceiver<Call>,
}

impl<'a> Drive<'a> {
    async fn new(backend: &'a Arc<dyn Backend>, run: RunId, seed: u64) -> Self {
        let (_, calls) = mpsc::unbounded_channel();
        let mut drive = Self { backend, run, random: fastrand::Rng::with_seed(seed), guard: None, calls };
        drive.serve().await;
        drive
    }

    async fn serve(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.release().await;
        }
        let (sender, calls) = mpsc::unbounded_channel();
        self.calls = calls;
        loop {
            match self
                .backend
                .serve(self.run, Arc::new(Hands(sender.clone())), CancellationToken::new())
                .await
            {
                Ok(guard) => return self.guard = Some(guard),
                Err(BackendError::Held { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn call(&mut self) -> Call {
        soon("an effect is begun", self.calls.recv()).await.expect("a call")
    }

    async fn post(&self, actor: impl Into<ActorKey>, event: impl Into<Event>) -> bool {
        self.backend.post(actor.into(), event.into(), None).await.expect("a decision").changed
    }

    /// Turns with random numbers of tools, whose results come in any order, twice, or after a crash.
    async fn work(&mut self) {
        self.post(self.run, start()).await;
        for _ in 0..self.random.u8(1..5) {
            let model = self.call().await;
            assert!(matches!(model.effect, Effect::CallModel(_)), "{:?}", model.effect);
            if self.random.u8(..) < 60 {
                // It is made again.
                self.serve().await;
                self.answer_tools().await;
                continue;
            }
            let count = self.random.usize(1..5);
            model.answer.send(asks(model.id.seq, count)).expect("it is awaited");
            self.tools(count).await;
        }
        let model = self.call().await;
        let seq = model.id.seq;
        model.answer.send(done(seq)).expect("it is awaited");
        let ended = async {
            while self
                .backend
                .get(self.run)
                .await
                .ok()
                .flatten()
                .is_none_or(|run| !matches!(run.status, provost_harness::RunStatus::Stopped(_)))
            {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        soon("it ends", ended).await;
        assert!(!self.post(SessionId::root(self.run), done(seq)).await, "a late result counted");
    }

    async fn answer_tools(&mut self) {
        let model = self.call().await;
        let count = self.random.usize(1..5);
        model.answer.send(asks(model.id.seq, count)).expect("it is awaited");
        self.tools(count).await;
    }

    async fn tools(&mut self, count: usize) {
        let mut open = Vec::new();
        for _ in 0..count {
            open.push(self.call().await);
        }
        if self.random.u8(..) < 60 {
            self.serve().await;
            open.clear();
            for _ in 0..count {
                open.push(self.call().await);
            }
        }
        open.sort_by_key(|call| call.id.seq);
        self.random.shuffle(&mut open);
        for call in open {
            if self.random.u8(..) < 60 {
                let say = RunEvent::Say { agent: 0, text: "And now?".to_owned(), by: "ann".to_owned() };
                self.post(self.run, say).await;
            }
            let seq = call.id.seq;
            // Posted by hand, so that the next decision comes after it on both.
            let result = || SessionEvent::ToolDone { seq, result: tool_ran(format!("seen {seq}")) };
            self.post(SessionId::root(self.run), result()).await;
            if self.random.bool() {
                assert!(!self.post(SessionId::root(self.run), result()).await, "it counted twice");
            }
        }
    }

    /// The kinds of all entries, in the order of the run and of each log, without times.
    async fn log(&self) -> (Vec<String>, BTreeMap<String, Vec<&'static str>>) {
        let placed =
            read_run(&**self.backend, self.run, RunPosition::START, usize::MAX).await.expect("a run");
        let name = |actor: ActorKey| match actor {
            ActorKey::Run(_) => "run".to_owned(),
            ActorKey::Session(session) => session.agent.to_string(),
        };
        let order = placed.iter().map(|placed| {
            format!("{} {} {}", name(placed.record.actor), placed.record.seq, placed.record.entry.kind())
        });
        let mut logs = BTreeMap::new();
        for actor in self.backend.actors(self.run).await.expect("actors") {
            let log = self.backend.read(actor, Seq::START, usize::MAX).await.expect("a log");
            logs.insert(name(actor), log.iter().map(|record| record.entry.kind()).collect());
        }
        (order.collect(), logs)
    }
}

fn asks(seq: Seq, count: usize) -> Event {
    let call = |number: usize| {
        Block::ToolCall(ToolCall {
            id: format!("call-{seq}-{number}").as_str().into(),
            name: "look".to_owned(),
            input: Json::parse(format!(r#"{{"at":"{seq}-{number}"}}"#)).expect("JSON"),
            malformed: None,
        })
    };
    answered(seq, (0..count).map(call).collect(), StopReason::ToolUse)
}

fn done(seq: Seq) -> Event {
    answered(seq, vec![Block::Text("Done.".to_owned())], StopReason::EndTurn)
}

fn answered(seq: Seq, content: Vec<Block>, stop: StopReason) -> Event {
    let answer = Answer { cost: None, content, usage: Usage::default(), model: "by-hand".to_owned(), stop };
    SessionEvent::Answered { seq, answer }.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_runs_have_the_log_that_they_have_on_the_embedded_backend() {
    let Some(server) = Server::start().await else { return };
    let folder = TempDir::new().unwrap();
    let (cluster, _worker) = worker(engine(&server, folder.path()), "w").await;
    let cluster: Arc<dyn Backend> = Arc::new(cluster);
    let embedded = EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap();
    let embedded: Arc<dyn Backend> = Arc::new(embedded);
    for seed in 0..SEEDS {
        let mut logs = Vec::new();
        for backend in [&embedded, &cluster] {
            let mut drive = Drive::new(backend, run(seed + 1), seed).await;
            drive.work().await;
            logs.push(drive.log().await);
        }
        assert_eq!(logs[1], logs[0], "seed {seed}");
    }
}
