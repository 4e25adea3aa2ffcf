//! One request to a run's object: the decisions of its actors, in memory, and then everything that follows from them.

mod finish;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use provost_engine::{Actor, Decision, Event, HeldResult, Now, SessionEvent};
use provost_event::{ActorKey, BudgetEntry, EffectId, Entry, LifecycleEntry, Record, RunId, Seq, Timestamp};
use provost_harness::BackendError;
use restate_sdk::context::{ContextReadState as _, ObjectContext};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde_json::value::RawValue;

use crate::deciders::Deciders;
use crate::pages::Item;
use crate::payload::Payload;
use crate::state::{HEAD, OpenEffect, OpenEffects, Part, RunHead, actor_of, get, log_key, open_key, part_of};
use crate::wire::{Dismissal, EffectOf, LogHead, Moment, OrderRow, PostRequest, Stop, StopKind};

/// Maximum messages caused by one event; more than that is a loop between actors.
const MESSAGES_MAX: usize = 1_000_000;
/// Bytes of new entries in an answer: the engine keeps it with the request.
const ANSWERED_BYTES_MAX: usize = 64 << 10;

/// A request in progress.
pub(crate) struct Step<'a> {
    ctx: &'a ObjectContext<'a>,
    deciders: &'a Deciders,
    pub(crate) run: RunId,
    pub(crate) head: RunHead,
    actors: BTreeMap<ActorKey, Loaded>,
    /// Effects to hand to the holder, in order.
    orders: Vec<EffectId>,
    stops: Vec<Stop>,
    /// The worker that loses the run.
    dismissed: Option<(String, Dismissal)>,
    /// Invocations to kill.
    kills: Vec<String>,
    row_changed: bool,
    /// The new entries of all logs, by their places.
    appended: Vec<Item>,
    tells_holder: bool,
    /// Messages to other runs: to the origin of a fork.
    elsewhere: Vec<PostRequest>,
    watch: Option<Timestamp>,
    at: Timestamp,
}

struct Loaded {
    log: LogHead,
    open: OpenEffects,
    /// `None` until it decides.
    state: Option<Actor>,
    log_changed: bool,
    open_changed: bool,
}

/// Why a request did nothing.
pub(crate) enum StepError {
    /// It can't be done.
    Backend(BackendError),
    /// The engine's own.
    Engine(TerminalError),
}

impl From<BackendError> for StepError {
    fn from(error: BackendError) -> Self {
        Self::Backend(error)
    }
}

impl From<TerminalError> for StepError {
    fn from(error: TerminalError) -> Self {
        Self::Engine(error)
    }
}

impl<'a> Step<'a> {
    /// Begins a request to the object of `run` at `at`.
    pub(crate) async fn begin(
        ctx: &'a ObjectContext<'a>,
        deciders: &'a Deciders,
        run: RunId,
        at: Timestamp,
    ) -> Result<Self, TerminalError> {
        let head = get(ctx, HEAD).await?.unwrap_or_default();
        Ok(Self {
            ctx,
            deciders,
            run,
            head,
            actors: BTreeMap::new(),
            orders: Vec::new(),
            stops: Vec::new(),
            dismissed: None,
            kills: Vec::new(),
            row_changed: false,
            appended: Vec::new(),
            tells_holder: false,
            elsewhere: Vec::new(),
            watch: None,
            at,
        })
    }

    async fn load(&mut self, key: ActorKey) -> Result<&mut Loaded, TerminalError> {
        let loaded = match self.actors.remove(&key) {
            Some(loaded) => loaded,
            None => {
                let part = part_of(key);
                let (log_key, open_key) = (log_key(part), open_key(part));
                // Both are on their way before either is awaited.
                let (log, open) = (asked(self.ctx, &log_key), asked(self.ctx, &open_key));
                let log = log.await?.map(Json::into_inner).unwrap_or_default();
                let open = open.await?.map(Json::into_inner).unwrap_or_default();
                Loaded { log, open, state: None, log_changed: false, open_changed: false }
            }
        };
        Ok(self.actors.entry(key).or_insert(loaded))
    }

