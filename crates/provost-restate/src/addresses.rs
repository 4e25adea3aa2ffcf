//! Where the engine sends requests to: to processes that answer.

use std::time::Duration;

use provost_harness::BackendError;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::RestateBackend;
use crate::api::answers;
use crate::backend::Inner;
use crate::wire::Owner;

/// How often a worker looks.
const LOOKS_EVERY: Duration = Duration::from_secs(5);
/// Connections that are tried before an address counts as silent.
const GREETINGS: u32 = 3;

/// Looks again and again for addresses of workers that are gone: a request to a run's object that was begun there locks it,
/// also where another worker decides by now. And for what is sent to this worker elsewhere, because it seemed to be gone.
pub(crate) async fn look_after_addresses(
    backend: RestateBackend,
    owner: Owner,
    (own_url, deciding_url): (Url, Url),
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOKS_EVERY) => {}
        }
        let looked = async {
            if let Err(error) = backend.take_over_from_gone(&deciding_url).await {
                tracing::warn!(%error, "it isn't known whether workers that are gone are still asked to decide");
            }
            if let Err(error) = backend.take_back_effects(&owner, &own_url).await {
                tracing::warn!(%error, "it isn't known whether this worker's effects are sent to it");
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = looked => {}
        }
    }
}

impl RestateBackend {
    /// Has requests for decisions go to `url` where no process answers at their address, also those that were begun.
    pub(crate) async fn take_over_decisions(&self, url: &Url) {
        let silent = async {
            let Inner { api, names, .. } = &**self.inner();
            for deployment in api.deployments(&names.run()).await? {
                if deployment.url != *url && is_silent(&deployment.url).await {
                    api.move_deployment(&deployment, url).await?;
                }
            }
            Ok::<_, BackendError>(())
        };
        if let Err(error) = silent.await {
            tracing::warn!(%error, "decisions can't be taken over");
        }
    }

    /// The same, for workers alone that the engine takes for gone: of one that lives, this process may only not reach the
    /// address.
    async fn take_over_from_gone(&self, url: &Url) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        for deployment in api.deployments(&names.run()).await? {
            // An address that several share is nobody's own.
            let Some(worker) = deployment.suffix_of(&names.effects("")) else { continue };
            if deployment.url != *url
                && !self.worker_standing(worker).await?.alive
                && is_silent(&deployment.url).await
            {
                api.move_deployment(&deployment, url).await?;
            }
        }
        Ok(())
    }

    /// Has the effects of `owner` sent to `url` again, if another worker took that for silent meanwhile.
    async fn take_back_effects(&self, owner: &Owner, url: &Url) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        let effects = api.deployments(&names.effects(&owner.worker)).await?;
        // Another process may have its name by now.
        if effects.iter().any(|deployment| deployment.url != *url) && self.is_alive(owner).await? {
            self.have_own_effects_at(owner, url).await?;
        }
        Ok(())
    }

    /// Has the effects of `owner` sent to `url`.
    pub(crate) async fn have_own_effects_at(&self, owner: &Owner, url: &Url) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        for deployment in api.deployments(&names.effects(&owner.worker)).await? {
            if deployment.url != *url {
                api.move_deployment(&deployment, url).await?;
            }
        }
        Ok(())
    }
}

/// Whether no process answers at `url`. Several may share it, of which one hangs.
async fn is_silent(url: &Url) -> bool {
    for _ in 0..GREETINGS {
        if answers(url).await {
            return false;
        }
    }
    true
}
