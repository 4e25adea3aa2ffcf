//! Each kind of entry in words: one function each.

use std::collections::{HashMap, HashSet};

use provost_engine::Actor;
use provost_event::{
    ActorKey, AgentSpawned, ApprovalRequested, AssistantMessage, Block, BudgetCharged, BudgetExhausted,
    BudgetReserved, CallId, Certainty, Dimension, Ended, Entry, Forked, ItemKind, ModelCalled, ModelChange,
    ModelChanged, Origin, OutageWaitChanged, Outcome, Paused, ProviderAwaited, Purpose, Record, ResumeCause,
    Resumed, Retry, RetryCause, RunStarted, SessionStarted, SlotAssignment, StopCheckCutShort,
    StopHookVerdict, StopReason, StopReport, StopRequested, StopVerdicts, SystemItem, ToolFinished,
    ToolStarted, ToolStatus, TurnEnded, UserMessage,
};

use super::context::{compacted, exhausted_in_words, final_summary_finished, outcome_in_words, snapshot};
use super::gate::{approval_requested, approval_resolved, hooks_asked, hooks_decided, permission_decided};
use super::saying::{Saying, Tag};
use super::words::{amount, duration, one_line, pictures, plural};
use super::{Earlier, agents, arguments, flow, goal, policy, terminal, worktree};
use crate::names::Names;
use provost_process::MAYBE_LEFT;

/// Columns of a short text in a line.
const WIDTH_MAX: usize = 100;
/// Lines shown of a hook's reason.
const REASON_LINES_MAX: usize = 12;
/// Columns of each.
const REASON_WIDTH_MAX: usize = 400;

/// Renders entries as text; remembers the calls that are running, so that their ends can name them, and the
/// agents.
#[derive(Default)]
pub(crate) struct Sayer {
    calls: HashMap<(ActorKey, CallId), String>,
    names: Names,
    /// Agents that were requested or suspended, and have no slot yet.
    waiting: HashSet<u32>,
}

/// Failures of a model that are over sooner than this aren't shown in passing.
const OUTAGE_UNTOLD_MS: u64 = 10_000;

