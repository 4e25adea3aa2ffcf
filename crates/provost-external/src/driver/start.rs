//! Starts a program for the first time, or again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_event::{
    Channel, ErrorClass, ExternalPolicy, ModelFailure, SessionId, TerminalEvent, TerminalNoted,
};
use provost_harness::{Exchange, Redactor, without_keys};
use provost_process::{AtTerminal, ExposedSecret, Launch, PtyOptions, PtySupervisor, SpawnError};
use provost_terminal::{Detector, Profile, ProgramKind};
use tokio::sync::watch;
use tokio::time::Instant;

use super::calls::GatewayConnections;
use super::{CallWatch, GO_ON, RecorderHandle, TerminalDriver, WaitEvidence, storage};
use crate::attach::Hub;
use crate::boxed::{Starting, surroundings};
use crate::drivers::DriversOptions;
use crate::gateway::Pointed;
use crate::reach::SubjectReach;
use crate::recording;

/// The value of `TERM` for every program.
const TERM: &str = "xterm-256color";

/// How long an attended program's first queries, and the end of one that ends at once, wait for the person's terminal.
pub(crate) const TERMINAL_COMES_WITHIN: Duration = Duration::from_secs(1);

/// How a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// For the first time.
    New,
    /// To continue earlier work.
    Again,
}

/// Starts the program of `exchange` at a terminal.
pub(crate) async fn start(
    options: &DriversOptions,
    exchange: &mut Exchange<'_>,
    beginning: Beginning,
) -> Result<TerminalDriver, ModelFailure> {
    let profile = profile_of(options, exchange.policy)?;
    let mut args = exchange.policy.args.clone();
    if beginning == Beginning::Again {
        args.extend(profile.resume.last.iter().cloned());
        if profile.resume.last.is_empty() {
            // The program keeps no history.
            exchange.words.start_over();
        }
    }
    private_folder(&options.folder)
        .map_err(|error| failed(format!("can't make Provost's folder: {error}")))?;
    let recording = recording_of(options, exchange)?;
    let pointed = surroundings(options, Starting::of(exchange, &profile)).await?;
    let args = pointed.before(exchange.policy, &profile, &args);
    let launch = launch_of(options, exchange, &args, &pointed);
    let calls = options.gateway.as_ref().and_then(|gateway| gateway.activity(exchange.session));
    let mut pty_options = PtyOptions {
        recorder: recording.as_ref().map(|recording| recording.open(&launch)).transpose().map_err(failed)?,
        ledger: Some(ledger_of(&options.folder, exchange.session)),
        exposed: Some(exposed(exchange.redactor.clone())),
        awaits_terminal: if exchange.policy.attended { TERMINAL_COMES_WITHIN } else { Duration::ZERO },
        ..PtyOptions::new(Detector::of_terminal(profile.clone()))
    };
    if let Some(calls) = calls.clone() {
        pty_options.connections = Box::new(GatewayConnections(calls));
    }
    let pty = PtySupervisor::spawn(launch, pty_options).await.map_err(|error| not_started(&error))?;
    let started = TerminalEvent::Started {
        command: command_shown(&exchange.policy.program, &args, &exchange.redactor),
        pid: pty.pid(),
        channel: Channel::Terminal,
        recording: recording.map(|recording| recording.path),
    };
    exchange.log.note(TerminalNoted::certain(started)).await.map_err(|error| storage(&error))?;
    let opened = OpenedTerminal { pty, profile, calls: CallWatch::new(calls) };
    Ok(driver(options, exchange, opened, beginning))
}

/// A secret that is typed while the terminal shows it is kept out of everything that is stored from then on.
fn exposed(redactor: Arc<Redactor>) -> ExposedSecret {
    Box::new(move |secret| redactor.learn(secret))
}

/// The folder that lists the processes of this session.
pub(crate) fn ledger_of(folder: &Path, session: SessionId) -> PathBuf {
    folder.join("ledger").join(format!("{}-{}", session.run, session.agent))
}

/// A program that has just been started.
struct OpenedTerminal {
    pty: PtySupervisor,
    profile: Arc<Profile>,
    calls: CallWatch,
}

