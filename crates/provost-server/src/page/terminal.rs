//! The terminal of an external agent: its screen as it is now, or a moment of a recording.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use provost_event::SessionId;
use provost_view::explain::{ExplainedAgents, RunExplanation};
use provost_view::{StateMark, safe};
use serde::Deserialize;

use super::parts::{clock, foreign_line, mark, run_path};
use super::run::{RunPage, Tab, head, tabs};
use super::{Document, Here, document};
use crate::api::{all_recordings, recorded};
use crate::app::App;
use crate::problem::Problem;
use crate::terminal::LiveScreen;
use crate::terminal::cells::{CellColour, CellsView, ScreenView};
use crate::terminal::recordings::RecordingView;

/// The width and the height of a time line's drawing.
const LINE_WIDTH: u64 = 1_000;
const LINE_HEIGHT: u64 = 46;
/// Events at the terminal that are shown.
const NOTED_MAX: usize = 30;
const KEYS: &[(&str, &str)] = &[
    ("t", "take over"),
    ("Ctrl-\\", "detach"),
    ("Space", "play or stop"),
    ("[ ]", "mark before, after"),
    ("g", "live"),
    ("Esc", "back"),
];

/// What is shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ShownTerminal {
    #[serde(default)]
    agent: u32,
    /// A recording; the live screen if absent.
    recording: Option<usize>,
    /// When in it, in milliseconds.
    #[serde(default)]
    at: u64,
}

pub(super) async fn terminal(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(shown): Query<ShownTerminal>,
) -> Result<Markup, Problem> {
    let page = RunPage::read(&app, &run, shown.agent).await?;
    let session = SessionId { run: page.run(), agent: shown.agent };
    let all = all_recordings(&app, session).await?;
    let screen = match shown.recording {
        Some(number) => recorded(&app, session, number, shown.at).await.map(|recorded| recorded.screen),
        None => LiveScreen::once(&app.terminals, session, &app.by).await,
    };
    let body = html! {
        script type="module" src="/assets/terminal.js" {}
        (head(&page))
        (tabs(&page, Tab::Terminal))
        div."term-cols" {
            section aria-label={ "Screen of agent " (shown.agent) } {
                @match &screen {
                    Ok(screen) => (drawn(screen, &live_path(session, shown.recording))),
                    Err(problem) => p.screen id="screen" tabindex="0" role="region" aria-label="Terminal" { (problem.detail) },
                }
                (foot(session, &shown, &all))
            }
            div {
                (recordings(session, &shown, &all))
                (noted(&app, &page, session).await?)
            }
        }
    };
    Ok(document(&Document {
        title: format!("Terminal of {}", page.title()),
        live: String::new(),
        here: Here::Runs,
        questions: page.grouped.asks.len(),
        body,
        keys: KEYS,
    }))
}

/// Where the page's module gets what follows: a WebSocket of the program, or moments of the recording.
fn live_path(session: SessionId, recording: Option<usize>) -> String {
    let run = run_path(session.run);
    match recording {
        None => format!("/v1{run}/terminal/attach?agent={}", session.agent),
        Some(number) => format!("/v1{run}/recordings/{number}?agent={}", session.agent),
    }
}

fn drawn(screen: &ScreenView, from: &str) -> Markup {
    let says = format!("Terminal, {} by {}", screen.cols, screen.rows);
    html! {
        pre.screen id="screen" tabindex="0" role="region" aria-label=(says) data-from=(from) data-rows=(screen.rows) data-cols=(screen.cols) {
            @for cells in &screen.cells { span.row-of-cells { @for cells in cells { (drawn_cells(cells)) } } "\n" }
        }
    }
}

fn drawn_cells(cells: &CellsView) -> Markup {
    let mut classes = cells.styles.iter().map(|style| style.class().to_owned()).collect::<Vec<_>>();
    classes.extend(cells.fg.as_ref().map(|colour| format!("c{}", nearest(colour))));
    classes.extend(cells.bg.as_ref().map(|colour| format!("b{}", nearest(colour))));
    let text = safe(&cells.text);
    if classes.is_empty() {
        html! { (text) }
    } else {
        html! { span class=(classes.join(" ")) { (text) } }
    }
}

/// The palette's colours as they are compared with others (those of xterm).
const PALETTE: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// The number of the palette's colour that is nearest: styles in attributes are refused by the page's policy.
fn nearest(colour: &CellColour) -> usize {
    let text = match colour {
        CellColour::Palette(index) => return usize::from(*index),
        CellColour::Exact(text) => text,
    };
    let part = |from: usize| {
        text.get(from..from + 2).and_then(|part| u8::from_str_radix(part, 16).ok()).unwrap_or_default()
    };
    let wanted = [part(1), part(3), part(5)];
    let distance = |known: &[u8; 3]| {
        let parts = known.iter().zip(wanted).map(|(known, wanted)| u32::from(known.abs_diff(wanted)).pow(2));
        parts.sum::<u32>()
    };
    let all = PALETTE.iter().enumerate();
    all.min_by_key(|(_, known)| distance(known)).map_or(0, |(index, _)| index)
}

