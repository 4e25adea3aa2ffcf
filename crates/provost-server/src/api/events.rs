//! Live events, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream};
use futures::{Stream, StreamExt as _};
use provost_event::ActorKey;
use provost_harness::{PlacedRecord, RunPosition};
use provost_view::{GroupedRuns, LogEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::NoParameters;
use super::document::HeaderParameter;
use super::extract::{NamedRun, Parameters as Query};
use crate::app::{App, LOOK_EVERY, STREAMS_MAX};
use crate::problem::Problem;

/// A comment in a stream without events, so that both ends notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: &str = "last-event-id";
/// The headers that streams take.
pub(crate) const HEADERS: &[HeaderParameter] = &[HeaderParameter {
    name: LAST_EVENT_ID,
    description: "The id of the last event received; the stream goes on after it",
    schema: || json!({ "type": "string" }),
}];

/// Which events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Only those of this agent's log; of all logs if absent.
    agent: Option<u32>,
}

/// Events of one stream.
pub(crate) type EventStream = std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// A stream that counts as one of those that may be open, and ends with the server.
pub(crate) fn stream(
    app: &App,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Result<Sse<KeepAliveStream<EventStream>>, Problem> {
    let permit = permit(app)?;
    let stop = app.stop.clone();
    let events = events.take_until(stop.cancelled_owned()).map(move |event| {
        let _held = &permit;
        Ok(event)
    });
    let events: EventStream = Box::pin(events);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The right to keep one stream open.
pub(crate) fn permit(app: &App) -> Result<OwnedSemaphorePermit, Problem> {
    let full = || Problem::too_many(format!("{STREAMS_MAX} streams are open already; close some"));
    app.streams.clone().try_acquire_owned().map_err(|_| full())
}

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Query(asked): Query<Parameters>,
    headers: HeaderMap,
) -> Result<Sse<KeepAliveStream<EventStream>>, Problem> {
    let after = last_event(&headers)?;
    // The reader takes the next entry once it has taken the last: a slow one holds back no other.
    let records = app.backend.subscribe_run(run.run, after);
    let only = asked.agent;
    let events = records.filter_map(move |placed| {
        let event = match placed {
            Ok(placed) if is_of(&placed, only) => Some(entry(&placed)),
            Ok(_) => None,
            Err(error) => Some(Event::default().event("problem").data(one_line(&error.to_string()))),
        };
        std::future::ready(event)
    });
    stream(&app, events)
}

fn is_of(placed: &PlacedRecord, only: Option<u32>) -> bool {
    match (only, placed.record.actor) {
        (None, _) => true,
        (Some(agent), ActorKey::Session(session)) => session.agent == agent,
        (Some(_), ActorKey::Run(_)) => false,
    }
}

fn entry(placed: &PlacedRecord) -> Event {
    let entry = LogEntry(placed.record.as_ref().clone());
    let data = serde_json::to_string(&entry).unwrap_or_default();
    Event::default().id(placed.position.0.to_string()).event("entry").data(data)
}

/// The place after which a stream goes on.
fn last_event(headers: &HeaderMap) -> Result<RunPosition, Problem> {
    let Some(id) = headers.get(LAST_EVENT_ID) else { return Ok(RunPosition::START) };
    let id = id.to_str().ok().filter(|id| !id.is_empty()).map_or(Some(0), |id| id.parse().ok());
    id.map(RunPosition).ok_or_else(|| Problem::bad_request("Last-Event-ID: take it from an event's id"))
}

pub(crate) async fn groups(
    State(app): State<Arc<App>>,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<Sse<KeepAliveStream<EventStream>>, Problem> {
    let reading = app.clone();
    let looks = futures::stream::unfold(None, move |last: Option<GroupedRuns>| {
        let app = reading.clone();
        async move {
            loop {
                if last.is_some() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                let Ok(now) = app.groups().await else { return None };
                if last.as_ref() != Some(&now) {
                    let event = Event::default()
                        .event("groups")
                        .data(serde_json::to_string(&now).unwrap_or_default());
                    return Some((event, Some(now)));
                }
            }
        }
    });
    stream(&app, looks)
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
