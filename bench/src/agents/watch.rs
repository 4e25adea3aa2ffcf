//! Watches a run's model calls: when each agent begins and ends, the size of its messages, and the process's
//! memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{AgentEntry, Block, Entry, ModelFailure, RunId, Seq, SessionId, StopReason};
use provost_harness::{Backend, DeltaSink, Message, Model, ModelRequest, Part};
use provost_llm::ProviderModel;
use tokio_util::sync::CancellationToken;

use crate::measure::memory_kib;
use crate::sample::Sample;

/// How often the memory is measured.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Records read at a time.
const AT_ONCE: usize = 1000;

/// What was measured of all agents.
pub(super) struct Watching {
    since: Instant,
    answers: AtomicUsize,
    live: AtomicUsize,
    message_bytes: AtomicU64,
    agents: Vec<Mutex<Agent>>,
}

/// What was measured of one agent; times in microseconds.
#[derive(Default, Clone, Copy)]
struct Agent {
    first_called: Option<u64>,
    first_answered: Option<u64>,
    last_answered: Option<u64>,
    messages: usize,
    bytes: u64,
}

/// The median and the 99th percentile, in microseconds.
pub(super) type Delays = [u64; 2];

impl Watching {
    pub(super) fn of(agents: usize) -> Self {
        Self {
            since: Instant::now(),
            answers: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            message_bytes: AtomicU64::new(0),
            agents: (0..agents).map(|_| Mutex::default()).collect(),
        }
    }

    pub(super) fn answers(&self) -> usize {
        self.answers.load(Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn change<T>(&self, session: SessionId, change: impl FnOnce(&mut Agent) -> T) -> Option<T> {
        let agent = self.agents.get(usize::try_from(session.agent).ok()?)?;
        Some(change(&mut agent.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn called(&self, session: SessionId, messages: &[Arc<Message>]) {
        let now = self.now();
        self.change(session, |agent| {
            if agent.first_called.is_none() {
                agent.first_called = Some(now);
                self.live.fetch_add(1, Relaxed);
            }
            let new = messages.iter().skip(agent.messages).map(|message| words(message)).sum::<u64>();
            (agent.messages, agent.bytes) = (messages.len(), agent.bytes + new);
            self.message_bytes.fetch_add(new, Relaxed);
        });
    }

    fn answered(&self, session: SessionId, answer: &Answer) {
        let now = self.now();
        self.answers.fetch_add(1, Relaxed);
        self.change(session, |agent| {
            agent.first_answered = agent.first_answered.or(Some(now));
            if answer.stop == StopReason::EndTurn {
                agent.last_answered = Some(now);
                self.live.fetch_sub(1, Relaxed);
                self.message_bytes.fetch_sub(agent.bytes, Relaxed);
            }
        });
    }

    fn seen(&self, session: SessionId) -> Agent {
        self.change(session, |agent| *agent).unwrap_or_default()
    }

    /// The delays from an answer that starts agents, and from an answer that ends an agent, to the first model
    /// call of the agent that gets the slot, as the run's log pairs them.
    pub(super) async fn delays(&self, backend: &dyn Backend, run: RunId) -> anyhow::Result<(Delays, Delays)> {
        let (mut asked, mut freed) = (Vec::new(), Vec::new());
        let (mut after, mut before, mut parents) = (Seq::START, None, std::collections::HashMap::new());
        loop {
            let records = backend.read(run.into(), after, AT_ONCE).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            for record in &records {
                let began = |child: SessionId| self.seen(child).first_called;
                match (&record.entry, before.take()) {
                    (Entry::Agent(AgentEntry::Spawned(spawned)), _) => {
                        parents.insert(spawned.child, spawned.parent);
                    }
                    (Entry::Agent(AgentEntry::Started(started)), Some(ended)) => {
                        let delay = began(started.child).zip(self.seen(ended).last_answered);
                        freed.extend(delay.map(|(began, ended)| began.saturating_sub(ended)));
                    }
                    (Entry::Agent(AgentEntry::Started(started)), None) => {
                        let parent = parents.get(&started.child).copied().flatten();
                        let asked_at = parent.and_then(|parent| self.seen(parent).first_answered);
                        let delay = began(started.child).zip(asked_at);
                        asked.extend(delay.map(|(began, asked)| began.saturating_sub(asked)));
                    }
                    (Entry::Agent(AgentEntry::Finished(finished)), _) => before = Some(finished.child),
                    _ => {}
                }
            }
        }
        Ok((percentiles(asked), percentiles(freed)))
    }
}

fn percentiles(mut delays: Vec<u64>) -> Delays {
    delays.sort_unstable();
    let at = |percent: usize| delays.get(delays.len() * percent / 100).copied().unwrap_or_default();
    [at(50), at(99)]
}

/// The bytes of a message's text, each counted once.
fn words(message: &Message) -> u64 {
    let bytes = message.parts.iter().map(|part| match part {
        Part::Block(Block::Text(text)) => text.len(),
        Part::Block(Block::ToolCall(call)) => call.name.len() + call.input.text().len(),
        Part::ToolResult { output, .. } => output.len(),
        Part::Block(_) | Part::Image(_) => 0,
    });
    u64::try_from(bytes.sum::<usize>()).unwrap_or(u64::MAX)
}

/// A model that is watched.
pub(super) struct Watched {
    model: ProviderModel,
    watching: Arc<Watching>,
}

impl Watched {
    pub(super) const fn new(model: ProviderModel, watching: Arc<Watching>) -> Self {
        Self { model, watching }
    }
}

#[async_trait]
impl Model for Watched {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        self.watching.called(request.session, request.messages);
        let answer = self.model.answer(request, deltas, cancel).await?;
        self.watching.answered(request.session, &answer);
        Ok(answer)
    }
}

/// Measures the process's memory until it is dropped.
pub(super) struct Memory {
    stop: Arc<AtomicBool>,
    looking: JoinHandle<anyhow::Result<Peak>>,
}

/// The maximum of memory, messages and working agents.
#[derive(Default)]
pub(super) struct Peak {
    grown_kib: u64,
    message_kib: u64,
    live: usize,
}

impl Peak {
    pub(super) fn tell(self, sample: &mut Sample) {
        (sample.grown_kib, sample.message_kib, sample.live) = (self.grown_kib, self.message_kib, self.live);
    }
}

impl Memory {
    pub(super) fn watch(watching: &Arc<Watching>) -> anyhow::Result<Self> {
        let before_kib = memory_kib("VmRSS")?;
        let stop = Arc::<AtomicBool>::default();
        let (stopped, watching) = (Arc::clone(&stop), Arc::clone(watching));
        let looking = std::thread::spawn(move || {
            let mut peak = Peak::default();
            while !stopped.load(Relaxed) {
                let (live, bytes) = (watching.live.load(Relaxed), watching.message_bytes.load(Relaxed));
                let grown_kib = memory_kib("VmRSS")?.saturating_sub(before_kib);
                peak = Peak {
                    grown_kib: peak.grown_kib.max(grown_kib),
                    message_kib: peak.message_kib.max(bytes / 1024),
                    live: peak.live.max(live),
                };
                std::thread::sleep(LOOK_EVERY);
            }
            Ok(peak)
        });
        Ok(Self { stop, looking })
    }

    pub(super) fn end(self) -> anyhow::Result<Peak> {
        self.stop.store(true, Relaxed);
        self.looking.join().map_err(|_| anyhow!("the thread that looks at the memory panicked"))?
    }
}