impl Sayer {
    /// A renderer that knows these agents already.
    pub(crate) fn knowing(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// A renderer that has seen what was before.
    pub(crate) fn after(earlier: &Earlier<'_>) -> Self {
        let mut calls = HashMap::new();
        for (key, actor) in &earlier.sessions {
            if let Actor::Session(session) = actor {
                let open = session.unanswered_calls();
                calls
                    .extend(open.map(|(id, tool, input)| ((*key, id.clone()), arguments::call(tool, input))));
            }
        }
        Self { calls, names: Names::of(earlier.state), ..Self::default() }
    }

    /// What the run's agents are called.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    /// The entry in words.
    pub(crate) fn say(&mut self, record: &Record) -> Saying {
        self.names.learn(record);
        let who = self.names.prefix(record.actor);
        self.in_words(record).of(who)
    }

    fn in_words(&mut self, record: &Record) -> Saying {
        let actor = record.actor;
        match &record.entry {
            Entry::RunStarted(entry) => run_started(actor, entry),
            Entry::SessionStarted(entry) => session_started(entry),
            Entry::UserMessage(entry) => user_message(entry),
            Entry::SystemItem(entry) => system_item(entry),
            Entry::ModelCalled(entry) => model_called(entry),
            Entry::AssistantMessage(entry) => self.assistant_message(actor, entry),
            Entry::Retry(entry) => retry(entry),
            Entry::ModelChanged(entry) => model_changed(actor, entry),
            Entry::OutageWaitChanged(entry) => outage_wait_changed(entry),
            Entry::RunPolicyChanged(entry) => policy::run_changed(entry),
            Entry::AgentPolicyChanged(entry) => policy::agent_changed(entry),
            Entry::Forked(entry) => forked(actor, entry),
            Entry::ProviderAwaited(entry) => provider_awaited(entry),
            Entry::HooksAsked(entry) => hooks_asked(entry),
            Entry::HooksDecided(entry) => hooks_decided(entry),
            Entry::PermissionDecided(entry) => permission_decided(entry),
            Entry::ApprovalRequested(entry) => self.approval_requested(actor, entry),
            Entry::ApprovalResolved(entry) => approval_resolved(entry),
            Entry::ToolStarted(entry) => self.tool_started(actor, entry),
            Entry::ToolFinished(entry) => self.tool_finished(actor, entry),
            Entry::TurnEnded(entry) => turn_ended(entry),
            Entry::Compacted(entry) => compacted(entry),
            Entry::FinalSummaryFinished(entry) => final_summary_finished(entry),
            Entry::Snapshot(entry) => snapshot(entry),
            Entry::StopVerdicts(entry) => stop_verdicts(entry),
            Entry::StopCheckCutShort(entry) => stop_check_cut_short(entry),
            Entry::ProcessesLeft(_) => Saying::kept(Tag::Failed, MAYBE_LEFT),
            Entry::GoalCheckStarted(entry) => goal::check_started(entry),
            Entry::GoalJudged(entry) => goal::judged(entry),
            Entry::GoalVerdict(entry) => goal::verdict(entry),
            Entry::GoalCleared(entry) => goal::cleared(entry),
            Entry::BudgetReserved(entry) => budget_reserved(entry),
            Entry::BudgetCharged(entry) => budget_charged(entry),
            Entry::BudgetExhausted(entry) => self.budget_exhausted(entry),
            Entry::AgentSpawned(entry) => self.agent_spawned(entry),
            Entry::AgentAskedAgain(entry) => {
                if entry.slot != SlotAssignment::Free {
                    self.waiting.insert(entry.child.agent);
                }
                agents::asked_again(entry, &self.names)
            }
            Entry::AgentStarted(entry) => {
                let has_waited = self.waiting.remove(&entry.child.agent);
                agents::started(entry, &self.names, has_waited)
            }
            Entry::AgentYieldRequested(entry) => agents::yields(entry, &self.names),
            Entry::AgentSuspended(entry) => {
                self.waiting.insert(entry.child.agent);
                agents::paused(entry, &self.names)
            }
            Entry::AgentResumeRequested(entry) => agents::resumed(entry, &self.names),
            Entry::AgentRetryScheduled(entry) => agents::retry_scheduled(entry, &self.names),
            Entry::AgentFinished(entry) => agents::finished(entry, &self.names),
            Entry::Reprioritized(entry) => agents::reprioritized(entry, &self.names),
            Entry::StepEnded(entry) => flow::step_ended(entry),
            Entry::YieldRequested(entry) => agents::yield_requested(entry, &self.names),
            Entry::SubAgentResumed(_) => agents::goes_on(),
            Entry::SubAgentSuspended(entry) => agents::suspended(entry),
            Entry::WorktreeMade(entry) => worktree::made(entry),
            Entry::WorktreeAsked(_) => worktree::asked(),
            Entry::WorktreeFound(entry) => worktree::found(entry),
            Entry::TerminalNoted(entry) => terminal::noted(entry),
            Entry::TerminalEnding(_) => terminal::ending(),
            Entry::StopRequested(entry) => self.stop_requested(actor, entry),
            Entry::Paused(entry) => paused(entry),
            Entry::Resumed(entry) => resumed(actor, entry),
            Entry::Ended(entry) => ended(entry),
        }
    }

    fn agent_spawned(&mut self, entry: &AgentSpawned) -> Saying {
        if entry.slot != SlotAssignment::Free {
            self.waiting.insert(entry.child.agent);
        }
        agents::spawned(entry, &self.names)
    }

    /// The root agent reports the run's own limit too, when it stops.
    fn budget_exhausted(&self, entry: &BudgetExhausted) -> Saying {
        let exhausted = exhausted_in_words(&entry.exhausted);
        match entry.of {
            Some(of) => Saying::kept(Tag::Budget, format!("{}: {exhausted}", self.names.in_words(of))),
            None => Saying::detail(format!("budget: {exhausted}")),
        }
    }

    fn stop_requested(&self, actor: ActorKey, entry: &StopRequested) -> Saying {
        // An agent that is done stops by itself, once its hooks know.
        if let Outcome::Completed { .. } = entry.outcome {
            return Saying::detail(entry.outcome.to_string());
        }
        let outcome = outcome_in_words(&entry.outcome);
        match entry.agent {
            // The run's own log reports a sub-agent's stop.
            None if self.names.prefix(actor).is_some() => Saying::detail(format!("stopping: {outcome}")),
            None => Saying::passing(Tag::Provost, format!("stopping: {outcome}")),
            Some(agent) => {
                Saying::kept(Tag::Run, format!("stopping {}: {outcome}", self.names.in_words(agent)))
            }
        }
    }

    /// Calls that are refused are never started, and their ends name them all the same.
    fn assistant_message(&mut self, actor: ActorKey, entry: &AssistantMessage) -> Saying {
        for block in &entry.content {
            if let Block::ToolCall(call) = block {
                self.calls.insert((actor, call.id.clone()), arguments::call(&call.name, &call.input));
            }
        }
        assistant_message(entry)
    }

    /// A view that starts after the question was asked has not seen the call's request.
    fn approval_requested(&mut self, actor: ActorKey, entry: &ApprovalRequested) -> Saying {
        self.calls.insert((actor, entry.call.clone()), arguments::call(&entry.tool, &entry.input));
        approval_requested(entry)
    }

    fn tool_started(&mut self, actor: ActorKey, entry: &ToolStarted) -> Saying {
        let call = arguments::call(&entry.tool, &entry.input);
        self.calls.insert((actor, entry.call.clone()), call.clone());
        let again = if entry.again { " (again, after an interruption)" } else { "" };
        Saying::passing(Tag::Tool, format!("{call}{again}"))
    }

    fn tool_finished(&mut self, actor: ActorKey, entry: &ToolFinished) -> Saying {
        let call = self.calls.remove(&(actor, entry.call.clone())).unwrap_or_else(|| entry.tool.clone());
        let (took, images) = (duration(entry.duration_ms), behind(&pictures(&entry.images)));
        let ended = match entry.status {
            ToolStatus::Ok => return Saying::kept(Tag::Ok, format!("{call} ({took}){images}")),
            ToolStatus::Error => took,
            ToolStatus::Denied => "denied".to_owned(),
            ToolStatus::Rejected => "not run".to_owned(),
            ToolStatus::TimedOut => format!("timed out after {took}"),
            ToolStatus::Cancelled => format!("cancelled after {took}"),
            ToolStatus::Unknown => "interrupted, what it did isn't known".to_owned(),
        };
        Saying::kept(Tag::Failed, format!("{call} ({ended}){images}")).with(complaint(entry))
    }
}

/// `words` behind others, if there are any.
fn behind(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" {words}") }
}

