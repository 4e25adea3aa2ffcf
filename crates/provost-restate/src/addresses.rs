//! Where the engine sends requests to: to processes that answer.

use std::time::Duration;

use provost_harness::BackendError;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::RestateBackend;
use crate::api::{DeploymentAt, anothers, answers, not_registered};
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
    let mut said = Said::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOKS_EVERY) => {}
        }
        let looked = async {
            let known = backend.inner().api.deployments().await?;
            let own = backend.take_back_effects(&known, &owner, &own_url).await;
            backend.take_over_from_gone(&known, &deciding_url).await.and(own)
        };
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = looked => looked,
        };
        match looked {
            Ok(()) => said.works("the engine's admin API answers again"),
            Err(error) => said.fails(
                &error,
                "it isn't known where the engine sends requests to, which may be a worker that is gone",
            ),
        }
    }
}

/// Whether the log has it that something fails, which is tried again and again.
#[derive(Default)]
pub(crate) struct Said {
    fails: bool,
}

impl Said {
    pub(crate) fn fails(&mut self, error: &BackendError, what: &str) {
        if !std::mem::replace(&mut self.fails, true) {
            tracing::warn!(%error, "{what}");
        }
    }

    pub(crate) fn works(&mut self, what: &str) {
        if std::mem::replace(&mut self.fails, false) {
            tracing::info!("{what}");
        }
    }
}

impl RestateBackend {
    /// Has the engine send what is for this worker to `own_url`, and what is to be decided to `shared_url`, or there too.
    ///
    /// # Errors
    /// When the engine doesn't reach this worker there.
    pub(crate) async fn register(
        &self,
        owner: &Owner,
        own_url: &Url,
        shared_url: Option<&Url>,
    ) -> Result<(), BackendError> {
        // What an earlier process of this name has begun, at another address perhaps, must be finished by this one: an
        // open request of an object locks its key.
        let moved = self.have_own_effects_at(owner, own_url).await;
        moved.map_err(|error| not_registered(own_url, &error))?;
        let names = &self.inner().names;
        if let Some(shared_url) = shared_url {
            self.register_at(shared_url, &names.run(), owner).await?;
        }
        self.register_at(own_url, &names.effects(&owner.worker), owner).await
    }

    /// Registers `url`, which must have `service`, and must not be where another worker gets its effects.
    async fn register_at(&self, url: &Url, service: &str, owner: &Owner) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        let there = api.register(url).await?;
        let own = names.effects(&owner.worker);
        let is_anothers = |name: &String| name.starts_with(&names.effects("")) && *name != own;
        if there.iter().any(|name| name == service) && !there.iter().any(is_anothers) {
            Ok(())
        } else {
            Err(anothers(url))
        }
    }

    /// Has requests for decisions go to `url` where no process answers at their address, also those that were begun.
    pub(crate) async fn take_over_decisions(&self, url: &Url) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        for deployment in api.deployments().await? {
            let decides = deployment.has(&names.run());
            if decides && deployment.url != *url && is_silent(&deployment.url).await {
                api.move_deployment(&deployment, url).await?;
            }
        }
        Ok(())
    }

    /// The same, for workers alone that the engine takes for gone: of one that lives, this process may only not reach the
    /// address.
    async fn take_over_from_gone(&self, known: &[DeploymentAt], url: &Url) -> Result<(), BackendError> {
        let Inner { api, names, .. } = &**self.inner();
        for deployment in known.iter().filter(|known| known.has(&names.run())) {
            // An address that several share is nobody's own.
            let Some(worker) = deployment.suffix_of(&names.effects("")) else { continue };
            if deployment.url != *url
                && !self.worker_standing(worker).await?.alive
                && is_silent(&deployment.url).await
            {
                api.move_deployment(deployment, url).await?;
            }
        }
        Ok(())
    }

    /// Has the effects of `owner` sent to `url` again, if another worker took that for silent meanwhile.
    async fn take_back_effects(
        &self,
        known: &[DeploymentAt],
        owner: &Owner,
        url: &Url,
    ) -> Result<(), BackendError> {
        let elsewhere = self.effects_elsewhere(known, owner, url);
        // Another process may have its name by now.
        if elsewhere.is_empty() || !self.is_alive(owner).await? {
            return Ok(());
        }
        self.move_all(&elsewhere, url).await
    }

    /// Has the effects of `owner` sent to `url`.
    async fn have_own_effects_at(&self, owner: &Owner, url: &Url) -> Result<(), BackendError> {
        let known = self.inner().api.deployments().await?;
        self.move_all(&self.effects_elsewhere(&known, owner, url), url).await
    }

    fn effects_elsewhere<'a>(
        &self,
        known: &'a [DeploymentAt],
        owner: &Owner,
        url: &Url,
    ) -> Vec<&'a DeploymentAt> {
        let effects = self.inner().names.effects(&owner.worker);
        known.iter().filter(|known| known.has(&effects) && known.url != *url).collect()
    }

    async fn move_all(&self, moved: &[&DeploymentAt], url: &Url) -> Result<(), BackendError> {
        for deployment in moved {
            self.inner().api.move_deployment(deployment, url).await?;
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