    /// The open effects of `key`.
    pub(crate) async fn open(&mut self, key: ActorKey) -> Result<&mut OpenEffects, TerminalError> {
        let loaded = self.load(key).await?;
        Ok(&mut loaded.open)
    }

    /// The same, to be written.
    pub(crate) async fn open_to_change(&mut self, key: ActorKey) -> Result<&mut OpenEffects, TerminalError> {
        let loaded = self.load(key).await?;
        loaded.open_changed = true;
        Ok(&mut loaded.open)
    }

    async fn state(&mut self, key: ActorKey) -> Result<&mut Actor, StepError> {
        let deciders = self.deciders;
        let loaded = self.load(key).await?;
        if loaded.state.is_none() {
            loaded.state = Some(deciders.take(key, &loaded.log, &loaded.open).await?);
        }
        loaded.state.as_mut().ok_or(StepError::Backend(BackendError::Closed))
    }

    /// The last entry of `key`.
    pub(crate) async fn head_of(&mut self, key: ActorKey) -> Result<Seq, TerminalError> {
        Ok(self.load(key).await?.log.head)
    }

    /// Whether the run has an outcome; `None` before it has started.
    pub(crate) async fn has_outcome(&mut self) -> Result<Option<bool>, StepError> {
        let key = ActorKey::Run(self.run);
        Ok(self.state(key).await?.status().map(|status| status.outcome.is_some()))
    }

    /// Has `key` decide on `event`, and the actors that get messages on those. `of` is the effect whose result it is.
    /// Returns whether the event changed anything.
    pub(crate) async fn decide(
        &mut self,
        key: ActorKey,
        event: Event,
        now: Now,
        of: Option<EffectId>,
    ) -> Result<bool, StepError> {
        let changed = self.decide_one(key, event, now, of).await?;
        let (mut waiting, mut steps) = (VecDeque::from(changed.messages), 0);
        let mut now = changed.now;
        while let Some(message) = waiting.pop_front() {
            if message.to.run() != self.run {
                let event = Payload::of(&message.event, &self.deciders.blobs).await?;
                let moment = Moment { at: now.at, entropy: now.entropy, elapsed: None };
                self.elsewhere.push(PostRequest::new(message.to, event, moment));
                continue;
            }
            steps += 1;
            if steps > MESSAGES_MAX {
                return Err(endless(message.to).into());
            }
            let next = self.decide_one(message.to, message.event, now, of).await?;
            now = next.now;
            waiting.extend(next.messages);
        }
        self.head.elapsed = self.head.elapsed.max(now.elapsed);
        Ok(changed.is_change)
    }

    async fn decide_one(
        &mut self,
        key: ActorKey,
        event: Event,
        mut now: Now,
        of: Option<EffectId>,
    ) -> Result<OneDecision, StepError> {
        let held = may_be_held(&event);
        let kept = match held {
            // Before the decision: it takes the event.
            Some(_) => Some(Payload::of(&event, &self.deciders.blobs).await?),
            None => None,
        };
        let state = self.state(key).await?;
        now.elapsed = now.elapsed.max(state.elapsed());
        let decision = state.decide(event, now);
        if decision.is_empty() {
            if let (Some(seq), Some(kept)) = (held, kept) {
                self.hold(key, seq, kept).await?;
            }
            return Ok(OneDecision { is_change: false, messages: Vec::new(), now });
        }
        let messages = self.take_in(key, decision, now, of).await?;
        Ok(OneDecision { is_change: true, messages, now })
    }

    /// A result may wait for those of earlier calls: the actor keeps it, and the log doesn't say so yet.
    async fn hold(&mut self, key: ActorKey, seq: Seq, event: Payload) -> Result<(), TerminalError> {
        let loaded = self.load(key).await?;
        if let Some(open) = loaded.open.get_mut(&seq).filter(|open| open.held.is_none()) {
            open.held = Some(event);
            // However long the earlier ones take, it isn't late.
            open.deadline = None;
            loaded.open_changed = true;
            loaded.log.version += 1;
            loaded.log_changed = true;
        }
        Ok(())
    }

