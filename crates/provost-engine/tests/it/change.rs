//! Another policy, or another goal, for a run that is suspended.

use provost_engine::RunEvent;
use provost_event::{Budget, Entry, GoalState, LifecycleEntry, RunPolicy, RunPolicyChanged};

use crate::goals::{goal, status};
use crate::world::{ROOT, RUN, World, without_hooks};

fn change(world: &mut World, policy: &RunPolicy, goal: Option<&str>) {
    let policy = policy.clone();
    let goal = goal.map(str::to_owned);
    let differences = Vec::new();
    let changed = RunPolicyChanged { policy, goal, differences, by: "ann".to_owned() };
    world.run_event(RunEvent::ChangePolicy(Box::new(changed)));
}

fn resume(world: &mut World) {
    let by = "ann".to_owned();
    let budget = Budget::default();
    world.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
}

fn changes(world: &World) -> usize {
    let of = |entry: &Entry| {
        matches!(
            entry,
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(_) | LifecycleEntry::AgentPolicyChanged(_))
        )
    };
    world.run_log().iter().chain(world.session_log()).filter(|record| of(&record.entry)).count()
}

#[test]
fn what_is_worked_on_keeps_its_policy() {
    let mut world = World::start(without_hooks());
    let mut policy = without_hooks();
    policy.agent.limits.turns_max = 1;
    change(&mut world, &policy, None);
    assert_eq!(changes(&world), 0);
    world.say("done");
    change(&mut world, &policy, None);
    assert_eq!(changes(&world), 2);
}

#[test]
fn a_limit_that_stays_the_same_keeps_what_was_added_and_one_that_changes_replaces_it() {
    let mut before = without_hooks();
    before.budget = Budget { tokens: Some(50_000), turns: Some(30), ..Budget::default() };
    let mut world = World::start(before.clone());
    world.run_event(RunEvent::Pause { agent: None, by: "ann".into() });
    world.fail(provost_event::ErrorClass::Aborted, None);
    let budget = Budget { tokens: Some(60_000), turns: Some(40), ..Budget::default() };
    let by = "ann".to_owned();
    world.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
    world.say("done");
    before.budget.turns = Some(20);
    change(&mut world, &before, None);
    assert_eq!(world.run().budget(), Budget { tokens: Some(60_000), turns: Some(20), ..Budget::default() });
}

#[test]
fn it_binds_after_a_snapshot_too_with_a_goal_whose_judges_begin_anew() {
    let mut policy = goal();
    let mut world = World::start(policy.clone());
    world.run_event(RunEvent::Cancel { agent: None, by: "ann".into() });
    world.fail(provost_event::ErrorClass::Aborted, None);
    if let Some(goal) = &mut policy.agent.goal {
        goal.condition = "b is there".to_owned();
    }
    policy.agent.limits.stop_blocks_max = 77;
    change(&mut world, &policy, Some("b is there"));
    resume(&mut world);
    world.take_snapshot(RUN.into());
    world.take_snapshot(ROOT.into());
    world.read_back();
    let agent = world.session().policy().expect("it has one");
    assert_eq!(agent.limits.stop_blocks_max, 77);
    assert!(agent.system_prompt.ends_with("b is there"), "{}", agent.system_prompt);
    assert_eq!(world.run().goal(), "the goal");
    let goal = status(&world);
    assert_eq!((goal.condition.as_str(), goal.state, goal.rounds), ("b is there", GoalState::Running, 0));
}
