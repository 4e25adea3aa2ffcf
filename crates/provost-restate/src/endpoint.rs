//! A worker: serves its services to the engine, registers them, and says that it lives.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use provost_harness::BackendError;
use restate_sdk::endpoint::{Builder, HandlerOptions, ServiceOptions};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::service::IntoServiceDefinition;
use restate_sdk_shared_core::IdentityVerifier;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::RestateBackend;
use crate::addresses::{Said, look_after_addresses};
use crate::api::Target;
use crate::backend::Identity;
use crate::deciders::Deciders;
use crate::effects::Effects;
use crate::engine::is_name;
use crate::named::{NamedEndpoint, ServiceName};
use crate::run_object::RunObject;
use crate::shared_objects::{BlobsObject, Index, Janitor, WorkerObject};
use crate::wire::{Beat, BeatReply, Owner};

/// How often a worker says that it lives.
const BEATS_EVERY: Duration = Duration::from_secs(1);
/// How long the answer to a beat may take before decisions are taken over.
const ANSWERED_WITHIN: Duration = Duration::from_secs(8);
/// Without an accepted beat for so long it isn't ready.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// A decision takes milliseconds, or some seconds where a long log is read again. A process that doesn't go on with one for so long hangs, and another decides.
const DECISION_SILENT: Duration = Duration::from_secs(10);
/// How much longer it gets to end the attempt itself.
const DECISION_ABORT: Duration = Duration::from_secs(5);
/// What an effect gets beyond its deadline before the engine takes it for stalled by itself.
const EFFECT_GRACE: Duration = Duration::from_secs(10 * 60);
/// The waits before the engine repeats a failed attempt.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(1);
/// Attempts don't end by themselves: after the engine's default of 70, a run's object would stay locked.
const RETRIES_MAX: u64 = i32::MAX as u64;
/// Attempts to tell a worker of what others have posted.
const WAKES_MAX: u64 = 30;
/// How long the answer of a request is kept for one that is sent again.
const ANSWERS_KEPT: Duration = Duration::from_secs(120);
/// How long open connections get to end.
const CLOSES_WITHIN: Duration = Duration::from_secs(5);

/// Where a worker is reached.
#[derive(Debug)]
pub struct WorkerEndpoint {
    /// Its name: letters, digits, `.`, `-` and `_`. A process that takes the name of another replaces it, as a restarted
    /// one does, and finishes what that has begun: two living ones need two names, and a worker that won't come back
    /// is replaced by one of its name, at any address.
    pub name: String,
    /// The labels of the runs that it takes, besides those without one.
    pub serves: Vec<String>,
    /// Where the effects of the runs that it holds are delivered.
    pub own: Listening,
    /// Where decisions are delivered, to any of the workers of this build: the address of a load balancer, or a port
    /// that they share ([`shared_listener`]). Without it they are delivered to the worker that started last.
    pub deciders: Option<Listening>,
}

/// A listener, and its address as the engine reaches it.
#[derive(Debug)]
pub struct Listening {
    /// The listener.
    pub listener: TcpListener,
    /// Its address.
    pub url: Url,
}

