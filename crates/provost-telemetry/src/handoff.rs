//! Changes of a run's agents in its log. Events on the run's span.

use opentelemetry::KeyValue;
use provost_event::{AgentEntry, Entry, SessionId};

use crate::content::Sieve;
use crate::decisions::SpanEvent;
use crate::names;
use crate::span::whole;

const HANDOFF: &str = "provost.handoff";
const SLOT: &str = "provost.slot";

/// The event for `entry`; none for entries that are neither a handoff nor a change of a slot.
pub(crate) fn told(entry: &Entry, sieve: &Sieve) -> Option<SpanEvent> {
    let state = |name: &'static str, state: &'static str, child: SessionId| {
        (name, vec![KeyValue::new("provost.child", child.to_string()), KeyValue::new("provost.state", state)])
    };
    match entry {
        Entry::Agent(AgentEntry::Spawned(spawned)) => {
            let (name, mut all) = state(HANDOFF, "asked", spawned.child);
            let parent = spawned.parent.map(|parent| parent.to_string());
            all.extend(parent.map(|parent| KeyValue::new("provost.parent", parent)));
            all.extend(
                spawned.brief.agent.as_ref().map(|kind| KeyValue::new(names::AGENT_KIND, sieve.label(kind))),
            );
            all.push(KeyValue::new("provost.priority", spawned.priority.name()));
            all.push(KeyValue::new("provost.depth", whole(spawned.depth.into())));
            all.extend(sieve.text(&spawned.brief.goal).map(|goal| KeyValue::new(names::GOAL, goal)));
            Some((name, all))
        }
        Entry::Agent(AgentEntry::AskedAgain(asked)) => {
            let (name, mut all) = state(HANDOFF, "asked again", asked.child);
            all.push(KeyValue::new("provost.parent", asked.parent.to_string()));
            all.push(KeyValue::new("provost.priority", asked.priority.name()));
            all.extend(sieve.text(&asked.text).map(|goal| KeyValue::new(names::GOAL, goal)));
            Some((name, all))
        }
        Entry::Agent(AgentEntry::Finished(finished)) => {
            let (name, mut all) = state(HANDOFF, "done", finished.child);
            all.push(KeyValue::new(names::OUTCOME, finished.outcome.word()));
            Some((name, all))
        }
        Entry::Agent(AgentEntry::YieldRequested(yields)) => {
            let (name, mut all) = state(SLOT, "yields", yields.child);
            all.extend(yields.to.map(|to| KeyValue::new("provost.slot.to", to.to_string())));
            Some((name, all))
        }
        Entry::Agent(AgentEntry::Suspended(paused)) => {
            let (name, mut all) = state(SLOT, "suspended", paused.child);
            all.push(KeyValue::new(names::OUTCOME, paused.outcome.word()));
            Some((name, all))
        }
        _ => None,
    }
}
