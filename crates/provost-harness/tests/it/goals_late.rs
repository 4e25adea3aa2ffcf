//! Late and lost answers: a goal is cleared, paused or cancelled during a judge's call, and processes die.

use std::sync::Arc;

use expect_test::{Expect, expect};
use provost_engine::RunEvent;
use provost_event::{
    Budget, ConversationEntry, Entry, GoalEntry, GoalState, ModelEntry, Outcome, PauseReason, RunPolicy, Seq,
};
use provost_harness::{AgentHarness, Backend, BackendError, Clock as _, Harness, HarnessError, Log as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::goals_stage::*;
use crate::tree_stage::{Decisions, Mortal};

// ---- control requests
// ---------------------------------------------------------------------------------------------

fn cleared() -> Outcome {
    Outcome::Paused { why: PauseReason::GoalCleared { by: "ann".to_owned() } }
}

/// While the judge's answer is `said`, another process posts `event`.
async fn interrupted(said: Say, event: RunEvent, expected: Expect) -> (Playing, Outcome) {
    // Time stands still: a late answer is within its time limit.
    let (stage, _) = Stage::simulated();
    let stage = stage.agent([text("It is done."), text("Really.")]).judge([said, yes()]);
    let mut playing = stage.start(|_| {}).await;
    let elsewhere = stage.elsewhere();
    let meddle = async {
        judges_asked(&stage.tape, 1).await;
        elsewhere.post(RUN.into(), event.into(), None).await.unwrap();
    };
    let outcome = playing.goes_while(meddle).await;
    expected.assert_eq(&playing.told().await);
    (playing, outcome)
}

fn clears() -> RunEvent {
    RunEvent::ClearGoal { agent: 0, by: "ann".to_owned() }
}

fn pauses() -> RunEvent {
    RunEvent::Pause { agent: None, by: "ann".to_owned() }
}

#[tokio::test]
async fn a_goal_that_is_cleared_while_a_judge_is_asked_stays_cleared() {
    let (mut playing, outcome) = interrupted(
        Say::Hangs,
        clears(),
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
            cleared by ann
            stop: the goal was cleared by ann; resume goes on without it
              judge for generation 1: failed: the call was cancelled: it was told to stop, too late
            paused: the goal was cleared by ann; resume goes on without it
        "#]],
    )
    .await;
    assert_eq!(outcome, cleared());
    assert_eq!(playing.goal().await.state, GoalState::Aborted);
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
    assert_eq!(playing.charged().await[JUDGE], (1, OF_FAILURE), "without a goal no judge is asked");
}

#[tokio::test]
async fn a_yes_that_comes_behind_a_clear_is_recorded_and_changes_nothing() {
    let (mut playing, outcome) = interrupted(
        Say::Late(Box::new(yes())),
        clears(),
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
            cleared by ann
            stop: the goal was cleared by ann; resume goes on without it
              judge for generation 1: yes at 0.90, too late
            paused: the goal was cleared by ann; resume goes on without it
        "#]],
    )
    .await;
    assert_eq!(outcome, cleared());
    assert_eq!(playing.charged().await[JUDGE], (1, OF_JUDGE), "it is paid all the same");
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
    assert_eq!(playing.goal().await.state, GoalState::Aborted);
}

#[tokio::test]
async fn a_yes_that_comes_behind_a_pause_counts_for_nothing_and_a_resume_asks_again() {
    let (mut playing, outcome) = interrupted(
        Say::Late(Box::new(yes())),
        pauses(),
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
            stop: paused by ann
              judge for generation 1: yes at 0.90, too late
            paused: paused by ann
        "#]],
    )
    .await;
    assert!(matches!(outcome, Outcome::Paused { why: PauseReason::Asked { .. } }), "{outcome:?}");
    assert_eq!(playing.goal().await.state, GoalState::Paused);
    assert_eq!(playing.resumed(None).await, DONE);
    assert_eq!(playing.charged().await[JUDGE], (2, 2 * OF_JUDGE));
    assert_eq!(playing.charged().await[AGENT].0, 1, "the same claim is verified");
    assert_eq!(playing.goal().await.state, GoalState::Achieved);
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_a_judge_is_asked_is_cancelled() {
    let cancel = RunEvent::Cancel { agent: None, by: "ann".to_owned() };
    let (playing, outcome) = interrupted(
        Say::Late(Box::new(yes())),
        cancel,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
            stop: cancelled by ann
              judge for generation 1: yes at 0.90, too late
            ended: cancelled by ann
        "#]],
    )
    .await;
    assert_eq!(outcome, Outcome::Cancelled { by: "ann".to_owned() });
    assert_eq!(playing.goal().await.state, GoalState::Aborted);
}

/// The judge neither answers nor stops.
#[tokio::test]
async fn a_judge_who_does_not_listen_holds_up_a_clear_only_for_a_moment() {
    let (stage, clock) = Stage::simulated();
    let gate = Arc::new(Semaphore::new(0));
    let deaf = Say::Held(gate.clone(), Box::new(yes()));
    let stage = stage.agent([text("It is done.")]).judge([deaf]);
    let mut playing = stage.start(long).await;
    let backend = playing.backend.clone();
    let meddle = async {
        judges_asked(&stage.tape, 1).await;
        clear(&backend, 0).await;
        until(&backend, ROOT, 1, |entry| matches!(entry, Entry::Goal(GoalEntry::Cleared(_)))).await;
        // The grace period of the judge, not its timeout.
        clock.advance_to_sleeper_within(TIMEOUT_MS / 2).await;
    };
    assert_eq!(playing.goes_while(meddle).await, cleared());
    assert!(clock.now() < BEGIN.plus_ms(TIMEOUT_MS), "it was waited for to the end");
    assert_eq!(playing.charged().await[JUDGE], (1, 0), "its usage is unknown");
    gate.add_permits(1);
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
}

const TIMEOUT_MS: u64 = 3_600_000;

fn long(policy: &mut RunPolicy) {
    policy.agent.goal.as_mut().unwrap().timeout_ms = TIMEOUT_MS;
}

#[tokio::test]
async fn a_goal_that_is_cleared_while_the_run_rests_binds_it_no_more() {
    let stage = Stage::new().agent([text("It is done.")]).judge([no()]);
    let mut playing = stage.start(|policy| policy.agent.goal.as_mut().unwrap().rounds_max = 1).await;
    assert!(matches!(playing.goes().await, Outcome::Blocked { .. }));
    playing.run.control("ann").clear_goal(0).await.unwrap();
    until(&playing.backend, ROOT, 1, |entry| matches!(entry, Entry::Goal(GoalEntry::Cleared(_)))).await;
    assert_eq!(playing.resumed(None).await, Outcome::UNVERIFIED);
    assert_eq!(playing.charged().await[JUDGE].0, 1);
}

// ---- processes die ------------------------------------------------------------------------------------------------

/// Two claims: one is rejected, one confirmed, after failures of the judge.
fn eventful() -> Stage {
    let no_verdict = || text("Hm.");
    Stage::new().agent([act(1), text("It is done."), act(2), text("Now it is done.")]).judge([
        no_verdict(),
        no(),
        yes(),
    ])
}

fn patient(policy: &mut RunPolicy) {
    policy.agent.limits.interruptions_max = 1_000;
}

async fn claimed(harness: &AgentHarness, stage: &Stage) -> Result<Harness, HarnessError> {
    loop {
        let opened = match harness.open(RUN).await {
            Err(HarnessError::UnknownRun(_)) => harness.start(RUN, "Make it.", stage.policy(patient)).await,
            opened => opened,
        };
        match opened {
            // The previous process is about to release it.
            Err(HarnessError::Backend(BackendError::Held { .. })) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

/// Processes that die after this many commits each serve a run, and at last one that lives; returns whether the
/// first one died.
async fn survives(deaths: &[u32]) -> bool {
    let stage = eventful();
    let mut died = Vec::new();
    for dies_after in deaths.iter().map(|commits| Some(*commits)).chain([None]) {
        let store = Mortal::open(&stage.database(), Decisions::default(), dies_after);
        let (harness, _backend) = stage.process(store);
        let life = async {
            let mut run = claimed(&harness, &stage).await?;
            run.run(&CancellationToken::new()).await
        };
        let life = timeout(DEADLINE, life).await.expect("it doesn't hang");
        died.push(life.is_err());
        if let Ok(outcome) = life {
            assert_eq!(outcome, DONE, "{deaths:?}");
        }
    }
    is_lawful(&*stage.elsewhere(), deaths).await;
    died[0]
}

/// Each claim has one verdict, the counters are right, and each answer is charged once.
async fn is_lawful(backend: &dyn Backend, deaths: &[u32]) {
    let log = backend.read(ROOT.into(), Seq::START, 10_000).await.unwrap();
    let story = told(&log);
    let (mut verdicts, mut judged, mut answers, mut lost, mut generation) = (Vec::new(), 0, 0, 0, 0);
    for record in &log {
        match &record.entry {
            Entry::Goal(GoalEntry::CheckStarted(check)) => {
                assert!(check.generation > generation, "{deaths:?}:\n{story}");
                generation = check.generation;
            }
            Entry::Goal(GoalEntry::Verdict(verdict)) => {
                assert_eq!(verdict.generation, generation, "{deaths:?}:\n{story}");
                verdicts.push(verdict.turn);
            }
            Entry::Goal(GoalEntry::Judged(answer)) => {
                assert!(!answer.stale, "{deaths:?}:\n{story}");
                judged += 1;
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(_)) => answers += 1,
            Entry::Model(ModelEntry::Retried(_)) => lost += 1,
            _ => {}
        }
    }
    assert_eq!((verdicts.len(), judged, answers), (2, 3, 4), "{deaths:?}:\n{story}");
    assert_eq!(verdicts, [2, 4], "{deaths:?}:\n{story}");
    let goal = goal_of(backend, ROOT).await;
    assert_eq!((goal.state, goal.rounds, goal.failures), (GoalState::Achieved, 1, 0), "{deaths:?}:\n{story}");
    let run = backend.read(RUN.into(), Seq::START, 10_000).await.unwrap();
    let charged = charged(&run);
    assert_eq!(charged[JUDGE].1, 3 * OF_JUDGE, "{deaths:?}:\n{story}");
    assert_eq!(charged[AGENT].1, 4 * OF_AGENT, "{deaths:?}:\n{story}");
    assert_eq!(charged[JUDGE].0 + charged[AGENT].0, 7 + lost, "{deaths:?}:\n{story}");
}

#[tokio::test]
async fn whenever_a_process_dies_each_claim_has_one_verdict_and_each_answer_is_paid_once() {
    let mut commits = 1;
    while survives(&[commits]).await {
        commits += 1;
    }
    assert!(commits > 10, "it died {commits} times");
}

#[tokio::test]
async fn so_it_is_when_those_who_go_on_die_as_well() {
    for commits in [4, 6, 9] {
        assert!(survives(&[commits, 1, 2, 3, 4]).await);
    }
}

#[tokio::test]
async fn a_clear_without_a_holder_reaches_the_next_holder() {
    let stage = Stage::new().agent([text("It is done."), text("Really.")]).judge([Say::Hangs]);
    let playing = stage.start(|_| {}).await;
    judges_asked(&stage.tape, 1).await;
    drop(playing);
    clear(&stage.elsewhere(), 0).await;
    let mut playing = stage.open().await;
    assert_eq!(playing.goes().await, cleared());
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
        cleared by ann
        stop: the goal was cleared by ann; resume goes on without it
        resumed: Interrupted
          retry: Interrupted
        paused: the goal was cleared by ann; resume goes on without it
    "#]]
    .assert_eq(&playing.told().await);
    playing.run.resume("ann", Budget::default(), None).await.unwrap();
    assert_eq!(playing.goes().await, Outcome::UNVERIFIED);
}
