//! Limits apply to the provider's reports, whatever our estimates, and to all agents of a run together.

use std::fmt::Write as _;

use expect_test::expect;
use provost_event::{
    Budget, BudgetEntry, ConversationEntry, Dimension, Entry, Exhausted, ItemKind, LimitOwner, Limits,
    MicroDollars, Outcome, Purpose, RunPolicy, ToolStatus, Unsummarized, Usage,
};

use crate::tree_world::{Tree, key, policy};
use crate::world::RUN;

const TOKENS: u64 = 250_000;
/// The same amount, at these tests' price of a dollar a million tokens.
const MONEY: MicroDollars = MicroDollars(250_000);
/// A page of code as a result: what a turn adds to a conversation.
const RESULT_BYTES: usize = 6_000;
const CALLS_MAX: usize = 2_000;

fn limited(budget: Budget) -> RunPolicy {
    let mut policy = policy(8);
    policy.budget = budget;
    policy.agent.limits.turns_max = Limits::TURNS_UNLIMITED;
    policy.agent.limits.repeated_call_max = u32::MAX;
    policy.agent.limits.repeated_call_notice_at = u32::MAX;
    policy.agent.limits.stuck_turns = 0;
    for agent in &mut policy.agents {
        agent.agent.limits = policy.agent.limits;
    }
    policy
}

fn tokens(limit: u64) -> Budget {
    Budget { tokens: Some(limit), ..Budget::default() }
}

/// The estimate of each agent's last reservation.
fn estimated(tree: &Tree, agent: u32) -> u64 {
    let reserved = tree.log(RUN.into()).iter().rev().find_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Reserved(reserved)) if reserved.session.agent == agent => {
            Some(reserved.estimated_tokens)
        }
        _ => None,
    });
    reserved.expect("something was set aside")
}

/// Lets all agents read on until no model is called any more, with a provider that counts `percent` of our
/// estimate. Returns the total by which its counts of the agents' first requests exceeded their estimates.
fn work_on(tree: &mut Tree, percent: u64) -> u64 {
    let (mut calls, mut first_errors) = (0, 0);
    let mut known = std::collections::BTreeSet::new();
    while let Some(agent) = tree.thinking().first().copied() {
        calls += 1;
        assert!(calls < CALLS_MAX, "it works for ever");
        let estimate = estimated(tree, agent);
        let counted = estimate * percent / 100;
        if known.insert(agent) {
            first_errors += counted.saturating_sub(estimate);
        }
        tree.usage = Usage { input_tokens: counted, output_tokens: 60, ..Usage::default() };
        let (_, model_call) = tree.model_call(agent).expect("it thinks");
        match model_call.purpose {
            Purpose::Turn => {
                tree.call(agent, &[("read", &format!("{{\"of\":{calls}}}"))]);
                tree.finish(agent, ToolStatus::Ok, &format!("line {calls} ").repeat(RESULT_BYTES / 8));
            }
            Purpose::FinalSummary | Purpose::Summary | Purpose::Judge | Purpose::External | Purpose::Hook => {
                tree.say(agent, "Half of it is done.")
            }
        }
    }
    first_errors
}

/// A run of one agent, or of three in parallel.
fn begin(budget: Budget, agents: usize, percent: u64) -> (Tree, u64) {
    let mut tree = Tree::start(limited(budget));
    if agents == 1 {
        return (tree, 0);
    }
    let estimate = estimated(&tree, 0);
    let counted = estimate * percent / 100;
    tree.usage = Usage { input_tokens: counted, output_tokens: 60, ..Usage::default() };
    tree.spawn(0, &vec!["spawn_agent"; agents - 1]);
    (tree, counted.saturating_sub(estimate))
}

