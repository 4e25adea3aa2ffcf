//! The agents of a run: never more working than there are slots, none forgotten, each reported as it ended.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{AgentEntry, Entry, LifecycleEntry, Outcome, SessionId, Timestamp};

use super::super::evidence::Evidence;
use super::super::scenario::{ROOT, RUN};
use super::Breaches;

/// An agent's state by the run's log.
#[derive(Default)]
struct Agent {
    parent: Option<SessionId>,
    is_at_work: bool,
    /// It was preempted, or has yet to begin.
    wants_slot: bool,
    ends: usize,
}

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let Some(log) = seen.logs.get(&RUN.into()) else { return };
    let slots = log.iter().find_map(|record| match &record.entry {
        Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => Some(started.policy.spawn.slots()),
        _ => None,
    });
    let root = Agent { is_at_work: true, ..Agent::default() };
    let (mut agents, slots) = (BTreeMap::from([(ROOT, root)]), slots.unwrap_or_default());
    let mut before = Timestamp::default();
    for record in log {
        // Entries of one decision have the same time.
        if record.at != before {
            waits_have_a_reason(&agents, slots, record.seq.0, found);
        }
        before = record.at;
        take(&record.entry, &mut agents, found);
        let at_work = agents.values().filter(|agent| agent.is_at_work).count();
        if at_work > slots {
            found.wrong(format!("at entry {} of the run {at_work} agents work", record.seq));
        }
    }
    let sub_agents = agents.iter().filter(|(session, _)| **session != ROOT);
    for (session, agent) in sub_agents.filter(|_| seen.rest.outcome.is_final()) {
        found.one(agent.ends, || format!("end of {session} in the run's log"));
    }
}

fn take(entry: &Entry, agents: &mut BTreeMap<SessionId, Agent>, found: &mut Breaches) {
    match entry {
        Entry::Agent(AgentEntry::Spawned(spawned)) => {
            let agent = Agent { parent: spawned.parent, wants_slot: true, ..Agent::default() };
            if agents.insert(spawned.child, agent).is_some() {
                found.doubled(format!("{} was asked for twice", spawned.child));
            }
        }
        Entry::Agent(AgentEntry::AskedAgain(asked)) => {
            let agent = agents.entry(asked.child).or_default();
            if agent.ends == 0 {
                found.wrong(format!("{} was asked again before it had delivered", asked.child));
            }
            (agent.ends, agent.wants_slot) = (0, true);
        }
        Entry::Agent(AgentEntry::Started(started)) => {
            let agent = agents.entry(started.child).or_default();
            if agent.is_at_work || agent.ends > 0 {
                found.doubled(format!("the start of {}", started.child));
            }
            (agent.is_at_work, agent.wants_slot) = (true, false);
        }
        Entry::Agent(AgentEntry::Suspended(paused)) => {
            let agent = agents.entry(paused.child).or_default();
            (agent.is_at_work, agent.wants_slot) = (false, paused.outcome.is_preempted());
        }
        Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => {
            let agent = agents.entry(scheduled.agent).or_default();
            if !agent.is_at_work {
                found.wrong(format!("{} fails while it is suspended", scheduled.agent));
            }
            (agent.is_at_work, agent.wants_slot) = (false, false);
        }
        Entry::Agent(AgentEntry::Finished(finished)) => {
            let agent = agents.entry(finished.child).or_default();
            let is_odd = !agent.is_at_work && !matches!(finished.outcome, Outcome::Cancelled { .. });
            if is_odd {
                found.wrong(format!("{} ends while it is suspended", finished.child));
            }
            (agent.is_at_work, agent.wants_slot, agent.ends) = (false, false, agent.ends + 1);
        }
        _ => {}
    }
}

/// While a slot is free, no agent waits for one whose own sub-agents are done.
fn waits_have_a_reason(agents: &BTreeMap<SessionId, Agent>, slots: usize, entry: u64, found: &mut Breaches) {
    let live = |agent: &&Agent| agent.ends == 0;
    let waits_for_others =
        agents.values().filter(live).filter_map(|agent| agent.parent).collect::<BTreeSet<_>>();
    let at_work = agents.values().filter(|agent| agent.is_at_work).count();
    let is_over = agents.get(&ROOT).is_none_or(|root| root.ends > 0);
    for (session, agent) in agents.iter().filter(|_| at_work < slots && !is_over) {
        if agent.wants_slot && !waits_for_others.contains(session) {
            found.wrong(format!("before entry {entry} of the run {session} waits while a slot is free"));
        }
    }
}
