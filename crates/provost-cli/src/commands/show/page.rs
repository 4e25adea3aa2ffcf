//! A run on a page, for people.

use std::fmt::Write as _;

use provost_engine::{Ledger, RunState};
use provost_event::{
    Channel, Forked, HookPoint, Limits, MicroDollars, Outcome, PlanItem, PlanStatus, RunId, SessionId,
    StopHookVerdict, TerminalState, Timestamp,
};
use provost_harness::{Clock as _, RunStatus, RunSummary, SystemClock};
use provost_view::{
    AgentProgress, ApprovalQuestion, CompactionCounts, ProgramFacts, ProviderWait, RunAgent, RunDetails,
    RunFacts, Segment, ServiceView, is_money_partial,
};

use super::tree::{self, Drawing};
use crate::commands::approvals::left;
use crate::commands::goal::{standing, verdict_lines};
use crate::commands::shown;
use crate::commands::status;
use crate::names::agent_in_words;
use crate::render::change_lines;
use crate::render::{
    Room, amount, call_in_full, compactions_in_words, duration, excerpt, gateway_lines, go_on_with,
    goal_at_end, hanging, one_line, pictures, plural, run_outcome_in_words, safe, terminal_width, visible,
};

const REASON_WIDTH: usize = 100;
/// Verdicts of judges that are shown; `goal show` shows all.
const VERDICTS_MAX: usize = 5;
/// Columns of a call that waits, where there is no terminal to measure.
const WAITING_WIDTH: usize = 100;

/// A run, and what is drawn of it.
pub(super) struct RunPage<'a> {
    pub(super) summary: &'a RunSummary,
    pub(super) state: &'a RunState,
    pub(super) details: &'a RunDetails,
    pub(super) drawing: Drawing,
    /// That its provider keeps it from working.
    pub(super) suspension: Option<&'a ProviderWait>,
}

impl RunPage<'_> {
    fn has_flow(&self) -> bool {
        self.state.flow().is_some()
    }
}

/// Everything but the open questions.
pub(super) fn page(seen: &RunPage<'_>) -> String {
    let facts = seen.details.facts.clone().unwrap_or_default();
    let (tree, drawn) = (seen.details.tree.has_others(), tree_below(seen));
    let above = safe(&rows(seen, &facts));
    let below = safe(&final_text(seen, &facts));
    if tree { format!("{above}{drawn}{below}") } else { format!("{above}{below}") }
}

/// The number of agents by state, and their tree. Styled, and made of safe text.
pub(super) fn tree_below(seen: &RunPage<'_>) -> String {
    let budget = seen.state.policy().map(|policy| policy.spawn).unwrap_or_default();
    let held = (seen.summary.status == RunStatus::Running).then(|| seen.state.slots_held());
    let head = tree::head(&seen.details.tree.agents, held, budget.slots(), seen.drawing);
    let mut out = String::from("\n");
    for (place, line) in head.iter().enumerate() {
        // Writing to a String can't fail, here and below.
        let _ = writeln!(out, "{:<11} {line}", if place == 0 { "agents" } else { "" });
    }
    for line in tree::lines(&seen.details.tree, seen.drawing) {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn rows(seen: &RunPage<'_>, facts: &RunFacts) -> String {
    let RunPage { summary, state, .. } = *seen;
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<11} {value}");
    };
    row("run", &summary.run.to_string());
    row("status", &seen.suspension.map_or_else(|| seen.details.item.status.clone(), status::in_words));
    if let Some(suspension) = seen.suspension {
        row("", &hanging(&status::trouble(suspension), "            "));
    }
    if is_to_resume(seen) {
        row("go on with", &format!("provost resume {}", summary.run));
    }
    if let Some(outcome) = state.outcome() {
        row("outcome", &hanging(&run_outcome_in_words(summary.run, state, outcome), "            "));
        if let Some(words) = seen.details.root_goal().and_then(|goal| goal_at_end(outcome, goal)) {
            row("", &words);
        }
        if let Some(on) = go_on_with(seen.summary.run, state, outcome) {
            row("go on with", &on);
        }
    }
    let all = format!("all of it: provost logs {} --entry 1", summary.run);
    row("goal", &hanging(&excerpt(&summary.goal, &all), "            "));
    if !facts.goal_images.is_empty() {
        row("", &pictures(&facts.goal_images));
    }
    if let Some(goal) = seen.details.root_goal() {
        let all = format!("all of it: provost show {} --json", summary.run);
        let is_goal = goal.condition.trim() == summary.goal.trim();
        let condition = match excerpt(&goal.condition, &all) {
            cut if cut != goal.condition && is_goal => "the goal".to_owned(),
            condition => condition,
        };
        row("condition", &hanging(&condition, "            "));
        let wrong = format!("{} of {} claims found wrong", goal.rounds, goal.rounds_max);
        row("", &format!("{}, {wrong}", standing(goal)));
    }
    match &facts.program {
        Some(program) => program_rows(program).into_iter().for_each(|(name, value)| row(name, &value)),
        None => row("model", &visible(state.model().map_or(&summary.model, |model| &model.name))),
    }
    row("workspace", &visible(&shown(&summary.workspace)));
    place_and_lineage(state, seen.details).iter().for_each(|(name, value)| row(name, value));
    service_rows(&seen.details.kept_services).iter().for_each(|(name, value)| row(name, value));
    row("started", &date_and_time(summary.started_at));
    row("updated", &date_and_time(summary.updated_at));
    for (name, value) in used(seen) {
        row(name, &value);
    }
    segments(&seen.details.segments).iter().for_each(|(name, value)| row(name, value));
    for (place, line) in
        seen.details.segments.iter().flat_map(|segment| &segment.changes).flat_map(change_lines).enumerate()
    {
        row(if place == 0 { "changed" } else { "" }, &line);
    }
    let whose = match (seen.has_flow(), seen.details.tree.has_others()) {
        (true, _) => ", by all agents",
        (false, true) => ", by the root agent",
        (false, false) => "",
    };
    row("calls", &format!("{}{whose}", calls(facts)));
    for (place, line) in seen.details.gateway.iter().flat_map(gateway_lines).enumerate() {
        row(if place == 0 { "gateway" } else { "" }, &line);
    }
    if let Some(progress) = &facts.progress {
        row("progress", &in_words(progress));
        progress.reasons.iter().for_each(|reason| row("", reason));
    }
    out
}

