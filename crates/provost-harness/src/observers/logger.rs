//! `RunLogger`: the newest events of each run as printable lines.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use provost_event::{
    AgentAskedAgain, AgentEntry, AgentRetryScheduled, AgentSpawned, AgentYieldRequested, ApprovalAnswer,
    ApprovalResolved, AsideCall, BudgetEntry, Compacted, CompactionKind, ConversationEntry, Entry,
    FinalSummaryFinished, GateEntry, GoalEntry, GoalFinding, HookDecision, HooksDecided, LifecycleEntry,
    MicroDollars, ModelCalled, ModelEntry, Purpose, RetryCause, RunId, StopHookVerdict, StopVerdicts,
    TerminalEntry, ToolEntry, ToolFinished, Usage,
};

use super::per_run::PerRun;
use crate::{ObservedBody, Observer, ObserverError, ObserverEvent, ObserverEventKind, Redactor};

/// Default maximum of lines kept of a run.
const LINES_MAX: usize = 500;
/// Maximum runs with kept lines.
const RUNS_MAX: usize = 100;
/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 240;

/// Keeps the newest events of each run as lines: time of day (UTC), actor, event, and a short description. Pieces
/// of answers are left out.
///
/// 500 lines of each of the newest 100 runs; clones share them. The lines have no control characters, no secrets,
/// and at most 240 characters.
#[derive(Debug, Clone)]
pub struct RunLogger {
    kept: Arc<Mutex<PerRun<VecDeque<String>>>>,
    lines_max: usize,
    redactor: Arc<Redactor>,
}

impl RunLogger {
    /// Keeps 500 lines of each run, without secrets found by `redactor`.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { kept: Arc::new(Mutex::new(PerRun::new(RUNS_MAX))), lines_max: LINES_MAX, redactor }
    }

    /// Sets the maximum of lines kept of each run; 0 counts as 1.
    #[must_use]
    pub fn lines_max(mut self, lines_max: usize) -> Self {
        self.lines_max = lines_max.max(1);
        self
    }

    /// Creates the observer of a run, for [`Observers::with`](crate::Observers::with).
    pub fn observer(&self) -> impl Fn(RunId) -> Box<dyn Observer> + Send + Sync + use<> {
        let logger = self.clone();
        move |run| Box::new(Writer { logger: logger.clone(), run })
    }

    /// The lines of `run`, the oldest first; empty for an unknown run.
    #[must_use]
    pub fn lines(&self, run: RunId) -> Vec<String> {
        self.kept().get(run).map(|lines| lines.iter().cloned().collect()).unwrap_or_default()
    }

    fn kept(&self) -> MutexGuard<'_, PerRun<VecDeque<String>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, run: RunId, line: &str) {
        let line = printable(&self.redactor.redact(line));
        let mut kept = self.kept();
        let lines = kept.entry(run);
        while lines.len() >= self.lines_max {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

struct Writer {
    logger: RunLogger,
    run: RunId,
}

#[async_trait]
impl Observer for Writer {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        if let ObservedBody::Entry(record) = &event.body {
            let (time, actor, kind) = (time_of_day(event.at.0), event.actor, event.kind.name());
            let mut line = format!("{time} {actor} {kind}");
            let words = words(event.kind, &record.entry);
            if !words.is_empty() {
                line.push(' ');
                line.push_str(&words);
            }
            self.logger.keep(self.run, &line);
        }
        Ok(())
    }

    async fn lost(&mut self, count: u64) {
        self.logger.keep(self.run, &format!("({count} events were lost)"));
    }
}

/// The time of day in UTC.
fn time_of_day(at_ms: u64) -> String {
    let seconds = at_ms / 1_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{:03}", at_ms % 1_000)
}

/// `line` without terminal control characters, cut to its maximum length.
fn printable(line: &str) -> String {
    let mut chars = line.chars().map(|one| if one.is_control() { ' ' } else { one });
    let mut out = chars.by_ref().take(LINE_CHARS_MAX).collect::<String>();
    if chars.next().is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// A short description of an entry as an event of `kind`.
fn words(kind: ObserverEventKind, entry: &Entry) -> String {
    match entry {
        Entry::Conversation(entry) => conversation_words(kind, entry),
        Entry::Model(entry) => model_words(kind, entry),
        Entry::Tool(entry) => tool_words(kind, entry),
        Entry::Gate(entry) => gate_words(entry),
        Entry::Goal(entry) => goal_words(entry),
        Entry::Budget(entry) => budget_words(entry),
        Entry::Agent(entry) => agent_words(kind, entry),
        Entry::Terminal(entry) => terminal_words(entry),
        Entry::Lifecycle(entry) => lifecycle_words(entry),
        // Its session's start and end are reported.
        Entry::Worktree(_) => String::new(),
    }
}

fn conversation_words(kind: ObserverEventKind, entry: &ConversationEntry) -> String {
    match entry {
        ConversationEntry::AssistantMessage(message) => {
            format!("{} {}", message.model, spent(message.usage, message.cost))
        }
        ConversationEntry::TurnEnded(ended) => {
            format!("turn {}, {} tool calls", ended.turn, ended.tool_calls)
        }
        ConversationEntry::Compacted(compacted) => match (kind, &compacted.call) {
            (ObserverEventKind::LlmEnd, Some(call)) => aside(call),
            _ => shortened(compacted),
        },
        ConversationEntry::FinalSummary(wrapped) => final_summary(wrapped),
        // Not reported.
        _ => String::new(),
    }
}

fn model_words(kind: ObserverEventKind, entry: &ModelEntry) -> String {
    match entry {
        ModelEntry::Called(called) if kind == ObserverEventKind::TurnStart => {
            format!("turn {}", called.turn)
        }
        ModelEntry::Called(called) => asked(called),
        ModelEntry::Retried(retry) => {
            format!("call {} is made again in {} ms: {}", retry.call, retry.delay_ms, cause(&retry.cause))
        }
        // Not reported.
        _ => String::new(),
    }
}

fn tool_words(kind: ObserverEventKind, entry: &ToolEntry) -> String {
    match entry {
        ToolEntry::Started(started) => format!("{} {}", started.tool, started.input.text()),
        ToolEntry::Finished(finished) => result(kind, finished),
        // Not reported.
        ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_) => String::new(),
    }
}

