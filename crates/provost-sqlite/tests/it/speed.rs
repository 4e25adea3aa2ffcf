//! Speed measurements. Ignored: `cargo test --release -p provost-sqlite -- --ignored --nocapture speed`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use provost_backend::{EmbeddedBackend, MemoryStore, NewEntry, SessionStore};
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent, ToolResult};
use provost_event::{
    ActorKey, AssistantMessage, Block, Budget, EffectId, Elapsed, Entry, Json, LifecycleEntry, ModelCalled,
    Record, RunId, Seq, SessionId, SessionStarted, StopReason, Timestamp, ToolCall, ToolFinished,
    ToolStarted, ToolStatus, TurnEnded, Usage,
};
use provost_harness::{Backend, Executor, Log as _, SystemClock};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{ended, policy, run, start};

const OUTPUT: &str = "a line of what a tool says, as long as lines usually are, and then a little longer\n";

fn tool_call(number: u64) -> Block {
    Block::ToolCall(ToolCall {
        id: format!("call_{number}").as_str().into(),
        name: "look".to_owned(),
        input: Json::parse(format!(r#"{{"path":"src/file_{number}.rs","offset":{number}}}"#)).unwrap(),
        malformed: None,
    })
}

fn usage() -> Usage {
    Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() }
}

/// Asks for one tool a turn, then ends.
struct Instantly {
    turns: u32,
}

#[async_trait]
impl Executor for Instantly {
    async fn run(&self, id: EffectId, effect: Effect, _cancel: CancellationToken) -> Event {
        let seq = id.seq;
        match effect {
            Effect::CallModel(model_call) => {
                let (block, stop) = if model_call.turn < self.turns {
                    (tool_call(u64::from(model_call.turn)), StopReason::ToolUse)
                } else {
                    (Block::Text("Done.".to_owned()), StopReason::EndTurn)
                };
                let content = vec![Block::Text("I'll look at the next file.".to_owned()), block];
                let answer = Answer { cost: None, content, usage: usage(), model: "m".to_owned(), stop };
                SessionEvent::Answered { seq, answer }.into()
            }
            _ => {
                let output = OUTPUT.repeat(6);
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
        }
    }
}

/// CPU time of this process: its own, and the kernel's for it.
fn cpu() -> [Duration; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().collect::<Vec<_>>();
    [11, 12].map(|field| Duration::from_millis(fields[field].parse::<u64>().unwrap() * 10))
}

async fn agent(backend: Arc<dyn Backend>, run: RunId, turns: u32) {
    use futures::StreamExt as _;
    let watcher = {
        let mut records = backend.subscribe(SessionId::root(run).into(), Seq::START);
        tokio::spawn(async move {
            while !matches!(
                records.next().await.unwrap().unwrap().entry,
                Entry::Lifecycle(LifecycleEntry::Ended(_))
            ) {}
        })
    };
    let guard = backend.serve(run, Arc::new(Instantly { turns }), CancellationToken::new()).await.unwrap();
    backend.post(run.into(), start(policy(Budget::default(), turns + 1)).into(), None).await.unwrap();
    ended(&*backend, run).await;
    watcher.await.unwrap();
    guard.release().await;
}

async fn turns(name: &str, store: impl SessionStore, agents: u32, turns: u32) {
    let backend: Arc<dyn Backend> = Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap());
    let (began, before) = (Instant::now(), cpu());
    join_all((0..agents).map(|number| agent(backend.clone(), run(number.into()), turns))).await;
    let (took, after) = (began.elapsed(), cpu());
    let all = f64::from(agents * turns);
    let per_turn = |index: usize| (after[index] - before[index]).as_secs_f64() * 1e6 / all;
    let (user, system) = (per_turn(0), per_turn(1));
    println!(
        "{name} {agents:5} agents x {turns:5} turns: {:8.1} turns/s, {:6.1} µs CPU a turn ({user:.1} user, {system:.1} system)",
        all / took.as_secs_f64(),
        user + system,
    );
}

#[tokio::test]
#[ignore = "measures"]
async fn speed_of_turns() {
    for (agents, count) in [(1, 2000), (8, 1000), (64, 200), (1000, 20)] {
        turns("memory", MemoryStore::new(), agents, count).await;
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        turns("sqlite", store, agents, count).await;
    }
}

fn long_log(session: SessionId, entries: u64) -> Vec<NewEntry> {
    let RunEvent::Start { goal, images, policy, .. } = start(policy(Budget::default(), 1_000_000)) else {
        unreachable!()
    };
    let first = Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted {
        goal,
        images,
        policy: policy.agent,
        parent: None,
        depth: 0,
        call: None,
        agent: None,
        worktree: None,
        fork: None,
        reminder_id: String::new(),
    }));
    let rest = (0..entries).map(|number| {
        let turn = u32::try_from(number / 5 + 1).unwrap();
        let Block::ToolCall(call) = tool_call(u64::from(turn)) else { unreachable!() };
        match number % 5 {
            0 => ModelCalled {
                turn,
                call: turn,
                attempt: 1,
                purpose: provost_event::Purpose::Turn,
                output_tokens_max: 1000,
                time_left: None,
            }
            .into(),
            1 => AssistantMessage {
                turn,
                call: turn,
                content: vec![Block::Text("I'll look.".to_owned()), Block::ToolCall(call)],
                usage: usage(),
                cost: None,
                model: "m".to_owned(),
                stop: StopReason::ToolUse,
            }
            .into(),
            2 => ToolStarted {
                call: call.id,
                tool: call.name,
                input: call.input,
                again: false,
                outside: false,
                replaced_by: None,
            }
            .into(),
            3 => ToolFinished {
                plan: None,
                facts: provost_event::CallFacts::default(),
                call: call.id,
                tool: call.name,
                status: ToolStatus::Ok,
                output: OUTPUT.repeat(6),
                images: Vec::new(),
                whole: None,
                duration_ms: 3,
                memory: None,
            }
            .into(),
            _ => TurnEnded { turn, tool_calls: 1 }.into(),
        }
    });
    let entries = std::iter::once(first).chain(rest).zip(1..);
    entries.map(|(entry, seq)| new_entry(session, seq, entry)).collect()
}

