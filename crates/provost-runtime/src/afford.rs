//! Whether limits can pay for a single verdict. Where they can't, an agent with a goal could never be done.

use provost_config::{Agent, Problem, Settings, Settled};
use provost_engine::{JUDGE_TOKENS, USEFUL_OUTPUT_TOKENS, tokens_of};
use provost_event::{GoalPolicy, MicroDollars, Usage, counted, grouped};

use crate::goals::Goals;

/// A proposed limit is a multiple of this.
const ROUND_TOKENS: u64 = 1_000;
/// A cent, in millionths of a dollar.
const CENT: u64 = 10_000;
const ALL: u8 = 100;

/// What it takes to confirm a goal, where no judge is asked in vain.
#[derive(Clone, Copy, Default)]
struct Need {
    tokens: u64,
    money: u64,
}

impl Need {
    fn of(goal: &GoalPolicy) -> Self {
        let around = tokens_of(&goal.condition).saturating_add(JUDGE_TOKENS);
        let usage = Usage {
            input_tokens: around.saturating_add(u64::from(goal.evidence_tokens_max)),
            output_tokens: USEFUL_OUTPUT_TOKENS,
            ..Usage::default()
        };
        let judges = goal.judges.iter().take(usize::try_from(goal.agree).unwrap_or(usize::MAX));
        judges.fold(Self::default(), |all, judge| Self {
            tokens: all.tokens.saturating_add(usage.total()),
            money: all.money.saturating_add(judge.price.map(|price| price.cost(usage).0).unwrap_or_default()),
        })
    }

    const fn or_more(self, other: Self) -> Self {
        Self {
            tokens: if self.tokens > other.tokens { self.tokens } else { other.tokens },
            money: if self.money > other.money { self.money } else { other.money },
        }
    }
}

/// The limits of the run and of `agents` that can't.
pub(crate) fn problems(settled: &Settled, agents: &[Agent], goals: &Goals<Box<GoalPolicy>>) -> Vec<Problem> {
    let Settings { budget, goal, .. } = &settled.settings;
    let of_agents = goals.of_agents.iter().flatten();
    let all = goals.of_run.iter().chain(&goals.of_spawned).chain(of_agents);
    let need = all.fold(Need::default(), |need, goal| need.or_more(Need::of(goal)));
    let key = |name: &str| (settled.source(&format!("budget.{name}")), format!("budget.{name}"));
    let percent = goal.budget_percent;
    let mut problems =
        Vec::from_iter(tokens(budget.tokens, percent, need).map(|words| words.at(key("tokens"))));
    problems.extend(money(budget.money, percent, need).map(|words| words.at(key("usd"))));
    for (agent, goal) in agents.iter().zip(&goals.of_agents) {
        let Some(goal) = goal else { continue };
        let key = |name: &str| (agent.source_of(name), format!("agents.budget.{name}"));
        let need = Need::of(goal);
        problems.extend(tokens(agent.budget.tokens, ALL, need).map(|words| words.at(key("tokens"))));
        problems.extend(money(agent.budget.money, ALL, need).map(|words| words.at(key("usd"))));
    }
    problems
}

/// What is wrong, and what would be right.
struct AffordProblem(String, String);

impl AffordProblem {
    fn at(self, (source, key): (provost_config::Source, String)) -> Problem {
        Problem { source, key, what: self.0, remedy: self.1 }
    }
}

fn tokens(limit: Option<u64>, percent: u8, need: Need) -> Option<AffordProblem> {
    let (share, least) = short(limit?, percent, need.tokens)?;
    let what = format!(
        "leaves judges {}{}, and confirming a goal takes about {}",
        counted(share, "token"),
        of(percent),
        grouped(need.tokens)
    );
    let least = least.div_ceil(ROUND_TOKENS).saturating_mul(ROUND_TOKENS);
    Some(AffordProblem(what, format!("e.g. tokens = {least}; or lower goal.evidence_tokens")))
}

fn money(limit: Option<MicroDollars>, percent: u8, need: Need) -> Option<AffordProblem> {
    let (share, least) = short(limit?.0, percent, need.money)?;
    let (share, needed) = (MicroDollars(share), MicroDollars(need.money));
    let what = format!("leaves judges {share}{}, and confirming a goal takes about {needed}", of(percent));
    let cents = least.div_ceil(CENT);
    let remedy = format!("e.g. usd = {}.{:02}; or lower goal.evidence_tokens", cents / 100, cents % 100);
    Some(AffordProblem(what, remedy))
}

fn of(percent: u8) -> String {
    if percent == ALL { String::new() } else { format!(" (goal.budget_percent is {percent})") }
}

/// The share of `limit` that judges have and the least limit, if the share is less than `need`.
fn short(limit: u64, percent: u8, need: u64) -> Option<(u64, u64)> {
    let share = limit.saturating_mul(u64::from(percent)) / 100;
    (share < need).then(|| (share, need.saturating_mul(100).div_ceil(u64::from(percent.max(1)))))
}