fn gate_words(entry: &GateEntry) -> String {
    match entry {
        GateEntry::HooksDecided(decided) => objections_of_hooks(decided),
        GateEntry::StopChecked(verdicts) => objections_of_stop_hooks(verdicts),
        GateEntry::PermissionDecided(decided) => {
            format!("{:?} {}: {}", decided.permission, decided.call, decided.why)
        }
        GateEntry::ApprovalRequested(asked) => {
            format!("{} {}: {}", asked.tool, asked.input.text(), asked.why)
        }
        GateEntry::ApprovalResolved(resolved) => consent(resolved),
        // Not reported.
        _ => String::new(),
    }
}

fn goal_words(entry: &GoalEntry) -> String {
    match entry {
        GoalEntry::Judged(judged) => aside(&judged.call),
        GoalEntry::Verdict(verdict) => missing(&verdict.finding),
        // Not reported.
        _ => String::new(),
    }
}

fn budget_words(entry: &BudgetEntry) -> String {
    match entry {
        BudgetEntry::Reserved(reserved) => format!("{} tokens set aside", reserved.tokens),
        BudgetEntry::Charged(charged) => {
            format!("{} {}", charged.model, spent(charged.usage, charged.cost))
        }
        BudgetEntry::Exhausted(exhausted) => exhausted.exhausted.to_string(),
    }
}

fn agent_words(kind: ObserverEventKind, entry: &AgentEntry) -> String {
    match entry {
        AgentEntry::Spawned(spawned) => handed_over(kind, spawned),
        AgentEntry::StepEnded(ended) => format!("{}, attempt {}", ended.step, ended.attempt),
        AgentEntry::AskedAgain(asked) => asked_again(asked),
        AgentEntry::Finished(finished) => {
            format!("back from {}: {}", finished.child, finished.outcome)
        }
        AgentEntry::Started(started) => format!("{} has a slot", started.child),
        AgentEntry::YieldRequested(yields) => yielded(yields),
        AgentEntry::Suspended(paused) => {
            format!("{} is suspended: {}", paused.child, paused.outcome)
        }
        AgentEntry::ResumeRequested(resumed) => {
            format!("{} is to go on, asked by {}", resumed.child, resumed.by)
        }
        AgentEntry::RetryScheduled(scheduled) => retry_of_agent(scheduled),
        AgentEntry::Reprioritized(changed) => {
            format!("{} is {} now", changed.agent, changed.priority)
        }
        // Not reported.
        _ => String::new(),
    }
}

fn terminal_words(entry: &TerminalEntry) -> String {
    match entry {
        TerminalEntry::Noted(noted) => noted.event.to_string(),
        // Not reported.
        _ => String::new(),
    }
}

fn lifecycle_words(entry: &LifecycleEntry) -> String {
    match entry {
        LifecycleEntry::RunStarted(started) => started.goal.clone(),
        LifecycleEntry::SessionStarted(started) => started.policy.model.name.clone(),
        LifecycleEntry::Paused(paused) => paused.outcome.to_string(),
        LifecycleEntry::Resumed(resumed) => format!("{:?}", resumed.cause),
        LifecycleEntry::Ended(ended) => ended.outcome.to_string(),
        // Not reported.
        _ => String::new(),
    }
}

fn retry_of_agent(scheduled: &AgentRetryScheduled) -> String {
    let AgentRetryScheduled { agent, outcome, attempt, attempts_max, delay_ms, .. } = scheduled;
    format!("{agent} has failed: {outcome}; retry {attempt} of {attempts_max} in {delay_ms} ms")
}

fn asked(called: &ModelCalled) -> String {
    let purpose = match called.purpose {
        Purpose::Turn => "",
        Purpose::Summary => ", for a summary",
        Purpose::FinalSummary => ", for a final summary",
        Purpose::Judge => ", by a judge",
        Purpose::External => ", by the program",
        Purpose::Hook => ", by a hook",
    };
    format!("turn {}, call {}, attempt {}{purpose}", called.turn, called.call, called.attempt)
}

