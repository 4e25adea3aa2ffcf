//! Acts on one agent of a run and those below it. A request is in the run's log before anything is printed; its
//! result is read from the agent's status.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use provost_engine::{AgentState, AgentStatus, RunEvent, RunState};
use provost_event::{Budget, Outcome, Priority, RunId, SessionId};
use provost_harness::{Backend, RunStatus};
use tokio::time::Instant;

use super::say::SentMessage;
use super::{TEXT_WIDTH, WAIT_MAX, after_hooks, ended, hears, resuming, status};
use crate::commands::follow::Following;
use crate::commands::print;
use crate::commands::target::{agent_of, named};
use crate::exit::{Exit, Refusal};
use crate::render::{ask_again, one_line, outcome_in_words, safe};
use provost_view::run_state;

/// How long an agent that waits for a slot, or is to yield its own, is watched: it may take any time, and is
/// reported.
const SLOT_WAIT_MAX: Duration = Duration::from_millis(500);
/// How often to check whether a process still holds the run.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentCommand {
    Pause,
    Cancel,
    Resume,
    Say(String),
    Reprioritize(Priority),
    ClearGoal,
}

/// One agent of a run that hasn't ended.
pub(super) struct AgentControl {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) run: RunId,
    pub(super) status: RunStatus,
    pub(super) agent: u32,
}

impl AgentControl {
    /// Posts the request, unless it changes nothing, and reports its result.
    ///
    /// # Errors
    /// [`Refusal`] where the agent can't be acted on so, or there is no such agent.
    pub(super) async fn act(mut self, command: AgentCommand, by: String) -> anyhow::Result<Exit> {
        let before = self.state().await?;
        let agent = agent_of(&before, self.session())?;
        let who = format!("{} of run {}", named(&agent), self.run);
        if let AgentState::Finished(outcome) = &agent.standing {
            let what = format!("{who} has ended: {}", outcome_in_words(self.run, outcome));
            let hint = match command {
                AgentCommand::Say(_) | AgentCommand::Resume => {
                    let what = "what it came to was delivered, and only who asked for it can ask anew";
                    match self.run_command(&before).await? {
                        Some(next) => format!("{what}; the run goes on with: {next}"),
                        None => what.to_owned(),
                    }
                }
                _ => format!("`provost show {}` shows it", self.run),
            };
            return Err(Refusal::new(what, hint).into());
        }
        let next = resuming(&*self.backend, self.run, &self.status).await?;
        if let Some(words) = self.already(&command, &agent, (&who, &next))? {
            print(&safe(&format!("{words}\n")))?;
            return Ok(Exit::Done);
        }
        let session = self.backend.state(self.session().into()).await?.head();
        let posted =
            self.backend.post(self.run.into(), self.event(&command, by.clone()).into(), None).await?;
        if !posted.changed {
            return Err(self.ignored(&command, &who).await?.into());
        }
        let standing = self.came(&command).await?;
        let next = resuming(&*self.backend, self.run, &self.status).await?;
        let mut words = self.in_words(&command, standing.as_ref(), (&who, &next));
        if let AgentCommand::Say(text) = &command {
            let said = SentMessage { to: self.session(), text, by: &by, before: session };
            words = after_hooks(&*self.backend, &said, &self.status, &who, words).await?;
        }
        print(&safe(&format!("{words}\n")))?;
        Ok(Exit::Done)
    }

    const fn session(&self) -> SessionId {
        SessionId { run: self.run, agent: self.agent }
    }

    async fn state(&self) -> anyhow::Result<Box<RunState>> {
        let state = run_state(&*self.backend, self.run).await?;
        state.with_context(|| format!("the log of run {} is empty", self.run))
    }

    fn event(&self, command: &AgentCommand, by: String) -> RunEvent {
        let agent = Some(self.agent);
        match command.clone() {
            AgentCommand::Pause => RunEvent::Pause { agent, by },
            AgentCommand::Cancel => RunEvent::Cancel { agent, by },
            AgentCommand::Resume => {
                RunEvent::Resume { agent, by, budget: Budget::default(), turns_max: None, text: None }
            }
            AgentCommand::Say(text) => RunEvent::Say { agent: self.agent, text, by },
            AgentCommand::Reprioritize(priority) => {
                RunEvent::Reprioritize { agent: self.agent, priority, by }
            }
            AgentCommand::ClearGoal => RunEvent::ClearGoal { agent: self.agent, by },
        }
    }

