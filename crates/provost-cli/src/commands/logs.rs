//! `provost logs`: the log of a run, all its actors in the order in which they were committed; one entry of it; or the model's view of
//! it.

mod entry;
mod seen;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use console::{Alignment, Style, pad_str};
use provost_event::{ActorKey, Entry, LifecycleEntry, Record, RunId, Seq, SessionId};
use provost_harness::{Backend, PlacedRecord, RunPosition, read_run};

use self::seen::CompactionView;
use super::follow::Following;
use super::show::date_and_time;
use super::target::Target;
use super::{backend_to_show, print};
use crate::cli::{LogsArgs, Whose};
use crate::exit::{Exit, Refusal};
use crate::names::Names;
use crate::render::{Sayer, terminal_width};
use provost_view::run_state;

const READ_MAX: usize = 1_000;
/// Agents listed where the one that is meant doesn't exist.
const SHOWN_MAX: usize = 20;
/// Columns of whose log an entry is in, once a run has more than one agent.
const WHO_WIDTH: usize = 14;
/// A terminal with fewer columns has no room for a table.
const NARROW: usize = 100;
/// Columns of a day in front of a time.
const DAY_WIDTH: usize = "2026-01-01 ".len();
/// What stands before the further lines of an entry that has no room in one.
const UNDER: &str = "    ";

pub(super) async fn logs(args: LogsArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_show().await?;
    let target = Target::find(&*backend, &args.run).await?;
    let (run, whose) = (target.run, whose(target, &args)?);
    let keys = backend.actors(run).await?;
    if let Some(number) = args.entry {
        let key = key_of(run, whose.unwrap_or(Whose::Agent(0)), &keys)?;
        entry::print_entry(&*backend, key, Seq(number), args.json).await?;
        return Ok(Exit::Done);
    }
    if args.view {
        let key = key_of(run, whose.unwrap_or(Whose::Agent(0)), &keys)?;
        view::print_view(&*backend, key, args.json).await?;
        return Ok(Exit::Done);
    }
    let only = whose.map(|whose| key_of(run, whose, &keys)).transpose()?;
    let narrow = terminal_width().filter(|width| *width < NARROW);
    let names = run_state(&*backend, run).await?.map(|state| Names::of(&state)).unwrap_or_default();
    let sayer = Sayer::knowing(names);
    let mut printer = Printer { json: args.json, only, narrow, sayer, seen: HashMap::new() };
    let there = print_there(&*backend, run, &mut printer).await?;
    if args.follow && !there.suspended {
        follow(&*backend, run, there.position, &mut printer).await?;
    }
    Ok(Exit::Done)
}

/// Which of the run's logs is meant, if not all: by the agent's name or by `--agent`.
fn whose(target: Target, args: &LogsArgs) -> Result<Option<Whose>, Refusal> {
    let named = target.agent.map(Whose::Agent);
    match (named, args.agent) {
        (Some(named), Some(given)) if named != given => {
            let what = format!("`{}` names one log and --agent another", args.run);
            Err(Refusal::new(what, format!("provost logs {}", args.run)))
        }
        (named, given) => Ok(named.or(given)),
    }
}

/// The log that is meant.
fn key_of(run: RunId, whose: Whose, keys: &[ActorKey]) -> Result<ActorKey, Refusal> {
    let key = match whose {
        Whose::Run => ActorKey::Run(run),
        Whose::Agent(agent) => ActorKey::Session(SessionId { run, agent }),
    };
    if keys.contains(&key) {
        return Ok(key);
    }
    let agents = keys.iter().filter_map(|key| match key {
        ActorKey::Session(session) => Some(session.agent.to_string()),
        ActorKey::Run(_) => None,
    });
    let agents = agents.collect::<Vec<_>>();
    let hint = match agents.as_slice() {
        [] => "it has none yet".to_owned(),
        [.., last] if agents.len() > SHOWN_MAX => {
            format!("it has {} up to {last}; `provost show {run}` draws them", agents.len())
        }
        few => format!("it has {}", few.join(", ")),
    };
    let what = match whose {
        Whose::Run => format!("run {run} has no log of its own"),
        Whose::Agent(agent) => format!("run {run} has no log of an agent {agent}"),
    };
    Err(Refusal::new(what, hint))
}

