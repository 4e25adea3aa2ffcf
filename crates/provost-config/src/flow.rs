//! The file of a workflow: `[flow]` and its `[[flow.steps]]`, read and checked against the settings.

mod again;
mod fields;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provost_engine::{FlowProblem, RetryPolicy, check_flow};
use provost_event::{Budget, FlowPolicy, OnStepFailure, Priority, StepPolicy, StopHookPolicy, counted};

use super::errors::{ConfigError, Problem, Problems, Source};
use super::nearest::nearest;
use super::project::ProjectRequest;
use super::stop_hook::StopHook;
use super::{Project, Settings, Settled, layers};
use read::Reader;

/// A workflow as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowFile {
    /// The workflow's name.
    pub name: String,
    steps: Vec<StepSettings>,
    /// Where it begins.
    source: Source,
    /// Absolute.
    path: PathBuf,
    text: String,
}

/// A step as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepSettings {
    name: String,
    needs: Vec<(String, Source)>,
    agent: Option<String>,
    goal: String,
    stop_hooks: Vec<StepHook>,
    retry: Option<u32>,
    then: Then,
    priority: Option<Priority>,
    budget: Budget,
    source: Source,
    /// Where each of its fields was given.
    places: BTreeMap<String, Source>,
}

/// What must agree before a step is done.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StepHook {
    /// A configured stop hook.
    Named(String, Source),
    /// A command in the file itself.
    Inline(StopHook),
}

/// The value of `on_failure`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Then {
    #[default]
    Abort,
    Skip,
    /// As abort, but tried again before that, also where no number is given.
    Retry,
    Ask,
}

