//! The summary of a run that is suspended or has ended.

use provost_engine::{AgentState, AgentStatus, RunState};
use provost_event::{ErrorClass, Exhausted, LimitOwner, Outcome, PauseReason, RunId, Verdict};

use super::arguments;
use super::flow::run_outcome_in_words;
use super::go_on::go_on_with;
use super::goal::goal_at_end;
use super::safe::visible;
use super::uncertain::UncertaintyMarks;
use super::words::{duration, hanging, one_line, plural, tokens_in_short};
use crate::questions::asker;
use provost_view::AgentGoal;
use provost_view::{ApprovalQuestion, is_money_partial};

/// Columns of why there is no final summary.
const WHY_WIDTH: usize = 200;

/// A run that is suspended or has ended, as far as a summary tells of it.
pub(crate) struct Stopped<'a> {
    pub(crate) run: RunId,
    pub(crate) state: &'a RunState,
    pub(crate) outcome: &'a Outcome,
    /// What is to be answered.
    pub(crate) open: &'a [ApprovalQuestion],
    pub(crate) goal: Option<&'a AgentGoal>,
    /// Why its agent has given no final summary at a limit, where it was asked for one.
    pub(crate) no_final_summary: Option<&'a str>,
}

/// The outcome, what it took, whether the goal was reached, and how to go on; before that, the open questions.
pub(crate) fn summary(stopped: &Stopped<'_>) -> String {
    let Stopped { run, state, outcome, open, goal, no_final_summary } = *stopped;
    let ledger = state.ledger();
    let priced = state.policy().is_some_and(|policy| {
        let took_nothing = ledger.tokens == 0 && policy.agent.external.is_none();
        policy.agent.model.price.is_some() || took_nothing
    });
    let turns = plural(ledger.turns().into(), "turn");
    let (whose, sums) = match concerns(state, outcome) {
        Concerned::Run => (String::new(), turns),
        Concerned::Step => (String::new(), format!("the whole run: {turns}")),
        Concerned::Agent(who) => (format!("{who}: "), format!("the whole run: {turns}")),
    };
    let mut parts =
        vec![hanging(&format!("{whose}{}", run_outcome_in_words(run, state, outcome)), "  "), sums];
    let uncertain = UncertaintyMarks::of_run(state);
    parts.push(uncertain.marked_tokens(tokens_in_short(ledger.tokens)));
    let cost = uncertain.marked_money(ledger.cost.to_string());
    parts.push(if priced { cost } else { "price unknown".to_owned() });
    parts.extend(is_money_partial(state).then(|| "money: partial".to_owned()));
    parts.push(duration(state.active_ms()));
    parts.extend(verdicts_of_agents(state));
    let mut lines = vec![parts.join(" · ")];
    lines.extend(goal.and_then(|goal| goal_at_end(outcome, goal)));
    lines.extend(no_final_summary.map(|why| format!("no final summary: {}", one_line(why, WHY_WIDTH))));
    for question in open {
        let (name, call) = (question.short_id(), arguments::call(&question.tool, &question.input));
        let who = asker(question).as_deref().map(|who| format!("{} ", visible(who))).unwrap_or_default();
        lines.push(format!("{who}waits for approval: {call}"));
        lines.push(format!("  answer with: provost approve {name}, or provost deny {name}"));
    }
    lines.extend(go_on_with(run, state, outcome).map(|on| format!("go on with: {on}")));
    lines.join("\n")
}

/// How many agents besides the first one are completed with a verdict other than PASS; `None` if none is, and for
/// workflows, whose outcome says it.
fn verdicts_of_agents(state: &RunState) -> Option<String> {
    if state.flow().is_some() {
        return None;
    }
    let not_passed = |agent: &AgentStatus<'_>| match &agent.standing {
        AgentState::Finished(outcome) if agent.parent.is_some() => outcome.verdict_not_passed(),
        _ => None,
    };
    let verdicts = state.agents().filter_map(|agent| not_passed(&agent)).collect::<Vec<_>>();
    let all = plural(state.agents().count() as u64, "agent");
    let counted = [Verdict::Fail, Verdict::Partial].into_iter().filter_map(|verdict| {
        let count = verdicts.iter().filter(|one| **one == verdict).count();
        (count > 0).then(|| format!("{count} of {all}: verdict {verdict}"))
    });
    Some(counted.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
}

/// What an outcome is about, where what the whole run used could be taken for a part of it.
enum Concerned {
    Run,
    /// A step of a workflow, which the outcome names.
    Step,
    /// The limit of one of several agents, with its name.
    Agent(String),
}

fn concerns(state: &RunState, outcome: &Outcome) -> Concerned {
    match outcome {
        Outcome::Failed { class: ErrorClass::StepFailed, .. }
        | Outcome::Paused { why: PauseReason::StepFailed { .. } } => Concerned::Step,
        Outcome::BudgetExhausted(Exhausted { owner: LimitOwner::Agent, .. })
            if state.agents().count() > 1 =>
        {
            let is_it = |agent: &AgentStatus<'_>| match &agent.standing {
                AgentState::Suspended(own) => own == outcome,
                _ => false,
            };
            let who =
                |agent: AgentStatus<'_>| format!("agent {} ({})", agent.session.agent, visible(agent.name));
            state.agents().find(is_it).map_or(Concerned::Run, |agent| Concerned::Agent(who(agent)))
        }
        _ => Concerned::Run,
    }
}
