//! Goals: a claim ends the work only if it is confirmed.

use expect_test::expect;
use provost_engine::{Effect, GoalStatus, JudgeCall, JudgeReport, RunEvent, SessionEvent};
use provost_event::{
    Block, Budget, BudgetEntry, Confidence, ConversationEntry, Entry, GoalFinding, GoalPolicy, GoalState,
    ItemKind, JudgeAnswer, ModelPolicy, Outcome, RunPolicy, Seq, StopReason, SupervisorError,
    SupervisorVerdict, SystemItem, Usage, Verdict,
};

use crate::world::{World, policy, without_hooks};

/// A policy with a goal and without stop hooks, changed by `change`.
pub(crate) fn goal_with(change: impl FnOnce(&mut GoalPolicy)) -> RunPolicy {
    with_goal(without_hooks(), change)
}

pub(crate) fn goal() -> RunPolicy {
    goal_with(|_| {})
}

/// A policy whose stop hook is called before the judge.
pub(crate) fn goal_with_hooks(change: impl FnOnce(&mut GoalPolicy)) -> RunPolicy {
    with_goal(policy(), change)
}

pub(crate) fn with_goal(mut policy: RunPolicy, change: impl FnOnce(&mut GoalPolicy)) -> RunPolicy {
    let mut goal = GoalPolicy::new("the tests pass", judge("judge"));
    change(&mut goal);
    policy.agent.goal = Some(Box::new(goal));
    policy
}

/// Its price is that of the agent's model.
pub(crate) fn judge(name: &str) -> ModelPolicy {
    ModelPolicy { price: policy().agent.model.price, ..ModelPolicy::new(name, 500) }
}

fn verdict(achieved: bool, confidence: Confidence) -> JudgeAnswer {
    JudgeAnswer::Verdict(SupervisorVerdict {
        achieved,
        reasoning: "I looked.".to_owned(),
        confidence,
        suggestions: vec!["run the tests".to_owned()],
    })
}

pub(crate) fn yes(hundredths: u8) -> JudgeAnswer {
    verdict(true, Confidence::hundredths(hundredths))
}

pub(crate) fn no() -> JudgeAnswer {
    verdict(false, Confidence::hundredths(90))
}

pub(crate) fn failed(error: SupervisorError) -> JudgeAnswer {
    JudgeAnswer::Failed(error)
}

pub(crate) fn timeout() -> JudgeAnswer {
    failed(SupervisorError::Timeout(60_000))
}

pub(crate) fn malformed() -> JudgeAnswer {
    failed(SupervisorError::Parse("Well.".to_owned()))
}

pub(crate) fn status(world: &World) -> GoalStatus {
    world.session().goal().expect("it has a goal")
}

/// The open call of a judge.
pub(crate) fn judge_call(world: &World) -> JudgeCall {
    let call = |effect: &Effect| match effect {
        Effect::Judge(call) => Some(call.clone()),
        _ => None,
    };
    world.open.values().find_map(call).expect("a judge is asked")
}

/// A judge's report with `answer`, about a workspace with this `evidence`.
pub(crate) fn report_of(answer: JudgeAnswer, evidence: &str) -> JudgeReport {
    let usage = Usage { input_tokens: 200, output_tokens: 20, ..Usage::default() };
    let (model, evidence) = ("judge".to_owned(), evidence.to_owned());
    JudgeReport { answer, usage, model, duration_ms: 3, evidence }
}

pub(crate) fn judged(world: &mut World, seq: Seq, answer: JudgeAnswer) {
    world.session_event(SessionEvent::Judged { seq, report: report_of(answer, "") });
}

/// A turn with a call that was never made before.
pub(crate) fn work(world: &mut World) {
    let input = format!("{{\"n\":{}}}", world.session_log().len());
    world.call(&[("read", &input)]);
    world.finish_first("read");
}

pub(crate) fn resume(world: &mut World) {
    resume_with(world, Budget::default());
}

pub(crate) fn resume_with(world: &mut World, budget: Budget) {
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".to_owned(),
        budget,
        turns_max: None,
        text: None,
    });
}

/// The run's status, as a person sees it.
pub(crate) fn ending(world: &World) -> String {
    world.outcome().map_or_else(|| "it goes on".to_owned(), |outcome| outcome.to_string())
}

pub(crate) fn entries(world: &World) -> Vec<Entry> {
    world.session_log().iter().map(|record| record.entry.clone()).collect()
}

