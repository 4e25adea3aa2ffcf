//! (a) A turn with a scripted model in this process: a model call, a tool call, and the log made durable twice.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{
    Block, GoalPolicy, ModelFailure, ModelPolicy, Outcome, Purpose, RunPolicy, StopReason, Usage,
};
use provost_harness::{DeltaSink, Model, ModelRequest, NoCallback};
use provost_llm::ScriptedModel;
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::agent::{self, Store};
use crate::case::Case;
use crate::disk;
use crate::measure::Start;
use crate::sample::{Sample, count, repeated};
use crate::table::{self, Target};

/// Microseconds of CPU time a turn may take besides the sync itself.
const TARGET_US: f64 = 150.0;
/// What a commit of such a turn writes to SQLite's log, on average.
const PAGES_A_COMMIT: usize = 6;

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let turns = options.sized(2000, 10_000);
    let size = format!("{turns} turns");
    table::head("A turn with a scripted model");
    let sync_us = disk::syncs(options.dir(), PAGES_A_COMMIT)?.cpu_us;
    let samples = repeated(&Case::Turn { store: Store::Sqlite, turns }, options.dir(), options.runs)?;
    let row = |what: &str, unit: &str, target, value: &dyn Fn(&Sample) -> f64| {
        table::row(what, &size, unit, &samples.iter().map(value).collect::<Vec<_>>(), target)
    };
    let synced_us = |sample: &Sample| sample.each(count(sample.commits)) * sync_us;
    let commit_us = |sample: &Sample| sample.each(sample.commit_cpu.as_secs_f64() * 1e6);
    row("CPU, besides the sync", "µs/turn", Target::AtMost(TARGET_US), &|s| s.cpu_us() - synced_us(s));
    row("CPU, all of it", "µs/turn", Target::None, &Sample::cpu_us);
    row("of it the system's", "µs/turn", Target::None, &|s| s.each(s.system.as_secs_f64() * 1e6));
    row("of it in COMMIT (write and sync)", "µs/turn", Target::None, &commit_us);
    row("of it syncs, as a bare sync costs", "µs/turn", Target::None, &synced_us);
    row("commits", "/turn", Target::None, &|s| s.each(count(s.commits)));
    row("wall clock", "turns/s", Target::None, &Sample::per_second);
    let samples = repeated(&Case::Turn { store: Store::Memory, turns }, options.dir(), options.runs)?;
    let cpu = samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
    table::row("CPU with the log in memory", &size, "µs/turn", &cpu, Target::None);
    let samples = repeated(&Case::TurnWithGoal { turns }, options.dir(), options.runs)?;
    let cpu = samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
    table::row("CPU with a goal, the log in memory", &size, "µs/turn", &cpu, Target::None);
    Ok(())
}

/// One run of `turns` turns.
pub(crate) async fn case(store: Store, turns: usize, dir: &Path) -> anyhow::Result<Sample> {
    let model = ScriptedModel::parse(&script(turns, 0), "bench")?;
    run(store, turns, (Arc::new(model), agent::policy(dir)?), dir).await
}

/// The same with a goal: the cost of measuring its progress, and one verification.
pub(crate) async fn case_with_goal(turns: usize, dir: &Path) -> anyhow::Result<Sample> {
    let model = ScriptedModel::parse(&script(turns, 0), "bench")?;
    let mut policy = agent::policy(dir)?;
    let judge = ModelPolicy::new(agent::MODEL, 1_024);
    // The tool does nothing, which is no progress.
    let goal = GoalPolicy { stuck_turns: u32::MAX, ..GoalPolicy::new("The tool was called.", judge) };
    policy.agent.goal = Some(Box::new(goal));
    run(Store::Memory, turns, (Arc::new(Agrees(model)), policy), dir).await
}

/// A model that, as a judge, finds every goal reached.
struct Agrees(ScriptedModel);

#[async_trait]
impl Model for Agrees {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        if request.purpose != Purpose::Judge {
            return self.0.answer(request, deltas, cancel).await;
        }
        let verdict = r#"{"achieved": true, "reasoning": "It was called.", "confidence": 1}"#;
        let usage = Usage { input_tokens: 1_000, output_tokens: 40, ..Usage::default() };
        let content = vec![Block::Text(verdict.to_owned())];
        Ok(Answer { content, usage, model: agent::MODEL.to_owned(), stop: StopReason::EndTurn, cost: None })
    }
}

async fn run(
    store: Store,
    turns: usize,
    (model, policy): (Arc<dyn Model>, RunPolicy),
    dir: &Path,
) -> anyhow::Result<Sample> {
    let (backend, spent) = agent::backend(store, dir)?;
    let harness = agent::harness(Arc::new(backend), model, Arc::new(NoCallback))?;
    let start = Start::now()?;
    let mut run = harness.start(agent::run_id(), agent::GOAL, policy).await?;
    let outcome = run.run(&CancellationToken::new()).await?;
    let mut sample = start.sample(turns)?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "the run came to {outcome:?}");
    (sample.commits, sample.commit_cpu) = spent.so_far();
    Ok(sample)
}

/// Answers with their usage, so that the model needn't measure the conversation. The last one comes after
/// `hold_ms`.
pub(crate) fn script(turns: usize, hold_ms: u64) -> String {
    let mut script = "answers:\n".to_owned();
    for number in 1..turns {
        // Writing to a String can't fail.
        let _ = writeln!(
            script,
            "- {{ text: I'll call the tool once more and look at what it says., tools: [{{ noop: {{ n: {number} }} }}], usage: {{ input: 1000, output: 40 }} }}"
        );
    }
    let _ = writeln!(
        script,
        "- {{ text: I am done., delay_ms: {hold_ms}, usage: {{ input: 1000, output: 40 }} }}"
    );
    script
}
