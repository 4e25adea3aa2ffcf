//! How a run stands at this moment, from its records: what a status line says.

use std::time::{Duration, Instant};

use provost_engine::RunState;
use provost_event::{Block, CallId, DeltaKind, Entry, MicroDollars, Purpose, Record, RunPolicy};

use super::arguments;
use super::gate::waits_for;
use super::words::{duration, one_line, tokens};

/// Columns for what is being done.
const DOING_MAX: usize = 60;

/// What the agent does now.
enum Doing {
    Starting,
    Thinking,
    Writing,
    SummingUp,
    LastWords,
    Tools(Vec<Running>),
    Waiting(Instant),
    AskingHooks(&'static str),
    AskingSomebody,
    Stopping,
}

struct Running {
    call: CallId,
    words: String,
    since: Instant,
}

/// Counts and present activity.
pub(super) struct Tracker {
    doing: Doing,
    since: Instant,
    before_ms: u64,
    turn: u32,
    turns_max: u32,
    tokens: u64,
    cost: Option<MicroDollars>,
    has_hooks: bool,
}

impl Tracker {
    /// From where the run was before, if it was.
    pub(super) fn new(before: Option<&RunState>) -> Self {
        let mut tracker = Self {
            doing: Doing::Starting,
            since: Instant::now(),
            before_ms: 0,
            turn: 0,
            turns_max: 0,
            tokens: 0,
            cost: None,
            has_hooks: false,
        };
        if let Some(state) = before {
            state.policy().into_iter().for_each(|policy| tracker.given(policy));
            tracker.before_ms = state.active_ms();
            tracker.turn = state.ledger().turns();
            tracker.turns_max = state.turns_max();
            tracker.tokens = state.ledger().tokens;
            tracker.cost = tracker.cost.map(|_| state.ledger().cost);
        }
        tracker
    }

    fn given(&mut self, policy: &RunPolicy) {
        self.turns_max = policy.agent.limits.turns_max;
        self.has_hooks = !policy.agent.stop_hooks.is_empty();
        self.cost = policy.agent.model.price.map(|_| MicroDollars(0));
    }

    /// Takes in an entry.
    pub(super) fn note(&mut self, record: &Record) {
        match &record.entry {
            Entry::RunStarted(entry) => self.given(&entry.policy),
            Entry::ModelCalled(entry) => {
                self.turn = entry.turn;
                match entry.purpose {
                    Purpose::Turn => self.now(Doing::Thinking),
                    Purpose::Summary => self.now(Doing::SummingUp),
                    // This is what the stop waits for.
                    Purpose::WrapUp => self.doing = Doing::LastWords,
                }
            }
            Entry::AssistantMessage(entry) => {
                let asks = entry.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
                self.now(if asks || !self.has_hooks {
                    Doing::Starting
                } else {
                    Doing::AskingHooks("asking the stop hooks")
                });
            }
            Entry::Retry(entry) => {
                self.now(Doing::Waiting(Instant::now() + Duration::from_millis(entry.delay_ms)));
            }
            Entry::ToolStarted(entry) => {
                let words = arguments::call(&entry.tool, &entry.input);
                self.tool_started(Running { call: entry.call.clone(), words, since: Instant::now() });
            }
            Entry::ToolFinished(entry) => self.tool_finished(&entry.call),
            Entry::BudgetCharged(entry) => {
                self.tokens = self.tokens.saturating_add(entry.usage.total());
                self.cost = self.cost.map(|cost| cost + entry.cost.unwrap_or_default());
            }
            Entry::Resumed(entry) => self.turns_max = entry.turns_max.unwrap_or(self.turns_max),
            Entry::StopRequested(_) | Entry::WrappedUp(_) => self.doing = Doing::Stopping,
            Entry::Compacted(_) => self.gated(Doing::Starting),
            Entry::StopVerdicts(_) => self.now(Doing::Starting),
            Entry::HooksAsked(entry) => self.gated(Doing::AskingHooks(waits_for(&entry.about))),
            Entry::ApprovalRequested(_) => self.gated(Doing::AskingSomebody),
            Entry::HooksDecided(_) | Entry::ApprovalResolved(_) => self.gated(Doing::Starting),
            Entry::PermissionDecided(_)
            | Entry::SessionStarted(_)
            | Entry::UserMessage(_)
            | Entry::SystemItem(_)
            | Entry::TurnEnded(_)
            | Entry::Snapshot(_)
            | Entry::BudgetReserved(_)
            | Entry::BudgetExhausted(_)
            | Entry::ChildSpawned(_)
            | Entry::ChildStarted(_)
            | Entry::ChildYields(_)
            | Entry::ChildPaused(_)
            | Entry::ChildResumed(_)
            | Entry::ChildFinished(_)
            | Entry::ChildRested(_)
            | Entry::Reprioritized(_)
            | Entry::YieldRequested(_)
            | Entry::Paused(_)
            | Entry::Ended(_) => {}
        }
    }

