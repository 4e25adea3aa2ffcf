//! The hierarchy of agents, and the order in which it is drawn.

use std::collections::BTreeMap;

use provost_view::{RunAgent, RunAgentState, RunTree, WorkflowStep};

use super::row::{Row, agent_row, step_row, sum_row};
use super::{Branches, Drawing, Extent};

/// Of more siblings that are done than these, only the sum is shown.
const DONE_MAX: usize = 3;
/// Of more siblings that have yet to begin than these, only the first are shown.
const QUEUED_MAX: usize = 5;
/// Levels that are drawn; those above are left out.
const LEVELS_MAX: usize = 12;

/// The hierarchy of agents.
pub(super) struct Forest<'a> {
    drawing: Drawing,
    steps: &'a [WorkflowStep],
    below: BTreeMap<Option<u32>, Vec<&'a RunAgent>>,
    by_number: BTreeMap<u32, &'a RunAgent>,
}

impl<'a> Forest<'a> {
    pub(super) fn of(crew: &'a RunTree, drawing: Drawing) -> Self {
        let mut below: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for node in &crew.agents {
            below.entry(node.parent).or_default().push(node);
        }
        let by_number = crew.agents.iter().map(|node| (node.number(), node)).collect();
        Self { drawing, steps: &crew.steps, below, by_number }
    }

    fn children(&self, of: Option<u32>) -> &[&'a RunAgent] {
        self.below.get(&of).map_or(&[], Vec::as_slice)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        // A tree may be deeper than the stack; what is to be drawn next is on top.
        let mut open = self.top();
        while let Some(TreeRow { guides, place, what }) = open.pop() {
            let branch = match place {
                RowPosition::Top => "",
                RowPosition::Last => self.drawing.branches.last,
                RowPosition::Amid => self.drawing.branches.fork,
            };
            let stem = self.stem(&guides, branch);
            match what {
                What::Step(step) => {
                    rows.push(step_row(step));
                    open.extend(shown(self.below_step(step), Level::Below, &[]));
                }
                What::Agent(node) => {
                    rows.push(agent_row(&stem, node, self.numbers()));
                    let mut below = guides;
                    match place {
                        RowPosition::Top => {}
                        RowPosition::Last => below.push(false),
                        RowPosition::Amid => below.push(true),
                    }
                    let children = self.summed_up(self.children(Some(node.number())));
                    open.extend(shown(children, Level::Below, &below));
                }
                What::Sum(nodes) => rows.push(sum_row(&stem, &nodes, self.drawing.branches)),
            }
        }
        rows
    }

    /// All steps of a workflow; else the agents without a parent.
    fn top(&self) -> Vec<TreeRow<'a>> {
        let top = match self.steps {
            [] => self.summed_up(self.children(None)),
            steps => steps.iter().map(What::Step).collect(),
        };
        shown(top, Level::Top, &[])
    }

    /// The agents that work for the agent of a step; in the whole tree also the agents that have tried it before.
    fn below_step(&self, step: &WorkflowStep) -> Vec<What<'a>> {
        let Some((last, before)) = step.agents.split_last() else { return Vec::new() };
        let before = if self.drawing.extent == Extent::Whole { before } else { &[] };
        let before = before.iter().filter_map(|number| self.by_number.get(number));
        let before = before.map(|node| What::Agent(node));
        before.chain(self.summed_up(self.children(Some(*last)))).collect()
    }

    const fn numbers(&self) -> Numbers {
        if self.steps.is_empty() { Numbers::InLabel } else { Numbers::Apart }
    }

    /// The lines that lead down to a row, and its own branch.
    fn stem(&self, guides: &[bool], branch: &str) -> String {
        let Branches { through, more, .. } = self.drawing.branches;
        let left_out = guides.len().saturating_sub(LEVELS_MAX);
        let start = if left_out > 0 { more } else { "" };
        let lines = guides.iter().skip(left_out).map(|goes_on| if *goes_on { through } else { "  " });
        format!("{start}{}{branch}", lines.collect::<String>())
    }

    /// What is drawn of siblings: each alone, and those that are summed up.
    fn summed_up(&self, children: &[&'a RunAgent]) -> Vec<What<'a>> {
        let sums_up = self.drawing.extent == Extent::SummedUp;
        let sums_done = sums_up && children.iter().filter(|node| self.is_over(node)).count() > DONE_MAX;
        let queued = children.iter().filter(|node| node.state == RunAgentState::Queued).count();
        let mut room_in_queue = if sums_up && queued > QUEUED_MAX { QUEUED_MAX - 1 } else { usize::MAX };
        let (mut all, mut later, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for node in children {
            if node.state == RunAgentState::Queued {
                match room_in_queue.checked_sub(1) {
                    Some(left) => {
                        room_in_queue = left;
                        all.push(What::Agent(node));
                    }
                    None => later.push(*node),
                }
            } else if sums_done && self.is_over(node) {
                done.push(*node);
            } else {
                all.push(What::Agent(node));
            }
        }
        all.extend([later, done].into_iter().filter(|sum| !sum.is_empty()).map(What::Sum));
        all
    }

    /// Whether its work is over, and that of the agents below it.
    fn is_over(&self, node: &RunAgent) -> bool {
        node.is_done() && self.children(Some(node.number())).iter().all(|below| below.is_done())
    }
}

/// What is drawn of siblings, the last first.
fn shown<'a>(siblings: Vec<What<'a>>, level: Level, guides: &[bool]) -> Vec<TreeRow<'a>> {
    let last = siblings.len().saturating_sub(1);
    let place = |at: usize| match level {
        Level::Top => RowPosition::Top,
        Level::Below if at == last => RowPosition::Last,
        Level::Below => RowPosition::Amid,
    };
    let shown = siblings.into_iter().enumerate();
    let shown = shown.map(|(at, what)| TreeRow { guides: guides.to_vec(), place: place(at), what });
    let mut shown = shown.collect::<Vec<_>>();
    shown.reverse();
    shown
}

/// Where siblings stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Below,
}

/// Where the numbers of agents are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Before the name.
    InLabel,
    /// In a column of their own.
    Apart,
}

/// A row to be drawn.
struct TreeRow<'a> {
    /// Whether the line of each level above goes on below this row.
    guides: Vec<bool>,
    place: RowPosition,
    what: What<'a>,
}

/// Where a row stands among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowPosition {
    /// It has no parent.
    Top,
    Amid,
    Last,
}

enum What<'a> {
    Step(&'a WorkflowStep),
    Agent(&'a RunAgent),
    /// Several, in one row.
    Sum(Vec<&'a RunAgent>),
}