/// A listener on a port that several processes of this machine share: each connection goes to one of them.
///
/// # Errors
/// When the address can't be bound.
pub fn shared_listener(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    #[cfg(unix)]
    socket.set_reuse_port(true)?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// A process that serves as a worker. Dropping it leaves at once: the engine finds out by itself.
pub struct RunningWorker {
    backend: RestateBackend,
    owner: Owner,
    beats: Arc<Beats>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Beats {
    accepted: std::sync::Mutex<Option<std::time::Instant>>,
    stopped: AtomicBool,
    failure: watch::Sender<Option<BackendError>>,
}

impl RestateBackend {
    /// Serves decisions and effects from here on. The process may hold runs then.
    ///
    /// # Errors
    /// When its name is invalid, or the engine doesn't accept it.
    pub async fn start_worker(&self, endpoint: WorkerEndpoint) -> Result<RunningWorker, BackendError> {
        let WorkerEndpoint { name, serves, own, deciders } = endpoint;
        if !is_name(&name) {
            return Err(BackendError::Storage {
                attempt: "start a worker",
                message: format!("`{name}` is no name of a worker"),
                hint: Some("use letters, digits, `.`, `-` and `_`, and begin with a letter or digit"),
            });
        }
        let instance = format!("{:016x}", fastrand::u64(..));
        let owner = Owner { worker: name, instance };
        let stop = CancellationToken::new();
        let mut worker = RunningWorker {
            backend: self.clone(),
            owner: owner.clone(),
            beats: Arc::default(),
            stop: stop.clone(),
            tasks: Vec::new(),
        };
        let own_url = own.url.clone();
        let shared_url = deciders.as_ref().map(|deciders| deciders.url.clone());
        let identity = Arc::new(self.identity_verifier()?);
        match deciders {
            Some(deciders) => {
                worker.listen(deciders.listener, self.deciding(Services::default()).named(&identity))?;
                // An earlier process of this name may have been one that decides at its own address.
                let own_services = self.deciding(Services::untold());
                worker.listen(own.listener, self.performing(own_services.told(), &owner).named(&identity))?;
            }
            None => {
                let all = self.performing(self.deciding(Services::default()), &owner);
                worker.listen(own.listener, all.named(&identity))?;
            }
        }
        self.inner().blobs.refuse_other().await?;
        self.register(&owner, &own_url, shared_url.as_ref()).await?;
        self.inner().blobs.check().await?;
        worker.tell("begin", &owner.instance).await?;
        self.set_identity(Some(Identity { owner, serves }));
        worker.beats.accept();
        let deciding_url = shared_url.unwrap_or_else(|| own_url.clone());
        worker.tasks.push(tokio::spawn(beat(
            worker.backend.clone(),
            worker.owner.clone(),
            worker.beats.clone(),
            (deciding_url.clone(), stop.clone()),
        )));
        worker.tasks.push(tokio::spawn(look_after_addresses(
            worker.backend.clone(),
            worker.owner.clone(),
            (own_url, deciding_url),
            stop,
        )));
        Ok(worker)
    }

    fn identity_verifier(&self) -> Result<IdentityVerifier, BackendError> {
        let verifier = IdentityVerifier::default();
        let Some(key) = &self.inner().engine.identity_key else { return Ok(verifier) };
        verifier.with_key(key).map_err(|error| BackendError::Storage {
            attempt: "use the engine's identity key",
            message: error.to_string(),
            hint: Some(
                "it is the public key that the cluster's nodes print at their start (`publickeyv1_…`)",
            ),
        })
    }

    /// Adds what any worker of this build serves.
    fn deciding(&self, services: Services) -> Services {
        let inner = self.inner();
        let names = &inner.names;
        let deciders = Deciders::new(
            inner.blobs.clone(),
            names.clone(),
            inner.engine.effect_deadline,
            inner.engine.timer_lead,
        );
        let object = decision_options().enable_lazy_state(true);
        let janitor = decision_options().inactivity_timeout(EFFECT_GRACE);
        services
            .add("RunObject", names.run(), RunObject { deciders: Arc::new(deciders) }, object.clone())
            .add("Index", names.index(), Index, object.clone())
            .add("BlobsObject", names.blobs(), BlobsObject, object.clone())
            .add("WorkerObject", names.worker(), WorkerObject { names: names.clone() }, object)
            .add("Janitor", names.janitor(), Janitor { api: inner.api.clone() }, janitor)
    }

    /// Adds the effects of the runs that this worker holds.
    fn performing(&self, services: Services, owner: &Owner) -> Services {
        let inner = self.inner();
        let longest = inner.engine.effect_deadline.saturating_add(EFFECT_GRACE);
        // A worker that isn't reached within half a minute looks by itself, or has lost the run.
        let wake = HandlerOptions::new()
            .retry_policy_initial_interval(RETRY_FIRST)
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(RETRY_LAST)
            .retry_policy_max_attempts(WAKES_MAX)
            .retry_policy_kill_on_max_attempts();
        let options =
            decision_options().inactivity_timeout(longest).abort_timeout(EFFECT_GRACE).handler("wake", wake);
        let effects = Effects {
            leases: Arc::clone(&inner.leases),
            names: inner.names.clone(),
            feeds: Arc::clone(&inner.feeds),
        };
        services.add("Effects", inner.names.effects(&owner.worker), effects, options)
    }
}

/// Services that are served at one address.
#[derive(Default)]
struct Services {
    builder: Builder,
    names: Vec<ServiceName>,
    /// Whether the engine doesn't read of what is added.
    is_untold: bool,
}

impl Services {
    fn untold() -> Self {
        Self { is_untold: true, ..Self::default() }
    }

    fn told(self) -> Self {
        Self { is_untold: false, ..self }
    }

    fn add(
        mut self,
        of_type: &'static str,
        registered: String,
        service: impl IntoServiceDefinition,
        options: ServiceOptions,
    ) -> Self {
        self.names.push(ServiceName { of_type, registered, is_told: !self.is_untold });
        Self { builder: self.builder.bind(service.into_service_definition().options(options)), ..self }
    }

    fn named(self, identity: &Arc<IdentityVerifier>) -> NamedEndpoint {
        NamedEndpoint::new(HyperEndpoint::new(self.builder.build()), self.names, Arc::clone(identity))
    }
}

fn decision_options() -> ServiceOptions {
    ServiceOptions::new()
        .inactivity_timeout(DECISION_SILENT)
        .abort_timeout(DECISION_ABORT)
        .journal_retention(Duration::ZERO)
        .idempotency_retention(ANSWERS_KEPT)
        .retry_policy_initial_interval(RETRY_FIRST)
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(RETRY_LAST)
        .retry_policy_max_attempts(RETRIES_MAX)
}

impl Beats {
    fn accept(&self) {
        *self.accepted.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Some(std::time::Instant::now());
    }

    fn fail(&self, error: BackendError) {
        self.stopped.store(true, Ordering::SeqCst);
        self.failure.send_replace(Some(error));
    }
}

impl RunningWorker {
    /// Whether the engine has accepted it and gets its heartbeats.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let accepted = *self.beats.accepted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        !self.beats.stopped.load(Ordering::SeqCst)
            && !self.backend.inner().leases.is_draining()
            && accepted.is_some_and(|at| at.elapsed() < READY_WITHIN)
    }

    /// Begins no further effect: they wait for the next holders of their runs. Returns when those in progress have
    /// ended, or after `within`, with the number of those that have not. The runs are to be released then.
    pub async fn drain(&self, within: Duration) -> usize {
        self.backend.drained(within).await
    }

    /// Returns why this process can't be a worker any more, once that is so: another process has taken its name.
    /// Pending for ever otherwise.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn failed(&self) -> BackendError {
        let mut failure = self.beats.failure.subscribe();
        if let Ok(known) = failure.wait_for(Option::is_some).await
            && let Some(error) = &*known
        {
            return error.clone();
        }
        std::future::pending().await
    }

    /// Leaves: its runs are free at once, and connections end when their requests have. To be called when the runs
    /// are released.
    pub async fn stop(mut self) {
        self.backend.inner().leases.drain();
        let instance = self.owner.instance.clone();
        if let Err(error) = self.tell("leave", &instance).await {
            tracing::warn!(%error, "the engine can't be told that this worker leaves");
        }
        self.backend.set_identity(None);
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }

    async fn tell(&self, handler: &str, instance: &str) -> Result<(), BackendError> {
        let service = self.backend.inner().names.worker();
        let target = Target { service: &service, key: Some(&self.owner.worker), handler };
        self.backend.inner().api.call_for_nothing(target, &instance).await
    }

    fn listen(&mut self, listener: TcpListener, endpoint: NamedEndpoint) -> Result<(), BackendError> {
        let failed = |error: io::Error| BackendError::Storage {
            attempt: "listen for the engine",
            message: error.to_string(),
            hint: None,
        };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        self.tasks.push(tokio::spawn(accept(listener, endpoint, self.stop.clone())));
        Ok(())
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.stop.cancel();
        self.backend.set_identity(None);
    }
}

