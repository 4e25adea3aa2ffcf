//! Requests: who asks, for what, and what becomes of it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode, Uri};
use provost_engine::ExternalCallRequest;
use provost_event::{ExternalCall, Purpose};
use provost_llm::{UpstreamRequest, WireFormat};
use tokio::net::TcpListener;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::budget::BudgetAnswer;
use crate::connection::BoundedListener;
use crate::gateway::Shared;
use crate::pump::{Call, Pump};
use crate::refusal::Refusal;
use crate::request::{ModelRequest, RequestPath};
use crate::route::{Endpoint, Route, route};
use crate::session::ProgramAccess;
use crate::source::CallSource;

/// The cap of an answer whose request and model have none that is known.
const OUTPUT_TOKENS_UNKNOWN: u32 = 32_000;
/// The headers in which clients send their key.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "x-goog-api-key", "api-key"];
/// Headers of one connection, of a browser, or that would make an answer unreadable.
const NOT_FORWARDED: [&str; 14] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
];

/// Serves requests until `stop` fires.
pub(crate) fn serve(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let listener = BoundedListener::new(listener, shared.options.limits.connections_max);
    let app = Router::new().fallback(handle).with_state(shared);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            served = axum::serve(listener, app) => {
                if let Err(error) = served {
                    tracing::warn!(%error, "the model gateway has stopped");
                }
            }
        }
    });
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let Some(route) = route(request.method(), request.uri().path()) else {
        let message = "the gateway's addresses begin with /anthropic, /openai or /gemini";
        return Refusal::new(StatusCode::NOT_FOUND, message).response(WireFormat::OpenaiResponses);
    };
    let wire = match route.endpoint {
        Endpoint::Generate { wire, .. } => wire,
        Endpoint::Free | Endpoint::Unknown => route.family.wire(),
    };
    match answered(&shared, route, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.response(wire),
    }
}

async fn answered(shared: &Arc<Shared>, route: Route, request: Request) -> Result<Response<Body>, Refusal> {
    check_origin(request.headers())?;
    let program = program(shared, &request)?;
    if request.headers().contains_key(header::UPGRADE) {
        let message = "the gateway has no WebSockets: use HTTP";
        return Err(Refusal::new(StatusCode::UPGRADE_REQUIRED, message));
    }
    let Ok(room) = Arc::clone(&program.room).try_acquire_owned() else {
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, "the program has too many open requests"));
    };
    let answered = match route.endpoint {
        Endpoint::Generate { wire, ref model, streams } => {
            let path = RequestPath { wire, model: model.clone(), streams };
            generate(shared, Arc::clone(&program), Incoming { route, request, room }, path).await
        }
        Endpoint::Free => return free(shared, Incoming { route, request, room }).await,
        Endpoint::Unknown => {
            let message =
                format!("the gateway has no `{}`: it can't be held to the run's budget", route.path);
            Err(Refusal::new(StatusCode::NOT_FOUND, message))
        }
    };
    if let Err(refusal) = answered.as_ref()
        && refusal.is_failure
    {
        program.activity.refused(refusal.failure());
    }
    answered
}

/// A request with its place among those of its program.
struct Incoming {
    route: Route,
    request: Request,
    room: OwnedSemaphorePermit,
}

/// Only programs of this machine that address the gateway itself are answered: no page of a browser, and nothing that
/// reaches it by another name.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_own = |host: &HeaderValue| {
        let host = host.to_str().unwrap_or_default();
        matches!(host.rsplit_once(':').map_or(host, |(name, _)| name), "127.0.0.1" | "localhost")
    };
    let mut hosts = headers.get_all(header::HOST).iter().peekable();
    if headers.contains_key(header::ORIGIN) || hosts.peek().is_none() || !hosts.all(is_own) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "the gateway answers only programs on this machine"));
    }
    Ok(())
}

fn program(shared: &Shared, request: &Request) -> Result<Arc<ProgramAccess>, Refusal> {
    let token = token(request.headers(), request.uri());
    token.and_then(|token| shared.by_token(&token)).ok_or_else(|| {
        let message = "the key isn't a token of this run's gateway";
        Refusal::new(StatusCode::UNAUTHORIZED, message)
    })
}

/// The key that a client sends, wherever its format has it.
fn token(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").map(|value| match value.trim().split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => value.trim(),
    });
    let key = KEY_HEADERS.iter().find_map(|name| text(name));
    let of_query = uri.query().into_iter().flat_map(|query| query.split('&'));
    let of_query = of_query.filter_map(|pair| pair.strip_prefix("key=")).next();
    key.or(bearer).or(of_query).map(str::to_owned)
}

async fn body(shared: &Shared, request: Request) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
    let limits = shared.options.limits;
    let too_large =
        || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large for the gateway");
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = length.unwrap_or(limits.request_bytes_max).min(limits.request_bytes_max.saturating_add(1));
    if bytes > limits.request_bytes_max {
        return Err(too_large());
    }
    let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
    let held = Arc::clone(&shared.held_bytes).try_acquire_many_owned(permits).map_err(|_| {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "the gateway holds too many large requests: try again")
    })?;
    let reading = to_bytes(request.into_body(), limits.request_bytes_max);
    let read = tokio::time::timeout(limits.request_time, reading).await;
    let read =
        read.map_err(|_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request's body didn't arrive"))?;
    Ok((read.map_err(|_| too_large())?.into(), held))
}

