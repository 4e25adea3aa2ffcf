//! A tree of agents with a goal, and a workflow, during the same eight hours.

use provost_harness::Log as _;
use std::collections::BTreeMap;

use provost_engine::spawn_tool;
use provost_event::{
    BudgetEntry, Certainty, FlowPolicy, GoalPolicy, MicroDollars, ModelPolicy, Price, RunPolicy, StepPolicy,
};

use super::*;

/// Precedes the name of an agent in its goal.
const NAMED: &str = "Do the work of ";
/// Work of the workflow's first step.
const FIRST_STEPS: usize = 6;
/// The usage of an answer of this server.
const ANSWER_TOKENS: u64 = 20 + 9;
const PRICE: Price = Price {
    input: MicroDollars(3_000_000),
    output: MicroDollars(15_000_000),
    cache_read: MicroDollars(300_000),
    cache_write: MicroDollars(3_750_000),
    long: None,
};

/// The answers of the agents and the judge: they depend on the conversation only.
fn said(body: &str, is_late: bool) -> (String, String) {
    let request: Value = serde_json::from_str(body).expect("a request");
    if request["system"].to_string().contains("achieved") {
        // The root has claimed to be done before it did anything itself.
        let achieved = body.contains("of root-");
        let suggestions: &[&str] = if achieved { &[] } else { &["Do your own part."] };
        let verdict = json!({
            "achieved": achieved, "reasoning": "That is what is there.", "confidence": 0.9, "suggestions": suggestions,
        });
        return text(&verdict.to_string());
    }
    let name = body.split(NAMED).nth(1).expect("a name");
    let name = name.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    let of_sub_agents = if name == "root" { 2 } else { 0 };
    let done = body.matches("\"tool_result\"").count().saturating_sub(of_sub_agents);
    let answers = body.matches("\"role\":\"assistant\"").count();
    let brief = |name: &str| json!({"goal": format!("{NAMED}{name}."), "name": name});
    match (name.as_str(), answers) {
        ("root", 0) => calls(&[
            ("one".to_owned(), "spawn_agent", brief("one")),
            ("two".to_owned(), "spawn_agent", brief("two")),
        ]),
        ("root", 1) => text("It is done."),
        ("first", _) if done == FIRST_STEPS => text("The first step is done."),
        ("root" | "one" | "two" | "second", _) if is_late && done > 2 => text("It is done."),
        _ => calls(&[(format!("t{answers}"), "work", json!({"of": format!("of {name}-{done}")}))]),
    }
}

fn text(text: &str) -> (String, String) {
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    let blocks = vec![
        json!({"type": "content_block_start", "index": 0, "content_block": block}).to_string(),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}).to_string(),
        json!({"type": "content_block_stop", "index": 0}).to_string(),
    ];
    answer(blocks, "end_turn")
}

fn model_policy() -> ModelPolicy {
    ModelPolicy { price: Some(PRICE), ..policy().agent.model }
}

fn patient() -> RunPolicy {
    let mut policy = policy();
    policy.agent.model = model_policy();
    policy.agent.tools = vec![work_spec(), spawn_tool()];
    policy.agent.limits.outage_max_ms = 8 * HOUR_MS;
    policy.agent.limits.stuck_turns = 0;
    policy.agent.limits.turns_max = 300;
    policy
}

fn workflow() -> RunPolicy {
    let step = |name: &str, needs: &[&str]| StepPolicy {
        name: name.to_owned(),
        needs: needs.iter().map(|&need| need.to_owned()).collect(),
        agent: None,
        goal: format!("{NAMED}{name}."),
        stop_hooks: Vec::new(),
        attempts_max: 1,
        restarts_max: None,
        on_failure: provost_event::OnStepFailure::default(),
        budget: Budget::default(),
        priority: provost_event::Priority::Normal,
    };
    let steps = vec![step("first", &[]), step("second", &["first"])];
    RunPolicy { flow: Some(FlowPolicy { name: "night".to_owned(), file: None, steps }), ..patient() }
}

