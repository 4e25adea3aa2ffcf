//! `terminal`: interactive programs at terminals of their own, which survive the call.

mod keys;
mod pool;
mod seen;

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{
    Access, ActorKey, CallFacts, EndedCommand, Exit, Json, SessionId, TerminalState, ToolSpec, ToolSubject,
    WindowSize,
};
use provost_harness::{FileReach, Tool, ToolContext, ToolOutput};
use provost_process::{
    AtTerminal, EventSubscription, Launch, MAYBE_LEFT, PtyError, PtyOptions, PtySupervisor, QuitPlan,
    TerminalView, inherited_env,
};
use provost_terminal::{Detector, Profile};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::arguments;
use crate::failure::{Failure, chain};
use crate::shell::{set, shell_in, with_variables};
use crate::spec::About;
use crate::workspace::Workspace;
use keys::Key;
use pool::{Held, TerminalPool};

/// The longest wait of a call for a program.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The default wait.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// How long a program in an unknown state must have been silent to count as waiting.
const QUIET: Duration = Duration::from_secs(2);

/// The same if its state is working, or after input.
const QUIET_AT_WORK: Duration = Duration::from_secs(5);

/// How long a program may take to react to input, before its earlier state counts again.
const REACTS: Duration = Duration::from_millis(500);

/// How long a prompt must last.
const STANDS: Duration = Duration::from_millis(150);

/// The interval of checks.
const LOOK: Duration = Duration::from_millis(40);

/// The pause between a text and the return that submits it: programs take both at once for a paste.
const SUBMIT_PAUSE: Duration = Duration::from_millis(300);

/// How long a program may take to end after the request; at most this part of the session's remaining time when it
/// is started or stopped.
const GRACE: Duration = Duration::from_secs(2);
const GRACE_DIVISOR: u32 = 10;

/// Maximum bytes typed by one call.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The signal of Ctrl-C, and the status of a shell whose program it ended.
const SIGINT: i32 = 2;
const INTERRUPTED: i32 = 130;

/// The default name of a terminal.
const ONLY: &str = "main";

const DESCRIPTION: &str = "An interactive program at a terminal: `start` a command line, `send` it text or keys, `read` \
its screen, `stop` it. It stays from call to call; each answers with the screen once the program waits. For \
what asks for input or draws a screen, or servers you watch. Passwords can't be typed.";

/// Runs interactive programs, each at a terminal that outlives the call.
///
/// They end with their session, with `stop`, and with Provost. An agent can only use its own.
///
/// # Cancellation
/// A program that was being started is ended; others continue. Typed input stays typed.
#[derive(Clone)]
pub struct Terminal {
    spec: ToolSpec,
    extra_env: Vec<String>,
    variables: Vec<(String, String)>,
    pool: Arc<TerminalPool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    /// To start.
    command: Option<String>,
    /// To start in.
    cwd: Option<String>,
    rows: Option<NonZeroU16>,
    cols: Option<NonZeroU16>,
    /// To type.
    text: Option<String>,
    /// Whether a return follows the text. Default: if no keys do.
    submit: Option<bool>,
    /// To press after the text: `Enter`, `Esc`, `Up`, `F1`, `Ctrl-C`, `Alt-x`, ….
    keys: Option<Vec<String>>,
    /// At most 120000; default 10000.
    wait_ms: Option<u64>,
    /// Which, of several; at most four.
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Send,
    Read,
    Stop,
}

