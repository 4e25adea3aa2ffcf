//! An agent that runs goals, and the runs themselves.

use std::sync::Arc;

use futures::Stream;
use provost_engine::Actor;
use provost_event::{Budget, MicroDollars, Outcome, RunId, RunPolicy};
use provost_harness::{
    AgentHarness, Backend, Control, Goal, Harness, HarnessDeps, ResumeRequest, TurnState, final_text,
};
use tokio_util::sync::CancellationToken;

use crate::stream::{StreamItem, streamed};
use crate::{AgentBuilder, Error, ModelChoice};

/// An agent with its tools, hooks and limits. It runs any number of goals, each with a log of its own, also at the same
/// time. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    deps: HarnessDeps,
    harness: Arc<AgentHarness>,
    policy: Arc<RunPolicy>,
}

/// How a segment of work on a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The run: [`Agent::open`] goes on with it.
    pub run: RunId,
    /// How it ended. Only [`Outcome::Completed`] is done; see its `verification` for whether anything besides the agent
    /// confirmed that.
    pub outcome: Outcome,
    /// The agent's last message; empty if there is none.
    pub text: String,
    /// Tokens of the whole run, all its segments, sub-agents and judges included.
    pub tokens: u64,
    /// Its cost, as far as prices are known.
    pub cost: MicroDollars,
    /// Whether a part of tokens or cost isn't certain: estimated, or not confirmed by the provider.
    pub is_estimated: bool,
}

impl Finished {
    /// Whether the work is done, by what the agent and all configured checks say.
    #[must_use]
    pub const fn is_completed(&self) -> bool {
        matches!(self.outcome, Outcome::Completed { .. })
    }
}

impl Agent {
    /// A builder of an agent with this model: `"anthropic/claude-sonnet-4-5"`, a [`ScriptedModel`](crate::ScriptedModel),
    /// or any other ([`ModelChoice`]).
    pub fn builder(model: impl Into<ModelChoice>) -> AgentBuilder {
        AgentBuilder::new(model.into())
    }

    pub(crate) fn new(deps: HarnessDeps, policy: RunPolicy) -> Self {
        let harness = Arc::new(AgentHarness::new(deps.clone()));
        Self { deps, harness, policy: Arc::new(policy) }
    }

    /// Works on `goal` until the run is done or suspended. A text, or a [`Goal`] with images.
    ///
    /// # Errors
    /// When the log can't be read or written. A run that fails is no error: [`Finished::outcome`] says so.
    ///
    /// # Cancellation
    /// Dropping the future releases the run as it is; [`Agent::open`] goes on with it.
    pub async fn run(&self, goal: impl Into<Goal>) -> Result<Finished, Error> {
        self.start(goal).await?.finish().await
    }

    /// Works on `goal`, and returns each event as it happens and the end as the last item. The run is worked on by a
    /// task of its own; dropping the stream pauses it.
    ///
    /// A reader that is slower than the run loses the oldest events, and is told how many; the end is never lost.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn stream(
        &self,
        goal: impl Into<Goal>,
    ) -> impl Stream<Item = Result<StreamItem, Error>> + Send + Unpin + 'static {
        streamed(self.deps.clone(), Arc::clone(&self.policy), goal.into())
    }

    /// Starts a run on `goal`, to be taken turn by turn or to be acted on while it works.
    ///
    /// # Errors
    /// When the log can't be written, or a budget in money can't limit a model without a price.
    pub async fn start(&self, goal: impl Into<Goal>) -> Result<Run, Error> {
        self.start_as(RunId::new(), goal).await
    }

    /// The same with an id of the caller's, so that a start that is repeated doesn't run twice.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when there is a run of this id.
    pub async fn start_as(&self, run: RunId, goal: impl Into<Goal>) -> Result<Run, Error> {
        let harness = self.harness.start(run, goal, (*self.policy).clone()).await?;
        Ok(Run { harness, backend: Arc::clone(&self.deps.backend) })
    }

    /// Opens a run of this agent's backend. What was interrupted continues at once; a suspended or ended run waits for
    /// [`Run::resume`].
    ///
    /// # Errors
    /// When there is no such run, another process holds it, or its log can't be read.
    pub async fn open(&self, run: RunId) -> Result<Run, Error> {
        let harness = self.harness.open(run).await?;
        Ok(Run { harness, backend: Arc::clone(&self.deps.backend) })
    }

    /// The policy of its runs, which becomes the first entry of each log.
    #[must_use]
    pub fn policy(&self) -> &RunPolicy {
        &self.policy
    }

    /// The backend of its runs.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.deps.backend
    }

    /// Control of a run of its backend, also of one that another process holds; `by` is who the log names.
    #[must_use]
    pub fn control(&self, run: RunId, by: &str) -> Control {
        Control::new(Arc::clone(&self.deps.backend), run, by)
    }
}

/// A run that this process works on. Dropping it releases the run as it is; [`Agent::open`] goes on with it.
pub struct Run {
    harness: Harness,
    backend: Arc<dyn Backend>,
}

impl Run {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.harness.run_id()
    }

    /// Waits until the run is done or suspended.
    ///
    /// # Errors
    /// When the log can't be read or written, or another process has taken over the run.
    pub async fn finish(&mut self) -> Result<Finished, Error> {
        self.finish_unless(&CancellationToken::new()).await
    }

    /// The same; pauses the run when `cancel` fires.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub async fn finish_unless(&mut self, cancel: &CancellationToken) -> Result<Finished, Error> {
        let outcome = self.harness.run(cancel).await?;
        finished(&*self.backend, self.id(), outcome).await
    }

    /// Waits for the end of the next turn, and begins it if the agent was built as
    /// [`stepped`](AgentBuilder::stepped).
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub async fn turn(&mut self) -> Result<TurnState, Error> {
        Ok(self.harness.run_turn(&CancellationToken::new()).await?)
    }

    /// Begins another segment of a suspended or ended run, with a message to the agent if there is one. Limits in
    /// `budget` replace those that the run has.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn resume(&mut self, text: Option<&str>, budget: Budget) -> Result<(), Error> {
        let request = ResumeRequest {
            by: "the embedding program".to_owned(),
            budget,
            turns_max: None,
            text: text.map(str::to_owned),
        };
        Ok(self.harness.resume_with(request).await?)
    }

    /// Control of the run, which may be used while it works: messages, pause, cancel, approvals.
    #[must_use]
    pub fn control(&self, by: &str) -> Control {
        self.harness.control(by)
    }

    /// The harness beneath.
    pub const fn harness(&mut self) -> &mut Harness {
        &mut self.harness
    }
}

/// What is known of a run at the end of a segment.
pub(crate) async fn finished(backend: &dyn Backend, run: RunId, outcome: Outcome) -> Result<Finished, Error> {
    let text = final_text(backend, run).await?;
    let mut finished = Finished { run, outcome, text, tokens: 0, cost: MicroDollars(0), is_estimated: false };
    if let Actor::Run(state) = backend.state(run.into()).await? {
        let ledger = state.ledger();
        finished.tokens = ledger.tokens;
        finished.cost = ledger.cost;
        finished.is_estimated = !ledger.uncertain().is_none();
    }
    Ok(finished)
}
