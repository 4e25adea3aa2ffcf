//! Where the browser comes back to: a listener on this machine, for one answer.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use mcp_reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// The path of the redirect address.
pub(super) const PATH: &str = "/callback";
/// What the browser shows after a login.
pub(super) const DONE: &str = "You are logged in. You can close this page.";
/// Bytes of an answer.
const QUERY_BYTES_MAX: usize = 16 * 1024;
/// How long the browser may take to fetch what it shows.
const SHOW_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// The value of `name` in a query, decoded; that of the first, if there are several.
pub(super) fn value_of(query: &str, name: &str) -> Option<String> {
    let url = Url::parse(&format!("http://query/?{query}")).ok()?;
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The browser, which waits for what it shows.
pub(super) struct Waiting {
    page: oneshot::Sender<String>,
    server: AbortOnDropHandle<()>,
}

impl Waiting {
    /// Has the browser show a text, if it still waits.
    pub(super) async fn tell(self, text: String) {
        if self.page.send(text).is_ok() {
            // The server ends by itself once it has answered.
            let _ = tokio::time::timeout(SHOW_MAX, self.server).await;
        }
    }
}

/// The query of the answer, and where what the browser shows is sent.
type Answer = (String, oneshot::Sender<String>);

struct Awaited {
    state: String,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
}

/// Waits for a request with the answer to the login of this `state`; others are refused.
///
/// # Errors
/// When the listener fails.
pub(super) async fn returned(listener: TcpListener, state: &str) -> Result<(String, Waiting), String> {
    let (answer, answered) = oneshot::channel();
    let awaited = Arc::new(Awaited { state: state.to_owned(), answer: Mutex::new(Some(answer)) });
    let (over, is_over) = oneshot::channel::<()>();
    let app =
        Router::new().route(PATH, get(callback)).with_state(Arc::new((awaited, Mutex::new(Some(over)))));
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        let _ = is_over.await;
    });
    let server = AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = serving.await;
    }));
    let (query, page) = answered.await.map_err(|_| "the listener for the browser ended".to_owned())?;
    Ok((query, Waiting { page, server }))
}

type Shared = Arc<(Arc<Awaited>, Mutex<Option<oneshot::Sender<()>>>)>;

async fn callback(
    State(shared): State<Shared>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    // What only looks where a link leads takes no answer.
    if method != Method::GET {
        return page(StatusCode::METHOD_NOT_ALLOWED, "A login comes back by GET.");
    }
    let (awaited, over) = &*shared;
    let query = query.filter(|query| query.len() <= QUERY_BYTES_MAX).unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_here = host.split(':').next() == Some("127.0.0.1");
    let is_answer = is_here && value_of(&query, "state").as_deref() == Some(awaited.state.as_str());
    let answer = if is_answer { awaited.answer.lock().await.take() } else { None };
    let Some(answer) = answer else {
        return page(StatusCode::BAD_REQUEST, "This isn't the answer to a login that is waited for.");
    };
    let (shown, text) = oneshot::channel();
    if answer.send((query, shown)).is_err() {
        return page(StatusCode::GONE, "The login was given up.");
    }
    let text = text.await.unwrap_or_else(|_| "The login was given up.".to_owned());
    drop(over.lock().await.take());
    page(StatusCode::OK, &text)
}

/// A page with a text that may be anyone's.
fn page(status: StatusCode, text: &str) -> Response {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Provost</title><p>{text}</p></html>"
    );
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (header::CONNECTION, "close"),
    ];
    (status, headers, Html(text)).into_response()
}
