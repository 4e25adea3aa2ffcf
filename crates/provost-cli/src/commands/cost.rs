//! `provost cost`: what was spent.
//!
//! Every call that was paid is an entry of its run's log; they are summed up as they are read, so that only the
//! sums are held.

mod page;
mod since;
mod sums;

use std::collections::HashMap;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use provost_event::{AgentEntry, BudgetEntry, Entry, MicroDollars, RunId, Seq, SessionId, Timestamp};
use provost_harness::{Backend, BackendError, Clock as _, RunQuery, RunStatus, RunSummary, SystemClock};

use self::page::Page;
use self::since::moment_of;
use self::sums::{Paid, Sums};
use super::ps::NO_RUNS;
use super::target::{Target, agent_of};
use super::{backend_to_read, print};
use crate::cli::{CostArgs, CostGroup};
use crate::exit::Exit;
use crate::names::Names;
use crate::output::tell;
use crate::render::{safe, terminal_width};
use crate::segments::SegmentCounter;
use provost_view::run_state;

const READ_MAX: usize = 1_000;

pub(super) async fn cost(args: CostArgs) -> anyhow::Result<Exit> {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let since = args.since.as_deref().map(|when| moment_of(when, SystemClock.now(), &zone)).transpose()?;
    let backend = backend_to_read()?;
    let target = match args.run.as_deref() {
        Some(word) => Some(Target::find(&*backend, word).await?),
        None => None,
    };
    let runs = chosen(&*backend, target).await?;
    if runs.is_empty() && !args.json {
        print(NO_RUNS)?;
        return Ok(Exit::Done);
    }
    let only = target.and_then(|target| target.agent);
    let sums = Sums::by(groups(&args), zone);
    let mut reading = CostReader {
        backend: &*backend,
        since,
        only,
        sums,
        names: HashMap::new(),
        open: OpenCalls::default(),
        unread: Vec::new(),
    };
    for run in &runs {
        reading.run(run).await?;
    }
    let CostReader { sums, names, open, unread, .. } = reading;
    if let (Some(Target { run, agent: Some(agent) }), 0) = (target, sums.total().calls) {
        let state =
            run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
        agent_of(&state, SessionId { run, agent })?;
    }
    let page = Page { sums: &sums, runs: &runs, names: &names, one_run: args.run.is_some(), since, open };
    print(&if args.json { page.json()? } else { safe(&page.text(terminal_width())) })?;
    for error in &unread {
        tell(&format!("error: not all that was spent is in it: {error}"));
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Failed })
}

async fn chosen(backend: &dyn Backend, only: Option<Target>) -> anyhow::Result<Vec<RunSummary>> {
    Ok(match only {
        Some(only) => backend.get(only.run).await?.into_iter().collect(),
        None => backend.list(RunQuery::newest(usize::MAX)).await?,
    })
}

/// The requested groups, each once; else the default ones.
fn groups(args: &CostArgs) -> Vec<CostGroup> {
    match (args.by.as_slice(), &args.run) {
        ([], None) => vec![CostGroup::Model],
        ([], Some(_)) => vec![CostGroup::Agent, CostGroup::Model],
        (given, _) => given.iter().fold(Vec::new(), |mut groups, group| {
            if !groups.contains(group) {
                groups.push(*group);
            }
            groups
        }),
    }
}

/// What is reserved for model calls without a report.
#[derive(Debug, Clone, Copy, Default)]
struct OpenCalls {
    tokens: u64,
    cost: MicroDollars,
}

struct CostReader<'a> {
    backend: &'a dyn Backend,
    since: Option<Timestamp>,
    /// The only agent whose calls count, if not all.
    only: Option<u32>,
    sums: Sums,
    /// The names of the agents of the runs.
    names: HashMap<RunId, Names>,
    /// What is reserved for calls without a report yet.
    open: OpenCalls,
    /// Logs that are damaged; the others are still summed up.
    unread: Vec<BackendError>,
}

impl CostReader<'_> {
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
                    purposes.insert((reserved.session, reserved.call), reserved.purpose);
                }
                let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry else { continue };
                let purpose = purposes.remove(&(charged.session, charged.call)).unwrap_or_default();
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
            let ledger = state.ledger();
            self.open.tokens = self.open.tokens.saturating_add(ledger.run().tokens_set_aside);
            self.open.cost += ledger.run().cost_set_aside;
        }
        Ok(())
    }
}
