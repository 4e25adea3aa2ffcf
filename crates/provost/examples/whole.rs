//! All of it at once: a model, a tool, a hook, observers, a stop hook, a sub-agent, a judged goal, a budget, and a log
//! that outlives the agent.
//!
//! `cargo run -p provost --example whole`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use provost::prelude::*;

/// Takes pieces from the stock.
#[derive(Deserialize, JsonSchema)]
struct Take {
    /// How many.
    number: u32,
}

/// The model and the judge. A real one is a name, such as `Agent::builder("anthropic/claude-sonnet-4-5")`.
const SCRIPT: &str = "
answers:
  - tools: [{ take: { number: 1000 } }, { counter: { goal: Count the stock. } }]
  - tools: [{ take: { number: 3 } }]
  - text: 'Three are taken. VERDICT: PASS'
  - tools: [{ take: { number: 1 } }]
  - text: 'Four are taken. VERDICT: PASS'
  - text: 'They are still four. VERDICT: PASS'
verdicts:
  - { achieved: true, confidence: 0.9, reasoning: Four were taken. }
  - { achieved: true, confidence: 0.9, reasoning: They are four. }
agents: [{ goal: Count the stock, answers: [{ text: 'There are ten. VERDICT: PASS' }] }]";

pub(crate) async fn whole(database: &std::path::Path) -> Result<[Finished; 2], Box<dyn std::error::Error>> {
    let stock = Arc::new(AtomicU32::new(0));
    let build = |taken: Arc<AtomicU32>| {
        let stock = Arc::clone(&taken);
        let take = tool(move |take: Take| {
            let before = taken.fetch_add(take.number, SeqCst);
            async move { format!("{} taken in all", before + take.number) }
        });
        Agent::builder(ScriptedModel::parse(SCRIPT, "SCRIPT")?)
            .tool(take)
            .hook::<PreToolCall>("not-too-many", |call| match call.arguments.text().contains("1000") {
                true => PreToolCallAction::Deny("at most ten at once".to_owned()),
                false => PreToolCallAction::Continue,
            })
            .observe("kinds", |event| println!("{}", event.kind.name()))
            .observer("cost", CostTracker::new().observer())
            .stop_hook_fn("even", move |_| match stock.load(SeqCst).is_multiple_of(2) {
                true => StopHookVerdict::Allow,
                false => StopHookVerdict::Block("an odd number is taken; take one more".to_owned()),
            })
            .sub_agent(SubAgent::new("counter", "Counts the stock.").max_turns(5))
            .goal("An even number of pieces is taken.")
            .budget(Budget::default().tokens(100_000).dollars(0.50).time(Duration::from_secs(600)))
            .sqlite(database)
            .build()
            .map_err(Box::<dyn std::error::Error>::from)
    };
    let first = build(Arc::clone(&stock))?.run("Take an even number from the stock.").await?;
    // Another process, days later: the run goes on with its conversation and its budget.
    let mut run = build(stock)?.open(first.run).await?;
    run.resume(Some("How many are taken now?"), Budget::default()).await?;
    Ok([first, run.finish().await?])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("provost-whole-{}", std::process::id()));
    for finished in whole(&folder.join("runs.db")).await? {
        println!("{} ({} tokens): {}", finished.outcome, finished.tokens, finished.text);
    }
    Ok(std::fs::remove_dir_all(folder)?)
}
