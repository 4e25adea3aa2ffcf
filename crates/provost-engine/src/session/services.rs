//! The services of a session: commands that go on after the run. They belong to no segment: what is seen of them counts
//! at any time, also while the session is suspended or has ended.

use std::collections::BTreeMap;

use provost_event::{ItemKind, ServiceEvent, ServiceKept, ServiceNoted, ToolFinished};
use serde::{Deserialize, Serialize};

use super::Deciding;

/// Maximum characters of a command where services are named.
const COMMAND_CHARS_MAX: usize = 80;

/// The services that a session has started, as far as its log knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Services {
    /// Those that run, by name.
    running: BTreeMap<String, ServiceKept>,
    /// Those that have ended while the agent wasn't worked on, in words.
    ended_meanwhile: Vec<String>,
}

impl Services {
    pub(super) fn tool_finished(&mut self, finished: &ToolFinished) {
        if let Some(service) = &finished.facts.service {
            self.running.insert(service.name.clone(), (**service).clone());
        }
    }

    pub(super) fn noted(&mut self, noted: &ServiceNoted, is_worked_on: bool) {
        match &noted.event {
            ServiceEvent::Found(service) => {
                self.running.insert(noted.name.clone(), (**service).clone());
            }
            ServiceEvent::Ended { how, .. } => {
                let ended = self.running.remove(&noted.name);
                if let Some(ended) = ended.filter(|_| !is_worked_on) {
                    self.ended_meanwhile.push(format!("{} {how}", in_words(&ended)));
                }
            }
        }
    }

    /// The agent is worked on again, and was told.
    pub(super) fn resumed(&mut self) {
        self.ended_meanwhile.clear();
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &ServiceKept> {
        self.running.values()
    }

    fn is_news(&self, noted: &ServiceNoted) -> bool {
        let known = self.running.get(&noted.name).filter(|known| known.supervisor == noted.supervisor);
        match &noted.event {
            ServiceEvent::Found(_) => known.is_none(),
            ServiceEvent::Ended { .. } => known.is_some(),
        }
    }

    /// What the agent is told when it is worked on again; `None` if it has no services.
    fn summary(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.running.is_empty() {
            let running = self.running.values().map(in_words).collect::<Vec<_>>().join(", ");
            parts
                .push(format!("Services that you started still run: {running}. `jobs` shows and ends them."));
        }
        if !self.ended_meanwhile.is_empty() {
            let ended = self.ended_meanwhile.join("; ");
            parts.push(format!("Services that have ended meanwhile: {ended}."));
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

/// What was seen of a service.
pub(super) fn noted(deciding: &mut Deciding<'_>, noted: ServiceNoted) {
    if !deciding.state.services.is_news(&noted) {
        return;
    }
    let is_worked_on = deciding.state.lifecycle.outcome().is_none();
    let told = match &noted.event {
        ServiceEvent::Ended { how, by_agent: false } => Some(format!("The service `{}` {how}.", noted.name)),
        ServiceEvent::Ended { .. } | ServiceEvent::Found(_) => None,
    };
    deciding.commit(noted);
    if let Some(body) = told.filter(|_| is_worked_on) {
        deciding.say(ItemKind::ServiceEnded, body);
    }
}

/// What the agent is to be told of its services once it is worked on again; taken before the entry that says so.
pub(super) fn summary(deciding: &Deciding<'_>) -> Option<String> {
    deciding.state.services.summary()
}

fn in_words(service: &ServiceKept) -> String {
    let first = service.command.trim().lines().next().unwrap_or_default();
    let shown = first.chars().take(COMMAND_CHARS_MAX).collect::<String>();
    let more = if shown.len() < service.command.trim().len() { " …" } else { "" };
    format!("{} (`{shown}{more}`)", service.name)
}
