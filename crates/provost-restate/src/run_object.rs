//! The object of a run: one request at a time, whichever worker serves it.

use std::collections::BTreeSet;
use std::sync::Arc;

use provost_engine::{Event, Now, RunEvent};
use provost_event::{ActorKey, EffectId, RunId, Seq, Timestamp};
use restate_sdk::context::{
    ContextReadState as _, ContextWriteState as _, ObjectContext, SharedObjectContext,
};
use restate_sdk::errors::{HandlerError, HandlerResult, TerminalError};
use restate_sdk::serde::Json;

use crate::deciders::Deciders;
use crate::state::{EffectKind, HEAD, OpenEffect, ROW, RunHead, dedup_key, get, log_key, open_key, part_of};
use crate::step::{Step, StepError};
use crate::wire::{
    BeginRequest, ClaimRequest, Claimed, Decided, EffectOf, Failed, Failure, LogHead, Moment, PostDone,
    PostRequest, ReadLog, RecoverRequest, Release, Reply, RunRow, RunStanding,
};

/// A run's object.
pub(crate) struct RunObject {
    pub(crate) deciders: Arc<Deciders>,
}

#[restate_sdk::object]
impl RunObject {
    /// Has actors of the run decide on events, one after the other; what follows from all of them is written once.
    #[handler]
    async fn post(
        &self,
        ctx: ObjectContext<'_>,
        requests: Json<Vec<PostRequest>>,
    ) -> HandlerResult<Json<Decided>> {
        let (run, requests) = (run_of(ctx.key())?, requests.into_inner());
        let count = requests.len();
        match post(&ctx, &self.deciders, run, requests).await {
            Ok(decided) => Ok(Json(decided)),
            // Nothing is written, so none of them counts.
            Err(StepError::Backend(error)) => {
                let replies = vec![Reply::Failed(Failure::from(&error)); count];
                Ok(Json(Decided { replies, entries: None }))
            }
            Err(StepError::Engine(error)) => Err(error.into()),
        }
    }

    /// Makes a process the run's holder.
    #[handler]
    async fn claim(
        &self,
        ctx: ObjectContext<'_>,
        request: Json<ClaimRequest>,
    ) -> HandlerResult<Json<Reply<Claimed>>> {
        let run = run_of(ctx.key())?;
        answer(claim(&ctx, &self.deciders, run, request.into_inner()).await)
    }

    /// Recovers the run although no process holds it, for a stop that was requested.
    #[handler]
    async fn recover(
        &self,
        ctx: ObjectContext<'_>,
        request: Json<RecoverRequest>,
    ) -> HandlerResult<Json<Reply<()>>> {
        let run = run_of(ctx.key())?;
        answer(recover(&ctx, &self.deciders, run, request.into_inner()).await)
    }

    /// Ends the hold of the run.
    #[handler]
    async fn release(
        &self,
        ctx: ObjectContext<'_>,
        request: Json<Release>,
    ) -> HandlerResult<Json<Reply<()>>> {
        let run = run_of(ctx.key())?;
        answer(release(&ctx, &self.deciders, run, request.into_inner()).await)
    }

    /// Grants the permit to begin an effect that must not be performed twice: to one attempt.
    #[handler]
    async fn begin(
        &self,
        ctx: ObjectContext<'_>,
        request: Json<BeginRequest>,
    ) -> HandlerResult<Json<Reply<bool>>> {
        let BeginRequest { of, attempt } = request.into_inner();
        let changed = change_effect(&ctx, of, |open| match &open.begun {
            Some(begun) => (*begun == attempt, false),
            None => {
                open.begun = Some(attempt);
                (true, true)
            }
        });
        Ok(Json(changed.await?))
    }

    /// The holder is about to leave and won't begin an effect: it waits for the next one.
    #[handler]
    async fn defer(&self, ctx: ObjectContext<'_>, of: Json<EffectOf>) -> HandlerResult<Json<Reply<bool>>> {
        let changed = change_effect(&ctx, of.into_inner(), |open| {
            let is_unbegun = open.begun.is_none();
            if is_unbegun {
                (open.epoch, open.invocation, open.deadline) = (None, None, None);
            }
            (is_unbegun, is_unbegun)
        });
        Ok(Json(changed.await?))
    }

