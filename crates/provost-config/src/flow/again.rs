//! The file of a workflow that was started before, read anew: what of it can apply to the steps that are left.

use provost_engine::{StepStatus, StepTracker};
use provost_event::{FlowPolicy, StepPolicy};

use super::{FlowFile, StepSettings, sorted};
use crate::errors::{Problem, Problems};
use crate::{Settings, Source};

impl FlowFile {
    /// The workflow `before`, with what this file changes of its steps. A step that is done stays as it was. One
    /// whose agent has begun keeps its priority.
    ///
    /// # Errors
    /// Everything that prevents it from being run, and what can't change any more: the steps, their dependencies, and
    /// what an agent was begun with.
    pub fn policy_again(
        &self,
        settings: &Settings,
        before: &FlowPolicy,
        tracker: &StepTracker,
    ) -> Result<FlowPolicy, Problems> {
        let new = self.policy(settings)?;
        let mut problems = Vec::new();
        let mut steps = Vec::new();
        let is_known = |step: &&StepSettings| before.steps.iter().any(|known| known.name == step.name);
        for added in self.steps.iter().filter(|step| !is_known(step)) {
            let what = format!("step `{}` is new, and a run that was started keeps its steps", added.name);
            problems.push(problem(
                added.source_of("name"),
                "name",
                what,
                "take it out; `provost flow run` starts a run with it",
            ));
        }
        for old in &before.steps {
            let found = new.steps.iter().zip(&self.steps).find(|(step, _)| step.name == old.name);
            let Some((step, file)) = found else {
                let what =
                    format!("step `{}` is missing, and a run that was started keeps its steps", old.name);
                problems.push(problem(self.source.clone(), "name", what, "put it back"));
                continue;
            };
            let standing = tracker.find(&old.name).and_then(|number| tracker.standing(number));
            match standing {
                Some(StepStatus::Done) => steps.push(old.clone()),
                Some(StepStatus::AtWork(_)) => {
                    problems.extend(file.needs_changed(old, step));
                    problems.extend(file.begun_otherwise(old, step));
                    steps.push(StepPolicy { priority: old.priority, ..step.clone() });
                }
                _ => {
                    problems.extend(file.needs_changed(old, step));
                    steps.push(step.clone());
                }
            }
        }
        if !problems.is_empty() {
            return Err(sorted(problems));
        }
        Ok(FlowPolicy { steps, ..before.clone() })
    }
}

impl StepSettings {
    fn needs_changed(&self, old: &StepPolicy, new: &StepPolicy) -> Option<Problem> {
        let mut all_old = old.needs.clone();
        all_old.sort();
        all_old.dedup();
        let mut all_new = new.needs.clone();
        all_new.sort();
        all_new.dedup();
        let remedy = match old.needs.as_slice() {
            [] => "leave it out, as at the start".to_owned(),
            needs => format!("have needs = {needs:?}, as at the start"),
        };
        let what = format!("step `{}` depends on other steps than when the run was started", old.name);
        (all_old != all_new).then(|| problem(self.source_of("needs"), "needs", what, remedy))
    }

    /// What the agent that works on the step was begun with, and is otherwise now.
    fn begun_otherwise(&self, old: &StepPolicy, new: &StepPolicy) -> Vec<Problem> {
        let fields = [
            ("goal", old.goal != new.goal),
            ("agent", old.agent != new.agent),
            ("budget", old.budget != new.budget),
        ];
        let changed = fields.into_iter().filter(|(_, is_changed)| *is_changed);
        let of = |(field, _)| {
            let what = format!("step `{}` has begun, and its {field} can't change any more", old.name);
            problem(self.source_of(field), field, what, "take the change back")
        };
        changed.map(of).collect()
    }
}

fn problem(source: Source, field: &str, what: String, remedy: impl Into<String>) -> Problem {
    Problem { source, key: format!("flow.steps.{field}"), what, remedy: remedy.into() }
}