fn new_entry(session: SessionId, seq: u64, entry: Entry) -> NewEntry {
    let record = Record {
        actor: ActorKey::Session(session),
        seq: Seq(seq),
        at: Timestamp(seq),
        elapsed: Elapsed::default(),
        entry,
    };
    NewEntry::new(record).unwrap()
}

/// A database with the logs of `sessions` sessions, each `length` entries long, written five at a time in turn.
fn write_in_turn(path: &Path, sessions: u64, length: u64) {
    let logs =
        (1..=sessions).map(|number| long_log(SessionId::root(run(number)), length)).collect::<Vec<_>>();
    let mut store = SqliteStore::open(path).unwrap();
    store.begin().unwrap();
    for from in (0..logs[0].len()).step_by(5) {
        for log in &logs {
            let piece = &log[from..log.len().min(from + 5)];
            let first = &piece[0].record;
            store.append(first.actor, Seq(first.seq.0 - 1), piece).unwrap();
        }
    }
    store.commit().unwrap();
}

#[tokio::test]
#[ignore = "measures"]
async fn speed_of_folding() {
    for (sessions, length) in [(1, 100_000), (16, 25_000)] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("provost.db");
        write_in_turn(&path, sessions, length);
        for number in [1, 1, sessions.div_ceil(2)] {
            let session = SessionId::root(run(number));
            let store = SqliteStore::open(&path).unwrap();
            let backend = EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap();
            let began = Instant::now();
            let proceed = SessionEvent::Proceed { turn: 0 };
            let posted = backend.post(session.into(), proceed.into(), None).await.unwrap();
            println!("{} entries of 1 of {sessions} logs folded in {:?}", posted.head, began.elapsed());
        }
    }
}

/// The cost of an entry: 20,000 of them appended five per commit, as a turn does, and all of them read back.
#[test]
#[ignore = "measures"]
fn speed_of_entries() {
    use provost_backend::StoreReader as _;
    const ENTRIES: u64 = 20_000;
    for round in 0..5 {
        let folder = TempDir::new().unwrap();
        let mut store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        let session = SessionId::root(run(1));
        let log = long_log(session, ENTRIES);
        let (began, before) = (Instant::now(), cpu());
        let mut head = Seq::START;
        for entries in log.chunks(5) {
            store.begin().unwrap();
            store.append(session.into(), head, entries).unwrap();
            store.commit().unwrap();
            head = entries.last().unwrap().record.seq;
        }
        let (appended, after) = (began.elapsed(), cpu());
        let began = Instant::now();
        let mut read = Seq::START;
        while let Some(last) = store.read(session.into(), read, 1_000).unwrap().last() {
            read = last.seq;
        }
        assert_eq!(read, head);
        let reading = began.elapsed();
        let commits = log.len().div_ceil(5);
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let each = |time: Duration| us(time) / commits as f64;
        println!(
            "round {round}: a commit of 5 entries {:.1} µs user, {:.1} system, {:.1} in all; 20,000 read in {:.1} ms",
            each(after[0] - before[0]),
            each(after[1] - before[1]),
            each(appended),
            us(reading) / 1e3
        );
    }
}
