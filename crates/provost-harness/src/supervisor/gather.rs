//! Gathers the evidence: backwards through the log, a piece at a time, until there is as much as a judge is shown.
//! The cost is bounded for a log of any length.

use std::sync::Arc;

use provost_engine::{Actor, JudgeCall, OwnCall, own_call, tokens_of};
use provost_event::{
    AssistantMessage, Block, ConversationEntry, Entry, GateEntry, GoalEntry, HookReport, LifecycleEntry,
    ModelEntry, Plan, ProgramActivity, Record, RunId, Seq, SessionId, TerminalEntry, TerminalEvent, ToolCall,
    ToolEntry, ToolFinished, ToolSpec, ToolStatus, WorkspaceBaseline, WorktreeEntry,
};
use tokio_util::sync::CancellationToken;

use super::clean::{Clean, least};
use super::files::{self, Began};
use super::{Action, Evidence};
use crate::session_cache::Opening;
use crate::{BackendError, Blobs, Log, Redactor};

/// Entries read at a time.
const PAGE_ENTRIES: u64 = 128;
/// Maximum entries inspected, however little they contain.
const LOOKED_AT_MAX: u64 = 10_000;
/// Maximum entries inspected only for the agent's last message or its plan, without a snapshot.
const LOOKED_AT_FURTHER_MAX: u64 = 2_000;
/// Entries at the log's beginning that contain the task and the creation of the worktree.
const BEGINNING_ENTRIES: usize = 16;
/// What stands in the place of a tool's name where a program reports what it did.
const PROGRAM_REPORTS: &str = "the program reports";
/// Tokens counted for a call, besides its texts.
const CALL_TOKENS: u64 = 24;

/// The sources of evidence, and the secrets to remove.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) backend: &'a dyn Log,
    pub(crate) opening: &'a Opening,
    pub(crate) redactor: &'a Arc<Redactor>,
}

/// The evidence for one question, without secrets. Unknown facts about the workspace are left out.
///
/// # Errors
/// When the log can't be read.
///
/// # Cancellation
/// When `cancel` fires, git isn't called any more. Dropping the future is safe.
pub(crate) async fn gather(
    sources: Sources<'_>,
    call: &JudgeCall,
    cancel: &CancellationToken,
) -> Result<Evidence, BackendError> {
    let Sources { backend, opening, redactor } = sources;
    let clean = Clean::new(redactor);
    let tokens_max = opening.policy.goal.as_deref().map_or(0, |goal| goal.evidence_tokens_max);
    let (task, mut began) = beginning(backend, call.session).await?;
    if began.commit.is_none() {
        began.baseline = baseline(backend, call.session.run).await?;
    }
    let mut found = Found::new(clean, call, tokens_max, &opening.tools);
    found.look(backend, call.session).await?;
    let own = (backend as &dyn Blobs, redactor);
    let files = files::changed(&opening.workspace, began, &found.written, own, cancel).await;
    Ok(Evidence {
        trigger: call.trigger,
        tokens_max,
        task: clean.text(&task),
        earlier_turns: found.earlier_turns(),
        told: found.told,
        summary: String::new(),
        actions: found.actions,
        requested: found.requested,
        stop_hooks: found.stop_hooks.unwrap_or_default(),
        files: clean.files(files),
        open_steps: found.plan.map(|plan| clean.open_steps(plan)).unwrap_or_default(),
        claim: found.claim,
    })
}

/// The task, and the state of the workspace then.
async fn beginning(backend: &dyn Log, session: SessionId) -> Result<(String, Began), BackendError> {
    let records = backend.read(session.into(), Seq::START, BEGINNING_ENTRIES).await?;
    let (mut task, mut began) = (String::new(), Began::default());
    for record in &records {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                task.clone_from(&started.goal);
                began.at = record.at;
            }
            Entry::Worktree(WorktreeEntry::Made(made)) => began.commit = Some(made.commit.clone()),
            _ => {}
        }
    }
    Ok((task, began))
}

/// The files of the run's workspace before it began.
async fn baseline(backend: &dyn Log, run: RunId) -> Result<Option<WorkspaceBaseline>, BackendError> {
    let first = backend.read(run.into(), Seq::START, 1).await?;
    Ok(first.first().and_then(|first| match &first.entry {
        Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => started.baseline.clone(),
        _ => None,
    }))
}

