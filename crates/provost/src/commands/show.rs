//! `provost show`: one run.

use std::fmt::Write as _;

use anyhow::Context as _;
use provost_engine::{Actor, RunState};
use provost_event::{
    Budget, CompactionKind, Entry, HookMoment, Image, MicroDollars, Outcome, Retry, RetryCause, RunId, Seq,
    SessionId, StopHookVerdict, StopReport, Timestamp, ToolStatus, WrappedUp,
};
use provost_harness::{Clock as _, Home as _, RunQuery, RunSummary, SystemClock, read_actor};
use provost_store::LocalHome;
use serde::{Deserialize, Serialize};

use super::approvals::{self, left};
use super::find::find;
use super::ps::{Line, status};
use super::{home, print};
use crate::cli::ShowArgs;
use crate::drive::run_state;
use crate::exit::Exit;
use crate::questions::{Question, of_summary};
use crate::render::{
    Room, amount, call_in_full, compactions_in_words, duration, hanging, one_line, outcome_in_words,
    pictures, safe, terminal_width, visible,
};

const READ_MAX: usize = 1_000;
const REASON_WIDTH: usize = 100;
/// Columns of a call that waits, where there is no terminal to measure.
const WAITING_WIDTH: usize = 100;

pub(super) async fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let run = find(&home, &args.run).await?;
    let runs = home.list(RunQuery { max: usize::MAX }).await?;
    let summary = runs
        .into_iter()
        .find(|summary| summary.run == run)
        .with_context(|| format!("there is no run {run}"))?;
    let state = run_state(&home, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let facts = Facts { turns_max: state.turns_max(), ..Facts::read(&home, run).await? };
    let open = of_summary(&home, &summary).await?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&Whole::of((&summary, &open), &state, &facts))?))?;
    } else {
        print(&safe(&page(&summary, &state, &facts)))?;
        print(&waiting(&summary, &open))?;
    }
    Ok(Exit::Done)
}

/// What the root agent's log tells beyond its run's.
#[derive(Default, Serialize)]
struct Facts {
    goal_images: Vec<Image>,
    turns_max: u32,
    last_text: String,
    plan: Vec<Step>,
    stop_hooks: Vec<StopReport>,
    tool_calls: u32,
    failed_tool_calls: u32,
    unknown_tool_calls: u32,
    retries: u32,
    compactions: u32,
    compactions_by_kind: Compactions,
    /// Why the agent couldn't be asked for last words at the limit it rests at; absent where it was, or rests at none.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_last_words: Option<String>,
}

#[derive(Default, Serialize)]
struct Compactions {
    trim: u32,
    summary: u32,
    emergency: u32,
}

/// A step of the agent's plan, as the tool `update_plan` remembers it.
#[derive(Serialize, Deserialize)]
struct Step {
    text: String,
    status: StepStatus,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepStatus {
    Pending,
    InProgress,
    Done,
}

#[derive(Deserialize)]
struct Plan {
    items: Vec<Step>,
}

impl Facts {
    async fn read(home: &LocalHome, run: RunId) -> anyhow::Result<Self> {
        let root = SessionId::root(run);
        let mut facts = Self::default();
        if let Actor::Session(session) = read_actor(home, root.into()).await? {
            session.last_text().clone_into(&mut facts.last_text);
            let plan = session.memories().get("update_plan").and_then(|memory| memory.read::<Plan>().ok());
            facts.plan = plan.map(|plan| plan.items).unwrap_or_default();
        }
        let mut after = Seq::START;
        loop {
            let records = home.read(root.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { return Ok(facts) };
            after = last.seq;
            records.iter().for_each(|record| facts.count(&record.entry));
        }
    }

    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::SessionStarted(started) => self.goal_images.clone_from(&started.images),
            Entry::ToolFinished(finished) => {
                self.tool_calls += 1;
                self.failed_tool_calls += u32::from(finished.status.is_error());
                self.unknown_tool_calls += u32::from(finished.status == ToolStatus::Unknown);
            }
            // A summary that can't be had isn't asked for again.
            Entry::Retry(Retry { cause: RetryCause::UselessSummary { .. }, .. }) => {}
            Entry::Retry(_) => self.retries += 1,
            Entry::Compacted(compacted) => self.compacted(compacted.how),
            Entry::WrappedUp(wrapped) => self.no_last_words = why_none(wrapped),
            Entry::Resumed(_) => self.no_last_words = None,
            Entry::StopVerdicts(verdicts) => self.stop_hooks.clone_from(&verdicts.reports),
            _ => {}
        }
    }
}

impl Facts {
    const fn compacted(&mut self, how: CompactionKind) {
        self.compactions += 1;
        let kinds = &mut self.compactions_by_kind;
        match how {
            CompactionKind::Trim => kinds.trim += 1,
            CompactionKind::Summary => kinds.summary += 1,
            CompactionKind::Emergency => kinds.emergency += 1,
        }
    }
}

/// Why an agent couldn't be asked for last words. That it has none to say, or that none fit the very limit it is about,
/// is no news.
fn why_none(wrapped: &WrappedUp) -> Option<String> {
    let has_failed = wrapped.call.as_ref().is_some_and(|call| call.model.is_empty());
    wrapped.problem.clone().filter(|_| has_failed)
}

