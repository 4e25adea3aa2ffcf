//! The objects besides those of runs: the list of runs, the place for large bodies, the workers; and what uses the admin API.

use std::path::PathBuf;
use std::time::Duration;

use restate_sdk::context::{
    Context, ContextClient as _, ContextReadState as _, ContextSideEffects as _, ContextWriteState as _,
    ObjectContext, RequestTarget, RunFuture as _, RunRetryPolicy, SharedObjectContext,
};
use restate_sdk::errors::{HandlerError, HandlerResult, TerminalError};
use restate_sdk::serde::Json;

use crate::api::Api;
use crate::engine::{ACTIVE_KEY, BLOBS_KEY, Names};
use crate::wire::{
    Beat, BeatReply, IndexEntry, IndexPhase, IndexPut, IndexQuery, OfferedBlobs, WorkerStanding,
};

/// A worker that has sent no heartbeat for this long may be gone...
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(5);
/// ... and is after so long again: the engine itself may have been down, and the worker's next beat may be on its way.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(5);

/// A list of runs: of all, or of the active ones.
pub(crate) struct Index;

#[restate_sdk::object]
impl Index {
    /// Stores a run's row.
    #[handler]
    async fn put(&self, ctx: ObjectContext<'_>, change: Json<IndexPut>) -> HandlerResult<()> {
        let IndexPut { key, replaces, workspace } = change.into_inner();
        if let Some(replaced) = replaces {
            ctx.clear(&replaced);
        }
        if ctx.key() != ACTIVE_KEY || is_active(&key) {
            ctx.set(&key, Json(workspace));
        }
        Ok(())
    }

    /// Runs, the latest start first, or by id.
    #[handler]
    async fn list(
        &self,
        ctx: SharedObjectContext<'_>,
        query: Json<IndexQuery>,
    ) -> HandlerResult<Json<Vec<IndexEntry>>> {
        Ok(Json(list(&ctx, query.into_inner()).await?))
    }
}

/// Whether a run is active by its key.
pub(crate) fn is_active(key: &str) -> bool {
    IndexEntry::of_key(key).is_some_and(|entry| entry.phase == IndexPhase::Active)
}

async fn list(ctx: &SharedObjectContext<'_>, query: IndexQuery) -> Result<Vec<IndexEntry>, TerminalError> {
    let IndexQuery { after, phases, workspace, prefix, max } = query;
    let mut entries = entries_of(ctx).await?;
    match &prefix {
        Some(prefix) => {
            entries.retain(|entry| entry.run.to_string().starts_with(prefix.as_str()));
            entries.sort_by_key(|entry| entry.run);
        }
        None => entries.sort_by(|one, other| other.cmp(one)),
    }
    entries.retain(|entry| phases.is_empty() || phases.contains(&entry.phase));
    if let Some(after) = after {
        entries.retain(|entry| (entry.started_at, entry.run) < after);
    }
    if let Some(workspace) = workspace {
        let mut there = Vec::new();
        for entry in entries {
            if there.len() < max && read::<PathBuf>(ctx, &entry.key()).await?.as_ref() == Some(&workspace) {
                there.push(entry);
            }
        }
        entries = there;
    }
    entries.truncate(max);
    Ok(entries)
}

async fn entries_of<'a>(ctx: &'a SharedObjectContext<'a>) -> Result<Vec<IndexEntry>, TerminalError> {
    Ok(ctx.get_keys().await?.iter().filter_map(|key| IndexEntry::of_key(key)).collect())
}

async fn read<'a, T: serde::de::DeserializeOwned + 'static>(
    ctx: &'a SharedObjectContext<'a>,
    key: &'a str,
) -> Result<Option<T>, TerminalError> {
    Ok(ctx.get::<Json<T>>(key).await?.map(Json::into_inner))
}

/// The place where the runs keep large bodies, by the id of its mark.
pub(crate) struct BlobsObject;

#[restate_sdk::object]
impl BlobsObject {
    /// Returns its id: the first one that is offered.
    #[handler]
    async fn agree(
        &self,
        ctx: ObjectContext<'_>,
        offered: Json<OfferedBlobs>,
    ) -> HandlerResult<Json<Option<String>>> {
        if let Some(known) = crate::state::get(&ctx, BLOBS_KEY).await? {
            return Ok(Json(Some(known)));
        }
        let OfferedBlobs { id } = offered.into_inner();
        if let Some(id) = &id {
            ctx.set(BLOBS_KEY, Json(id.clone()));
        }
        Ok(Json(id))
    }
}

