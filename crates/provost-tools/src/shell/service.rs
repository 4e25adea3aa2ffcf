//! `keep_running`: commands that go on after the run.

use std::path::PathBuf;
use std::time::Duration;

use provost_event::CallFacts;
use provost_harness::{ServiceError, ServiceRequest, ServiceState, ToolContext, ToolOutput};

use super::{Cwd, Shell, script, set, surroundings};
use crate::failure::chain;
use crate::jobs::{self, output_of};

/// Bytes shown of the output of a service that has ended at once.
const SHOWN_BYTES: usize = 8 * 1024;

impl Shell {
    /// Starts the command as a service.
    pub(super) async fn start_service(
        &self,
        command: &str,
        name: Option<&str>,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolOutput> {
        let session = jobs::session_of(context)?;
        script::check(command)?;
        let Some(starter) = &self.services else {
            return Err(ToolOutput::rejected("`keep_running` isn't possible here: use `background`"));
        };
        let start = Cwd::remembered(context);
        let mut env = surroundings(&self.extra_env, &context.secrets);
        set(&mut env, &self.variables);
        let shell = self.program.clone().unwrap_or_else(|| script::shell_in(&env));
        let request = ServiceRequest {
            name,
            command,
            shell: PathBuf::from(shell),
            env,
            cwd: start.path,
            workspace: &context.workspace,
            session,
            sandbox: context.sandbox.policy().cloned().unwrap_or_default(),
        };
        let service = starter.start(request).await.map_err(|error| refused(&error))?;
        let state = service.state();
        match (&state, service.kept()) {
            (ServiceState::Running, Some(kept)) => {
                let text = format!(
                    "{}service `{}` runs; its output goes to {}. It goes on after you are done, for {} at most; `jobs` \
                     shows and ends it.",
                    start.notice,
                    service.name,
                    service.log.display(),
                    in_words(starter.keep),
                );
                let facts = CallFacts { service: Some(Box::new(kept)), ..CallFacts::default() };
                Ok(ToolOutput { facts, ..ToolOutput::ok(text) })
            }
            _ => {
                let log = service.log.clone();
                let shown = tokio::task::spawn_blocking(move || {
                    output_of(&log, SHOWN_BYTES, "`provost services` shows where the whole is")
                })
                .await;
                let shown = shown.unwrap_or_else(|error| error.to_string());
                Err(ToolOutput::error(format!("the service `{}` {state}\n{shown}", service.name)))
            }
        }
    }
}

fn refused(error: &ServiceError) -> ToolOutput {
    let why = chain(error);
    match error {
        ServiceError::Name { .. } => ToolOutput::rejected(why),
        ServiceError::Taken { .. } => {
            ToolOutput::rejected(format!("{why}: use it, or give this one another name"))
        }
        ServiceError::TooMany { .. } => ToolOutput::error(format!("{why}: end one with `jobs`")),
        ServiceError::Unsupported => ToolOutput::rejected(format!("{why}: use `background`")),
        ServiceError::Unknown { .. }
        | ServiceError::File { .. }
        | ServiceError::Record { .. }
        | ServiceError::Supervisor { .. }
        | ServiceError::StillRuns { .. } => ToolOutput::error(why),
    }
}

/// A duration in its largest whole unit.
fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        secs @ 0..120 => format!("{secs} s"),
        secs @ 120..7_200 => format!("{} min", secs / 60),
        secs => format!("{} h", secs / 3_600),
    }
}
