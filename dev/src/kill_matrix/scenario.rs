//! A scenario: a script, a policy, and how a suspended run is expected to continue.

use provost_event::{
    AgentPolicy, Dimension, HookContract, HookPoint, HookPolicy, HookProgram, HookSetup, MicroDollars,
    ModelPolicy, OnFailure, OnHookError, Outcome, PauseReason, Price, RunId, RunPolicy, SessionId,
    StopHookPolicy, ToolSpec,
};
use serde_json::Value;

pub(super) const RUN: RunId = RunId::from_entropy(77);
/// The fork that is made of the run when it has ended, if one is.
pub(super) const FORK: RunId = RunId::from_entropy(78);
pub(super) const ROOT: SessionId = SessionId::root(RUN);
pub(super) const GOAL: &str = "Keep notes of everything that happens, and lose none of them.";
pub(super) const FINAL_SUMMARY: &str = "Some notes are kept, others are not.";
pub(super) const MODEL: &str = "matrix";
/// The judge of the goal.
pub(super) const JUDGE: &str = "judge";
/// The name of the stop hook, also in its own record.
pub(super) const STOP_HOOK: &str = "gatekeeper";

/// The model's answer in a turn.
pub(super) enum Say {
    Text(String),
    /// It reaches the output cap.
    Cut(String),
    Calls(String, Vec<(&'static str, Value)>),
    /// The provider is overloaded the first time.
    FailsOnce(Box<Say>),
    /// The answer is empty the first time.
    EmptyOnce(Box<Say>),
    /// The provider sends a short retry delay.
    Limited,
}

/// The goal of a sub-agent, and the model's answer to it after this many answers.
pub(super) type SubAgent = (&'static str, fn(u32) -> Say);

/// The model's answer to a request for a summary.
#[derive(Debug, Clone, Copy)]
pub(super) enum Summaries {
    Good,
    Failing,
    Useless,
    CallingTools,
}

/// How far the end of a killed run must equal that of an undisturbed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Same {
    /// Outcome and text.
    Exactly,
    /// The kind of outcome: the cost of a lost call isn't known, and so the time when a limit is reached isn't
    /// either.
    Kind,
}

/// Who answers approval requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    None,
    /// Another process, as soon as it sees the question.
    AtOnce,
    /// Another process, when the run is suspended because the approval timed out.
    AtRest,
}

/// What happens to a suspended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The first time that its turns are used up, it gets this many more.
    MoreTurns(u32),
}

/// Which of a scenario's points are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Points {
    All,
    /// Those around each snapshot, and this many others.
    AroundSnapshots(usize),
}

/// One kind of run.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The model's answer after this many answers.
    pub(super) turn: fn(u32) -> Say,
    /// Its answers to sub-agents, by their goals.
    pub(super) agents: &'static [SubAgent],
    pub(super) summaries: Summaries,
    /// The judge's answer after this many answers about an agent.
    pub(super) judge: fn(u32) -> Say,
    /// Tokens by the model's own count beyond which it refuses a request, independent of the policy.
    pub(super) accepts_tokens: Option<u64>,
    /// How long it takes to answer.
    pub(super) answer_ms: u64,
    /// Additions to the usual policy.
    pub(super) policy: fn(&mut RunPolicy),
    pub(super) same: Same,
    pub(super) answers: Answers,
    pub(super) after: After,
    pub(super) points: Points,
    /// Whether a fork of it is made and worked on after its end.
    pub(super) forks: bool,
    /// Entries that the log of an undisturbed run must have: the purpose of the scenario.
    pub(super) shows: &'static [&'static str],
}

/// A minimal scenario.
pub(super) const PLAIN: Scenario = Scenario {
    name: "",
    turn: |_| Say::Text(String::new()),
    agents: &[],
    summaries: Summaries::Good,
    judge: |_| Say::Text(String::new()),
    accepts_tokens: None,
    answer_ms: 0,
    policy: |_| {},
    same: Same::Exactly,
    answers: Answers::None,
    after: After::Nothing,
    points: Points::All,
    forks: false,
    shows: &[],
};

impl Scenario {
    /// The policy of its runs, in `workspace` with `tools`.
    pub(super) fn run_policy(&self, workspace: std::path::PathBuf, tools: Vec<ToolSpec>) -> RunPolicy {
        let price = Price {
            input: MicroDollars(3_000_000),
            output: MicroDollars(15_000_000),
            cache_read: MicroDollars(300_000),
            cache_write: MicroDollars(3_750_000),
            long: None,
        };
        let mut policy = RunPolicy {
            spawn: provost_event::SpawnBudget::default(),
            ..RunPolicy::new(AgentPolicy {
                system_prompt: "You keep notes.".to_owned(),
                tools,
                ..AgentPolicy::new(
                    ModelPolicy { price: Some(price), ..ModelPolicy::new(MODEL, 1_000) },
                    workspace,
                )
            })
        };
        (self.policy)(&mut policy);
        policy
    }

    /// The turns with which a run suspended at `outcome` is resumed, if it is; `asked` is how often it was resumed
    /// before.
    pub(super) fn turns_after(&self, outcome: &Outcome, asked: usize) -> Option<u32> {
        match (self.after, outcome) {
            (After::MoreTurns(turns), Outcome::BudgetExhausted(exhausted)) => {
                (exhausted.dimension == Dimension::Turns && asked == 0).then_some(turns)
            }
            _ => None,
        }
    }
}

/// Whether a run is suspended because an approval has no answer.
pub(super) fn waits_for_consent(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paused { why: PauseReason::Approval { .. } })
}

/// Text of that many bytes, different for each `key`.
pub(super) fn filler(key: &str, bytes: usize) -> String {
    let words = format!("{key} paper stone river ");
    words.chars().cycle().take(bytes).collect()
}

/// A hook at `point` that writes a line each time, and then runs `command`.
pub(super) fn hook(point: HookPoint, command: &str) -> HookPolicy {
    HookPolicy {
        name: format!("{} hook", point.name()),
        point,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: logged(point.name(), command) }),
        contract: HookContract::Provost,
        timeout_ms: 10_000,
        on_failure: OnFailure::default_at(point),
        may_remind: true,
        setup: HookSetup::default(),
    }
}

/// A stop hook that writes a line each time, and then runs `command`.
pub(super) fn stop_hook(command: &str) -> StopHookPolicy {
    StopHookPolicy {
        name: STOP_HOOK.to_owned(),
        command: Some(logged(STOP_HOOK, command)),
        timeout_ms: 10_000,
        on_error: OnHookError::Ignore,
    }
}

fn logged(point: &str, command: &str) -> String {
    format!("echo {point} >> ../hooks.txt; {command}")
}
