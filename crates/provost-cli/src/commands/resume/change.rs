//! What binds a run from its next segment on: the policy that it has, or the current settings, or another goal.

use anyhow::Context as _;
use provost_config::TrustStore;
use provost_engine::{Actor, RunState};
use provost_event::{Budget, GoalPolicy, ModelPolicy, PolicyDifference, RunId, RunPolicy, RunPolicyChanged};
use provost_harness::Redactor;

use super::note::not_taken;
use super::steps;
use crate::cli::ResumeArgs;
use crate::commands::flow::trusting;
use crate::drive::BY;
use crate::exit::Refusal;
use provost_runtime::{Before, Today, Variables, today, with_flag};
use provost_runtime::{require, require_by};

/// What binds a run from its next segment on.
pub(super) struct Change {
    /// All of it.
    pub(super) policy: RunPolicy,
    /// The model that is asked unless `--model` names another.
    pub(super) model: ModelPolicy,
    /// The record for the log; absent where nothing changes.
    pub(super) entry: Option<RunPolicyChanged>,
    /// Notes for the user besides.
    pub(super) said: Vec<String>,
}

impl Change {
    /// The change that `args` request for `run`. What is `given` is added to the limits of steps that were ended by
    /// them.
    ///
    /// # Errors
    /// [`Refusal`] where that can't be, and what is wrong with the current settings or isn't trusted.
    pub(super) fn of(
        args: &ResumeArgs,
        (run, state, root): (RunId, &RunState, &Actor),
        given: &Budget,
        (trust, variables): (&TrustStore, &Variables),
    ) -> anyhow::Result<Self> {
        let in_force = state.policy().context("the run's log doesn't begin with its policy")?;
        let model = state.model().context("the run's log doesn't begin with its policy")?;
        let goal = goal(args, run, state)?;
        let steps = state.flow().filter(|_| args.with_settings);
        let before = Before { policy: in_force, model, folder: folder(root, in_force), steps };
        if args.no_goal && in_force.agent.goal.is_none() && !args.with_settings {
            let what = format!("--no-goal: run {run} has no goal that judges verify");
            return Err(Refusal::new(what, format!("provost resume {run}")).into());
        }
        let unchanged = |said| Self { policy: in_force.clone(), model: model.clone(), entry: None, said };
        let mut raised = in_force.clone();
        steps::raise(&mut raised, state, given);
        if args.changes().is_empty() && raised == *in_force {
            let file = args.config.as_deref();
            let note = file.and_then(|file| not_taken(&before, (file, "the run"), |_| true, variables));
            return Ok(unchanged(note.into_iter().collect()));
        }
        let file = args.config.as_deref();
        let (mut policy, redactor) = if args.with_settings {
            let today = today(&before, file, goal.as_deref(), variables)?;
            let flow = today.policy.flow.as_ref().and_then(|flow| flow.file.as_deref());
            let command = flow.map_or_else(|| "provost trust".to_owned(), trusting);
            require_by(trust, &today.settled.project, &command)?;
            let mut policy = today.policy;
            steps::raise(&mut policy, state, given);
            (policy, today.redactor)
        } else if args.goal.is_none() {
            (raised, Redactor::new([]))
        } else {
            let condition = goal.as_deref().unwrap_or_default();
            let (given, redactor) = given_goal(&before, args, condition, (trust, variables))?;
            let mut policy = in_force.clone();
            policy.flags = with_flag(policy.flags, "--goal", condition);
            policy.agent.goal = Some(Box::new(given));
            (policy, redactor)
        };
        if args.no_goal {
            policy.agent.goal = None;
            policy.flags.retain(|given| !["--goal", "--judge"].contains(&given.flag.as_str()));
        }
        let differences = differences(in_force, &policy, &redactor);
        if differences.is_empty() && goal.is_none() {
            return Ok(unchanged(vec!["the current settings bind the run already".to_owned()]));
        }
        let condition = |policy: &RunPolicy| policy.agent.goal.as_ref().map(|goal| goal.condition.clone());
        let is_other = condition(&policy) != condition(in_force);
        let goal = goal.or_else(|| condition(&policy).filter(|_| is_other));
        let model = if policy.agent.model == in_force.agent.model { model } else { &policy.agent.model };
        let model = model.clone();
        let changed = RunPolicyChanged { policy: policy.clone(), goal, differences, by: BY.to_owned() };
        Ok(Self { policy, model, entry: Some(changed), said: Vec::new() })
    }

    /// Whether the run has a goal that judges are needed for, which it hadn't.
    pub(super) fn gives_goal(&self) -> bool {
        self.entry.as_ref().is_some_and(|changed| changed.goal.is_some())
    }
}

/// The goal that `--goal` gives.
fn goal(args: &ResumeArgs, run: RunId, state: &RunState) -> Result<Option<String>, Refusal> {
    if let (Some(flag), None) = (args.changes().first(), state.outcome()) {
        let what =
            format!("run {run} isn't suspended and goes on as it was; {flag} can't change what is in flight");
        let hint = format!(
            "`provost pause {run}` suspends it, or `provost resume {run}` goes on if its process is gone; once it is suspended, give {flag}"
        );
        return Err(Refusal::new(what, hint));
    }
    let Some(goal) = &args.goal else { return Ok(None) };
    if state.flow().is_some() {
        let what = format!("run {run} is a workflow, and has no goal of its own");
        return Err(Refusal::new(what, "leave --goal out; [[agents]] of a workflow have goals"));
    }
    match goal.trim() {
        "" => {
            let hint =
                "say what must be true, e.g. --goal \"cargo test passes\"; --no-goal takes the goal away";
            Err(Refusal::new("--goal is empty", hint))
        }
        goal => Ok(Some(goal.to_owned())),
    }
}

/// The folder that a run's settings are looked for in: a worktree lies elsewhere than what it is of.
fn folder(root: &Actor, policy: &RunPolicy) -> std::path::PathBuf {
    let worktree = match root {
        Actor::Session(session) => session.worktree(),
        Actor::Run(_) => None,
    };
    let worktree = worktree.filter(|_| policy.remote.is_none());
    worktree.map_or_else(|| policy.project().to_owned(), |(worktree, _)| worktree.from.clone())
}

/// A goal with this condition: judged as the one that the run has, as those that its agents give, or as the current
/// settings say.
fn given_goal(
    before: &Before<'_>,
    args: &ResumeArgs,
    condition: &str,
    (trust, variables): (&TrustStore, &Variables),
) -> anyhow::Result<(GoalPolicy, Redactor)> {
    let known = before.policy.agent.goal.as_deref().or(before.policy.judging.as_deref());
    if let Some(known) = known {
        let goal = GoalPolicy { condition: condition.to_owned(), ..known.clone() };
        return Ok((goal, Redactor::new([])));
    }
    let Today { policy, settled, redactor } =
        today(before, args.config.as_deref(), Some(condition), variables)?;
    require(trust, &settled.project)?;
    let goal = policy.agent.goal.context("the current settings have no goal, although one was given")?;
    Ok((*goal, redactor))
}

/// The differences, without secrets. The flags that cause them don't matter.
pub(in crate::commands) fn differences(
    old: &RunPolicy,
    new: &RunPolicy,
    redactor: &Redactor,
) -> Vec<PolicyDifference> {
    let new = RunPolicy { flags: old.flags.clone(), ..new.clone() };
    let clean = |text: Option<String>| text.map(|text| redactor.redact(&text).into_owned());
    let of = |one: PolicyDifference| PolicyDifference { from: clean(one.from), to: clean(one.to), ..one };
    old.differences(&new).into_iter().map(of).collect()
}
