//! Requests to the engine's ingress and admin API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use provost_harness::BackendError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use crate::Engine;

/// How long a request is tried again while the engine can't be reached.
const TRIED_FOR: Duration = Duration::from_secs(30);
/// The wait before it is tried again.
const TRIED_EVERY: Duration = Duration::from_millis(200);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(30);

/// How long a request for services that no answer has shown yet is tried again.
const UNREGISTERED_FOR: Duration = Duration::from_secs(3);

/// A client of the engine.
#[derive(Clone)]
pub(crate) struct Api {
    http: mcp_reqwest::Client,
    ingress: Url,
    admin: Url,
    /// Whether the engine has our services: one of them has answered. A node that doesn't know them has just started.
    is_registered: Arc<AtomicBool>,
}

/// An object's handler, or a service's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) service: &'a str,
    /// The object; absent for a service.
    pub(crate) key: Option<&'a str>,
    pub(crate) handler: &'a str,
}

impl Api {
    pub(crate) fn new(engine: &Engine) -> Result<Self, BackendError> {
        // Another part of the program may have installed one: either will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = mcp_reqwest::Client::builder()
            .tcp_nodelay(true)
            .no_proxy()
            .timeout(ATTEMPT)
            .build()
            .map_err(|error| failed("make a client of the engine", &error))?;
        let is_registered = Arc::default();
        Ok(Self { http, ingress: engine.ingress.clone(), admin: engine.admin.clone(), is_registered })
    }

    /// Checks that the ingress answers. Only workers need the admin API.
    pub(crate) async fn check(&self) -> Result<(), BackendError> {
        let url = joined(&self.ingress, &["restate/health"]);
        let answer = self.http.get(url.clone()).send().await.map_err(|error| unreachable(&url, &error))?;
        if answer.status().is_success() { Ok(()) } else { Err(refused(&url, &answer.status().to_string())) }
    }

