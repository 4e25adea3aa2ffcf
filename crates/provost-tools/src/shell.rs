//! `shell`: a command in a shell of its own.

mod cwd;
mod output;
mod script;
mod service;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{
    Access, CallFacts, CallForm, Json, SessionId, ToolSpec, ToolStatus, ToolSubject, ValueForm,
};
use provost_harness::{BLOB_URI, Redactor, ServiceStarter, Tool, ToolContext, ToolOutput};
use provost_process::{ChildSpec, Ending, Finished, Launch, MAYBE_LEFT, Stdio, Streams, inherited_env};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::chain;
use crate::form::{form, named, valued};
use crate::jobs::{self, BackgroundJobs};
use crate::spec::About;
use cwd::Cwd;
use script::Script;

pub(crate) use output::plain;
pub(crate) use script::shell_in;

/// Bytes kept of a command's output: half from its beginning, half from its end.
pub const SHELL_KEEP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The maximum time of a command.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The default time of a command.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

/// The minimum time of a command that counts as waiting, but for a sleep that is shorter.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The duration from which on the last line names it.
const SLOW_MIN: Duration = Duration::from_secs(10);

/// Shells add this to the number of a signal that ended a command.
const SIGNALLED: i32 = 128;

/// The time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);

const DESCRIPTION: &str = "Runs a command in bash (or sh) and answers with its output, standard error included. The \
working directory is kept from call to call, as long as it lies in the workspace; variables and functions are not. \
There is no input and no terminal. What the command leaves running is ended with the call: start servers and long work \
with `background`, not `&`.";

/// Runs commands in a shell, one after the other, each in its own process group and session.
///
/// # Cancellation
/// All processes of the command are asked to end and, 2 s later, killed.
#[derive(Debug, Clone)]
pub struct Shell {
    spec: ToolSpec,
    program: Option<OsString>,
    extra_env: Vec<String>,
    variables: Vec<(String, String)>,
    jobs: BackgroundJobs,
    services: Option<ServiceStarter>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command; may have several lines.
    command: String,
    /// Answers at once with a name for `jobs`; runs until it ends or you are done.
    background: Option<bool>,
    /// Like `background`, but outlives your work: only for what the user wants left running.
    keep_running: Option<bool>,
    /// With `keep_running`: its name.
    service: Option<String>,
    /// Runs it outside of the sandbox, once a person agrees: only for what the sandbox denied.
    #[serde(rename = "outside_sandbox")]
    _outside_sandbox: Option<bool>,
    /// Seconds the command may take, at most 600. Default 120.
    timeout_secs: Option<NonZeroU64>,
    /// What it is for, in a few words, for people who watch.
    #[serde(rename = "description")]
    _description: Option<String>,
}

impl Shell {
    /// A tool that uses `bash` if it is installed, else `sh`.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "shell",
            description: DESCRIPTION,
            access: Access::Anything,
            subject: ToolSubject::Command {
                field: "command".to_owned(),
                keeps: Some("keep_running".to_owned()),
                leaves: Some("outside_sandbox".to_owned()),
            },
            aliases: &["Bash"],
            forms: forms(),
            grammar: None,
            summary_field: None,
            idempotent: false,
            timeout: TIMEOUT_MAX,
        };
        Self {
            spec: about.spec::<Arguments>(),
            program: None,
            extra_env: Vec::new(),
            variables: Vec::new(),
            jobs: BackgroundJobs::new(),
            services: None,
        }
    }

    /// Uses `program` as the shell; it must support POSIX syntax.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<OsString>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Passes these environment variables on, also where they look secret.
    #[must_use]
    pub fn with_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.extra_env.extend(names.into_iter().map(Into::into));
        self
    }

    /// Gives commands these variables, which this process may not have itself.
    #[must_use]
    pub fn with_variables(mut self, variables: Vec<(String, String)>) -> Self {
        self.variables = variables;
        self
    }

    /// Starts background commands as these jobs, which a [`Jobs`](crate::Jobs) over the same shows.
    #[must_use]
    pub fn with_jobs(mut self, jobs: BackgroundJobs) -> Self {
        self.jobs = jobs;
        self
    }

    /// Starts services, commands that go on after the run, by this; without it such calls are rejected.
    #[must_use]
    pub fn with_services(mut self, services: ServiceStarter) -> Self {
        self.services = Some(services);
        self
    }

    fn launch(&self, script: &str, cwd: PathBuf, context: &ToolContext) -> Launch {
        let mut env = surroundings(&self.extra_env, &context.secrets);
        set(&mut env, &self.variables);
        Launch {
            program: self.program.clone().unwrap_or_else(|| script::shell_in(&env)),
            args: vec!["-c".into(), script.into()],
            env,
            cwd,
            stdio: Stdio { input: Vec::new(), streams: Streams::Merged },
            confinement: context.sandbox.confinement(),
        }
    }

    /// Starts the command as a job.
    fn start_job(&self, command: &str, context: &ToolContext) -> Result<ToolOutput, ToolOutput> {
        let session = jobs::session_of(context)?;
        script::check(command)?;
        let start = Cwd::remembered(context);
        let spec = ChildSpec {
            launch: self.launch(&with_variables(command, context), start.path, context),
            keep_bytes_max: 0,
            timeout: None,
            grace: GRACE,
            ends_within: None,
        };
        let name = self.jobs.start(session, command, spec)?;
        let text = format!(
            "{}{name} runs in the background; read_file and search take its output as path \"{BLOB_URI}{name}\"",
            start.notice
        );
        let facts = self.jobs.facts(session);
        Ok(ToolOutput { facts, ..ToolOutput::ok(text) })
    }
}