/// The most informative line of a failed call's output: a command ends with its exit status.
fn complaint(entry: &ToolFinished) -> Option<String> {
    let mut lines = entry.output.lines().filter(|line| !line.trim().is_empty());
    let line = if entry.tool == "shell" { lines.next_back() } else { lines.next() };
    line.map(|line| one_line(line, WIDTH_MAX))
}

fn run_started(actor: ActorKey, entry: &RunStarted) -> Saying {
    let agent = &entry.policy.agent;
    let text = format!("{} · {} · {}", actor.run(), agent.model.name, agent.workspace.display());
    Saying::kept(Tag::Run, text).with([one_line(&entry.goal, WIDTH_MAX)])
}

fn session_started(entry: &SessionStarted) -> Saying {
    let tools = plural(entry.policy.tools.len() as u64, "tool");
    let text = format!("{} with {tools}", entry.policy.model.name);
    if entry.images.is_empty() {
        return Saying::detail(text);
    }
    // The run's own first entry, which shows the goal, doesn't have its pictures.
    Saying::kept(Tag::User, format!("{} for {text}", pictures(&entry.images)))
}

fn user_message(entry: &UserMessage) -> Saying {
    Saying::kept(Tag::User, format!("{}: {}", entry.by, text_of(&entry.content)))
}

