//! `provost pause`, `resume`, `cancel`, `say` and `reprioritize`: act on a run or one of its agents from any
//! terminal, whichever process holds the run.

mod agent;
mod clear;
mod force;
mod say;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use futures::StreamExt as _;
use provost_config::Override;
use provost_engine::{AgentState, Effect, Event, RunEvent, RunState, SessionEvent};
use provost_event::{
    EffectId, Ended, Entry, LifecycleEntry, Outcome, Paused, RunId, Seq, SessionId, WorktreeLeft,
};
use provost_harness::{Backend, BackendError, Executor, RunStatus};
use tokio_util::sync::CancellationToken;

use self::agent::{AgentCommand, AgentControl};
pub(super) use self::clear::clear_goal;
use self::say::Passed;
pub(crate) use self::say::SentMessage;
use super::target::{Target, agent_of, those_there};
use super::{backend, print, resume, services};
use crate::cli::{ActArgs, CancelArgs, ReprioritizeArgs, ResumeArgs, SayArgs};
use crate::exit::{Exit, Refusal};
use crate::questions::user_name;
use crate::render::{ask_again, go_on_with, one_line, outcome_in_words, run_outcome_in_words, safe};
use provost_view::run_state;

/// How long a command waits for a run to be suspended before it only reports the request.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The same on an engine, which takes a worker for gone some 11 seconds after its end.
const ENGINE_WAIT_MAX: Duration = Duration::from_secs(20);
/// How often it is looked whether a worker still holds the run.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
const TEXT_WIDTH: usize = 100;

pub(super) async fn pause(args: ActArgs) -> anyhow::Result<Exit> {
    let Found { backend, run, status, agent } = found(&args.run).await?;
    let by = user_name("provost pause");
    if let Some(agent) = agent {
        return AgentControl { backend, run, status, agent }.act(AgentCommand::Pause, by).await;
    }
    if let RunStatus::Stopped(outcome) = &status {
        print(&safe(&format!("run {run} is suspended already: {outcome}\n")))?;
        return Ok(Exit::Done);
    }
    let stop = Stop { backend: Arc::clone(&backend), run, status };
    let outcome = stop.post(RunEvent::Pause { agent: None, by }).await?;
    say_what_came(&*backend, run, outcome).await
}

pub(super) async fn cancel(args: CancelArgs) -> anyhow::Result<Exit> {
    let MeantAgent { backend, run, agent } = meant(&args.run).await?;
    let mut status = match not_ended(&*backend, run).await {
        Ok(status) => status,
        Err(ended) => return cancel_services(&*backend, run, agent).await.unwrap_or(Err(ended)),
    };
    let by = user_name("provost cancel");
    if args.force {
        if agent.is_some() {
            let what = format!(
                "--force ends a process with its whole run, and `{}` names one of its agents",
                args.run
            );
            return Err(Refusal::new(what, format!("provost cancel {run} --force")).into());
        }
        force::end_holder(&*backend, run).await?;
        status = not_ended(&*backend, run).await?;
    }
    let exit = match agent {
        Some(agent) => {
            let control = AgentControl { backend: backend.clone(), run, status, agent };
            control.act(AgentCommand::Cancel, by).await?
        }
        None => {
            let stop = Stop { backend: Arc::clone(&backend), run, status };
            let outcome = stop.post(RunEvent::Cancel { agent: None, by }).await?;
            say_what_came(&*backend, run, outcome).await?
        }
    };
    let of_services = cancel_services(&*backend, run, agent).await.unwrap_or(Ok(Exit::Done))?;
    Ok(if of_services == Exit::Done { exit } else { of_services })
}

/// Ends the services of a run, or of one of its agents and those below it; `None` if none runs.
async fn cancel_services(
    backend: &dyn Backend,
    run: RunId,
    agent: Option<u32>,
) -> Option<anyhow::Result<Exit>> {
    let agents = match agent {
        None => None,
        Some(agent) => match with_those_below(backend, SessionId { run, agent }).await {
            Ok(agents) => Some(agents),
            Err(error) => return Some(Err(error)),
        },
    };
    match services::stop_with_run(backend, run, agents.as_deref()).await {
        Ok(None) => None,
        Ok(Some(true)) => Some(Ok(Exit::Done)),
        Ok(Some(false)) => Some(Ok(Exit::Failed)),
        Err(error) => Some(Err(error)),
    }
}