    /// The report where the agent is already as requested.
    fn already(
        &self,
        command: &AgentCommand,
        agent: &AgentStatus<'_>,
        (who, next): (&str, &str),
    ) -> Result<Option<String>, Refusal> {
        let words = match (command, &agent.standing) {
            (AgentCommand::Pause, AgentState::Suspended(outcome)) => {
                format!("{who} is suspended already: {}", outcome_in_words(self.run, outcome))
            }
            (AgentCommand::Resume, _) if matches!(self.status, RunStatus::Stopped(_)) => {
                let what = format!("{who} is suspended with the whole run");
                return Err(Refusal::new(what, format!("go on with: {next}")));
            }
            (AgentCommand::Resume, AgentState::Working | AgentState::Yielding { .. }) => {
                format!("{who} is at work already")
            }
            (AgentCommand::Resume, AgentState::Queued) => {
                format!("{who} is queued, and begins when there is a slot; {}", self.sooner())
            }
            (AgentCommand::Resume, AgentState::Preempted { .. }) => {
                format!("{who} has yielded, and goes on by itself when there is a slot; {}", self.sooner())
            }
            (AgentCommand::Reprioritize(wanted), _) if agent.priority == Some(*wanted) => {
                format!("{who} has priority {wanted} already")
            }
            _ => return Ok(None),
        };
        Ok(Some(words))
    }

    fn sooner(&self) -> String {
        format!("sooner with: provost reprioritize {}.{} high", self.run, self.agent)
    }

    /// Why a request changed nothing.
    async fn ignored(&self, command: &AgentCommand, who: &str) -> anyhow::Result<Refusal> {
        let state = self.state().await?;
        if state.outcome().is_some_and(Outcome::is_final) {
            return ended(&*self.backend, self.run).await;
        }
        let standing = agent_of(&state, self.session())?.standing;
        let cancel = format!("provost cancel {}.{}", self.run, self.agent);
        Ok(match (standing, command) {
            (AgentState::Finished(outcome), _) => Refusal::new(
                format!("{who} has ended: {}", outcome_in_words(self.run, &outcome)),
                format!("`provost show {}` shows it", self.run),
            ),
            (AgentState::Queued, AgentCommand::Say(_)) => Refusal::new(
                format!("{who} hasn't begun: it is queued for a slot, and takes no message before"),
                format!("say it again once `provost show {}` has it at work", self.run),
            ),
            (AgentState::Queued, _) => Refusal::new(
                format!("{who} hasn't begun: it is queued for a slot, and there is nothing to pause"),
                format!("`{cancel}` takes it out of the queue"),
            ),
            (_, AgentCommand::Say(_)) => Refusal::new(
                format!("{who} has failed and waits for its restart, and takes no message before"),
                format!(
                    "`provost resume {}.{}` restarts it now; say it again once it is at work",
                    self.run, self.agent
                ),
            ),
            _ => Refusal::new(
                format!("{who} has been asked for that already"),
                format!("`provost show {}` says how it stands", self.run),
            ),
        })
    }

    /// The agent's status once the request has taken effect, if that comes soon; `None` if it takes longer. While
    /// no process holds the run nothing more comes.
    async fn came(&mut self, command: &AgentCommand) -> anyhow::Result<Option<AgentState>> {
        let patience = match command {
            AgentCommand::Pause | AgentCommand::Cancel | AgentCommand::ClearGoal => WAIT_MAX,
            AgentCommand::Resume | AgentCommand::Reprioritize(_) => SLOT_WAIT_MAX,
            AgentCommand::Say(_) => Duration::ZERO,
        };
        let after = self.backend.run_head(self.run).await?;
        let mut following = Following::new(&*self.backend, self.run, after, HashMap::new());
        let until = Instant::now() + patience;
        loop {
            // Before the state: once no process works on the run, the state is the last one.
            self.status = status(&*self.backend, self.run).await?;
            let state = self.state().await?;
            let standing = agent_of(&state, self.session())?.standing;
            let is_worked_on = self.status == RunStatus::Running;
            let is_there = match (command, &standing) {
                (
                    AgentCommand::Pause | AgentCommand::Cancel | AgentCommand::ClearGoal,
                    AgentState::Finished(_),
                ) => true,
                (AgentCommand::Pause | AgentCommand::ClearGoal, AgentState::Suspended(_)) => true,
                // It resumes by itself, as if it never had a goal.
                (AgentCommand::ClearGoal, AgentState::Preempted { .. }) => true,
                (AgentCommand::Resume | AgentCommand::Reprioritize(_), AgentState::Working) => is_worked_on,
                (AgentCommand::Say(_), _) => true,
                _ => false,
            };
            if is_there {
                return Ok(Some(standing));
            }
            let now = Instant::now();
            if now >= until || !is_worked_on {
                let is_worth_saying = matches!(command, AgentCommand::Resume | AgentCommand::Reprioritize(_));
                return Ok(is_worth_saying.then_some(standing));
            }
            // The content is in the state; and when the process that holds the run dies, no record comes at all.
            drop(tokio::time::timeout_at(until.min(now + LOOK_AGAIN), following.next()).await);
        }
    }

