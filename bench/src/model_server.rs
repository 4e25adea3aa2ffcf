//! A local server that answers as Anthropic's Messages API does, in a process of its own, so that what it costs
//! isn't counted.
//!
//! `POST /CALLS/HOLD_MS/v1/messages` is answered with a tool call until the conversation holds CALLS results, then,
//! after HOLD_MS, with a last text.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::answer;

/// The server's process; it ends with this.
pub(crate) struct ModelServer {
    child: Child,
    /// Where on 127.0.0.1 it listens.
    pub(crate) port: u16,
}

impl ModelServer {
    /// Starts one.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve-model")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the model server")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the model server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(Self { child, port: line.trim().parse().context("the model server says no port")? })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// The address of a model that calls the tool `calls` times and holds its last answer back for `hold_ms`.
pub(crate) fn base_url(port: u16, calls: usize, hold_ms: u64) -> String {
    format!("http://127.0.0.1:{port}/{calls}/{hold_ms}")
}

/// Serves until standard input ends, which it does with the parent.
pub(crate) fn serve() -> anyhow::Result<()> {
    crate::measure::raise_open_files()?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async {
                // A client that goes away ends its connection, and nothing else.
                let _ = converse(stream).await;
            });
        }
    })
}

/// Answers the requests of one connection.
async fn converse(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut received = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut received).await? {
        let events = if request.results < request.calls {
            answer::tool_call(request.results)
        } else {
            tokio::time::sleep(request.hold).await;
            answer::last_text()
        };
        stream.write_all(answer::http(&events).as_bytes()).await?;
    }
    Ok(())
}

/// What a request asks for.
struct Request {
    calls: usize,
    hold: Duration,
    results: usize,
}

async fn next_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> anyhow::Result<Option<Request>> {
    let whole = loop {
        if let Some(whole) = Whole::of(received) {
            break whole;
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    };
    let mut path = whole.head.split_whitespace().nth(1).unwrap_or_default().split('/').skip(1);
    let calls = path.next().context("no number of calls")?.parse()?;
    let hold = Duration::from_millis(path.next().context("no time to hold")?.parse()?);
    let body = received.get(..whole.end).unwrap_or_default();
    let results = String::from_utf8_lossy(body).matches("\"tool_result\"").count();
    received.drain(..whole.end);
    Ok(Some(Request { calls, hold, results }))
}

/// A request that is there as a whole.
struct Whole {
    head: String,
    end: usize,
}

impl Whole {
    /// The first request in `received`; `None` while something of it is missing.
    fn of(received: &[u8]) -> Option<Self> {
        let head_end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(received.get(..head_end)?).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let end = head_end + length?.trim().parse::<usize>().ok()?;
        (received.len() >= end).then_some(Self { head, end })
    }
}
