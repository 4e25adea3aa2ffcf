//! The page: documents that are complete without scripts, and a module that keeps them up to date and takes keys.

mod changes;
mod chart;
mod conversation;
mod explain;
mod forms;
mod home;
mod inbox;
mod live;
mod log;
mod parts;
mod run;
mod terminal;
mod timeline;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::access::SESSION_MAX_AGE;
use crate::app::App;
use crate::guard::COOKIE;
use crate::problem::Problem;

/// Where one-time links lead; their code follows.
pub(crate) const ENTER: &str = "/enter/";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const ASSETS: [(&str, &str, &str); 8] = [
    ("/assets/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/assets/tokens.css", "text/css; charset=utf-8", include_str!("assets/tokens.css")),
    ("/assets/page.css", "text/css; charset=utf-8", include_str!("assets/page.css")),
    ("/assets/page.js", JAVASCRIPT, include_str!("assets/page.js")),
    ("/assets/dom.js", JAVASCRIPT, include_str!("assets/dom.js")),
    ("/assets/live.js", JAVASCRIPT, include_str!("assets/live.js")),
    ("/assets/act.js", JAVASCRIPT, include_str!("assets/act.js")),
    ("/assets/terminal.js", JAVASCRIPT, include_str!("assets/terminal.js")),
];
/// The shapes of states.
const MARKS: &str = include_str!("assets/marks.svg.part");
const LOGO: &str = r#"<svg viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="7.6" fill="none" stroke="currentColor" stroke-width="1.8"/><path d="M9 9V4.2" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/><circle cx="9" cy="9" r="2.1" fill="currentColor"/></svg>"#;

/// A part of a document that is replaced as a whole when it changes.
pub(crate) struct Section {
    /// The id of its element.
    pub(crate) id: String,
    /// The element.
    pub(crate) html: String,
}

impl Section {
    fn new(id: impl Into<String>, html: Markup) -> Self {
        Self { id: id.into(), html: html.into_string() }
    }
}

/// A document.
struct Document {
    title: String,
    /// Where its live sections come from.
    live: String,
    here: Here,
    questions: usize,
    body: Markup,
    keys: &'static [(&'static str, &'static str)],
}

/// Which entry of the main navigation a document belongs to.
#[derive(PartialEq, Eq)]
enum Here {
    Runs,
    Inbox,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    let routes = Router::new()
        .route("/", get(home::home))
        .route("/inbox", get(inbox::inbox))
        .route("/runs/{run}", get(run::run))
        .route("/runs/{run}/changes", get(changes::changes))
        .route("/runs/{run}/conversation", get(conversation::conversation))
        .route("/runs/{run}/explain", get(explain::explain))
        .route("/runs/{run}/log", get(log::log))
        .route("/runs/{run}/terminal", get(terminal::terminal))
        .route("/live/home", get(live::home))
        .route("/live/inbox", get(live::inbox))
        .route("/live/runs/{run}", get(live::run))
        .route("/enter/{code}", get(enter));
    ASSETS.into_iter().fold(routes, |routes, (path, kind, text)| {
        routes.route(path, get(async move || ([(header::CONTENT_TYPE, kind)], text)))
    })
}

/// Whether a path is one of the assets, which hold nothing of any run.
pub(crate) fn is_asset(path: &str) -> bool {
    ASSETS.iter().any(|(asset, ..)| *asset == path)
}

async fn enter(State(app): State<Arc<App>>, Path(code): Path<String>) -> Result<Response, Problem> {
    let cookie = app.access.enter(&code).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the system gives no random numbers: {error}"),
        )
    })?;
    let Some(cookie) = cookie else { return Ok(signed_out()) };
    let age = SESSION_MAX_AGE.as_secs();
    let secure = if app.hosts.scheme == "https" { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// What a browser sees that isn't signed in.
pub(crate) fn signed_out() -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Not signed in · Provost"))
            body {
                main id="main" {
                    div.sum { h1 { "Not signed in" } }
                    p { "A link signs one browser in, once, within ten minutes. Press Enter where " code { "provost serve" } " runs: it prints a new one." }
                }
            }
        }
    };
    (StatusCode::UNAUTHORIZED, page).into_response()
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) }
            link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
            link rel="stylesheet" href="/assets/tokens.css";
            link rel="stylesheet" href="/assets/page.css";
            script type="module" src="/assets/page.js" {}
        }
    }
}

