//! Goals of sub-agents, and of agents that yield.

use expect_test::expect;
use provost_engine::{AgentState, Effect, GoalStatus, JudgeCall, RunEvent, SessionEvent};
use provost_event::{
    AgentPolicy, Entry, ErrorClass, FlowPolicy, GoalEntry, GoalPolicy, GoalState, JudgeAnswer,
    LifecycleEntry, OnStepFailure, Outcome, PauseReason, Priority, RunPolicy, Seq, StepPolicy,
    SupervisorError, ToolEntry, ToolStatus,
};

use crate::goals::{judge, no, report_of, timeout, yes};
use crate::tree_world::{Tree, key, policy};

/// Sub-agents named `low` have a goal, and agents may give each other goals.
pub(crate) fn judged_policy(max_agents: u32, change: impl Fn(&mut GoalPolicy)) -> RunPolicy {
    let mut policy = policy(max_agents);
    let mut goal = GoalPolicy::new("the tests pass", judge("judge"));
    change(&mut goal);
    policy.judging = Some(Box::new(GoalPolicy { condition: String::new(), ..goal.clone() }));
    for sub_agent in policy.agents.iter_mut().filter(|agent| agent.name == "low") {
        sub_agent.agent.goal = Some(Box::new(goal.clone()));
    }
    policy
}

fn judging(tree: &Tree, agent: u32) -> Option<(Seq, JudgeCall)> {
    tree.open.iter().filter(|(id, _)| id.0 == key(agent)).find_map(|(id, effect)| match effect {
        Effect::Judge(call) => Some((id.1, call.clone())),
        _ => None,
    })
}

pub(crate) fn say_of(tree: &mut Tree, agent: u32, answer: JudgeAnswer) {
    let Some((seq, _)) = judging(tree, agent) else {
        panic!("no judge of {agent} is asked: {}", tree.news())
    };
    tree.event(agent, SessionEvent::Judged { seq, report: report_of(answer, "") });
}

fn aborted() -> JudgeAnswer {
    JudgeAnswer::Failed(SupervisorError::Llm {
        class: ErrorClass::Aborted,
        message: "stopped".to_owned(),
        hint: String::new(),
    })
}

fn status(tree: &Tree, agent: u32) -> GoalStatus {
    tree.session(agent).expect("an agent").goal().expect("it has a goal")
}

fn started(tree: &Tree, agent: u32) -> AgentPolicy {
    let policy = |entry: &Entry| match entry {
        Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => Some(started.policy.clone()),
        _ => None,
    };
    tree.log(key(agent)).iter().find_map(|record| policy(&record.entry)).expect("it has begun")
}

fn is_completed(outcome: Option<Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Completed { .. }))
}

#[test]
fn a_sub_agent_s_claim_is_confirmed_before_its_parent_hears_of_it() {
    let mut tree = Tree::start(judged_policy(3, |_| {}));
    tree.spawn(0, &["low"]);
    tree.say(1, "done");
    assert_eq!((tree.results(0).len(), status(&tree, 1).state), (0, GoalState::Verifying));
    say_of(&mut tree, 1, no());
    assert_eq!((tree.results(0).len(), status(&tree, 1).rounds), (0, 1));
    tree.say(1, "now it is");
    say_of(&mut tree, 1, yes(90));
    assert_eq!(status(&tree, 1).state, GoalState::Achieved);
    assert_eq!(tree.results(0), [(ToolStatus::Ok, "now it is".to_owned())]);
    tree.say(0, "done");
    assert!(is_completed(tree.outcome()));
}

#[test]
fn agents_give_each_other_goals() {
    let mut tree = Tree::start(judged_policy(3, |goal| goal.rounds_max = 7));
    let call = r#"{"goal":"g","done_when":"  the file a.txt exists  "}"#;
    tree.call(0, &[("spawn_agent", call)]);
    let policy = started(&tree, 1);
    let goal = policy.goal.expect("it has a goal");
    // The run's settings for judging, with the agent's condition.
    assert_eq!((goal.condition.as_str(), goal.rounds_max), ("the file a.txt exists", 7));
    assert!(policy.system_prompt.contains("the file a.txt exists"), "{}", policy.system_prompt);
    tree.say(1, "done");
    say_of(&mut tree, 1, yes(90));
    assert_eq!(tree.results(0), [(ToolStatus::Ok, "done".to_owned())]);
}

