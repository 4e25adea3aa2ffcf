//! What of a run's entries is news.

use std::path::{Path, PathBuf};

use provost_config::NotifyOn;
use provost_engine::Actor;
use provost_event::{
    ActorKey, Budget, BudgetEntry, Dimension, Elapsed, Entry, GateEntry, LifecycleEntry, MicroDollars,
    Outcome, Record, RunId, Seq,
};
use provost_harness::{Backend, BackendError, Redactor};
use serde_json::{Value, json};

/// Characters of a goal and of a call in a notification.
const GOAL_CHARS_MAX: usize = 80;
const CALL_CHARS_MAX: usize = 160;
/// The percentage of a limit that is told of.
const WARNS_AT: u64 = 80;

/// A notification: what is told, and under which name it counts as told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewsItem {
    pub(super) event: NotifyOn,
    /// The state that it is about.
    pub(super) key: String,
    pub(super) run: RunId,
    pub(super) goal: String,
    pub(super) title: String,
    pub(super) text: String,
    /// The question, as `provost approve` takes it.
    pub(super) question: Option<String>,
}

impl NewsItem {
    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "v": 1,
            "event": self.event.name(),
            "run": self.run.to_string(),
            "goal": self.goal,
            "title": self.title,
            "text": self.text,
            "question": self.question,
        })
    }
}

/// Follows a run.
pub(super) struct News {
    run: RunId,
    goal: String,
    workspace: PathBuf,
    budget: Budget,
    used: Used,
}

/// What was used when the run's log was read, and since.
struct Used {
    head: Seq,
    tokens: u64,
    cost: MicroDollars,
    worked_ms: u64,
    elapsed: Elapsed,
}

impl News {
    /// Whether an entry may be news.
    pub(super) const fn concerns(record: &Record) -> bool {
        match &record.entry {
            Entry::Gate(GateEntry::ApprovalRequested(_)) => true,
            Entry::Budget(BudgetEntry::Charged(_))
            | Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => {
                matches!(record.actor, ActorKey::Run(_))
            }
            _ => false,
        }
    }

    /// The run as its log has it; `None` if that is empty.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) async fn begin(
        backend: &dyn Backend,
        run: RunId,
        redactor: &Redactor,
    ) -> Result<Option<Self>, BackendError> {
        let Actor::Run(state) = backend.state(run.into()).await? else { return Ok(None) };
        let Some(policy) = state.policy() else { return Ok(None) };
        let spent = state.ledger().run();
        Ok(Some(Self {
            run,
            goal: first_line(&redactor.redact(state.goal()), GOAL_CHARS_MAX),
            workspace: policy.agent.workspace.clone(),
            budget: state.budget(),
            used: Used {
                head: state.head(),
                tokens: spent.tokens,
                cost: spent.cost,
                worked_ms: state.worked_ms(state.elapsed()),
                elapsed: state.elapsed(),
            },
        }))
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// What of an entry is to be told, without secrets.
    pub(super) fn take(&mut self, record: &Record, redactor: &Redactor) -> Vec<NewsItem> {
        match &record.entry {
            Entry::Gate(GateEntry::ApprovalRequested(asked)) => {
                let question = short(record);
                // Before it is cut: the beginning of a secret isn't known as one.
                let call = format!("{} {}", asked.tool, asked.input.text());
                let call = first_line(&redactor.redact(&call), CALL_CHARS_MAX);
                let text = format!("asks: {call}");
                let key = format!("approval {question}");
                let item = self.item(NotifyOn::Approval, key, "needs you", text);
                vec![NewsItem { question: Some(question), ..item }]
            }
            Entry::Budget(BudgetEntry::Charged(charged)) => {
                if record.seq > self.used.head {
                    self.used.tokens = self.used.tokens.saturating_add(charged.usage.total());
                    self.used.cost += charged.cost.unwrap_or_default();
                }
                self.limits(record.elapsed)
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.stopped(record, &paused.outcome, redactor)
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.stopped(record, &ended.outcome, redactor),
            _ => Vec::new(),
        }
    }

    fn item(&self, event: NotifyOn, key: String, title: &str, text: String) -> NewsItem {
        NewsItem {
            event,
            key,
            run: self.run,
            goal: self.goal.clone(),
            title: format!("Provost: {title}"),
            text: format!("{}: {text}", self.goal),
            question: None,
        }
    }

    /// What the user has done isn't told to the user.
    fn stopped(&self, record: &Record, outcome: &Outcome, redactor: &Redactor) -> Vec<NewsItem> {
        let (event, title) = match outcome {
            Outcome::Completed { .. } => (NotifyOn::Finished, "finished"),
            Outcome::Failed { .. } | Outcome::Aborted { .. } => (NotifyOn::Failed, "failed"),
            Outcome::BudgetExhausted(_) | Outcome::Blocked { .. } | Outcome::Paused { .. } => {
                (NotifyOn::Suspended, "suspended")
            }
            Outcome::Cancelled { .. } => return Vec::new(),
        };
        let key = format!("stopped {}", record.seq);
        vec![self.item(event, key, title, first_line(&redactor.redact(&outcome.to_string()), CALL_CHARS_MAX))]
    }

    /// The limits of which much is used.
    fn limits(&self, elapsed: Elapsed) -> Vec<NewsItem> {
        let worked_ms = self.used.worked_ms.saturating_add(elapsed.since_ms(self.used.elapsed));
        let limits = [
            (Dimension::Money, self.used.cost.0, self.budget.money.map(|money| money.0)),
            (Dimension::Tokens, self.used.tokens, self.budget.tokens),
            (Dimension::WallTime, worked_ms, self.budget.wall_time_ms),
        ];
        let item = |(dimension, used, limit): (Dimension, u64, Option<u64>)| {
            let limit = limit.filter(|limit| *limit > 0)?;
            let percent = used.saturating_mul(100) / limit;
            (percent >= WARNS_AT).then(|| {
                let key = format!("budget {} {limit}", word(dimension));
                let text = format!("{percent} % of its {} is used", words(dimension, limit));
                self.item(NotifyOn::Budget, key, "budget", text)
            })
        };
        limits.into_iter().filter_map(item).collect()
    }
}

const fn word(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Money => "money",
        Dimension::Tokens => "tokens",
        Dimension::Turns => "turns",
        Dimension::WallTime => "time",
    }
}

fn words(dimension: Dimension, limit: u64) -> String {
    match dimension {
        Dimension::Money => format!("limit of {}", MicroDollars(limit)),
        Dimension::Tokens => format!("limit of {} tokens", provost_event::grouped(limit)),
        Dimension::Turns => format!("limit of {limit} turns"),
        Dimension::WallTime => format!("time of {} min", limit / 60_000),
    }
}

/// A question's name, as `provost approve` takes it.
fn short(record: &Record) -> String {
    match record.actor {
        ActorKey::Session(session) if session.agent == 0 => format!("{}#{}", session.run, record.seq),
        actor => format!("{actor}#{}", record.seq),
    }
}

/// The first line of a text without what terminals and shells would take for orders.
fn first_line(text: &str, chars_max: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain = line.chars().filter(|c| !c.is_control() && !is_unseen(*c)).collect::<String>();
    match plain.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", plain.get(..at).unwrap_or_default()),
        None => plain,
    }
}

/// Marks of direction, and what takes no room.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
