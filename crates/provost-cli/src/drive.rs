//! Works on a run until it is suspended or ends, and reports the result.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use provost_engine::RunEvent;
use provost_event::{
    ActorKey, Budget, ConversationEntry, Entry, Exhausted, LifecycleEntry, Outcome, PauseReason, Paused,
    RunId, Seq, SessionId,
};
use provost_harness::{
    Backend, Clock as _, Harness, SystemClock, TurnState, Unheld, final_text, live_socket,
};
use provost_process::{MAYBE_LEFT, end_adopted_leftovers};
use tokio_util::sync::CancellationToken;

use crate::asking::Asking;
use crate::cli::ShownArgs;
use crate::commands::{SentMessage, left_running};
use crate::exit::Exit;
use crate::messages::Messages;
use crate::names::Names;
use crate::output::{self, tell};
use crate::render::{Progress, Stopped, hanging, safe, summary};
use crate::signals::{Caught, Signals};
use crate::stands_for::StandsFor;
use crate::unattended::works_for_server;
use crate::watcher::Watcher;
use provost_runtime::{StateDir, complaints, keep};
use provost_view::AgentGoal;
use provost_view::open_in;
use provost_view::run_state;

const READ_MAX: usize = 1_000;
/// Entries at the end of an agent's log among which its final summary is.
const LAST_ENTRIES: u64 = 100;

/// Tells other processes what models are writing, as far as that is possible: the log has all of it later.
async fn tell_live(watcher: Arc<Watcher>, socket: PathBuf) -> Infallible {
    let _ = watcher.live().serve(&socket).await;
    std::future::pending().await
}

/// How long a worker may take to take a run up until the user is told that none has.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Says so if no worker takes the run up.
async fn tell_if_untaken(backend: Arc<dyn Backend>, run: RunId) -> Infallible {
    tokio::time::sleep(TAKEN_WITHIN).await;
    let is_active = run_state(&*backend, run)
        .await
        .is_ok_and(|state| state.is_some_and(|state| state.outcome().is_none()));
    if is_active && matches!(backend.holder(run).await, Ok(None)) {
        let needs = match backend.unheld(run).await {
            Ok(Some(Unheld { failed: Some(failed), .. })) => safe(&failed),
            Ok(Some(Unheld { label: Some(label), .. })) => {
                format!("is one running that serves `{label}`? `provost worker` is one")
            }
            _ => "is one running? `provost worker` is one".to_owned(),
        };
        tell(&format!("note: no worker has taken the run: {needs}"));
    }
    std::future::pending().await
}

/// Who resumes a suspended run, by the name for the log.
pub(crate) const BY: &str = "provost resume";

/// A run that this process holds.
pub(crate) struct Work {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) harness: Harness,
    /// Where is kept how observers fared, and which services agents leave running.
    pub(crate) place: StateDir,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) asking: Asking,
    pub(crate) signals: Signals,
    pub(crate) shown: ShownArgs,
    pub(crate) progress: Progress,
    pub(crate) pending_stop: PendingStop,
    pub(crate) stands_for: StandsFor,
}

/// What to do with a suspension that was requested before this process held the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingStop {
    /// There is none.
    None,
    /// The process that was asked died before the run was suspended; the user who resumes the run wants it to go
    /// on.
    Outlived,
}

/// The result of the work.
enum Came {
    To(Outcome),
    /// A second interrupt: nothing more was awaited.
    Away,
}

impl Work {
    /// Works until the run is suspended or ends, or until a second interrupt, and reports the result.
    ///
    /// # Errors
    /// When the log can't be written or read, or another process has taken the run over.
    pub(crate) async fn finish(self) -> anyhow::Result<Exit> {
        self.work(None).await
    }

    /// The same, after the message, if any, that resumed the run. Where hooks refused it
    /// that is the error, and a run that was completed before isn't reported again: no model was called.
    ///
    /// # Errors
    /// Those too.
    pub(crate) async fn finish_after(
        self,
        said: Option<&SentMessage<'_>>,
        was_completed: bool,
    ) -> anyhow::Result<Exit> {
        self.work(said.map(|said| (said, was_completed))).await
    }

