//! `provost worker`: takes runs from an engine and works on them.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::Context as _;
use provost_config::{Request, Scope, load};
use provost_harness::{Clock as _, SystemClock};
use provost_runtime::{
    EngineConnection, EngineWorker, Listening, RunningWorker, StateDir, WorkerEndpoint, WorkerNotice,
    available_tools, host_name, shared_listener, words,
};
use provost_server::{Health, serve_health};
use tokio_util::sync::CancellationToken;

use super::current_dir;
use super::show::date_and_time;
use crate::cli::WorkerArgs;
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::signals::Signals;
use crate::wiring::{state_dir, variables};

/// How long the runs are given up for, once a second signal has come.
const GIVES_UP_WITHIN: Duration = Duration::from_secs(2);

/// Several runs are worked on at once, each with its own programs and models.
pub(super) fn worker(args: WorkerArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("can't start the runtime")?;
    let result = runtime.block_on(work(args));
    runtime.shutdown_background();
    result
}

async fn work(args: WorkerArgs) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("can't listen for Ctrl-C")?;
    let (folder, variables) = (current_dir()?, variables());
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let place = state_dir(&settled.settings, &folders);
    let stop = CancellationToken::new();
    let leave = CancellationToken::new();
    let started = Arc::new(OnceLock::new());
    let answers = health_of(Arc::clone(&started), stop.clone());
    check_addresses(&args)?;
    let health = listener(args.health, "--health")?;
    let health = tokio::spawn(serve_health(health, answers, CancellationToken::new()));
    let Begun { name, connection, running } = tokio::select! {
        begun = begin(&args, &place, &settled.settings.engine.labels) => begun?,
        _ = signals.next() => return Ok(Exit::Cancelled),
    };
    let backend = &connection.backend;
    let running = Arc::new(running);
    // Held weakly, so that the worker can be stopped while this is served.
    let _ = started.set(Arc::downgrade(&running));
    let worker = EngineWorker { place, settled, folders, variables, runs_max: args.runs as usize };
    let working =
        tokio::spawn(
            Arc::new(worker).work(backend.clone(), (stop.clone(), leave.clone()), |notice| said(&notice)),
        );
    let exit = tokio::select! {
        signal = signals.next() => {
            note(&format!("{signal}: worker {name} leaves once its running calls have ended; again ends it at once"));
            stop.cancel();
            tokio::select! {
                _ = running.drain(args.drain) => Exit::Done,
                _ = signals.next() => Exit::Cancelled,
            }
        }
        error = running.failed() => {
            stop.cancel();
            leave.cancel();
            working.await.context("the worker's task failed")?;
            return Err(anyhow::Error::new(error).context(format!("worker {name} can't go on")));
        }
    };
    leave.cancel();
    let left = async {
        working.await.context("the worker's task failed")?;
        health.abort();
        if let Ok(running) = Arc::try_unwrap(running) {
            running.stop().await;
        }
        Ok::<_, anyhow::Error>(())
    };
    // Where the engine doesn't answer, it is asked for a while.
    let asked_again = async {
        match exit {
            Exit::Cancelled => tokio::time::sleep(GIVES_UP_WITHIN).await,
            _ => drop(signals.next().await),
        }
    };
    tokio::select! {
        left = left => {
            left?;
            note(&format!("worker {name} has left"));
            Ok(exit)
        }
        () = asked_again => {
            note(&format!("worker {name} ends without giving up its runs: others take them once the engine takes it for gone"));
            Ok(Exit::Cancelled)
        }
    }
}

/// A worker that the engine knows.
struct Begun {
    name: String,
    connection: EngineConnection,
    running: RunningWorker,
}

async fn begin(args: &WorkerArgs, place: &StateDir, labels: &[String]) -> anyhow::Result<Begun> {
    let connection = place.connect().await?;
    let url = place.engine().unwrap_or_default();
    let endpoint = endpoint(args, &connection, labels)?;
    let name = endpoint.name.clone();
    let labels = endpoint.serves.join(", ");
    note(&format!("worker {name} has the engine {url} call it at {}", endpoint.own.url));
    let running = connection.backend.start_worker(endpoint).await;
    let running = running.with_context(|| format!("can't serve the engine {url}"))?;
    note(&format!("worker {name} takes runs from {url} for {labels}; ready at http://{}/ready", args.health));
    Ok(Begun { name, connection, running })
}