#[test]
fn a_goal_without_a_judge_or_a_text_is_an_error() {
    let unjudged = (policy(3), "it is done", expect!["No judge is configured here: leave `done_when` out."]);
    let empty = (
        judged_policy(3, |_| {}),
        "  ",
        expect!["`done_when` is empty: say what must be true, or leave it out."],
    );
    for (policy, condition, words) in [unjudged, empty] {
        let mut tree = Tree::start(policy);
        tree.call(0, &[("spawn_agent", &format!(r#"{{"goal":"g","done_when":"{condition}"}}"#))]);
        let results = tree.results(0);
        assert_eq!((results.len(), results[0].0, tree.session(1).is_none()), (1, ToolStatus::Rejected, true));
        words.assert_eq(&results[0].1);
    }
}

#[test]
fn an_agent_like_its_parent_has_none_of_its_goal() {
    let mut policy = judged_policy(4, |_| {});
    policy.agent.goal = Some(Box::new(GoalPolicy::new("the whole thing works", judge("judge"))));
    let mut tree = Tree::start(policy);
    assert!(started(&tree, 0).system_prompt.contains("the whole thing works"));
    tree.spawn(0, &["spawn_agent", "low"]);
    // Nor of a configured agent's goal.
    tree.spawn(2, &["spawn_agent"]);
    for agent in [1, 3] {
        let policy = started(&tree, agent);
        assert_eq!(policy.goal, None, "agent {agent}");
        assert!(!policy.system_prompt.contains("the whole thing works"), "agent {agent}");
        assert!(!policy.system_prompt.contains("the tests pass"), "agent {agent}");
        assert_eq!(tree.session(agent).expect("an agent").goal(), None);
        tree.say(agent, "done");
        assert!(is_completed(tree.suspended(agent)), "agent {agent}");
    }
    assert!(!started(&tree, 2).system_prompt.contains("the whole thing works"));
    tree.say(2, "done");
    say_of(&mut tree, 2, yes(90));
    tree.say(0, "done");
    say_of(&mut tree, 0, yes(90));
    assert!(is_completed(tree.outcome()));
}

/// What a parent gets of a sub-agent that is suspended after one wrong claim.
fn heard(change: impl Fn(&mut GoalPolicy)) -> String {
    let mut tree = Tree::start(judged_policy(3, change));
    tree.spawn(0, &["low"]);
    tree.say(1, "I am done.");
    say_of(&mut tree, 1, no());
    assert!(tree.model_call(0).is_some(), "{}", tree.news());
    assert_ne!(status(&tree, 1).state, GoalState::Achieved);
    let output = |entry: &Entry| match entry {
        Entry::Tool(ToolEntry::Finished(done)) => Some(format!("{:?}: {}", done.status, done.output)),
        _ => None,
    };
    tree.log(key(0)).iter().find_map(|record| output(&record.entry)).expect("it hears something")
}

#[test]
fn a_parent_hears_that_a_sub_agent_s_claims_were_wrong_too_often() {
    expect![[r#"
        Error: I am done.

        <system-reminder id="eefpmdbpejljfcdc">
        [agent 000000000001.1 (low): blocked: judge: I looked.; turns: 1, tokens: 320, cost: $0.0004]
        </system-reminder>"#]]
    .assert_eq(&heard(|goal| goal.rounds_max = 1));
}

#[test]
fn a_parent_hears_that_a_sub_agent_is_stuck() {
    expect![[r#"
        Error: I am done.

        <system-reminder id="eefpmdbpejljfcdc">
        [agent 000000000001.1 (low): stuck: 1 turn without measurable progress; turns: 1, tokens: 320, cost: $0.0004]
        </system-reminder>"#]].assert_eq(&heard(|goal| goal.stuck_turns = 1));
}

#[test]
fn a_parent_is_suspended_with_a_sub_agent_that_can_t_be_judged() {
    let mut tree = Tree::start(judged_policy(3, |goal| goal.failures_max = 1));
    tree.spawn(0, &["low"]);
    tree.say(1, "done");
    tree.news();
    say_of(&mut tree, 1, timeout());
    assert_eq!((status(&tree, 1).state, tree.results(0).len()), (GoalState::Paused, 0));
    expect![[r#"
        1 is suspended: the judge gives no verdict: one failure, the last: no verdict within 60 s
        0 is suspended: the judge gives no verdict: one failure, the last: no verdict within 60 s
        suspended: the judge gives no verdict: one failure, the last: no verdict within 60 s
    "#]]
    .assert_eq(&tree.news());
    assert!(tree.outcome().is_some_and(|outcome| !outcome.is_final()));
    tree.resume(None);
    // The same claim is verified anew.
    say_of(&mut tree, 1, yes(90));
    assert_eq!(tree.results(0), [(ToolStatus::Ok, "done".to_owned())]);
}

#[test]
fn a_sub_agent_s_goal_is_cleared_alone() {
    let mut policy = judged_policy(3, |_| {});
    policy.agent.goal = Some(Box::new(GoalPolicy::new("the whole thing works", judge("judge"))));
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["low", "normal"]);
    tree.say(1, "done");
    tree.run_event(RunEvent::ClearGoal { agent: 1, by: "me".to_owned() });
    say_of(&mut tree, 1, yes(90));
    assert_eq!((status(&tree, 1).state, status(&tree, 1).finding), (GoalState::Aborted, None));
    assert_eq!(status(&tree, 0).state, GoalState::Running);
    assert_eq!((tree.results(0).len(), tree.thinking()), (0, vec![2]));
    tree.resume(Some(1));
    // It had claimed to be done, and there is no objection any more.
    assert!(is_completed(tree.suspended(1)), "{}", tree.news());
    tree.say(2, "done");
    tree.say(0, "done");
    say_of(&mut tree, 0, yes(90));
    assert!(is_completed(tree.outcome()));
}

#[test]
fn a_goal_cleared_of_a_parent_has_those_below_it_rest_too() {
    let mut policy = judged_policy(3, |_| {});
    policy.agent.goal = Some(Box::new(GoalPolicy::new("the whole thing works", judge("judge"))));
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["low", "normal"]);
    tree.say(1, "done");
    tree.run_event(RunEvent::ClearGoal { agent: 0, by: "me".to_owned() });
    say_of(&mut tree, 1, yes(90));
    tree.fail(2, ErrorClass::Aborted);
    assert!(tree.outcome().is_some_and(|outcome| !outcome.is_final()), "{}", tree.news());
    assert_eq!(status(&tree, 0).state, GoalState::Aborted);
    // The sub-agent keeps its own.
    assert_eq!((status(&tree, 1).state, status(&tree, 1).finding), (GoalState::Paused, None));
    tree.resume(None);
    say_of(&mut tree, 1, yes(90));
    tree.say(2, "done");
    tree.say(0, "done");
    assert!(is_completed(tree.outcome()), "{}", tree.news());
}

#[test]
fn judges_of_all_agents_share_one_part_of_the_run_s_budget() {
    let mut policy = judged_policy(4, |goal| {
        goal.evidence_tokens_max = 500;
        goal.budget_percent = 10;
    });
    // Judges have 4,000 tokens: enough for one of about 2,500 at a time.
    policy.budget.tokens = Some(40_000);
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["low", "low"]);
    tree.say(1, "done");
    tree.say(2, "done");
    assert!(judging(&tree, 1).is_some());
    assert_eq!(judging(&tree, 2), None, "{}", tree.news());
    let is_unjudged = |outcome: &Outcome| {
        matches!(outcome, Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, .. } })
    };
    assert!(tree.suspended(2).as_ref().is_some_and(is_unjudged), "{:?}", tree.suspended(2));
    say_of(&mut tree, 1, yes(90));
    assert!(is_completed(tree.suspended(1)));
    // What the first didn't use is left for the second.
    tree.resume(None);
    say_of(&mut tree, 2, yes(90));
    assert!(is_completed(tree.suspended(2)), "{}", tree.news());
}

#[test]
fn a_judge_of_an_agent_counts_for_all_above_it() {
    let mut tree = Tree::start(judged_policy(3, |_| {}));
    tree.spawn(0, &["low"]);
    tree.say(1, "done");
    let before = tree.charged();
    say_of(&mut tree, 1, yes(90));
    assert_eq!(tree.charged(), before + 220);
}

fn step(name: &str, agent: Option<&str>) -> StepPolicy {
    StepPolicy {
        name: name.to_owned(),
        needs: Vec::new(),
        agent: agent.map(str::to_owned),
        goal: format!("do {name}"),
        stop_hooks: Vec::new(),
        attempts_max: 1,
        restarts_max: None,
        on_failure: OnStepFailure::Abort,
        priority: Priority::Normal,
        budget: provost_event::Budget::default(),
    }
}

#[test]
fn steps_of_a_flow_have_none_of_the_run_s_goal_but_that_of_their_agent() {
    let mut policy = judged_policy(3, |_| {});
    policy.agent.goal = Some(Box::new(GoalPolicy::new("the whole thing works", judge("judge"))));
    let steps = vec![step("plain", None), step("judged", Some("low"))];
    policy.flow = Some(FlowPolicy { name: "flow".to_owned(), file: None, steps });
    let run = provost_engine::Actor::new(crate::world::RUN.into());
    let told = sessions_started(run, policy);
    let goal = |policy: &AgentPolicy| policy.goal.as_ref().map(|goal| goal.condition.clone());
    let goals = told.iter().map(goal).collect::<Vec<_>>();
    assert_eq!(goals, [None, Some("the tests pass".to_owned())]);
    assert!(told.iter().all(|policy| !policy.system_prompt.contains("the whole thing works")));
}

/// The policies of the sessions that a run begins with.
fn sessions_started(mut run: provost_engine::Actor, policy: RunPolicy) -> Vec<AgentPolicy> {
    let (goal, images) = ("g".to_owned(), Vec::new());
    let now = provost_engine::Now {
        at: provost_event::Timestamp(1_000),
        elapsed: provost_event::Elapsed(1_000),
        entropy: 7,
    };
    let step =
        run.decide(RunEvent::Start { goal, images, policy: Box::new(policy), baseline: None }.into(), now);
    let policy = |message: provost_engine::Message| match message.event {
        provost_engine::Event::Session(SessionEvent::Start(started)) => Some(started.policy.clone()),
        _ => None,
    };
    step.messages.into_iter().filter_map(policy).collect()
}

/// Agent 1 is judged, and agent 2 may request one that takes its slot.
fn crowded() -> Tree {
    let mut tree = Tree::start(judged_policy(3, |_| {}));
    tree.spawn(0, &["low", "normal"]);
    tree
}

fn is_preempted_by_another(tree: &Tree, agent: u32) -> bool {
    matches!(tree.standing(agent), AgentState::Preempted { .. })
}

/// Agent 3 has taken the slot of agent 1, and gives it back.
fn slot_comes_back(tree: &mut Tree) {
    assert!(is_preempted_by_another(tree, 1), "{}", tree.news());
    assert_eq!(status(tree, 1).state, GoalState::Paused);
    assert_eq!(judging(tree, 1), None);
    tree.say(3, "done");
    tree.say(2, "done");
}

#[test]
fn an_agent_whose_judge_is_waited_for_makes_way_at_once_and_is_judged_later() {
    let mut tree = crowded();
    tree.say(1, "done");
    say_of(&mut tree, 1, JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    tree.spawn(2, &["high"]);
    slot_comes_back(&mut tree);
    say_of(&mut tree, 1, yes(90));
    assert!(is_completed(tree.suspended(1)), "{}", tree.news());
}

#[test]
fn a_verdict_that_comes_within_the_grace_counts() {
    let mut tree = crowded();
    tree.say(1, "done");
    tree.spawn(2, &["high"]);
    assert!(!tree.is_aborted(1));
    say_of(&mut tree, 1, yes(90));
    assert!(is_completed(tree.suspended(1)), "{:?} {}", tree.standing(1), tree.news());
    // A no as well: the agent is notified, and yields before its next call.
    let mut tree = crowded();
    tree.say(1, "done");
    tree.spawn(2, &["high"]);
    say_of(&mut tree, 1, no());
    assert_eq!(status(&tree, 1).rounds, 1);
    slot_comes_back(&mut tree);
    assert!(tree.model_call(1).is_some(), "{}", tree.news());
}

#[test]
fn a_judge_that_outlasts_the_grace_is_asked_again_when_a_slot_is_free() {
    let mut tree = crowded();
    tree.say(1, "done");
    tree.spawn(2, &["high"]);
    let was_told = (0..20).any(|_| {
        tree.tick();
        tree.is_aborted(1)
    });
    assert!(was_told, "{}", tree.news());
    say_of(&mut tree, 1, aborted());
    // No judge failed.
    assert_eq!(status(&tree, 1).failures, 0);
    slot_comes_back(&mut tree);
    say_of(&mut tree, 1, yes(90));
    assert!(is_completed(tree.suspended(1)), "{}", tree.news());
}

#[test]
fn a_judge_cut_off_amid_the_work_is_asked_again_or_the_work_goes_on() {
    let mut tree = Tree::start(judged_policy(3, |goal| goal.verify_every = Some(1)));
    tree.spawn(0, &["low", "normal"]);
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "read");
    assert!(judging(&tree, 1).is_some());
    tree.spawn(2, &["high"]);
    let was_told = (0..20).any(|_| {
        tree.tick();
        tree.is_aborted(1)
    });
    assert!(was_told, "{}", tree.news());
    say_of(&mut tree, 1, aborted());
    slot_comes_back(&mut tree);
    assert!(judging(&tree, 1).is_some() || tree.model_call(1).is_some(), "{}", tree.news());
}

#[test]
fn a_crash_amid_several_verifications_asks_each_judge_once_more() {
    let mut tree = Tree::start(judged_policy(4, |_| {}));
    tree.spawn(0, &["low", "low", "low"]);
    for agent in 1..=3 {
        tree.say(agent, "done");
    }
    say_of(&mut tree, 3, no());
    tree.crash(|id| id.actor == key(2));
    for agent in 1..=2 {
        say_of(&mut tree, agent, yes(90));
        let verdicts = tree
            .log(key(agent))
            .iter()
            .filter(|record| matches!(record.entry, Entry::Goal(GoalEntry::Verdict(_))));
        assert_eq!(verdicts.count(), 1, "agent {agent}");
    }
    assert_eq!((status(&tree, 3).rounds, tree.thinking()), (1, vec![3]));
    tree.say(3, "done");
    say_of(&mut tree, 3, yes(90));
    tree.say(0, "done");
    assert!(is_completed(tree.outcome()), "{}", tree.news());
}

#[test]
fn a_preempted_agent_that_lost_its_goal_waits_for_a_resume() {
    let mut tree = crowded();
    tree.say(1, "done");
    say_of(&mut tree, 1, JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    tree.spawn(2, &["high"]);
    assert!(is_preempted_by_another(&tree, 1), "{}", tree.news());
    tree.run_event(RunEvent::ClearGoal { agent: 1, by: "me".to_owned() });
    tree.say(3, "done");
    tree.say(2, "done");
    assert_eq!((tree.results(0).len(), status(&tree, 1).state), (1, GoalState::Aborted), "{}", tree.news());
    assert_eq!(judging(&tree, 1), None);
    assert!(!is_completed(tree.suspended(1)), "{}", tree.news());
    tree.resume(None);
    assert!(is_completed(tree.suspended(1)), "{}", tree.news());
}
