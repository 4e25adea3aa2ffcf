//! Final summaries at each limit, from outside: they are the run's text, they are charged, and no later request
//! has them.

use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{Actor, Answer};
use provost_event::{
    Block, Budget, ConversationEntry, Dimension, Entry, ErrorClass, FinalSummaryFinished, MicroDollars,
    ModelFailure, Outcome, Price, Purpose, Record, RunPolicy, StopReason, Timestamp, ToolEntry, Usage,
};
use provost_harness::{
    AgentHarness, Clock, DeltaSink, Harness, HarnessDeps, Log as _, Model, ModelRequest, SimulatedClock,
    SystemClock, ToolChoice,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::long_job::{GOAL, Job};
use super::long_provider::{Counting, FINAL_SUMMARY, Interference, MODEL, Provider};
use super::long_stage::{RUN, SESSION, deps, policy};
use super::long_trial::{DEADLINE, DONE, read_log};

const WINDOW: u64 = 32_000;
/// A dollar for a million tokens of any kind: a token costs a millionth of a dollar.
const PRICE: Price = Price {
    input: MicroDollars(1_000_000),
    output: MicroDollars(1_000_000),
    cache_read: MicroDollars(1_000_000),
    cache_write: MicroDollars(1_000_000),
    long: None,
};
/// The start of the clock of a run with a time limit, and the limit.
const BEGIN: Timestamp = Timestamp(1_000_000);
const TIME_MS: u64 = 10_000;
/// The time after which only a final summary is possible.
const TIME_FOR_WORK_MS: u64 = 9_000;

/// Calls the provider, and advances the clock at a given answer.
struct Slow {
    provider: Arc<Provider>,
    clock: Arc<SimulatedClock>,
    /// The answer that takes the rest of the time for work.
    late_at: u32,
    /// Whether the time for the final summary passes too.
    is_mute: bool,
}

#[async_trait]
impl Model for Slow {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let passes_ms = match request.purpose {
            Purpose::Turn if request.answers_before == self.late_at => TIME_FOR_WORK_MS,
            Purpose::FinalSummary if self.is_mute => TIME_MS - TIME_FOR_WORK_MS,
            _ => return self.provider.answer(request, deltas, cancel).await,
        };
        self.clock.advance_ms(passes_ms);
        cancel.cancelled().await;
        Err(ModelFailure::new(ErrorClass::Aborted, "cancelled"))
    }
}

/// A run with a limit, and its provider.
struct Scene {
    run: Harness,
    backend: Arc<EmbeddedBackend>,
    provider: Arc<Provider>,
}

/// A run of many small calls, with these limits.
async fn scene(bound: impl FnOnce(&mut RunPolicy), interference: Option<Interference>) -> Scene {
    let provider = Arc::new(provider(interference));
    begin(bound, provider.clone(), provider, Arc::new(SystemClock)).await
}

fn provider(interference: Option<Interference>) -> Provider {
    let tokenizer = tiktoken_rs::cl100k_base_singleton();
    let provider = Provider::new(Job::of(30).talking(60), Counting::fair(WINDOW), tokenizer);
    match interference {
        Some(interference) => provider.interfered(interference),
        None => provider,
    }
}

async fn begin(
    bound: impl FnOnce(&mut RunPolicy),
    model: Arc<dyn Model>,
    provider: Arc<Provider>,
    clock: Arc<dyn Clock>,
) -> Scene {
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock.clone()).unwrap());
    let mut policy = policy(Some(WINDOW), &std::env::temp_dir());
    policy.agent.model.price = Some(PRICE);
    policy.agent.tools.iter_mut().for_each(|tool| tool.output_bytes_max = 60);
    bound(&mut policy);
    let harness = AgentHarness::new(HarnessDeps { clock, ..deps(backend.clone(), model) });
    let run = harness.start(RUN, GOAL, policy).await.unwrap();
    Scene { run, backend, provider }
}

impl Scene {
    async fn goes(&mut self) -> Outcome {
        timeout(DEADLINE, self.run.run(&CancellationToken::new())).await.expect("it is suspended").unwrap()
    }

    async fn resumed(&mut self, budget: Budget, turns_max: Option<u32>) -> Outcome {
        self.run.resume("ann", budget, turns_max).await.unwrap();
        self.goes().await
    }

    /// The run's text.
    async fn text(&self) -> String {
        match self.backend.state(SESSION.into()).await.unwrap() {
            Actor::Session(session) => session.last_text().to_owned(),
            Actor::Run(_) => panic!("it is a session"),
        }
    }

