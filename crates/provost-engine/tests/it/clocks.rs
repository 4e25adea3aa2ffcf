//! The wall clock is only shown: setting it by an hour at any point changes no decision.

use provost_engine::{Effect, RunEvent};
use provost_event::{
    AgentEntry, Budget, Dimension, Elapsed, Entry, ErrorClass, Exhausted, Outcome, Permission,
    PermissionPolicy, Record, RetryPolicy, RunPolicy, ToolStatus,
};

use crate::tree_world::{self, Tree};
use crate::world::{RUN, World, short, without_hooks};

const HOUR_MS: i64 = 3_600_000;
/// A person or the network sets it back or forward; a machine resumes after a night.
const JUMPS_MS: [i64; 4] = [0, -HOUR_MS, HOUR_MS, 8 * HOUR_MS];

fn limited(wall_time_ms: u64) -> RunPolicy {
    let mut policy = without_hooks();
    policy.budget = Budget { wall_time_ms: Some(wall_time_ms), ..Budget::default() };
    policy
}

/// A log without wall-clock times.
fn decided<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(Elapsed, String)> {
    records.into_iter().map(|record| (record.elapsed, short(&record.entry))).collect()
}

/// Plays the same script with each jump, and checks for the same decisions at the same elapsed time.
fn check(policy: fn() -> RunPolicy, play: fn(&mut World, i64)) -> World {
    let mut worlds = JUMPS_MS.into_iter().map(|jump_ms| {
        let mut world = World::start(policy());
        play(&mut world, jump_ms);
        world
    });
    let unset = worlds.next().expect("one without a jump");
    for world in worlds {
        assert_eq!(decided(world.run_log()), decided(unset.run_log()));
        assert_eq!(decided(world.session_log()), decided(unset.session_log()));
        assert_eq!(world.run().active_ms(), unset.run().active_ms());
        assert_eq!(world.now, unset.now);
    }
    unset
}

#[test]
fn a_time_limit_is_neither_stretched_nor_used_up_by_the_wall_clock() {
    let world = check(
        || limited(6_000),
        |world, jump_ms| {
            world.advance(2_000);
            world.call(&[("shell", "{}")]);
            world.clocks.wall_set_ms += jump_ms;
            world.advance(1_000);
            world.tick();
            let seq = world.tools()[0].0;
            world.finish(seq, ToolStatus::Cancelled, "stopped");
            world.say("that far");
        },
    );
    let used = Exhausted::new(Dimension::WallTime, 5_400, 6_000);
    assert_eq!(world.outcome(), Some(Outcome::BudgetExhausted(used)));
}

#[test]
fn a_tool_is_told_what_is_left_of_the_limit() {
    let world = check(
        || limited(6_000),
        |world, jump_ms| {
            world.advance(1_000);
            world.clocks.wall_set_ms += jump_ms;
            world.call(&[("shell", "{}")]);
        },
    );
    let left = world.open.values().find_map(|effect| match effect {
        Effect::RunTool(run) => run.limit_ms,
        _ => None,
    });
    assert_eq!(left, Some(5_000));
}

#[test]
fn patience_with_a_provider_is_measured_by_what_was_waited() {
    let world = check(
        || limited(10 * 3_600_000),
        |world, jump_ms| {
            world.fail(ErrorClass::Overloaded, None);
            world.clocks.wall_set_ms += jump_ms;
            while world.outcome().is_none() {
                world.tick();
                world.fail(ErrorClass::Overloaded, None);
            }
        },
    );
    let waited_ms = world.now.since_ms(crate::time::BEGIN);
    assert!((13 * 60_000..=15 * 60_000).contains(&waited_ms), "{waited_ms}");
}

#[test]
fn a_wait_of_five_seconds_is_five_seconds() {
    check(without_hooks, |world, jump_ms| {
        let began = world.now;
        world.fail(ErrorClass::RateLimited, Some(5_000));
        world.clocks.wall_set_ms += jump_ms;
        world.tick();
        assert_eq!(world.now.since_ms(began), 5_000);
        world.say("done");
    });
}

#[test]
fn a_question_waits_for_its_answer_as_long_as_it_says() {
    let asking = || {
        let mut policy = without_hooks();
        policy.agent.permissions =
            PermissionPolicy { default: Permission::Ask, approval_timeout_ms: 60_000, ..Default::default() };
        policy
    };
    check(asking, |world, jump_ms| {
        let began = world.now;
        world.call(&[("shell", "{}")]);
        assert_eq!(world.approvals().len(), 1);
        world.clocks.wall_set_ms += jump_ms;
        world.tick();
        assert_eq!(world.now.since_ms(began), 60_000);
        assert_eq!(world.approvals(), []);
    });
}

