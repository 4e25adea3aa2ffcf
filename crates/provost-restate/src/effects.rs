//! The service of one worker's effects: one effect an invocation, then a post of its result.

use std::sync::Arc;

use provost_event::{Elapsed, RunId};
use provost_harness::BackendError;
use restate_sdk::context::{
    Context, ContextClient as _, ContextSideEffects as _, RequestTarget, RunFuture as _,
};
use restate_sdk::errors::HandlerResult;
use restate_sdk::serde::Json;

use crate::engine::Names;
use crate::feeds::Feeds;
use crate::lease::{Leases, Performed};
use crate::wire::{Decided, Dismissal, Order, PostDone, PostRequest, Reply, Stop};

/// The effects of the runs that a worker holds.
pub(crate) struct Effects {
    pub(crate) leases: Arc<Leases>,
    pub(crate) names: Names,
    pub(crate) feeds: Arc<Feeds>,
}

#[restate_sdk::service]
impl Effects {
    /// Performs an effect and posts its result. Repeated by the engine after a failure, also while the first attempt
    /// still runs: the lease knows what has begun.
    #[handler]
    async fn perform(&self, ctx: Context<'_>, order: Json<Order>) -> HandlerResult<()> {
        let order = order.into_inner();
        let (of, due, run) = (order.of, order.due, order.of.id.actor.run());
        let leases = Arc::clone(&self.leases);
        let perform = || async move {
            let performed = match leases.get(run) {
                Some(lease) => lease.perform(order, &leases).await,
                None => Performed::Gone,
            };
            Ok(Json(performed))
        };
        let performed = ctx.run(perform).name("effect").await?.into_inner();
        let key = run.to_string();
        let lease = || self.leases.get(run).filter(|lease| lease.epoch() == Some(of.epoch));
        match performed {
            Performed::Result { event, moment } => {
                let request = PostRequest { of: Some(of), ..PostRequest::new(of.id.actor, event, moment) };
                let target = RequestTarget::object(self.names.run(), key, "post");
                let request = ctx.request::<_, Json<Decided>>(target, Json(vec![request]));
                let Decided { replies, entries } = request.call().await?.into_inner();
                self.feeds.learn(run, entries);
                if let Some(failure) = replies.into_iter().find_map(|reply| failure(reply, run)) {
                    // It stays in progress: the release says that it was begun.
                    lease().inspect(|lease| lease.fail(failure));
                    return Ok(());
                }
            }
            Performed::Deferred => {
                let target = RequestTarget::object(self.names.run(), key, "defer");
                ctx.request::<_, Json<Reply<bool>>>(target, Json(of)).call().await?;
            }
            Performed::Gone => {}
        }
        lease().inspect(|lease| lease.finished(of.id, due));
        Ok(())
    }

    /// Stops an effect.
    #[handler]
    async fn stop(&self, _ctx: Context<'_>, stop: Json<Stop>) -> HandlerResult<()> {
        let stop = stop.into_inner();
        if let Some(lease) = self.leases.get(stop.of.id.actor.run()) {
            lease.stop_effect(stop).await;
        }
        Ok(())
    }

    /// Others have posted to a run that this worker holds.
    #[handler]
    async fn wake(&self, _ctx: Context<'_>, run: Json<RunId>) -> HandlerResult<()> {
        self.feeds.wake(run.into_inner());
        Ok(())
    }

    /// The run isn't this worker's any more: an effect of it is past its deadline.
    #[handler]
    async fn dismiss(&self, _ctx: Context<'_>, dismissal: Json<Dismissal>) -> HandlerResult<()> {
        let Dismissal { run, epoch, overdue } = dismissal.into_inner();
        if let Some(lease) = self.leases.get(run).filter(|lease| lease.epoch() == Some(epoch)) {
            lease.fail(BackendError::Storage {
                attempt: "perform an effect",
                message: format!("{overdue} took longer than its deadline"),
                hint: Some(
                    "the run goes to the next worker; engine.effect_deadline is the time that an effect has",
                ),
            });
        }
        Ok(())
    }

    /// The elapsed time of a run that this worker holds.
    #[handler]
    async fn elapsed(&self, _ctx: Context<'_>, run: Json<RunId>) -> HandlerResult<Json<Option<Elapsed>>> {
        Ok(Json(self.leases.get(run.into_inner()).and_then(|lease| lease.elapsed())))
    }
}

/// Why an event isn't decided on, if it isn't.
fn failure(reply: Reply<PostDone>, run: RunId) -> Option<BackendError> {
    match reply {
        Reply::Done(_) => None,
        Reply::Lost | Reply::Held(_) => Some(BackendError::Conflict { actor: run.into() }),
        Reply::Failed(failure) => Some(failure.into()),
    }
}