fn page(summary: &RunSummary, state: &RunState, facts: &Facts) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "{name:<11} {value}");
    };
    row("run", &summary.run.to_string());
    row("status", status(&summary.status));
    if let Some(outcome) = state.outcome() {
        row("outcome", &outcome_in_words(outcome));
    }
    row("goal", &hanging(&summary.goal, "            "));
    if !facts.goal_images.is_empty() {
        row("", &pictures(&facts.goal_images));
    }
    row("model", &summary.model);
    row("workspace", &super::shown(&summary.workspace));
    row("started", &moment(summary.started_at));
    row("updated", &moment(summary.updated_at));
    for (name, value) in used(state, facts.turns_max) {
        row(name, &value);
    }
    row("calls", &calls(facts));
    out.push_str(&hooks(state, facts));
    out.push_str(&plan(&facts.plan));
    if !facts.last_text.is_empty() {
        let _ = write!(out, "\nlast words\n  {}\n", hanging(facts.last_text.trim(), "  "));
    }
    if let Some(problem) = &facts.no_last_words {
        let _ = write!(out, "\nno last words at the limit: {}\n", one_line(problem, REASON_WIDTH));
    }
    out
}

/// What waits for somebody, each call in full.
fn waiting(summary: &RunSummary, open: &[Question]) -> String {
    let mut out = String::from(if open.is_empty() { "" } else { "\nwaits for approval\n" });
    let (now, width) = (SystemClock.now(), terminal_width().unwrap_or(WAITING_WIDTH));
    for question in open {
        let name = question.name();
        let _ = writeln!(out, "  {}", visible(&question.tool));
        for line in call_in_full(question, Room::all(width.saturating_sub(4)), "") {
            let _ = writeln!(out, "    {line}");
        }
        let _ = writeln!(out, "    why: {}", visible(&question.why));
        let _ = writeln!(out, "    left: {}", left(summary, question, now));
        let _ = writeln!(out, "    provost approve {name}, or provost deny {name}");
    }
    out
}

/// A moment in universal time.
pub(super) fn moment(at: Timestamp) -> String {
    let moment = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map(|moment| moment.strftime("%F %TZ").to_string()).unwrap_or_default()
}

fn used(state: &RunState, turns_max: u32) -> [(&'static str, String); 4] {
    let (ledger, budget) = (state.ledger(), state.budget());
    let of = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let priced = state.policy().is_some_and(|policy| policy.agent.model.price.is_some());
    let cost = if priced { ledger.cost.to_string() } else { "unknown price".to_owned() };
    [
        ("turns", format!("{} of {turns_max}", ledger.turns())),
        ("tokens", format!("{}{}", amount(ledger.tokens), of(budget.tokens.map(amount)))),
        ("cost", format!("{cost}{}", of(budget.money.map(|money| money.to_string())))),
        ("time", format!("{}{}", duration(state.active_ms()), of(budget.wall_time_ms.map(duration)))),
    ]
}

fn calls(facts: &Facts) -> String {
    let mut parts = vec![format!("{} tool calls", facts.tool_calls)];
    let counted = [
        (facts.failed_tool_calls, "failed"),
        (facts.unknown_tool_calls, "with unknown effect"),
        (facts.retries, "model calls made again"),
    ];
    parts.extend(
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    let Compactions { trim, summary, emergency } = facts.compactions_by_kind;
    parts.extend(compactions_in_words(trim, summary, emergency));
    parts.join(", ")
}

fn hooks(state: &RunState, facts: &Facts) -> String {
    let Some(policy) = state.policy() else { return String::new() };
    let at_stop = policy.agent.hooks.iter().filter(|hook| hook.moment == HookMoment::Stop);
    let names = policy.agent.stop_hooks.iter().map(|hook| &hook.name).chain(at_stop.map(|hook| &hook.name));
    let configured = names.collect::<Vec<_>>();
    if configured.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nstop hooks, as they last answered\n");
    for name in configured {
        let report = facts.stop_hooks.iter().find(|report| report.name == *name);
        let answer = match report.map(|report| (&report.verdict, report.duration_ms)) {
            None => "not asked yet".to_owned(),
            Some((StopHookVerdict::Allow, ms)) => format!("may stop ({})", duration(ms)),
            Some((StopHookVerdict::Block(why), ms)) => {
                format!("no ({}): {}", duration(ms), one_line(why, REASON_WIDTH))
            }
            Some((StopHookVerdict::Halt(why), ms)) => {
                format!("ends the run ({}): {}", duration(ms), one_line(why, REASON_WIDTH))
            }
            Some((StopHookVerdict::Error(why), _)) => format!("no answer: {}", one_line(why, REASON_WIDTH)),
        };
        let _ = writeln!(out, "  {name}: {answer}");
    }
    out
}

fn plan(steps: &[Step]) -> String {
    let mut out = String::from(if steps.is_empty() { "" } else { "\nplan\n" });
    for step in steps {
        let mark = match step.status {
            StepStatus::Pending => ' ',
            StepStatus::InProgress => '>',
            StepStatus::Done => 'x',
        };
        let _ = writeln!(out, "  [{mark}] {}", one_line(&step.text, REASON_WIDTH));
    }
    out
}

/// A run with all that is known of it, for programs.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    outcome_text: Option<String>,
    verdict: Option<provost_event::Verdict>,
    budget: Budget,
    active_ms: u64,
    spent_micro_usd: MicroDollars,
    /// What is asked, in full.
    waits_for: Vec<approvals::Line<'a>>,
    #[serde(flatten)]
    facts: &'a Facts,
}

impl<'a> Whole<'a> {
    fn of((summary, open): (&'a RunSummary, &'a [Question]), state: &RunState, facts: &'a Facts) -> Self {
        Self {
            line: Line::of(summary, open),
            waits_for: open.iter().map(|question| approvals::Line::of(summary, question)).collect(),
            outcome_text: state.outcome().map(Outcome::to_string),
            verdict: match state.outcome() {
                Some(Outcome::Completed { verdict }) => *verdict,
                _ => None,
            },
            budget: state.budget(),
            active_ms: state.active_ms(),
            spent_micro_usd: state.ledger().cost,
            facts,
        }
    }
}