/// The agent's notices of this kind.
pub(crate) fn items(world: &World, kind: ItemKind) -> Vec<SystemItem> {
    let item = |entry: Entry| match entry {
        Entry::Conversation(ConversationEntry::SystemItem(item)) if item.item == kind => Some(item),
        _ => None,
    };
    entries(world).into_iter().filter_map(item).collect()
}

#[test]
fn a_confirmed_claim_ends_the_work() {
    let mut world = World::start(goal());
    world.say("Done. VERDICT: PASS");
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message EndTurn 1 blocks
        goal_check_started Claim turn 1 generation 1
        model_called turn 1 call 2 attempt 1 for Judge
          → #5 judge 0 (Claim, turn 1)
    "#]]
    .assert_eq(&world.news());
    assert_eq!(status(&world).state, GoalState::Verifying);
    world.judge(yes(85));
    expect![[r#"
        goal_judged judge generation 1: achieved 0.85
        goal_verdict Claim turn 1 generation 1: achieved 0.85
        turn_ended
        ended: completed (verdict PASS), verified
    "#]]
    .assert_eq(&world.news());
    assert_eq!(
        world.outcome(),
        Some(Outcome::Completed {
            verdict: Some(Verdict::Pass),
            verification: provost_event::Verification::Passed
        })
    );
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn the_judge_has_to_be_as_sure_as_the_threshold_says() {
    let mut world = World::start(goal());
    world.say("done");
    world.judge(verdict(true, Confidence::of(0.699_999)));
    assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", 1));
    let Some(GoalFinding::NotAchieved { reasoning, confidence, .. }) = status(&world).finding else {
        panic!("{:?}", status(&world))
    };
    // No verdict denied it.
    assert_eq!(confidence, None);
    expect!["It looks reached, but the judge is not sure enough: 0.69, and 0.70 is needed. I looked."]
        .assert_eq(&reasoning);
    world.say("done");
    world.judge(yes(70));
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn a_threshold_of_nothing_takes_any_yes_and_no_no() {
    let mut world = World::start(goal_with(|goal| goal.threshold = Confidence::hundredths(0)));
    world.say("done");
    world.judge(verdict(false, Confidence::FULL));
    assert_eq!(ending(&world), "it goes on");
    world.say("done");
    world.judge(verdict(true, Confidence::default()));
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn an_agent_that_is_not_done_is_told_what_the_judge_says() {
    let mut world = World::start(goal());
    world.say("done");
    world.judge(no());
    let told = items(&world, ItemKind::GoalNotReached);
    expect![[r#"
        [
            SystemItem {
                item: GoalNotReached,
                body: "The goal isn't reached yet, so you can't stop. An independent judge who saw the evidence says:\n\nI looked.\n\nWhat it suggests:\n- run the tests",
                origin: Judges,
                rules: [],
            },
        ]
    "#]].assert_debug_eq(&told);
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message EndTurn 1 blocks
        goal_check_started Claim turn 1 generation 1
        model_called turn 1 call 2 attempt 1 for Judge
        goal_judged judge generation 1: not achieved 0.90
        goal_verdict Claim turn 1 generation 1: not achieved, I looked.
        system_item GoalNotReached
        turn_ended
        model_called turn 2 call 3 attempt 1
          → #10 call model (turn 2, cap 1000)
    "#]]
    .assert_eq(&world.news());
}

#[test]
fn a_judge_without_suggestions_gives_only_its_reasons() {
    let mut world = World::start(goal());
    world.say("done");
    let said = SupervisorVerdict {
        achieved: false,
        reasoning: "Two tests fail.".to_owned(),
        confidence: Confidence::FULL,
        suggestions: Vec::new(),
    };
    world.judge(JudgeAnswer::Verdict(said));
    let told = items(&world, ItemKind::GoalNotReached);
    expect![[r#"
        The goal isn't reached yet, so you can't stop. An independent judge who saw the evidence says:

        Two tests fail."#]]
    .assert_eq(&told[0].body);
}

#[test]
fn claims_found_wrong_too_often_leave_it_blocked_with_the_last_reasons() {
    let mut world = World::start(goal_with(|goal| goal.rounds_max = 2));
    work(&mut world);
    world.say("done");
    world.judge(no());
    work(&mut world);
    world.say("done");
    world.judge(no());
    let reasons = vec!["judge: I looked.".to_owned()];
    assert_eq!(world.outcome(), Some(Outcome::Blocked { reasons }), "{}", world.news());
    assert_eq!((status(&world).state, status(&world).rounds), (GoalState::Blocked, 2));
    // A resumption gives it as many claims again.
    resume(&mut world);
    assert_eq!((status(&world).state, status(&world).rounds), (GoalState::Running, 0));
    world.say("done");
    world.judge(no());
    assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", 1));
    world.say("done");
    world.judge(no());
    assert_eq!(status(&world).state, GoalState::Blocked);
}

#[test]
fn ten_wrong_claims_block_it_by_default() {
    let mut policy = goal_with(|goal| goal.stuck_turns = 100);
    policy.agent.limits.turns_max = 100;
    let mut world = World::start(policy);
    for round in 1..=9 {
        world.say("done");
        world.judge(no());
        assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", round));
    }
    world.say("done");
    world.judge(no());
    assert_eq!(status(&world).state, GoalState::Blocked);
}

#[test]
fn what_the_judge_is_asked_is_about_the_claim() {
    let mut world = World::start(goal());
    work(&mut world);
    world.say("done");
    let call = judge_call(&world);
    expect![[r#"
        JudgeCall {
            session: 000000000001.0,
            turn: 2,
            generation: 1,
            trigger: Claim,
            through: Seq(
                10,
            ),
            judge: 0,
            again: false,
            asked_before: 0,
            output_tokens_max: 500,
        }
    "#]]
    .assert_debug_eq(&call);
    // All evidence precedes it, including its own entry.
    assert_eq!(call.through, world.session_log().last().expect("an entry").seq);
}

#[test]
fn a_verdict_is_paid_for_at_the_judge_s_price() {
    let mut world = World::start(goal());
    world.say("done");
    world.judge(no());
    world.say("done");
    world.judge(yes(90));
    let charged = world.run_log().iter().filter_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => {
            Some((charged.model.clone(), charged.turn, charged.usage.total(), charged.cost))
        }
        _ => None,
    });
    expect![[r#"
        [
            (
                "script:test",
                1,
                100,
                Some(
                    MicroDollars(
                        100,
                    ),
                ),
            ),
            (
                "judge",
                1,
                220,
                Some(
                    MicroDollars(
                        220,
                    ),
                ),
            ),
            (
                "script:test",
                2,
                100,
                Some(
                    MicroDollars(
                        100,
                    ),
                ),
            ),
            (
                "judge",
                2,
                220,
                Some(
                    MicroDollars(
                        220,
                    ),
                ),
            ),
        ]
    "#]]
    .assert_debug_eq(&charged.collect::<Vec<_>>());
}

#[test]
fn without_a_goal_no_judge_is_asked() {
    let mut world = World::start(without_hooks());
    assert_eq!(world.session().goal(), None);
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn an_answer_that_was_cut_off_or_is_empty_is_no_claim() {
    let mut world = World::start(goal());
    world.answer(vec![Block::Text("I am do".to_owned())], StopReason::OutputCap);
    assert_eq!((world.judging(), status(&world).state), (None, GoalState::Running));
    world.answer(vec![], StopReason::EndTurn);
    assert_eq!((world.judging(), status(&world).state), (None, GoalState::Running));
    world.say("done");
    assert!(world.judging().is_some());
}

#[test]
fn a_model_that_refuses_claims_nothing() {
    let mut world = World::start(goal());
    world.answer(vec![Block::Text("I won't.".to_owned())], StopReason::Refusal);
    assert_eq!(world.judging(), None);
    assert_eq!(status(&world).state, GoalState::Paused);
}

#[test]
fn each_change_of_how_it_stands_counts_the_generation_up() {
    let mut world = World::start(goal());
    let mut seen = vec![status(&world).generation];
    let mut see = |world: &World| seen.push(status(world).generation);
    world.say("done");
    see(&world);
    world.judge(no());
    see(&world);
    world.say("done");
    see(&world);
    world.run_event(RunEvent::Pause { agent: None, by: "me".to_owned() });
    see(&world);
    world.judge(timeout());
    see(&world);
    resume(&mut world);
    see(&world);
    world.judge(yes(90));
    see(&world);
    let counts_up = seen.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(counts_up, "{seen:?}");
    assert_eq!(status(&world).state, GoalState::Achieved);
}
