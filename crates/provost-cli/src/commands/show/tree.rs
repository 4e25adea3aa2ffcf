//! The tree of a run's agents, drawn.

mod forest;
mod row;

use console::{Style, measure_text_width, truncate_str};
use provost_event::{Outcome, Verdict};
use provost_view::{RunAgent, RunAgentState, RunTree};

use self::forest::Forest;
use self::row::Row;
use crate::locale::wants_ascii;
use crate::render::{Cells, Table, plural};

/// Agents named of those that yielded their slots.
const WAYS_MAX: usize = 4;

/// What the branches are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Branches {
    fork: &'static str,
    last: &'static str,
    through: &'static str,
    more: &'static str,
    dot: &'static str,
}

impl Branches {
    pub(super) const LINES: Self =
        Self { fork: "├ ", last: "└ ", through: "│ ", more: "…", dot: " · " };
    pub(super) const ASCII: Self = Self { fork: "|-", last: "`-", through: "| ", more: "...", dot: ", " };

    /// What the terminal can show, according to its environment variables.
    pub(super) fn choose() -> Self {
        if wants_ascii() { Self::ASCII } else { Self::LINES }
    }
}

/// What is drawn of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that are done, or have yet to begin, are summed up where they are many.
    SummedUp,
    Whole,
}

/// How a tree is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawing {
    pub(super) branches: Branches,
    pub(super) extent: Extent,
    /// The columns there are, if they are known.
    pub(super) width: Option<usize>,
}

/// A column: its head, how it is set, and its cell.
type Column = (&'static str, Cells, fn(&Row) -> &str);

const LABEL: Column = ("AGENT", Cells::Text, |row| &row.label);
/// In a workflow the numbers of agents have their own column: those of its steps are in no order.
const STEP: [Column; 2] =
    [("STEP", Cells::Text, |row| &row.label), ("AGENT", Cells::Numbers, |row| &row.agent)];
const COLUMNS: [Column; 7] = [
    ("STATE", Cells::CutAtEnd, |row| &row.state),
    ("PRIORITY", Cells::Text, |row| &row.priority),
    ("TURNS", Cells::Numbers, |row| &row.turns),
    ("TOKENS", Cells::Numbers, |row| &row.tokens),
    ("COST", Cells::Numbers, |row| &row.cost),
    ("TIME", Cells::Numbers, |row| &row.time),
    ("GOAL", Cells::CutAtEnd, |row| &row.goal),
];

/// Columns that are dropped on a narrow terminal, the first of them first.
const GIVE_WAY: [&str; 6] = ["GOAL", "PRIORITY", "TIME", "COST", "TURNS", "TOKENS"];
/// The least columns of a goal and a state that are readable.
const GOAL_MIN: usize = 12;
const STATE_MIN: usize = 12;
/// While one of these columns is shown, the state isn't cut.
const BEFORE_STATE: [&str; 3] = ["GOAL", "PRIORITY", "TIME"];

/// The tree, a line for each agent or for several that are summed up, below a line of heads.
pub(super) fn lines(crew: &RunTree, drawing: Drawing) -> Vec<String> {
    let rows = Forest::of(crew, drawing).rows();
    let first: &[Column] = if crew.steps.is_empty() { &[LABEL] } else { &STEP };
    let mut columns = [first, COLUMNS.as_slice()].concat();
    if let Some(width) = drawing.width {
        for name in GIVE_WAY {
            if least(&rows, &columns) <= width {
                break;
            }
            columns.retain(|(head, ..)| *head != name);
        }
    }
    set(&rows, &columns, drawing)
}

/// The columns that rows need when cells that may be cut are as short as is readable.
fn least(rows: &[Row], columns: &[Column]) -> usize {
    let cuts_state = !columns.iter().any(|(head, ..)| BEFORE_STATE.contains(head));
    let widths = columns.iter().map(|(head, _, cell)| {
        let widest = rows.iter().map(|row| measure_text_width(cell(row))).max().unwrap_or_default();
        let widest = widest.max(head.len());
        match *head {
            "GOAL" => widest.min(GOAL_MIN),
            "STATE" if cuts_state => widest.min(STATE_MIN),
            _ => widest,
        }
    });
    widths.sum::<usize>() + 2 * columns.len().saturating_sub(1)
}

fn set(rows: &[Row], columns: &[Column], drawing: Drawing) -> Vec<String> {
    let heads = columns.iter().map(|(head, cells, _)| (*head, *cells)).collect::<Vec<_>>();
    let mut table = Table::new(&heads);
    for row in rows {
        table.row(columns.iter().map(|(_, _, cell)| cell(row).to_owned()).collect());
    }
    let text = table.lines(drawing.width);
    let styles = std::iter::once(Style::new().dim()).chain(rows.iter().map(|row| row.style.clone()));
    let fitted = |line: &str| {
        let line = match drawing.width {
            Some(width) => truncate_str(line, width, "…"),
            None => line.into(),
        };
        if drawing.branches == Branches::ASCII { line.replace('…', "~") } else { line.into_owned() }
    };
    text.lines().zip(styles).map(|(line, style)| style.apply_to(fitted(line)).to_string()).collect()
}

/// The end of an agent's work in a word, to count by: done is what hasn't itself the verdict that it isn't.
fn end_in_a_word(outcome: &Outcome) -> &'static str {
    match (outcome, outcome.verdict_not_passed()) {
        (_, Some(Verdict::Fail)) => "verdict FAIL",
        (_, Some(_)) => "verdict PARTIAL",
        (Outcome::Completed { .. }, None) => "done",
        (_, None) => outcome.word(),
    }
}

