//! The goals of a run's agents, and the models that judge whether they are reached.

use std::path::Path;

use provost_config::{Agent, GoalSettings, Settings, Settled};
use provost_event::{GoalPolicy, ModelPolicy, OnHookError};

use crate::asked;
use crate::choose::Wanted;
use crate::paths::model_name;
use crate::team::{wanted_of, wanted_of_root};
use crate::window::{Keys, Room};

/// One item for each goal of a run.
pub(crate) struct Goals<T> {
    /// For that of the agent that the run begins with, if it has one.
    pub(crate) of_run: Option<T>,
    /// For those that agents give each other, if they can.
    pub(crate) of_spawned: Option<T>,
    /// For those of the agents that may be asked for by name.
    pub(crate) of_agents: Vec<Option<T>>,
}

/// A goal, and the requirements for its judges.
pub(crate) struct WantedGoal {
    condition: String,
    pub(crate) judges: Vec<Wanted>,
    /// Whose it is, for people, with the model that works towards it; none for those that agents give each other.
    worker: Option<(String, String)>,
}

/// The goals that the settings describe, with `agents` of theirs.
pub(crate) fn wanted_goals(settled: &Settled, agents: &[Agent], folder: &Path) -> Goals<WantedGoal> {
    let settings = &settled.settings;
    let given = || {
        let (condition, judges) = (String::new(), named_judges(settled, folder, ""));
        WantedGoal { condition, judges, worker: None }
    };
    Goals {
        of_run: settings.goal.condition.as_ref().map(|condition| goal_of_run(settled, folder, condition)),
        of_spawned: settings.goals_are_given().then(given),
        of_agents: agents.iter().map(|agent| goal_of(agent, settled, folder)).collect(),
    }
}

fn goal_of_run(settled: &Settled, folder: &Path, condition: &str) -> WantedGoal {
    let worker = wanted_of_root(settled, folder);
    let judges = or_own(named_judges(settled, folder, condition), &worker, settled, condition);
    WantedGoal {
        condition: condition.to_owned(),
        judges,
        worker: Some(("the agent".to_owned(), worker.name)),
    }
}

fn goal_of(agent: &Agent, settled: &Settled, folder: &Path) -> Option<WantedGoal> {
    let condition = agent.condition.as_ref()?;
    let worker = wanted_of(agent, settled, folder);
    let judges = match &agent.judge {
        Some(judge) => {
            let source = agent.source_of("judge");
            let mut wanted = wanted_judge(settled, model_name(judge, &source, folder), condition);
            wanted.keys.model = (source, "agents.goal.judge".to_owned());
            vec![wanted]
        }
        None => named_judges(settled, folder, condition),
    };
    let mut judges = or_own(judges, &worker, settled, condition);
    judges.iter_mut().for_each(|judge| judge.money.clone_from(&worker.money));
    // A program uses a model of its own.
    let worker = agent.external().is_none().then(|| (format!("`{}`", agent.name), worker.name));
    Some(WantedGoal { condition: condition.clone(), judges, worker })
}

/// The judges of `[goal]`; none where it names none.
fn named_judges(settled: &Settled, folder: &Path, condition: &str) -> Vec<Wanted> {
    let goal = &settled.settings.goal;
    let source = settled.source(&goal.judges_key());
    let judge = |judge: &String| wanted_judge(settled, model_name(judge, &source, folder), condition);
    goal.judges.iter().map(judge).collect()
}

/// `judges`, or if there are none the model that works towards the goal.
fn or_own(judges: Vec<Wanted>, worker: &Wanted, settled: &Settled, condition: &str) -> Vec<Wanted> {
    if !judges.is_empty() {
        return judges;
    }
    let mut judge = wanted_judge(settled, worker.name.clone(), condition);
    judge.of.clone_from(&worker.of);
    judge.keys.model.clone_from(&worker.keys.model);
    vec![judge]
}

fn wanted_judge(settled: &Settled, name: String, condition: &str) -> Wanted {
    let goal = &settled.settings.goal;
    let key = |key: String| (settled.source(&key), key);
    Wanted {
        fallbacks: Vec::new(),
        of: Some("a judge".to_owned()),
        name,
        keys: Keys { model: key(goal.judges_key()), cap: key("goal.verdict_tokens".to_owned()) },
        cap: goal.verdict_tokens,
        cap_at_most: Some(GoalSettings::VERDICT_TOKENS),
        effort: goal.judge_effort,
        money: None,
        room: Room::Verdict { evidence_tokens: goal.evidence_tokens_max, condition: condition.to_owned() },
    }
}

impl Goals<WantedGoal> {
    /// What is asked of all judges.
    pub(crate) fn judges(self) -> impl Iterator<Item = Wanted> {
        self.each().flat_map(|goal| goal.judges)
    }

    /// Notes on goals that only the model that did the work judges.
    pub(crate) fn doubts(self) -> impl Iterator<Item = String> {
        let doubt = |WantedGoal { judges, worker, .. }: WantedGoal| {
            let (whose, model) = worker?;
            let is_own = judges.iter().all(|judge| asked(&judge.name) == asked(&model));
            is_own.then(|| {
                format!(
                    "{whose} is judged by its own model, {model}; one of another provider doesn't confirm its own \
                     mistakes, e.g. goal.judge = \"openai/gpt-6.1-terra\""
                )
            })
        };
        self.each().filter_map(doubt)
    }

    fn each(self) -> impl Iterator<Item = WantedGoal> {
        let Self { of_run, of_spawned, of_agents } = self;
        of_run.into_iter().chain(of_spawned).chain(of_agents.into_iter().flatten())
    }

    /// The goals as a run's policy has them, with the judges that `choose` finds; those without a judge are left
    /// out.
    pub(crate) fn policies(
        self,
        settings: &Settings,
        mut choose: impl FnMut(&Wanted) -> Option<ModelPolicy>,
    ) -> Goals<Box<GoalPolicy>> {
        let mut policy = |WantedGoal { condition, judges, .. }: WantedGoal| {
            // Each is chosen, so that all problems are reported.
            let judges = judges.iter().map(&mut choose).collect::<Vec<_>>();
            let judges = judges.into_iter().collect::<Option<Vec<_>>>()?;
            Some(Box::new(goal_policy(settings, condition, judges)))
        };
        Goals {
            of_run: self.of_run.and_then(&mut policy),
            of_spawned: self.of_spawned.and_then(&mut policy),
            of_agents: self.of_agents.into_iter().map(|goal| goal.and_then(&mut policy)).collect(),
        }
    }
}

fn goal_policy(settings: &Settings, condition: String, judges: Vec<ModelPolicy>) -> GoalPolicy {
    let goal = &settings.goal;
    GoalPolicy {
        condition,
        agree: goal.agree_of(judges.len()),
        judges,
        threshold: goal.threshold,
        rounds_max: goal.rounds_max,
        failures_max: goal.failures_max,
        stuck_turns: goal.stuck_turns,
        verify_every: goal.verify_every,
        timeout_ms: goal.timeout_ms.min(settings.budget.wall_time_ms.unwrap_or(u64::MAX)),
        evidence_tokens_max: goal.evidence_tokens_max,
        budget_percent: goal.budget_percent,
        stop_hook_errors: OnHookError::Block,
    }
}
