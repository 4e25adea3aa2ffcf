//! Agents below the root with goals of their own: their parent gets the result when the goal is verified, or why
//! it isn't.

use std::sync::Arc;

use expect_test::expect;
use provost_backend::EmbeddedBackend;
use provost_engine::{agent_tool, judged_spawn_tool};
use provost_event::{
    AgentEntry, AgentPolicy, Budget, Entry, GoalPolicy, Isolation, LifecycleEntry, ModelPolicy, Outcome,
    PauseReason, Priority, RunPolicy, Seq, SessionId, SpawnBudget, SubAgentPolicy, ToolEntry, ToolStatus,
};
use provost_harness::{Clock as _, Log as _, SimulatedClock};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::goals_stage::*;

const CHILD: SessionId = SessionId { run: RUN, agent: 1 };

fn asks(tool: &'static str) -> Say {
    Say::Calls(vec![(tool, json!({ "goal": "Make a part of it." }))])
}

/// A root without a goal, with sub-agents of three priorities, of which the worker has a goal.
fn with_worker(goal: GoalPolicy) -> impl FnOnce(&mut RunPolicy) {
    move |policy| {
        policy.agent.goal = None;
        let names = [("worker", Priority::Low), ("boss", Priority::Normal), ("urgent", Priority::Critical)];
        policy.agent.tools.extend(names.map(|(name, _)| agent_tool(name, "It makes a part.")));
        let sub_agent = |(name, priority): (&str, Priority)| SubAgentPolicy {
            name: name.to_owned(),
            agent: AgentPolicy {
                goal: (name == "worker").then(|| Box::new(goal.clone())),
                model: ModelPolicy { price: Some(PRICE), ..ModelPolicy::new(AGENT, 1_000) },
                ..policy.agent.clone()
            },
            priority,
            budget: Budget::default(),
            ask_timeout_ms: None,
            isolation: Isolation::Shared,
        };
        policy.agents = names.map(sub_agent).into();
    }
}

/// How the root's calls that spawn agents ended, and their results.
async fn results(playing: &Playing) -> Vec<(ToolStatus, String)> {
    let log = playing.log(ROOT).await;
    let result = |entry: &Entry| match entry {
        Entry::Tool(ToolEntry::Finished(finished)) => Some((finished.status, finished.output.clone())),
        _ => None,
    };
    log.iter().filter_map(|record| result(&record.entry)).collect()
}

