//! Provost inside another program: an agent with a tool, a hook, a stop hook and an observer of the program's own, taken
//! turn by turn.
//!
//! `cargo run -p provost-cli --example embed`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use provost_event::{
    Access, AgentPolicy, Budget, Json, Limits, ModelPolicy, Outcome, RunId, RunPolicy, SessionId, StepMode,
    StopHookPolicy, ToolFinished, ToolSpec, ToolSubject, TurnEnded,
};
use provost_harness::hooks::{HookOptions, HookRegistryError, PreToolCall, PreToolCallAction, from_fn};
use provost_harness::{
    AgentHarness, CostTracker, HarnessCallback, HarnessDeps, HookRegistry, Models, ObserverOptions,
    Observers, StopHookContext, StopHookHandler, StopHookVerdict, SystemClock, Tool, ToolContext, ToolOutput,
    ToolRegistry, TurnState, system_prompt,
};
use provost_llm::ScriptedModel;
use provost_store::{EmbeddedBackend, MemoryStore};
use tokio_util::sync::CancellationToken;

/// What the model says. A real one comes from `provost_llm::resolve`, or is anything that implements `Model`.
const SCRIPT: &str = "
answers:
  - text: I'll take two from the stock.
    tools: [{ take: { number: 2 } }]
  - text: 'Two are taken. VERDICT: PASS'
  - expect: { contains: an even number is left }
    text: Then I leave it at that, with your permission.
    tools: [{ take: { number: 1 } }]
  - text: 'Three are taken. VERDICT: PASS'
";

/// The program's own state, shared by its tool and its stop hook.
#[derive(Default)]
struct Stock(AtomicU64);

/// A tool: something the agent can do in the program.
struct Take {
    spec: ToolSpec,
    stock: Arc<Stock>,
}

impl Take {
    fn new(stock: Arc<Stock>) -> Result<Self, serde_json::Error> {
        let schema = r#"{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}"#;
        let spec = ToolSpec {
            name: "take".to_owned(),
            description: "Takes a number of pieces from the stock.".to_owned(),
            input_schema: Json::parse(schema.to_owned())?,
            // It changes something outside the workspace: no other call runs beside it, and after a crash the
            // agent is told that nobody knows whether it happened.
            access: Access::Anything,
            subject: ToolSubject::Opaque,
            aliases: Vec::new(),
            summary_field: None,
            idempotent: false,
            timeout_ms: 1_000,
            output_bytes_max: 1_000,
        };
        Ok(Self { spec, stock })
    }
}

#[async_trait]
impl Tool for Take {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        #[derive(serde::Deserialize)]
        struct Arguments {
            number: u64,
        }
        match input.read::<Arguments>() {
            Ok(Arguments { number }) => {
                let before = self.stock.0.fetch_add(number, Ordering::SeqCst);
                ToolOutput::ok(format!("{} taken in all", before + number))
            }
            Err(error) => ToolOutput::rejected(format!("`number` must be a whole number: {error}")),
        }
    }
}

/// A stop hook: whether the agent may stop is decided by the program.
struct OddNumber(Arc<Stock>);

#[async_trait]
impl StopHookHandler for OddNumber {
    fn name(&self) -> &'static str {
        "odd-number"
    }

    async fn evaluate(&self, _: &StopHookContext, _: &CancellationToken) -> StopHookVerdict {
        if self.0.0.load(Ordering::SeqCst).is_multiple_of(2) {
            StopHookVerdict::Block("an even number is left; take an odd one".to_owned())
        } else {
            StopHookVerdict::Allow
        }
    }
}

/// Who watches. Every method may be left out.
struct Printing;

impl HarnessCallback for Printing {
    fn on_tool_end(&self, _: SessionId, finished: &ToolFinished) {
        println!("  {}: {}", finished.tool, finished.output);
    }

    fn on_turn_end(&self, _: SessionId, ended: &TurnEnded) {
        println!("turn {} is over", ended.turn);
    }
}

/// What binds the run. It becomes the first entry of its log and doesn't change any more.
fn policy(tools: &ToolRegistry, workspace: &std::path::Path) -> RunPolicy {
    let hook = StopHookPolicy {
        name: "odd-number".to_owned(),
        command: None,
        timeout_ms: 1_000,
        on_error: provost_event::OnHookError::Ignore,
    };
    RunPolicy {
        budget: Budget { tokens: Some(100_000), ..Budget::default() },
        ..RunPolicy::new(AgentPolicy {
            system_prompt: system_prompt(workspace, ""),
            tools: tools.specs(),
            limits: Limits { turns_max: 10, ..Limits::default() },
            stop_hooks: vec![hook],
            step_mode: StepMode::Stepped,
            ..AgentPolicy::new(ModelPolicy::new("demo/scripted", 1_000), workspace.to_owned())
        })
    }
}

/// A hook: decides before each tool call. Others decide at other moments, each with its own few actions.
fn hooks() -> Result<HookRegistry, HookRegistryError> {
    let not_too_much = from_fn::<PreToolCall>(|asked| {
        if asked.arguments.text().contains("1000") {
            return PreToolCallAction::Deny("nobody takes a thousand at once".to_owned());
        }
        PreToolCallAction::Continue
    });
    HookRegistry::builder().on(HookOptions::new("not-too-much"), not_too_much).freeze()
}

/// Runs the agent; returns how it ended, and how many times there was more to do.
pub(crate) async fn embedded() -> Result<(Outcome, u32), Box<dyn Error>> {
    let stock = Arc::new(Stock::default());
    let tools = ToolRegistry::new().with(Take::new(stock.clone())?);
    let policy = policy(&tools, &std::env::current_dir()?);
    // `SqliteStore::open` keeps runs beyond the process.
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock))?);
    let models = Models::new().with("demo/scripted", Arc::new(ScriptedModel::parse(SCRIPT, "SCRIPT")?));
    // An observer: sees everything on a thread of its own, and can't hold up or break the run.
    let cost = CostTracker::new();
    let harness = AgentHarness::new(HarnessDeps {
        hooks: hooks()?,
        observers: Observers::new().with("cost", ObserverOptions::default(), cost.observer()),
        stop_hooks: vec![Arc::new(OddNumber(stock))],
        callback: Arc::new(Printing),
        ..HarnessDeps::new(backend, models, tools)
    });
    let run = RunId::from_entropy(fastrand::u64(..));
    let mut run = harness.start(run, "Take an odd number from the stock.", policy).await?;
    // Fires when the program wants the run to rest; `AgentHarness::open` goes on with it later.
    let cancel = CancellationToken::new();
    let mut turns = 0;
    loop {
        match run.run_turn(&cancel).await? {
            TurnState::Continue => turns += 1,
            TurnState::Done(outcome) => {
                println!("{} tokens", cost.totals().all.usage.total());
                return Ok((outcome, turns));
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (outcome, _) = embedded().await?;
    println!("{outcome}");
    Ok(())
}
