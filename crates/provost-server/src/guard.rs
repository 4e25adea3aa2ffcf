//! What every request passes before anything is done, and what every answer carries.
//!
//! The order: the host (a page of another name that resolves to this machine; by the Unix socket any), the origin and how a browser says that
//! the request came about (pages of other sites), then token or cookie.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access_log::{self, Access};
use crate::app::App;
use crate::page;
use crate::peer::{Peer, Way};
use crate::problem::Problem;

pub(crate) const COOKIE: &str = "provost_session";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Bytes of the address and the headers of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The headers of every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Checks a request, and has it answered.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let began = Instant::now();
    let (mut response, by) = match check(&app, &request) {
        Ok(by) => (next.run(request).await, by),
        Err(refusal) => {
            app.counters.refused.fetch_add(1, Ordering::Relaxed);
            (*refusal, Signed::Not)
        }
    };
    let status = response.status();
    app.counters.answered(status.as_u16());
    // The code of a one-time link is in its path.
    let shown = if path.starts_with(page::ENTER) { page::ENTER } else { &path };
    tracing::info!(%method, path = %shown, status = status.as_u16(), "request");
    if let Some(log) = &app.access_log {
        let ms = access_log::millis(began.elapsed());
        let (method, by) = (method.as_str(), by.word());
        log.add(&Access { at_ms: app.now(), method, path: shown, status: status.as_u16(), ms, by });
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// As whom a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signed {
    Token,
    Page,
    Not,
}

impl Signed {
    const fn word(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Page => "page",
            Self::Not => "none",
        }
    }
}

fn check(app: &App, request: &Request) -> Result<Signed, Box<Response>> {
    let headers = request.headers();
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
    let refuse = |problem: Problem| Box::new(problem.into_response());
    if bytes + request.uri().to_string().len() > HEAD_BYTES_MAX {
        let why = format!("the head of the request is longer than {HEAD_BYTES_MAX} bytes");
        return Err(refuse(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why)));
    }
    let host = only(headers, &header::HOST).unwrap_or_default().to_ascii_lowercase();
    let is_page = host == app.hosts.page;
    let is_local = request.extensions().get::<Way>() == Some(&Way::Socket);
    if !is_local && !is_page && !app.hosts.programs.contains(&host) {
        let why = "this server isn't asked by this name; use the address that it printed";
        return Err(refuse(Problem::new(StatusCode::MISDIRECTED_REQUEST, why)));
    }
    same_site(headers, &format!("{}://{host}", app.hosts.scheme), request.method()).map_err(refuse)?;
    let is_read = only_reads(request.method(), headers);
    let may_act = request.extensions().get::<Peer>() == Some(&Peer::Other);
    if !may_act && (!is_read || request.uri().path().starts_with(page::ENTER)) {
        let why = "this was sent by what a run has started, which can't act on runs";
        return Err(refuse(Problem::forbidden(why)));
    }
    if request.uri().path().starts_with(page::ENTER) || page::is_asset(request.uri().path()) {
        return Ok(Signed::Not);
    }
    if bearer(headers).is_some_and(|token| app.access.is_token(token)) {
        return Ok(Signed::Token);
    }
    // Cookies are sent to every port of a name, so only the page's own name counts.
    if is_page && cookie(headers).is_some_and(|cookie| app.access.is_session(cookie)) {
        return by_page(headers, request.method()).map(|()| Signed::Page).map_err(refuse);
    }
    let is_document = only(headers, &header::ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    if is_document && request.method() == Method::GET {
        return Err(Box::new(page::signed_out()));
    }
    let why = "send the token in the header `Authorization: Bearer TOKEN`";
    Err(refuse(Problem::new(StatusCode::UNAUTHORIZED, why)))
}

/// Refuses what a page of another origin has sent.
fn same_site(headers: &HeaderMap, own: &str, method: &Method) -> Result<(), Problem> {
    let is_read = only_reads(method, headers);
    if headers.contains_key(header::ORIGIN) {
        let origin = only(headers, &header::ORIGIN).unwrap_or_default();
        if origin != own {
            return Err(Problem::forbidden("requests of pages of another origin are refused"));
        }
    }
    match only(headers, &SEC_FETCH_SITE) {
        None | Some("same-origin") => Ok(()),
        // Typed, or a link of a terminal.
        Some("none") if is_read => Ok(()),
        Some(_) => Err(Problem::forbidden("requests of pages of another site are refused")),
    }
}

/// What a browser sends with its cookie must come from the page: a browser says so with everything that changes
/// something.
fn by_page(headers: &HeaderMap, method: &Method) -> Result<(), Problem> {
    let has_origin = headers.contains_key(header::ORIGIN);
    let says_so = has_origin && only(headers, &SEC_FETCH_SITE) == Some("same-origin");
    // Not all browsers say more with a WebSocket than its origin, which was compared.
    let is_socket = is_upgrade(headers) && has_origin;
    if only_reads(method, headers) || says_so || is_socket {
        return Ok(());
    }
    Err(Problem::forbidden("the browser doesn't say that this comes from the page"))
}

/// Whether a request changes nothing. What becomes a WebSocket may type.
fn only_reads(method: &Method, headers: &HeaderMap) -> bool {
    (method == Method::GET || method == Method::HEAD) && !is_upgrade(headers)
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
}

/// The only value of a header: several are as good as none.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = only(headers, &header::COOKIE)?;
    let mut pairs = all.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}
