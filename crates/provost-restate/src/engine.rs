//! Where the engine is, and how this installation uses it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use provost_event::RunId;
use url::Url;

/// How long an effect may take unless [`Engine::effect_deadline`] says otherwise.
const EFFECT_DEADLINE: Duration = Duration::from_secs(6 * 60 * 60);
/// The part of a wait that a worker measures unless [`Engine::timer_lead`] says otherwise.
const TIMER_LEAD: Duration = Duration::from_secs(2);

/// A Restate cluster, and the settings that all workers and clients of one installation share.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The ingress of any node (`http://host:8080`).
    pub ingress: Url,
    /// The admin API of any node (`http://host:9070`). It can do everything: keep it private.
    pub admin: Url,
    /// Where bodies are kept that are too large for the engine.
    pub blobs: BlobPlace,
    /// The cluster's public key (`publickeyv1_…`): workers refuse requests of others. Without it anyone who reaches a
    /// worker's port can have it decide.
    pub identity_key: Option<String>,
    /// Prefix of the names of services. Installations with different ones share a cluster without meeting. Default
    /// `provost`; a letter first, then letters, digits, `.`, `-` and `_`.
    pub namespace: String,
    /// The label that a worker must serve to take the runs that are started here; any worker without one.
    pub label: Option<String>,
    /// How long an effect may take before it counts as hung: it is killed, and its run goes to another holder.
    /// Default 6 h.
    pub effect_deadline: Duration,
    /// The last part of each wait, which the worker measures with its monotonic clock; the engine waits for what comes
    /// before. Default 2 s.
    pub timer_lead: Duration,
}

/// Where bodies are kept that are too large for the engine. All workers and clients must reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobPlace {
    /// A folder that all of them mount.
    Folder(PathBuf),
    /// An object store.
    ObjectStore {
        /// Its address: `s3://bucket/prefix`.
        url: Url,
        /// Its options by the names of the crate `object_store` (`aws_endpoint`, `aws_region`, …).
        options: BTreeMap<String, String>,
    },
}

impl Engine {
    /// A cluster with default settings.
    #[must_use]
    pub fn new(ingress: Url, admin: Url, blobs: BlobPlace) -> Self {
        Self {
            ingress,
            admin,
            blobs,
            identity_key: None,
            namespace: "provost".to_owned(),
            label: None,
            effect_deadline: EFFECT_DEADLINE,
            timer_lead: TIMER_LEAD,
        }
    }

    pub(crate) fn names(&self) -> Names {
        Names { namespace: self.namespace.clone() }
    }
}

/// The names of the engine's services.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    namespace: String,
}

/// The key of the object with the list of all runs.
pub(crate) const INDEX_KEY: &str = "runs";
/// The key of the object with the list of active ones: workers ask for it all the time, however many have ended.
pub(crate) const ACTIVE_KEY: &str = "active";
/// The key of the object with the id of the place for large bodies, and where in its state that is.
pub(crate) const BLOBS_KEY: &str = "id";

impl Names {
    /// The object of each run.
    pub(crate) fn run(&self) -> String {
        format!("{}.Run", self.namespace)
    }

    /// The objects with the lists of runs.
    pub(crate) fn index(&self) -> String {
        format!("{}.Index", self.namespace)
    }

    /// The object that knows the place for large bodies.
    pub(crate) fn blobs(&self) -> String {
        format!("{}.Blobs", self.namespace)
    }

    /// The object of each worker.
    pub(crate) fn worker(&self) -> String {
        format!("{}.Worker", self.namespace)
    }

    /// What uses the admin API.
    pub(crate) fn janitor(&self) -> String {
        format!("{}.Janitor", self.namespace)
    }

    /// The effects of the runs that a worker holds.
    pub(crate) fn effects(&self, worker: &str) -> String {
        format!("{}.Effects.{worker}", self.namespace)
    }
}

/// Whether `name` may be part of a service's name.
pub(crate) fn is_name(name: &str) -> bool {
    name.chars().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_'))
}

/// The key of a run's object.
pub(crate) fn run_key(run: RunId) -> String {
    run.to_string()
}