    /// Calls a handler and returns its answer. The call has its effect once, however often it is tried.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
    ) -> Result<T, BackendError> {
        self.request(target, request, Some(&once()), TRIED_FOR).await
    }

    /// The same, for a handler without an answer.
    pub(crate) async fn call_for_nothing(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
    ) -> Result<(), BackendError> {
        let once = once();
        self.answer(target, request, Some(&once), TRIED_FOR).await.map(drop)
    }

    /// Calls a handler that changes nothing.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
    ) -> Result<T, BackendError> {
        self.read_for(target, request, TRIED_FOR).await
    }

    /// The same, for an answer without which nothing can go on: tried again for `tried_for`.
    pub(crate) async fn read_for<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
        tried_for: Duration,
    ) -> Result<T, BackendError> {
        self.request(target, request, None, tried_for).await
    }

    /// The same, for an answer that is worth no longer wait than `within`.
    pub(crate) async fn read_within<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
        within: Duration,
    ) -> Result<T, BackendError> {
        let reading = self.request(target, request, None, within);
        tokio::time::timeout(within, reading).await.unwrap_or_else(|_| Err(silent(&self.ingress)))
    }

    async fn request<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
        once: Option<&str>,
        tried_for: Duration,
    ) -> Result<T, BackendError> {
        let body = self.answer(target, request, once, tried_for).await?;
        parsed(&body)
    }

    async fn answer(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
        once: Option<&str>,
        tried_for: Duration,
    ) -> Result<bytes::Bytes, BackendError> {
        let body = body_of(request)?;
        let parts = [Some(target.service), target.key, Some(target.handler)];
        let url = joined(&self.ingress, &parts.into_iter().flatten().collect::<Vec<_>>());
        let started = std::time::Instant::now();
        loop {
            let mut attempt = self.http.post(url.clone());
            if let Some(body) = body.clone() {
                attempt = attempt.header("content-type", "application/json").body(body);
            }
            if let Some(once) = once {
                attempt = attempt.header("idempotency-key", once);
            }
            let (error, within) = match attempt.send().await {
                Ok(answer) => match answered(&url, answer).await {
                    Ok(body) => {
                        self.is_registered.store(true, Ordering::Relaxed);
                        return Ok(body);
                    }
                    Err((error, Again::No)) => return Err(error),
                    Err((error, Again::Yes)) => (error, tried_for),
                    Err((error, Again::OnceRegistered)) if self.is_registered.load(Ordering::Relaxed) => {
                        (error, tried_for)
                    }
                    Err((error, Again::OnceRegistered)) => (error, tried_for.min(UNREGISTERED_FOR)),
                },
                Err(error) => (unreachable(&url, &error), tried_for),
            };
            if started.elapsed() >= within {
                return Err(error);
            }
            tokio::time::sleep(TRIED_EVERY).await;
        }
    }

    /// Registers the services at `url`, and returns their names.
    pub(crate) async fn register(&self, url: &Url) -> Result<Vec<String>, BackendError> {
        let at = joined(&self.admin, &["deployments"]);
        let request = serde_json::json!({ "uri": url.as_str(), "force": true });
        let started = std::time::Instant::now();
        loop {
            let error = match self.http.post(at.clone()).json(&request).send().await {
                Ok(answer) => match answered(&at, answer).await {
                    Ok(body) => {
                        let Registered { services } = parsed(&body)?;
                        return Ok(services.into_iter().map(|service| service.name).collect());
                    }
                    Err((error, _)) => error,
                },
                Err(error) => unreachable(&at, &error),
            };
            if started.elapsed() >= TRIED_FOR {
                return Err(not_registered(url, &error));
            }
            tokio::time::sleep(TRIED_EVERY).await;
        }
    }

    /// The deployments that are reached by HTTP.
    pub(crate) async fn deployments(&self) -> Result<Vec<DeploymentAt>, BackendError> {
        let at = joined(&self.admin, &["deployments"]);
        let answer = self.http.get(at.clone()).send().await.map_err(|error| unreachable(&at, &error))?;
        let body = answered(&at, answer).await.map_err(|(error, _)| error)?;
        let known: Deployments = parsed(&body)?;
        let at = known.deployments.into_iter().filter_map(|Deployment { id, uri, services }| {
            Some(DeploymentAt { id, url: uri?.parse().ok()?, services })
        });
        Ok(at.collect())
    }

    /// Moves a deployment to `url`: requests that it has begun are finished there.
    pub(crate) async fn move_deployment(
        &self,
        deployment: &DeploymentAt,
        url: &Url,
    ) -> Result<(), BackendError> {
        let at = joined(&self.admin, &["deployments", &deployment.id]);
        let request = self.http.patch(at.clone()).json(&serde_json::json!({ "uri": url.as_str() }));
        let answer = request.send().await.map_err(|error| unreachable(&at, &error))?;
        answered(&at, answer).await.map(drop).map_err(|(error, _)| error)
    }

    /// What an object has in its state, as JSON. Needs no worker.
    pub(crate) async fn state<T: DeserializeOwned>(
        &self,
        service: &str,
        key: &str,
        name: &str,
    ) -> Result<Option<T>, BackendError> {
        let at = joined(&self.admin, &["query"]);
        let query = format!(
            "SELECT value_utf8 FROM state WHERE service_name = '{service}' AND service_key = '{key}' AND key = '{name}'"
        );
        let request = self.http.post(at.clone()).header("accept", "application/json");
        let answer = request
            .json(&serde_json::json!({ "query": query }))
            .send()
            .await
            .map_err(|error| unreachable(&at, &error))?;
        let body = answered(&at, answer).await.map_err(|(error, _)| error)?;
        let found: Rows = parsed(&body)?;
        found.rows.first().map(|row| parsed(row.value_utf8.as_bytes())).transpose()
    }

    /// Kills an invocation; one that is over or unknown needs none.
    pub(crate) async fn kill(&self, invocation: &str) -> Result<(), BackendError> {
        let url = joined(&self.admin, &["invocations", invocation, "kill"]);
        let answer = self.http.patch(url.clone()).send().await.map_err(|error| unreachable(&url, &error))?;
        match answer.status().as_u16() {
            200..=299 | 404 | 409 | 410 => Ok(()),
            other => Err(refused(&url, &other.to_string())),
        }
    }
}

/// A deployment, and its address.
pub(crate) struct DeploymentAt {
    id: String,
    pub(crate) url: Url,
    services: Vec<Service>,
}

impl DeploymentAt {
    /// Whether `service` is one of its services.
    pub(crate) fn has(&self, service: &str) -> bool {
        self.services.iter().any(|known| known.name == service)
    }

    /// What follows `prefix` in the name of one of its services.
    pub(crate) fn suffix_of(&self, prefix: &str) -> Option<&str> {
        self.services.iter().find_map(|service| service.name.strip_prefix(prefix))
    }
}

/// How long a process may take to greet.
const GREETS_WITHIN: Duration = Duration::from_secs(3);
/// The greeting of a client: the preface of HTTP/2, and a SETTINGS frame without settings (RFC 9113, section 3.4).
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Whether a process answers at an address: to listen isn't enough, as the system accepts connections of one that hangs.
pub(crate) async fn answers(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    let host = host.trim_matches(['[', ']']);
    let greeted = async {
        let mut stream = tokio::net::TcpStream::connect((host, port)).await?;
        stream.write_all(GREETING).await?;
        stream.read(&mut [0]).await
    };
    matches!(tokio::time::timeout(GREETS_WITHIN, greeted).await, Ok(Ok(1)))
}

/// The deployments that the engine knows.
#[derive(serde::Deserialize)]
struct Deployments {
    deployments: Vec<Deployment>,
}

#[derive(serde::Deserialize)]
struct Deployment {
    id: String,
    /// Absent for one that isn't reached by HTTP.
    uri: Option<String>,
    services: Vec<Service>,
}

#[derive(serde::Deserialize)]
struct Registered {
    services: Vec<Service>,
}

#[derive(serde::Deserialize)]
struct Service {
    name: String,
}

