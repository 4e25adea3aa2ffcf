//! `provost approvals`: the calls that need approval.

use std::fmt::Write as _;

use provost_event::Timestamp;
use provost_harness::{Clock as _, RunStatus, RunSummary, SystemClock};
use provost_view::{ApprovalQuestion, OpenApprovals, RunApprovals, open_approvals};

use super::{backend_to_read, print};
use crate::cli::ApprovalsArgs;
use crate::exit::Exit;
use crate::output::tell;
use crate::questions::asker;
use crate::render::{
    Room, UNNAMED, call_in_full, fields_in_words, left_in_words, one_line, outside_in_words, script_in_words,
    terminal_width, visible, waited_in_words,
};

/// Columns where there is no terminal to measure.
const WIDTH: usize = 100;
const GOAL_WIDTH: usize = 80;

pub(super) async fn approvals(args: ApprovalsArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read().await?;
    let OpenApprovals { runs, unread } = open_approvals(&*backend).await?;
    if args.json {
        for run in &runs {
            for approval in run.views(&*backend).await {
                print(&format!("{}\n", serde_json::to_string(&approval)?))?;
            }
        }
    } else if runs.is_empty() {
        print("nothing waits for approval\n")?;
    } else {
        print(&page(&runs, SystemClock.now()))?;
    }
    for (run, error) in &unread {
        tell(&format!("warning: can't tell what run {run} waits for: {error}"));
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Failed })
}

fn page(runs: &[RunApprovals], now: Timestamp) -> String {
    let width = terminal_width().unwrap_or(WIDTH);
    let each = || {
        runs.iter()
            .flat_map(|RunApprovals { run, questions }| questions.iter().map(move |question| (run, question)))
    };
    let blocks = each().map(|(run, question)| block(run, question, width, now)).collect::<Vec<_>>();
    let name = each().next().map(|(_, question)| question.short_id()).unwrap_or_default();
    format!("{}\nanswer with: provost approve {name}, or provost deny {name} REASON\n", blocks.join("\n"))
}

/// A question with its run: a line of its own for each fact, the whole call among them.
fn block(run: &RunSummary, question: &ApprovalQuestion, width: usize, now: Timestamp) -> String {
    let mut out = format!("{}  {}\n", question.short_id(), visible(&question.tool));
    for line in call_in_full(question, Room::all(width.saturating_sub(2)), "") {
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "  {line}");
    }
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<7} {value}");
    };
    if let Some(who) = asker(question) {
        row("agent", &visible(&who));
    }
    if let Some(program) = &question.program {
        row("program", &visible(program));
    }
    if !question.options.is_empty() {
        row("options", &visible(&question.options.join(" · ")));
    }
    row("why", &visible(&question.why));
    for script in &question.scripts {
        row("script", &script_in_words(script));
    }
    if question.unnamed {
        row("script", UNNAMED);
    }
    if let Some(outside) = &question.outside {
        row("leaves", &outside_in_words(outside));
    }
    if let Some(asked) = &question.question {
        row("fields", &fields_in_words(asked));
        row("schema", &visible(asked.schema.text()));
    }
    let is_held = run.status == RunStatus::Running;
    let waited = waited_in_words(question.wait(), now, is_held).map(|time| format!("{time} ago"));
    row("asked", waited.as_deref().unwrap_or("not known when: the clock was set since"));
    row("left", &left(run, question, now));
    if !question.is_for_once() {
        row("pattern", &visible(&question.pattern));
    }
    row("goal", &one_line(&run.goal, GOAL_WIDTH));
    out
}

/// The time left for an answer. No question is late while no process holds the run.
pub(super) fn left(run: &RunSummary, question: &ApprovalQuestion, now: Timestamp) -> String {
    match &run.status {
        RunStatus::Running => left_in_words(question.wait(), now, true),
        RunStatus::Stopped(_) => "any time: the run is suspended".to_owned(),
        RunStatus::Interrupted => {
            format!("{}; the run is interrupted", left_in_words(question.wait(), now, false))
        }
    }
}
