//! Terminals of external agents: screens, input, attaching by a WebSocket, recordings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use provost_event::{SessionId, WindowSize};
use provost_external::{AttachedInput, Hello, Role};
use provost_view::ViewVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout, timeout_at};

use super::Done;
use super::events::permit;
use super::extract::{Body, NamedRun, Parameters};
use super::runs::AgentParameters;
use crate::app::App;
use crate::problem::Problem;
use crate::terminal::cells::{CellsView, CursorView, ScreenView};
use crate::terminal::recordings::{self, RecordedScreen, RecordingView};
use crate::terminal::{LiveScreen, Shown};

/// Bytes of a message of a client.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// At most one screen is sent in this time.
const FRAME: Duration = Duration::from_millis(33);
/// How long a client may take for one message; it is disconnected then.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Rows and columns of a window.
const WINDOW_MAX: u16 = 1_000;

/// What is typed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypedInput {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// The keys as a terminal sends them; Enter is `\r`. Not empty.
    #[schemars(length(min = 1))]
    text: String,
}

/// How to attach.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttachParameters {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// What the client may do.
    #[serde(default)]
    role: AttachRole,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttachRole {
    /// See the screen.
    #[default]
    Watch,
    /// See it, type, and set the window's size.
    Control,
}

/// When in a recording.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MomentParameters {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// Milliseconds from the start.
    #[serde(default)]
    at_ms: u64,
}

/// What the server sends.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromTerminal {
    /// The screen has changed.
    Screen {
        /// The version of the view.
        v: ViewVersion,
        /// The program.
        program: String,
        /// Rows.
        rows: u16,
        /// Columns.
        cols: u16,
        /// The window's title.
        title: String,
        /// Where the cursor is.
        cursor: CursorView,
        /// The rows that differ from what was sent before, by their number from 0.
        lines: BTreeMap<u16, Vec<CellsView>>,
    },
    /// There is no more; nothing follows.
    Gone {
        /// Why.
        why: String,
    },
}

/// What a client sends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToTerminal {
    /// Keys as a terminal sends them.
    Input {
        /// The keys.
        text: String,
    },
    /// The client's window; the program's is the smallest of all that are attached.
    Resize {
        /// Rows, 1 to 1000.
        rows: u16,
        /// Columns, 1 to 1000.
        cols: u16,
    },
}

pub(crate) async fn screen(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AgentParameters>,
) -> Result<Json<ScreenView>, Problem> {
    let session = SessionId { run: run.run, agent: asked.agent };
    LiveScreen::once(&app.terminals, session, &app.by).await.map(Json)
}

pub(crate) async fn input(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(typed): Body<TypedInput>,
) -> Result<Json<Done>, Problem> {
    if typed.text.is_empty() {
        return Err(Problem::bad_request("text: is empty"));
    }
    let session = SessionId { run: run.run, agent: typed.agent };
    let hello = Hello::new(Role::Control, None, &app.by);
    let (_, mut input) = LiveScreen::attach(&app.terminals, session, hello).await?;
    let sent = input.send(typed.text.as_bytes()).await;
    sent.map_err(|error| Problem::conflict(error.to_string()))?;
    let _ = input.detach().await;
    Ok(Json(Done { v: ViewVersion, changed: true }))
}

pub(crate) async fn attach(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AttachParameters>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|error| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, format!("a WebSocket is expected here: {error}"))
    })?;
    let permit = permit(&app)?;
    let session = SessionId { run: run.run, agent: asked.agent };
    let role = match asked.role {
        AttachRole::Watch => Role::Watch,
        AttachRole::Control => Role::Control,
    };
    let (live, input) = LiveScreen::attach(&app.terminals, session, Hello::new(role, None, &app.by)).await?;
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let conversation = Conversation { socket, live, input, role, sent: None };
        tokio::select! {
            () = conversation.work() => {}
            () = app.stop.cancelled() => {}
        }
        drop(permit);
    }))
}

/// A client that is attached.
struct Conversation {
    socket: WebSocket,
    live: LiveScreen,
    input: AttachedInput,
    role: Role,
    /// What the client has.
    sent: Option<ScreenView>,
}

/// Why a conversation is over.
struct Over;

impl Conversation {
    async fn work(mut self) {
        while self.step().await.is_ok() {}
        let _ = timeout(SEND_MAX, self.socket.send(Message::Close(None))).await;
    }

