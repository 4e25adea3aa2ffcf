//! `provost approvals`: the calls that need approval.

use std::fmt::Write as _;

use provost_event::{Json, NamedScript, RunId, SessionId, Timestamp};
use provost_harness::{Clock as _, RunStatus, RunSummary, SystemClock};
use serde::Serialize;

use super::status::{at_terminal, status};
use super::{backend_to_read, print};
use crate::cli::ApprovalsArgs;
use crate::exit::Exit;
use crate::output::tell;
use crate::questions::{Everywhere, Question, everywhere};
use crate::render::{Room, UNNAMED, call_in_full, one_line, script_in_words, terminal_width, visible};

/// Columns where there is no terminal to measure.
const WIDTH: usize = 100;
const GOAL_WIDTH: usize = 80;

pub(super) async fn approvals(args: ApprovalsArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read()?;
    let Everywhere { waiting: all, untold } = everywhere(&*backend).await?;
    if args.json {
        for (run, open) in &all {
            let status = status(run, open, at_terminal(&*backend, run).await);
            for question in open {
                print(&format!("{}\n", serde_json::to_string(&ApprovalJson::of(run, question, &status))?))?;
            }
        }
    } else if all.is_empty() {
        print("nothing waits for approval\n")?;
    } else {
        print(&page(&all, SystemClock.now()))?;
    }
    for error in &untold {
        tell(&format!("warning: {error:#}"));
    }
    Ok(if untold.is_empty() { Exit::Done } else { Exit::Failed })
}

fn each(all: &[(RunSummary, Vec<Question>)]) -> impl Iterator<Item = (&RunSummary, &Question)> {
    all.iter().flat_map(|(run, open)| open.iter().map(move |question| (run, question)))
}

fn page(all: &[(RunSummary, Vec<Question>)], now: Timestamp) -> String {
    let width = terminal_width().unwrap_or(WIDTH);
    let blocks = each(all).map(|(run, question)| block(run, question, width, now)).collect::<Vec<_>>();
    let names = each(all).map(|(_, question)| question.name());
    let name = names.collect::<Vec<_>>().first().cloned().unwrap_or_default();
    format!("{}\nanswer with: provost approve {name}, or provost deny {name} REASON\n", blocks.join("\n"))
}

/// A question with its run: a line of its own for each fact, the whole call among them.
fn block(run: &RunSummary, question: &Question, width: usize, now: Timestamp) -> String {
    let mut out = format!("{}  {}\n", question.name(), visible(&question.tool));
    for line in call_in_full(question, Room::all(width.saturating_sub(2)), "") {
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "  {line}");
    }
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<7} {value}");
    };
    if let Some(who) = &question.who {
        row("agent", &visible(who));
    }
    if let Some(program) = &question.program {
        row("program", &visible(program));
    }
    if !question.options.is_empty() {
        row("options", &visible(&question.options));
    }
    row("why", &visible(&question.why));
    for script in &question.scripts {
        row("script", &script_in_words(script));
    }
    if question.unnamed {
        row("script", UNNAMED);
    }
    let is_held = run.status == RunStatus::Running;
    let waited = question.wait().waited(now, is_held).map(|time| format!("{time} ago"));
    row("asked", waited.as_deref().unwrap_or("not known when: the clock was set since"));
    row("left", &left(run, question, now));
    if question.why_once().is_none() {
        row("pattern", &visible(&question.pattern));
    }
    row("goal", &one_line(&run.goal, GOAL_WIDTH));
    out
}

/// The time left for an answer. No question is late while no process holds the run.
pub(super) fn left(run: &RunSummary, question: &Question, now: Timestamp) -> String {
    match &run.status {
        RunStatus::Running => question.wait().left_in_words(now, true),
        RunStatus::Stopped(_) => "any time: the run is suspended".to_owned(),
        RunStatus::Interrupted => {
            format!("{}; the run is interrupted", question.wait().left_in_words(now, false))
        }
    }
}

/// A question for programs.
#[derive(Serialize)]
pub(super) struct ApprovalJson<'a> {
    id: String,
    run: RunId,
    session: SessionId,
    /// Which agent asks, by number and name; absent for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// The program that asks, if the agent is external, and how to answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    options: &'a str,
    asked: u64,
    /// In the words of `ps`.
    run_status: &'a str,
    goal: &'a str,
    tool: &'a str,
    input: &'a Json,
    why: &'a str,
    pattern: &'a str,
    /// The scripts that the answer is bound to.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    scripts: &'a [NamedScript],
    /// Whether it may run files that its text doesn't name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unnamed: bool,
    asked_at_ms: Timestamp,
    due_ms: Timestamp,
}

impl<'a> ApprovalJson<'a> {
    pub(super) fn of(run: &'a RunSummary, question: &'a Question, status: &'a str) -> Self {
        Self {
            id: question.id().to_string(),
            run: run.run,
            session: question.session,
            agent: question.who.as_deref(),
            program: question.program.as_deref(),
            options: &question.options,
            asked: question.asked.0,
            run_status: status,
            goal: &run.goal,
            tool: &question.tool,
            input: &question.input,
            why: &question.why,
            pattern: &question.pattern,
            scripts: &question.scripts,
            unnamed: question.unnamed,
            asked_at_ms: question.since,
            due_ms: question.due,
        }
    }
}
