//! The engine that the settings name: how it is reached, by those who follow runs and by workers.

mod follow;
mod route;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_cluster::LocalCluster;
use provost_config::{ENGINE_ADMIN_PORT, EngineBlobs, EngineSettings, EngineUrl, engine_label};
use provost_harness::{Backend, BackendError, SystemClock};
use provost_restate::{BlobPlace, Engine, RestateBackend};
pub use provost_restate::{Listening, RunningWorker, WorkerEndpoint, shared_listener};

use self::follow::Follower;
use self::route::Route;
pub use self::work::{EngineWorker, WorkerNotice};
use crate::{Refusal, RuntimeError, Variables};

/// The folder of the cluster on this machine, in the state folder.
const CLUSTER: &str = "cluster";
/// Where large bodies are kept unless the settings say otherwise, in the state folder.
const BLOBS: &str = "engine-blobs";
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// The variables that say how an object store is reached begin so.
const STORE_VARIABLES: &str = "AWS_";

/// The engine of the settings, with what leads to it.
#[derive(Debug, Clone)]
pub(crate) struct EngineSetup {
    url: EngineUrl,
    settings: EngineSettings,
    state: PathBuf,
    variables: Variables,
}

/// An open way to an engine.
pub struct EngineConnection {
    /// The backend, on which runs can be served once a worker is started.
    pub backend: RestateBackend,
    /// The public key that requests to workers are signed for, if it is known.
    pub has_identity_key: bool,
    /// The label of this machine.
    pub host: String,
    routes: Vec<Route>,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It decides and performs effects.
    Worker,
    /// It starts, follows and steers runs.
    Client,
}

/// Where an engine is.
struct Places {
    ingress: Vec<String>,
    admin: Vec<String>,
    identity_key: Option<String>,
    blobs: BlobPlace,
}

impl EngineSetup {
    /// The one that the settings name, if they do.
    pub(crate) fn of(settings: &EngineSettings, state: &Path, variables: &Variables) -> Option<Self> {
        Some(Self {
            url: settings.url.clone()?,
            settings: settings.clone(),
            state: state.to_owned(),
            variables: variables.clone(),
        })
    }

    /// Where it is, for people.
    pub(crate) fn url(&self) -> String {
        self.url.to_string()
    }

    /// A backend that starts, follows and steers runs.
    pub(crate) async fn follow(&self) -> Result<Arc<dyn Backend>, RuntimeError> {
        let EngineConnection { backend, routes, .. } = self.connected(Part::Client).await?;
        Ok(Arc::new(Follower { engine: Arc::new(backend), _routes: routes }))
    }

    /// A backend on which runs can be served.
    pub(crate) async fn connect(&self) -> Result<EngineConnection, RuntimeError> {
        self.connected(Part::Worker).await
    }

    async fn connected(&self, part: Part) -> Result<EngineConnection, RuntimeError> {
        let Places { ingress, admin, identity_key, blobs } = self.places(part)?;
        let host = self.host()?;
        let mut routes = Vec::new();
        let (ingress, admin) = (way(ingress, &mut routes).await?, way(admin, &mut routes).await?);
        let wrong = |address: &str| Refusal::new(format!("engine: {address} is no address"), "");
        let url = |address: String| address.parse().map_err(|_| wrong(&address));
        let has_identity_key = identity_key.is_some();
        let mut engine = self.shared_by_all(Engine::new(url(ingress)?, url(admin)?, blobs));
        engine.identity_key = identity_key;
        engine.label = Some(host.clone());
        let connected = RestateBackend::connect(engine, Arc::new(SystemClock)).await;
        let backend = connected.map_err(|source| self.not_reached(source))?;
        Ok(EngineConnection { backend, has_identity_key, host, routes })
    }

    /// Sets what all workers and clients of an engine have in common.
    fn shared_by_all(&self, mut engine: Engine) -> Engine {
        if let Some(namespace) = &self.settings.namespace {
            engine.namespace.clone_from(namespace);
        }
        if let Some(ms) = self.settings.effect_deadline_ms {
            engine.effect_deadline = Duration::from_millis(ms);
        }
        engine
    }

    /// All that a connection is made of, as text.
    #[cfg(test)]
    pub(crate) fn told(&self) -> String {
        let nowhere = || "http://127.0.0.1:1".parse().unwrap();
        let engine = Engine::new(nowhere(), nowhere(), BlobPlace::Folder(PathBuf::new()));
        let places = self
            .places(Part::Worker)
            .map(|places| (places.ingress, places.admin, places.identity_key, places.blobs));
        format!(
            "{:?} {:?} {:?}",
            places.map_err(|error| error.to_string()),
            self.host(),
            self.shared_by_all(engine)
        )
    }

