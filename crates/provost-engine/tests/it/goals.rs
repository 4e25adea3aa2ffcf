//! Goals: a claim ends the work only when it is confirmed.

use provost_event::{
    Confidence, GoalPolicy, GoalState, JudgeAnswer, ModelPolicy, Outcome, RunPolicy, SupervisorError,
    SupervisorVerdict,
};

use crate::world::{World, without_hooks};

fn goal() -> RunPolicy {
    let mut policy = without_hooks();
    let judge = ModelPolicy::new("script:judge", 500);
    policy.agent.goal = Some(Box::new(GoalPolicy::new("the tests pass", judge)));
    policy
}

fn says(achieved: bool, hundredths: u8) -> JudgeAnswer {
    JudgeAnswer::Verdict(SupervisorVerdict {
        achieved,
        reasoning: "I looked.".to_owned(),
        confidence: Confidence::hundredths(hundredths),
        suggestions: vec!["run the tests".to_owned()],
    })
}

#[test]
fn a_claim_counts_only_when_it_is_confirmed() {
    let mut world = World::start(goal());
    world.say("done");
    assert!(world.judging().is_some());
    world.judge(says(false, 90));
    world.say("done now");
    world.judge(says(true, 60));
    world.say("really");
    world.judge(says(true, 70));
    assert_eq!(world.outcome(), Some(Outcome::Completed { verdict: None }), "{}", world.news());
    let goal = world.session().goal().expect("it has one");
    assert_eq!((goal.state, goal.rounds), (GoalState::Achieved, 2));
}

#[test]
fn judges_that_fail_for_good_pause_it() {
    let mut world = World::start(goal());
    world.say("done");
    for _ in 0..2 {
        world.judge(JudgeAnswer::Failed(SupervisorError::Timeout(60_000)));
        world.tick();
    }
    world.judge(JudgeAnswer::Failed(SupervisorError::Timeout(60_000)));
    assert!(matches!(world.outcome(), Some(Outcome::Paused { .. })), "{}", world.news());
}
