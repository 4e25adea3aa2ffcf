//! One server of a run: connected when it is needed, and again within bounds.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use provost_event::SessionId;
use provost_harness::AgentSandbox;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::connection::{CallFailure, Connection};
use crate::definition::Listed;
use crate::{Difference, Lifecycle, Pins, PinsFile, ServerSetup, ToolChange};

/// Starts after the first one, as long as none of them lasted.
const RESTARTS_MAX: u32 = 3;
/// The wait before the first of them; it doubles.
const RESTART_WAIT: Duration = Duration::from_millis(500);
/// A connection that lasted so long wasn't part of a series of crashes.
const LASTED: Duration = Duration::from_secs(300);
/// How long a list of tools counts, for a server that doesn't tell of changes.
const LIST_LASTS: Duration = Duration::from_secs(300);

/// A server of a run.
pub(crate) struct LiveServer {
    setup: Arc<ServerSetup>,
    session: SessionId,
    program_box: Arc<dyn AgentSandbox>,
    state: Mutex<State>,
    /// The run is over: nothing is started any more.
    is_over: RwLock<bool>,
}

#[derive(Default)]
struct State {
    open: Option<Arc<OpenServer>>,
    since: Option<Instant>,
    /// Connections that ended or failed, without one between them that lasted.
    failures: u32,
    last_failure: String,
    lifecycle: Option<Lifecycle>,
}

/// A server that is connected.
pub(crate) struct OpenServer {
    pub(crate) connection: Connection,
    listed: std::sync::Mutex<ListedTools>,
}

struct ListedTools {
    at: Instant,
    /// Why a tool isn't called; a tool without an entry is as it was agreed to.
    blocked: BTreeMap<String, String>,
}

impl LiveServer {
    pub(crate) fn new(
        setup: Arc<ServerSetup>,
        session: SessionId,
        program_box: Arc<dyn AgentSandbox>,
    ) -> Self {
        Self { setup, session, program_box, state: Mutex::default(), is_over: RwLock::new(false) }
    }

    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// What its box has denied since the last call.
    pub(crate) fn denials(&self, output: &str) -> Vec<String> {
        if self.program_box.confines() { self.program_box.denials(output) } else { Vec::new() }
    }

    /// The run is over: the connection ends as soon as nothing uses it.
    pub(crate) fn leave(&self) {
        *self.is_over.write().unwrap_or_else(PoisonError::into_inner) = true;
        if let Ok(mut state) = self.state.try_lock() {
            state.open = None;
        }
    }

    /// The connection, made if there is none, with the tools as they are.
    ///
    /// # Errors
    /// Why there is none, in words for the model.
    pub(crate) async fn ready(&self) -> Result<Arc<OpenServer>, String> {
        let mut state = self.state.lock().await;
        if let Some(open) = state.open.clone() {
            if !open.connection.is_closed() {
                if open.is_list_due() {
                    self.list_again(&open).await?;
                }
                return Ok(open);
            }
            let why = open.connection.last_words().await;
            state.lost(format!("it ended{}{why}", if why.is_empty() { "" } else { ": " }));
        }
        let open = self.connect(&mut state).await?;
        Ok(open)
    }

