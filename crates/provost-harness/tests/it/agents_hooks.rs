//! Hooks about sub-agents, through the real harness.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use provost_event::{
    AgentEntry, Entry, GateEntry, HookContract, HookDecision, HookPoint, HookPolicy, HookProgram, HookSetup,
    OnFailure, Outcome, RunPolicy, Seq, SessionId, ToolEntry, ToolStatus,
};
use provost_harness::hooks::*;
use provost_harness::{
    AgentHarness, HarnessDeps, HookAnswer, HookPrograms, HookQuestion, Log as _, Models, Observers,
    ToolRegistry,
};
use provost_llm::ScriptedModel;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agents_stage::*;

const DEADLINE: Duration = Duration::from_secs(20);
const DONE: Outcome = Outcome::UNVERIFIED;

type Lines = Arc<Mutex<Vec<String>>>;

fn lines(of: &Lines) -> String {
    of.lock().expect("lines").iter().map(|line| format!("{line}\n")).collect()
}

async fn run_with(harness: &AgentHarness, policy: RunPolicy) -> Outcome {
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    timeout(DEADLINE, run.run(&CancellationToken::new())).await.expect("in time").expect("it is suspended")
}

/// Hooks that record their inputs, and return the actions of `spawn` and `child_end`.
fn noting(
    told: &Lines,
    spawn: fn(&OnSpawnInput<'_>) -> OnSpawnAction,
    child_end: fn(&OnChildEndInput<'_>) -> OnChildEndAction,
) -> HookRegistry {
    let (calls, spawns, ends, results) = (told.clone(), told.clone(), told.clone(), told.clone());
    HookRegistry::builder()
        .on(
            HookOptions::new("call"),
            from_fn::<PreToolCall>(move |input| {
                calls.lock().expect("lines").push(format!("{} calls {}", input.session.agent, input.tool));
                PreToolCallAction::Continue
            }),
        )
        .on(
            HookOptions::new("spawn"),
            from_fn::<OnSpawn>(move |input| {
                let OnSpawnInput { agent, name, goal, priority, depth, .. } = input;
                let asking = input.session.agent;
                let line =
                    format!("{asking} wants {agent:?} {name:?}: {goal:?}, {priority:?}, depth {depth}");
                spawns.lock().expect("lines").push(line);
                spawn(&input)
            }),
        )
        .on(
            HookOptions::new("child end"),
            from_fn::<OnChildEnd>(move |input| {
                let OnChildEndInput { agent, child, outcome, .. } = input;
                let said = input.summary.lines().next().unwrap_or_default();
                let asked = input.session.agent;
                let line = format!("{} ({agent:?}), asked by {asked}, is {outcome}: {said}", child.agent);
                ends.lock().expect("lines").push(line);
                child_end(&input)
            }),
        )
        .on(
            HookOptions::new("result"),
            from_fn::<PostToolCall>(move |input| {
                let (asked, tool, error) = (input.session.agent, input.tool, input.is_error);
                results
                    .lock()
                    .expect("lines")
                    .push(format!("{asked} has a result of {tool}, error: {error}"));
                PostToolCallAction::Continue
            }),
        )
        .freeze()
        .expect("hooks")
}

#[tokio::test]
async fn hooks_are_asked_before_an_agent_is_asked_for_and_when_it_is_done() {
    let told = Lines::default();
    let hooks = noting(&told, |_| OnSpawnAction::Continue, |_| OnChildEndAction::Continue);
    let script = "
answers: [{tools: [{reviewer: {goal: review it}}]}, {tools: [{spawn_agent: {goal: like me, name: twin, priority: low}}]}, {text: done}]
agents:
  - {goal: review it, answers: [{tools: [{worker: {goal: work on it}}]}, {text: reviewed}]}
  - {goal: work on it, answers: [{text: worked}]}
  - {goal: like me, answers: [{text: liked}]}
";
    let harness = harness(&backend(), script, Observers::new(), hooks);
    assert_eq!(run_with(&harness, policy()).await, DONE);
    expect![[r#"
        0 calls reviewer
        0 wants Some("reviewer") "reviewer": "review it", Some(High), depth 1
        1 calls worker
        1 wants Some("worker") "worker": "work on it", Some(Normal), depth 2
        2 (Some("worker")), asked by 1, is completed, not verified: worked
        1 has a result of worker, error: false
        1 (Some("reviewer")), asked by 0, is completed, not verified: reviewed
        0 has a result of reviewer, error: false
        0 calls spawn_agent
        0 wants None "twin": "like me", Some(Low), depth 1
        3 (None), asked by 0, is completed, not verified: liked
        0 has a result of spawn_agent, error: false
    "#]]
    .assert_eq(&lines(&told));
}

#[tokio::test]
async fn an_agent_that_a_hook_denies_never_is_and_the_call_says_why() {
    let told = Lines::default();
    let deny = |input: &OnSpawnInput<'_>| match input.depth {
        2 => OnSpawnAction::Deny("reviewers work alone".to_owned()),
        _ => OnSpawnAction::Continue,
    };
    let hooks = noting(&told, deny, |_| OnChildEndAction::Continue);
    let backend = backend();
    let harness = harness(&backend, TWO_LEVELS, Observers::new(), hooks);
    assert_eq!(run_with(&harness, policy()).await, DONE);
    expect![[r#"
        0 calls reviewer
        0 wants Some("reviewer") "reviewer": "review it", Some(High), depth 1
        1 calls worker
        1 wants Some("worker") "worker": "work on it", Some(Normal), depth 2
        1 (Some("reviewer")), asked by 0, is completed, not verified: reviewed
        0 has a result of reviewer, error: false
    "#]]
    .assert_eq(&lines(&told));
    let log = backend.read(SessionId { run: RUN, agent: 1 }.into(), Seq::START, 1_000).await.expect("a log");
    let result = log.iter().find_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some((finished.status, finished.output.as_str())),
        _ => None,
    });
    assert_eq!(result, Some((ToolStatus::Denied, "Denied by hook `spawn`: reviewers work alone")));
    let of_run = backend.read(RUN.into(), Seq::START, 1_000).await.expect("a log");
    assert_eq!(
        of_run.iter().filter(|record| matches!(record.entry, Entry::Agent(AgentEntry::Spawned(_)))).count(),
        1
    );
}

#[tokio::test]
async fn a_hook_may_end_the_run_when_an_agent_is_done() {
    let told = Lines::default();
    let abort = |input: &OnChildEndInput<'_>| match input.session.agent {
        1 => OnChildEndAction::Abort("that will do".to_owned()),
        _ => OnChildEndAction::Continue,
    };
    let hooks = noting(&told, |_| OnSpawnAction::Continue, abort);
    let harness = harness(&backend(), TWO_LEVELS, Observers::new(), hooks);
    let outcome = run_with(&harness, policy()).await;
    assert!(matches!(&outcome, Outcome::Aborted { reason, .. } if reason == "that will do"), "{outcome}");
}

#[tokio::test]
async fn an_agent_that_there_is_no_room_for_has_no_end() {
    let told = Lines::default();
    let hooks = noting(&told, |_| OnSpawnAction::Continue, |_| OnChildEndAction::Continue);
    let harness = harness(&backend(), TWO_LEVELS, Observers::new(), hooks);
    let mut policy = policy();
    policy.spawn.max_agents = 1;
    assert_eq!(run_with(&harness, policy).await, DONE);
    expect![[r#"
        0 calls reviewer
        0 wants Some("reviewer") "reviewer": "review it", Some(High), depth 1
        0 has a result of reviewer, error: true
    "#]]
    .assert_eq(&lines(&told));
}

#[tokio::test]
async fn spawn_hooks_stand_between_the_permissions_and_consent() {
    let told = Lines::default();
    let deny = |_: &OnSpawnInput<'_>| OnSpawnAction::Deny("none".to_owned());
    let script = "answers: [{tools: [{reviewer: {goal: r}}, {worker: {goal: w}}]}, {text: done}]";
    let backend = backend();
    let hooks = noting(&told, deny, |_| OnChildEndAction::Continue);
    let harness = harness(&backend, script, Observers::new(), hooks);
    let mut policy = policy();
    policy.agent.permissions.deny = vec!["reviewer".to_owned()];
    policy.agent.permissions.ask = vec!["worker".to_owned()];
    assert_eq!(run_with(&harness, policy).await, DONE);
    // Calls denied by permissions reach no hook, and calls denied by a hook reach no approver.
    let wants = lines(&told).lines().filter(|line| line.contains("wants")).count();
    assert!(wants == 1 && lines(&told).contains(r#"0 wants Some("worker")"#), "{}", lines(&told));
    let log = backend.read(SessionId::root(RUN).into(), Seq::START, 1_000).await.expect("a log");
    assert!(!log.iter().any(|record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_)))));
    let denied = log.iter().filter(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) => finished.status == ToolStatus::Denied,
        _ => false,
    });
    assert_eq!(denied.count(), 2);
}

/// Programs that record each question, and its agent.
struct Noting(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

#[async_trait]
impl HookPrograms for Noting {
    fn wants(&self, _: &HookPolicy, _: &HookQuestion, _: HookPoint) -> bool {
        true
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        _: HookPoint,
        _: &CancellationToken,
    ) -> HookAnswer {
        let agent = &question.agent;
        let parent = agent.parent.map(|parent| parent.agent);
        let who = format!("{:?} depth {} below {parent:?}", agent.name, agent.depth);
        self.0.lock().expect("notes").entry(hook.name.clone()).or_default().push(who);
        HookAnswer::only(HookDecision::Continue)
    }
}

fn program(point: HookPoint, contract: HookContract) -> HookPolicy {
    HookPolicy {
        name: format!("{} {contract:?}", point.name()),
        point,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: format!("{} {contract:?}", point.name()) }),
        contract,
        timeout_ms: 10_000,
        on_failure: OnFailure::Continue,
        may_remind: true,
        setup: HookSetup::default(),
    }
}