    /// The report; `next` resumes the run.
    fn in_words(
        &self,
        command: &AgentCommand,
        standing: Option<&AgentState>,
        (who, next): (&str, &str),
    ) -> String {
        let run = self.run;
        let recorded = |what: &str| match self.status {
            RunStatus::Running => {
                format!(
                    "{who} has been asked to {what}, and what it does now has not ended yet\nfollow it with: provost show {run} -f"
                )
            }
            RunStatus::Interrupted if !self.backend.performs_here() => {
                format!(
                    "recorded: {who} is to {what}\nno worker holds the run now; it does so once one takes it"
                )
            }
            RunStatus::Interrupted | RunStatus::Stopped(_) => {
                format!(
                    "recorded: {who} is to {what}\nno process works on the run now; it does so with: {next}"
                )
            }
        };
        match (command, standing) {
            (_, Some(AgentState::Finished(outcome))) => {
                format!("{who} has ended: {}", outcome_in_words(self.run, outcome))
            }
            (AgentCommand::Pause, Some(AgentState::Suspended(outcome))) => {
                format!(
                    "{who} is suspended: {}\ngo on with: {}",
                    outcome_in_words(self.run, outcome),
                    self.whom(next)
                )
            }
            (AgentCommand::ClearGoal, Some(AgentState::Suspended(outcome))) => {
                let outcome = outcome_in_words(self.run, outcome);
                let whom = self.whom(next);
                format!("{who} has no goal any more, and is suspended: {outcome}\ngo on without it: {whom}")
            }
            (AgentCommand::ClearGoal, Some(AgentState::Preempted { .. })) => {
                format!(
                    "{who} has no goal any more; it has yielded, and goes on by itself when there is a slot"
                )
            }
            (AgentCommand::ClearGoal, _) => recorded("have no goal any more, and to be suspended"),
            (AgentCommand::Pause, _) => recorded("be suspended"),
            (AgentCommand::Cancel, _) => recorded("end"),
            (AgentCommand::Resume, Some(AgentState::Working)) => format!("{who} goes on"),
            (AgentCommand::Resume, _) => match self.status {
                RunStatus::Running => format!("{who} goes on as soon as there is a slot"),
                RunStatus::Interrupted | RunStatus::Stopped(_) => recorded("go on"),
            },
            (AgentCommand::Say(text), _) => {
                format!("said to {who}: {}\n{}", one_line(text, TEXT_WIDTH), self.when_heard(standing, next))
            }
            (AgentCommand::Reprioritize(priority), standing) => {
                format!("{who} has priority {priority} now{}", self.with_that(standing))
            }
        }
    }

    /// The command that resumes the agent: itself while a process works on the run, or else the run, with `next`.
    fn whom(&self, next: &str) -> String {
        match self.status {
            RunStatus::Running => format!("provost resume {}.{}", self.run, self.agent),
            RunStatus::Interrupted | RunStatus::Stopped(_) => next.to_owned(),
        }
    }

    /// The command with which a run that has `state` goes on with another request; `None` while it is worked on.
    async fn run_command(&self, state: &RunState) -> anyhow::Result<Option<String>> {
        match (&self.status, state.outcome()) {
            (RunStatus::Running, _) => Ok(None),
            (_, Some(outcome)) => Ok(ask_again(self.run, state, outcome)),
            (status, None) => resuming(&*self.backend, self.run, status).await.map(Some),
        }
    }

    fn when_heard(&self, standing: Option<&AgentState>, command: &str) -> String {
        match (standing, &self.status) {
            (Some(AgentState::Suspended(_)), RunStatus::Running) => {
                format!("it is suspended, and gets it with: provost resume {}.{}", self.run, self.agent)
            }
            (Some(AgentState::AwaitsRestart { .. }), RunStatus::Running) => {
                "it has failed, and gets it when it is restarted".to_owned()
            }
            (Some(AgentState::Preempted { .. }), RunStatus::Running) => {
                "it has yielded, and gets it when it has a slot again".to_owned()
            }
            _ => hears(&*self.backend, &self.status, command),
        }
    }

    /// The result of a new priority.
    fn with_that(&self, standing: Option<&AgentState>) -> String {
        match standing {
            Some(AgentState::Yielding { to: Some(to) }) => format!(", and yields to {}", to.agent),
            Some(AgentState::Yielding { to: None }) => ", and yields to those that wait".to_owned(),
            Some(AgentState::Queued | AgentState::Preempted { .. }) => ", and waits for a slot".to_owned(),
            Some(AgentState::Working) => ", and is at work".to_owned(),
            Some(AgentState::Suspended(_)) => ", and is still suspended".to_owned(),
            Some(AgentState::AwaitsRestart { .. }) => ", and waits for its restart".to_owned(),
            Some(AgentState::Finished(_)) | None => String::new(),
        }
    }
}