/// Serves connections of the engine. The SDK's own loop leaves Nagle's algorithm on, which makes it ten times slower.
async fn accept(listener: tokio::net::TcpListener, endpoint: NamedEndpoint, stop: CancellationToken) {
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection of the engine can't be accepted");
                    tokio::time::sleep(RETRY_FIRST).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let mut server = http2::Builder::new(TokioExecutor::new());
        server.timer(TokioTimer::new()).max_concurrent_streams(None::<u32>);
        let connection = graceful.watch(server.serve_connection(TokioIo::new(stream), endpoint.clone()));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection of the engine has ended");
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(CLOSES_WITHIN, graceful.shutdown()).await;
}

/// Says again and again that the worker lives.
///
/// Where that isn't answered in time, the address for decisions may lead nowhere, as after the end of the only worker behind
/// it: requests to one at which no process answers go to `deciding_url` then, also those that were begun.
async fn beat(
    backend: RestateBackend,
    owner: Owner,
    beats: Arc<Beats>,
    (deciding_url, stop): (Url, CancellationToken),
) {
    let service = backend.inner().names.worker();
    let target = Target { service: &service, key: Some(&owner.worker), handler: "beat" };
    let mut said = Said::default();
    let mut said_of_decisions = Said::default();
    for count in 1.. {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(BEATS_EVERY) => {}
        }
        let beat = Beat { instance: owner.instance.clone(), count };
        let answer = tokio::select! {
            () = stop.cancelled() => return,
            answer = backend.inner().api.read_within::<BeatReply>(target, &beat, ANSWERED_WITHIN) => answer,
        };
        if answer.is_ok() {
            said.works("the engine answers this worker's heartbeats again");
        }
        match answer {
            Ok(BeatReply::Fine) => beats.accept(),
            Ok(BeatReply::Revived) => {
                beats.accept();
                backend.check_leases().await;
            }
            Ok(BeatReply::Replaced) => {
                tracing::debug!(worker = owner.worker, "another process has taken this worker's name");
                backend.lose_leases();
                beats.fail(BackendError::Storage {
                    attempt: "serve as a worker",
                    message: format!("another process has taken the name `{}`", owner.worker),
                    hint: Some("give each worker a name of its own"),
                });
                return;
            }
            Err(error) => {
                said.fails(&error, "the engine doesn't answer this worker's heartbeats");
                match backend.take_over_decisions(&deciding_url).await {
                    Ok(()) => {
                        said_of_decisions.works("decisions are taken over again where no worker answers")
                    }
                    Err(error) => said_of_decisions.fails(&error, "decisions can't be taken over"),
                }
            }
        }
    }
}

impl RestateBackend {
    /// After a time in which this worker was taken for gone: gives up the runs that others have claimed.
    async fn check_leases(&self) {
        for lease in self.inner().leases.every() {
            let standing = self.standing_of(lease.run).await;
            if let (Ok(standing), Some(epoch)) = (standing, lease.epoch())
                && standing.epoch != epoch
            {
                lease.fail(BackendError::Conflict { actor: lease.run.into() });
            }
        }
    }

    fn lose_leases(&self) {
        for lease in self.inner().leases.every() {
            lease.fail(BackendError::Conflict { actor: lease.run.into() });
        }
    }
}
