//! Messages to and from a program: a line each, on its standard input and output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::Exit;
use provost_process::{
    Confinement, Launch, OpenPipes, Piped, PipedChild, PipedCommand, PipedEnding, helper_env,
};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::setup::Reach;

/// Bytes of a message. A longer one isn't read, and what it answers fails.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes kept from the end of its standard error.
const STDERR_BYTES_MAX: usize = 16 * 1024;
/// Messages that wait to be read.
const QUEUE_MAX: usize = 64;
/// How long a program may not read its input while a message waits.
const SEND_MAX: Duration = Duration::from_secs(10);
/// How a program is ended.
const ENDING: PipedEnding =
    PipedEnding { own: Duration::from_millis(500), grace: Duration::from_millis(1_500) };
/// Lines that are no messages and are reported; further ones are only counted.
const NOISE_REPORTED_MAX: u64 = 5;

/// What is known of a program once it has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramEnd {
    pub(crate) exit: Option<Exit>,
    /// The end of its standard error.
    pub(crate) stderr: String,
    /// Lines on its standard output that were no messages.
    pub(crate) noise: u64,
}

/// How the program ended, for errors that say it.
pub(crate) type ProgramReport = Arc<Mutex<ProgramEnd>>;

/// A message can't be sent: the program has ended, or doesn't read.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the server's program has ended or no longer reads")]
pub(crate) struct NotSent;

/// The program of a server.
pub(crate) struct ProgramTransport {
    outgoing: mpsc::Sender<Outgoing>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    end: CancellationToken,
    task: Option<AbortOnDropHandle<()>>,
}

struct Outgoing {
    line: String,
    request: Option<RequestId>,
}

impl ProgramTransport {
    /// Starts the program.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) async fn start(
        reach: &Reach,
        confinement: Confinement,
        report: ProgramReport,
    ) -> Result<Self, String> {
        let Reach::Program { command, args, env, cwd } = reach else {
            return Err("the server has no program".to_owned());
        };
        let launch = Launch {
            program: command.into(),
            args: args.iter().map(OsString::from).collect(),
            env: environment(env),
            cwd: cwd.clone(),
            stdio: OpenPipes,
            confinement,
        };
        let command =
            PipedCommand { launch, line_bytes_max: MESSAGE_BYTES_MAX, stderr_bytes_max: STDERR_BYTES_MAX };
        let child = PipedChild::spawn(command).await.map_err(|error| with_causes(&error))?;
        let (outgoing, lines) = mpsc::channel(QUEUE_MAX);
        let (messages, incoming) = mpsc::channel(QUEUE_MAX);
        let end = CancellationToken::new();
        let program = Program { child, messages, report, open: BTreeSet::new(), noise: 0, end: end.clone() };
        let task = AbortOnDropHandle::new(tokio::spawn(program.serve(lines)));
        Ok(Self { outgoing, incoming, end, task: Some(task) })
    }
}

/// The variables that a server's program gets: those of the allow list, and its own.
fn environment(own: &[(String, secrecy::SecretString)]) -> Vec<(OsString, OsString)> {
    let mut all = helper_env(&[]);
    all.retain(|(name, _)| !own.iter().any(|(given, _)| name == given.as_str()));
    all.extend(own.iter().map(|(name, value)| (name.into(), value.expose_secret().into())));
    all
}

pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    text
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = NotSent;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), NotSent>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        let request = match &item {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let line = serde_json::to_string(&item);
        async move {
            let line = line.map_err(|_| NotSent)?;
            timeout(SEND_MAX, outgoing.send(Outgoing { line, request }))
                .await
                .map_err(|_| NotSent)?
                .map_err(|_| NotSent)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), NotSent> {
        self.end.cancel();
        if let Some(task) = self.task.take() {
            // It ends by itself within the program's ending.
            let _ = task.await;
        }
        Ok(())
    }
}

/// A running program, and the requests that it hasn't answered.
struct Program {
    child: PipedChild,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    report: ProgramReport,
    open: BTreeSet<String>,
    noise: u64,
    end: CancellationToken,
}

/// What is read of a message that can't be read whole.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
}

impl Program {
    async fn serve(mut self, mut lines: mpsc::Receiver<Outgoing>) {
        let end = self.end.clone();
        loop {
            tokio::select! {
                () = end.cancelled() => break,
                line = lines.recv() => {
                    let Some(line) = line else { break };
                    if !self.send(line).await {
                        break;
                    }
                }
                piped = self.child.next() => {
                    if !self.take(piped).await {
                        break;
                    }
                }
            }
        }
        let exit = self.child.exit();
        let ended = self.child.end(ENDING, &CancellationToken::new()).await;
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        // How it ended by itself, if it did.
        report.exit = exit.or(Some(ended)).filter(|_| exit.is_some() || !end.is_cancelled());
        report.stderr = self.child.stderr();
        report.noise = self.noise;
    }

    async fn send(&mut self, outgoing: Outgoing) -> bool {
        if let Some(id) = outgoing.request {
            self.open.insert(key(&id));
        }
        matches!(timeout(SEND_MAX, self.child.send(&outgoing.line)).await, Ok(Ok(())))
    }

    /// Returns whether the program goes on.
    async fn take(&mut self, piped: Piped) -> bool {
        let messages = match piped {
            Piped::Ended(_) => return false,
            Piped::TooLong { bytes, begin } if begin.trim_start().starts_with('{') => self.all_fail(
                &format!("the server's answer has {bytes} bytes, and {MESSAGE_BYTES_MAX} are read at most"),
            ),
            Piped::TooLong { begin, .. } => {
                self.note_noise(&begin);
                Vec::new()
            }
            Piped::Line(line) => self.read(&line),
        };
        for message in messages {
            if self.messages.send(message).await.is_err() {
                return false;
            }
        }
        true
    }

    fn read(&mut self, line: &str) -> Vec<ServerJsonRpcMessage> {
        match serde_json::from_str::<ServerJsonRpcMessage>(line) {
            Ok(message) => {
                let answered = match &message {
                    ServerJsonRpcMessage::Response(response) => Some(&response.id),
                    ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
                    _ => None,
                };
                match answered {
                    // An answer to nothing, or a second one.
                    Some(id) if !self.open.remove(&key(id)) => {
                        self.note_noise("an answer to no open request");
                        Vec::new()
                    }
                    _ => vec![message],
                }
            }
            Err(error) => match serde_json::from_str::<Head>(line) {
                Ok(Head { id: Some(id), method: None }) if self.open.remove(&key(&id)) => {
                    vec![failed(id, &format!("the server's answer can't be read: {error}"))]
                }
                _ => {
                    self.note_noise(line);
                    Vec::new()
                }
            },
        }
    }

    fn all_fail(&mut self, why: &str) -> Vec<ServerJsonRpcMessage> {
        let open = std::mem::take(&mut self.open);
        let ids = open.iter().filter_map(|id| serde_json::from_str::<RequestId>(id).ok());
        ids.map(|id| failed(id, why)).collect()
    }

    fn note_noise(&mut self, line: &str) {
        self.noise = self.noise.saturating_add(1);
        if self.noise <= NOISE_REPORTED_MAX {
            let shown = line.chars().take(200).collect::<String>();
            tracing::debug!(line = ?shown, "an MCP server wrote what is no message");
        }
    }
}

fn key(id: &RequestId) -> String {
    serde_json::to_string(id).unwrap_or_default()
}

fn failed(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), None), Some(id))
}