fn consent(resolved: &ApprovalResolved) -> String {
    match &resolved.answer {
        ApprovalAnswer::Allow { scope, .. } => format!("allowed ({scope:?}) by {}", resolved.by),
        ApprovalAnswer::Answered { .. } => format!("answered by {}", resolved.by),
        ApprovalAnswer::Deny { reason } => format!("denied by {}: {reason}", resolved.by),
    }
}

fn missing(finding: &GoalFinding) -> String {
    match finding {
        GoalFinding::Achieved { reasoning, .. } => format!("goal reached: {reasoning}"),
        GoalFinding::NotAchieved { reasoning, .. } => format!("goal not reached: {reasoning}"),
        GoalFinding::Unverified { why } => format!("goal not verified: {why}"),
    }
}

fn yielded(yields: &AgentYieldRequested) -> String {
    match yields.to {
        Some(to) => format!("{} was asked to yield to {to}", yields.child),
        None => format!("{} was asked to yield", yields.child),
    }
}

fn asked_again(asked: &AgentAskedAgain) -> String {
    format!("from {} again to {}: {}", asked.parent, asked.child, asked.text)
}

fn result(kind: ObserverEventKind, finished: &ToolFinished) -> String {
    if kind == ObserverEventKind::ToolStart {
        return format!("{} isn't made", finished.tool);
    }
    format!("{} {:?} {} ms", finished.tool, finished.status, finished.duration_ms)
}

fn handed_over(kind: ObserverEventKind, spawned: &AgentSpawned) -> String {
    let name = &spawned.brief.name;
    if kind == ObserverEventKind::StepStart {
        return name.clone();
    }
    let from = spawned.parent.map(|parent| format!("from {parent} ")).unwrap_or_default();
    let goal = &spawned.brief.goal;
    format!("{from}to {} ({name}, {}, depth {}): {goal}", spawned.child, spawned.priority, spawned.depth)
}

fn shortened(compacted: &Compacted) -> String {
    let how = match compacted.how {
        CompactionKind::Trim => "by leaving out old results",
        CompactionKind::Summary => "by a summary",
        CompactionKind::Emergency => "by rule",
    };
    format!("{} tokens to {}, {how}", compacted.tokens_before, compacted.tokens_after)
}

fn final_summary(wrapped: &FinalSummaryFinished) -> String {
    let call = wrapped.call.as_ref().map(aside);
    let problem = wrapped.problem.as_ref().map(|problem| format!("no final summary: {problem}"));
    call.into_iter().chain(problem).collect::<Vec<_>>().join(", ")
}

/// A call whose answer isn't part of the conversation.
fn aside(call: &AsideCall) -> String {
    let model = if call.model.is_empty() { "failed:" } else { &call.model };
    format!("{model} {}", spent(call.usage, call.cost))
}

fn spent(usage: Usage, cost: Option<MicroDollars>) -> String {
    let mut out = format!("{} tokens in, {} out", usage.prompt_tokens(), usage.output_tokens);
    // Writing to a String can't fail.
    let _ = match cost {
        Some(cost) => write!(out, ", {cost}"),
        None => write!(out, ", price unknown"),
    };
    out
}

fn cause(cause: &RetryCause) -> String {
    match cause {
        RetryCause::Failed { class, message, .. } => format!("{}: {message}", class.words()),
        RetryCause::EmptyAnswer => "empty answer".to_owned(),
        RetryCause::Interrupted => "interrupted".to_owned(),
        RetryCause::Compacted => "too long".to_owned(),
        RetryCause::UselessSummary { why } => format!("no summary: {why}"),
    }
}

fn objections_of_hooks(decided: &HooksDecided) -> String {
    let objections = decided.reports.iter().filter_map(|report| {
        let failure = report.decision.failure().unwrap_or_default();
        let (word, reason) = match &report.decision {
            HookDecision::Continue | HookDecision::Allow => return None,
            HookDecision::Ask(reason) => ("asks", reason),
            HookDecision::Deny(reason) => ("denies", reason),
            HookDecision::Pause(reason) => ("pauses", reason),
            HookDecision::Abort(reason) => ("aborts", reason),
            HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
                ("failed", &failure)
            }
        };
        Some(format!("{} {word} at {}: {reason}", report.hook, report.point.name()))
    });
    objections.collect::<Vec<_>>().join("; ")
}

fn objections_of_stop_hooks(verdicts: &StopVerdicts) -> String {
    let objections = verdicts.reports.iter().filter_map(|report| match report.stop_verdict() {
        StopHookVerdict::Allow
        | StopHookVerdict::Error(_)
        | StopHookVerdict::Broken(_)
        | StopHookVerdict::TimedOut(_) => None,
        StopHookVerdict::Block(reason) => Some(format!("{} blocks: {reason}", report.hook)),
        StopHookVerdict::Halt(reason) => Some(format!("{} halts: {reason}", report.hook)),
    });
    objections.collect::<Vec<_>>().join("; ")
}