impl FlowFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::Problems`] that name line and key; or when it can't be read.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let unread = |source| ConfigError::FlowUnread { file: path.to_owned(), source };
        let text = layers::read(path).map_err(unread)?;
        let flow = Reader::new(&name, &text).flow()?;
        Ok(Self { path: std::path::absolute(path).map_err(unread)?, ..flow })
    }

    /// The workflow as a run's policy has it, with the stop hooks and agents that the settings describe.
    ///
    /// # Errors
    /// Everything that prevents it from being run.
    pub fn policy(&self, settings: &Settings) -> Result<FlowPolicy, Problems> {
        let mut problems = Vec::new();
        let steps = self.steps.iter().map(|step| step.policy(settings, &mut problems)).collect();
        let flow = FlowPolicy { name: self.name.clone(), file: Some(self.path.clone()), steps };
        let agents = settings.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>();
        problems.extend(check_flow(&flow, &agents).into_iter().map(|problem| self.problem(problem, &agents)));
        if problems.is_empty() { Ok(flow) } else { Err(sorted(problems)) }
    }

    fn problem(&self, problem: FlowProblem, agents: &[&str]) -> Problem {
        let (step, key) = match &problem {
            FlowProblem::NoSteps => (None, "steps"),
            FlowProblem::DoubledStep { step, .. } | FlowProblem::Nameless { step } => (Some(*step), "name"),
            FlowProblem::NoGoal { step, .. } => (Some(*step), "goal"),
            FlowProblem::NoAttempts { step, .. } => (Some(*step), "retry"),
            FlowProblem::UnknownNeed { step, .. } | FlowProblem::Cycle { step, .. } => (Some(*step), "needs"),
            FlowProblem::UnknownAgent { step, .. } => (Some(*step), "agent"),
        };
        let step = step.and_then(|step| self.steps.get(step));
        let key = if step.is_some() { format!("flow.steps.{key}") } else { format!("flow.{key}") };
        let source = match (&problem, step) {
            (FlowProblem::UnknownNeed { need, .. }, Some(step)) => step.source_of_need(need),
            (_, Some(step)) => step.source_of(key.rsplit('.').next().unwrap_or_default()),
            (_, None) => self.source.clone(),
        };
        let remedy = self.remedy(&problem, agents);
        Problem { source, key, what: problem.to_string(), remedy }
    }

    fn remedy(&self, problem: &FlowProblem, agents: &[&str]) -> String {
        let names = || self.steps.iter().map(|step| step.name.clone());
        match problem {
            FlowProblem::NoSteps => "write [[flow.steps]] with a name and a goal, once for each".to_owned(),
            FlowProblem::DoubledStep { .. } => "give each a name of its own".to_owned(),
            FlowProblem::Nameless { .. } => "e.g. name = \"plan\"".to_owned(),
            FlowProblem::NoGoal { .. } => "say what it is to reach".to_owned(),
            FlowProblem::NoAttempts { .. } => "e.g. retry = 2".to_owned(),
            FlowProblem::UnknownNeed { need, name, .. } => {
                let mut others = names().filter(|other| other != name).peekable();
                match others.peek() {
                    Some(_) => meant(need, others, "the others are"),
                    None => "there is no other step".to_owned(),
                }
            }
            FlowProblem::UnknownAgent { .. } if agents.is_empty() => {
                "no [[agents]] are configured; leave it out for one like the run's own".to_owned()
            }
            FlowProblem::UnknownAgent { agent, .. } => {
                meant(agent, agents.iter().map(|agent| (*agent).to_owned()), "the configured [[agents]] are")
            }
            FlowProblem::Cycle { .. } => "one of them must do without the other".to_owned(),
        }
    }

    /// Adds to what comes from a project's folder what the file would run, which needs the user's consent.
    fn request(&self, project: &mut Project) {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let file = path.strip_prefix(&project.folder).unwrap_or(&path).display().to_string();
        let requests = self.steps.iter().flat_map(|step| {
            let inline = step.stop_hooks.iter().filter_map(|hook| match hook {
                StepHook::Inline(hook) => Some(hook),
                StepHook::Named(..) => None,
            });
            let file = file.clone();
            inline.map(move |hook| ProjectRequest {
                file: file.clone(),
                place: hook.source.to_string(),
                what: format!("runs when step {} wants to stop (stop hook {})", step.name, hook.name),
                body: hook.command.clone(),
            })
        });
        let requests = requests.collect::<Vec<_>>();
        if !requests.is_empty() {
            project.has_read(&file, &self.text);
            project.requests.extend(requests);
        }
    }

    /// The workflow in lines, for people: a step each, in an order in which they can be done.
    pub fn outline(&self) -> Vec<(String, String)> {
        let mut left = self.steps.iter().collect::<Vec<_>>();
        let mut lines = Vec::<(String, String)>::new();
        while !left.is_empty() {
            let is_next = |step: &&StepSettings| {
                step.needs.iter().all(|(need, _)| lines.iter().any(|(name, _)| name == need))
            };
            let Some(place) = left.iter().position(is_next) else { break };
            let step = left.remove(place);
            lines.push((step.name.clone(), step.outline()));
        }
        lines
    }
}

impl StepSettings {
    fn source_of(&self, field: &str) -> Source {
        self.places.get(field).unwrap_or(&self.source).clone()
    }

    fn source_of_need(&self, need: &str) -> Source {
        let found = self.needs.iter().find(|(name, _)| name == need).map(|(_, source)| source.clone());
        found.unwrap_or_else(|| self.source_of("needs"))
    }

    fn policy(&self, settings: &Settings, problems: &mut Vec<Problem>) -> StepPolicy {
        let agent = settings.agents.iter().find(|agent| Some(&agent.name) == self.agent.as_ref());
        let hooks = self.stop_hooks.iter().filter_map(|hook| hook.policy(settings, problems));
        let stop_hooks = hooks.collect();
        self.fits(settings, problems);
        StepPolicy {
            name: self.name.clone(),
            needs: self.needs.iter().map(|(need, _)| need.clone()).collect(),
            agent: self.agent.clone(),
            goal: self.goal.clone(),
            stop_hooks,
            attempts_max: self.retries().unwrap_or(0).saturating_add(1),
            restarts_max: self.retries(),
            on_failure: match self.then {
                Then::Abort | Then::Retry => OnStepFailure::Abort,
                Then::Skip => OnStepFailure::Skip,
                Then::Ask => OnStepFailure::Ask,
            },
            priority: self.priority.or(agent.map(|agent| agent.priority)).unwrap_or_default(),
            budget: self.budget,
        }
    }

    /// How often it is retried, where that is set.
    fn retries(&self) -> Option<u32> {
        match (self.retry, self.then) {
            (Some(retries), _) => Some(retries),
            (None, Then::Retry) => Some(RetryPolicy::default().attempts_max),
            (None, Then::Abort | Then::Skip | Then::Ask) => None,
        }
    }

    /// Notes what contradicts itself or the settings.
    fn fits(&self, settings: &Settings, problems: &mut Vec<Problem>) {
        if self.then == Then::Retry && self.retry == Some(0) {
            problems.push(Problem {
                source: self.source_of("retry"),
                key: "flow.steps.retry".to_owned(),
                what: "must be at least 1 where on_failure is \"retry\" (is 0)".to_owned(),
                remedy: "raise it, or have on_failure = \"abort\"".to_owned(),
            });
        }
        let money = |budget: Budget| budget.money.map(|money| money.0);
        let (own, run) = (self.budget, settings.budget);
        let limits = [
            ("tokens", own.tokens, run.tokens),
            ("usd", money(own), money(run)),
            ("wall_time", own.wall_time_ms, run.wall_time_ms),
        ];
        for (name, own, run) in limits {
            if own.zip(run).is_some_and(|(own, run)| own > run) {
                problems.push(Problem {
                    source: self.source_of(&format!("budget.{name}")),
                    key: format!("flow.steps.budget.{name}"),
                    what: format!("is more than the whole run may spend (budget.{name})"),
                    remedy: "lower it, or give the run more".to_owned(),
                });
            }
        }
    }

    fn outline(&self) -> String {
        let mut parts = Vec::new();
        if !self.needs.is_empty() {
            let needs = self.needs.iter().map(|(need, _)| need.as_str()).collect::<Vec<_>>();
            parts.push(format!("after {}", needs.join(", ")));
        }
        parts.extend(self.agent.as_ref().map(|agent| format!("by {agent}")));
        parts.extend(self.priority.map(|priority| format!("{priority} priority")));
        let hooks = self.stop_hooks.iter().map(|hook| match hook {
            StepHook::Named(name, _) => name.as_str(),
            StepHook::Inline(hook) => hook.name.as_str(),
        });
        let hooks = hooks.collect::<Vec<_>>();
        if !hooks.is_empty() {
            parts.push(format!("checked by {}", hooks.join(", ")));
        }
        match self.retries().unwrap_or(0) {
            0 => {}
            1 => parts.push("tried again once".to_owned()),
            times => parts.push(format!("tried again up to {}", counted(times.into(), "time"))),
        }
        parts.push(match self.then {
            Then::Abort | Then::Retry => "or the workflow is given up".to_owned(),
            Then::Skip => "or skipped with what needs it".to_owned(),
            Then::Ask => "or you are asked".to_owned(),
        });
        parts.join(" · ")
    }
}

impl StepHook {
    fn policy(&self, settings: &Settings, problems: &mut Vec<Problem>) -> Option<StopHookPolicy> {
        let (name, source) = match self {
            Self::Inline(hook) => return Some(hook.policy(settings)),
            Self::Named(name, source) => (name, source),
        };
        let known = settings.stop_hooks.iter().find(|hook| hook.name == *name);
        if known.is_none() {
            let names = settings.stop_hooks.iter().map(|hook| hook.name.clone());
            let remedy = meant(name, names, "there are");
            problems.push(Problem {
                source: source.clone(),
                key: "flow.steps.stop_hooks".to_owned(),
                what: format!("there is no stop hook named `{name}`"),
                remedy: format!("{remedy}; a command is written {{ command = \"…\" }}"),
            });
        }
        known.map(|hook| hook.policy(settings))
    }
}

/// The problems in the order in which they stand in the file.
fn sorted(mut problems: Vec<Problem>) -> Problems {
    problems.sort_by_key(|problem| match &problem.source {
        Source::File(spot) => (spot.line, spot.column),
        Source::Default | Source::Variable(_) | Source::Flag(_) => (0, 0),
    });
    Problems(problems)
}

/// The nearest of `all`, or all of them behind these words.
fn meant(wrong: &str, all: impl Iterator<Item = String>, words: &str) -> String {
    let all = all.collect::<Vec<_>>();
    match nearest(wrong, all.iter().cloned()) {
        Some(known) => format!("did you mean `{known}`?"),
        None if all.is_empty() => "none is configured".to_owned(),
        None => format!("{words} {}", all.join(", ")),
    }
}

impl Settled {
    /// Adds what a workflow's file would run to what comes from the project's folder.
    pub fn with_flow(mut self, flow: &FlowFile) -> Self {
        flow.request(&mut self.project);
        self
    }
}