fn system_item(entry: &SystemItem) -> Saying {
    match entry.item {
        ItemKind::Continue => Saying::passing(Tag::Provost, "the answer was cut off; asked to go on"),
        ItemKind::Resumed => Saying::passing(Tag::Provost, one_line(&entry.body, WIDTH_MAX)),
        ItemKind::GoalGiven => Saying::passing(Tag::Provost, "told of the goal"),
        ItemKind::AnswerAgain => Saying::passing(Tag::Provost, "the answer was empty; asked again"),
        ItemKind::RepeatedCallNotice => {
            Saying::kept(Tag::Provost, "told that the same call gives the same result")
        }
        ItemKind::FailedCallsNotice => Saying::kept(Tag::Provost, "told that no tool call succeeds"),
        ItemKind::NoProgressNotice => Saying::kept(Tag::Provost, "told that nothing moves the work on"),
        ItemKind::Reminder => Saying::passing(
            Tag::Provost,
            match &entry.origin {
                Origin::Hook(hook) => {
                    format!("reminded by hook {hook}: {}", one_line(&entry.body, WIDTH_MAX))
                }
                Origin::Engine | Origin::StopHooks(_) | Origin::Judges => one_line(&entry.body, WIDTH_MAX),
            },
        ),
        ItemKind::LimitNotice { dimension, percent } => {
            let of = match dimension {
                Dimension::Tokens => "tokens",
                Dimension::Money => "money",
                Dimension::Turns => "turns",
                Dimension::WallTime => "time",
            };
            Saying::passing(Tag::Provost, format!("told that {percent}% of its limit of {of} is used"))
        }
        ItemKind::LastTurn => Saying::passing(Tag::Provost, "told that this is its last turn"),
        ItemKind::GoalNotReached => Saying::passing(Tag::Provost, "told what the judges miss"),
        // The suspension that follows says the same.
        ItemKind::StopSuspended => {
            Saying::detail("told what the stop hooks have against it, for when it goes on")
        }
        ItemKind::StopBlocked => {
            Saying::passing(Tag::Provost, "sent back to work with the stop hooks' reasons")
        }
    }
}

fn model_called(entry: &ModelCalled) -> Saying {
    let attempt = if entry.attempt > 1 { format!(", attempt {}", entry.attempt) } else { String::new() };
    let purpose = purpose_in_words(entry.purpose);
    Saying::detail(format!("turn {}, call {}{attempt}{purpose}", entry.turn, entry.call))
}

/// Behind a model call: what it is for, unless that is a turn.
const fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "",
        Purpose::Summary => ", for a summary",
        Purpose::FinalSummary => ", for a final summary",
        Purpose::Judge => ", to a judge",
    }
}

fn assistant_message(entry: &AssistantMessage) -> Saying {
    let text = text_of(&entry.content);
    let calls = entry.content.iter().filter(|block| matches!(block, Block::ToolCall(_))).count();
    let ended = match entry.stop {
        StopReason::EndTurn | StopReason::ToolUse => "",
        StopReason::OutputCap => " [cut off by the output cap]",
        StopReason::Refusal => " [declined]",
    };
    if text.is_empty() {
        return Saying::detail(format!("asks for {}{ended}", plural(calls as u64, "tool")));
    }
    Saying::kept(Tag::Agent, format!("{text}{ended}"))
}

fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.trim().to_owned()),
        Block::Image(image) => Some(pictures([image])),
        Block::Thinking { .. } | Block::Opaque { .. } | Block::ToolCall(_) => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn retry(entry: &Retry) -> Saying {
    let cause = match &entry.cause {
        RetryCause::Failed { class, message, status, request_id } => {
            let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
            let request = request_id.as_ref().map(|id| format!(" [request {id}]")).unwrap_or_default();
            format!("{}{status}: {}{request}", class.words(), one_line(message, WIDTH_MAX))
        }
        RetryCause::EmptyAnswer => "the answer was empty".to_owned(),
        RetryCause::Interrupted => "interrupted before the answer was kept".to_owned(),
        RetryCause::Compacted => "the request was too long".to_owned(),
        RetryCause::UselessSummary { why } => format!("no summary to be had: {}", one_line(why, WIDTH_MAX)),
    };
    let then = match (&entry.cause, entry.delay_ms) {
        // How it is shortened follows in the next entry.
        (RetryCause::UselessSummary { .. }, _) => String::new(),
        (RetryCause::Compacted, _) => "; again when it is shorter".to_owned(),
        (RetryCause::Failed { .. }, 0) => String::new(),
        (_, 0) => "; again at once".to_owned(),
        (_, ms) if entry.suspended => format!("; suspended, next try in {}", duration(ms)),
        (_, ms) => format!("; again in {}", duration(ms)),
    };
    let text = format!("{cause}{then}");
    let is_brief = entry.outage_ms.saturating_add(entry.delay_ms) < OUTAGE_UNTOLD_MS;
    match entry.cause {
        // A failure too brief for a user to notice isn't worth a line.
        RetryCause::Failed { .. } if is_brief => Saying::detail(text),
        _ => Saying::kept(Tag::Retry, text),
    }
}

fn model_changed(actor: ActorKey, entry: &ModelChanged) -> Saying {
    let (from, to) = (&entry.from, &entry.to.name);
    let effort =
        entry.to.effort.map(|effort| format!(", effort {effort:?}").to_lowercase()).unwrap_or_default();
    let text = match &entry.why {
        ModelChange::Asked { by } => format!("{to} from here on{effort}, asked by {by}; before: {from}"),
        ModelChange::Fallback { trouble, .. } => {
            format!("{to} stands in for {from}: {}", one_line(&trouble.message, WIDTH_MAX))
        }
        ModelChange::Returned => format!("{to} is tried again, before {from}"),
    };
    match (actor, &entry.why) {
        (ActorKey::Session(_), ModelChange::Fallback { .. }) | (ActorKey::Run(_), _) => {
            Saying::kept(Tag::Retry, text)
        }
        (ActorKey::Session(_), _) => Saying::detail(text),
    }
}

fn outage_wait_changed(entry: &OutageWaitChanged) -> Saying {
    Saying::detail(match entry.outage_max_ms {
        0 => "outages aren't waited out from here on".to_owned(),
        ms => format!("outages are waited out for {}", duration(ms)),
    })
}

fn forked(actor: ActorKey, entry: &Forked) -> Saying {
    let Forked { from, at, to, .. } = entry;
    if actor.run() == *to {
        return Saying::detail(format!("goes on with the conversation of agent {from} up to entry {at}"));
    }
    Saying::detail(format!("run {to} goes on with the conversation of agent {from} up to entry {at}"))
}

fn provider_awaited(entry: &ProviderAwaited) -> Saying {
    let state = if entry.suspended { "suspended: " } else { "waits: " };
    let text = format!("{state}{}", one_line(&entry.trouble.to_string(), WIDTH_MAX));
    Saying::detail(text)
}

fn turn_ended(entry: &TurnEnded) -> Saying {
    Saying::detail(format!("turn {}, {}", entry.turn, plural(entry.tool_calls.into(), "tool call")))
}

fn stop_verdicts(entry: &StopVerdicts) -> Saying {
    let longest = entry.reports.iter().map(|report| report.duration_ms).max().unwrap_or_default();
    let names = |fits: fn(&StopHookVerdict) -> bool| {
        let found = entry.reports.iter().filter(|report| fits(&report.verdict));
        found.map(|report| report.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let halting = names(|verdict| matches!(verdict, StopHookVerdict::Halt(_)));
    let blocking = names(|verdict| matches!(verdict, StopHookVerdict::Block(_)));
    let broken = names(|verdict| matches!(verdict, StopHookVerdict::Broken(_)));
    let late = names(|verdict| matches!(verdict, StopHookVerdict::TimedOut(_)));
    let agreeing = names(|verdict| matches!(verdict, StopHookVerdict::Allow));
    let took = duration(longest);
    let saying = if !halting.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hook ends the run: {halting} ({took})"))
    } else if !blocking.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks say no: {blocking} ({took})"))
    } else if !broken.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks are broken: {broken} ({took})"))
    } else if !late.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks took too long: {late} ({took})"))
    } else if agreeing.is_empty() {
        Saying::kept(Tag::HooksAgree, format!("no stop hook gave an answer ({took})"))
    } else {
        Saying::kept(Tag::HooksAgree, format!("stop hooks agree: {agreeing} ({took})"))
    };
    saying.with(entry.reports.iter().flat_map(reason))
}

