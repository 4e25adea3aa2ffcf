//! `provost logs`: the log of a run, all its actors in the order of time.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::select_all;
use provost_event::{ActorKey, Entry, Record, RunId, Seq};
use provost_harness::Home as _;
use provost_store::LocalHome;

use super::find::find;
use super::show::moment;
use super::{home, print};
use crate::cli::LogsArgs;
use crate::exit::Exit;
use crate::render::Sayer;

const READ_MAX: usize = 1_000;

pub(super) async fn logs(args: LogsArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let run = find(&home, &args.run).await?;
    let mut printer = Printer { json: args.json, sayer: Sayer::default() };
    let there = print_there(&home, run, &mut printer).await?;
    if args.follow && !there.rests {
        follow(&home, run, there.heads, &mut printer).await?;
    }
    Ok(Exit::Done)
}

/// Up to where a log was printed.
struct There {
    heads: Vec<(ActorKey, Seq)>,
    /// Whether the last that the run's own log says is that it rests or has ended: what was printed tells, for
    /// whatever is asked besides may be older or newer than that.
    rests: bool,
}

/// Prints what is there now.
async fn print_there(home: &LocalHome, run: RunId, printer: &mut Printer) -> anyhow::Result<There> {
    let (mut all, mut heads, mut rests) = (Vec::new(), Vec::new(), false);
    for actor in home.actors(run).await? {
        let mut head = Seq::START;
        loop {
            let records = home.read(actor, head, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            head = last.seq;
            if actor == ActorKey::Run(run) {
                rests = place(last) == 2;
            }
            all.extend(records);
        }
        heads.push((actor, head));
    }
    all.sort_by_key(|record| (record.at, place(record), record.seq));
    all.iter().try_for_each(|record| printer.print(record))?;
    Ok(There { heads, rests })
}

/// Among entries of one moment the run's own come first, but for its rest or end; each log stays in its order.
const fn place(record: &Record) -> u8 {
    match (record.actor, &record.entry) {
        (ActorKey::Run(_), Entry::Paused(_) | Entry::Ended(_)) => 2,
        (ActorKey::Run(_), _) => 0,
        (ActorKey::Session(_), _) => 1,
    }
}

/// Prints what comes, until the run rests or ends.
async fn follow(
    home: &LocalHome,
    run: RunId,
    mut heads: Vec<(ActorKey, Seq)>,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let mut records = select_all(heads.iter().map(|(actor, head)| home.subscribe(*actor, *head)));
    let mut last = None;
    while let Some(record) = records.next().await {
        let record = record?;
        if let Some((_, head)) = heads.iter_mut().find(|(actor, _)| *actor == record.actor) {
            *head = record.seq;
        }
        if place(&record) == 2 {
            last = Some(record);
            break;
        }
        printer.print(&record)?;
    }
    // The sessions' last words may come a little later than the run's.
    for (actor, head) in heads.into_iter().filter(|(actor, _)| *actor != ActorKey::Run(run)) {
        home.read(actor, head, READ_MAX).await?.iter().try_for_each(|record| printer.print(record))?;
    }
    last.iter().try_for_each(|record: &Arc<Record>| printer.print(record))
}

struct Printer {
    json: bool,
    sayer: Sayer,
}

impl Printer {
    fn print(&mut self, record: &Record) -> anyhow::Result<()> {
        if self.json {
            return print(&format!("{}\n", record.to_line()?));
        }
        let who = match record.actor {
            ActorKey::Run(_) => "run".to_owned(),
            ActorKey::Session(session) => session.agent.to_string(),
        };
        let text = self.sayer.say(record).one_line();
        print(&format!("{}  {who:<3}  {:<18}  {text}\n", moment(record.at), record.entry.kind()))
    }
}
