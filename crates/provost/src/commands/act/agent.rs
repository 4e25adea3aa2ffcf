//! Acts on one agent of a run and those below it. A request is in the run's log before anything is printed; its
//! result is read from the agent's status.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use provost_engine::{AgentStanding, RunEvent, RunState};
use provost_event::{ActorKey, Budget, Outcome, Priority, RunId, Seq, SessionId};
use provost_harness::{Home as _, RunStatus, read_actor};
use provost_store::LocalHome;
use tokio::time::Instant;

use super::say::Said;
use super::{TEXT_WIDTH, WAIT_MAX, after_hooks, ended, hears, resuming, status};
use crate::commands::follow::Following;
use crate::commands::print;
use crate::commands::target::{agent_of, named};
use crate::drive::run_state;
use crate::exit::{Exit, Refusal};
use crate::render::{one_line, outcome_in_words, safe};

/// How long an agent that waits for a slot, or is to yield its own, is watched: it may take any time, and is
/// reported.
const SLOT_WAIT_MAX: Duration = Duration::from_millis(500);
/// How often to check whether a process still holds the run.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Pause,
    Cancel,
    Resume,
    Say(String),
    Reprioritize(Priority),
    ClearGoal,
}

/// One agent of a run that hasn't ended.
pub(super) struct Desk {
    pub(super) home: Arc<LocalHome>,
    pub(super) run: RunId,
    pub(super) status: RunStatus,
    pub(super) agent: u32,
}

impl Desk {
    /// Posts the request, unless it changes nothing, and reports its result.
    ///
    /// # Errors
    /// [`Refusal`] where the agent can't be acted on so, or there is no such agent.
    pub(super) async fn act(mut self, wish: Wish, by: String) -> anyhow::Result<Exit> {
        let before = self.state().await?;
        let agent = agent_of(&before, self.session())?;
        let who = format!("{} of run {}", named(&agent), self.run);
        if let AgentStanding::Finished(outcome) = &agent.standing {
            let what = format!("{who} has ended: {}", outcome_in_words(outcome));
            let hint = match wish {
                Wish::Say(_) | Wish::Resume => format!(
                    "what it came to was delivered, and only who asked for it can ask anew; `provost resume {} \"…\"` \
                     goes on with the run",
                    self.run
                ),
                _ => format!("`provost show {}` shows it", self.run),
            };
            return Err(Refusal::new(what, hint).into());
        }
        if let Some(words) = self.already(&wish, &agent.standing, agent.priority, &who)? {
            print(&safe(&format!("{words}\n")))?;
            return Ok(Exit::Done);
        }
        let session = read_actor(&*self.home, self.session().into()).await?.head();
        let posted = self.home.post(self.run.into(), self.event(&wish, by.clone()).into(), None).await?;
        if !posted.changed {
            return Err(self.ignored(&wish, &who).await?.into());
        }
        let standing = self.came(&wish, before.head()).await?;
        let command = resuming(&self.home, self.run, &self.status).await?;
        let mut words = self.in_words(&wish, standing.as_ref(), (&who, &command));
        if let Wish::Say(text) = &wish {
            let said = Said { to: self.session(), text, by: &by, before: session };
            words = after_hooks(&self.home, &said, &self.status, &who, words).await?;
        }
        print(&safe(&format!("{words}\n")))?;
        Ok(Exit::Done)
    }

    const fn session(&self) -> SessionId {
        SessionId { run: self.run, agent: self.agent }
    }

    async fn state(&self) -> anyhow::Result<Box<RunState>> {
        let state = run_state(&self.home, self.run).await?;
        state.with_context(|| format!("the log of run {} is empty", self.run))
    }

    fn event(&self, wish: &Wish, by: String) -> RunEvent {
        let agent = Some(self.agent);
        match wish.clone() {
            Wish::Pause => RunEvent::Pause { agent, by },
            Wish::Cancel => RunEvent::Cancel { agent, by },
            Wish::Resume => {
                RunEvent::Resume { agent, by, budget: Budget::default(), turns_max: None, text: None }
            }
            Wish::Say(text) => RunEvent::Say { agent: self.agent, text, by },
            Wish::Reprioritize(priority) => RunEvent::Reprioritize { agent: self.agent, priority, by },
            Wish::ClearGoal => RunEvent::ClearGoal { agent: self.agent, by },
        }
    }

