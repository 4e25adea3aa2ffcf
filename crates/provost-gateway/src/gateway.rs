//! The gateway: one server a process, and the programs that may use it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use provost_event::{RunId, SessionId};
use provost_harness::{Backend, Clock, GatewayAccess, GatewayActivity, ModelGateway, Redactor};
use provost_llm::{ProviderSettings, Upstream};
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::GatewayLimits;
use crate::replay::Recording;
use crate::route::Family;
use crate::server;
use crate::session::ProgramAccess;

/// The providers that requests are forwarded to, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayProviders {
    /// For Anthropic's Messages.
    pub anthropic: String,
    /// For OpenAI's Responses and Chat Completions.
    pub openai: String,
    /// For Google's Gemini API.
    pub gemini: String,
}

/// What a gateway is made of.
pub struct GatewayOptions {
    /// The runs whose budgets bind.
    pub backend: Arc<dyn Backend>,
    /// The providers, their keys, and the prices of their models.
    pub settings: ProviderSettings,
    /// The providers to forward to.
    pub providers: GatewayProviders,
    /// The models that may be called, as `provider/model`; a `*` at the end stands for any rest. Empty: all.
    pub models: Vec<String>,
    /// Whether bodies are recorded, without secrets.
    pub records: bool,
    /// A run of the same backend whose recorded answers stand in for the providers; replayed calls cost nothing.
    pub replays: Option<RunId>,
    /// Removes secrets from what is recorded.
    pub redactor: Arc<Redactor>,
    /// Measures how long calls take.
    pub clock: Arc<dyn Clock>,
    /// The limits.
    pub limits: GatewayLimits,
}

/// The model gateway. It listens from the first access on; dropping it ends its server and all calls.
pub struct Gateway {
    shared: Arc<Shared>,
    address: OnceCell<String>,
    stop: CancellationToken,
    _guard: DropGuard,
}

/// What the server and its requests share.
pub(crate) struct Shared {
    pub(crate) options: GatewayOptions,
    pub(crate) programs: Mutex<HashMap<SessionId, Arc<ProgramAccess>>>,
    upstreams: Mutex<HashMap<String, Arc<Upstream>>>,
    recording: OnceCell<Recording>,
    pub(crate) held_bytes: Arc<tokio::sync::Semaphore>,
}

impl Gateway {
    /// A gateway that doesn't listen yet.
    #[must_use]
    pub fn new(options: GatewayOptions) -> Self {
        let stop = CancellationToken::new();
        let held_bytes = Arc::new(tokio::sync::Semaphore::new(options.limits.held_bytes_max));
        let shared = Shared {
            options,
            programs: Mutex::default(),
            upstreams: Mutex::default(),
            recording: OnceCell::new(),
            held_bytes,
        };
        let guard = stop.clone().drop_guard();
        Self { shared: Arc::new(shared), address: OnceCell::new(), stop, _guard: guard }
    }

    /// The address; begins to listen.
    async fn address(&self) -> Result<&String, String> {
        let listen = async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await;
            let listener =
                listener.map_err(|error| format!("the gateway can't listen on 127.0.0.1: {error}"))?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            server::serve(listener, Arc::clone(&self.shared), self.stop.clone());
            Ok(format!("http://{address}"))
        };
        self.address.get_or_try_init(|| listen).await
    }
}

#[async_trait]
impl ModelGateway for Gateway {
    async fn open(&self, session: SessionId) -> Result<GatewayAccess, String> {
        let url = self.address().await?.clone();
        if let Some(known) = self.shared.program(session) {
            return Ok(GatewayAccess { url, token: known.token.clone() });
        }
        let backend = Arc::clone(&self.shared.options.backend);
        let access = ProgramAccess::open(backend, session, self.shared.options.limits.requests_max);
        let access =
            access.map_err(|error| format!("the system gives no random bytes for a token: {error}"))?;
        let token = access.token.clone();
        self.shared.programs().insert(session, access);
        Ok(GatewayAccess { url, token })
    }

    async fn close(&self, session: SessionId) {
        let access = self.shared.programs().remove(&session);
        if let Some(access) = access {
            access.close().await;
        }
    }

    fn activity(&self, session: SessionId) -> Option<watch::Receiver<GatewayActivity>> {
        Some(self.shared.program(session)?.activity.follow())
    }
}

impl Shared {
    fn programs(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<ProgramAccess>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn program(&self, session: SessionId) -> Option<Arc<ProgramAccess>> {
        self.programs().get(&session).cloned()
    }

    /// The access with this token.
    pub(crate) fn by_token(&self, token: &str) -> Option<Arc<ProgramAccess>> {
        self.programs().values().find(|access| is_same(&access.token, token)).cloned()
    }

    /// The name of the provider of a family.
    pub(crate) fn provider(&self, family: Family) -> &str {
        let providers = &self.options.providers;
        match family {
            Family::Anthropic => &providers.anthropic,
            Family::Openai => &providers.openai,
            Family::Gemini => &providers.gemini,
        }
    }

    /// The client of a provider; made at the first request.
    ///
    /// # Errors
    /// With the remedy, if it can't be called.
    pub(crate) fn upstream(&self, family: Family) -> Result<Arc<Upstream>, String> {
        let name = self.provider(family).to_owned();
        let mut known = self.upstreams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(upstream) = known.get(&name) {
            return Ok(Arc::clone(upstream));
        }
        let made = Upstream::new(&self.options.settings, &name).map_err(|error| error.to_string())?;
        let made = Arc::new(made);
        known.insert(name, Arc::clone(&made));
        Ok(made)
    }

    /// The recording that stands in for the providers, if any.
    ///
    /// # Errors
    /// If it can't be read.
    pub(crate) async fn recording(&self) -> Result<Option<&Recording>, String> {
        let Some(run) = self.options.replays else { return Ok(None) };
        self.recording.get_or_try_init(|| Recording::read(self, run)).await.map(Some)
    }

    /// Whether the settings allow a model, by its whole name.
    pub(crate) fn allows(&self, model: &str) -> bool {
        let models = &self.options.models;
        let fits = |allowed: &String| match allowed.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => allowed == model,
        };
        models.is_empty() || models.iter().any(fits)
    }
}

/// Compares without telling by its duration how much is equal.
fn is_same(known: &str, given: &str) -> bool {
    let differs = known.bytes().zip(given.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    known.len() == given.len() && differs == 0
}