/// An agent and all agents below it.
async fn with_those_below(backend: &dyn Backend, agent: SessionId) -> anyhow::Result<Vec<SessionId>> {
    let mut found = vec![agent];
    // Agents are numbered in the order of their requests, so that those below one come after it.
    for other in run_state(backend, agent.run).await?.iter().flat_map(|state| state.agents()) {
        if other.parent.is_some_and(|parent| found.contains(&parent)) {
            found.push(other.session);
        }
    }
    Ok(found)
}

/// A whole run goes on in this process; one of its agents in the process that works on the run.
pub(super) async fn resume(args: ResumeArgs) -> anyhow::Result<Exit> {
    if !args.run.contains('.') {
        return resume::resume(args).await;
    }
    let MeantAgent { backend, run, agent } = meant(&args.run).await?;
    let Some(agent) = agent else {
        return resume::resume(ResumeArgs { run: run.to_string(), ..args }).await;
    };
    let status = not_ended(&*backend, run).await?;
    if let Some(Override { flag, .. }) = args.budget.given().first() {
        let what = format!("{flag} is a limit of the whole run, and `{}` names one of its agents", args.run);
        return Err(
            Refusal::new(what, format!("provost resume {run} {flag} …, once the run is suspended")).into()
        );
    }
    if let Some(flag) = args.changes().first() {
        let what = format!("{flag} is for the whole run, and `{}` names one of its agents", args.run);
        return Err(
            Refusal::new(what, format!("provost resume {run} {flag} …, once the run is suspended")).into()
        );
    }
    if !args.text.is_empty() {
        let what =
            format!("`{}` names an agent that works for another, and only that one asks it anew", args.run);
        let hint = format!(
            "provost say {run}.{agent} \"…\" speaks to it, provost resume {run} \"…\" to the first one"
        );
        return Err(Refusal::new(what, hint).into());
    }
    AgentControl { backend, run, status, agent }.act(AgentCommand::Resume, user_name("provost resume")).await
}

pub(super) async fn reprioritize(args: ReprioritizeArgs) -> anyhow::Result<Exit> {
    let backend = backend().await?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let Some(agent) = agent else {
        let what = format!("`{}` names a run, and a priority is an agent's", args.run);
        let hint = format!("e.g. provost reprioritize {run}.1 {}", args.priority);
        return Err(Refusal::new(what, hint).into());
    };
    is_there(&*backend, SessionId { run, agent }).await?;
    let status = not_ended(&*backend, run).await?;
    let agent_control = AgentControl { backend, run, status, agent };
    agent_control.act(AgentCommand::Reprioritize(args.priority), user_name("provost reprioritize")).await
}

pub(super) async fn say(args: SayArgs) -> anyhow::Result<Exit> {
    let Found { backend, run, status, agent } = found(&args.run).await?;
    let text = args.text.join(" ").trim().to_owned();
    if text.is_empty() {
        return Err(Refusal::new("the message is empty", "e.g. provost say last \"Skip the docs\"").into());
    }
    let by = user_name("provost say");
    if let Some(agent) = agent {
        return AgentControl { backend, run, status, agent }.act(AgentCommand::Say(text), by).await;
    }
    if let Some(state) = run_state(&*backend, run).await?.filter(|state| state.flow().is_some()) {
        return Err(no_listener(&state, run).into());
    }
    let shown = one_line(&text, TEXT_WIDTH);
    let (to, event) = (SessionId::root(run), RunEvent::Say { agent: 0, text: text.clone(), by: by.clone() });
    let before = backend.state(to.into()).await?.head();
    if !backend.post(run.into(), event.into(), None).await?.changed {
        return Err(ended(&*backend, run).await?.into());
    }
    let said = SentMessage { to, text: &text, by: &by, before };
    let hears = hears(&*backend, &status, &resuming(&*backend, run, &status).await?);
    let words = after_hooks(&*backend, &said, &status, &format!("run {run}"), hears).await?;
    print(&safe(&format!("said to run {run}: {shown}\n{words}\n")))?;
    Ok(Exit::Done)
}

/// The report on a message to an agent, once the hooks that it passes have answered; `otherwise` if they let it
/// pass, or there are none.
///
/// # Errors
/// When a hook refused it.
async fn after_hooks(
    backend: &dyn Backend,
    said: &SentMessage<'_>,
    status: &RunStatus,
    who: &str,
    otherwise: String,
) -> anyhow::Result<String> {
    let is_worked_on = *status == RunStatus::Running;
    match said.passed(backend, is_worked_on).await? {
        Passed::Heard => Ok(otherwise),
        Passed::Refused { hook, why } => {
            anyhow::bail!(say::unheard(who, &hook, &why))
        }
        Passed::Waits if is_worked_on => Ok(format!(
            "its hooks have not answered yet whether it may get that; see: provost logs {}",
            said.to.run
        )),
        Passed::Waits => Ok(format!("{otherwise}, if its hooks let it pass")),
    }
}