    /// The report where the agent is already as requested.
    fn already(
        &self,
        wish: &Wish,
        standing: &AgentStanding,
        priority: Option<Priority>,
        who: &str,
    ) -> Result<Option<String>, Refusal> {
        let words = match (wish, standing) {
            (Wish::Pause, AgentStanding::Rests(outcome)) => {
                format!("{who} rests already: {}", outcome_in_words(outcome))
            }
            (Wish::Resume, _) if matches!(self.status, RunStatus::Rests(_)) => {
                let what = format!("{who} rests with the whole run");
                return Err(Refusal::new(what, format!("go on with: provost resume {}", self.run)));
            }
            (Wish::Resume, AgentStanding::Working | AgentStanding::Yielding { .. }) => {
                format!("{who} is at work already")
            }
            (Wish::Resume, AgentStanding::InLine) => {
                format!("{who} waits in the line, and begins when there is a slot; {}", self.sooner())
            }
            (Wish::Resume, AgentStanding::Furloughed { .. }) => {
                format!("{who} has made way, and goes on by itself when there is a slot; {}", self.sooner())
            }
            (Wish::Reprioritize(wanted), _) if priority == Some(*wanted) => {
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
    async fn ignored(&self, wish: &Wish, who: &str) -> anyhow::Result<Refusal> {
        let state = self.state().await?;
        if state.outcome().is_some_and(Outcome::is_final) {
            return ended(&self.home, self.run).await;
        }
        let standing = agent_of(&state, self.session())?.standing;
        let cancel = format!("provost cancel {}.{}", self.run, self.agent);
        Ok(match (standing, wish) {
            (AgentStanding::Finished(outcome), _) => Refusal::new(
                format!("{who} has ended: {}", outcome_in_words(&outcome)),
                format!("`provost show {}` shows it", self.run),
            ),
            (AgentStanding::InLine, Wish::Say(_)) => Refusal::new(
                format!("{who} hasn't begun: it waits in the line for a slot, and hears nothing before"),
                format!("say it again once `provost show {}` has it at work", self.run),
            ),
            (AgentStanding::InLine, _) => Refusal::new(
                format!("{who} hasn't begun: it waits in the line for a slot, and there is nothing to pause"),
                format!("`{cancel}` takes it out of the line"),
            ),
            (_, Wish::Say(_)) => Refusal::new(
                format!("{who} has failed and waits for its restart, and hears nothing before"),
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
    async fn came(&mut self, wish: &Wish, before: Seq) -> anyhow::Result<Option<AgentStanding>> {
        let patience = match wish {
            Wish::Pause | Wish::Cancel | Wish::ClearGoal => WAIT_MAX,
            Wish::Resume | Wish::Reprioritize(_) => SLOT_WAIT_MAX,
            Wish::Say(_) => Duration::ZERO,
        };
        let mut following = Following::new(&self.home, [(ActorKey::Run(self.run), before)]);
        let until = Instant::now() + patience;
        loop {
            let state = self.state().await?;
            let standing = agent_of(&state, self.session())?.standing;
            self.status = status(&self.home, self.run).await?;
            let is_worked_on = self.status == RunStatus::Running;
            let is_there = match (wish, &standing) {
                (Wish::Pause | Wish::Cancel | Wish::ClearGoal, AgentStanding::Finished(_)) => true,
                (Wish::Pause | Wish::ClearGoal, AgentStanding::Rests(_)) => true,
                // It resumes by itself, as if it never had a goal.
                (Wish::ClearGoal, AgentStanding::Furloughed { .. }) => true,
                (Wish::Resume | Wish::Reprioritize(_), AgentStanding::Working) => is_worked_on,
                (Wish::Say(_), _) => true,
                _ => false,
            };
            if is_there {
                return Ok(Some(standing));
            }
            let now = Instant::now();
            if now >= until || !is_worked_on {
                let is_worth_saying = matches!(wish, Wish::Resume | Wish::Reprioritize(_));
                return Ok(is_worth_saying.then_some(standing));
            }
            // The content is in the state; and when the process that holds the run dies, no record comes at all.
            drop(tokio::time::timeout_at(until.min(now + LOOK_AGAIN), following.next()).await);
        }
    }

    /// The report; `command` resumes the run.
    fn in_words(
        &self,
        wish: &Wish,
        standing: Option<&AgentStanding>,
        (who, command): (&str, &str),
    ) -> String {
        let run = self.run;
        let recorded = |what: &str| match self.status {
            RunStatus::Running => {
                format!(
                    "{who} has been asked to {what}, and what it does now has not ended yet\nfollow it with: provost show {run} -f"
                )
            }
            RunStatus::Interrupted | RunStatus::Rests(_) => {
                format!(
                    "recorded: {who} is to {what}\nnobody works on the run now; it does so with: provost resume {run}"
                )
            }
        };
        match (wish, standing) {
            (_, Some(AgentStanding::Finished(outcome))) => {
                format!("{who} has ended: {}", outcome_in_words(outcome))
            }
            (Wish::Pause, Some(AgentStanding::Rests(outcome))) => {
                let agent = self.agent;
                format!(
                    "{who} rests: {}\ngo on with: provost resume {run}.{agent}",
                    outcome_in_words(outcome)
                )
            }
            (Wish::ClearGoal, Some(AgentStanding::Rests(outcome))) => {
                let whom = match self.status {
                    RunStatus::Running => format!("{run}.{}", self.agent),
                    RunStatus::Interrupted | RunStatus::Rests(_) => run.to_string(),
                };
                let outcome = outcome_in_words(outcome);
                format!(
                    "{who} has no goal any more, and rests: {outcome}\ngo on without it: provost resume {whom}"
                )
            }
            (Wish::ClearGoal, Some(AgentStanding::Furloughed { .. })) => {
                format!(
                    "{who} has no goal any more; it has made way, and goes on by itself when there is a slot"
                )
            }
            (Wish::ClearGoal, _) => recorded("have no goal any more, and to rest"),
            (Wish::Pause, _) => recorded("rest"),
            (Wish::Cancel, _) => recorded("end"),
            (Wish::Resume, Some(AgentStanding::Working)) => format!("{who} goes on"),
            (Wish::Resume, _) => match self.status {
                RunStatus::Running => format!("{who} goes on as soon as there is a slot"),
                RunStatus::Interrupted | RunStatus::Rests(_) => recorded("go on"),
            },
            (Wish::Say(text), _) => {
                format!(
                    "said to {who}: {}\n{}",
                    one_line(text, TEXT_WIDTH),
                    self.when_heard(standing, command)
                )
            }
            (Wish::Reprioritize(priority), standing) => {
                format!("{who} has priority {priority} now{}", self.with_that(standing))
            }
        }
    }

    fn when_heard(&self, standing: Option<&AgentStanding>, command: &str) -> String {
        match (standing, &self.status) {
            (Some(AgentStanding::Rests(_)), RunStatus::Running) => {
                format!("it rests, and hears it with: provost resume {}.{}", self.run, self.agent)
            }
            (Some(AgentStanding::AwaitsRestart { .. }), RunStatus::Running) => {
                "it has failed, and hears it when it is restarted".to_owned()
            }
            (Some(AgentStanding::Furloughed { .. }), RunStatus::Running) => {
                "it has made way, and hears it when it has a slot again".to_owned()
            }
            _ => hears(&self.status, command),
        }
    }

    /// The result of a new priority.
    fn with_that(&self, standing: Option<&AgentStanding>) -> String {
        match standing {
            Some(AgentStanding::Yielding { to: Some(to) }) => format!(", and makes way for {}", to.agent),
            Some(AgentStanding::Yielding { to: None }) => ", and makes way for those that wait".to_owned(),
            Some(AgentStanding::InLine | AgentStanding::Furloughed { .. }) => {
                ", and waits for a slot".to_owned()
            }
            Some(AgentStanding::Working) => ", and is at work".to_owned(),
            Some(AgentStanding::Rests(_)) => ", and still rests".to_owned(),
            Some(AgentStanding::AwaitsRestart { .. }) => ", and waits for its restart".to_owned(),
            Some(AgentStanding::Finished(_)) | None => String::new(),
        }
    }
}
