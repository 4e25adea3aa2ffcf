//! Each kind of entry in words: one function each.

use std::collections::{HashMap, HashSet};

use provost_engine::Actor;
use provost_event::{
    ActorKey, AgentEntry, AgentSpawned, ApprovalRequested, AssistantMessage, Block, BudgetCharged,
    BudgetEntry, BudgetExhausted, BudgetReserved, CallId, Certainty, ConversationEntry, Dimension, Ended,
    Entry, Forked, GateEntry, ItemKind, LifecycleEntry, Origin, Outcome, Paused, Record, ResumeCause,
    Resumed, RunStarted, SessionStarted, SlotAssignment, StopReason, StopRequested, SystemItem, ToolEntry,
    ToolFinished, ToolStarted, ToolStatus, TurnEnded, UserMessage,
};

use super::context::{compacted, exhausted_in_words, final_summary_finished, outcome_in_words, snapshot};
use super::gate::{
    approval_requested, approval_resolved, hooks_asked, hooks_decided, permission_decided,
    stop_check_cut_short, stop_verdicts,
};
use super::model::purpose_in_words;
use super::result::{changed_lines, complaint};
use super::saying::{Saying, Tag};
use super::service::{kept_in_words, service_noted};
use super::words::{amount, duration, one_line, pictures, plural};
use super::{Earlier, agents, arguments, flow, goal, model, policy, terminal, worktree};
use crate::names::Names;
use provost_process::MAYBE_LEFT;

/// Columns of a short text in a line.
const WIDTH_MAX: usize = 100;

/// Renders entries as text; remembers the calls that are running, so that their ends can name them, and the
/// agents.
#[derive(Default)]
pub(crate) struct Sayer {
    calls: HashMap<(ActorKey, CallId), String>,
    names: Names,
    /// Agents that were requested or suspended, and have no slot yet.
    waiting: HashSet<u32>,
}

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
            Entry::Conversation(entry) => self.conversation_entry(actor, entry),
            Entry::Model(entry) => model::in_words(actor, entry),
            Entry::Tool(entry) => self.tool_entry(actor, entry),
            Entry::Gate(entry) => self.gate_entry(actor, entry),
            Entry::Goal(entry) => goal::in_words(entry),
            Entry::Budget(entry) => self.budget_entry(entry),
            Entry::Agent(entry) => self.agent_entry(actor, entry),
            Entry::Terminal(entry) => terminal::in_words(entry),
            Entry::Worktree(entry) => worktree::in_words(entry),
            Entry::Lifecycle(entry) => self.lifecycle_entry(actor, entry),
        }
    }

    fn conversation_entry(&mut self, actor: ActorKey, entry: &ConversationEntry) -> Saying {
        match entry {
            ConversationEntry::UserMessage(entry) => user_message(entry),
            ConversationEntry::SystemItem(entry) => system_item(entry),
            ConversationEntry::AssistantMessage(entry) => self.assistant_message(actor, entry),
            ConversationEntry::TurnEnded(entry) => turn_ended(entry),
            ConversationEntry::Compacted(entry) => compacted(entry),
            ConversationEntry::FinalSummary(entry) => final_summary_finished(entry),
        }
    }

    fn tool_entry(&mut self, actor: ActorKey, entry: &ToolEntry) -> Saying {
        match entry {
            ToolEntry::Started(entry) => self.tool_started(actor, entry),
            ToolEntry::Finished(entry) => self.tool_finished(actor, entry),
            ToolEntry::Changed(entry) => policy::tools_changed(actor, entry),
            ToolEntry::ServiceNoted(entry) => service_noted(entry),
        }
    }

    fn gate_entry(&mut self, actor: ActorKey, entry: &GateEntry) -> Saying {
        match entry {
            GateEntry::HooksAsked(entry) => hooks_asked(entry),
            GateEntry::HooksDecided(entry) => hooks_decided(entry),
            GateEntry::PermissionDecided(entry) => permission_decided(entry),
            GateEntry::ApprovalRequested(entry) => self.approval_requested(actor, entry),
            GateEntry::ApprovalResolved(entry) => approval_resolved(entry),
            GateEntry::StopChecked(entry) => stop_verdicts(entry),
            GateEntry::StopCheckCutShort(entry) => stop_check_cut_short(entry),
        }
    }

    fn budget_entry(&mut self, entry: &BudgetEntry) -> Saying {
        match entry {
            BudgetEntry::Reserved(entry) => budget_reserved(entry),
            BudgetEntry::Charged(entry) => budget_charged(entry),
            BudgetEntry::Exhausted(entry) => self.budget_exhausted(entry),
        }
    }

    fn agent_entry(&mut self, actor: ActorKey, entry: &AgentEntry) -> Saying {
        match entry {
            AgentEntry::Spawned(entry) => self.agent_spawned(entry),
            AgentEntry::AskedAgain(entry) => {
                if entry.slot != SlotAssignment::Free {
                    self.waiting.insert(entry.child.agent);
                }
                agents::asked_again(entry, &self.names)
            }
            AgentEntry::Started(entry) => {
                let has_waited = self.waiting.remove(&entry.child.agent);
                agents::started(entry, &self.names, has_waited)
            }
            AgentEntry::YieldRequested(entry) => agents::yields(entry, &self.names),
            AgentEntry::Suspended(entry) => {
                self.waiting.insert(entry.child.agent);
                agents::paused(entry, &self.names)
            }
            AgentEntry::ResumeRequested(entry) => agents::resumed(entry, &self.names),
            AgentEntry::RetryScheduled(entry) => agents::retry_scheduled(entry, &self.names),
            AgentEntry::Finished(entry) => agents::finished(entry, &self.names),
            AgentEntry::Reprioritized(entry) => agents::reprioritized(entry, &self.names),
            AgentEntry::StepEnded(entry) => flow::step_ended(entry),
            AgentEntry::MustYield(entry) => agents::yield_requested(entry, &self.names),
            AgentEntry::SubAgentResumed(_) => agents::goes_on(),
            AgentEntry::SubAgentSuspended(entry) => agents::suspended(actor, entry),
        }
    }

    fn lifecycle_entry(&mut self, actor: ActorKey, entry: &LifecycleEntry) -> Saying {
        match entry {
            LifecycleEntry::RunStarted(entry) => run_started(actor, entry),
            LifecycleEntry::SessionStarted(entry) => session_started(entry),
            LifecycleEntry::RunPolicyChanged(entry) => policy::run_changed(entry),
            LifecycleEntry::AgentPolicyChanged(entry) => policy::agent_changed(entry),
            LifecycleEntry::Forked(entry) => forked(actor, entry),
            LifecycleEntry::Snapshot(entry) => snapshot(entry),
            LifecycleEntry::ProcessesLeft(_) => Saying::kept(Tag::Failed, MAYBE_LEFT),
            LifecycleEntry::StopRequested(entry) => self.stop_requested(actor, entry),
            LifecycleEntry::Paused(entry) => paused(actor, entry),
            LifecycleEntry::Resumed(entry) => resumed(actor, entry),
            LifecycleEntry::Ended(entry) => ended(entry),
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
        let outcome = outcome_in_words(actor.run(), &entry.outcome);
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
        let outside = if entry.outside { " (outside of the sandbox)" } else { "" };
        let call = format!("{}{outside}", arguments::call(&entry.tool, &entry.input));
        self.calls.insert((actor, entry.call.clone()), call.clone());
        let again = if entry.again { " (again, after an interruption)" } else { "" };
        Saying::passing(Tag::Tool, format!("{call}{again}"))
    }

    fn tool_finished(&mut self, actor: ActorKey, entry: &ToolFinished) -> Saying {
        let call = self.calls.remove(&(actor, entry.call.clone())).unwrap_or_else(|| entry.tool.clone());
        let (took, images) = (duration(entry.duration_ms), behind(&pictures(&entry.images)));
        let ended = match entry.status {
            ToolStatus::Ok => {
                let service = entry.facts.service.as_deref().map(kept_in_words);
                let done = Saying::kept(Tag::Ok, format!("{call} ({took}){images}")).with(service);
                return done.changing(changed_lines(entry));
            }
            ToolStatus::Error => took,
            ToolStatus::Denied => "denied".to_owned(),
            ToolStatus::Rejected => "not run".to_owned(),
            ToolStatus::TimedOut => format!("timed out after {took}"),
            ToolStatus::Cancelled => format!("cancelled after {took}"),
            ToolStatus::Unknown => "interrupted, what it did isn't known".to_owned(),
        };
        Saying::kept(Tag::Failed, format!("{call} ({ended}){images}")).ending_with(complaint(entry))
    }
}