/// A workflow has no agent that stands for all of it.
fn no_listener(state: &RunState, run: RunId) -> Refusal {
    let what = format!("run {run} is a workflow, and no one agent stands for it; {}", those_there(state));
    let hears = |standing: &AgentState| {
        !matches!(standing, AgentState::Finished(_) | AgentState::Queued | AgentState::AwaitsRestart { .. })
    };
    let live = state.agents().find(|agent| hears(&agent.standing));
    let hint = match live {
        Some(agent) => format!("provost say {} \"…\"", agent.session),
        None => format!("`provost show {run}` shows how its steps stand"),
    };
    Refusal::new(what, hint)
}

/// When an agent receives a message.
fn hears(backend: &dyn Backend, status: &RunStatus, command: &str) -> String {
    match status {
        RunStatus::Running => "the agent gets it before its next model call".to_owned(),
        RunStatus::Stopped(_) => format!("the run is suspended; the agent gets it with: {command}"),
        RunStatus::Interrupted if !backend.performs_here() => {
            "no worker holds the run now; the agent gets it once one takes it".to_owned()
        }
        RunStatus::Interrupted => format!("no process holds the run; the agent gets it with: {command}"),
    }
}

/// The command that resumes a run, with more of a limit that is used up.
pub(super) async fn resuming(
    backend: &dyn Backend,
    run: RunId,
    status: &RunStatus,
) -> anyhow::Result<String> {
    let state = run_state(backend, run).await?;
    let command = match (status, &state) {
        (RunStatus::Stopped(outcome), Some(state)) => go_on_with(run, state, outcome),
        _ => None,
    };
    Ok(command.unwrap_or_else(|| format!("provost resume {run}")))
}

/// The status of a run.
pub(super) async fn status(backend: &dyn Backend, run: RunId) -> anyhow::Result<RunStatus> {
    let summary = backend.get(run).await?;
    Ok(summary.with_context(|| format!("there is no run {run}"))?.status)
}

/// A run that hasn't ended, its status, and the agent that is meant, unless that is the first one: acting on that
/// is acting on the run.
struct Found {
    backend: Arc<dyn Backend>,
    run: RunId,
    status: RunStatus,
    agent: Option<u32>,
}

async fn found(word: &str) -> anyhow::Result<Found> {
    let MeantAgent { backend, run, agent } = meant(word).await?;
    let status = not_ended(&*backend, run).await?;
    Ok(Found { backend, run, status, agent })
}

/// A run, and the agent that is meant, unless that is the first one.
struct MeantAgent {
    backend: Arc<dyn Backend>,
    run: RunId,
    agent: Option<u32>,
}

/// # Errors
/// [`Refusal`] when there is no such run, or it has no such agent.
async fn meant(word: &str) -> anyhow::Result<MeantAgent> {
    let backend = backend().await?;
    let Target { run, agent } = Target::find(&*backend, word).await?;
    if let Some(agent) = agent {
        is_there(&*backend, SessionId { run, agent }).await?;
    }
    Ok(MeantAgent { backend, run, agent: agent.filter(|agent| *agent != 0) })
}