/// The addresses and the name of the worker.
fn endpoint(
    args: &WorkerArgs,
    connection: &EngineConnection,
    labels: &[String],
) -> Result<WorkerEndpoint, Refusal> {
    let beyond =
        [Some(args.listen), args.shared].into_iter().flatten().find(|address| !address.ip().is_loopback());
    if let Some(address) = beyond.filter(|_| !connection.has_identity_key) {
        let what = format!(
            "{address} is reached from other machines, and requests of the engine can't be told from others"
        );
        return Err(Refusal::new(
            what,
            "set engine.identity_key_env to the variable with the engine's public key",
        ));
    }
    let mut serves = vec![connection.host.clone()];
    for label in args.serves.iter().chain(labels) {
        if !serves.contains(label) {
            serves.push(label.clone());
        }
    }
    let own = Listening {
        url: advertised(args.listen, args.advertise.as_deref(), "--advertise")?,
        listener: listener(args.listen, "--listen").map(into_std)??,
    };
    let shared = args.shared.map(|address| {
        let listener = shared_listener(address).map_err(|error| not_listened(address, "--shared", &error))?;
        let url = advertised(address, args.advertise_shared.as_deref(), "--advertise-shared")?;
        Ok::<_, Refusal>(Listening { listener, url })
    });
    // Several machines may have one label.
    let machine = || host_name().unwrap_or_else(|_| connection.host.clone());
    let name = args.name.clone().unwrap_or_else(|| format!("{}-{}", machine(), args.listen.port()));
    Ok(WorkerEndpoint { name, serves, own, deciders: shared.transpose()? })
}

/// Refuses addresses that can't be right, whatever the engine is.
fn check_addresses(args: &WorkerArgs) -> Result<(), Refusal> {
    if args.shared == Some(args.listen) {
        let what = format!("--shared: {} is the worker's own address (--listen)", args.listen);
        return Err(Refusal::new(
            what,
            "give --shared another port, which all workers of this machine share",
        ));
    }
    if [Some(args.listen), args.shared].contains(&Some(args.health)) {
        let what = format!("--health: the engine calls the worker at {}", args.health);
        return Err(Refusal::new(what, "give --health another port"));
    }
    let advertised = [("--advertise", &args.advertise), ("--advertise-shared", &args.advertise_shared)];
    // The engine would keep it, and show it.
    match advertised.into_iter().find(|(_, url)| url.as_ref().is_some_and(|url| url.contains('@'))) {
        Some((flag, _)) => Err(Refusal::new(format!("{flag}: the address has a login"), "give it without")),
        None => Ok(()),
    }
}

fn into_std(listener: tokio::net::TcpListener) -> Result<TcpListener, Refusal> {
    listener.into_std().map_err(|error| Refusal::new(format!("--listen: {error}"), ""))
}

fn listener(address: SocketAddr, flag: &str) -> Result<tokio::net::TcpListener, Refusal> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    bound.map_err(|error| not_listened(address, flag, &error))
}

fn not_listened(address: SocketAddr, flag: &str, error: &std::io::Error) -> Refusal {
    let what = match error.kind() {
        std::io::ErrorKind::AddrInUse => format!("{flag}: another program listens on {address}"),
        _ => format!("{flag}: can't listen on {address}: {error}"),
    };
    Refusal::new(what, format!("give {flag} another port; each worker of a machine needs its own"))
}

/// The address by which the engine reaches what listens on `address`.
fn advertised<U: std::str::FromStr>(
    address: SocketAddr,
    given: Option<&str>,
    flag: &str,
) -> Result<U, Refusal> {
    let text = match given {
        Some(given) => given.to_owned(),
        None if address.ip().is_unspecified() => {
            let what = format!("{address} is all addresses of this machine, and the engine needs one");
            return Err(Refusal::new(
                what,
                format!("give {flag} http://HOST:PORT as the engine's nodes reach it"),
            ));
        }
        None => format!("http://{address}"),
    };
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    let wrong = || Refusal::new(format!("{flag}: {text} is no address"), "e.g. http://10.0.0.7:9080");
    if is_http { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// Also before it has started: until then it waits for the engine.
fn health_of(started: Arc<OnceLock<Weak<RunningWorker>>>, stop: CancellationToken) -> impl Fn() -> Health {
    move || {
        let is_ready = started.get().and_then(Weak::upgrade).is_some_and(|running| running.is_ready());
        let words = match (stop.is_cancelled(), is_ready) {
            (true, _) => "stopping",
            (false, true) => "ready",
            (false, false) => "the engine doesn't answer",
        };
        Health { ready: is_ready && !stop.is_cancelled(), words: words.to_owned() }
    }
}

fn said(notice: &WorkerNotice) {
    note(&match notice {
        WorkerNotice::Taken { run } => format!("run {run}: taken"),
        WorkerNotice::Stopped { run, outcome } => format!("run {run}: {outcome}"),
        WorkerNotice::NotTaken { run, why } => {
            format!("run {run}: not taken: {}", words(why))
        }
        WorkerNotice::Lost { run, why } => format!("run {run}: no longer worked on here: {}", words(why)),
        WorkerNotice::Unreachable(error) => format!("warning: the engine gives no runs: {}", words(error)),
    });
}

/// A line with its time: what a worker says is read later.
fn note(line: &str) {
    tell(&format!("{}  {line}", date_and_time(SystemClock.now())));
}