/// Keeps programs from waiting for a person, and from output that is made for a terminal. An editor that git starts
/// leaves the text as it is; others say that there is none.
const NOT_INTERACTIVE: [(&str, &str); 12] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The environment of a command: what an agent's commands inherit, and settings that keep programs from asking.
/// Variables named in `extra` are as this process has them.
fn surroundings(extra: &[String], secrets: &Redactor) -> Vec<(OsString, OsString)> {
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    let mut env = inherited_env(&extra, |value| secrets.holds_known(value));
    let settings = NOT_INTERACTIVE.iter().filter(|(name, _)| !extra.contains(name) || !is_in(&env, name));
    let settings = settings.copied().collect::<Vec<_>>();
    env.retain(|(name, _)| !settings.iter().any(|(set, _)| name == set));
    env.extend(settings.into_iter().map(|(name, value)| (name.into(), value.into())));
    env
}

/// Sets these variables in `env`.
pub(crate) fn set(env: &mut Vec<(OsString, OsString)>, variables: &[(String, String)]) {
    env.retain(|(name, _)| !variables.iter().any(|(set, _)| name == set.as_str()));
    env.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
}

fn is_in(env: &[(OsString, OsString)], name: &str) -> bool {
    env.iter().any(|(known, _)| known == name)
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let fields = |millis: &[&str]| {
        vec![
            valued("command", &["cmd", "script"], ValueForm::Words),
            valued("timeout_secs", millis, ValueForm::Millis),
            named("background", &["run_in_background", "is_background"]),
            named("outside_sandbox", &["with_escalated_permissions", "dangerouslyDisableSandbox"]),
        ]
    };
    let names = [
        "bash",
        "sh",
        "run_shell_command",
        "exec_command",
        "local_shell",
        "container.exec",
        "execute_command",
        "run_command",
        "run_terminal_cmd",
    ];
    // Elsewhere `timeout` is in seconds, or in milliseconds: only with this name there is no doubt.
    vec![
        form(&names, fields(&["timeout_ms", "timeoutMs"])),
        form(&["Bash"], fields(&["timeout_ms", "timeout"])),
    ]
}

/// The arguments in which shells elsewhere take their folder. Permissions follow the folder that a command itself
/// changes to, so that is how a call says it.
const FOLDER_ARGUMENTS: [&str; 5] = ["workdir", "cwd", "working_dir", "working_directory", "directory"];
const FOLDER_REMEDY: &str =
    "The working directory is kept from call to call: begin the command with `cd FOLDER && ` instead.";

/// Whether a call names a folder to run in.
fn names_folder(input: &Json) -> bool {
    let fields = input.read::<serde_json::Map<String, serde_json::Value>>().unwrap_or_default();
    FOLDER_ARGUMENTS.iter().any(|name| fields.contains_key(*name))
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn folder(&self, memory: Option<&Json>) -> Option<PathBuf> {
        cwd::folder(memory)
    }

    fn session_over(&self, session: SessionId) {
        self.jobs.clear(session);
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) if names_folder(input) => {
                return ToolOutput { text: format!("{}\n{FOLDER_REMEDY}", misfit.text), ..misfit };
            }
            Err(misfit) => return misfit,
        };
        if arguments.keep_running == Some(true) {
            let name = arguments.service.as_deref();
            return self
                .start_service(&arguments.command, name, context)
                .await
                .unwrap_or_else(|failed| failed);
        }
        if arguments.background == Some(true) {
            return self.start_job(&arguments.command, context).unwrap_or_else(|failed| failed);
        }
        let asked = arguments.timeout_secs.map_or(TIMEOUT_DEFAULT, |secs| Duration::from_secs(secs.get()));
        let timeout = asked.min(context.timeout);
        let most = u128::from(context.timeout.as_secs());
        let command = with_variables(&arguments.command, context);
        let script = match Script::new(&command, &*context.sandbox) {
            Ok(script) => script,
            Err(output) => return output,
        };
        let start = Cwd::remembered(context);
        let child = ChildSpec {
            launch: self.launch(script.text(), start.path.clone(), context),
            keep_bytes_max: SHELL_KEEP_BYTES_MAX,
            timeout: Some(timeout),
            grace: GRACE,
            ends_within: context.limit,
        };
        let watch = |piece: &[u8]| context.output.add(piece);
        let running = provost_process::run_watched(child, &watch, &context.cancel);
        match context.output.during(running).await {
            Ok(finished) => {
                let output = report(&finished, timeout, &start, script.final_cwd(), &context.workspace);
                let given = arguments.timeout_secs.map(|secs| u128::from(secs.get()));
                let output = arguments::limited(output, "timeout_secs", given, most);
                let own = facts(&finished, &arguments.command);
                let CallFacts { jobs, ended, .. } =
                    jobs::session_of(context).map(|session| self.jobs.facts(session)).unwrap_or_default();
                ToolOutput { facts: CallFacts { jobs, ended, ..own }, ..output }
            }
            Err(error) => ToolOutput::error(chain(&error)),
        }
    }
}

