//! Goals: an agent without progress is stuck, and what counts as progress.

use provost_engine::SessionEvent;
use provost_event::{
    Entry, GoalEntry, GoalState, ItemKind, Outcome, PauseReason, Plan, PlanItem, PlanStatus, RunPolicy,
    StopHookVerdict, ToolStatus,
};

use crate::goals::{
    ending, entries, goal, goal_with, goal_with_hooks, items, no, report_of, resume, status, work, yes,
};
use crate::tree_world::result;
use crate::world::{World, without_hooks};

/// The agent reads `path`, with this output.
fn read(world: &mut World, path: &str, output: &str) {
    world.call(&[("read", &format!("{{\"path\":\"{path}\"}}"))]);
    world.finish_first(output);
}

fn plan(world: &mut World, steps: &[(&str, PlanStatus)]) {
    let step = |(text, status): &(&str, PlanStatus)| PlanItem { text: (*text).to_owned(), status: *status };
    let plan = Plan { items: steps.iter().map(step).collect() };
    // Each call differs: only the plan may count.
    let input = format!("{{\"n\":{}}}", world.session_log().len());
    world.call(&[("read", &input)]);
    let seq = world.tools()[0].0;
    let result = provost_engine::ToolResult { plan: Some(Box::new(plan)), ..result(ToolStatus::Ok, "noted") };
    world.session_event(SessionEvent::ToolDone { seq, result });
}

fn claim_about(world: &mut World, evidence: &str) {
    world.say("done");
    let seq = world.judging().expect("a judge is asked");
    world.session_event(SessionEvent::Judged { seq, report: report_of(no(), evidence) });
}

fn idle(world: &World) -> u32 {
    status(world).idle_turns
}

fn patient() -> RunPolicy {
    let mut policy = goal_with(|goal| goal.rounds_max = 100);
    policy.agent.limits.turns_max = 100;
    policy
}

#[test]
fn an_agent_that_only_goes_round_is_stuck_after_five_turns() {
    let mut world = World::start(patient());
    for path in ["a", "b"] {
        read(&mut world, path, "as it was");
    }
    for turn in 1..5 {
        read(&mut world, if turn % 2 == 0 { "a" } else { "b" }, "as it was");
        assert_eq!((ending(&world).as_str(), idle(&world)), ("it goes on", turn));
    }
    read(&mut world, "b", "as it was");
    assert_eq!(
        world.outcome(),
        Some(Outcome::Paused { why: PauseReason::Stuck { turns: 5 } }),
        "{}",
        world.news()
    );
    assert_eq!(status(&world).state, GoalState::Stuck);
    // A resumption allows as many turns again.
    resume(&mut world);
    assert_eq!((status(&world).state, idle(&world)), (GoalState::Running, 0));
    for _ in 0..4 {
        claim_about(&mut world, "");
    }
    assert_eq!(ending(&world), "it goes on");
    claim_about(&mut world, "");
    assert_eq!(status(&world).state, GoalState::Stuck);
}

#[test]
fn claims_alone_are_no_progress_and_judges_say_so_until_it_is_stuck() {
    let mut world = World::start(goal());
    for _ in 0..5 {
        claim_about(&mut world, "");
    }
    // The fifth claim was still judged, and the agent is notified.
    assert_eq!(
        world.outcome(),
        Some(Outcome::Paused { why: PauseReason::Stuck { turns: 5 } }),
        "{}",
        world.news()
    );
    assert_eq!((status(&world).rounds, items(&world, ItemKind::GoalNotReached).len()), (5, 5));
}

#[test]
fn a_new_call_is_progress_and_one_made_before_is_not() {
    let mut world = World::start(patient());
    read(&mut world, "a", "as it was");
    read(&mut world, "b", "as it was");
    assert_eq!(idle(&world), 0);
    read(&mut world, "a", "as it was");
    assert_eq!(idle(&world), 1);
    read(&mut world, "c", "as it was");
    assert_eq!(idle(&world), 0);
}

#[test]
fn a_changed_result_is_progress_and_the_time_it_took_is_none() {
    let mut world = World::start(patient());
    read(&mut world, "log", "3 failed, 2 passed in 1.31s");
    for (output, expected) in [
        ("3 failed, 2 passed in 1.52s", 1),
        ("3 failed, 2 passed in 12ms", 2),
        ("2 failed, 3 passed in 1.52s", 0),
        ("2 failed, 3 passed in 1.31s", 1),
        // Seen before: a check that alternates makes no progress.
        ("3 failed, 2 passed in 1.31s", 2),
    ] {
        read(&mut world, "log", output);
        assert_eq!(idle(&world), expected, "{output}");
    }
}