#[test]
fn a_limit_is_passed_by_the_error_of_the_first_call_at_most() {
    let mut table = "factor  limit   agents  used     limit    first call's error\n".to_owned();
    for percent in [10, 100, 400, 3_000] {
        for (name, budget, limit) in [
            ("tokens", tokens(TOKENS), TOKENS),
            ("money", Budget { money: Some(MONEY), ..Budget::default() }, MONEY.0),
        ] {
            for agents in [1, 3] {
                let (mut tree, of_root) = begin(budget, agents, percent);
                let mut error = work_on(&mut tree, percent);
                if agents > 1 {
                    // The sub-agents' first requests are scaled by the root's ratio.
                    error = of_root;
                }
                let ledger = tree.run().ledger();
                let used = if name == "tokens" { ledger.tokens } else { ledger.cost.0 };
                let factor = format!("{}.{}", percent / 100, percent % 100 / 10);
                let _ =
                    writeln!(table, "{factor:>6}  {name:<6}  {agents:>6}  {used:>7}  {limit:>7}  {error:>7}");
                assert!(used <= limit + error, "{factor} {name} {agents}: {used} > {limit} + {error}");
                assert!(used * 3 > limit, "{factor} {name} {agents}: only {used} of {limit}");
                let Some(Outcome::BudgetExhausted(_)) = tree.outcome() else {
                    panic!("{:?}", tree.outcome())
                };
            }
        }
    }
    expect![[r#"
        factor  limit   agents  used     limit    first call's error
           0.1  tokens       1   132547   250000        0
           0.1  tokens       3   183170   250000        0
           0.1  money        1   132548   250000        0
           0.1  money        3   183181   250000        0
           1.0  tokens       1   228134   250000        0
           1.0  tokens       3   247276   250000        0
           1.0  money        1   228153   250000        0
           1.0  money        3   247315   250000        0
           4.0  tokens       1   207392   250000     3273
           4.0  tokens       3   249088   250000     3273
           4.0  money        1   207420   250000     3273
           4.0  money        3   249196   250000     3273
          30.0  tokens       1   239370   250000    31639
          30.0  tokens       3   226050   250000    31639
          30.0  money        1   239490   250000    31639
          30.0  money        3   226470   250000    31639
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_conversation_that_was_shortened_is_paid_by_what_was_reported_before() {
    let mut policy = limited(tokens(TOKENS));
    policy.agent.model.window_tokens = Some(40_000);
    let mut tree = Tree::start(policy);
    work_on(&mut tree, 400);
    assert!(
        tree.has(0, |entry| matches!(entry, Entry::Conversation(ConversationEntry::Compacted(_)))),
        "nothing was left out"
    );
    let used = tree.run().ledger().tokens;
    assert!(used <= TOKENS, "{used}");
}

#[test]
fn turns_of_the_budget_bind_all_agents_together() {
    let budget = Budget { turns: Some(5), ..Budget::default() };
    let mut tree = Tree::start(limited(budget));
    // Each of two sub-agents would continue forever, and so would the root.
    tree.spawn(0, &["spawn_agent", "spawn_agent"]);
    work_on(&mut tree, 100);
    assert_eq!(tree.run().ledger().turns(), 5);
    let of_turns = |record: &&provost_event::Record| matches!(&record.entry, Entry::Budget(BudgetEntry::Reserved(reserved)) if reserved.purpose == Purpose::Turn);
    assert_eq!(tree.log(RUN.into()).iter().filter(of_turns).count(), 5);
    let Some(Outcome::BudgetExhausted(exhausted)) = tree.outcome() else { panic!("{:?}", tree.outcome()) };
    assert_eq!((exhausted.dimension, exhausted.owner), (Dimension::Turns, LimitOwner::Run));
    assert_eq!(exhausted.to_string(), "Turn budget of the run used up: 5 of 5");
}

#[test]
fn an_agent_s_own_turns_are_its_own_limit() {
    let mut policy = limited(Budget::default());
    policy.agent.limits.turns_max = 2;
    let mut tree = Tree::start(policy);
    work_on(&mut tree, 100);
    let Some(Outcome::BudgetExhausted(exhausted)) = tree.outcome() else { panic!("{:?}", tree.outcome()) };
    assert_eq!(exhausted.to_string(), "Turn budget of the agent used up: 2 of 2");
}

#[test]
fn waiting_for_a_provider_takes_no_turn_and_no_token() {
    let mut tree = Tree::start(limited(Budget { turns: Some(1), ..tokens(TOKENS) }));
    tree.usage = Usage::default();
    tree.fail(0, provost_event::ErrorClass::RateLimited);
    tree.tick();
    tree.fail(0, provost_event::ErrorClass::RateLimited);
    tree.tick();
    assert_eq!((tree.run().ledger().turns(), tree.run().ledger().tokens), (1, 0));
    assert_eq!(
        tree.model_call(0).map(|(_, model_call)| (model_call.turn, model_call.purpose)),
        Some((1, Purpose::Turn))
    );
}

fn notices(tree: &Tree, agent: u32) -> Vec<(ItemKind, String)> {
    let items = tree.log(key(agent)).iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::SystemItem(item)) => Some((item.item, item.body.clone())),
        _ => None,
    });
    items.collect()
}