/// The answer to a query.
#[derive(serde::Deserialize)]
struct Rows {
    rows: Vec<StateRow>,
}

#[derive(serde::Deserialize)]
struct StateRow {
    value_utf8: String,
}

/// The body of a request; none for `()`: the engine refuses one where a handler takes nothing.
fn body_of(request: &impl Serialize) -> Result<Option<Vec<u8>>, BackendError> {
    let body = serde_json::to_vec(request).map_err(|error| failed("write a request", &error))?;
    Ok((body != b"null").then_some(body))
}

/// The key of a request that has its effect once.
fn once() -> String {
    format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

enum Again {
    Yes,
    /// By a node that doesn't know the service, once it does.
    OnceRegistered,
    No,
}

async fn answered(url: &Url, answer: mcp_reqwest::Response) -> Result<bytes::Bytes, (BackendError, Again)> {
    let status = answer.status();
    let body = answer.bytes().await.map_err(|error| (unreachable(url, &error), Again::Yes))?;
    if status.is_success() {
        return Ok(body);
    }
    let said = String::from_utf8_lossy(&body).chars().take(500).collect::<String>();
    let again = match status.as_u16() {
        404 => Again::OnceRegistered,
        429 | 500..=599 => Again::Yes,
        _ => Again::No,
    };
    Err((refused(url, &format!("{status}: {said}")), again))
}

fn joined(base: &Url, parts: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        parts.iter().for_each(|part| {
            path.extend(part.split('/'));
        });
    }
    url
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, BackendError> {
    serde_json::from_slice(body).map_err(|error| failed("read an answer", &error))
}

fn failed(attempt: &'static str, error: &dyn std::error::Error) -> BackendError {
    BackendError::Storage { attempt, message: error.to_string(), hint: None }
}

fn unreachable(url: &Url, error: &mcp_reqwest::Error) -> BackendError {
    // What is around the first cause repeats the address.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    BackendError::Storage {
        attempt: "reach the engine",
        message: format!("{url}: {cause}"),
        hint: Some(if error.is_timeout() {
            "it asks a worker and may have got no answer: check that one runs, then the Restate server"
        } else {
            "check that the Restate server runs, and the addresses of its ingress and admin API"
        }),
    }
}

fn silent(url: &Url) -> BackendError {
    BackendError::Storage { attempt: "reach the engine", message: format!("{url} is silent"), hint: None }
}

pub(crate) fn not_registered(url: &Url, error: &BackendError) -> BackendError {
    let message = match error {
        // Its own remedy is another one.
        BackendError::Storage { message, .. } => message.clone(),
        error => error.to_string(),
    };
    BackendError::Storage {
        attempt: "have the engine reach this worker",
        message: format!("{url}: {message}"),
        hint: Some(
            "check the address (--advertise), the engine's key (engine.identity_key_env) and engine.admin_url",
        ),
    }
}

pub(crate) fn anothers(url: &Url) -> BackendError {
    BackendError::Storage {
        attempt: "have the engine reach this worker",
        message: format!("another worker answers at {url}"),
        hint: Some("give --advertise (or --advertise-shared) an address that leads to this worker"),
    }
}

fn refused(url: &Url, message: &str) -> BackendError {
    BackendError::Storage {
        attempt: "use the engine",
        message: format!("{url} answered {message}"),
        hint: Some("check that a worker of this namespace is registered"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A listener's address, and whether a process answers there that greets if `greets`.
    async fn is_answered(greets: bool) -> bool {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            if greets {
                stream.write_all(b"\0\0\0\x04").await.unwrap();
            }
            drop(stream);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answered = answers(&url) => answered,
            () = serve => false,
        }
    }

    /// Answers one request after another, each on a connection of its own.
    async fn answers_in_turn(listener: TcpListener, answers: &[&str]) {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let head = "content-type: application/json\r\nconnection: close\r\ncontent-length";
            let (status, body) = answer.split_once(' ').unwrap();
            let answer = format!("HTTP/1.1 {status} Some\r\n{head}: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_node_that_does_not_know_the_services_yet_is_asked_again() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let place = crate::BlobPlace::Folder("blobs".into());
        let api = Api::new(&Engine::new(url.clone(), url, place)).unwrap();
        let target = Target { service: "provost.Run", key: Some("1"), handler: "read" };
        let unknown = r#"404 {"code":404,"message":"service 'provost.Run' not found","source":"ingress"}"#;
        let asks = async {
            let first = api.read::<u8>(target, &()).await.unwrap();
            let again = api.read::<u8>(target, &()).await.unwrap();
            (first, again)
        };
        let answers = [unknown, "200 1", unknown, "200 2"];
        let (read, ()) = tokio::join!(asks, answers_in_turn(listener, &answers));
        assert_eq!(read, (1, 2));
    }

    #[tokio::test]
    async fn an_address_is_answered_where_a_process_greets() {
        assert!(is_answered(true).await);
        assert!(!is_answered(false).await);
        let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
        assert!(!answers(&format!("http://{free}").parse().unwrap()).await);
    }
}
