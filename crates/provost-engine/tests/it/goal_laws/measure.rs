//! Whether anything moved in a turn, counted from the log in the plainest way.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{Block, CallId, Entry, Plan, PlanStatus, ToolFinished, ToolStatus};

/// What was seen of calls, plans, stop hooks and the workspace.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub(super) idle_turns: u32,
    has_moved: bool,
    /// The arguments of the last answer's calls.
    inputs: BTreeMap<CallId, String>,
    results: BTreeMap<(String, String), Vec<String>>,
    ticked: BTreeSet<String>,
    stop_hooks: Option<Vec<Vec<String>>>,
    workspace: Option<String>,
}

impl Measure {
    pub(super) fn see(&mut self, entry: &Entry) {
        match entry {
            Entry::AssistantMessage(answer) => {
                let inputs = answer.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) => Some((call.id.clone(), call.input.text().to_owned())),
                    _ => None,
                });
                self.inputs = inputs.collect();
            }
            Entry::ToolFinished(done) => match &done.plan {
                Some(plan) => self.planned(plan),
                None => self.finished(done),
            },
            Entry::StopVerdicts(verdicts) => {
                let said =
                    verdicts.reports.iter().map(|one| words(&format!("{} {:?}", one.name, one.verdict)));
                let said = said.collect::<Vec<_>>();
                self.has_moved |= self.stop_hooks.as_ref().is_some_and(|before| *before != said);
                self.stop_hooks = Some(said);
                self.looks_like(&verdicts.evidence);
            }
            Entry::GoalJudged(judged) => self.looks_like(&judged.evidence),
            Entry::TurnEnded(_) => {
                self.idle_turns = if self.has_moved { 0 } else { self.idle_turns + 1 };
                self.has_moved = false;
            }
            _ => {}
        }
    }

    fn planned(&mut self, plan: &Plan) {
        for item in plan.items.iter().filter(|item| item.status == PlanStatus::Done) {
            self.has_moved |= self.ticked.insert(item.text.clone());
        }
    }

    fn finished(&mut self, done: &ToolFinished) {
        if !matches!(done.status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut) {
            return;
        }
        let input = self.inputs.get(&done.call).cloned().unwrap_or_default();
        let words = words(&done.output);
        let before = self.results.insert((done.tool.clone(), input), words.clone());
        self.has_moved |= before != Some(words);
    }

    fn looks_like(&mut self, workspace: &str) {
        if workspace.is_empty() {
            return;
        }
        self.has_moved |= self.workspace.as_ref().is_some_and(|before| before != workspace);
        self.workspace = Some(workspace.to_owned());
    }
}

/// A text without the times that it took.
fn words(text: &str) -> Vec<String> {
    let is_time = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
        word.len() > unit.len() && matches!(unit, "s" | "ms")
    };
    text.split_whitespace().filter(|word| !is_time(word)).map(str::to_owned).collect()
}
