//! What was spent, for people and for programs.

use std::collections::HashMap;

use provost_event::{MicroDollars, RunId, SessionId, Timestamp};
use provost_harness::RunSummary;
use serde::Serialize;

use super::OpenCalls;
use super::since::at;
use super::sums::{Key, Spent, Sums};
use crate::cli::CostGroup;
use crate::commands::ps::GOAL_WIDTH;
use crate::names::Names;
use crate::render::{Cells, Table, amount, one_line, plural, tokens};

/// Columns of a model's name where there is no terminal to measure.
const MODEL_WIDTH: usize = 200;

pub(super) struct Page<'a> {
    pub(super) sums: &'a Sums,
    /// The runs whose logs were read.
    pub(super) runs: &'a [RunSummary],
    /// What their agents are called.
    pub(super) names: &'a HashMap<RunId, Names>,
    /// Whether the user asked for one run only.
    pub(super) one_run: bool,
    pub(super) since: Option<Timestamp>,
    /// What isn't in the sums yet.
    pub(super) open: OpenCalls,
}

impl Page<'_> {
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let total = self.sums.total();
        if total.calls == 0 {
            return match self.open.tokens {
                0 => format!("nothing was spent: no model was called{}\n", self.since_when()),
                _ => format!("no provider has reported anything yet\n{}", self.open_calls()),
            };
        }
        let layout = Layout::of(self, total);
        let mut table = Table::new(&layout.columns());
        for (key, spent) in self.sums.rows() {
            table.row(layout.row(layout.names(key), &spent, &layout.goal(key)));
        }
        let mut names = vec![String::new(); self.sums.groups().len()];
        if let Some(first) = names.first_mut() {
            "total".clone_into(first);
        }
        table.row(layout.row(names, &total, ""));
        table.lines(width) + &footnote(&total) + &self.open_calls()
    }

    fn open_calls(&self) -> String {
        let OpenCalls { tokens, cost } = self.open;
        match tokens {
            0 => String::new(),
            _ => format!(
                "not in it: at most {cost} and {} for model calls without a report\n",
                plural(tokens, "token")
            ),
        }
    }

    fn since_when(&self) -> String {
        let zoned = self.since.map(|since| at(since).to_zoned(self.sums.zone().clone()));
        zoned.map(|since| since.strftime(" since %F %H:%M %Z").to_string()).unwrap_or_default()
    }

    pub(super) fn json(&self) -> serde_json::Result<String> {
        let groups = self.sums.rows();
        let whole = Whole {
            by: self.sums.groups().iter().map(|group| name(*group)).collect(),
            run: self.runs.first().map(|run| run.run).filter(|_| self.one_run),
            since_ms: self.since,
            groups: groups.iter().map(|(key, spent)| Group::of(key, spent, self.names)).collect(),
            total: Numbers::of(&self.sums.total()),
        };
        Ok(format!("{}\n", serde_json::to_string(&whole)?))
    }
}

/// What stands in which column.
struct Layout<'a> {
    groups: &'a [CostGroup],
    names: &'a HashMap<RunId, Names>,
    /// Whether an agent's number is enough to know it.
    run_is_known: bool,
    reasoning: bool,
    /// The runs' goals, if they are shown.
    goals: Option<HashMap<RunId, &'a str>>,
}

