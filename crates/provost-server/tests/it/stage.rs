//! A server in this process over a store with runs, and a client that sends exactly what a test wants.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost::prelude::*;
use provost_event::{RunId, Timestamp};
use provost_harness::{Backend, SystemClock};
use provost_harness::{NotStarted, StartsWork, Work};
use provost_server::{Listen, Server, ServerOptions};
use provost_view::SeenRuns;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(20);

/// What the program around the server keeps.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) seen: Mutex<Vec<(RunId, Timestamp)>>,
    pub(crate) started: Mutex<Vec<(RunId, Work)>>,
}

impl SeenRuns for Around {
    fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool {
        self.seen.lock().unwrap().contains(&(run, changed_at))
    }

    fn look_at(&self, run: RunId, changed_at: Timestamp) {
        self.seen.lock().unwrap().push((run, changed_at));
    }
}

#[async_trait]
impl StartsWork for Around {
    async fn start(&self, run: RunId, work: &Work) -> Result<(), NotStarted> {
        self.started.lock().unwrap().push((run, work.clone()));
        Ok(())
    }
}

pub(crate) struct Stage {
    pub(crate) around: Arc<Around>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) port: u16,
    token: String,
    folder: tempfile::TempDir,
    /// Runs that are worked on here.
    running: Vec<provost::Run>,
    stop: CancellationToken,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = provost::sqlite::SqliteStore::open(folder.path().join("runs.db")).unwrap();
        let backend: Arc<dyn Backend> =
            Arc::new(provost::backend::EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap());
        let around = Arc::new(Around::default());
        let server = Server::bind(ServerOptions {
            backend: backend.clone(),
            by: "ann".to_owned(),
            listen: Listen::Loopback(0),
            access_log: None,
            socket: Some(folder.path().join("server.sock")),
            approved: None,
            work: Some(around.clone()),
            seen: around.clone(),
            keys: folder.path().join("keys"),
            terminals: folder.path().join("terminals"),
        })
        .await
        .unwrap();
        let port = server.address().port();
        let token = server.token().expose().to_owned();
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        Self { around, backend, port, token, folder, running: Vec::new(), stop }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An agent of this store with this script.
    pub(crate) fn agent(&self, script: &str) -> provost::AgentBuilder {
        let model = ScriptedModel::parse(script, "script").expect("a script");
        Agent::builder(model).backend(self.backend.clone()).workspace(self.folder.path())
    }

    /// Starts a run, and waits until it has ended or is suspended.
    pub(crate) async fn ran(&self, number: u64, goal: &str, agent: provost::AgentBuilder) -> RunId {
        let id = RunId::from_entropy(number);
        let mut run = agent.build().unwrap().start_as(id, goal).await.unwrap();
        tokio::time::timeout(DEADLINE, run.finish()).await.expect("it ends").unwrap();
        id
    }

    /// Starts a run, and waits until it asks something. Returns the path of the question.
    pub(crate) async fn asks(&mut self, number: u64, goal: &str, agent: provost::AgentBuilder) -> String {
        let id = RunId::from_entropy(number);
        let run = agent.build().unwrap().start_as(id, goal).await.unwrap();
        let control = run.control("test");
        let asked = async {
            loop {
                if let Some(open) = control.approvals().await.unwrap().pop() {
                    return open.question.asked;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let asked = tokio::time::timeout(DEADLINE, asked).await.expect("it asks");
        self.running.push(run);
        format!("/v1/runs/{id}/approvals/0/{asked}")
    }

    /// Waits until all runs have ended or are suspended.
    pub(crate) async fn finished(&mut self) {
        for run in &mut self.running {
            tokio::time::timeout(DEADLINE, run.finish()).await.expect("it ends").unwrap();
        }
    }

    /// The processes of the runs are gone.
    pub(crate) fn abandon(&mut self) {
        self.running.clear();
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.exact("GET", path, &self.host(), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answered {
        self.exact("POST", path, &self.host(), body).await
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A request for this host, over TCP.
    pub(crate) async fn exact(&self, method: &str, path: &str, host: &str, body: &str) -> Answered {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        self.converse(stream, &[method, path, host, body]).await
    }

    /// The same by the Unix socket.
    pub(crate) async fn by_socket(&self, method: &str, path: &str, host: &str, body: &str) -> Answered {
        let stream = tokio::net::UnixStream::connect(self.path("server.sock")).await.unwrap();
        self.converse(stream, &[method, path, host, body]).await
    }

    async fn converse(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin, asked: &[&str; 4]) -> Answered {
        let [method, path, host, body] = asked;
        let token = &self.token;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        tokio::time::timeout(DEADLINE, read).await.expect("an answer").unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default();
        Answered { status, body: body.to_owned() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answered {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap().to_owned()
    }
}