    async fn work(mut self, said: Option<(&SentMessage<'_>, bool)>) -> anyhow::Result<Exit> {
        let run = self.harness.run_id();
        if let Some(state) = run_state(&*self.backend, run).await? {
            self.watcher.knows(Names::of(&state));
        }
        let asking = self.asking.clone();
        let messages = Messages { backend: self.backend.clone(), watcher: self.watcher.clone(), run };
        if self.is_followed() && works_for_server() {
            // Workers go on with it.
            return Ok(Exit::Done);
        }
        // What is followed here, others tell of.
        let told = match self.is_followed() {
            true => Either::Left(tell_if_untaken(self.backend.clone(), run)),
            false => Either::Right(tell_live(self.watcher.clone(), live_socket(&self.place.live(), run))),
        };
        let besides = async move {
            tokio::select! {
                told = told => match told {},
                asked = asking.work() => asked,
                sent = messages.work() => sent,
            }
        };
        let (came, signal) = match self.drive(besides).await {
            Ok(result) => result,
            Err(error) => {
                self.watcher.close();
                self.end_leftovers().await;
                return Err(error);
            }
        };
        let Came::To(outcome) = came else {
            self.watcher.close();
            self.tell_of_observers();
            tell(&self.left_at_once());
            self.end_leftovers().await;
            return Ok(Exit::Cancelled);
        };
        self.watcher.close();
        self.tell_of_observers();
        let refusal = match said {
            Some((said, _)) if !matches!(outcome, Outcome::Aborted { .. }) => {
                said.refusal(&*self.backend).await?
            }
            Some(_) | None => None,
        };
        let is_unchanged = refusal.is_some() && said.is_some_and(|(_, was_completed)| was_completed);
        let own = self.stands_for.status(&*self.backend, run, &outcome).await?;
        if own.is_none() && !matches!(outcome, Outcome::Completed { .. }) {
            // The program doesn't say why it was ended.
            output::release_notes();
        }
        if !is_unchanged {
            self.report().tell(&outcome).await?;
        }
        self.end_leftovers().await;
        if let Some(refusal) = refusal {
            anyhow::bail!(refusal);
        }
        let by_signal = matches!(&outcome, Outcome::Paused { why: PauseReason::Asked { by, .. } } if Some(by.as_str()) == signal);
        Ok(match own {
            _ if by_signal => Exit::Cancelled,
            Some(own) => own,
            None => self.report().exit(&outcome),
        })
    }

    /// Whether workers of an engine perform the run's effects, and this process only follows it.
    fn is_followed(&self) -> bool {
        !self.backend.performs_here()
    }

    /// What becomes of a run that is no longer waited for.
    fn left_at_once(&self) -> String {
        let run = self.harness.run_id();
        if self.is_followed() {
            return format!(
                "no longer followed: it is suspended once its workers know\nlook with: provost show {run}"
            );
        }
        format!("stopped at once, in the middle of what it did\ngo on with: provost resume {run}")
    }

    /// Leaves the run to the workers of an engine.
    pub(crate) fn leave(self) -> RunId {
        self.watcher.close();
        self.harness.run_id()
    }

    fn report(&self) -> Report<'_> {
        Report {
            backend: &*self.backend,
            run: self.harness.run_id(),
            place: &self.place,
            shown: self.shown,
            progress: self.progress,
            stands_for: &self.stands_for,
        }
    }

    /// Works on the run while `asking` asks the user its questions.
    async fn drive(
        &mut self,
        asking: impl Future<Output = anyhow::Result<Infallible>>,
    ) -> anyhow::Result<(Came, Option<&'static str>)> {
        enum Next {
            Turn(TurnState),
            Signal(Caught),
        }
        let mut asking = pin!(asking);
        let never = CancellationToken::new();
        let mut asked = None;
        let mut endings = 0;
        loop {
            let next = tokio::select! {
                turn = self.harness.run_turn(&never) => Next::Turn(turn?),
                signal = self.signals.caught() => Next::Signal(signal),
                Err(error) = &mut asking => return Err(error),
            };
            match next {
                Next::Turn(TurnState::Continue) => {}
                Next::Turn(TurnState::Done(Outcome::Paused { why: PauseReason::Asked { .. } }))
                    if asked.is_none()
                        && self.pending_stop == PendingStop::Outlived
                        && !self.is_followed()
                        && was_told_to_suspend(&*self.backend, self.harness.run_id()).await? =>
                {
                    self.pending_stop = PendingStop::None;
                    self.harness.resume(BY, Budget::default(), None).await?;
                    for question in open_in(&*self.backend, self.harness.run_id()).await? {
                        self.watcher.opened(question);
                    }
                }
                Next::Turn(TurnState::Done(outcome)) => return Ok((Came::To(outcome), asked)),
                Next::Signal(caught) if asked.is_none() && self.stands_for.takes(caught, &mut endings) => {}
                Next::Signal(Caught { name, .. }) if asked.is_none() => {
                    asked = Some(name);
                    self.watcher.stopping(name);
                    self.harness.control(name).pause(None).await?;
                }
                Next::Signal(_) => return Ok((Came::Away, asked)),
            }
        }
    }

    /// Records how observers fared, and reports what went wrong with them. The run isn't affected.
    fn tell_of_observers(&self) {
        if self.is_followed() {
            return;
        }
        let reports = self.harness.observer_reports();
        let mut warnings = complaints(&reports);
        if let Err(error) = keep(&self.place.observers(), self.harness.run_id(), SystemClock.now(), &reports)
        {
            warnings.push(format!("{error:#}"));
        }
        warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
    }

    /// Ends once more what is left of the run's programs whose guards they killed. What can't be ended is in the
    /// log and in the last message.
    async fn end_leftovers(&self) {
        let is_any_left = tokio::task::spawn_blocking(end_adopted_leftovers).await.unwrap_or_default();
        if !is_any_left {
            return;
        }
        let run = self.harness.run_id();
        if let Err(error) = self.backend.post(run.into(), RunEvent::ProcessesLeft.into(), None).await {
            tell(&format!("warning: the log doesn't say so: {error}"));
        }
        tell(&format!("warning: {MAYBE_LEFT}"));
    }
}