fn foot(session: SessionId, shown: &ShownTerminal, all: &[RecordingView]) -> Markup {
    let chosen = shown.recording.and_then(|number| all.iter().find(|recording| recording.number == number));
    html! {
        div.panel."term-foot" {
            @if let Some(recording) = chosen {
                (line(recording, shown.at))
                form.type method="get" action={ (run_path(session.run)) "/terminal" } {
                    input type="hidden" name="agent" value=(session.agent);
                    input type="hidden" name="recording" value=(recording.number);
                    label.vh for="at" { "Milliseconds from the start" }
                    input type="range" id="at" name="at" min="0" max=(recording.duration_ms) value=(shown.at);
                    output id="at-time" for="at" { (time_of(shown.at)) }
                    button.btn type="button" data-key=" " data-play { "Play " kbd { "Space" } }
                    button.btn type="submit" { "Show" }
                }
            } @else {
                form.type id="typer" {
                    label.vh for="type" { "Type a line into the terminal" }
                    input type="text" id="type" autocomplete="off" spellcheck="false" placeholder="Type a line; Enter sends it";
                    button.btn type="button" data-key="t" data-attach aria-pressed="false" { "Take over " kbd { "t" } }
                }
                p.two role="status" id="term-news" { "Watching. Taken over, every key goes to the program; Ctrl-\\ detaches." }
            }
        }
    }
}

fn time_of(ms: u64) -> String {
    format!("{}:{:02}", ms / 60_000, ms % 60_000 / 1_000)
}

/// The time of a recording: how much was shown when, what was noted, and where one is.
fn line(recording: &RecordingView, at: u64) -> Markup {
    let most = recording.bytes.iter().copied().max().unwrap_or_default().max(1);
    let parts = recording.bytes.len().max(1) as u64;
    let x =
        |at: u64| at.saturating_mul(LINE_WIDTH).checked_div(recording.duration_ms.max(1)).unwrap_or_default();
    let says = format!(
        "Recording, {}, {}",
        time_of(recording.duration_ms),
        provost_event::counted(recording.marks.len() as u64, "mark")
    );
    html! {
        svg.tl viewBox={ "0 0 " (LINE_WIDTH) " " (LINE_HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(says) {
            rect.t y="30" width=(LINE_WIDTH) height="3" rx="1.5" {}
            @for (part, bytes) in recording.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                @let height = (bytes * 24).div_ceil(most);
                rect.o x=(part as u64 * LINE_WIDTH / parts) y=(30 - height) width="4" height=(height) {}
            }
            @for mark in &recording.marks { rect.qq x=(x(mark.at_ms).min(LINE_WIDTH - 3)) y="34" width="3" height="8" { title { (safe(&mark.label)) } } }
            path.pos id="pos" d={ "M" (x(at)) " 2V44" } {}
        }
    }
}

fn recordings(session: SessionId, shown: &ShownTerminal, all: &[RecordingView]) -> Markup {
    let path = format!("{}/terminal?agent={}", run_path(session.run), session.agent);
    let chosen = shown.recording.and_then(|number| all.iter().find(|recording| recording.number == number));
    html! {
        section.panel aria-labelledby="h-rec" {
            h2 id="h-rec" { "Recordings " span.n { (all.len()) } }
            div.in {
                table.tab { tbody {
                    tr { th scope="row" { a data-key="g" href=(path) aria-current=[shown.recording.is_none().then_some("true")] { "Live" } } td {} }
                    @for recording in all { tr {
                        th scope="row" { a href={ (path) "&recording=" (recording.number) } aria-current=[(shown.recording == Some(recording.number)).then_some("true")] { "Start " (recording.number) } }
                        td.num.dim { (time_of(recording.duration_ms)) }
                    } }
                } }
            }
        }
        @if let Some(recording) = chosen {
            section.panel aria-labelledby="h-marks" {
                h2 id="h-marks" { "Marks " span.n { (recording.marks.len()) } }
                div.in { table.tab { tbody { @for mark in &recording.marks { tr {
                    th scope="row" { a data-mark=(mark.at_ms) href={ (path) "&recording=" (recording.number) "&at=" (mark.at_ms) } { (foreign_line(&mark.label)) } }
                    td.num.dim { (time_of(mark.at_ms)) }
                } } } } }
            }
        }
    }
}

/// What was noted at the terminal, the newest first.
async fn noted(app: &App, page: &RunPage, session: SessionId) -> Result<Markup, Problem> {
    let Some(summary) = app.backend.get(session.run).await? else { return Ok(html! {}) };
    let only = ExplainedAgents::One(session.agent);
    let explained = RunExplanation::read(&*app.backend, &summary, only, &[], page.now()).await?;
    let events = explained.and_then(|(explained, _)| explained.agents.into_iter().next()?.terminal);
    let Some(terminal) = events else { return Ok(html! {}) };
    Ok(html! {
        section.panel aria-labelledby="h-see" {
            h2 id="h-see" { (mark(StateMark::Working)) " What Provost saw " span.n { (terminal.noted) } }
            div.in { table.tab { tbody { @for event in terminal.events.iter().rev().take(NOTED_MAX) { tr {
                td.dim { (clock(event.at_ms)) }
                th scope="row" { (foreign_line(&event.noted.event.to_string())) }
            } } } } }
        }
    })
}