    /// Tokens and money charged.
    async fn charged(&self) -> (u64, u64) {
        match self.backend.state(RUN.into()).await.unwrap() {
            Actor::Run(run) => (run.ledger().tokens, run.ledger().cost.0),
            Actor::Session(_) => panic!("it is a run"),
        }
    }

    async fn log(&self) -> Vec<Arc<Record>> {
        read_log(&*self.backend).await
    }

    /// The final summaries in the log.
    async fn final_summary_finished(&self) -> Vec<FinalSummaryFinished> {
        let log = self.log().await;
        let words = log.iter().filter_map(|record| match &record.entry {
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => Some(wrapped.clone()),
            _ => None,
        });
        words.collect()
    }

    /// There is one final summary, every invariant holds, and all of it is charged.
    async fn has_spoken(&self) {
        assert_eq!(self.text().await, FINAL_SUMMARY, "{:?}", self.final_summary_finished().await);
        let reported = {
            let seen = self.provider.seen.lock().unwrap();
            assert_eq!(seen.faults, [""; 0]);
            assert_eq!(seen.final_summary, 1, "{}", seen.figures());
            seen.reported.total()
        };
        assert_eq!(self.charged().await, (reported, reported));
    }
}

#[track_caller]
fn is_used_up(outcome: &Outcome, dimension: Dimension) {
    let is = matches!(outcome, Outcome::BudgetExhausted(exhausted) if exhausted.dimension == dimension);
    assert!(is, "{outcome}");
}

#[tokio::test]
async fn when_the_turns_are_used_up_the_agent_has_the_last_word() {
    let mut scene = scene(|policy| policy.agent.limits.turns_max = 5, None).await;
    is_used_up(&scene.goes().await, Dimension::Turns);
    scene.has_spoken().await;
    assert_eq!(scene.provider.seen.lock().unwrap().turns, 5);

    assert_eq!(scene.resumed(Budget::default(), Some(100)).await, DONE);
    assert_eq!(scene.provider.seen.lock().unwrap().faults, [""; 0]);
    assert_ne!(scene.text().await, FINAL_SUMMARY);
}

#[tokio::test]
async fn when_the_tokens_are_used_up_the_agent_has_the_last_word_within_them() {
    for limit in [8_000, 12_345, 20_000, 30_000] {
        let mut scene = scene(|policy| policy.budget.tokens = Some(limit), None).await;
        is_used_up(&scene.goes().await, Dimension::Tokens);
        scene.has_spoken().await;
        assert!(scene.charged().await.0 <= limit, "{} of {limit} tokens", scene.charged().await.0);
        assert!(scene.charged().await.0 * 3 > limit, "{} of {limit} tokens", scene.charged().await.0);

        let more = Budget { tokens: Some(u64::MAX), ..Budget::default() };
        assert_eq!(scene.resumed(more, None).await, DONE);
        assert_eq!(scene.provider.seen.lock().unwrap().faults, [""; 0]);
    }
}

#[tokio::test]
async fn when_the_money_is_used_up_the_agent_has_the_last_word_within_it() {
    let limit = MicroDollars(15_000);
    let mut scene = scene(|policy| policy.budget.money = Some(limit), None).await;
    is_used_up(&scene.goes().await, Dimension::Money);
    scene.has_spoken().await;
    assert!(scene.charged().await.1 <= limit.0, "{} of {}", scene.charged().await.1, limit.0);

    let more = Budget { money: Some(MicroDollars(u64::MAX)), ..Budget::default() };
    assert_eq!(scene.resumed(more, None).await, DONE);
    assert_eq!(scene.provider.seen.lock().unwrap().faults, [""; 0]);
}

/// A run whose model takes all of its time for its answer number 3.
async fn late(is_mute: bool) -> (Scene, Arc<SimulatedClock>) {
    let clock = Arc::new(SimulatedClock::at(BEGIN));
    let provider = Arc::new(provider(None));
    let model = Slow { provider: provider.clone(), clock: clock.clone(), late_at: 3, is_mute };
    let bound = |policy: &mut RunPolicy| policy.budget.wall_time_ms = Some(TIME_MS);
    (begin(bound, Arc::new(model), provider, clock.clone()).await, clock)
}

#[tokio::test]
async fn when_the_time_is_used_up_the_agent_has_the_last_word_within_it() {
    let (mut scene, clock) = late(false).await;
    is_used_up(&scene.goes().await, Dimension::WallTime);
    scene.has_spoken().await;
    assert_eq!(clock.now(), BEGIN.plus_ms(TIME_FOR_WORK_MS));
    assert_eq!(scene.provider.seen.lock().unwrap().turns, 3);
}

