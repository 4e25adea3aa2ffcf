//! The scenarios of the matrix.

mod scripts;

use provost_event::{Budget, MicroDollars};

use super::scenario::{After, Answers, PLAIN, Points, Same, Scenario, Summaries};
use scripts::{
    agents, all_hooks, asks_to_stop, compaction_hooks, compaction_refused, consent, endless, forked, gated,
    goals, late_consent, long_notes, long_words, many, many_turns, programs, small_window, stop_hooks, tools,
    troubles,
};

const TRIM: &str = "\"how\":\"trim\"";
const SUMMARY: &str = "\"how\":\"summary\"";
const EMERGENCY: &str = "\"how\":\"emergency\"";
const USELESS: &str = "\"useless_summary\"";
const LAST: &str = "\"type\":\"final_summary_finished\",\"text\":";

/// All of them, in the order in which they are run.
pub(super) const ALL: &[Scenario] = &[
    Scenario { name: "tools", turn: tools, shows: &["\"shell\"", "\"rejected\""], ..PLAIN },
    Scenario { name: "fork", turn: forked, forks: true, shows: &["\"type\":\"forked\""], ..PLAIN },
    Scenario {
        name: "troubles",
        turn: troubles,
        shows: &["\"overloaded\"", "\"empty_answer\"", "\"continue\""],
        ..PLAIN
    },
    Scenario { name: "trim", turn: long_notes, policy: small_window, shows: &[TRIM], ..PLAIN },
    Scenario { name: "summary", turn: long_words, policy: small_window, shows: &[SUMMARY], ..PLAIN },
    Scenario {
        name: "summary-failing",
        turn: long_words,
        summaries: Summaries::Failing,
        policy: small_window,
        shows: &[USELESS, EMERGENCY],
        ..PLAIN
    },
    Scenario {
        name: "summary-useless",
        turn: long_words,
        summaries: Summaries::Useless,
        policy: small_window,
        shows: &[USELESS, EMERGENCY],
        ..PLAIN
    },
    Scenario {
        name: "summary-calling-tools",
        turn: long_words,
        summaries: Summaries::CallingTools,
        policy: small_window,
        shows: &[USELESS, EMERGENCY],
        ..PLAIN
    },
    Scenario {
        name: "too-long",
        turn: long_words,
        accepts_tokens: Some(7_000),
        shows: &["\"cause\":\"compacted\"", EMERGENCY],
        ..PLAIN
    },
    Scenario {
        name: "too-long-for-good",
        turn: many_turns,
        accepts_tokens: Some(60),
        shows: &["\"cause\":\"compacted\"", "\"kind\":\"paused\""],
        ..PLAIN
    },
    Scenario {
        name: "compaction-hooks",
        turn: long_words,
        policy: compaction_hooks,
        shows: &[SUMMARY, "\"pre_compact\"", "\"post_compact\""],
        ..PLAIN
    },
    Scenario {
        name: "compaction-refused",
        turn: long_words,
        policy: compaction_refused,
        shows: &["\"pre_compact\"", "\"context_exhausted\""],
        ..PLAIN
    },
    Scenario {
        name: "last-words-turns",
        turn: endless,
        policy: |policy| policy.agent.limits.turns_max = 3,
        after: After::MoreTurns(5),
        shows: &[LAST, "\"asked\":"],
        ..PLAIN
    },
    Scenario {
        name: "last-words-tokens",
        turn: endless,
        policy: |policy| policy.budget = Budget { tokens: Some(4_000), ..Budget::default() },
        same: Same::Kind,
        shows: &[LAST],
        ..PLAIN
    },
    Scenario {
        name: "last-words-money",
        turn: endless,
        policy: |policy| policy.budget = Budget { money: Some(MicroDollars(25_000)), ..Budget::default() },
        same: Same::Kind,
        shows: &[LAST],
        ..PLAIN
    },
    Scenario {
        name: "last-words-time",
        turn: endless,
        answer_ms: 25,
        policy: |policy| policy.budget = Budget { wall_time_ms: Some(400), ..Budget::default() },
        same: Same::Kind,
        shows: &["\"final_summary_finished\""],
        ..PLAIN
    },
    Scenario {
        name: "stop-hook",
        turn: asks_to_stop,
        policy: stop_hooks,
        shows: &["\"stop_blocked\""],
        ..PLAIN
    },
    Scenario {
        name: "hooks",
        turn: gated,
        policy: all_hooks,
        shows: &["\"denied\"", "\"reminder\"", "\"session_end\""],
        ..PLAIN
    },
    Scenario {
        name: "hooks-consenting",
        turn: gated,
        policy: |policy| {
            all_hooks(policy);
            consent(policy);
        },
        shows: &["\"denied\"", "\"point\":\"approval\",\"decision\":\"allow\""],
        ..PLAIN
    },
    Scenario {
        name: "hooks-at-a-limit",
        turn: endless,
        policy: |policy| {
            all_hooks(policy);
            policy.agent.limits.turns_max = 2;
        },
        after: After::MoreTurns(3),
        shows: &[LAST, "\"point\":\"abort\"", "\"asked\":{\"by\""],
        ..PLAIN
    },
    Scenario {
        name: "approval",
        turn: gated,
        policy: consent,
        answers: Answers::AtOnce,
        shows: &["\"approval_resolved\"", "\"denied\""],
        ..PLAIN
    },
    Scenario {
        name: "approval-at-rest",
        turn: gated,
        policy: late_consent,
        answers: Answers::AtRest,
        shows: &["\"paused\"", "\"approval_resolved\"", "\"denied\""],
        ..PLAIN
    },
    Scenario {
        name: "agents",
        turn: agents::root,
        agents: agents::SUB_AGENTS,
        answer_ms: 2,
        policy: agents::policy,
        shows: &["\"agent_yield_requested\"", "\"preempted\"", "\"slot_free\"", "\"overloaded\""],
        ..PLAIN
    },
    Scenario {
        name: "restart",
        turn: agents::has_one_restarted,
        agents: agents::FAILING,
        policy: agents::restarting,
        shows: &["\"agent_retry_scheduled\"", "\"cause\":{\"retry\":"],
        ..PLAIN
    },
    Scenario {
        name: "goal",
        turn: goals::claims,
        judge: goals::judge,
        policy: goals::policy,
        shows: &["\"stop_blocked\"", "\"rate_limited\"", "\"parse\"", "\"not_achieved\"", "\"achieved\""],
        ..PLAIN
    },
    Scenario {
        name: "goal-at-a-limit",
        turn: endless,
        judge: goals::patient_judge,
        policy: goals::limited,
        after: After::MoreTurns(20),
        shows: &["\"trigger\":\"interval\"", "\"trigger\":\"limit\"", LAST],
        ..PLAIN
    },
    Scenario {
        name: "goal-of-an-agent",
        turn: goals::delegates,
        agents: goals::SUB_AGENTS,
        judge: goals::judge,
        policy: goals::judged_agent,
        shows: &["\"done_when\"", "\"not_achieved\"", "\"achieved\""],
        ..PLAIN
    },
    Scenario {
        name: "program",
        policy: programs::notary,
        same: Same::Kind,
        shows: &["\"submitted\"", "\"answered\"", "\"terminal_noted\"", "\"exited\""],
        ..PLAIN
    },
    Scenario {
        name: "snapshots",
        turn: many,
        points: Points::AroundSnapshots(100),
        shows: &["\"type\":\"snapshot\""],
        ..PLAIN
    },
    Scenario {
        name: "snapshots-of-both",
        turn: many_turns,
        policy: |policy| {
            policy.agent.limits.turns_max = 1_000;
            policy.agent.limits.stuck_turns = 0;
        },
        points: Points::AroundSnapshots(20),
        shows: &["\"state\":{\"run\":", "\"state\":{\"session\":"],
        ..PLAIN
    },
];