/// Continues a run until it is completed: a new key takes an hour, and so does more money. Returns its outcome.
async fn completed(harness: &AgentHarness, id: RunId, policy: RunPolicy, clock: &SimulatedClock) -> Outcome {
    let mut run = harness.start(id, &format!("{NAMED}root."), policy).await.expect("it starts");
    for _ in 0..20 {
        match run.run(&CancellationToken::new()).await.expect("it ends") {
            outcome @ Outcome::Completed { .. } => return outcome,
            Outcome::Paused { why: PauseReason::Model(trouble) } => {
                let cause = trouble.cause();
                assert!(matches!(cause, TroubleCause::Key | TroubleCause::Quota), "{trouble}");
                clock.sleep(std::time::Duration::from_millis(HOUR_MS)).await;
                run.resume("a test", Budget::default(), None).await.expect("it goes on");
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it is resumed again and again")
}

/// Calls and tokens charged to a run, by certainty.
async fn charged(backend: &EmbeddedBackend, run: RunId) -> BTreeMap<Certainty, (u64, u64)> {
    let records = backend.read(run.into(), Seq::START, 100_000).await.expect("a log");
    let mut charged = BTreeMap::<Certainty, (u64, u64)>::new();
    for record in records {
        let Entry::Budget(BudgetEntry::Charged(charge)) = &record.entry else { continue };
        assert_eq!(charge.cost, Some(PRICE.cost(charge.usage)), "{charge:?}");
        let (calls, tokens) = charged.entry(charge.usage.certainty).or_default();
        // A refusal has no usage.
        *calls += u64::from(charge.usage.total() > 0);
        *tokens += charge.usage.total();
    }
    charged
}

#[tokio::test]
async fn a_tree_with_a_goal_and_a_workflow_beside_it_are_done_once_and_every_answer_is_paid() {
    let clock = Arc::new(SimulatedClock::at(BEGAN));
    let mut tasks = JoinSet::new();
    let (model, sent) = provider(&clock, said, &mut tasks).await;
    let did = Arc::new(Mutex::new(Vec::new()));
    let work = Work { spec: work_spec(), clock: clock.clone(), done: did.clone() };
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock.clone()).expect("a backend"));
    let models = Models::new().with("anthropic/claude-test", Arc::new(model));
    let harness = AgentHarness::new(HarnessDeps {
        clock: clock.clone(),
        ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new().with(work))
    });
    let tree = RunId::from_entropy(81);
    let flow = RunId::from_entropy(82);
    let mut goal_policy = patient();
    goal_policy.agent.goal = Some(Box::new(GoalPolicy::new("All agents have worked.", model_policy())));
    let (verified, worked) = tokio::join!(
        completed(&harness, tree, goal_policy, &clock),
        completed(&harness, flow, workflow(), &clock),
    );
    assert_eq!((verified, worked), (Outcome::VERIFIED, Outcome::UNVERIFIED));
    assert!(clock.now().since_ms(BEGAN) >= 8 * HOUR_MS);

    let did = did.lock().expect("what is done").clone();
    for name in ["root", "one", "two", "first", "second"] {
        let of = format!("of {name}-");
        let done = did.iter().filter(|input| input.contains(&of)).collect::<Vec<_>>();
        let each_once = (0..done.len()).map(|step| format!("{{\"of\":\"{of}{step}\"}}")).collect::<Vec<_>>();
        assert_eq!(done, each_once.iter().collect::<Vec<_>>());
        assert!(done.len() > 2, "{name}: {done:?}");
    }
    let mut reported = (0, 0);
    for run in [tree, flow] {
        for (certainty, (calls, tokens)) in charged(&backend, run).await {
            assert_ne!(certainty, Certainty::Unconfirmed);
            if certainty == Certainty::Reported {
                reported = (reported.0 + calls, reported.1 + tokens);
            }
        }
    }
    let sent = sent.load(Ordering::SeqCst);
    assert_eq!(reported, (sent, sent * ANSWER_TOKENS));
}