    /// A worker could not work on the run. Only told, to those who ask how the run stands.
    #[handler]
    async fn fail(&self, ctx: ObjectContext<'_>, failed: Json<Failed>) -> HandlerResult<()> {
        // A run that was never posted to has nothing that is to be worked on.
        if let Some(head) = get::<RunHead>(&ctx, HEAD).await? {
            ctx.set(HEAD, Json(RunHead { failed: Some(failed.into_inner()), ..head }));
        }
        Ok(())
    }

    /// Looks for overdue effects: their holder hangs, and loses the run.
    #[handler]
    async fn watch(&self, ctx: ObjectContext<'_>, due: Json<Timestamp>) -> HandlerResult<()> {
        let run = run_of(ctx.key())?;
        watch(&ctx, &self.deciders, run, due.into_inner()).await?;
        Ok(())
    }

    /// A part of a log.
    #[handler]
    async fn read(&self, ctx: SharedObjectContext<'_>, part: Json<ReadLog>) -> HandlerResult<Json<LogHead>> {
        let ReadLog { actor, after } = part.into_inner();
        let key = log_key(part_of(actor));
        let log = read::<LogHead>(&ctx, &key).await?.unwrap_or_default();
        Ok(Json(LogHead { pages: log.pages.after(after.0), ..log }))
    }

    /// The order of the run's entries after a place.
    #[handler]
    async fn order(
        &self,
        ctx: SharedObjectContext<'_>,
        after: Json<u64>,
    ) -> HandlerResult<Json<crate::pages::Pages>> {
        let head = read::<RunHead>(&ctx, HEAD).await?.unwrap_or_default();
        Ok(Json(head.order.after(after.into_inner())))
    }

