//! What is said when a run has come to rest.

use provost_engine::RunState;
use provost_event::{Dimension, Exhausted, Outcome, PauseReason, RunId, TroubleCause};

use super::arguments;
use super::context::outcome_in_words;
use super::goal::goal_at_end;
use super::question::visible;
use super::words::{duration, hanging, plural, tokens};
use crate::goals::AgentGoal;
use crate::questions::Question;

/// The outcome, what it took, whether the `goal` was reached, and how to go on if that is possible; before that, what is
/// `open` is to be answered.
pub(crate) fn summary(
    run: RunId,
    state: &RunState,
    outcome: &Outcome,
    open: &[Question],
    goal: Option<&AgentGoal>,
) -> String {
    let ledger = state.ledger();
    let priced = state.policy().is_some_and(|policy| policy.agent.model.price.is_some());
    let mut parts = vec![hanging(&outcome_in_words(outcome), "  "), plural(ledger.turns().into(), "turn")];
    parts.push(format!("{} tokens", tokens(ledger.tokens)));
    parts.push(if priced { ledger.cost.to_string() } else { "price unknown".to_owned() });
    parts.push(duration(state.active_ms()));
    let mut lines = vec![parts.join(" · ")];
    lines.extend(goal.and_then(|goal| goal_at_end(outcome, goal)));
    for question in open {
        let (name, call) = (question.name(), arguments::call(&question.tool, &question.input));
        let who = question.who.as_deref().map(|who| format!("{} ", visible(who))).unwrap_or_default();
        lines.push(format!("{who}waits for approval: {call}"));
        lines.push(format!("  answer with: provost approve {name}, or provost deny {name}"));
    }
    if !outcome.is_final() {
        let on = after_checks(run, state, outcome).unwrap_or_else(|| command(run, outcome));
        lines.push(format!("go on with: {on}"));
    }
    lines.join("\n")
}

/// How a run goes on that its checks hold back: a check that was changed since counts only where it is told so.
pub(crate) fn after_checks(run: RunId, state: &RunState, outcome: &Outcome) -> Option<String> {
    let Outcome::Blocked { reasons } = outcome else { return None };
    let policy = state.policy()?;
    let agents = policy.agents.iter().map(|agent| &agent.agent);
    let checks = std::iter::once(&policy.agent).chain(agents).flat_map(|agent| &agent.stop_hooks);
    let names = checks.map(|check| check.name.as_str()).collect::<Vec<_>>();
    let begins = |start: &str| reasons.iter().any(|reason| reason.starts_with(start));
    let resume = format!("provost resume {run}");
    // Of one that can't be run people are told so, and of any other what it says.
    if let Some(name) = names.iter().find(|name| begins(&format!("the check `{name}` "))) {
        return Some(format!(
            "{resume} --with-settings  (after the check `{name}` is repaired in the settings)"
        ));
    }
    let holds_back = names.iter().any(|name| begins(&format!("{name}: ")));
    holds_back.then(|| format!("{resume}  (--with-settings takes checks that were changed in the settings)"))
}

/// An amount to add to a limit: as much again, and at least room for four calls like the next, with which `least` would
/// be used.
pub(crate) fn enough_more(limit: u64, used: u64, least: u64) -> u64 {
    let calls = least.saturating_sub(used).saturating_mul(4);
    let short = used.saturating_add(calls).saturating_sub(limit);
    limit.max(short).max(1)
}

/// The command that lets the run go on, with a limit that would let it.
fn command(run: RunId, outcome: &Outcome) -> String {
    let flag = match outcome {
        Outcome::BudgetExhausted(exhausted) => {
            let Exhausted { dimension, used, limit, .. } = exhausted;
            let more = enough_more(*limit, *used, exhausted.least_limit());
            match dimension {
                Dimension::Tokens => format!(" --tokens {more}"),
                Dimension::Turns => format!(" --max-turns {more}"),
                Dimension::Money => format!(" --usd {}", dollars(more)),
                Dimension::WallTime => format!(" --wall-time {}s", more.div_ceil(1_000)),
            }
        }
        Outcome::Paused { why: PauseReason::Model(trouble) } => match trouble.cause() {
            TroubleCause::ModelUnknown | TroubleCause::Request => " --model NAME".to_owned(),
            TroubleCause::Provider
            | TroubleCause::Key
            | TroubleCause::Quota
            | TroubleCause::Address
            | TroubleCause::Answer => String::new(),
        },
        Outcome::Completed { .. }
        | Outcome::Blocked { .. }
        | Outcome::Paused { .. }
        | Outcome::Aborted { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Failed { .. } => String::new(),
    };
    format!("provost resume {run}{flag}")
}

fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = text.trim_end_matches('0');
    let decimals = short.rsplit('.').next().map_or(0, str::len);
    format!("{short}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}