    async fn connect(&self, state: &mut State) -> Result<Arc<OpenServer>, String> {
        let name = &self.setup.name;
        if *self.is_over.read().unwrap_or_else(PoisonError::into_inner) {
            return Err(format!("The MCP server {name} ended with the run."));
        }
        if state.failures > RESTARTS_MAX {
            return Err(format!(
                "The MCP server {name} isn't started again in this run: it failed {} times, the last time because {}. \
                 Go on without it.",
                state.failures, state.last_failure
            ));
        }
        if let Some(doublings) = state.failures.checked_sub(1) {
            sleep(RESTART_WAIT.saturating_mul(2_u32.saturating_pow(doublings))).await;
        }
        let pins = PinsFile::at(self.setup.pins.clone()).read().map_err(|error| error.to_string())?;
        let Some(pins) = pins else {
            return Err(format!(
                "The user hasn't agreed to the MCP server {name}; `provost mcp trust {name}` asks them."
            ));
        };
        let remembered = state.lifecycle.or(Some(pins.lifecycle));
        let opened = Connection::open(&self.setup, &self.program_box.confinement(), remembered).await;
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                state.lost(error.why.clone());
                return Err(format!("{error}. Trying again may help."));
            }
        };
        state.lifecycle = Some(connection.lifecycle);
        let listed = match connection.list().await {
            Ok(listed) => blocked(&self.setup, &pins, &listed),
            Err(failure) => {
                let why = format!("its tools can't be listed: {}", words(&failure));
                state.lost(why.clone());
                connection.end().await;
                return Err(format!("The MCP server {name} can't be used: {why}"));
            }
        };
        let listed = std::sync::Mutex::new(ListedTools { at: Instant::now(), blocked: listed });
        let open = Arc::new(OpenServer { connection, listed });
        state.open = Some(Arc::clone(&open));
        state.since = Some(Instant::now());
        Ok(open)
    }

    async fn list_again(&self, open: &OpenServer) -> Result<(), String> {
        let name = &self.setup.name;
        let pins = PinsFile::at(self.setup.pins.clone()).read().map_err(|error| error.to_string())?;
        let listed = open.connection.list().await;
        let listed = listed.map_err(|failure| {
            format!("The MCP server {name} can't be used: its tools can't be listed: {}", words(&failure))
        })?;
        let blocked = match pins {
            Some(pins) => blocked(&self.setup, &pins, &listed),
            None => return Err(format!("The user no longer agrees to the MCP server {name}.")),
        };
        *open.listed.lock().unwrap_or_else(PoisonError::into_inner) =
            ListedTools { at: Instant::now(), blocked };
        Ok(())
    }
}

impl State {
    /// A connection ended or couldn't be made.
    fn lost(&mut self, why: String) {
        let lasted = self.since.take().is_some_and(|since| since.elapsed() >= LASTED);
        self.failures = if lasted { 1 } else { self.failures.saturating_add(1) };
        self.last_failure = why;
        self.open = None;
    }
}

impl OpenServer {
    fn is_list_due(&self) -> bool {
        let has_changed = self.connection.take_list_changed();
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        has_changed || listed.at.elapsed() >= LIST_LASTS
    }

    /// Why the tool `name` isn't called, if it isn't.
    pub(crate) fn objection(&self, name: &str) -> Option<String> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).blocked.get(name).cloned()
    }
}

pub(crate) fn words(failure: &CallFailure) -> String {
    match failure {
        CallFailure::Answered(why) | CallFailure::Lost(why) | CallFailure::Unsent(why) => why.clone(),
    }
}

/// The tools that aren't as the user agreed to them, with why.
fn blocked(setup: &ServerSetup, pins: &Pins, listed: &Listed) -> BTreeMap<String, String> {
    let server = &setup.name;
    let now = Pins::new(server, &setup.written, listed.tools.clone());
    let difference = Difference::between(Some(pins), &now);
    let remedy = format!("`provost mcp trust {server}` shows the user the difference");
    let mut blocked = BTreeMap::new();
    if difference.written.is_some() {
        let why = format!(
            "How the MCP server {server} is reached has changed since the user agreed to it; {remedy}."
        );
        blocked.extend(pins.tools.iter().map(|tool| (tool.name.clone(), why.clone())));
    }
    for change in difference.tools {
        let (name, what) = match change {
            ToolChange::New(tool) => (tool.name, "is new, and the user hasn't agreed to it".to_owned()),
            ToolChange::Changed { after, .. } => {
                (after.name, "isn't what the user agreed to: its definition has changed".to_owned())
            }
            ToolChange::Renamed { before, after } => {
                let what = format!("is called {} now, and the user hasn't agreed to that", after.name);
                (before.name, what)
            }
            ToolChange::Gone(tool) => (tool.name, "isn't offered by the server any more".to_owned()),
        };
        let refused = listed.refused.iter().find(|refused| refused.name == name);
        let why = match refused {
            Some(refused) => {
                format!("The tool {name} of the MCP server {server} isn't taken: {}.", refused.why)
            }
            None => format!("The tool {name} of the MCP server {server} {what}. It isn't called; {remedy}."),
        };
        blocked.entry(name).or_insert(why);
    }
    blocked
}
