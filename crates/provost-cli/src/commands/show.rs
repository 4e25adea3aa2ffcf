//! `provost show`: one run, with all its agents.

mod live;
mod page;
mod screen;
mod tree;

use anyhow::Context as _;
use provost_event::RunId;
use provost_harness::{Backend, Clock as _, RunSummary, SystemClock};
use provost_view::{AgentsRead, CurrentStatus, RunDetails, RunTree, agent_openings, questions_of, run_state};

use self::page::waiting;
use self::tree::{Branches, Drawing, Extent};
use super::target::Target;
use super::{backend_to_show, place, print};
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::render::terminal_width;

pub(crate) use self::page::date_and_time;

pub(super) async fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_show().await?;
    let run = Target::whole_run(&*backend, &args.run, "show").await?;
    let extent = if args.all { Extent::Whole } else { Extent::SummedUp };
    let drawing = Drawing { branches: Branches::choose(), extent, width: terminal_width() };
    let summary = summary(&*backend, run).await?;
    if args.follow {
        return live::follow(&*backend, summary, drawing, args.json).await;
    }
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let open = questions_of(&*backend, &summary).await?;
    let now = SystemClock.now();
    let current = CurrentStatus::with_questions(&*backend, (&summary, &state), &open, now).await;
    let read = if args.all || args.json { AgentsRead::All } else { AgentsRead::Shown };
    let openings = agent_openings(&*backend, &state, read).await?;
    let tree = RunTree::new((&summary, &state), &openings, &open, now);
    let details = RunDetails::new((&summary, &state), &open, &current, tree);
    let details = details.with_logs(&*backend, &state, read).await?;
    let details = details.with_services(&place()?.services().all());
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&details)?))?;
    } else {
        let page = page::RunPage {
            summary: &summary,
            state: &state,
            details: &details,
            drawing,
            suspension: current.provider.as_ref(),
        };
        print(&page::page(&page))?;
        print(&waiting(&summary, &open, &details.tree.agents))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn summary(backend: &dyn Backend, run: RunId) -> anyhow::Result<RunSummary> {
    let summary = backend.get(run).await?;
    summary.with_context(|| format!("there is no run {run}"))
}
