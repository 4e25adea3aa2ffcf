//! The task that reads a run's log for a session: what it shows, what it asks, and how prompts end.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use provost_event::{
    ActorKey, ConversationEntry, Entry, GateEntry, LifecycleEntry, ModelEntry, Outcome, PauseReason, Purpose,
    Record, Seq, SessionId, ToolEntry,
};
use provost_harness::{PlacedRecord, RunPosition, RunStatus, live_socket, read_conversation};
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::editor::Update;
use crate::ending::Trouble;
use crate::live::LiveAnswer;
use crate::questions::Questions;
use crate::session::Session;
use crate::updates::{Updates, answer_text, answer_thought};

/// How often it is looked whether the process of a run that a prompt waits for is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Entries of a forked conversation that are read at a time.
const READ_MAX: usize = 1_000;

/// What is read before a session is there.
pub(crate) struct Replay {
    /// Whether it is shown.
    pub(crate) shown: Shown,
    /// The last entry of it.
    pub(crate) to: RunPosition,
    /// Told when all of it was read.
    pub(crate) done: oneshot::Sender<()>,
}

/// What is shown of what happened before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    Nothing,
}

struct Follower {
    session: Arc<Session>,
    updates: Updates,
    live: LiveAnswer,
    questions: Questions,
    replay: Option<Replay>,
}

/// Reads a run's log from its beginning, without end.
pub(crate) async fn follow(session: Arc<Session>, replay: Option<Replay>) {
    let mut follower = Follower {
        updates: Updates::new(session.run),
        live: LiveAnswer::new(live_socket(&session.options.live, session.run)),
        questions: Questions::new(session.clone()),
        session: session.clone(),
        replay,
    };
    if let Err(trouble) = follower.work().await {
        tracing::error!(run = %session.run, "the log can't be read any more: {}", trouble.words);
        session.fail(&trouble);
    }
}

impl Follower {
    async fn work(&mut self) -> Result<(), Trouble> {
        self.inherit().await?;
        let mut records = self.session.options.backend.subscribe_run(self.session.run, RunPosition::START);
        let mut looks = ticks();
        loop {
            tokio::select! {
                placed = records.next() => match placed {
                    Some(placed) => self.take(&placed?).await?,
                    None => return Err(Trouble::failed("the store has been closed")),
                },
                piece = self.live.next() => {
                    let update = self.live.take(piece);
                    self.show(update.into_iter().collect()).await;
                }
                () = self.questions.next_answered() => self.questions.compare(&self.updates).await?,
                _ = looks.tick() => self.look().await?,
            }
        }
    }

    /// A fork begins with a conversation of other logs.
    async fn inherit(&mut self) -> Result<(), Trouble> {
        let root = SessionId::root(self.session.run);
        let backend = self.session.options.backend.clone();
        let first = backend.read(root.into(), Seq::START, 1).await?;
        let Some(first) = first.first().map(|record| record.seq) else { return Ok(()) };
        let mut after = Seq::START;
        while after.next() < first {
            let max = usize::try_from(first.0 - after.0 - 1).unwrap_or(READ_MAX).min(READ_MAX);
            let records = read_conversation(&*backend, root, after, max).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            for record in &records {
                let updates = self.updates.take_inherited(record);
                self.show(updates).await;
            }
        }
        Ok(())
    }

    async fn take(&mut self, placed: &PlacedRecord) -> Result<(), Trouble> {
        let updates = self.updates.take(&placed.record);
        let mut updates = updates.into_iter().filter_map(|update| self.live.rest(update)).collect::<Vec<_>>();
        updates.extend(self.follow_call(&placed.record));
        self.show(updates).await;
        if self.replay.is_none() {
            self.live.connect().await;
        }
        if let Some(replay) = &self.replay {
            if placed.position < replay.to {
                return Ok(());
            }
            if let Some(replay) = self.replay.take() {
                // The request may have been given up.
                let _ = replay.done.send(());
            }
            return self.questions.compare(&self.updates).await;
        }
        if may_change_questions(&placed.record.entry) {
            self.questions.compare(&self.updates).await?;
        }
        if let (ActorKey::Run(_), Some(outcome)) = (placed.record.actor, outcome(&placed.record.entry)) {
            self.end(placed.position, outcome).await?;
        }
        Ok(())
    }

    /// The run has an outcome. One that waits for an answer goes on with it, and may do so already.
    async fn end(&mut self, place: RunPosition, outcome: &Outcome) -> Result<(), Trouble> {
        let waits = matches!(outcome, Outcome::Paused { why: PauseReason::Approval { .. } });
        if waits && self.questions.are_open() {
            self.session.hold(outcome);
        } else if !waits || self.session.outcome().await?.is_some() {
            self.session.ended(place, outcome);
        }
        Ok(())
    }

    /// What is known of an answer that isn't in the log, where an entry begins or ends one.
    fn follow_call(&mut self, record: &Record) -> Vec<Update> {
        if record.actor != ActorKey::from(SessionId::root(self.session.run)) {
            return Vec::new();
        }
        match &record.entry {
            Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::Turn => {
                let text = answer_text(record, record.seq);
                return self.live.called(record.seq, text, answer_thought(record, record.seq));
            }
            Entry::Model(ModelEntry::Retried(_))
            | Entry::Conversation(ConversationEntry::AssistantMessage(_)) => self.live.close(),
            _ => {}
        }
        Vec::new()
    }

    async fn show(&mut self, updates: Vec<Update>) {
        if self.replay.as_ref().is_some_and(|replay| replay.shown == Shown::Nothing) {
            return;
        }
        for update in updates {
            let is_shown = match &update {
                Update::Said(said) => self.replay.is_none() && self.session.is_shown(&said.text),
                _ => false,
            };
            if !is_shown {
                self.session.editor.show(self.session.run, update).await;
            }
        }
    }

    /// A process that is gone says nothing.
    async fn look(&mut self) -> Result<(), Trouble> {
        if self.replay.is_none() {
            self.live.connect().await;
        }
        if self.session.waits() && self.session.status().await? == Some(RunStatus::Interrupted) {
            let run = self.session.run;
            let words =
                format!("the process that worked on run {run} is gone; another prompt goes on with it");
            self.session.fail(&Trouble::failed(words));
        }
        Ok(())
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

const fn outcome(entry: &Entry) -> Option<&Outcome> {
    match entry {
        Entry::Lifecycle(LifecycleEntry::Paused(paused)) => Some(&paused.outcome),
        Entry::Lifecycle(LifecycleEntry::Ended(ended)) => Some(&ended.outcome),
        _ => None,
    }
}

/// Whether the open questions may be others after such an entry.
const fn may_change_questions(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Gate(GateEntry::ApprovalRequested(_) | GateEntry::ApprovalResolved(_))
            | Entry::Tool(ToolEntry::Finished(_))
            | Entry::Lifecycle(
                LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_) | LifecycleEntry::Resumed(_)
            )
    )
}