    /// The actor gives an effect its result itself: it isn't performed any more.
    async fn hold_own(&mut self, key: ActorKey, held: HeldResult) -> Result<(), StepError> {
        let HeldResult { seq, result } = held;
        let event: Event = SessionEvent::ToolDone { seq, result }.into();
        let event = Payload::of(&event, &self.deciders.blobs).await?;
        self.hold(key, seq, event).await?;
        let open = self.open_to_change(key).await?.get_mut(&seq);
        let invocation = open.and_then(|open| open.invocation.take());
        self.kill(invocation);
        Ok(())
    }

    /// Takes in what an actor has decided.
    async fn take_in(
        &mut self,
        key: ActorKey,
        decision: Decision,
        now: Now,
        of: Option<EffectId>,
    ) -> Result<Vec<provost_engine::Message>, StepError> {
        self.append(key, decision.entries, now).await?;
        for seq in decision.closed {
            self.close(EffectId { actor: key, seq }, of).await?;
        }
        for seq in decision.aborts {
            self.abort(EffectId { actor: key, seq }).await?;
        }
        for held in decision.held {
            self.hold_own(key, held).await?;
        }
        for request in decision.effects {
            let effect = Payload::of(&request.effect, &self.deciders.blobs).await?;
            let open = OpenEffect::new(&request, effect);
            self.open_to_change(key).await?.insert(request.seq, open);
            self.order(EffectId { actor: key, seq: request.seq });
        }
        Ok(decision.messages)
    }