impl<'a> Layout<'a> {
    fn of(page: &Page<'a>, total: Spent) -> Self {
        let groups = page.sums.groups();
        let by_run = groups.contains(&CostGroup::Run);
        let goals = || page.runs.iter().map(|run| (run.run, run.goal.as_str())).collect();
        Self {
            groups,
            names: page.names,
            run_is_known: by_run || page.one_run,
            reasoning: total.usage.reasoning_tokens > 0,
            goals: (by_run && !page.one_run).then(goals),
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
        columns.extend(self.goals.as_ref().map(|_| ("GOAL", Cells::CutAtEnd)));
        columns
    }

    /// An agent's number, or all of its id where its run isn't shown; then its name.
    fn agent(&self, session: SessionId) -> String {
        let number = if self.run_is_known { session.agent.to_string() } else { session.to_string() };
        match name_of(self.names, session) {
            Some(name) => format!("{number} {name}"),
            None => number,
        }
    }

    fn names(&self, key: &Key) -> Vec<String> {
        let name = |group: &CostGroup| match group {
            CostGroup::Day => key.day.map(|day| day.to_string()),
            CostGroup::Run => key.run.map(|run| run.to_string()),
            CostGroup::Segment => key.segment.map(|segment| segment.to_string()),
            CostGroup::Agent => key.agent.map(|session| self.agent(session)),
            CostGroup::Purpose => key.purpose.map(|purpose| purpose.replace('_', " ")),
            CostGroup::Model => key.model.as_ref().map(|model| one_line(model, MODEL_WIDTH)),
        };
        self.groups.iter().map(|group| name(group).unwrap_or_default()).collect()
    }

    fn goal(&self, key: &Key) -> String {
        let goal = self.goals.as_ref().zip(key.run).and_then(|(goals, run)| goals.get(&run));
        goal.map(|goal| one_line(goal, GOAL_WIDTH)).unwrap_or_default()
    }

    fn row(&self, mut cells: Vec<String>, spent: &Spent, goal: &str) -> Vec<String> {
        let usage = spent.usage;
        cells.push(amount(spent.calls));
        let counts =
            [usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens];
        cells.extend(counts.map(tokens));
        cells.extend(self.reasoning.then(|| tokens(usage.reasoning_tokens)));
        cells.push(money(spent));
        cells.extend(self.goals.as_ref().map(|_| goal.to_owned()));
        cells
    }
}

/// What an agent is called; `None` for the root.
fn name_of(names: &HashMap<RunId, Names>, session: SessionId) -> Option<&str> {
    names.get(&session.run).map(|names| names.name(session)).filter(|name| !name.is_empty())
}

const fn column(group: CostGroup) -> (&'static str, Cells) {
    match group {
        CostGroup::Day => ("DAY", Cells::Text),
        CostGroup::Run => ("RUN", Cells::Text),
        CostGroup::Segment => ("SEGMENT", Cells::Text),
        CostGroup::Agent => ("AGENT", Cells::CutAtEnd),
        CostGroup::Purpose => ("PURPOSE", Cells::Text),
        CostGroup::Model => ("MODEL", Cells::CutAtStart),
    }
}

const fn name(group: CostGroup) -> &'static str {
    match group {
        CostGroup::Day => "day",
        CostGroup::Run => "run",
        CostGroup::Segment => "segment",
        CostGroup::Agent => "agent",
        CostGroup::Purpose => "purpose",
        CostGroup::Model => "model",
    }
}

fn money(spent: &Spent) -> String {
    match spent.unknown_price_calls {
        0 => spent.cost.to_string(),
        all if all == spent.calls => "?".to_owned(),
        _ => format!("{} + ?", spent.cost),
    }
}

fn footnote(total: &Spent) -> String {
    let mut out = match total.unknown_price_calls {
        0 => String::new(),
        calls => {
            format!(
                "? calls of unknown price ({}): their tokens are counted, their cost isn't\n",
                amount(calls)
            )
        }
    };
    for (part, why) in [
        (total.estimated, "estimated: calls ended without the provider's report"),
        (total.unconfirmed, "unconfirmed: set aside for calls that were lost to a crash"),
    ] {
        if !part.is_none() {
            out.push_str(&format!("of it {} and {} are {why}\n", part.cost, plural(part.tokens, "token")));
        }
    }
    out
}

#[derive(Serialize)]
struct Whole<'a> {
    by: Vec<&'static str>,
    run: Option<RunId>,
    since_ms: Option<Timestamp>,
    groups: Vec<Group<'a>>,
    total: Numbers,
}

#[derive(Serialize)]
struct Group<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// What that agent is called; absent for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(flatten)]
    numbers: Numbers,
}

impl<'a> Group<'a> {
    fn of(key: &'a Key, spent: &Spent, names: &'a HashMap<RunId, Names>) -> Self {
        Self {
            day: key.day.map(|day| day.to_string()),
            run: key.run,
            segment: key.segment,
            agent: key.agent.map(|session| session.to_string()),
            agent_name: key.agent.and_then(|session| name_of(names, session)),
            purpose: key.purpose,
            model: key.model.as_deref(),
            numbers: Numbers::of(spent),
        }
    }
}

#[derive(Serialize)]
struct Numbers {
    calls: u64,
    unknown_price_calls: u64,
    input_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
    cost_micro_usd: MicroDollars,
    estimated_tokens: u64,
    estimated_micro_usd: MicroDollars,
    unconfirmed_tokens: u64,
    unconfirmed_micro_usd: MicroDollars,
}

impl Numbers {
    const fn of(spent: &Spent) -> Self {
        let Spent { calls, unknown_price_calls, usage, cost, estimated, unconfirmed } = *spent;
        Self {
            calls,
            unknown_price_calls,
            input_tokens: usage.input_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_micro_usd: cost,
            estimated_tokens: estimated.tokens,
            estimated_micro_usd: estimated.cost,
            unconfirmed_tokens: unconfirmed.tokens,
            unconfirmed_micro_usd: unconfirmed.cost,
        }
    }
}
