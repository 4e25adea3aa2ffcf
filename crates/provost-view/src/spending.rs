//! What was spent.
//!
//! Every call that was paid is an entry of its run's log; they are summed up as they are read, so that only the
//! sums are held.

mod sums;

use std::collections::HashMap;

use jiff::tz::TimeZone;
use provost_event::{
    AgentEntry, BudgetCharged, BudgetEntry, Certainty, Entry, MicroDollars, RunId, Seq, SessionId, Timestamp,
};
use provost_harness::{Backend, BackendError, RunQuery, RunStatus, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::sums::{Key, Paid, Sums};
use crate::status::READ_MAX;
use crate::{AgentNames, SegmentCounter, ViewVersion, run_state};

/// By what spending is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpendingGroup {
    /// The model that was called.
    Model,
    /// The agent that called it.
    Agent,
    /// What the call was for.
    Purpose,
    /// The run.
    Run,
    /// The segment of its run.
    Segment,
    /// The day of a time zone.
    Day,
}

/// Which spending to sum up, and how.
#[derive(Debug, Clone)]
pub struct SpendingQuery {
    /// Only this run, if not all: then no other is read.
    pub run: Option<RunId>,
    /// Only this agent of that run, if not all.
    pub agent: Option<u32>,
    /// Only calls from this time on, if not all.
    pub since: Option<Timestamp>,
    /// The groups, the outermost first, each once.
    pub by: Vec<SpendingGroup>,
    /// The time zone of days.
    pub zone: TimeZone,
}

/// What was spent, by groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// The version of the view.
    pub v: ViewVersion,
    /// By what it is summed up, the outermost first.
    pub by: Vec<SpendingGroup>,
    /// The only run that counts; null if all do.
    pub run: Option<RunId>,
    /// The time from which calls count; null if all do.
    pub since_ms: Option<Timestamp>,
    /// The groups: days and segments in order, of all else the most expensive first.
    pub groups: Vec<SpendingRow>,
    /// The sum of all.
    pub total: SpendingSums,
    /// Tokens reserved for model calls without a report yet: not included in `total`.
    pub reserved_tokens: u64,
    /// Money reserved for them: not included in `total`.
    pub reserved_cost_micro_usd: MicroDollars,
}

/// A group, with a member for each of `by`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendingRow {
    /// `2026-11-02`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The goal of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The segment of its run, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// The agent's number in its run; 0 is the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u32>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The agent's name; empty for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `turn`, `summary`, `final_summary`, `judge`, `external` or `hook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What its calls took.
    #[serde(flatten)]
    pub sums: SpendingSums,
}

/// What model calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendingSums {
    /// Calls that were charged, failed attempts included.
    pub calls: u64,
    /// Of them, those whose price isn't known: their cost isn't included.
    pub unknown_price_calls: u64,
    /// Input tokens that came from no cache.
    pub input_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Output tokens spent on reasoning, where a provider reports them.
    pub reasoning_tokens: u64,
    /// The cost, as far as prices are known.
    pub cost_micro_usd: MicroDollars,
    /// Of the tokens, those of calls without a final report: estimated.
    pub estimated_tokens: u64,
    /// Of the cost, that of those calls, at most.
    pub estimated_cost_micro_usd: MicroDollars,
    /// Of the tokens, those reserved for calls that were lost to a crash.
    pub unconfirmed_tokens: u64,
    /// Of the cost, what was reserved for those calls.
    pub unconfirmed_cost_micro_usd: MicroDollars,
}