/// Refuses an agent that its run doesn't have, also where the run has ended.
async fn is_there(backend: &dyn Backend, session: SessionId) -> anyhow::Result<()> {
    let run = session.run;
    let state = run_state(backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    agent_of(&state, session)?;
    Ok(())
}

/// The status of a run; one that has ended is refused.
async fn not_ended(backend: &dyn Backend, run: RunId) -> anyhow::Result<RunStatus> {
    match status(backend, run).await? {
        RunStatus::Stopped(outcome) if outcome.is_final() => Err(ended(backend, run).await?.into()),
        status => Ok(status),
    }
}

async fn ended(backend: &dyn Backend, run: RunId) -> anyhow::Result<Refusal> {
    let state = run_state(backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    Ok(match state.outcome() {
        Some(outcome) => refusal(run, &state, outcome),
        None => Refusal::new(format!("run {run} takes nothing now"), "`provost ps` says how it stands"),
    })
}

fn refusal(run: RunId, state: &RunState, outcome: &Outcome) -> Refusal {
    let hint = match ask_again(run, state, outcome) {
        Some(command) => format!("go on with: {command}"),
        None => format!("`provost show {run}` shows it"),
    };
    Refusal::new(format!("run {run} has ended: {}", run_outcome_in_words(run, state, outcome)), hint)
}

async fn say_what_came(backend: &dyn Backend, run: RunId, outcome: Option<Outcome>) -> anyhow::Result<Exit> {
    let words = match outcome {
        Some(outcome) if outcome.is_final() => {
            format!("run {run} has ended: {}\n", outcome_in_words(run, &outcome))
        }
        Some(outcome) => {
            let words = outcome_in_words(run, &outcome);
            let next = resuming(backend, run, &RunStatus::Stopped(outcome)).await?;
            format!("run {run} is suspended: {words}\ngo on with: {next}\n")
        }
        None => format!(
            "run {run} has been asked to stop, and what it does at this moment has not ended yet\n\
             follow it with: provost logs {run} -f\n"
        ),
    };
    print(&safe(&words))?;
    Ok(Exit::Done)
}

/// A run to be suspended or ended.
struct Stop {
    backend: Arc<dyn Backend>,
    run: RunId,
    status: RunStatus,
}

impl Stop {
    /// Posts the request, and returns the run's outcome; `None` while that is pending. A request is recorded
    /// first, so it isn't lost if this process dies. If no process holds the run, this process takes it over
    /// briefly, so that it is suspended without doing any work.
    async fn post(self, command: RunEvent) -> anyhow::Result<Option<Outcome>> {
        let before = run_state(&*self.backend, self.run).await?.map_or(Seq::START, |state| state.head());
        if !self.backend.post(self.run.into(), command.into(), None).await?.changed {
            let refused = ended(&*self.backend, self.run).await?;
            // Requested before: that is as good as requested now.
            if run_state(&*self.backend, self.run).await?.is_some_and(|state| state.outcome().is_some()) {
                return Err(refused.into());
            }
        }
        let may_be_unheld = !self.backend.performs_here() && !matches!(self.status, RunStatus::Stopped(_));
        let serving = match self.status {
            RunStatus::Interrupted if self.backend.performs_here() => {
                match self.backend.serve(self.run, Arc::new(DoesNothing), CancellationToken::new()).await {
                    Ok(serving) => Some(serving),
                    // Another process has just resumed the run, and gets the request.
                    Err(BackendError::Held { .. }) => None,
                    Err(error) => return Err(error.into()),
                }
            }
            RunStatus::Interrupted | RunStatus::Running | RunStatus::Stopped(_) => None,
        };
        let came = tokio::select! {
            came = self.outcome_after(before) => came,
            error = self.stopped_without_worker(), if may_be_unheld => Err(error.into()),
        };
        if let Some(serving) = serving {
            serving.release().await;
        }
        came
    }

    async fn outcome_after(&self, before: Seq) -> anyhow::Result<Option<Outcome>> {
        let mut records = self.backend.subscribe(self.run.into(), before);
        let rest = async {
            while let Some(record) = records.next().await {
                if let Entry::Lifecycle(LifecycleEntry::Paused(Paused { outcome }))
                | Entry::Lifecycle(LifecycleEntry::Ended(Ended { outcome })) = &record?.entry
                {
                    return Ok(Some(outcome.clone()));
                }
            }
            Ok(None)
        };
        let within = if self.backend.performs_here() { WAIT_MAX } else { ENGINE_WAIT_MAX };
        tokio::time::timeout(within, rest).await.unwrap_or(Ok(None))
    }

    /// Has a run of an engine stop once no worker holds it; one that is gone seems to for a while. Returns if that fails.
    async fn stopped_without_worker(&self) -> BackendError {
        let stopped = async {
            while self.backend.holder(self.run).await?.is_some() {
                tokio::time::sleep(LOOKS_EVERY).await;
            }
            self.backend.recover_unheld(self.run).await
        };
        match stopped.await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }
}

/// Performs none of a run's effects.
struct DoesNothing;

#[async_trait]
impl Executor for DoesNothing {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        if let Effect::AskHooks(_) = effect {
            // No hook is asked for a run that is only suspended here.
            return SessionEvent::HooksAnswered { seq: id.seq, reports: Vec::new(), scripts: None }.into();
        }
        if let Effect::CheckWorktree(_) = effect {
            let why = "no process held the run when it was ended".to_owned();
            let left = WorktreeLeft::Unknown { why };
            return SessionEvent::WorktreeChecked { seq: id.seq, left }.into();
        }
        if let Effect::CloseTerminal { .. } = effect {
            // The guard of its program ended it with the process that drove it.
            return SessionEvent::TerminalClosed { seq: id.seq, exit: None }.into();
        }
        // With its stop recorded a run begins nothing else; earlier effects are recovered without this executor.
        cancel.cancelled().await;
        std::future::pending().await
    }
}
