//! `provost cost`: what was spent.

mod page;
mod since;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use provost_event::SessionId;
use provost_harness::{Clock as _, SystemClock};
use provost_view::{SpendingGroup, SpendingQuery, SpendingReport, run_state};

use self::page::page;
pub(super) use self::since::moment_of;
use super::ps::NO_RUNS;
use super::target::{Target, agent_of};
use super::{backend_to_read, print};
use crate::cli::{CostArgs, CostGroup};
use crate::exit::Exit;
use crate::output::tell;
use crate::render::{safe, terminal_width};

pub(super) async fn cost(args: CostArgs) -> anyhow::Result<Exit> {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let since = args.since.as_deref().map(|when| moment_of(when, SystemClock.now(), &zone)).transpose()?;
    let backend = backend_to_read().await?;
    let target = match args.run.as_deref() {
        Some(word) => Some(Target::find(&*backend, word).await?),
        None => None,
    };
    let query = SpendingQuery {
        run: target.map(|target| target.run),
        agent: target.and_then(|target| target.agent),
        since,
        by: groups(&args),
        zone: zone.clone(),
    };
    let SpendingReport { spending, has_runs, unread } = SpendingReport::read(&*backend, query).await?;
    if !has_runs && !args.json {
        print(NO_RUNS)?;
        return Ok(Exit::Done);
    }
    if let (Some(Target { run, agent: Some(agent) }), 0) = (target, spending.total.calls) {
        let state =
            run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
        agent_of(&state, SessionId { run, agent })?;
    }
    print(&if args.json {
        format!("{}\n", serde_json::to_string(&spending)?)
    } else {
        safe(&page(&spending, &zone, terminal_width()))
    })?;
    for error in &unread {
        tell(&format!("error: not all that was spent is in it: {error}"));
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The requested groups, each once; else the default ones.
fn groups(args: &CostArgs) -> Vec<SpendingGroup> {
    let given: Vec<SpendingGroup> = args.by.iter().copied().map(group).collect();
    match (given.as_slice(), &args.run) {
        ([], None) => vec![SpendingGroup::Model],
        ([], Some(_)) => vec![SpendingGroup::Agent, SpendingGroup::Model],
        (given, _) => given.iter().fold(Vec::new(), |mut groups, group| {
            if !groups.contains(group) {
                groups.push(*group);
            }
            groups
        }),
    }
}

const fn group(argument: CostGroup) -> SpendingGroup {
    match argument {
        CostGroup::Model => SpendingGroup::Model,
        CostGroup::Agent => SpendingGroup::Agent,
        CostGroup::Purpose => SpendingGroup::Purpose,
        CostGroup::Run => SpendingGroup::Run,
        CostGroup::Segment => SpendingGroup::Segment,
        CostGroup::Day => SpendingGroup::Day,
    }
}