    /// How the run stands.
    #[handler]
    async fn standing(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<RunStanding>> {
        let Some(head) = read::<RunHead>(&ctx, HEAD).await? else { return Ok(Json(RunStanding::default())) };
        let row = read::<RunRow>(&ctx, ROW).await?;
        let RunHead { owner, epoch, elapsed, position, agents, label, failed, .. } = head;
        Ok(Json(RunStanding { label, failed, row, owner, epoch, elapsed, position, agents }))
    }
}

async fn read<'a, T: serde::de::DeserializeOwned + 'static>(
    ctx: &'a SharedObjectContext<'a>,
    key: &'a str,
) -> Result<Option<T>, TerminalError> {
    Ok(ctx.get::<Json<T>>(key).await?.map(Json::into_inner))
}

fn run_of(key: &str) -> Result<RunId, TerminalError> {
    key.parse().map_err(|_| TerminalError::new_with_code(400, format!("`{key}` is not the id of a run")))
}

/// What the caller gets; a failure of the engine itself ends the attempt instead.
fn answer<T>(result: Result<Reply<T>, StepError>) -> HandlerResult<Json<Reply<T>>> {
    match result {
        Ok(reply) => Ok(Json(reply)),
        Err(StepError::Backend(error)) => Ok(Json(Reply::Failed(Failure::from(&error)))),
        Err(StepError::Engine(error)) => Err(error.into()),
    }
}

async fn post(
    ctx: &ObjectContext<'_>,
    deciders: &Deciders,
    run: RunId,
    requests: Vec<PostRequest>,
) -> Result<Decided, StepError> {
    let at = requests.iter().map(|request| request.moment.at).max().unwrap_or_default();
    let mut step = Step::begin(ctx, deciders, run, at).await?;
    let is_holder = step.head.owner.is_some()
        && requests
            .iter()
            .all(|request| request.of.map(|of| of.epoch).or(request.holds) == Some(step.head.epoch));
    let (mut replies, mut counted) = (Vec::with_capacity(requests.len()), BTreeSet::new());
    for PostRequest { actor, event, moment, dedup, of, holds: _, label } in requests {
        if of.is_some_and(|of| step.head.owner.is_none() || of.epoch != step.head.epoch) {
            replies.push(Reply::Lost);
            continue;
        }
        if let Some(key) = dedup.map(|dedup| dedup_key(actor, &dedup)) {
            if counted.contains(&key) || get::<bool>(ctx, &key).await?.is_some() {
                replies.push(Reply::Done(PostDone { head: step.head_of(actor).await?, changed: false }));
                continue;
            }
            counted.insert(key);
        }
        if step.head.position == 0 {
            step.head.label = label;
        }
        let event: Event = event.read(&deciders.blobs).await?;
        let Moment { at, entropy, elapsed } = moment;
        let now = Now { at, elapsed: step.head.elapsed.max(elapsed.unwrap_or_default()), entropy };
        let changed = step.decide(actor, event, now, of.map(|of| of.id)).await?;
        replies.push(Reply::Done(PostDone { head: step.head_of(actor).await?, changed }));
    }
    let entries = if is_holder { step.appended() } else { None };
    if !is_holder {
        step.tell_holder();
    }
    step.finish().await?;
    for key in &counted {
        ctx.set(key, Json(true));
    }
    Ok(Decided { replies, entries })
}

async fn claim(
    ctx: &ObjectContext<'_>,
    deciders: &Deciders,
    run: RunId,
    request: ClaimRequest,
) -> Result<Reply<Claimed>, StepError> {
    let ClaimRequest { by, over, at, entropy } = request;
    let mut step = Step::begin(ctx, deciders, run, at).await?;
    if let Some(owner) = step.head.owner.clone().filter(|_| over != Some(step.head.epoch)) {
        return Ok(Reply::Held(owner));
    }
    let was_released = step.head.owner.is_none() && step.head.released;
    step.head.epoch += 1;
    step.head.owner = Some(by);
    step.head.released = false;
    step.head.failed = None;
    let found = Found::of(&mut step).await?;
    let is_interrupted = match step.has_outcome().await? {
        None => false,
        Some(has_outcome) => (found.undone || !has_outcome) && (found.lost || !was_released),
    };
    let elapsed = step.head.elapsed;
    if is_interrupted {
        let now = Now { at, elapsed, entropy };
        let recover = RunEvent::Recover { fresh: found.fresh.clone() };
        step.decide(run.into(), recover.into(), now, None).await?;
    }
    hand_over_open(&mut step, found.invocations, at).await?;
    let claimed = Claimed { epoch: step.head.epoch, elapsed: step.head.elapsed };
    step.finish().await?;
    Ok(Reply::Done(claimed))
}

async fn recover(
    ctx: &ObjectContext<'_>,
    deciders: &Deciders,
    run: RunId,
    request: RecoverRequest,
) -> Result<Reply<()>, StepError> {
    let RecoverRequest { over, at, entropy } = request;
    let mut step = Step::begin(ctx, deciders, run, at).await?;
    if let Some(owner) = step.head.owner.clone().filter(|_| over != Some(step.head.epoch)) {
        return Ok(Reply::Held(owner));
    }
    if step.has_outcome().await? != Some(false) {
        return Ok(Reply::Done(()));
    }
    // What the last holder still reports doesn't count.
    step.head.epoch += 1;
    (step.head.owner, step.head.released) = (None, true);
    let found = Found::of(&mut step).await?;
    let now = Now { at, elapsed: step.head.elapsed, entropy };
    step.decide(run.into(), RunEvent::Recover { fresh: found.fresh }.into(), now, None).await?;
    step.finish().await?;
    Ok(Reply::Done(()))
}

async fn release(
    ctx: &ObjectContext<'_>,
    deciders: &Deciders,
    run: RunId,
    request: Release,
) -> Result<Reply<()>, StepError> {
    let Release { epoch, elapsed, begun } = request;
    // Nothing is decided: no time of day is needed.
    let mut step = Step::begin(ctx, deciders, run, Timestamp::default()).await?;
    if step.head.epoch != epoch || step.head.owner.take().is_none() {
        return Ok(Reply::Lost);
    }
    // What was on its way to the holder is for the next one.
    for actor in step.actors_with_open() {
        let unbegun = |seq: &Seq, open: &OpenEffect| {
            open.begun.is_none() && !open.kind.is_timer() && !begun.contains(&EffectId { actor, seq: *seq })
        };
        if step.open(actor).await?.iter().any(|(seq, open)| unbegun(seq, open)) {
            for (seq, open) in step.open_to_change(actor).await? {
                if unbegun(seq, open) {
                    (open.epoch, open.invocation, open.deadline) = (None, None, None);
                }
            }
        }
    }
    step.head.released = true;
    step.head.elapsed = step.head.elapsed.max(elapsed);
    step.finish().await?;
    Ok(Reply::Done(()))
}

/// The effects that a new holder finds open.
#[derive(Default)]
struct Found {
    fresh: Vec<EffectId>,
    invocations: Vec<(EffectId, Option<String>)>,
    /// Whether there are any besides timers.
    undone: bool,
    /// Whether any of them may have been begun.
    lost: bool,
}

impl Found {
    async fn of(step: &mut Step<'_>) -> Result<Self, TerminalError> {
        let mut found = Self::default();
        for actor in step.actors_with_open() {
            for (seq, open) in step.open(actor).await? {
                let id = EffectId { actor, seq: *seq };
                found.invocations.push((id, open.invocation.clone()));
                if open.kind.is_timer() {
                    continue;
                }
                found.undone = true;
                if open.is_fresh() { found.fresh.push(id) } else { found.lost = true }
            }
        }
        Ok(found)
    }
}

/// Hands to the new holder what is still open of what it found.
async fn hand_over_open(
    step: &mut Step<'_>,
    found: Vec<(EffectId, Option<String>)>,
    at: Timestamp,
) -> Result<(), TerminalError> {
    for (id, invocation) in found {
        let is_open = match step.open(id.actor).await?.contains_key(&id.seq) {
            false => None,
            true => step.open_to_change(id.actor).await?.get_mut(&id.seq),
        };
        // What Recover has closed was killed with that.
        let Some(open) = is_open else { continue };
        // The actor has its result.
        if open.held.is_some() {
            continue;
        }
        found_in_state(id, &mut open.kind, at);
        open.invocation = None;
        step.order(id);
        step.kill(invocation);
    }
    Ok(())
}

/// Shortens a timer by the time that has passed. Only the wall clock tells that, and it may have been set: it never
/// makes a wait longer.
fn found_in_state(id: EffectId, kind: &mut EffectKind, at: Timestamp) {
    if let EffectKind::Timer { due, remaining_ms } = kind {
        *remaining_ms = match id.actor {
            // The run measures its own time, and returns the rest when asked.
            ActorKey::Run(_) => 0,
            ActorKey::Session(_) => due.since_ms(at).min(*remaining_ms),
        };
    }
}

/// Changes an open effect that the holder of this epoch has; `change` says what to answer and whether to write.
async fn change_effect(
    ctx: &ObjectContext<'_>,
    of: EffectOf,
    change: impl FnOnce(&mut crate::state::OpenEffect) -> (bool, bool),
) -> Result<Reply<bool>, HandlerError> {
    let EffectOf { id: EffectId { actor, seq }, epoch } = of;
    let head: RunHead = get(ctx, HEAD).await?.unwrap_or_default();
    if head.owner.is_none() || head.epoch != epoch {
        return Ok(Reply::Lost);
    }
    let key = open_key(part_of(actor));
    let mut all: crate::state::OpenEffects = get(ctx, &key).await?.unwrap_or_default();
    let answer = match all.get_mut(&seq) {
        None => (false, false),
        Some(open) => change(open),
    };
    if answer.1 {
        ctx.set(&key, Json(all));
    }
    Ok(Reply::Done(answer.0))
}

async fn watch(
    ctx: &ObjectContext<'_>,
    deciders: &Deciders,
    run: RunId,
    due: Timestamp,
) -> Result<(), StepError> {
    let mut step = Step::begin(ctx, deciders, run, due).await?;
    if step.head.watch != Some(due) {
        return Ok(());
    }
    step.head.watch = None;
    let mut next: Option<Timestamp> = None;
    let mut overdue: Vec<(EffectId, Option<String>)> = Vec::new();
    for actor in step.actors_with_open() {
        for (seq, open) in step.open(actor).await? {
            match open.deadline {
                Some(deadline) if deadline <= due => {
                    overdue.push((EffectId { actor, seq: *seq }, open.invocation.clone()));
                }
                Some(deadline) => next = Some(next.map_or(deadline, |next| next.min(deadline))),
                None => {}
            }
        }
    }
    if !overdue.is_empty() && step.head.owner.is_some() {
        let names = overdue.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>().join(", ");
        tracing::error!(%run, effects = names, "effects are overdue: their holder loses the run");
        step.dismiss_holder(names);
        step.head.released = false;
        overdue.into_iter().for_each(|(_, invocation)| step.kill(invocation));
    }
    step.watch_at(next);
    step.finish().await
}