    async fn step(&mut self) -> Result<(), Over> {
        if self.sent.is_none() {
            self.show().await?;
        }
        enum Next {
            Output(Result<Shown, Problem>),
            Said(Option<Result<Message, axum::Error>>),
        }
        let next = tokio::select! {
            shown = self.live.next() => Next::Output(shown),
            said = self.socket.recv() => Next::Said(said),
        };
        match next {
            Next::Output(Ok(Shown::Changed)) => self.follow().await,
            Next::Output(Ok(Shown::Gone(why))) => self.gone(why).await,
            Next::Output(Err(problem)) => self.gone(problem.detail).await,
            Next::Said(Some(Ok(Message::Text(text)))) => self.hear(text.as_str()).await,
            Next::Said(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => Ok(()),
            Next::Said(Some(Ok(Message::Binary(_) | Message::Close(_)) | Err(_)) | None) => Err(Over),
        }
    }

    /// Takes what comes in the time of a frame, and sends the screen.
    async fn follow(&mut self) -> Result<(), Over> {
        let until = Instant::now() + FRAME;
        while let Ok(next) = timeout_at(until, self.live.next()).await {
            match next {
                Ok(Shown::Changed) => {}
                Ok(Shown::Gone(why)) => {
                    self.show().await?;
                    return self.gone(why).await;
                }
                Err(problem) => return self.gone(problem.detail).await,
            }
        }
        self.show().await
    }

    async fn show(&mut self) -> Result<(), Over> {
        let now = self.live.view();
        let before = self.sent.as_ref().filter(|sent| (sent.rows, sent.cols) == (now.rows, now.cols));
        let old = |row: usize| before.and_then(|before| before.cells.get(row));
        let changed = now.cells.iter().enumerate().filter(|(row, cells)| old(*row) != Some(*cells));
        let lines = changed.filter_map(|(row, cells)| Some((u16::try_from(row).ok()?, cells.clone())));
        let lines = lines.collect::<BTreeMap<_, _>>();
        let is_same = before.is_some_and(|before| before.cursor == now.cursor && before.title == now.title);
        if is_same && lines.is_empty() {
            return Ok(());
        }
        let program = self.live.program.clone();
        let ScreenView { v, rows, cols, ref title, cursor, .. } = now;
        let screen = FromTerminal::Screen { v, program, rows, cols, title: title.clone(), cursor, lines };
        self.sent = Some(now);
        self.send(&screen).await
    }

    async fn gone(&mut self, why: String) -> Result<(), Over> {
        self.send(&FromTerminal::Gone { why }).await?;
        Err(Over)
    }

    async fn send(&mut self, what: &FromTerminal) -> Result<(), Over> {
        let text = serde_json::to_string(what).unwrap_or_default();
        let sent = timeout(SEND_MAX, self.socket.send(Message::Text(text.into()))).await;
        sent.map_err(|_| Over)?.map_err(|_| Over)
    }

    async fn hear(&mut self, text: &str) -> Result<(), Over> {
        let Ok(said) = serde_json::from_str::<ToTerminal>(text) else {
            return self.gone("a message isn't understood".to_owned()).await;
        };
        if self.role != Role::Control {
            return Ok(());
        }
        let done = match said {
            ToTerminal::Input { text } => self.input.send(text.as_bytes()).await,
            ToTerminal::Resize { rows, cols } => {
                let size = WindowSize::new(rows.min(WINDOW_MAX), cols.min(WINDOW_MAX));
                self.input.resize(size).await
            }
        };
        done.map_err(|_| Over)
    }
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AgentParameters>,
) -> Result<Json<Vec<RecordingView>>, Problem> {
    let session = SessionId { run: run.run, agent: asked.agent };
    all_recordings(&app, session).await.map(Json)
}

/// All recordings of an agent.
pub(crate) async fn all_recordings(app: &App, session: SessionId) -> Result<Vec<RecordingView>, Problem> {
    let files = recordings::files(&*app.backend, session, &app.terminals).await?;
    let read = move || {
        let views = files.iter().enumerate().map(|(at, file)| recordings::view(file, at + 1));
        views.collect::<Result<Vec<_>, _>>()
    };
    blocking(read).await
}

/// What a recording shows at a moment.
pub(crate) async fn recorded(
    app: &App,
    session: SessionId,
    number: usize,
    at_ms: u64,
) -> Result<RecordedScreen, Problem> {
    let file = nth(app, session, number).await?;
    blocking(move || recordings::screen_at(&file, at_ms)).await
}

async fn nth(app: &App, session: SessionId, number: usize) -> Result<PathBuf, Problem> {
    let files = recordings::files(&*app.backend, session, &app.terminals).await?;
    let none = || Problem::not_found(format!("agent {session} has no recording {number}"));
    files.into_iter().nth(number.checked_sub(1).ok_or_else(none)?).ok_or_else(none)
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::conflict("the recording can't be read");
    tokio::task::spawn_blocking(read).await.map_err(failed)?
}

#[derive(Deserialize)]
pub(crate) struct Numbered {
    number: usize,
}

pub(crate) async fn moment(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    number: Result<Path<Numbered>, axum::extract::rejection::PathRejection>,
    Parameters(asked): Parameters<MomentParameters>,
) -> Result<Json<RecordedScreen>, Problem> {
    let Path(Numbered { number }) = number
        .map_err(|_| Problem::not_found("a recording has a number from 1 on; …/recordings lists them"))?;
    let session = SessionId { run: run.run, agent: asked.agent };
    recorded(&app, session, number, asked.at_ms).await.map(Json)
}