/// Whose log an entry is in, in a word.
fn who(key: ActorKey) -> String {
    match key {
        ActorKey::Run(_) => "run".to_owned(),
        ActorKey::Session(session) => session.agent.to_string(),
    }
}

/// Calls `see` with all entries of a log; returns the last one's number.
async fn each(backend: &dyn Backend, key: ActorKey, mut see: impl FnMut(Arc<Record>)) -> anyhow::Result<Seq> {
    let mut head = Seq::START;
    loop {
        let records = backend.read(key, head, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(head) };
        head = last.seq;
        records.into_iter().for_each(&mut see);
    }
}

/// Up to where a run was printed.
struct There {
    position: RunPosition,
    /// Whether the run's own log ends with its suspension or end, as printed: any other source may be older or
    /// newer.
    suspended: bool,
}

/// Prints what is there now, in the order in which it was committed.
async fn print_there(backend: &dyn Backend, run: RunId, printer: &mut Printer) -> anyhow::Result<There> {
    let (mut all, mut heads) = (Vec::new(), HashMap::new());
    let mut there = There { position: RunPosition::START, suspended: false };
    loop {
        let records = read_run(backend, run, there.position, READ_MAX).await?;
        let Some(last) = records.last() else { break };
        there.position = last.position;
        for PlacedRecord { record, .. } in records {
            printer.seen.entry(record.actor).or_default().note(&record);
            heads.insert(record.actor, record.seq);
            if matches!(record.actor, ActorKey::Run(_)) {
                there.suspended = suspends(&record);
            }
            all.push(record);
        }
    }
    for actor in backend.actors(run).await? {
        // Where a log ends is confirmed by reading it there.
        backend.read(actor, heads.get(&actor).copied().unwrap_or_default(), 1).await?;
    }
    all.iter().try_for_each(|record| printer.print(record))?;
    Ok(there)
}

/// Whether this is the run's suspension or end.
const fn suspends(record: &Record) -> bool {
    matches!(
        (record.actor, &record.entry),
        (ActorKey::Run(_), Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)))
    )
}

/// Prints what comes, until the run is suspended or ends; also of agents that begin meanwhile.
async fn follow(
    backend: &dyn Backend,
    run: RunId,
    after: RunPosition,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let mut following = Following::new(backend, run, after, HashMap::new());
    loop {
        let record = following.next().await?;
        printer.print(&record)?;
        if suspends(&record) {
            return Ok(());
        }
    }
}

struct Printer {
    json: bool,
    /// The only log that is printed, if it isn't all.
    only: Option<ActorKey>,
    /// The columns there are, if they are few.
    narrow: Option<usize>,
    sayer: Sayer,
    /// What agents still see of what was there at the beginning.
    seen: HashMap<ActorKey, CompactionView>,
}

impl Printer {
    fn print(&mut self, record: &Record) -> anyhow::Result<()> {
        if self.only.is_some_and(|only| only != record.actor) {
            return Ok(());
        }
        if self.json {
            return print(&format!("{}\n", record.to_line()?));
        }
        let said = self.sayer.say(record).one_line();
        let line = self.line(record, &said);
        let is_seen = self.seen.get(&record.actor).is_none_or(|seen| seen.form(record).is_seen());
        let style = if is_seen { Style::new() } else { Style::new().dim() };
        print(&format!("{}\n", style.apply_to(line)))
    }

    /// An entry in a line of a table; where there are but few columns, in one or more lines without the day.
    fn line(&self, record: &Record, said: &str) -> String {
        let (at, seq, kind) = (date_and_time(record.at), record.seq, record.entry.kind());
        let names = self.sayer.names();
        let who = names.prefix(record.actor).unwrap_or_else(|| who(record.actor));
        match self.narrow {
            None => {
                let width = if names.is_empty() { 3 } else { WHO_WIDTH };
                let who = pad_str(&who, width, Alignment::Left, Some("…"));
                format!("{at}  {who} {seq:>5}  {kind:<18}  {said}")
            }
            Some(columns) => {
                let at = at.get(DAY_WIDTH..).unwrap_or(&at);
                let options = textwrap::Options::new(columns.max(20)).subsequent_indent(UNDER);
                textwrap::fill(&format!("{at} {who:<3} {seq:>4} {kind}: {said}"), options)
            }
        }
    }
}