/// The evidence found so far.
struct Found<'a> {
    clean: Clean<'a>,
    tools: &'a [ToolSpec],
    generation: u32,
    /// The next entry to inspect is before this one.
    until: Seq,
    looked_at: u64,
    tokens_left: u64,
    /// Results whose calls are still to be found.
    results: Vec<Arc<Record>>,
    /// Whether the stop hooks were called before this verification.
    is_before_check: bool,
    actions: Vec<Action>,
    requested: Vec<(String, String)>,
    /// The turn of the oldest of them.
    oldest_turn: u32,
    told: Vec<String>,
    stop_hooks: Option<Vec<HookReport>>,
    plan: Option<Plan>,
    claim: String,
    /// Paths that were written to, without duplicates.
    written: Vec<String>,
}

impl<'a> Found<'a> {
    fn new(clean: Clean<'a>, call: &JudgeCall, tokens_max: u32, tools: &'a [ToolSpec]) -> Self {
        Self {
            clean,
            tools,
            generation: call.generation,
            until: call.through.next(),
            looked_at: 0,
            tokens_left: tokens_max.into(),
            results: Vec::new(),
            is_before_check: false,
            actions: Vec::new(),
            requested: Vec::new(),
            oldest_turn: 0,
            told: Vec::new(),
            stop_hooks: None,
            plan: None,
            claim: String::new(),
            written: Vec::new(),
        }
    }

    async fn look(&mut self, backend: &dyn Log, session: SessionId) -> Result<(), BackendError> {
        while self.until.0 > 1 && self.looked_at < LOOKED_AT_MAX && !self.is_full() {
            self.look_at_page(backend, session).await?;
        }
        if self.until.0 > 1 && !self.knows_words() {
            self.look_further(backend, session).await?;
        }
        Ok(())
    }

    /// Searches only for the agent's last message and its plan: down to the newest snapshot, which has the plan.
    async fn look_further(&mut self, backend: &dyn Log, session: SessionId) -> Result<(), BackendError> {
        let snapshot = backend.newest_snapshot(session.into()).await?;
        let floor = match &snapshot {
            Some(snapshot) => snapshot.seq,
            None => Seq(self.until.0.saturating_sub(LOOKED_AT_FURTHER_MAX).max(1)),
        };
        while self.until > floor && !self.knows_words() {
            self.look_at_page(backend, session).await?;
        }
        if let (None, Some(snapshot)) = (&self.plan, snapshot) {
            let first = backend.read(session.into(), Seq::START, 1).await?;
            let actor = first.first().and_then(|first| Actor::restore(first, &snapshot));
            if let Some(Actor::Session(state)) = actor {
                self.plan = state.plan().cloned();
            }
        }
        Ok(())
    }

    async fn look_at_page(&mut self, backend: &dyn Log, session: SessionId) -> Result<(), BackendError> {
        let from = Seq(self.until.0.saturating_sub(PAGE_ENTRIES).max(1));
        let records = page(backend, session, from, self.until).await?;
        records.iter().rev().for_each(|record| self.take(record));
        self.looked_at += self.until.0.saturating_sub(from.0);
        self.until = from;
        Ok(())
    }

    const fn is_full(&self) -> bool {
        self.tokens_left == 0 && self.results.is_empty()
    }

    const fn knows_words(&self) -> bool {
        self.plan.is_some() && !self.claim.is_empty()
    }

