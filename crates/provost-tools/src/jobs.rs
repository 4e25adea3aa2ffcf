//! `jobs`: the background commands and the services of `shell`, read, waited for and ended.

mod files;
mod pool;
mod services;

use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, ActorKey, CallFacts, Json, SessionId, ToolSpec, ToolSubject};
use provost_harness::{BLOB_URI, Services, Tool, ToolContext, ToolOutput};
use provost_process::LogFile;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::{Failure, chain};
use crate::form::{form, named};
use crate::shell::plain;
use crate::spec::About;
use files::JobName;
pub use pool::BackgroundJobs;

/// The longest wait of a call.
const WAIT_MAX: Duration = Duration::from_secs(590);

/// Bytes shown of the end of a running job's output, and of an ended one's.
const SHOWN_RUNNING_BYTES: usize = 2 * 1024;
const SHOWN_ENDED_BYTES: usize = 16 * 1024;

const DESCRIPTION: &str = "Background jobs and services of `shell`: the state of one and the end of its output, or without `job` a \
list. Wait long rather than polling; waits may be repeated.";

/// Shows, awaits and ends the background jobs of its session.
///
/// # Cancellation
/// The wait ends; the jobs go on.
#[derive(Debug, Clone)]
pub struct Jobs {
    spec: ToolSpec,
    jobs: BackgroundJobs,
    services: Option<Services>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    job: Option<String>,
    /// To wait for its end; at most 590.
    wait_secs: Option<u64>,
    stop: Option<bool>,
}

impl Jobs {
    /// A tool for these jobs.
    #[must_use]
    pub fn new(jobs: BackgroundJobs) -> Self {
        let about = About {
            name: "jobs",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::Own,
            aliases: &[],
            forms: vec![form(&["BashOutput", "bash_output"], vec![named("job", &["bash_id", "shell_id"])])],
            grammar: None,
            summary_field: Some("job"),
            idempotent: true,
            timeout: Duration::from_secs(620),
        };
        Self { spec: about.spec::<Arguments>(), jobs, services: None }
    }

    /// Shows and ends the services of the agent's run in this folder, too.
    #[must_use]
    pub fn with_services(mut self, services: Services) -> Self {
        self.services = Some(services);
        self
    }

    fn list(&self, session: SessionId) -> ToolOutput {
        let all = self.jobs.all(session);
        let lines = all.iter().map(|job| format!("{job}: {}", self.jobs.state(session, job.name)));
        let mut lines = lines.collect::<Vec<_>>();
        lines.extend(self.services_in_words(session));
        let text =
            if lines.is_empty() { "There are no background jobs.".to_owned() } else { lines.join("\n") };
        let facts = self.facts(session, self.jobs.is_any_running(session));
        ToolOutput { facts, ..ToolOutput::ok(text) }
    }

    async fn one(
        &self,
        session: SessionId,
        name: JobName,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> ToolOutput {
        let Some(known) = self.jobs.known(session, name) else {
            return self.unknown(session, &name.to_string());
        };
        let running = self.jobs.running(session, name);
        let was_running = running.as_ref().is_some_and(|job| job.end().is_none());
        if let Some(running) = running {
            let wait = Duration::from_secs(arguments.wait_secs.unwrap_or_default()).min(WAIT_MAX);
            let done = async {
                if arguments.stop == Some(true) {
                    running.stop();
                    running.ended().await;
                } else {
                    self.jobs.wait(&running, wait).await;
                }
            };
            if context.cancel.run_until_cancelled(done).await.is_none() {
                return Failure::Cancelled.into_output();
            }
        }
        let state = self.jobs.state(session, name);
        let shown_bytes = if state.is_running() { SHOWN_RUNNING_BYTES } else { SHOWN_ENDED_BYTES };
        let log = self.jobs.log(session, name);
        let whole = format!("read_file and search take the whole as path \"{BLOB_URI}{name}\"");
        let shown = tokio::task::spawn_blocking(move || output_of(&log, shown_bytes, &whole)).await;
        let shown = shown.unwrap_or_else(|error| error.to_string());
        let facts = self.facts(session, was_running);
        ToolOutput { facts, ..ToolOutput::ok(format!("{known}: {state}\n{shown}")) }
    }

    fn unknown(&self, session: SessionId, name: &str) -> ToolOutput {
        let mut all = self.jobs.all(session).iter().map(|job| job.name.to_string()).collect::<Vec<_>>();
        all.extend(self.services_of(session).into_iter().map(|service| service.name));
        let there = if all.is_empty() {
            "none was started".to_owned()
        } else {
            format!("there is {}", all.join(", "))
        };
        ToolOutput::rejected(format!(
            "there is no job `{name}`: {there}; `shell` with `background` starts one"
        ))
    }

    fn facts(&self, session: SessionId, waited: bool) -> CallFacts {
        let CallFacts { ended, .. } = self.jobs.facts(session);
        CallFacts { waited, jobs: Some(self.jobs.running_in_words(session)), ended, ..CallFacts::default() }
    }
}

#[async_trait]
impl Tool for Jobs {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let session = match session_of(context) {
            Ok(session) => session,
            Err(output) => return output,
        };
        let output = match arguments.job.as_deref() {
            None => self.list(session),
            Some(text) => match text.parse::<JobName>() {
                Ok(name) => self.one(session, name, &arguments, context).await,
                Err(()) => match self.services_of(session).into_iter().find(|service| service.name == text) {
                    Some(service) => self.service(service, &arguments, context).await,
                    None => self.unknown(session, text),
                },
            },
        };
        arguments::limited(
            output,
            "wait_secs",
            arguments.wait_secs.map(u128::from),
            WAIT_MAX.as_secs().into(),
        )
    }

    fn session_over(&self, session: SessionId) {
        self.jobs.clear(session);
    }
}

/// The session of a call: only an agent has jobs.
pub(crate) fn session_of(context: &ToolContext) -> Result<SessionId, ToolOutput> {
    match context.effect.actor {
        ActorKey::Session(session) => Ok(session),
        ActorKey::Run(_) => Err(ToolOutput::error("only an agent can have background jobs")),
    }
}

/// The end of the output of a job or service; `whole` says where the rest is.
pub(crate) fn output_of(log: &std::path::Path, bytes_max: usize, whole: &str) -> String {
    let end = match LogFile::read_end(log, bytes_max) {
        Ok(end) => end,
        Err(error) => return format!("[its log can't be read: {}]", chain(&error)),
    };
    if end.bytes.is_empty() {
        return "[no output]".to_owned();
    }
    let text = plain(&String::from_utf8_lossy(&end.bytes));
    let note = if end.is_cut { format!("[its end; {whole}]\n") } else { String::new() };
    format!("{note}{}", text.trim_end_matches('\n'))
}