/// What is forwarded of the client's headers.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let kept = headers
        .iter()
        .filter(|(name, _)| !NOT_FORWARDED.contains(&name.as_str()) && !KEY_HEADERS.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The query without the token.
fn query(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&').filter(|pair| !pair.starts_with("key="));
    Some(pairs.collect::<Vec<_>>().join("&")).filter(|query| !query.is_empty())
}

fn unavailable(why: impl std::fmt::Display) -> Refusal {
    // A status that programs don't retry: nothing changes until the settings do.
    Refusal::bad(why.to_string())
}

/// Forwards a request that costs nothing.
async fn free(shared: &Shared, incoming: Incoming) -> Result<Response<Body>, Refusal> {
    let Incoming { route, request, room } = incoming;
    if shared.options.replays.is_some() {
        let message = "model lists and counts of tokens aren't recorded, so that they can't be replayed";
        return Err(Refusal::new(StatusCode::NOT_FOUND, message));
    }
    let upstream = shared.upstream(route.family).map_err(unavailable)?;
    let method = request.method().clone();
    let headers = forwarded(request.headers());
    let query = query(request.uri());
    let (body, _held) = body(shared, request).await?;
    let sent = UpstreamRequest { method, path: route.path, query, headers, body: body.into() };
    let response = upstream.send(sent).await;
    let response = response.map_err(|error| Refusal::new(StatusCode::BAD_GATEWAY, error.to_string()))?;
    Ok(answer::passed_on(response, &upstream, room))
}

/// A model call: its budget, then the provider.
async fn generate(
    shared: &Arc<Shared>,
    program: Arc<ProgramAccess>,
    incoming: Incoming,
    path: RequestPath,
) -> Result<Response<Body>, Refusal> {
    let Incoming { route, request, room } = incoming;
    let provider = shared.provider(route.family);
    let headers = forwarded(request.headers());
    let query = query(request.uri());
    let (body, held) = body(shared, request).await?;
    let asked = ModelRequest::read(path, body)?;
    let model = format!("{provider}/{}", asked.model_name());
    if !shared.allows(&model) {
        return Err(Refusal::bad(format!("the settings don't allow the model `{model}` ([gateway] models)")));
    }
    let facts = shared.options.settings.facts(&model).unwrap_or_default();
    let of_model = facts.output_tokens_max;
    let wanted = asked.output_tokens_max.or(of_model).unwrap_or(OUTPUT_TOKENS_UNKNOWN);
    let wanted = wanted.saturating_mul(asked.copies);
    let id = program.next_request();
    let source = CallSource::of(shared, route.family, &asked).await?;
    let recorded = answer::record(shared, asked.body().as_bytes()).await;
    let call = ExternalCall {
        purpose: Purpose::External,
        request: id.clone(),
        model: model.clone(),
        wire: asked.wire.name().to_owned(),
        price: source.price(facts.price),
        body: recorded,
    };
    let request = ExternalCallRequest { call, input_tokens: asked.input_tokens, output_tokens_max: wanted };
    let granted = ask(shared, &program, request, &model).await?;
    let needs_cap = of_model.is_none() || granted < wanted;
    let forwarded = asked.capped(granted, needs_cap, source.deviations());
    let call = Call {
        id,
        wire: asked.wire,
        streams: asked.streams,
        input_tokens: asked.input_tokens,
        hides_usage: forwarded.hides_usage,
    };
    drop((asked, held));
    let sent = UpstreamRequest {
        method: axum::http::Method::POST,
        path: route.path,
        query,
        headers,
        body: forwarded.body.into(),
    };
    Pump { shared: Arc::clone(shared), program, source, call, _room: room }.start(sent).await
}

/// Waits for the budget of a call.
async fn ask(
    shared: &Shared,
    program: &ProgramAccess,
    request: ExternalCallRequest,
    model: &str,
) -> Result<u32, Refusal> {
    let asking = program.budget.ask(request);
    let answer = tokio::select! {
        biased;
        () = program.cancel.cancelled() => BudgetAnswer::Stopped,
        answer = tokio::time::timeout(shared.options.limits.budget_time, asking) => {
            answer.unwrap_or(BudgetAnswer::Stopped)
        }
    };
    match answer {
        BudgetAnswer::Granted(tokens) => Ok(tokens),
        BudgetAnswer::Exhausted(exhausted) => Err(Refusal::of_run(format!(
            "the budget is used up. {exhausted}. The run is suspended; `provost resume` with a higher limit goes on"
        ))),
        BudgetAnswer::Unpriced => Err(Refusal::bad(format!(
            "money is limited, and the price of `{model}` isn't known: add it to the settings ([models]), or set \
             allow_unpriced"
        ))),
        BudgetAnswer::Stopped => {
            Err(Refusal::of_run("the run is being stopped, and makes no further model calls"))
        }
    }
}