    fn take(&mut self, record: &Arc<Record>) {
        match &record.entry {
            Entry::Tool(ToolEntry::Finished(finished)) => {
                if self.plan.is_none() {
                    self.plan = finished.plan.as_deref().cloned();
                }
                if self.tokens_left > 0 || !self.results.is_empty() {
                    self.results.push(record.clone());
                }
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => self.take_answer(answer),
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => self.take_claim(&wrapped.text),
            Entry::Conversation(ConversationEntry::UserMessage(message)) if self.tokens_left > 0 => {
                let told = self.clean.text(&words(&message.content));
                self.pay(&[&told]);
                self.told.push(told);
            }
            Entry::Model(ModelEntry::ExternalAnswered(answered)) if self.tokens_left > 0 => {
                for tool in answered.tools.iter().rev() {
                    let name = self.clean.text(&tool.name);
                    let arguments = self.clean.arguments(tool.input.text());
                    self.pay(&[&name, &arguments]);
                    self.requested.push((name, arguments));
                }
            }
            Entry::Terminal(TerminalEntry::Noted(noted)) => {
                if let TerminalEvent::Activity(activity) = &noted.event {
                    self.take_activity(activity);
                }
            }
            Entry::Gate(GateEntry::StopChecked(verdicts))
                if !self.is_before_check && self.stop_hooks.is_none() =>
            {
                self.stop_hooks =
                    Some(verdicts.reports.iter().map(|report| self.clean.report(report)).collect());
            }
            Entry::Goal(GoalEntry::CheckStarted(started)) if started.generation == self.generation => {
                self.is_before_check = true;
            }
            _ => {}
        }
    }

    /// Adds what an external agent's program reports of its work.
    fn take_activity(&mut self, activity: &ProgramActivity) {
        match activity {
            ProgramActivity::Plan(plan) if self.plan.is_none() => self.plan = Some(plan.clone()),
            ProgramActivity::Call(call) if self.tokens_left > 0 => {
                let reported = self.clean.text(&call.to_string());
                self.pay(&[PROGRAM_REPORTS, &reported]);
                self.requested.push((PROGRAM_REPORTS.to_owned(), reported));
            }
            ProgramActivity::Plan(_) | ProgramActivity::Call(_) => {}
        }
    }

    /// Adds an answer with all results of its calls, so that a turn is included completely or not at all.
    fn take_answer(&mut self, answer: &AssistantMessage) {
        self.take_claim(&words(&answer.content));
        for record in std::mem::take(&mut self.results) {
            let Entry::Tool(ToolEntry::Finished(finished)) = &record.entry else { continue };
            self.oldest_turn = answer.turn;
            self.take_call(finished, call_of(answer, finished));
        }
    }

    fn take_call(&mut self, finished: &ToolFinished, call: Option<&ToolCall>) {
        let own = call.map(|call| own_call(call, self.tools));
        let own_input = own.as_ref().map_or("", |own| own.input.text());
        let arguments = call.and_then(|call| call.malformed.as_deref()).unwrap_or(own_input);
        if finished.status == ToolStatus::Ok {
            let paths = own.as_ref().map(|own| written(own, self.tools)).unwrap_or_default();
            paths.into_iter().for_each(|path| {
                if !self.written.contains(&path) {
                    self.written.push(path);
                }
            });
        }
        let action = Action {
            tool: self.clean.text(&finished.tool),
            arguments: self.clean.arguments(arguments),
            status: finished.status,
            result: self.clean.text(finished.output.trim_end_matches('\n')),
        };
        self.pay(&[&action.tool, &action.arguments, &action.result]);
        self.actions.push(action);
    }

    fn take_claim(&mut self, words: &str) {
        if self.claim.is_empty() {
            self.claim = self.clean.text(words.trim());
        }
    }

    /// Turns before the oldest action whose calls weren't inspected.
    const fn earlier_turns(&self) -> u32 {
        let is_all = self.until.0 <= 1 && self.tokens_left > 0;
        if is_all { 0 } else { self.oldest_turn.saturating_sub(1) }
    }

    /// Counts the minimum that a judge is shown of these texts.
    fn pay(&mut self, texts: &[&str]) {
        let tokens = texts.iter().map(|text| tokens_of(least(text))).sum::<u64>();
        self.tokens_left = self.tokens_left.saturating_sub(tokens.saturating_add(CALL_TOKENS));
    }
}

/// The call with this result. Call ids may be repeated in another answer.
fn call_of<'a>(answer: &'a AssistantMessage, finished: &ToolFinished) -> Option<&'a ToolCall> {
    answer.content.iter().find_map(|block| match block {
        Block::ToolCall(call) if call.id == finished.call => Some(call),
        _ => None,
    })
}

fn words(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The entries from `from` to before `until`. A backend may return fewer at a time than requested.
async fn page(
    backend: &dyn Log,
    session: SessionId,
    from: Seq,
    until: Seq,
) -> Result<Vec<Arc<Record>>, BackendError> {
    let (mut records, mut next) = (Vec::new(), from);
    while next < until {
        let missing = usize::try_from(until.0.saturating_sub(next.0)).unwrap_or(usize::MAX);
        let more = backend.read(session.into(), Seq(next.0.saturating_sub(1)), missing).await?;
        let Some(last) = more.last() else { break };
        next = last.seq.next();
        records.extend(more);
    }
    Ok(records)
}

/// The path of the file that `call` changed, if its tool changes files.
fn written(call: &OwnCall, tools: &[ToolSpec]) -> Vec<String> {
    let tool = tools.iter().find(|tool| tool.name == call.tool);
    tool.map(|tool| tool.subject.written_paths_in(&call.input)).unwrap_or_default()
}