fn document(document: &Document) -> Markup {
    let Document { title, live, here, questions, body, keys } = document;
    let waiting = if *questions > 0 { format!("({questions}) ") } else { String::new() };
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{waiting}{title} · Provost")))
            body data-live=(live) {
                a.skip href="#main" { "Skip to content" }
                svg.sprite aria-hidden="true" focusable="false" { (PreEscaped(MARKS)) }
                header.top {
                    p.mark { a href="/" { (PreEscaped(LOGO)) " Provost" } }
                    nav aria-label="Main" {
                        ul {
                            li { a href="/" aria-current=[(*here == Here::Runs).then_some("page")] { "Runs" } }
                            li { a href="/inbox" aria-current=[(*here == Here::Inbox).then_some("page")] { "Inbox " (badge(*questions)) } }
                        }
                    }
                    @if *here == Here::Runs && live == "/live/home" {
                        form.find role="search" {
                            label.vh for="q" { "Filter runs" }
                            input type="text" id="q" placeholder="Filter: goal, folder, agent, state" autocomplete="off";
                            kbd aria-hidden="true" { "/" }
                        }
                    }
                    p.live id="live" { i aria-hidden="true" {} span.txt { "Not live" } }
                }
                main id="main" { (body) }
                p.vh role="status" aria-live="polite" id="news" {}
                (dialogs())
                footer.keys aria-label="Keys" {
                    @for (key, does) in *keys { span { kbd { (key) } " " (does) } }
                    span.end { kbd { "?" } " all keys" }
                }
            }
        }
    }
}

/// The number of questions, which the live sections replace too.
fn badge(questions: usize) -> Markup {
    html! {
        span id="badge" {
            @if questions > 0 { span.badge aria-label={ (questions) " waiting" } { (questions) } }
        }
    }
}

fn dialogs() -> Markup {
    html! {
        dialog id="ask" aria-labelledby="ask-title" {
            form method="dialog" {
                h2 id="ask-title" {}
                p id="ask-text" {}
                input type="text" id="ask-input" aria-labelledby="ask-title" autocomplete="off";
                p.btns { button.btn.main value="yes" { "Yes " kbd { "Enter" } } button.btn value="no" formnovalidate { "No " kbd { "Esc" } } }
            }
        }
        dialog id="keys" aria-labelledby="keys-title" {
            form method="dialog" {
                h2 id="keys-title" { "Keys" }
                dl.why {
                    @for (key, does) in ALL_KEYS { dt { kbd { (key) } } dd { (does) } }
                }
                p.btns {
                    button.btn { "Close " kbd { "Esc" } }
                    label { input type="checkbox" id="keys-off"; " single keys do nothing" }
                }
            }
        }
    }
}

const ALL_KEYS: [(&str, &str); 20] = [
    ("j k", "move to the next or previous row, turn or question"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("i", "inbox"),
    ("/", "filter"),
    ("a", "approve once; where the whole call isn't in view, open the question"),
    ("r", "approve for this run"),
    ("A", "always; shows the pattern, and wants Enter"),
    ("d", "deny; asks for a reason, Enter alone is none"),
    ("l", "later: the next question"),
    ("v", "the next part of a call that is longer than the window"),
    ("s", "say something to the agent"),
    ("p", "pause or resume"),
    ("f", "fork"),
    ("n", "new run"),
    ("t", "take over a terminal; Ctrl-\\ detaches"),
    ("1–6", "tabs of a run"),
    ("x", "cancel; wants Enter"),
    ("o", "fold or unfold"),
    ("?", "all keys"),
];