    async fn append(&mut self, key: ActorKey, entries: Vec<Entry>, now: Now) -> Result<(), StepError> {
        let Some(count) = u64::try_from(entries.len()).ok().filter(|count| *count > 0) else { return Ok(()) };
        let head = self.state(key).await?.head();
        // A fork's log begins after the entries it refers to, not at the previous head.
        let first = Seq(head.0.saturating_sub(count) + 1);
        if key == ActorKey::Run(self.run) && entries.iter().any(shows_in_a_list) {
            self.row_changed = true;
        }
        let mut lines = Vec::with_capacity(entries.len());
        let loaded = self.load(key).await?;
        let mut seq = first;
        for entry in entries {
            if matches!(entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))) {
                loaded.log.snapshot = Some(seq);
            }
            let record = Record { actor: key, seq, at: now.at, elapsed: now.elapsed, entry };
            let line: Arc<RawValue> = line_of(&record)?.into();
            loaded.log.pages.push(Item(seq.0, Arc::clone(&line)));
            lines.push(line);
            seq = seq.next();
        }
        loaded.log.head = head;
        loaded.log.version += 1;
        loaded.log_changed = true;
        for line in lines {
            self.head.position += 1;
            self.appended.push(Item(self.head.position, line));
        }
        let row = OrderRow { agent: part_of(key), first, count };
        let row = serde_json::value::to_raw_value(&row).map_err(|error| unwritable(&error))?;
        self.head.order.push(Item(self.head.position, row.into()));
        if let Some(agent) = part_of(key) {
            self.head.agents.insert(agent);
        }
        Ok(())
    }

    async fn close(&mut self, id: EffectId, of: Option<EffectId>) -> Result<(), TerminalError> {
        let epoch = self.head.epoch;
        let Some(open) = self.open_to_change(id.actor).await?.remove(&id.seq) else { return Ok(()) };
        self.orders.retain(|ordered| *ordered != id);
        // The invocation that brings the result ends by itself.
        if of == Some(id) {
            return Ok(());
        }
        let is_here = open.epoch == Some(epoch);
        if is_here && open.held.is_none() {
            self.stops.push(Stop { of: EffectOf { id, epoch }, how: StopKind::Close });
        }
        // A timer's invocation may not have begun; that of a holder that is gone never ends.
        if !is_here || open.kind.is_timer() {
            self.kills.extend(open.invocation);
        }
        Ok(())
    }

    async fn abort(&mut self, id: EffectId) -> Result<(), TerminalError> {
        let (epoch, is_held) = (self.head.epoch, self.head.owner.is_some());
        let Some(open) = self.open_to_change(id.actor).await?.get_mut(&id.seq) else { return Ok(()) };
        // Also for the next holder, if this one leaves before it hears of it.
        open.abort = true;
        if is_held && open.epoch == Some(epoch) {
            self.stops.push(Stop { of: EffectOf { id, epoch }, how: StopKind::Abort });
        }
        Ok(())
    }

    /// Hands an open effect to the holder, if there is one.
    pub(crate) fn order(&mut self, id: EffectId) {
        if self.head.owner.is_some() && !self.orders.contains(&id) {
            self.orders.push(id);
        }
    }

    /// Kills an invocation whose effect is handed over anew, or lost.
    pub(crate) fn kill(&mut self, invocation: Option<String>) {
        self.kills.extend(invocation);
    }

    /// Takes the run from its holder, which is told: it may live.
    pub(crate) fn dismiss_holder(&mut self, overdue: String) {
        let (run, epoch) = (self.run, self.head.epoch);
        if let Some(owner) = self.head.owner.take() {
            self.dismissed = Some((owner.worker, Dismissal { run, epoch, overdue }));
        }
    }

    /// Has deadlines looked at at `due`.
    pub(crate) const fn watch_at(&mut self, due: Option<Timestamp>) {
        self.watch = due;
    }

    /// Has the run's holder told of what is new: it asks for nothing that it isn't told of.
    pub(crate) const fn tell_holder(&mut self) {
        self.tells_holder = true;
    }

    /// The new entries, unless they are long.
    pub(crate) fn appended(&self) -> Option<Vec<Item>> {
        let bytes = self.appended.iter().map(|Item(_, line)| line.get().len()).sum::<usize>();
        (bytes <= ANSWERED_BYTES_MAX).then(|| self.appended.clone())
    }

    /// The actors that have open effects.
    pub(crate) fn actors_with_open(&self) -> Vec<ActorKey> {
        self.head
            .open
            .iter()
            .map(|part: &Part| actor_of(self.run, *part))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }
}

/// Asks for a key of the object at once; `get` does so when it is first awaited.
fn asked<'a, T: serde::de::DeserializeOwned + 'static>(
    ctx: &'a ObjectContext<'a>,
    key: &'a str,
) -> impl Future<Output = Result<Option<Json<T>>, TerminalError>> + use<'a, T> {
    ctx.get::<Json<T>>(key)
}

struct OneDecision {
    is_change: bool,
    messages: Vec<provost_engine::Message>,
    now: Now,
}

/// The effect whose result an actor may keep without an entry.
const fn may_be_held(event: &Event) -> Option<Seq> {
    match event {
        Event::Session(SessionEvent::ToolDone { seq, .. }) => Some(*seq),
        _ => None,
    }
}

/// A reservation changes only the time of the last change in a list, and comes with every turn.
fn shows_in_a_list(entry: &Entry) -> bool {
    !matches!(entry, Entry::Budget(BudgetEntry::Reserved(_)))
}

fn line_of(record: &Record) -> Result<Box<RawValue>, BackendError> {
    record.to_line().and_then(RawValue::from_string).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> BackendError {
    BackendError::Storage { attempt: "serialize an entry", message: error.to_string(), hint: None }
}

fn endless(actor: ActorKey) -> BackendError {
    BackendError::Storage {
        attempt: "decide",
        message: format!("{actor} and others answer each other without end"),
        hint: None,
    }
}

/// A failure of the engine ends the attempt; it decides whether to repeat it.
impl From<StepError> for HandlerError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Backend(error) => error.into(),
            StepError::Engine(error) => error.into(),
        }
    }
}