impl Terminal {
    /// A tool without programs.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "terminal",
            description: DESCRIPTION,
            access: Access::Anything,
            subject: ToolSubject::Typed {
                fields: ["command", "text"].map(str::to_owned).to_vec(),
                keys: Some("keys".to_owned()),
                submit: Some("submit".to_owned()),
            },
            aliases: &[],
            forms: Vec::new(),
            grammar: None,
            summary_field: None,
            idempotent: false,
            timeout: Duration::from_secs(600),
        };
        Self {
            spec: about.spec::<Arguments>(),
            extra_env: Vec::new(),
            variables: Vec::new(),
            pool: Arc::default(),
        }
    }

    /// Passes these environment variables on, also where they look secret.
    #[must_use]
    pub fn with_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.extra_env.extend(names.into_iter().map(Into::into));
        self
    }

    /// Gives programs these variables, which this process may not have itself.
    #[must_use]
    pub fn with_variables(mut self, variables: Vec<(String, String)>) -> Self {
        self.variables = variables;
        self
    }

    async fn start(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, ToolOutput> {
        let session = session_of(context)?;
        let line = arguments.command.as_deref().map(str::trim).filter(|line| !line.is_empty());
        let line =
            line.ok_or_else(|| ToolOutput::rejected("`start` needs `command`, the command line to run"))?;
        let id = arguments.id.as_deref().unwrap_or(ONLY);
        let place = self.pool.reserve(session, id)?;
        let launch = self.launch(line, arguments, cwd(arguments, context)?, context);
        let mut options = PtyOptions::new(Detector::of_terminal(Arc::new(profile(line))));
        options.hears_events = EventSubscription::Unwanted;
        options.grace = grace(context);
        let started = context.cancel.run_until_cancelled(PtySupervisor::spawn(launch, options)).await;
        let pty = started.ok_or_else(cancelled)?.map_err(|error| ToolOutput::error(chain(&error)))?;
        let held = place.put(Held { line: line.to_owned(), pty, is_told: AtomicBool::new(false) });
        match self.looks(&held, arguments, context).await {
            Ok(output) => Ok(output),
            Err(output) => {
                if context.cancel.is_cancelled() {
                    self.pool.take(session, id);
                }
                Err(output)
            }
        }
    }

    fn launch(
        &self,
        line: &str,
        arguments: &Arguments,
        cwd: PathBuf,
        context: &ToolContext,
    ) -> Launch<AtTerminal> {
        let extra: Vec<&str> = self.extra_env.iter().map(String::as_str).collect();
        let env = inherited_env(&extra, |value| context.secrets.holds_known(value));
        let mut env = env.into_iter().filter(|(name, _)| name != "TERM").collect::<Vec<_>>();
        set(&mut env, &self.variables);
        let usual = WindowSize::default();
        let side = |given: Option<NonZeroU16>, usual: u16| given.map_or(usual, NonZeroU16::get);
        let size = WindowSize::new(side(arguments.rows, usual.rows), side(arguments.cols, usual.cols));
        Launch {
            program: shell_in(&env),
            args: vec!["-c".into(), with_variables(line, context).into()],
            env,
            cwd,
            stdio: AtTerminal { size },
            confinement: context.sandbox.confinement(),
        }
    }

    async fn send(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, ToolOutput> {
        let held = self.held(arguments, context)?;
        let keys = keys::read(arguments.keys.as_deref().unwrap_or_default()).map_err(ToolOutput::rejected)?;
        let text = arguments.text.as_deref().unwrap_or_default();
        let submits = arguments.submit.unwrap_or(arguments.text.is_some() && keys.is_empty());
        if text.is_empty() && keys.is_empty() && !submits {
            return Err(ToolOutput::rejected("`send` needs `text` or `keys`"));
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(ToolOutput::rejected(format!(
                "`text` has more than {TEXT_BYTES_MAX} bytes: send it in parts"
            )));
        }
        let before = held.pty.view().await.map_err(gone)?;
        let typing = async {
            type_all(&held.pty, text, submits, &keys).await?;
            reacts(&held.pty, &before).await;
            Ok(())
        };
        context.cancel.run_until_cancelled(typing).await.ok_or_else(cancelled)??;
        self.looks(&held, arguments, context).await
    }

    async fn stop(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, ToolOutput> {
        let session = session_of(context)?;
        let held = self.held(arguments, context)?;
        self.pool.take(session, arguments.id.as_deref().unwrap_or(ONLY));
        let was_running = held.pty.is_running();
        let plan = QuitPlan { steps: Vec::new(), grace: grace(context) };
        let exit = held.pty.end(plan).await;
        let view = held.pty.view().await.map_err(gone)?;
        let own_end = if was_running { Vec::new() } else { untold_end(&held, &exit) };
        let facts = CallFacts { ended: own_end, ..CallFacts::default() };
        let ended = seen::ended(&held.line, exit, &view);
        let is_left = !held.pty.is_all_ended();
        let text = if is_left { format!("[{MAYBE_LEFT}]\n{ended}") } else { ended };
        Ok(ToolOutput { facts, ..ToolOutput::ok(text) })
    }

    fn held(&self, arguments: &Arguments, context: &ToolContext) -> Result<Arc<Held>, ToolOutput> {
        let (session, id) = (session_of(context)?, arguments.id.as_deref().unwrap_or(ONLY));
        self.pool.get(session, id).ok_or_else(|| {
            let there = self.pool.names(session);
            let there = if there.is_empty() {
                "none runs".to_owned()
            } else {
                format!("there is {}", there.join(", "))
            };
            ToolOutput::rejected(format!("there is no terminal `{id}`: {there}; `start` begins one"))
        })
    }

    /// The same without typing: while the program runs, the call only observes.
    async fn reads(
        &self,
        held: &Held,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolOutput> {
        let output = self.looks(held, arguments, context).await?;
        let facts = CallFacts { waited: held.pty.is_running(), ..output.facts };
        Ok(ToolOutput { facts, ..output })
    }

    /// Waits until the program waits, and returns its screen.
    async fn looks(
        &self,
        held: &Held,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolOutput> {
        let wait = arguments.wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis).min(WAIT_MAX);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(cancelled()),
            () = settled(&held.pty) => {}
            () = sleep(wait) => {}
        }
        let view = held.pty.view().await.map_err(gone)?;
        if held.pty.is_running() {
            return Ok(ToolOutput::ok(seen::shown(&held.line, &view)));
        }
        let exit = held.pty.wait().await;
        let facts = CallFacts { ended: untold_end(held, &exit), ..CallFacts::default() };
        Ok(ToolOutput { facts, ..ToolOutput::ok(seen::ended(&held.line, exit, &view)) })
    }
}

/// The end of a program that no call reported before. One that the agent interrupts has done what it was to do.
fn untold_end(held: &Held, exit: &Exit) -> Vec<EndedCommand> {
    let exit_status = match exit {
        Exit::Code(INTERRUPTED) | Exit::Signal(SIGINT) | Exit::Unseen => return Vec::new(),
        Exit::Code(code) => Some(*code),
        Exit::Signal(_) => None,
    };
    if held.is_told.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    vec![EndedCommand { command: held.line.clone(), exit_status }]
}

fn grace(context: &ToolContext) -> Duration {
    context.limit.map_or(GRACE, |limit| GRACE.min(limit / GRACE_DIVISOR))
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Terminal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let arguments: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        let output = match arguments.action {
            Action::Start => self.start(&arguments, context).await,
            Action::Send => self.send(&arguments, context).await,
            Action::Read => match self.held(&arguments, context) {
                Ok(held) => self.reads(&held, &arguments, context).await,
                Err(output) => Err(output),
            },
            Action::Stop => self.stop(&arguments, context).await,
        };
        let output = output.unwrap_or_else(|failed| failed);
        arguments::limited(output, "wait_ms", arguments.wait_ms.map(u128::from), WAIT_MAX.as_millis())
    }

    fn session_over(&self, session: SessionId) {
        self.pool.clear(session);
    }
}

fn session_of(context: &ToolContext) -> Result<SessionId, ToolOutput> {
    match context.effect.actor {
        ActorKey::Session(session) => Ok(session),
        ActorKey::Run(_) => Err(ToolOutput::error("only an agent can have a terminal")),
    }
}

fn cwd(arguments: &Arguments, context: &ToolContext) -> Result<PathBuf, ToolOutput> {
    let Some(asked) = &arguments.cwd else { return Ok(context.workspace.to_path_buf()) };
    let sandbox = Arc::clone(&context.sandbox);
    let place = Workspace::open(context.workspace.clone(), &FileReach::default(), sandbox)
        .and_then(|workspace| workspace.locate(asked));
    let place = place.map_err(Failure::into_output)?;
    if !place.absolute.is_dir() {
        return Err(ToolOutput::error(format!("`{asked}` is no folder")));
    }
    Ok(place.absolute)
}

/// The profile of the program at the beginning of the command line.
fn profile(line: &str) -> Profile {
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = words.next().unwrap_or_default();
    Profile::for_command(&program, &words.collect::<Vec<_>>())
}

/// Waits until the program waits for input, has ended, or has been silent for long.
async fn settled(pty: &PtySupervisor) {
    let mut last: Option<TerminalView> = None;
    let mut since = Instant::now();
    loop {
        let Ok(view) = pty.view().await else { return };
        let is_same = last.as_ref().is_some_and(|last| last.at == view.at && last.state == view.state);
        if !is_same {
            since = Instant::now();
        }
        if is_same && since.elapsed() >= patience(view.state) {
            return;
        }
        last = Some(view);
        tokio::select! {
            biased;
            _ = pty.gone() => return,
            // The state may change without a change on the screen: it also depends on the kernel.
            () = sleep(LOOK) => {}
        }
    }
}

/// How long this state must last, without output, to count as settled.
const fn patience(state: TerminalState) -> Duration {
    match state {
        // A prompt may be about to disappear.
        TerminalState::Idle
        | TerminalState::Blocked(_)
        | TerminalState::WaitingForInput
        | TerminalState::Password => STANDS,
        TerminalState::Exited => Duration::ZERO,
        TerminalState::Working => QUIET_AT_WORK,
        TerminalState::Starting
        | TerminalState::Stalled
        | TerminalState::Exiting
        | TerminalState::Unknown => QUIET,
    }
}

/// Waits until the program reacts to input, so that its earlier state doesn't count.
async fn reacts(pty: &PtySupervisor, before: &TerminalView) {
    let reacted = async {
        while pty.view().await.is_ok_and(|view| view.at == before.at && view.state == before.state) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = pty.gone() => {}
        () = reacted => {}
        () = sleep(REACTS) => {}
    }
}

/// Types everything in order, unless the program reads a password.
async fn type_all(pty: &PtySupervisor, text: &str, submits: bool, keys: &[Key]) -> Result<(), ToolOutput> {
    let view = pty.view().await.map_err(gone)?;
    let is_harmless = text.is_empty() && !submits && keys.iter().all(Key::stops);
    if !text.is_empty() {
        let text = if view.modes.bracketed_paste {
            format!("\u{1b}[200~{text}\u{1b}[201~")
        } else {
            text.replace("\r\n", "\r").replace('\n', "\r")
        };
        type_one(pty, &text, false).await?;
    }
    if submits {
        if !text.is_empty() && view.modes.bracketed_paste {
            sleep(SUBMIT_PAUSE).await;
        }
        type_one(pty, "\r", false).await?;
    }
    for key in keys {
        type_one(pty, &key.bytes(view.modes.application_cursor), is_harmless).await?;
    }
    Ok(())
}

/// Types this, unless the program reads a password and `text` isn't harmless there.
async fn type_one(pty: &PtySupervisor, text: &str, is_harmless: bool) -> Result<(), ToolOutput> {
    let sample = pty.sample().await.map_err(gone)?;
    let is_hidden = sample.echo == Some(false) && sample.canonical == Some(true);
    let reads_secret = move |state: TerminalState| is_hidden || state == TerminalState::Password;
    let typed = pty.send_if(text, move |view| is_harmless || !reads_secret(view.state)).await;
    if typed.map_err(gone)? {
        return Ok(());
    }
    Err(ToolOutput::error(
        "The program reads a password, and this tool doesn't type any: press Ctrl-C, or stop the program, and find a \
         way that needs none, or ask the user.",
    ))
}

fn gone(error: PtyError) -> ToolOutput {
    ToolOutput::error(chain(&error))
}

fn cancelled() -> ToolOutput {
    Failure::Cancelled.into_output()
}
