//! The health endpoints of a worker: whether it lives, and whether it may be given work.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How a worker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes work.
    pub ready: bool,
    /// The same in a line for people.
    pub words: String,
}

/// Answers `GET /live` with 200 while it is polled, and `GET /ready` with 200 or 503 and the words, until `stop` fires.
/// Other requests get 404 or 405.
pub async fn serve_health(
    listener: TcpListener,
    health: impl Fn() -> Health + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let health = Arc::new(health);
    let ready = move || {
        let Health { ready, words } = health();
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        std::future::ready((status, format!("{words}\n")))
    };
    let router = Router::new().route("/live", get(|| async { "alive\n" })).route("/ready", get(ready));
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    // Accepting goes on after every error.
    let _ = serving.await;
}