#[test]
fn a_ticked_step_is_progress_and_a_reworded_plan_is_not() {
    use PlanStatus::{Done, InProgress, Pending};
    let mut world = World::start(patient());
    for (steps, expected) in [
        (vec![("write it", Pending), ("test it", Pending)], 1),
        (vec![("write it well", Pending), ("test it", Pending)], 2),
        (vec![("write it well", InProgress), ("test it", Pending)], 3),
        (vec![("write it well", Done), ("test it", Pending)], 0),
        (vec![("write it well", Done), ("test it thoroughly", Pending)], 1),
        // Unmarked and completed again.
        (vec![("write it well", Pending), ("test it thoroughly", Pending)], 2),
        (vec![("write it well", Done), ("test it thoroughly", Pending)], 3),
        (vec![("write it well", Done), ("test it thoroughly", Done)], 0),
    ] {
        plan(&mut world, &steps);
        assert_eq!(idle(&world), expected, "{steps:?}");
    }
    let plan = world.session().plan().expect("it has one");
    assert_eq!(plan.items.len(), 2);
}

#[test]
fn changed_files_are_progress() {
    let mut world = World::start(patient());
    for (evidence, expected) in [("1", 1), ("1", 2), ("2", 0), ("2", 1), ("", 2), ("2", 3), ("1", 0)] {
        claim_about(&mut world, evidence);
        assert_eq!(idle(&world), expected, "{evidence}");
    }
}

#[test]
fn changed_words_of_stop_hooks_are_progress() {
    let block = |reason: &str| StopHookVerdict::Block(reason.to_owned());
    let mut policy = goal_with_hooks(|_| {});
    policy.agent.limits.turns_max = 100;
    policy.agent.limits.stop_blocks_max = 100;
    let mut world = World::start(policy);
    for (verdict, expected) in [
        (block("3 fail in 1.3s"), 1),
        (block("3 fail in 1.4s"), 2),
        (block("2 fail in 1.4s"), 0),
        (StopHookVerdict::Error("no such file".to_owned()), 0),
        (StopHookVerdict::Allow, 0),
        (StopHookVerdict::Allow, 1),
    ] {
        world.say("done");
        world.hook(verdict.clone(), "");
        if verdict == StopHookVerdict::Allow {
            world.judge(no());
        }
        assert_eq!(idle(&world), expected, "{verdict:?}: {}", world.news());
    }
}

#[test]
fn calls_that_were_not_made_are_no_progress() {
    let mut world = World::start(patient());
    for (expected, status) in [
        (1, ToolStatus::Rejected),
        (2, ToolStatus::Denied),
        (3, ToolStatus::Cancelled),
        (0, ToolStatus::Error),
        (0, ToolStatus::TimedOut),
    ] {
        world.call(&[("read", &format!("{{\"status\":\"{status:?}\"}}"))]);
        let seq = world.tools()[0].0;
        world.finish(seq, status, "no");
        assert_eq!(idle(&world), expected, "{status:?}");
    }
}

#[test]
fn a_goal_that_is_reached_ends_even_the_last_idle_turn() {
    let mut world = World::start(goal_with(|goal| goal.stuck_turns = 1));
    work(&mut world);
    world.say("done");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn without_a_goal_an_agent_is_told_and_then_stuck_after_twenty_turns() {
    let mut policy = without_hooks();
    policy.agent.limits.turns_max = 100;
    let mut world = World::start(policy.clone());
    let goes_round = |world: &mut World, turns: usize| {
        (0..turns).for_each(|turn| read(world, if turn % 2 == 0 { "a" } else { "b" }, "as it was"));
    };
    goes_round(&mut world, 2 + 19);
    assert_eq!(ending(&world), "it goes on");
    assert_eq!(items(&world, ItemKind::NoProgressNotice).len(), 1);
    goes_round(&mut world, 1);
    assert_eq!(world.outcome(), Some(Outcome::Paused { why: PauseReason::Stuck { turns: 20 } }));
    // A resume counts from the start, and 0 turns it off.
    resume(&mut world);
    goes_round(&mut world, 19);
    assert_eq!(ending(&world), "it goes on");
    policy.agent.limits.stuck_turns = 0;
    let mut world = World::start(policy);
    goes_round(&mut world, 60);
    assert_eq!(ending(&world), "it goes on");
    let is_check = |entry: &Entry| matches!(entry, Entry::Goal(GoalEntry::CheckStarted(_)));
    assert!(!entries(&world).iter().any(is_check));
}