#[tokio::test]
async fn an_agent_s_result_is_told_when_its_goal_is_verified() {
    let stage = Stage::new()
        .agent([asks("worker"), text("All is done.")])
        .voice(AGENT, 1, [act(1), text("My part is done."), text("Now my part is done.")])
        .judge([no(), yes()]);
    let mut playing = stage.start(with_worker(goal(&[JUDGE]))).await;
    assert_eq!(playing.goes().await, Outcome::UNVERIFIED);
    let results = results(&playing).await;
    assert!(
        matches!(&results[..], [(ToolStatus::Ok, told)] if told.starts_with("Now my part is done.")),
        "{results:?}"
    );
    expect![[r#"
        the agent answers
        turn 1 ends
        the agent answers
        verify: Claim, turn 2, generation 1
          ask a judge
          judge for generation 1: no at 0.80
          verdict on turn 2: not achieved: "It isn't there."
          told: GoalNotReached
        turn 2 ends
        the agent answers
        verify: Claim, turn 3, generation 3
          ask a judge
          judge for generation 3: yes at 0.90
          verdict on turn 3: achieved at 0.90
        turn 3 ends
        ended: completed, verified
    "#]]
    .assert_eq(&told(&playing.log(CHILD).await));
    assert_eq!(playing.charged().await[JUDGE], (2, 2 * OF_JUDGE));
}

#[tokio::test]
async fn an_agent_whose_claims_are_all_rejected_is_no_success_and_its_parent_is_told_why() {
    let stage = Stage::new()
        .agent([asks("worker"), text("All is done.")])
        .voice(AGENT, 1, [text("My part is done.")])
        .judge([no()]);
    let goal = GoalPolicy { rounds_max: 2, ..goal(&[JUDGE]) };
    let mut playing = stage.start(with_worker(goal)).await;
    assert_eq!(playing.goes().await, Outcome::UNVERIFIED);
    let results = results(&playing).await;
    let [(status, told)] = &results[..] else { panic!("{results:?}") };
    assert_eq!(*status, ToolStatus::Error);
    assert!(told.contains("judge: It isn't there."), "{told}");
}

#[tokio::test]
async fn an_agent_whose_judge_cannot_be_reached_is_not_reported_as_done() {
    let stage = Stage::new()
        .agent([asks("worker"), text("All is done.")])
        .voice(AGENT, 1, [text("My part is done.")])
        .judge([Say::Fails(provost_event::ErrorClass::Unauthorized, None), yes()]);
    let goal = GoalPolicy { failures_max: 1, ..goal(&[JUDGE]) };
    let mut playing = stage.start(with_worker(goal)).await;
    let outcome = playing.goes().await;
    let Outcome::Paused { why: PauseReason::JudgeUnreachable { .. } } = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(results(&playing).await, []);
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
    assert_eq!(results(&playing).await.len(), 1);
}

#[tokio::test]
async fn an_agent_whose_goal_is_cleared_goes_on_without_it_when_the_run_does() {
    let (stage, _) = Stage::simulated();
    let stage = stage
        .agent([asks("worker"), text("All is done.")])
        .voice(AGENT, 1, [text("My part is done."), text("It really is.")])
        .judge([Say::Late(Box::new(yes())), no()]);
    let mut playing = stage.start(with_worker(goal(&[JUDGE]))).await;
    let elsewhere = stage.elsewhere();
    let meddle = async {
        judges_asked(&stage.tape, 1).await;
        clear(&elsewhere, CHILD.agent).await;
    };
    let outcome = playing.goes_while(meddle).await;
    let Outcome::Paused { why: PauseReason::GoalCleared { .. } } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(results(&playing).await, []);
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
    assert!(matches!(&results(&playing).await[..], [(ToolStatus::Ok, _)]));
    assert_eq!(playing.charged().await[JUDGE].0, 1);
}

#[tokio::test]
async fn what_an_agent_asks_of_another_is_judged_as_the_run_has_it() {
    let call = json!({ "goal": "Make a part of it.", "done_when": "The part is there." });
    let stage = Stage::new()
        .agent([Say::Calls(vec![("spawn_agent", call)]), text("All is done.")])
        .voice(AGENT, 1, [text("My part is done."), text("Now my part is done.")])
        .voice(JUDGE, 1, [no(), yes()])
        .judge([yes()]);
    let spawning = |policy: &mut RunPolicy| {
        policy.agent.tools.push(judged_spawn_tool());
        policy.judging = Some(Box::new(goal(&[JUDGE])));
    };
    let mut playing = stage.start(spawning).await;
    assert_eq!(playing.goes().await, DONE);
    let results = results(&playing).await;
    assert!(
        matches!(&results[..], [(ToolStatus::Ok, told)] if told.starts_with("Now my part is done.")),
        "{results:?}"
    );
    assert_eq!(goal_of(&*playing.backend, CHILD).await.condition, "The part is there.");
    assert_eq!(goal_of(&*playing.backend, ROOT).await.condition, "It is there.");
    assert_eq!(playing.charged().await[JUDGE].0, 3);
    let of_judges = playing.asked().into_iter().filter(|asked| asked.model == JUDGE);
    let about = of_judges.map(|asked| asked.session.agent).collect::<Vec<_>>();
    assert_eq!(about, [1, 1, 0]);
}

#[tokio::test]
async fn a_condition_without_a_judge_is_refused() {
    let call = json!({ "goal": "Make a part of it.", "done_when": "The part is there." });
    let stage =
        Stage::new().agent([Say::Calls(vec![("spawn_agent", call)]), text("All is done.")]).judge([yes()]);
    let mut playing = stage.start(|policy| policy.agent.tools.push(judged_spawn_tool())).await;
    assert_eq!(playing.goes().await, DONE);
    let results = results(&playing).await;
    assert!(
        matches!(&results[..], [(ToolStatus::Rejected, told)] if told.contains("done_when")),
        "{results:?}"
    );
}

/// Three slots: the root, the worker, and the boss, which spawns an urgent third agent while the worker is judged.
/// `amid` runs once the worker is asked to yield.
async fn preempted(
    judge: [Say; 2],
    amid: impl AsyncFnOnce(&EmbeddedBackend, &SimulatedClock),
) -> (Playing, String) {
    let gate = Arc::new(Semaphore::new(0));
    let task = json!({ "goal": "Make a part of it." });
    let (stage, clock) = Stage::simulated();
    let stage = stage
        .agent([Say::Calls(vec![("worker", task.clone()), ("boss", task)]), text("All is done.")])
        .voice(AGENT, 1, [text("My part is done.")])
        .voice(AGENT, 2, [Say::Held(gate.clone(), Box::new(asks("urgent"))), text("I have looked after it.")])
        .voice(AGENT, 3, [text("It is out.")])
        .judge(judge);
    let mut playing = stage
        .start(|policy| {
            with_worker(GoalPolicy { timeout_ms: 3_600_000, ..goal(&[JUDGE]) })(policy);
            policy.spawn = SpawnBudget { max_agents: 3, allow_preempt: true, max_depth: 4 };
        })
        .await;
    let backend = playing.backend.clone();
    let meanwhile = async {
        judges_asked(&stage.tape, 1).await;
        gate.add_permits(1);
        until(&backend, CHILD, 1, |entry| matches!(entry, Entry::Agent(AgentEntry::MustYield(_)))).await;
        amid(&backend, &clock).await;
    };
    let outcome = playing.goes_while(meanwhile).await;
    let story = told(&playing.log(CHILD).await);
    assert_eq!(outcome, Outcome::UNVERIFIED, "{story}");
    (playing, story)
}

#[tokio::test]
async fn an_agent_whose_judge_takes_too_long_makes_way_and_is_judged_again() {
    let gate = Arc::new(Semaphore::new(0));
    let slow = Say::Stuck(gate.clone(), Box::new(yes()));
    let (playing, story) = preempted([slow, yes()], async |backend, clock| {
        let log = backend.read(CHILD.into(), Seq::START, 1_000).await.unwrap();
        let due = log.iter().find_map(|record| match &record.entry {
            Entry::Agent(AgentEntry::MustYield(wish)) => wish.due,
            _ => None,
        });
        clock.advance_ms(due.unwrap().since_ms(clock.now()));
        until(backend, CHILD, 1, |entry| matches!(entry, Entry::Lifecycle(LifecycleEntry::Paused(_)))).await;
        gate.add_permits(1);
    })
    .await;
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
        yield
        yield
          retry: Interrupted
        paused: yields to agent 00000000003b.3
        resumed: SlotFree
        verify: Claim, turn 1, generation 4
          ask a judge
          judge for generation 4: yes at 0.90
          verdict on turn 1: achieved at 0.90
        turn 1 ends
        ended: completed, verified
    "#]]
    .assert_eq(&story);
    assert_eq!(playing.charged().await[JUDGE], (2, OF_FAILURE + OF_JUDGE));
}

#[tokio::test]
async fn a_verdict_that_comes_while_an_agent_is_to_make_way_is_not_asked_for_again() {
    let let_go = Arc::new(Semaphore::new(0));
    let held = Say::Held(let_go.clone(), Box::new(yes()));
    let (playing, story) = preempted([held, no()], async |_, _| let_go.add_permits(1)).await;
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
        yield
          judge for generation 1: yes at 0.90
          verdict on turn 1: achieved at 0.90
        turn 1 ends
        ended: completed, verified
    "#]]
    .assert_eq(&story);
    assert_eq!(playing.charged().await[JUDGE], (1, OF_JUDGE));
}