    /// Takes in that an answer has begun.
    pub(super) fn hear(&mut self, kind: DeltaKind) {
        if matches!(self.doing, Doing::SummingUp | Doing::LastWords) {
            return;
        }
        self.now(match kind {
            DeltaKind::Text => Doing::Writing,
            DeltaKind::Thinking => Doing::Thinking,
        });
    }

    /// Takes in that a stop was asked for.
    pub(super) fn stop(&mut self) {
        self.doing = Doing::Stopping;
    }

    /// A stop that was asked for stays in sight until it has come.
    fn now(&mut self, doing: Doing) {
        if !matches!(self.doing, Doing::Stopping) {
            self.doing = doing;
        }
    }

    /// Tools that run meanwhile are more worth saying.
    fn gated(&mut self, doing: Doing) {
        if !matches!(self.doing, Doing::Tools(_)) {
            self.now(doing);
        }
    }

    fn tool_started(&mut self, running: Running) {
        match &mut self.doing {
            Doing::Tools(all) => all.push(running),
            _ => self.now(Doing::Tools(vec![running])),
        }
    }

    fn tool_finished(&mut self, call: &CallId) {
        if let Doing::Tools(all) = &mut self.doing {
            all.retain(|running| running.call != *call);
            if all.is_empty() {
                self.doing = Doing::Starting;
            }
        }
    }

    /// The status in one line.
    pub(super) fn line(&self) -> String {
        let mut parts = vec![self.doing()];
        if self.turn > 0 {
            parts.push(format!("turn {}/{}", self.turn, self.turns_max));
        }
        if self.tokens > 0 {
            parts.push(format!("{} tokens", tokens(self.tokens)));
            parts.extend(self.cost.map(|cost| cost.to_string()));
        }
        parts.push(whole_seconds(self.before_ms.saturating_add(ms(self.since.elapsed()))));
        parts.join(" · ")
    }

    fn doing(&self) -> String {
        match &self.doing {
            Doing::Starting => "working".to_owned(),
            Doing::Thinking => "thinking".to_owned(),
            Doing::Writing => "writing".to_owned(),
            Doing::SummingUp => "summing up".to_owned(),
            Doing::LastWords => "saying how far it is".to_owned(),
            Doing::Tools(all) => running(all),
            Doing::Waiting(until) => {
                format!("waiting {}", whole_seconds(ms(until.saturating_duration_since(Instant::now()))))
            }
            Doing::AskingHooks(words) => (*words).to_owned(),
            Doing::AskingSomebody => "waiting for approval".to_owned(),
            Doing::Stopping => "stopping".to_owned(),
        }
    }
}

fn running(all: &[Running]) -> String {
    let Some(first) = all.first() else { return "working".to_owned() };
    let others = if all.len() > 1 { format!(" and {} more", all.len() - 1) } else { String::new() };
    let took = whole_seconds(ms(first.since.elapsed()));
    format!("running {}{others} ({took})", one_line(&first.words, DOING_MAX))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Without tenths, which would only flicker.
fn whole_seconds(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { duration(ms) }
}
