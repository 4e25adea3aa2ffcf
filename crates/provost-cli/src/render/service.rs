//! What is said of services.

use provost_event::{ServiceEvent, ServiceKept, ServiceNoted};

use super::saying::{Saying, Tag};
use crate::commands::date_and_time;

pub(super) fn service_noted(entry: &ServiceNoted) -> Saying {
    match &entry.event {
        ServiceEvent::Found(service) => Saying::kept(Tag::Run, kept_in_words(service)),
        ServiceEvent::Ended { how, .. } => Saying::kept(Tag::Run, format!("service `{}` {how}", entry.name)),
    }
}

/// That a command goes on after the run.
pub(super) fn kept_in_words(service: &ServiceKept) -> String {
    format!(
        "service `{}` goes on after the run, until {} at the latest (pid {})",
        service.name,
        date_and_time(service.expires),
        service.supervisor.pid
    )
}
