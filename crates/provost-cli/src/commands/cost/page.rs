//! What was spent, for people.

use jiff::tz::TimeZone;
use provost_view::{Spending, SpendingGroup, SpendingRow, SpendingSums};

use super::since::at;
use crate::commands::ps::GOAL_WIDTH;
use crate::names::{labelled, short};
use crate::render::{Cells, Table, amount, one_line, plural, tokens};

/// Columns of a model's name where there is no terminal to measure.
const MODEL_WIDTH: usize = 200;

/// All of it, with times of `zone`.
pub(super) fn page(spending: &Spending, zone: &TimeZone, width: Option<usize>) -> String {
    let total = spending.total;
    if total.calls == 0 {
        return match spending.reserved_tokens {
            0 => format!("nothing was spent: no model was called{}\n", since_when(spending, zone)),
            _ => format!("no provider has reported anything yet\n{}", open_calls(spending)),
        };
    }
    let layout = Layout::of(spending);
    let mut table = Table::new(&layout.columns());
    for row in &spending.groups {
        let goal = row.goal.as_deref().map(|goal| one_line(goal, GOAL_WIDTH)).unwrap_or_default();
        table.row(layout.row(layout.names(row), &row.sums, &goal));
    }
    let mut names = vec![String::new(); spending.by.len()];
    if let Some(first) = names.first_mut() {
        "total".clone_into(first);
    }
    table.row(layout.row(names, &total, ""));
    table.lines(width) + &footnote(&total) + &open_calls(spending)
}

fn open_calls(spending: &Spending) -> String {
    match spending.reserved_tokens {
        0 => String::new(),
        tokens => format!(
            "not in it: at most {} and {} for model calls without a report\n",
            spending.reserved_cost_micro_usd,
            plural(tokens, "token")
        ),
    }
}

fn since_when(spending: &Spending, zone: &TimeZone) -> String {
    let zoned = spending.since_ms.map(|since| at(since).to_zoned(zone.clone()));
    zoned.map(|since| since.strftime(" since %F %H:%M %Z").to_string()).unwrap_or_default()
}

/// What stands in which column.
struct Layout<'a> {
    groups: &'a [SpendingGroup],
    /// Whether an agent's number is enough to know it.
    run_is_known: bool,
    reasoning: bool,
    /// Whether the runs' goals are shown.
    goals: bool,
}

impl<'a> Layout<'a> {
    fn of(spending: &'a Spending) -> Self {
        let by_run = spending.by.contains(&SpendingGroup::Run);
        let one_run = spending.run.is_some();
        Self {
            groups: &spending.by,
            run_is_known: by_run || one_run,
            reasoning: spending.total.reasoning_tokens > 0,
            goals: by_run && !one_run,
        }
    }

    fn columns(&self) -> Vec<(&'static str, Cells)> {
        let mut columns = self.groups.iter().map(|group| column(*group)).collect::<Vec<_>>();
        columns.extend([
            ("CALLS", Cells::LeftOut),
            ("INPUT", Cells::LeftOutLast),
            ("CACHED", Cells::LeftOut),
            ("WRITTEN", Cells::LeftOut),
            ("OUTPUT", Cells::LeftOutLast),
        ]);
        columns.extend(self.reasoning.then_some(("REASONING", Cells::LeftOut)));
        columns.push(("COST", Cells::Numbers));
        columns.extend(self.goals.then_some(("GOAL", Cells::CutAtEnd)));
        columns
    }

    /// An agent's number, or all of its id where its run isn't shown; then its name.
    fn agent(&self, row: &SpendingRow) -> Option<String> {
        let (session, name) = (row.session?, short(row.name.as_deref().unwrap_or_default()));
        Some(match (self.run_is_known, name.as_str()) {
            (true, name) => labelled(session.agent, name),
            (false, "") => session.to_string(),
            (false, name) => format!("{session} {name}"),
        })
    }

    fn names(&self, row: &SpendingRow) -> Vec<String> {
        let name = |group: &SpendingGroup| match group {
            SpendingGroup::Day => row.day.clone(),
            SpendingGroup::Run => row.run.map(|run| run.to_string()),
            SpendingGroup::Segment => row.segment.map(|segment| segment.to_string()),
            SpendingGroup::Agent => self.agent(row),
            SpendingGroup::Purpose => row.purpose.as_ref().map(|purpose| purpose.replace('_', " ")),
            SpendingGroup::Model => row.model.as_ref().map(|model| one_line(model, MODEL_WIDTH)),
        };
        self.groups.iter().map(|group| name(group).unwrap_or_default()).collect()
    }

    fn row(&self, mut cells: Vec<String>, sums: &SpendingSums, goal: &str) -> Vec<String> {
        cells.push(amount(sums.calls));
        let counts = [sums.input_tokens, sums.cache_read_tokens, sums.cache_write_tokens, sums.output_tokens];
        cells.extend(counts.map(tokens));
        cells.extend(self.reasoning.then(|| tokens(sums.reasoning_tokens)));
        cells.push(money(sums));
        cells.extend(self.goals.then(|| goal.to_owned()));
        cells
    }
}

const fn column(group: SpendingGroup) -> (&'static str, Cells) {
    match group {
        SpendingGroup::Day => ("DAY", Cells::Text),
        SpendingGroup::Run => ("RUN", Cells::Text),
        SpendingGroup::Segment => ("SEGMENT", Cells::Text),
        SpendingGroup::Agent => ("AGENT", Cells::CutAtEnd),
        SpendingGroup::Purpose => ("PURPOSE", Cells::Text),
        SpendingGroup::Model => ("MODEL", Cells::CutAtStart),
    }
}

fn money(sums: &SpendingSums) -> String {
    match sums.unknown_price_calls {
        0 => sums.cost_micro_usd.to_string(),
        all if all == sums.calls => "?".to_owned(),
        _ => format!("{} + ?", sums.cost_micro_usd),
    }
}

fn footnote(total: &SpendingSums) -> String {
    let mut out = match total.unknown_price_calls {
        0 => String::new(),
        calls => {
            format!(
                "? calls of unknown price ({}): their tokens are counted, their cost isn't\n",
                amount(calls)
            )
        }
    };
    for (tokens, cost, why) in [
        (
            total.estimated_tokens,
            total.estimated_cost_micro_usd,
            "estimated: calls ended without the provider's report",
        ),
        (
            total.unconfirmed_tokens,
            total.unconfirmed_cost_micro_usd,
            "unconfirmed: set aside for calls that were lost to a crash",
        ),
    ] {
        if tokens > 0 || cost.0 > 0 {
            out.push_str(&format!("of it {cost} and {} are {why}\n", plural(tokens, "token")));
        }
    }
    out
}