#[test]
fn the_model_hears_once_of_half_of_four_fifths_and_of_nearly_all_of_a_limit() {
    let mut tree = Tree::start(limited(Budget { turns: Some(20), ..Budget::default() }));
    work_on(&mut tree, 100);
    let said = notices(&tree, 0).into_iter().map(|(_, body)| body).collect::<Vec<_>>().join("\n");
    expect![[r#"
        50% of the run's limit is used (turns: 10 of 20). Plan the rest of the work within it.
        80% of the run's limit is used (turns: 16 of 20). Bring the work to an end in time; at the limit it stops.
        This is the last turn that the run may take, of all its agents: tools that you call now are still run, and then you are asked once, without tools, how far the work has come. Finish what matters most."#]].assert_eq(&said);
    let mut tree = Tree::start(limited(tokens(100_000)));
    work_on(&mut tree, 100);
    let kinds = notices(&tree, 0).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
    let notice = |percent| ItemKind::LimitNotice { dimension: Dimension::Tokens, percent };
    assert_eq!(kinds, [notice(50)], "the rest is kept to end what runs, and for a final summary");
}

#[test]
fn time_is_told_of_too() {
    let mut tree = Tree::start(limited(Budget { wall_time_ms: Some(100_000), ..Budget::default() }));
    tree.now = tree.now.plus_ms(60_000);
    tree.call(0, &[("read", "{}")]);
    tree.finish(0, ToolStatus::Ok, "x");
    let said = notices(&tree, 0).into_iter().map(|(_, body)| body).collect::<Vec<_>>().join("\n");
    expect!["60% of the run's limit is used (time: 60 of 100 seconds). Plan the rest of the work within it."]
        .assert_eq(&said);
}

#[test]
fn what_the_next_call_needs_is_said_and_what_is_kept_for_what() {
    let tokens = |used, shortfall| Exhausted { shortfall, ..Exhausted::new(Dimension::Tokens, used, 1_000) };
    let none = provost_event::Shortfall { needs: 2_200, reserved: 0, summary: 0, judges: 0 };
    let kept = provost_event::Shortfall { needs: 300, reserved: 100, summary: 400, judges: 50 };
    let said = [
        tokens(1_200, None),
        tokens(900, Some(none)),
        tokens(310, Some(kept)),
        Exhausted { unsummarized: Some(Unsummarized::CantBePaid), ..tokens(900, Some(none)) },
        Exhausted { unsummarized: Some(Unsummarized::CantBePaid), ..tokens(310, Some(kept)) },
        Exhausted {
            owner: LimitOwner::Agent,
            shortfall: Some(provost_event::Shortfall { needs: 350_000, summary: 400_000, ..none }),
            ..Exhausted::new(Dimension::Money, 310_000, 1_000_000)
        },
    ];
    let said = said.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    expect![[r#"
        Token budget exceeded: 1,200 > 1,000
        Token budget too small to go on: 900 of 1,000 used; the next call needs about 2,200 tokens; 100 are left
        Token budget too small to go on: 310 of 1,000 used; the next call needs about 300 tokens, 400 are kept for the final summary, 50 are kept for judges, 100 are reserved for calls of other agents; 690 are left
        Token budget too small to go on: 900 of 1,000 used; the next call needs about 2,200 tokens; 100 are left; no final summary: it can't be paid either
        Token budget too small to go on: 310 of 1,000 used; the next call needs about 300 tokens, 50 are kept for judges, 100 are reserved for calls of other agents; 690 are left; no final summary: what was kept for it (400) no longer pays for one
        Money budget of the agent too small to go on: $0.31 of $1.00 used; the next call needs about $0.35, $0.40 is kept for the final summary; $0.69 is left"#]].assert_eq(&said);
}

#[test]
fn where_the_final_summary_cannot_be_paid_the_outcome_says_so() {
    let mut tree = Tree::start(limited(tokens(4_000)));
    // The first call's error leaves no budget for anything else.
    tree.usage = Usage { input_tokens: 3_900, output_tokens: 60, ..Usage::default() };
    tree.call(0, &[("read", "{}")]);
    tree.finish(0, ToolStatus::Ok, "x");
    let Some(Outcome::BudgetExhausted(exhausted)) = tree.outcome() else { panic!("{:?}", tree.outcome()) };
    assert_eq!(exhausted.unsummarized, Some(Unsummarized::CantBePaid));
    expect!["Token budget too small to go on: 3,960 of 4,000 used; the next call needs about 4,249 tokens; 40 are left; no final summary: it can't be paid either"].assert_eq(&exhausted.to_string());
}