#[test]
fn a_pause_is_no_working_time_however_the_wall_clock_is_set_meanwhile() {
    let world = check(
        || limited(10_000),
        |world, jump_ms| {
            world.advance(4_000);
            world.run_event(RunEvent::Pause { agent: None, by: "me".into() });
            world.fail(ErrorClass::Aborted, None);
            world.clocks.wall_set_ms += jump_ms;
            world.advance(1_000);
            let by = "me".into();
            let budget = Budget::default();
            world.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
            world.advance(2_000);
            world.say("done");
        },
    );
    assert_eq!(world.run().active_ms(), 6_000);
}

#[test]
fn what_no_process_held_is_no_working_time_and_what_was_worked_is_counted_once() {
    let world = check(
        || limited(10_000),
        |world, jump_ms| {
            world.call(&[("read", "{}")]);
            world.advance(3_000);
            world.finish_first("it");
            // The process is gone for two hours.
            world.advance(7_200_000);
            world.clocks.away_ms += 7_200_000;
            world.clocks.wall_set_ms += jump_ms;
            world.read_back();
            world.run_event(RunEvent::Recover { fresh: Vec::new() });
            world.advance(1_000);
            world.say("done");
        },
    );
    assert_eq!(world.run().active_ms(), 4_000);
}

#[test]
fn a_limit_is_reached_after_a_crash_by_what_was_worked_before_and_after_it() {
    let mut world = World::start(limited(10_000));
    world.advance(4_000);
    world.run_event(RunEvent::Say { agent: 0, text: "be quick".into(), by: "me".into() });
    world.advance(7_200_000);
    world.clocks.away_ms += 7_200_000;
    world.read_back();
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    let (_, _, due) = world.timers()[0];
    assert_eq!(due.since_ms(world.now), 5_000, "a tenth is kept for the final summary");
}

#[test]
fn a_timer_that_another_process_has_set_is_waited_for_to_its_end() {
    let mut world = World::start(limited(10_000));
    world.advance(4_000);
    let (_, seq, due) = world.timers()[0];
    world.run_event(RunEvent::TimerFired { seq });
    assert_eq!(world.outcome(), None, "nothing is due yet");
    assert_eq!(world.timers(), [(RUN.into(), seq, due)], "it waits for the rest");
    world.tick();
    assert_eq!(world.now.since_ms(crate::time::BEGIN), 9_000);
    assert!(world.aborted.iter().any(|(actor, _)| *actor == crate::world::ROOT.into()));
}

const RETRY: RetryPolicy = RetryPolicy { attempts_max: 2, backoff_base_ms: 60_000, backoff_max_ms: 60_000 };

fn restarting() -> Tree {
    let mut policy = tree_world::policy(4);
    for agent in &mut policy.agents {
        agent.agent.limits.retry = RETRY;
        agent.agent.limits.model_patience_ms = 0;
    }
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["normal"]);
    tree.fail(1, ErrorClass::Program);
    tree
}

fn restart_wait_ms(tree: &Tree) -> u64 {
    tree.log(RUN.into())
        .iter()
        .find_map(|record| match &record.entry {
            Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => Some(scheduled.delay_ms),
            _ => None,
        })
        .expect("it is restarted later")
}

#[test]
fn an_agent_is_restarted_when_its_wait_is_over() {
    for jump_ms in JUMPS_MS {
        let mut tree = restarting();
        let began = tree.now;
        let wait_ms = restart_wait_ms(&tree);
        tree.clocks.wall_set_ms += jump_ms;
        tree.tick();
        assert_eq!(tree.now.since_ms(began), wait_ms, "set by {jump_ms} ms");
        assert!(tree.thinking().contains(&1), "it goes on");
    }
}

#[test]
fn a_wait_that_began_in_another_process_lasts_no_longer_than_was_left_of_it() {
    // By how much the wall clock was set, and whether the wait is over after the time without a process.
    for (jump_ms, is_over) in [(0, true), (-HOUR_MS, false), (-8 * HOUR_MS, false), (HOUR_MS, true)] {
        let mut tree = restarting();
        let wait_ms = restart_wait_ms(&tree);
        tree.now = tree.now.plus_ms(600_000);
        tree.clocks.away_ms += 600_000;
        tree.clocks.wall_set_ms += jump_ms;
        tree.crash(|_| false);
        let began = tree.now;
        tree.tick();
        let waited_ms = tree.now.since_ms(began);
        assert_eq!(waited_ms, if is_over { 0 } else { wait_ms }, "set by {jump_ms} ms");
        assert!(tree.thinking().contains(&1), "it goes on");
    }
}