/// `command` after the variables that hooks have left for it. In a sandbox their file isn't seen, so its lines are put
/// before the command.
pub(crate) fn with_variables(command: &str, context: &ToolContext) -> String {
    let text = context.env_file.as_deref().and_then(|file| Some((file, std::fs::read_to_string(file).ok()?)));
    match text.filter(|(_, text)| !text.is_empty()) {
        Some((_, text)) if context.sandbox.confines() => format!("{text}\n{command}"),
        Some((file, _)) => {
            let quoted = file.display().to_string().replace('\'', "'\\''");
            format!(". '{quoted}'\n{command}")
        }
        None => command.to_owned(),
    }
}

/// The output for the model: the command's output, the changed working directory, and how it ended.
fn report(
    finished: &Finished,
    timeout: Duration,
    start: &Cwd,
    last: Option<PathBuf>,
    workspace: &Path,
) -> ToolOutput {
    let mut text = start.notice.clone();
    text.push_str(&plain(&finished.stdout.to_text_lossy()));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let end = start.end(last.as_deref(), workspace);
    text.push_str(&end.notice);
    let (status, last_line) = ending(finished, timeout);
    text.push_str(&last_line);
    text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
    if text.is_empty() {
        text.push_str("[no output]");
    }
    ToolOutput { status, memory: end.memory, ..ToolOutput::ok(text) }
}

/// Facts about an ended command, besides its output.
fn facts(finished: &Finished, command: &str) -> CallFacts {
    let exit_status = match finished.ending {
        Ending::Exited(code) => Some(code),
        Ending::Signalled(signal) => Some(SIGNALLED.saturating_add(signal)),
        Ending::Cancelled | Ending::TimedOut => None,
    };
    let waited = wait_min(command).is_some_and(|least| finished.duration >= least);
    CallFacts { exit_status, waited, ..CallFacts::default() }
}

/// The minimum time that a command takes if it waits: it sleeps, or follows a file. `None` if it doesn't.
fn wait_min(command: &str) -> Option<Duration> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')');
    let words = command.split(is_end).filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let pairs = words.iter().zip(words.iter().skip(1));
    let waits = pairs.filter_map(|(word, next)| match *word {
        "sleep" => sleep_min(next),
        "tail" => matches!(*next, "-f" | "-F" | "--follow").then_some(WAIT_MIN),
        _ => None,
    });
    waits.min()
}

/// The minimum time of a sleep of this length, at most [`WAIT_MIN`]; `None` for none. The value of a variable isn't known.
fn sleep_min(length: &str) -> Option<Duration> {
    if length.starts_with('$') {
        return Some(WAIT_MIN);
    }
    let secs =
        length.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f64>().ok().filter(|secs| *secs > 0.0)?;
    Some(Duration::try_from_secs_f64(secs).unwrap_or(WAIT_MIN).min(WAIT_MIN))
}

/// How it ended, for the engine and for the model.
fn ending(finished: &Finished, timeout: Duration) -> (ToolStatus, String) {
    let mut line = String::new();
    // Writing to a string can't fail.
    let after = match finished.duration {
        slow if slow >= SLOW_MIN => format!(" after {} s", slow.as_secs()),
        // Equal results of equal calls stay equal.
        _ => String::new(),
    };
    let status = match finished.ending {
        Ending::Exited(0) if after.is_empty() => ToolStatus::Ok,
        Ending::Exited(code) => {
            let _ = write!(line, "exit status {code}{after}");
            if code == 0 { ToolStatus::Ok } else { ToolStatus::Error }
        }
        Ending::Signalled(signal) => {
            let _ = write!(line, "ended by signal {signal}{after}");
            ToolStatus::Error
        }
        // The call's own limit cancels at the same moment.
        Ending::Cancelled if finished.duration < timeout => {
            let _ = write!(line, "cancelled: {}", ended(finished));
            ToolStatus::Cancelled
        }
        Ending::TimedOut | Ending::Cancelled => {
            let secs = timeout.as_secs_f64();
            let _ = write!(line, "timed out after {secs} s: {}", ended(finished));
            ToolStatus::TimedOut
        }
    };
    if !finished.is_all_ended && matches!(finished.ending, Ending::Exited(_) | Ending::Signalled(_)) {
        let _ = write!(line, "{}[{MAYBE_LEFT}]", if line.is_empty() { "" } else { "\n" });
    }
    (status, line)
}

fn ended(finished: &Finished) -> &'static str {
    if finished.is_all_ended { "the command and everything it started was ended" } else { MAYBE_LEFT }
}
