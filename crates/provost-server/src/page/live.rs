//! The sections of a document, whenever they change.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAliveStream};
use serde_json::json;

use super::run::Shown;
use super::{Section, home, inbox};
use crate::api::{EventStream, stream};
use crate::app::{App, LOOK_EVERY};
use crate::problem::Problem;

/// A document takes no more than this part of the time to be read again and again.
const SHARE: u32 = 10;

type Answer = Result<Sse<KeepAliveStream<EventStream>>, Problem>;

/// Whose sections are sent.
#[derive(Clone)]
enum Shows {
    Home,
    Inbox,
    Run { run: String, agent: u32 },
}

pub(super) async fn home(State(app): State<Arc<App>>) -> Answer {
    live(&app, Shows::Home)
}

pub(super) async fn inbox(State(app): State<Arc<App>>) -> Answer {
    live(&app, Shows::Inbox)
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<Shown>,
) -> Answer {
    live(&app, Shows::Run { run, agent: shown.agent })
}

impl Shows {
    async fn sections(&self, app: &App) -> Result<Vec<Section>, Problem> {
        match self {
            Self::Home => home::live_sections(app).await,
            Self::Inbox => inbox::live_sections(app).await,
            Self::Run { run, agent } => super::run::live_sections(app, run, *agent).await,
        }
    }
}

/// What a reader has.
#[derive(Default)]
struct Sent {
    sections: HashMap<String, blake3::Hash>,
    pause: Option<Duration>,
}

/// Sends all sections at once, and later those that have changed: a reader that comes back misses nothing.
fn live(app: &Arc<App>, shows: Shows) -> Answer {
    let reading = app.clone();
    let events = futures::stream::unfold(Sent::default(), move |mut sent| {
        let (app, shows) = (reading.clone(), shows.clone());
        async move {
            loop {
                if let Some(pause) = sent.pause {
                    tokio::time::sleep(pause).await;
                }
                let began = Instant::now();
                let sections = shows.sections(&app).await.ok()?;
                sent.pause = Some(LOOK_EVERY.max(began.elapsed() * SHARE));
                let changed = sections.into_iter().filter(|section| sent.is_new(section)).collect::<Vec<_>>();
                if !changed.is_empty() {
                    let all = changed.iter().map(|section| json!({ "id": section.id, "html": section.html }));
                    let data = serde_json::Value::from_iter(all).to_string();
                    return Some((Event::default().event("sections").data(data), sent));
                }
            }
        }
    });
    stream(app, events)
}

impl Sent {
    fn is_new(&mut self, section: &Section) -> bool {
        let hash = blake3::hash(section.html.as_bytes());
        self.sections.insert(section.id.clone(), hash) != Some(hash)
    }
}