    fn not_reached(&self, source: BackendError) -> RuntimeError {
        RuntimeError::Engine { url: self.url(), source }
    }

    fn places(&self, part: Part) -> Result<Places, RuntimeError> {
        let EngineUrl::At(ingress) = &self.url else { return self.local() };
        let admin = match &self.settings.admin_url {
            Some(address) => vec![address.clone()],
            None => ingress.iter().map(|address| admin_of(address)).collect(),
        };
        let key_name = self.settings.identity_key_env.as_deref().filter(|_| part == Part::Worker);
        let identity_key = key_name.map(|name| {
            let unset = || {
                let what = format!("engine.identity_key_env: the variable {name} isn't set");
                Refusal::new(what, "set it to the engine's public key, publickeyv1_…")
            };
            self.variables.get(name).filter(|key| !key.is_empty()).cloned().ok_or_else(unset)
        });
        let blobs = match &self.settings.blobs {
            Some(EngineBlobs::Folder(folder)) => BlobPlace::Folder(folder.clone()),
            Some(EngineBlobs::Bucket(bucket)) => self.bucket(bucket)?,
            None => BlobPlace::Folder(self.state.join(BLOBS)),
        };
        Ok(Places { ingress: ingress.clone(), admin, identity_key: identity_key.transpose()?, blobs })
    }

    /// The cluster on this machine.
    fn local(&self) -> Result<Places, RuntimeError> {
        let cluster = local_cluster(&self.state);
        let plan = cluster.plan().map_err(|error| Refusal::new(error.to_string(), ""))?;
        let Some(plan) = plan else {
            return Err(Refusal::new(
                "no cluster was started on this machine",
                "`provost cluster up` starts one",
            )
            .into());
        };
        Ok(Places {
            ingress: plan.ingress(),
            admin: plan.admin(),
            identity_key: Some(plan.identity_key),
            blobs: BlobPlace::Folder(cluster.blobs()),
        })
    }

    fn bucket(&self, bucket: &str) -> Result<BlobPlace, Refusal> {
        let wrong =
            |_| Refusal::new(format!("engine.blobs: {bucket} is no address"), "e.g. s3://bucket/provost");
        let options = self.variables.iter().filter(|(name, _)| name.starts_with(STORE_VARIABLES));
        let options = options.map(|(name, value)| (name.to_lowercase(), value.clone()));
        Ok(BlobPlace::ObjectStore {
            url: bucket.parse().map_err(wrong)?,
            options: options.collect::<BTreeMap<_, _>>(),
        })
    }

    /// The label of this machine.
    fn host(&self) -> Result<String, Refusal> {
        self.settings.host.clone().map_or_else(host_name, Ok)
    }
}

/// The name of this machine, as a label.
///
/// # Errors
/// When it has none that can be one.
pub fn host_name() -> Result<String, Refusal> {
    let unfit =
        |why: String| Refusal::new(format!("this machine's name is no label: {why}"), "set engine.host");
    let name = std::fs::read_to_string(HOST_NAME).map_err(|error| unfit(error.to_string()))?;
    engine_label(name.trim().to_owned()).map_err(unfit)
}

/// The cluster on this machine.
pub(crate) fn local_cluster(state: &Path) -> LocalCluster {
    LocalCluster::in_folder(state.join(CLUSTER))
}

/// The admin API on the host of an ingress.
fn admin_of(ingress: &str) -> String {
    let port = ingress.rfind(':').unwrap_or(ingress.len());
    format!("{}:{ENGINE_ADMIN_PORT}", ingress.get(..port).unwrap_or(ingress))
}

/// One address for several, of which each is tried in their order.
async fn way(addresses: Vec<String>, routes: &mut Vec<Route>) -> Result<String, RuntimeError> {
    let hosts = addresses.iter().map(|address| address.strip_prefix("http://").map(str::to_owned));
    match (hosts.collect::<Option<Vec<_>>>(), addresses.as_slice()) {
        // One host needs no route; certificates are for the names of hosts.
        (_, [only]) => Ok(only.clone()),
        (Some(hosts), _) => {
            let route = Route::to(hosts).await.map_err(|source| RuntimeError::Route { source })?;
            let address = format!("http://{}", route.address());
            routes.push(route);
            Ok(address)
        }
        (None, _) => Err(Refusal::new(
            "engine.url: several hosts are asked without TLS only",
            "name one address that leads to all of them, such as that of a load balancer",
        )
        .into()),
    }
}