/// What was spent in each segment; nothing where there is but one.
fn segments(segments: &[Segment]) -> Vec<(&'static str, String)> {
    if segments.len() < 2 {
        return Vec::new();
    }
    let line = |segment: &Segment| {
        let outcome = segment.outcome.as_ref().map_or("not over", Outcome::word);
        let calls = plural(segment.calls, "call");
        let tokens = plural(segment.tokens, "token");
        let Segment { segment: number, cost_micro_usd: cost, .. } = segment;
        (if *number == 1 { "segments" } else { "" }, format!("{number} {outcome}: {calls}, {tokens}, {cost}"))
    };
    segments.iter().map(line).collect()
}

/// What the run is a fork of, and its own forks.
fn lineage(state: &RunState, pruned: &[RunId]) -> Vec<(&'static str, String)> {
    let from = state.forked_from().map(|forked| {
        let Forked { from, at, .. } = forked;
        ("forked from", format!("{} at entry {at}", agent_of_run(*from)))
    });
    let forks = state.forks().iter().enumerate().map(|(place, forked)| {
        let whose = if forked.from.agent == 0 { String::new() } else { format!(" of {}", forked.from) };
        let name = if place == 0 { "forks" } else { "" };
        let is_pruned = if pruned.contains(&forked.to) { " (pruned)" } else { "" };
        (name, format!("{} at entry {}{whose}{is_pruned}", forked.to, forked.at))
    });
    from.into_iter().chain(forks).collect()
}

/// The run of its first agent, or else the agent.
fn agent_of_run(session: SessionId) -> String {
    if session.agent == 0 { session.run.to_string() } else { session.to_string() }
}

/// The agent's progress, and how far it is from being suspended for the lack of it.
fn in_words(progress: &AgentProgress) -> String {
    let AgentProgress { state, idle_turns, stuck_turns, .. } = progress;
    match (idle_turns, stuck_turns) {
        (0, _) => state.to_string(),
        (idle, 0) => {
            format!("{state}: {} in a row without measurable progress", plural(u64::from(*idle), "turn"))
        }
        (idle, most) => {
            format!("{state}: {idle} of {most} turns in a row without measurable progress; then suspended")
        }
    }
}

/// The external program, in place of a model.
fn program_rows(program: &ProgramFacts) -> Vec<(&'static str, String)> {
    let channel = match program.channel {
        Channel::Structured => "by its structured stream",
        Channel::Terminal | Channel::Auto => "at a terminal",
        Channel::Streams => "with the streams of its command",
    };
    let command = one_line(&program.command.join(" "), REASON_WIDTH);
    let mut rows = vec![("program", format!("{command}, {channel}, profile {}", program.profile))];
    let exit = program.exit.map(|exit| format!(" ({exit})")).unwrap_or_default();
    let pid = program.pid.filter(|_| program.exit.is_none() && program.state != TerminalState::Exited);
    let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    let state = match program.starts {
        0 => "not started".to_owned(),
        1 => format!("{}{exit}{pid}", program.state),
        starts => format!("{}{exit}{pid}, started {}", program.state, plural(starts.into(), "time")),
    };
    rows.push(("state", state));
    rows.extend(program.recording.as_ref().map(|path| ("recording", shown(path))));
    rows
}