/// What a user is told of a run that is suspended or has ended.
pub(crate) struct Report<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) run: RunId,
    pub(crate) place: &'a StateDir,
    pub(crate) shown: ShownArgs,
    pub(crate) progress: Progress,
    pub(crate) stands_for: &'a StandsFor,
}

impl Report<'_> {
    /// The exit status for `outcome`. Says why it isn't that of a completed run where only a verified one counts.
    pub(crate) fn exit(&self, outcome: &Outcome) -> Exit {
        let exit = Exit::of(outcome);
        if !self.shown.require_verified || Exit::of_verified(outcome) == exit {
            return exit;
        }
        tell("exit status 1: --require-verified, and no stop hook or judge has verified this run");
        Exit::of_verified(outcome)
    }

    /// Prints its final text and its summary.
    ///
    /// # Errors
    /// When its log can't be read.
    pub(crate) async fn tell(&self, outcome: &Outcome) -> anyhow::Result<()> {
        if self.shown.json {
            return Ok(());
        }
        let run = self.run;
        let open = if outcome.is_final() { Vec::new() } else { open_in(self.backend, run).await? };
        self.print_last_text(&final_text(self.backend, run).await?);
        // A person at a program has seen how it ended.
        let is_seen = self.progress == Progress::Attended && outcome.is_final();
        if self.shown.quiet && (is_seen || Exit::of(outcome) == Exit::Done) {
            return Ok(());
        }
        if let Some(state) = run_state(self.backend, run).await? {
            let goal = AgentGoal::read(self.backend, SessionId::root(run)).await?;
            let why = why_no_final_summary(self.backend, run).await?;
            let summary = summary(&Stopped {
                run,
                state: &state,
                outcome,
                open: &open,
                goal: goal.as_ref(),
                no_final_summary: why.as_deref(),
            });
            let summary = safe(&summary);
            match self.progress {
                Progress::Live(_) => tell(&format!("\n  {}", hanging(&summary, "  "))),
                Progress::Plain(_)
                | Progress::Attended
                | Progress::Passed
                | Progress::Json
                | Progress::Silent => tell(&summary),
            }
            left_running(&self.place.services(), run).iter().for_each(|line| tell(line));
        }
        Ok(())
    }

    const fn is_watched(&self) -> bool {
        matches!(self.progress, Progress::Live(_) | Progress::Attended)
    }

    /// A user who watched has read it already; a program with the streams of this command has written it.
    fn print_last_text(&self, text: &str) {
        let is_here = self.is_watched() && std::io::stdout().is_terminal();
        if text.is_empty() || is_here || self.stands_for.streams().is_some() {
            return;
        }
        if output::write(format!("{}\n", safe(text.trim_end())).as_bytes()).is_err() {
            let run = self.run;
            output::tell_of_loss(&format!(
                "the run isn't touched by that; its text is in: provost show {run}"
            ));
        }
    }
}

/// Why a run's first agent has given no final summary at the limit that suspended it; `None` where it has, or
/// wasn't asked for one, or where the outcome says it.
pub(crate) async fn why_no_final_summary(
    backend: &dyn Backend,
    run: RunId,
) -> anyhow::Result<Option<String>> {
    let root = ActorKey::Session(SessionId::root(run));
    let head = backend.state(root).await?.head();
    let mut after = Seq(head.0.saturating_sub(LAST_ENTRIES));
    let mut why = None;
    loop {
        let records = backend.read(root, after, READ_MAX).await?;
        let Some(newest) = records.last() else { return Ok(why) };
        after = newest.seq;
        for record in &records {
            match &record.entry {
                Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                    why.clone_from(&wrapped.problem);
                }
                // The outcome says it.
                Entry::Lifecycle(
                    LifecycleEntry::Paused(Paused {
                        outcome: Outcome::BudgetExhausted(Exhausted { unsummarized: Some(_), .. }),
                    })
                    | LifecycleEntry::Resumed(_),
                ) => why = None,
                _ => {}
            }
        }
    }
}

/// Whether a run's last suspension was requested for the whole run. One that only follows from the suspension of
/// some of its agents was meant for those.
async fn was_told_to_suspend(backend: &dyn Backend, run: RunId) -> anyhow::Result<bool> {
    for key in [ActorKey::Session(SessionId::root(run)), ActorKey::Run(run)] {
        let (mut after, mut told, mut last) = (Seq::START, false, false);
        loop {
            let records = backend.read(key, after, READ_MAX).await?;
            let Some(newest) = records.last() else { break };
            after = newest.seq;
            for record in &records {
                match &record.entry {
                    Entry::Lifecycle(LifecycleEntry::StopRequested(pending_stop))
                        if pending_stop.agent.is_none() && !pending_stop.for_child =>
                    {
                        told = true
                    }
                    Entry::Lifecycle(LifecycleEntry::Paused(_)) => (last, told) = (told, false),
                    _ => {}
                }
            }
        }
        if last {
            return Ok(true);
        }
    }
    Ok(false)
}