#[tokio::test]
async fn scripts_hear_of_a_sub_agent_as_of_a_sub_agent_and_of_the_root_as_of_a_session() {
    use HookPoint as M;
    let notes = Arc::new(Mutex::new(BTreeMap::new()));
    let model = ScriptedModel::parse(TWO_LEVELS, "script").expect("a script");
    let models = Models::new().with("script:test", Arc::new(model));
    let deps = HarnessDeps {
        hook_programs: Arc::new(Noting(notes.clone())),
        ..HarnessDeps::new(backend(), models, ToolRegistry::new())
    };
    let points = [
        M::SessionStart,
        M::SubagentStart,
        M::PromptSubmit,
        M::Stop,
        M::SubagentStop,
        M::Notification,
        M::SessionEnd,
    ];
    let both = [HookContract::Provost, HookContract::Claude];
    let hooks = points.into_iter().flat_map(|point| both.map(|contract| program(point, contract)));
    let hooks = hooks.collect::<Vec<_>>();
    let mut policy = policy();
    let folder = tempfile::tempdir().expect("a folder");
    for agent in policy.agents.iter_mut().map(|one| &mut one.agent).chain([&mut policy.agent]) {
        agent.hooks.clone_from(&hooks);
        agent.workspace = folder.path().to_path_buf();
    }
    assert_eq!(run_with(&AgentHarness::new(deps), policy).await, Outcome::VERIFIED);
    let notes = notes.lock().expect("notes");
    let shown = notes.iter().map(|(hook, about)| format!("{hook}: {}\n", about.join(", ")));
    expect![[r#"
        notification Claude: None depth 0 below None
        notification Provost: None depth 0 below None
        prompt_submit Claude: None depth 0 below None
        prompt_submit Provost: None depth 0 below None
        session_end Claude: None depth 0 below None
        session_end Provost: Some("worker") depth 2 below Some(1), Some("reviewer") depth 1 below Some(0), None depth 0 below None
        session_start Claude: None depth 0 below None
        session_start Provost: None depth 0 below None, Some("reviewer") depth 1 below Some(0), Some("worker") depth 2 below Some(1)
        stop Claude: None depth 0 below None
        stop Provost: None depth 0 below None
        subagent_start Claude: Some("reviewer") depth 1 below Some(0), Some("worker") depth 2 below Some(1)
        subagent_start Provost: Some("reviewer") depth 1 below Some(0), Some("worker") depth 2 below Some(1)
        subagent_stop Claude: Some("worker") depth 2 below Some(1), Some("reviewer") depth 1 below Some(0)
        subagent_stop Provost: Some("worker") depth 2 below Some(1), Some("reviewer") depth 1 below Some(0)
    "#]].assert_eq(&shown.collect::<String>());
}
