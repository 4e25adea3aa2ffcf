//! `provost attach`: connects a person's terminal to the program of an agent.

use provost_config::{Request, Scope, load};
use provost_engine::{Actor, SessionState};
use provost_event::{Exit as ProgramExit, SessionId, TerminalState};
use provost_external::{AttachError, Role};
use provost_harness::{Backend, RunStatus};
use tokio::time::{Duration, sleep};

use super::act::status;
use super::current_dir;
use super::target::{Target, agent_of, named};
use crate::attached::{Asides, Attaching, Left, must_be_terminal};
use crate::cli::AttachArgs;
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::go_on_with;
use crate::signals::Signals;
use crate::wiring::{state_dir, variables};
use provost_runtime::available_tools;
use provost_view::run_state;

/// How long the hint on how to detach is shown, before the program's screen is.
const WORDS_STAND: Duration = Duration::from_millis(700);

pub(super) async fn attach(args: AttachArgs) -> anyhow::Result<Exit> {
    must_be_terminal("provost attach", "`provost logs -f RUN` follows a run without one")?;
    let (folder, variables) = (current_dir()?, variables());
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let place = state_dir(&settled.settings, &folders);
    let backend = place.open().await?;
    let (session, program) = which(&*backend, &args).await?;
    let key = settled.settings.exec.detach_key;
    let (role, what) = match args.read_only {
        true => (Role::Watch, "watching"),
        false => (Role::Control, "attached to"),
    };
    let name = args.run;
    tell(&format!("{what} {program} of {session}; {key} detaches, and it goes on"));
    sleep(WORDS_STAND).await;
    let folder = place.terminals();
    let attaching = Attaching { folder: &folder, session, role, key, asides: Asides::default() };
    let mut signals = Signals::listen()?;
    let left = tokio::select! {
        left = attaching.converse() => match left {
            Ok(left) => left,
            Err(error) => return Err(not_there(error, session, &*backend).await),
        },
        _ = signals.next() => Left::Detached,
    };
    tell(&after(left, session, &name));
    Ok(Exit::Done)
}

fn after(left: Left, session: SessionId, name: &str) -> String {
    match left {
        Left::Detached => format!("detached; it goes on, and `provost attach {name}` comes back to it"),
        Left::Gone(Some(exit @ (ProgramExit::Code(_) | ProgramExit::Signal(_)))) => {
            format!("the program has ended: {exit}")
        }
        Left::Gone(_) => "the program has ended".to_owned(),
        Left::Lost => {
            let run = session.run;
            format!("the program is no longer driven; `provost show {run}` shows how the run stands")
        }
    }
}

/// The agent that is meant, and its program.
async fn which(backend: &dyn Backend, args: &AttachArgs) -> anyhow::Result<(SessionId, String)> {
    let Target { run, agent } = Target::find(backend, &args.run).await?;
    let session = SessionId { run, agent: args.agent.or(agent).unwrap_or_default() };
    let refuse = |what: String, hint: String| anyhow::Error::from(Refusal::new(what, hint));
    if let Some(state) = run_state(backend, run).await? {
        let agent = agent_of(&state, session)?;
        if let Some(outcome) = state.outcome() {
            let (what, hint) = match outcome.is_final() {
                true => (
                    format!("run {run} has ended: {outcome}"),
                    format!("`provost replay {run}` plays what it showed"),
                ),
                false => (
                    format!("run {run} is suspended: {outcome}"),
                    format!(
                        "go on with it: {}",
                        go_on_with(run, &state, outcome).unwrap_or_else(|| format!("provost show {run}"))
                    ),
                ),
            };
            return Err(refuse(what, hint));
        }
        let actor = backend.state(session.into()).await?;
        let Some(program) = program(&actor) else {
            let what = format!("{} of run {run} is no external agent", named(&agent));
            return Err(refuse(
                what,
                format!("`provost logs -f {run}` follows it; `provost say` talks to it"),
            ));
        };
        if status(backend, run).await? == RunStatus::Interrupted {
            let what = format!("no process holds run {run}: it was interrupted");
            return Err(refuse(what, format!("go on with it: provost resume {run}")));
        }
        let ended = matches!(terminal(&actor), Some(TerminalState::Exited));
        if ended {
            let what = format!("the program of {session} has ended");
            return Err(refuse(what, format!("`provost replay {session}` plays what it showed")));
        }
        return Ok((session, program));
    }
    Err(refuse(format!("the log of run {run} is empty"), String::new()))
}

fn session_of(actor: &Actor) -> Option<&SessionState> {
    match actor {
        Actor::Session(state) => Some(state),
        Actor::Run(_) => None,
    }
}

fn program(actor: &Actor) -> Option<String> {
    let external = session_of(actor)?.policy()?.external.as_ref()?;
    Some(external.program.clone())
}

fn terminal(actor: &Actor) -> Option<TerminalState> {
    session_of(actor)?.terminal()
}

/// An error of the socket, with a hint for the user.
async fn not_there(error: anyhow::Error, session: SessionId, backend: &dyn Backend) -> anyhow::Error {
    let Some(AttachError::NotThere { .. }) = error.downcast_ref::<AttachError>() else { return error };
    let hint = "it has one from its start to its end, unless it is spoken to by its structured stream";
    let hint = match backend.holder(session.run).await {
        Ok(Some(holder)) if !backend.performs_here() => {
            format!("{hint}; {} works on the run, and has it on its machine", holder.by)
        }
        _ => hint.to_owned(),
    };
    Refusal::new(format!("the program of {session} has no terminal here at this moment"), hint).into()
}