fn final_text(seen: &RunPage<'_>, facts: &RunFacts) -> String {
    // What must be true differs by step; `explain` shows it for each.
    let mut out = if seen.has_flow() { String::new() } else { hooks(seen.state, facts) };
    out.push_str(&verdicts(seen));
    out.push_str(&plan(&facts.plan));
    if !facts.last_text.is_empty() {
        let _ = write!(out, "\nfinal answer\n  {}\n", hanging(facts.last_text.trim(), "  "));
    }
    if let Some(problem) = &facts.no_final_summary {
        let _ = write!(out, "\nno final summary at the limit: {}\n", one_line(problem, REASON_WIDTH));
    }
    out
}

/// The open questions, each call in full.
pub(super) fn waiting(summary: &RunSummary, open: &[ApprovalQuestion], agents: &[RunAgent]) -> String {
    let mut out = String::from(if open.is_empty() { "" } else { "\nwaits for approval\n" });
    let (now, width) = (SystemClock.now(), terminal_width().unwrap_or(WAITING_WIDTH));
    for question in open {
        let name = question.short_id();
        let _ = writeln!(out, "  {}{}", visible(&question.tool), whose(question, agents));
        for line in call_in_full(question, Room::all(width.saturating_sub(4)), "") {
            let _ = writeln!(out, "    {line}");
        }
        let _ = writeln!(out, "    why: {}", visible(&question.why));
        let _ = writeln!(out, "    left: {}", left(summary, question, now));
        let _ = writeln!(out, "    provost approve {name}, or provost deny {name}");
    }
    out
}

/// Behind a call: whose it is, unless it is the root's.
fn whose(question: &ApprovalQuestion, agents: &[RunAgent]) -> String {
    let asks = agents.iter().find(|agent| agent.session == question.session && agent.number() > 0);
    let name = asks.map(|agent| agent_in_words(agent.number(), &visible(&agent.name)));
    name.map(|name| format!(", wanted by {name}")).unwrap_or_default()
}

/// A moment in universal time.
pub(crate) fn date_and_time(at: Timestamp) -> String {
    let moment = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map(|moment| moment.strftime("%F %TZ").to_string()).unwrap_or_default()
}

/// Whether the run waits for `provost resume`: nothing else has a process work on it.
fn is_to_resume(seen: &RunPage<'_>) -> bool {
    let RunPage { summary, details, .. } = seen;
    summary.status == RunStatus::Interrupted && summary.damage.is_none() && details.unheld.is_none()
}

/// Where its files are if they are in a remote repository, who works on the run, or why no worker of the engine does, and
/// what it is a fork of.
fn place_and_lineage(state: &RunState, details: &RunDetails) -> Vec<(&'static str, String)> {
    let remote = state.policy().and_then(|policy| policy.remote.as_ref());
    let files = remote.map(|remote| {
        ("files", format!("branches provost/{}-N of {}", details.item.run, visible(&remote.url)))
    });
    let held_by = details.held_by.as_ref().map(|held_by| ("held by", visible(held_by)));
    let unheld =
        details.unheld.as_ref().map(|unheld| ("not held", hanging(&visible(unheld), "            ")));
    files.into_iter().chain(held_by).chain(unheld).chain(lineage(state, &details.pruned_forks)).collect()
}

/// A row for each service.
fn service_rows(services: &[ServiceView]) -> Vec<(&'static str, String)> {
    let row = |(place, service): (usize, &ServiceView)| {
        let state = match (&service.how, service.pid) {
            (Some(how), _) => how.clone(),
            (None, Some(pid)) => {
                format!("runs (pid {pid}) until {} at the latest", date_and_time(service.expires_at_ms))
            }
            (None, None) => "is being started".to_owned(),
        };
        let command = one_line(&service.command, REASON_WIDTH);
        (if place == 0 { "services" } else { "" }, format!("{}: {state}: {command}", service.name))
    };
    services.iter().enumerate().map(row).collect()
}

/// What the run used, of what it may use.
pub(super) fn used(seen: &RunPage<'_>) -> [(&'static str, String); 4] {
    let state = seen.state;
    let (ledger, budget) = (state.ledger(), state.budget());
    let own = Some(state.turns_max()).filter(|most| *most != Limits::TURNS_UNLIMITED);
    let turns = match (budget.turns, own, seen.details.tree.has_others()) {
        (Some(most), _, true) => format!("{} of {most}, by all agents", ledger.turns()),
        (Some(most), _, false) => format!("{} of {}", ledger.turns(), own.map_or(most, |own| own.min(most))),
        (None, _, true) => format!("{} by all agents", ledger.turns()),
        (None, Some(most), false) => format!("{} of {most}", ledger.turns()),
        (None, None, false) => ledger.turns().to_string(),
    };
    let of = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let worked_ms = state.worked_ms(seen.summary.elapsed);
    let priced = state.policy().is_some_and(|policy| policy.agent.model.price.is_some());
    let cost = if priced { ledger.cost.to_string() } else { "unknown price".to_owned() };
    let partly = if is_money_partial(state) { " (money: partial)" } else { "" };
    [
        ("turns", turns),
        ("tokens", format!("{}{}", amount(ledger.tokens), of(budget.tokens.map(amount)))),
        (
            "cost",
            format!("{cost}{}{}{partly}", of(budget.money.map(|money| money.to_string())), uncertain(ledger)),
        ),
        ("time", format!("{}{}", duration(worked_ms), of(budget.wall_time_ms.map(duration)))),
    ]
}

