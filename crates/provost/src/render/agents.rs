//! What happens among the agents of a run, in words.

use provost_event::{
    ChildFinished, ChildPaused, ChildRested, ChildResumed, ChildSpawned, ChildStarted, ChildYields, Outcome,
    Reprioritized, SessionId, SlotWish, YieldRequested,
};

use super::context::outcome_in_words;
use super::saying::{Saying, Tag};

pub(super) fn spawned(entry: &ChildSpawned) -> Saying {
    let slot = match entry.slot {
        SlotWish::Free => String::new(),
        SlotWish::After(victim) => format!(", when agent {} has made way", victim.agent),
        SlotWish::InLine => ", when there is a slot".to_owned(),
    };
    let by = entry.parent.map_or_else(String::new, |parent| format!(" for {}", agent(parent)));
    let priority = entry.priority;
    let line = format!("{} ({}, {priority}) begins{by}{slot}", agent(entry.child), entry.brief.name);
    Saying::kept(Tag::Run, line).with(Some(entry.brief.goal.clone()))
}

pub(super) fn started(entry: &ChildStarted) -> Saying {
    Saying::detail(format!("{} has a slot", agent(entry.child)))
}

pub(super) fn yields(entry: &ChildYields) -> Saying {
    let to = entry.to.map_or_else(|| "others".to_owned(), agent);
    Saying::kept(Tag::Run, format!("{} shall make way for {to}", agent(entry.child)))
}

pub(super) fn paused(entry: &ChildPaused) -> Saying {
    let line = format!("{} rests: {}", agent(entry.child), outcome_in_words(&entry.outcome));
    Saying::kept(Tag::Run, line)
}

pub(super) fn resumed(entry: &ChildResumed) -> Saying {
    Saying::kept(Tag::Run, format!("{} shall go on, asked by {}", agent(entry.child), entry.by))
}

pub(super) fn finished(entry: &ChildFinished) -> Saying {
    let line = format!("{} is done: {}", agent(entry.child), outcome_in_words(&entry.outcome));
    match entry.outcome {
        Outcome::Completed { .. } => Saying::kept(Tag::Run, line),
        _ => Saying::kept(Tag::Failed, line),
    }
}

pub(super) fn reprioritized(entry: &Reprioritized) -> Saying {
    let line = format!("{} has priority {} now, says {}", agent(entry.agent), entry.priority, entry.by);
    Saying::kept(Tag::Run, line)
}

pub(super) fn yield_requested(entry: &YieldRequested) -> Saying {
    let to = entry.to.map_or_else(|| "others".to_owned(), agent);
    Saying::detail(format!("shall make way for {to}"))
}

pub(super) fn rested(entry: &ChildRested) -> Saying {
    Saying::detail(format!("the agent it waits for rests: {}", outcome_in_words(&entry.outcome)))
}

fn agent(session: SessionId) -> String {
    format!("agent {}", session.agent)
}