/// For hooks that were cut short only processes that they left running are worth a line at once.
fn stop_check_cut_short(entry: &StopCheckCutShort) -> Saying {
    let names = entry.reports.iter().map(|report| report.name.as_str()).collect::<Vec<_>>().join(", ");
    let said = entry.reports.iter().flat_map(reason).collect::<Vec<_>>();
    let text = format!("stop hooks were cut short: {names}");
    let saying = match said.iter().any(|line| line.contains(MAYBE_LEFT)) {
        true => Saying::kept(Tag::HooksObject, text),
        false => Saying::detail(text),
    };
    saying.with(said)
}

fn reason(report: &StopReport) -> Vec<String> {
    let name = &report.name;
    let error = report.verdict.error().unwrap_or_default();
    let (why, text) = match &report.verdict {
        StopHookVerdict::Allow => {
            return report.note.iter().map(|note| format!("{name}: {}", one_line(note, WIDTH_MAX))).collect();
        }
        StopHookVerdict::Block(text) => (format!("{name}: "), text),
        StopHookVerdict::Halt(text) => (format!("{name} (halt): "), text),
        StopHookVerdict::Error(_) | StopHookVerdict::TimedOut(_) => {
            (format!("{name} gave no answer: "), &error)
        }
        StopHookVerdict::Broken(_) => (format!("{name} couldn't be run: "), &error),
    };
    let cut = |line: &str| console::truncate_str(line, REASON_WIDTH_MAX, "…").into_owned();
    let all = text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
    let count = all.len();
    let mut lines = all.into_iter().take(REASON_LINES_MAX).map(cut).collect::<Vec<_>>();
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, &why);
    }
    if count > REASON_LINES_MAX {
        lines.push(format!("… {} more", plural((count - REASON_LINES_MAX) as u64, "line")));
    }
    lines
}

fn budget_reserved(entry: &BudgetReserved) -> Saying {
    let tokens = plural(entry.tokens, "token");
    let (cost, purpose) = (entry.cost, purpose_in_words(entry.purpose));
    Saying::detail(format!("{tokens}, at most {cost}, for call {}{purpose}", entry.call))
}

fn budget_charged(entry: &BudgetCharged) -> Saying {
    let usage = entry.usage;
    let cost = entry.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    let sent = plural(usage.prompt_tokens(), "token");
    let written = amount(usage.output_tokens);
    let cached = if usage.cache_read_tokens > 0 {
        format!(" ({} from the cache)", amount(usage.cache_read_tokens))
    } else {
        String::new()
    };
    let certainty = match usage.certainty {
        Certainty::Reported => "",
        Certainty::Estimated => ", estimated: the call ended without a report",
        Certainty::Unconfirmed => ", unconfirmed: the call was lost to a crash",
    };
    Saying::detail(format!("call {}: {sent} in{cached}, {written} out{cost}{certainty}", entry.call))
}

fn paused(entry: &Paused) -> Saying {
    Saying::detail(outcome_in_words(&entry.outcome))
}

fn resumed(actor: ActorKey, entry: &Resumed) -> Saying {
    let cause = match &entry.cause {
        ResumeCause::Asked { by } => format!("goes on, asked by {by}"),
        ResumeCause::Interrupted => "goes on after an interruption".to_owned(),
        ResumeCause::SlotFree => "goes on: it has a slot again".to_owned(),
        ResumeCause::Retry { attempt } => format!("is restarted, retry {attempt}"),
        ResumeCause::ToEnd => "was suspended, and ends".to_owned(),
    };
    match actor {
        ActorKey::Run(run) => Saying::kept(Tag::Run, format!("{run} {cause}")),
        ActorKey::Session(_) => Saying::detail(cause),
    }
}

fn ended(entry: &Ended) -> Saying {
    Saying::detail(entry.outcome.to_string())
}