/// What of the cost no provider has reported.
fn uncertain(ledger: &Ledger) -> String {
    let parts = [(ledger.estimated, "estimated"), (ledger.unconfirmed, "unconfirmed")];
    let parts = parts.into_iter().filter(|(part, _)| !part.is_none());
    let parts = parts.map(|(part, what)| match part.cost {
        MicroDollars(0) => format!("{} {what}", plural(part.tokens, "token")),
        cost => format!("{cost} {what}"),
    });
    let parts = parts.collect::<Vec<_>>();
    let known = if parts.is_empty() { String::new() } else { format!(" (of it {})", parts.join(", ")) };
    match ledger.run().tokens_set_aside {
        0 => known,
        tokens => {
            let most = plural(tokens, "token");
            format!(
                "{known}; at most {most}, {} more for calls without a report",
                ledger.run().cost_set_aside
            )
        }
    }
}

fn calls(facts: &RunFacts) -> String {
    let mut parts = vec![plural(facts.tool_calls.into(), "tool call")];
    let counted = [(facts.failed_tool_calls, "failed"), (facts.unknown_tool_calls, "with unknown effect")];
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    parts.extend(counted.map(|(count, what)| format!("{} {what}", amount(u64::from(*count)))));
    let retries = Some(facts.retries).filter(|retries| *retries > 0);
    parts.extend(retries.map(|retries| format!("{} made again", plural(retries.into(), "model call"))));
    let CompactionCounts { trim, summary, emergency } = facts.compactions_by_kind;
    parts.extend(compactions_in_words(trim, summary, emergency));
    parts.join(", ")
}

fn hooks(state: &RunState, facts: &RunFacts) -> String {
    let Some(policy) = state.policy() else { return String::new() };
    let at_stop = policy.agent.hooks.iter().filter(|hook| hook.point == HookPoint::Stop);
    let names = policy.agent.stop_hooks.iter().map(|hook| &hook.name).chain(at_stop.map(|hook| &hook.name));
    let configured = names.collect::<Vec<_>>();
    if configured.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nstop hooks, as they last answered\n");
    for name in configured {
        let report = facts.stop_hooks.iter().find(|report| report.hook == *name);
        let answer = match report.map(|report| (report.stop_verdict(), report.duration_us / 1_000)) {
            None => "not asked yet".to_owned(),
            Some((StopHookVerdict::Allow, ms)) => format!("may stop ({})", duration(ms)),
            Some((StopHookVerdict::Block(why), ms)) => {
                format!("no ({}): {}", duration(ms), one_line(&why, REASON_WIDTH))
            }
            Some((StopHookVerdict::Halt(why), ms)) => {
                format!("ends the run ({}): {}", duration(ms), one_line(&why, REASON_WIDTH))
            }
            Some((verdict @ StopHookVerdict::Broken(_), _)) => {
                format!(
                    "broken, can't be run: {}",
                    one_line(&verdict.error().unwrap_or_default(), REASON_WIDTH)
                )
            }
            Some((verdict @ (StopHookVerdict::Error(_) | StopHookVerdict::TimedOut(_)), _)) => {
                format!("no answer: {}", one_line(&verdict.error().unwrap_or_default(), REASON_WIDTH))
            }
        };
        let _ = writeln!(out, "  {name}: {answer}");
    }
    out
}

fn verdicts(seen: &RunPage<'_>) -> String {
    let Some(goal) = seen.details.root_goal() else { return String::new() };
    let lines = verdict_lines(goal, VERDICTS_MAX, seen.drawing.width);
    let lines = lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
    if lines.is_empty() { lines } else { format!("\nverdicts of the judges\n{lines}") }
}

fn plan(steps: &[PlanItem]) -> String {
    let mut out = String::from(if steps.is_empty() { "" } else { "\nplan\n" });
    for step in steps {
        let mark = match step.status {
            PlanStatus::Pending => ' ',
            PlanStatus::InProgress => '>',
            PlanStatus::Done => 'x',
        };
        let _ = writeln!(out, "  [{mark}] {}", one_line(&step.text, REASON_WIDTH));
    }
    out
}
