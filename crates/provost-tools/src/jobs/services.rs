//! The services of the agent's run, beside its jobs.

use std::time::Duration;

use provost_event::{CallFacts, SessionId};
use provost_harness::{ServiceRecord, ServiceState, StoppedBy, ToolContext, ToolOutput};

use super::{Arguments, Jobs, SHOWN_ENDED_BYTES, SHOWN_RUNNING_BYTES, WAIT_MAX, output_of};
use crate::failure::{Failure, chain};

/// The interval at which a service that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Jobs {
    /// The services of the agent's run, those that have ended too.
    pub(super) fn services_of(&self, session: SessionId) -> Vec<ServiceRecord> {
        self.services.as_ref().map(|services| services.of_run(session.run)).unwrap_or_default()
    }

    pub(super) fn services_in_words(&self, session: SessionId) -> Vec<String> {
        self.services_of(session).iter().map(line).collect()
    }

    pub(super) async fn service(
        &self,
        service: ServiceRecord,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> ToolOutput {
        let Some(services) = &self.services else {
            return ToolOutput::rejected("there are no services here");
        };
        let was_running = service.state() == ServiceState::Running;
        if arguments.stop == Some(true) {
            if let Err(error) = services.stop(&service.name, &StoppedBy::Agent).await {
                return ToolOutput::error(chain(&error));
            }
        } else if was_running {
            let wait = Duration::from_secs(arguments.wait_secs.unwrap_or_default()).min(WAIT_MAX);
            let ended = async {
                while service.state() == ServiceState::Running && is_recorded_as(services, &service) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let waited = async {
                tokio::select! {
                    biased;
                    () = ended => {}
                    () = self.jobs.pause(wait) => {}
                }
            };
            if context.cancel.run_until_cancelled(waited).await.is_none() {
                return Failure::Cancelled.into_output();
            }
        }
        let service = services.get(&service.name).unwrap_or(service);
        let is_running = service.state() == ServiceState::Running;
        let shown_bytes = if is_running { SHOWN_RUNNING_BYTES } else { SHOWN_ENDED_BYTES };
        let log = service.log.clone();
        let shown = tokio::task::spawn_blocking(move || {
            output_of(&log, shown_bytes, "`provost services` shows where the whole is")
        })
        .await;
        let shown = shown.unwrap_or_else(|error| error.to_string());
        let facts = CallFacts { waited: was_running, ..CallFacts::default() };
        ToolOutput { facts, ..ToolOutput::ok(format!("{}\n{shown}", line(&service))) }
    }
}

fn line(service: &ServiceRecord) -> String {
    let command = service.command.trim().lines().next().unwrap_or_default();
    format!("service {} (`{command}`): {}", service.name, service.state())
}

/// Whether the record is still about the same service, and without an end.
fn is_recorded_as(services: &provost_harness::Services, service: &ServiceRecord) -> bool {
    services.get(&service.name).is_some_and(|now| now == *service)
}