/// `words` behind others, if there are any.
fn behind(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" {words}") }
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
        ItemKind::Resumed | ItemKind::ServiceEnded => {
            Saying::passing(Tag::Provost, one_line(&entry.body, WIDTH_MAX))
        }
        ItemKind::GoalGiven => Saying::passing(Tag::Provost, "told of the goal"),
        ItemKind::GoalRemoved => Saying::passing(Tag::Provost, "told that its goal is taken away"),
        ItemKind::AnswerAgain => Saying::passing(Tag::Provost, "the answer was empty; asked again"),
        ItemKind::RepeatedCallNotice => {
            Saying::kept(Tag::Provost, "told that the same call gives the same result")
        }
        ItemKind::FailedCallsNotice => Saying::kept(Tag::Provost, "told that no tool call succeeds"),
        ItemKind::NoProgressNotice => Saying::kept(Tag::Provost, "told that nothing moves the work on"),
        ItemKind::Reminder | ItemKind::HookWoke => Saying::passing(
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
        ItemKind::FolderRules => {
            let files = entry.rules.iter().map(|rules| rules.file.as_str()).collect::<Vec<_>>().join(", ");
            Saying::passing(
                Tag::Provost,
                format!("told the project rules of {}", one_line(&files, WIDTH_MAX)),
            )
        }
        ItemKind::EndQuestion => {
            Saying::passing(Tag::Provost, "asked to go on or to close: no tool call, no verdict")
        }
        ItemKind::FinalCheck => {
            Saying::passing(Tag::Provost, "asked once what proves that the goal is reached")
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

fn assistant_message(entry: &AssistantMessage) -> Saying {
    let text = text_of(&entry.content);
    let calls = entry.content.iter().filter(|block| matches!(block, Block::ToolCall(_))).count();
    let ended = match entry.stop {
        StopReason::EndTurn | StopReason::ToolUse => "",
        StopReason::OutputCap => " [cut off by the output cap]",
        StopReason::Refusal => " [declined]",
        StopReason::Commentary => " [comment]",
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

fn forked(actor: ActorKey, entry: &Forked) -> Saying {
    let Forked { from, at, to, .. } = entry;
    if actor.run() == *to {
        return Saying::detail(format!("goes on with the conversation of agent {from} up to entry {at}"));
    }
    Saying::detail(format!("run {to} goes on with the conversation of agent {from} up to entry {at}"))
}

fn turn_ended(entry: &TurnEnded) -> Saying {
    Saying::detail(format!("turn {}, {}", entry.turn, plural(entry.tool_calls.into(), "tool call")))
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

fn paused(actor: ActorKey, entry: &Paused) -> Saying {
    Saying::detail(outcome_in_words(actor.run(), &entry.outcome))
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