fn driver(
    options: &DriversOptions,
    exchange: &Exchange<'_>,
    opened: OpenedTerminal,
    beginning: Beginning,
) -> TerminalDriver {
    let OpenedTerminal { pty, profile, calls } = opened;
    let pty = Arc::new(pty);
    let policy = exchange.policy;
    // With a goal and no profile only its end, or a person, tells that a program that paints is done.
    let is_unknown = policy.submits_goal && profile.kind == ProgramKind::Plain;
    let waits = if is_unknown { WaitEvidence::OfLinesOnly } else { WaitEvidence::Enough };
    let desk = RecorderHandle::open(pty.clone(), exchange.log.clone(), exchange.redactor.clone(), waits);
    let hub = Hub::open(&options.folder, exchange.session, (&policy.program, policy.size), &pty, &desk);
    let hub = hub.inspect_err(|error| tracing::warn!(%error, "the terminal can't be attached to")).ok();
    let attendance = hub.as_ref().map_or_else(|| watch::channel(Default::default()).1, Hub::attendance);
    let goes_on = beginning == Beginning::Again
        && profile.kind == ProgramKind::Agent
        && !policy.attended
        && exchange.words.prompt().is_none();
    let own_words = goes_on.then(|| GO_ON.to_owned());
    TerminalDriver {
        pty,
        profile,
        policy: policy.clone(),
        redactor: exchange.redactor.clone(),
        log: exchange.log.clone(),
        desk,
        hub,
        attendance,
        calls,
        reach: SubjectReach::of(options, exchange),
        started: Instant::now(),
        asked: None,
        handed_on: 0,
        may_hold_words: false,
        is_interrupted: false,
        own_words,
        turn: None,
        was_told: false,
        last_told: String::new(),
        turns_seen: 0,
        seen_at: Instant::now(),
    }
}

/// The profile that `policy` names.
pub(crate) fn profile_of(
    options: &DriversOptions,
    policy: &ExternalPolicy,
) -> Result<Arc<Profile>, ModelFailure> {
    let name = &policy.profile;
    let own = options.profiles.iter().find(|profile| profile.name == *name).cloned();
    own.or_else(|| Profile::named(name)).map(Arc::new).ok_or_else(|| {
        failed(format!("there is no profile `{name}`: `provost profile list` shows those there are"))
    })
}

fn launch_of(
    options: &DriversOptions,
    exchange: &Exchange<'_>,
    args: &[String],
    pointed: &Pointed,
) -> Launch<AtTerminal> {
    let policy = exchange.policy;
    let mut env: Vec<(String, String)> = options.env.clone();
    env.extend(options.passed.iter().filter(|(name, _)| policy.passes.contains(name)).cloned());
    env.retain(|(name, _)| name != "TERM" && !policy.env.contains_key(name));
    env.extend(policy.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    if !policy.env.contains_key("TERM") {
        env.push(("TERM".to_owned(), TERM.to_owned()));
    }
    Launch {
        program: policy.program.clone().into(),
        args: args.iter().map(Into::into).collect(),
        env: pointed.over(env).into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: exchange.workspace.to_owned(),
        stdio: AtTerminal { size: policy.size },
        confinement: exchange.sandbox.confinement(),
    }
}

fn recording_of(
    options: &DriversOptions,
    exchange: &Exchange<'_>,
) -> Result<Option<recording::RecordingTarget>, ModelFailure> {
    if !options.records || exchange.policy.unrecorded {
        return Ok(None);
    }
    let place =
        recording::RecordingTarget::next(&options.folder, exchange.session, exchange.redactor.clone());
    place.map(Some).map_err(|error| failed(format!("can't make the folder for recordings: {error}")))
}

/// As the log shows it.
pub(crate) fn command_shown(program: &str, args: &[String], redactor: &Redactor) -> Vec<String> {
    let words: Vec<String> = std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
    without_keys(&words).iter().map(|word| redactor.redact(word).into_owned()).collect()
}

pub(crate) fn not_started(error: &SpawnError) -> ModelFailure {
    let hint = match error {
        SpawnError::ProgramNotFound { .. } => ": install it, or give its whole path",
        SpawnError::FolderNotFound { .. } | SpawnError::Failed { .. } => "",
    };
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    failed(format!("{text}{hint}"))
}

fn failed(message: impl ToString) -> ModelFailure {
    ModelFailure::new(ErrorClass::Program, message.to_string())
}

/// Makes a folder that only its owner can access.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
