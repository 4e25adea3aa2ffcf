//! `provost prune`: removes runs that are over.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use provost_backend::{KeptBecause, PrunePlan, PruneRequest, Pruned, plan_prune, prune as remove};
use provost_event::Timestamp;
use provost_harness::{Clock as _, RunSummary, SystemClock};
use provost_view::{KeptRun, PrunedRuns, RemovedRuns, ViewVersion};

use super::{place, print, print_json};
use crate::cli::PruneArgs;
use crate::exit::{Exit, Refusal};
use crate::render::{age, one_line, plural, safe, size};

const GOAL_WIDTH: usize = 60;

pub(super) async fn prune(args: PruneArgs) -> anyhow::Result<Exit> {
    let place = place()?;
    let backend = place.open_store()?;
    let now = SystemClock.now();
    let request = PruneRequest {
        idle_since: args.older.map(|older| {
            Timestamp(now.0.saturating_sub(u64::try_from(older.as_millis()).unwrap_or(u64::MAX)))
        }),
        keep: args.keep,
        suspended: args.suspended,
    };
    let plan = plan_prune(&backend, request).await?;
    if !args.json {
        print(&planned(&plan, now, args.dry_run))?;
    }
    let is_wanted = args.yes || args.dry_run || plan.remove.is_empty() || asked()?;
    if args.dry_run || plan.remove.is_empty() || !is_wanted {
        if args.json {
            print_json(&view(&plan, None))?;
        } else if !is_wanted {
            print("Nothing was removed.\n")?;
        }
        return Ok(if is_wanted { Exit::Done } else { Exit::Usage });
    }
    backend.settle().await?;
    let before = place.bytes();
    let pruned = remove(&backend, plan.clone()).await.context("can't remove all of it")?;
    backend.settle().await?;
    let files = pruned.runs.iter().map(|run| place.remove_files_of(*run)).sum::<u64>();
    let sizes = Sizes { before, after: place.bytes(), files };
    if args.json {
        print_json(&view(&plan, Some(removed_runs(pruned, &sizes))))?;
    } else {
        print(&removed(&pruned, &sizes))?;
    }
    Ok(Exit::Done)
}

/// Bytes of the store, and of the files beside it that were removed.
struct Sizes {
    before: u64,
    after: u64,
    files: u64,
}

impl Sizes {
    const fn freed(&self) -> u64 {
        self.before.saturating_sub(self.after).saturating_add(self.files)
    }
}

/// Asks the user at the terminal; refuses without one.
fn asked() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let hint = "`--yes` removes what is listed above, unasked; `--dry-run` only lists it";
        return Err(Refusal::new("this is no terminal, so you can't be asked", hint).into());
    }
    print("They can't be brought back. Remove them? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("can't read the answer")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn planned(plan: &PrunePlan, now: Timestamp, is_dry: bool) -> String {
    let line = |run: &RunSummary| {
        format!("{}  {:>4}  {}", run.run, age(now, run.updated_at), safe(&one_line(&run.goal, GOAL_WIDTH)))
    };
    let mut text = String::new();
    for run in &plan.remove {
        text.push_str(&format!("{} {}\n", if is_dry { "would remove" } else { "remove" }, line(run)));
    }
    for (run, because) in &plan.kept {
        text.push_str(&format!("keep   {}: {}\n", line(run), in_words(*because)));
    }
    if plan.remove.is_empty() {
        text.push_str("no run is to be removed\n");
    }
    text
}

fn in_words(because: KeptBecause) -> String {
    match because {
        KeptBecause::WorkedOn => "it is being worked on".to_owned(),
        KeptBecause::MayGoOn => "it could go on (--suspended removes it too)".to_owned(),
        KeptBecause::Forked(by) => format!("run {by} is a fork of it"),
        KeptBecause::Damaged => {
            "it is damaged; `provost doctor --store --salvage DIR` saves what is left".to_owned()
        }
    }
}

fn removed(pruned: &Pruned, sizes: &Sizes) -> String {
    let mut text = format!(
        "removed {} and {}: {} freed, the store has {} now\n",
        plural(pruned.runs.len() as u64, "run"),
        plural(pruned.outputs as u64, "output"),
        size(sizes.freed()),
        size(sizes.after),
    );
    if let Some(why) = &pruned.outputs_stay {
        text.push_str(&format!("note: outputs that aren't needed any more stay: {}\n", safe(why)));
    }
    if let Some(why) = &pruned.space_stays {
        text.push_str(&format!(
            "note: the space is used for what is written next, and not given back yet: {}\n",
            safe(why)
        ));
    }
    text
}

fn view(plan: &PrunePlan, removed: Option<RemovedRuns>) -> PrunedRuns {
    let kept = plan.kept.iter().map(|(run, because)| KeptRun { run: run.run, why: in_words(*because) });
    PrunedRuns {
        v: ViewVersion,
        planned: plan.remove.iter().map(|run| run.run).collect(),
        kept: kept.collect(),
        removed,
    }
}

fn removed_runs(pruned: Pruned, sizes: &Sizes) -> RemovedRuns {
    RemovedRuns {
        runs: pruned.runs,
        outputs: pruned.outputs,
        freed_bytes: sizes.freed(),
        bytes: sizes.after,
        outputs_stay: pruned.outputs_stay,
        space_stays: pruned.space_stays,
    }
}