/// The number of agents by state, and the slots, of which `held` are in use while a process holds the run; then
/// which agent yields its slot to which.
pub(super) fn head(nodes: &[RunAgent], held: Option<usize>, slots: usize, drawing: Drawing) -> Vec<String> {
    let word_of = |state: &RunAgentState| match state {
        RunAgentState::Done { outcome } => end_in_a_word(outcome),
        other => other.word(),
    };
    let count = |word: &str| nodes.iter().filter(|node| word_of(&node.state) == word).count();
    let words = [
        "working",
        "interrupted",
        "needs approval",
        "yielding",
        "preempted",
        "queued",
        "waiting to restart",
        "suspended",
        "done",
        "verdict FAIL",
        "verdict PARTIAL",
        "failed",
        "budget exhausted",
        "blocked",
        "paused",
        "aborted",
        "cancelled",
    ];
    let counted = words.into_iter().map(|word| (count(word), word)).filter(|(count, _)| *count > 0);
    let counted = counted.map(|(count, word)| match word {
        "needs approval" if count > 1 => format!("{count} need approval"),
        _ => format!("{count} {word}"),
    });
    let dot = drawing.branches.dot;
    let slots = plural(slots as u64, "slot");
    let slots = held.map_or_else(|| slots.clone(), |held| format!("{held} of {slots}"));
    let mut lines = vec![format!("{slots}{dot}{}", counted.collect::<Vec<_>>().join(", "))];
    let ways = nodes.iter().filter_map(|node| {
        let to = node.state.to()?;
        let verb = if matches!(node.state, RunAgentState::Yields { .. }) { "yields" } else { "has yielded" };
        Some(format!("{} {verb} for {to}", node.number()))
    });
    let ways = ways.collect::<Vec<_>>();
    if !ways.is_empty() {
        let more = ways.len().saturating_sub(WAYS_MAX);
        let more = (more > 0).then(|| format!("{more} more"));
        let shown = ways.into_iter().take(WAYS_MAX).chain(more).collect::<Vec<_>>();
        lines.push(shown.join(dot));
    }
    lines
}

#[cfg(test)]
mod tests;