const STANDING: &str = "standing";

/// A worker, by its name.
pub(crate) struct WorkerObject {
    pub(crate) names: Names,
}

#[restate_sdk::object]
impl WorkerObject {
    /// A process takes the name.
    #[handler]
    async fn begin(&self, ctx: ObjectContext<'_>, instance: Json<String>) -> HandlerResult<()> {
        self.heard_of(&ctx, Beat { instance: instance.into_inner(), count: 0 });
        Ok(())
    }

    /// Its process lives.
    #[handler]
    async fn beat(&self, ctx: ObjectContext<'_>, beat: Json<Beat>) -> HandlerResult<Json<BeatReply>> {
        let beat = beat.into_inner();
        let known = standing_of(&ctx).await?;
        if known.instance != beat.instance {
            return Ok(Json(BeatReply::Replaced));
        }
        self.heard_of(&ctx, beat);
        Ok(Json(if known.alive { BeatReply::Fine } else { BeatReply::Revived }))
    }

    /// It has sent no heartbeat for a while: it has a last chance.
    #[handler]
    async fn silent(&self, ctx: ObjectContext<'_>, beat: Json<Beat>) -> HandlerResult<()> {
        let beat = beat.into_inner();
        if is_last(&standing_of(&ctx).await?, &beat) {
            self.send_after(&ctx, "gone", beat, GONE_AFTER);
        }
        Ok(())
    }

    /// Nor since then: it is gone.
    #[handler]
    async fn gone(&self, ctx: ObjectContext<'_>, beat: Json<Beat>) -> HandlerResult<()> {
        let known = standing_of(&ctx).await?;
        if is_last(&known, &beat.into_inner()) {
            ctx.set(STANDING, Json(WorkerStanding { alive: false, ..known }));
        }
        Ok(())
    }

    /// Its process leaves.
    #[handler]
    async fn leave(&self, ctx: ObjectContext<'_>, instance: Json<String>) -> HandlerResult<()> {
        let known = standing_of(&ctx).await?;
        if known.instance == instance.into_inner() {
            ctx.set(STANDING, Json(WorkerStanding { alive: false, ..known }));
        }
        Ok(())
    }

    /// How it stands.
    #[handler]
    async fn standing(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<WorkerStanding>> {
        Ok(Json(read(&ctx, STANDING).await?.unwrap_or_default()))
    }
}

impl WorkerObject {
    fn heard_of(&self, ctx: &ObjectContext<'_>, beat: Beat) {
        let Beat { instance, count } = beat.clone();
        ctx.set(STANDING, Json(WorkerStanding { instance, count, alive: true }));
        self.send_after(ctx, "silent", beat, SILENT_AFTER);
    }

    fn send_after(&self, ctx: &ObjectContext<'_>, handler: &str, beat: Beat, wait: Duration) {
        let target = RequestTarget::object(self.names.worker(), ctx.key(), handler);
        drop(ctx.request::<_, ()>(target, Json(beat)).send_after(wait));
    }
}

async fn standing_of(ctx: &ObjectContext<'_>) -> Result<WorkerStanding, TerminalError> {
    Ok(crate::state::get(ctx, STANDING).await?.unwrap_or_default())
}

fn is_last(known: &WorkerStanding, beat: &Beat) -> bool {
    known.alive && known.instance == beat.instance && known.count == beat.count
}

/// Uses the admin API for objects, which must not do so themselves.
pub(crate) struct Janitor {
    pub(crate) api: Api,
}

#[restate_sdk::service]
impl Janitor {
    /// Kills invocations.
    #[handler]
    async fn kill(&self, ctx: Context<'_>, invocations: Json<Vec<String>>) -> HandlerResult<()> {
        let (api, invocations) = (self.api.clone(), invocations.into_inner());
        let kill = || async move {
            for invocation in invocations {
                api.kill(&invocation).await?;
            }
            Ok::<(), HandlerError>(())
        };
        let policy = RunRetryPolicy::new().initial_delay(Duration::from_millis(200)).max_attempts(100);
        ctx.run(kill).retry_policy(policy).name("kill").await?;
        Ok(())
    }
}
