//! What happens among the agents of a run, in words.

use provost_event::{
    ActorKey, AgentAskedAgain, AgentFinished, AgentResumeRequested, AgentRetryScheduled, AgentSpawned,
    AgentStarted, AgentSuspended, AgentYieldRequested, Outcome, PauseReason, Priority, Reprioritized,
    SessionId, SlotAssignment, SubAgentSuspended, Verification, YieldRequested,
};

use super::context::outcome_in_words;
use super::saying::{Saying, Tag};
use super::words::{duration, one_line};
use crate::names::Names;

/// Columns of a goal.
const GOAL_WIDTH: usize = 100;

pub(super) fn spawned(entry: &AgentSpawned, names: &Names) -> Saying {
    let comes = comes(entry.slot, "begins", names);
    let whom = for_whom(entry.parent, names);
    let line = format!("{} {comes}{whom}{}", names.in_words(entry.child), priority(entry.priority));
    Saying::kept(Tag::Run, line).with([one_line(&entry.brief.goal, GOAL_WIDTH)])
}

pub(super) fn asked_again(entry: &AgentAskedAgain, names: &Names) -> Saying {
    let comes = comes(entry.slot, "goes on, asked again", names);
    let whom = for_whom(Some(entry.parent), names);
    let line = format!("{} {comes}{whom}{}", names.in_words(entry.child), priority(entry.priority));
    Saying::kept(Tag::Run, line).with([one_line(&entry.text, GOAL_WIDTH)])
}

fn comes(slot: SlotAssignment, begins: &str, names: &Names) -> String {
    match slot {
        SlotAssignment::Free => begins.to_owned(),
        SlotAssignment::After(victim) => {
            format!("{begins} when {} has yielded its slot", names.in_words(victim))
        }
        SlotAssignment::Queued => format!("{begins} when a slot is free"),
    }
}

fn priority(priority: Priority) -> String {
    match priority {
        Priority::Normal => String::new(),
        other => format!(", priority {other}"),
    }
}

fn for_whom(parent: Option<SessionId>, names: &Names) -> String {
    let parent = parent.filter(|parent| parent.agent > 0);
    parent.map_or_else(String::new, |parent| format!(", for {}", names.in_words(parent)))
}

/// An agent that begins at once was already shown when it was requested.
pub(super) fn started(entry: &AgentStarted, names: &Names, has_waited: bool) -> Saying {
    let line = format!("{} has a slot and works", names.in_words(entry.child));
    if has_waited { Saying::kept(Tag::Run, line) } else { Saying::detail(line) }
}

pub(super) fn yields(entry: &AgentYieldRequested, names: &Names) -> Saying {
    let line = format!("{} was asked to yield to {}", names.in_words(entry.child), whom(entry.to, names));
    Saying::kept(Tag::Run, line)
}

pub(super) fn paused(entry: &AgentSuspended, names: &Names) -> Saying {
    let who = names.in_words(entry.child);
    Saying::kept(
        Tag::Run,
        match &entry.outcome {
            Outcome::Paused { why: PauseReason::Preempted { by } } => {
                format!("{who} has yielded to {}", whom(*by, names))
            }
            other => format!("{who} is suspended: {}", outcome_in_words(entry.child.run, other)),
        },
    )
}

pub(super) fn resumed(entry: &AgentResumeRequested, names: &Names) -> Saying {
    let line = format!("{} is to go on, asked by {}", names.in_words(entry.child), entry.by);
    Saying::kept(Tag::Run, line)
}

pub(super) fn retry_scheduled(entry: &AgentRetryScheduled, names: &Names) -> Saying {
    let AgentRetryScheduled { agent, outcome, attempt, attempts_max, delay_ms, .. } = entry;
    let line = format!(
        "{} has failed: {}; retry {attempt} of {attempts_max} in {}",
        names.in_words(*agent),
        outcome_in_words(agent.run, outcome),
        duration(*delay_ms),
    );
    Saying::kept(Tag::Failed, line)
}

pub(super) fn finished(entry: &AgentFinished, names: &Names) -> Saying {
    let who = match entry.restarts {
        0 => names.in_words(entry.child),
        restarts => format!("{} (attempt {})", names.in_words(entry.child), restarts.saturating_add(1)),
    };
    if let Some(verdict) = entry.outcome.verdict_not_passed() {
        return Saying::kept(Tag::Failed, format!("{who} has ended: verdict {verdict}"));
    }
    match &entry.outcome {
        Outcome::Completed { verdict, verification } => {
            let verdict = verdict.map(|verdict| format!(", verdict {verdict}")).unwrap_or_default();
            Saying::kept(Tag::Run, format!("{who} is done{verdict}{}", checked(verification)))
        }
        other => Saying::kept(
            Tag::Failed,
            format!("{who} has ended: {}", outcome_in_words(entry.child.run, other)),
        ),
    }
}

/// Behind the word that an agent is done: the result of its checks, if it has any.
pub(crate) fn checked(verification: &Verification) -> String {
    match verification {
        Verification::None => String::new(),
        Verification::Passed | Verification::Ignored { .. } => format!(", {verification}"),
    }
}

pub(super) fn reprioritized(entry: &Reprioritized, names: &Names) -> Saying {
    let who = names.in_words(entry.agent);
    Saying::kept(Tag::Run, format!("{who} has priority {} now, says {}", entry.priority, entry.by))
}

pub(super) fn yield_requested(entry: &YieldRequested, names: &Names) -> Saying {
    let whom = whom(entry.to, names);
    Saying::detail(match entry.due {
        Some(_) => format!("asked to yield to {whom}"),
        None => format!("waits for its model no longer, to yield to {whom}"),
    })
}

pub(super) fn suspended(actor: ActorKey, entry: &SubAgentSuspended) -> Saying {
    Saying::detail(format!(
        "the agent it waits for is suspended: {}",
        outcome_in_words(actor.run(), &entry.outcome)
    ))
}

fn whom(session: Option<SessionId>, names: &Names) -> String {
    session.map_or_else(|| "those that wait".to_owned(), |session| names.in_words(session))
}

pub(super) fn goes_on() -> Saying {
    Saying::detail("the agent it waits for goes on")
}