#[tokio::test]
async fn an_agent_that_has_no_final_summary_in_time_rests_without() {
    let (mut scene, clock) = late(true).await;
    is_used_up(&scene.goes().await, Dimension::WallTime);
    assert_eq!(clock.now(), BEGIN.plus_ms(TIME_MS));
    let wrapped = scene.final_summary_finished().await;
    assert_eq!(wrapped.len(), 1);
    assert!(wrapped[0].text.is_empty() && wrapped[0].problem.is_some(), "{wrapped:?}");
}

#[tokio::test]
async fn final_summary_that_fail_change_nothing_but_the_text() {
    let usage = Usage { input_tokens: 70, output_tokens: 7, ..Usage::default() };
    for class in
        [ErrorClass::Server, ErrorClass::RateLimited, ErrorClass::ContextTooLong, ErrorClass::Unauthorized]
    {
        let interference: Interference = Box::new(move |_, request| {
            let failure = ModelFailure { usage, ..ModelFailure::new(class, "not today") };
            (request.purpose == Purpose::FinalSummary).then_some(Err(failure))
        });
        let mut scene = scene(|policy| policy.agent.limits.turns_max = 4, Some(interference)).await;
        is_used_up(&scene.goes().await, Dimension::Turns);
        let wrapped = scene.final_summary_finished().await;
        assert_eq!(wrapped.len(), 1);
        assert!(
            wrapped[0].problem.as_ref().is_some_and(|problem| problem.contains("not today")),
            "{wrapped:?}"
        );
        let reported = scene.provider.seen.lock().unwrap().reported.total();
        assert_eq!(scene.charged().await.0, reported);
        assert_eq!(scene.resumed(Budget::default(), Some(100)).await, DONE);
    }
}

#[tokio::test]
async fn tools_that_final_summary_ask_for_are_not_called() {
    let interference: Interference = Box::new(|_, request| {
        if request.purpose != Purpose::FinalSummary {
            return None;
        }
        assert_eq!(request.tool_choice, ToolChoice::None);
        let (mut content, stop) = Job::of(3).answer(1);
        content.push(Block::Text(FINAL_SUMMARY.to_owned()));
        Some(Ok(Answer { cost: None, content, usage: Usage::default(), model: MODEL.to_owned(), stop }))
    });
    let mut scene = scene(|policy| policy.agent.limits.turns_max = 4, Some(interference)).await;
    is_used_up(&scene.goes().await, Dimension::Turns);
    assert!(scene.text().await.ends_with(FINAL_SUMMARY));
    let made = |scene: Vec<Arc<Record>>| {
        scene.iter().filter(|record| matches!(record.entry, Entry::Tool(ToolEntry::Started(_)))).count()
    };
    let calls = Job::of(30).calls_before(4).and_then(|calls| usize::try_from(calls).ok());
    assert_eq!(Some(made(scene.log().await)), calls);
}

#[tokio::test]
async fn who_has_just_said_that_all_is_done_is_not_asked_again() {
    let interference: Interference = Box::new(|_, request| {
        let content = vec![Block::Text("That was all.".to_owned())];
        let answer = Answer {
            cost: None,
            content,
            usage: Usage::default(),
            model: MODEL.to_owned(),
            stop: StopReason::EndTurn,
        };
        (request.answers_before == 3).then_some(Ok(answer))
    });
    let mut scene = scene(|policy| policy.agent.limits.turns_max = 4, Some(interference)).await;
    assert_eq!(scene.goes().await, DONE);
    assert_eq!(scene.text().await, "That was all.");
    assert_eq!(scene.final_summary_finished().await, []);
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_paused_has_no_final_summary() {
    for is_cancelled in [true, false] {
        let interference: Interference = Box::new(|_, request| {
            let failure = ModelFailure::new(ErrorClass::Server, "later");
            let failure = ModelFailure { retry_after_ms: Some(3_600_000), ..failure };
            (request.answers_before == 3).then_some(Err(failure))
        });
        let mut scene = scene(|_| {}, Some(interference)).await;
        while scene.provider.seen.lock().unwrap().turns < 3 {
            tokio::task::yield_now().await;
        }
        if is_cancelled {
            scene.run.control("ann").cancel(None).await.unwrap();
        } else {
            scene.run.control("ann").pause(None).await.unwrap();
        }
        let outcome = scene.goes().await;
        assert!(matches!(outcome, Outcome::Cancelled { .. } | Outcome::Paused { .. }), "{outcome}");
        assert_eq!(scene.final_summary_finished().await, []);
    }
}