impl SpendingSums {
    pub(crate) fn add(&mut self, charged: &BudgetCharged) {
        let (usage, cost) = (charged.usage, charged.cost.unwrap_or_default());
        self.calls += 1;
        self.unknown_price_calls += u64::from(charged.cost.is_none());
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(usage.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(usage.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(usage.reasoning_tokens);
        self.cost_micro_usd += cost;
        match usage.certainty {
            Certainty::Reported => {}
            Certainty::Estimated => {
                self.estimated_tokens = self.estimated_tokens.saturating_add(usage.total());
                self.estimated_cost_micro_usd += cost;
            }
            Certainty::Unconfirmed => {
                self.unconfirmed_tokens = self.unconfirmed_tokens.saturating_add(usage.total());
                self.unconfirmed_cost_micro_usd += cost;
            }
        }
    }

    /// Tokens of all kinds.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        let input = self.input_tokens.saturating_add(self.cache_read_tokens);
        input.saturating_add(self.cache_write_tokens).saturating_add(self.output_tokens)
    }
}

/// What was spent, as far as logs could be read.
#[derive(Debug)]
pub struct SpendingReport {
    /// The sums.
    pub spending: Spending,
    /// Whether there were any runs to read.
    pub has_runs: bool,
    /// Damaged logs: what they hold behind the damage isn't included.
    pub unread: Vec<BackendError>,
}

impl SpendingReport {
    /// Sums up what `query` asks for.
    ///
    /// # Errors
    /// When the runs can't be listed, or a log can't be read for another reason than its damage.
    pub async fn read(backend: &dyn Backend, query: SpendingQuery) -> Result<Self, BackendError> {
        let runs = match query.run {
            Some(run) => backend.get(run).await?.into_iter().collect(),
            None => backend.list(RunQuery::newest(usize::MAX)).await?,
        };
        let SpendingQuery { run, agent, since, by, zone } = query;
        let mut reader = SpendingReader {
            backend,
            since,
            only: agent,
            sums: Sums::by(by, zone),
            names: HashMap::new(),
            reserved_tokens: 0,
            reserved_cost: MicroDollars(0),
            unread: Vec::new(),
        };
        for run in &runs {
            reader.run(run).await?;
        }
        let goals = runs.iter().map(|run| (run.run, run.goal.as_str())).collect();
        let groups = reader.sums.rows();
        let groups = groups.into_iter().map(|(key, sums)| reader.row(key, sums, &goals)).collect();
        let spending = Spending {
            v: ViewVersion,
            by: reader.sums.groups().to_vec(),
            run,
            since_ms: since,
            groups,
            total: reader.sums.total(),
            reserved_tokens: reader.reserved_tokens,
            reserved_cost_micro_usd: reader.reserved_cost,
        };
        Ok(Self { spending, has_runs: !runs.is_empty(), unread: reader.unread })
    }
}

struct SpendingReader<'a> {
    backend: &'a dyn Backend,
    since: Option<Timestamp>,
    /// The only agent whose calls count, if not all.
    only: Option<u32>,
    sums: Sums,
    /// The names of the agents of the runs.
    names: HashMap<RunId, AgentNames>,
    reserved_tokens: u64,
    reserved_cost: MicroDollars,
    /// Logs that are damaged; the others are still summed up.
    unread: Vec<BackendError>,
}

impl SpendingReader<'_> {
    async fn run(&mut self, run: &RunSummary) -> Result<(), BackendError> {
        if self.since.is_some_and(|since| run.updated_at < since) {
            return Ok(());
        }
        match self.log(run).await {
            Err(error @ BackendError::Unreadable { .. }) => {
                self.unread.push(error);
                Ok(())
            }
            result => result,
        }
    }

    async fn log(&mut self, run: &RunSummary) -> Result<(), BackendError> {
        let mut after = Seq::START;
        let mut purposes = HashMap::new();
        let mut segments = SegmentCounter::new();
        loop {
            let records = self.backend.read(run.run.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { return self.open_calls(run).await };
            after = last.seq;
            for record in &records {
                segments.see(&record.entry);
                if let Entry::Agent(AgentEntry::Spawned(_)) = &record.entry {
                    self.names.entry(run.run).or_default().learn(record);
                }
                if let Entry::Budget(BudgetEntry::Reserved(reserved)) = &record.entry {
                    let is_beside = reserved.purpose.is_beside();
                    purposes.insert((reserved.session, reserved.call, is_beside), reserved.purpose);
                }
                let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry else { continue };
                let is_beside = charged.purpose.is_beside();
                let reserved = purposes.remove(&(charged.session, charged.call, is_beside));
                let purpose = reserved.unwrap_or(charged.purpose);
                let is_meant = self.only.is_none_or(|only| charged.session.agent == only);
                if is_meant && self.since.is_none_or(|since| record.at >= since) {
                    let at = record.at;
                    let segment = segments.number();
                    self.sums.add(&Paid { charged, at, segment, purpose, root_model: &run.model });
                }
            }
        }
    }

    /// Counts what is reserved for calls of `run` that are in flight, or were when its process was killed.
    async fn open_calls(&mut self, run: &RunSummary) -> Result<(), BackendError> {
        if matches!(run.status, RunStatus::Stopped(_)) || self.only.is_some() {
            return Ok(());
        }
        // A log that can't be read is reported where it is summed up.
        if let Some(state) = run_state(self.backend, run.run).await.unwrap_or_default() {
            let reserved = state.ledger().run();
            self.reserved_tokens = self.reserved_tokens.saturating_add(reserved.tokens_set_aside);
            self.reserved_cost += reserved.cost_set_aside;
        }
        Ok(())
    }

    fn row(&self, key: &Key, sums: SpendingSums, goals: &HashMap<RunId, &str>) -> SpendingRow {
        let name = |session: SessionId| {
            self.names.get(&session.run).map(|names| names.name(session)).unwrap_or_default().to_owned()
        };
        SpendingRow {
            day: key.day.map(|day| day.to_string()),
            run: key.run,
            goal: key.run.and_then(|run| goals.get(&run)).map(|goal| (*goal).to_owned()),
            segment: key.segment,
            agent: key.agent.map(|session| session.agent),
            session: key.agent,
            name: key.agent.map(name),
            purpose: key.purpose.map(str::to_owned),
            model: key.model.as_deref().map(str::to_owned),
            sums,
        }
    }
}
