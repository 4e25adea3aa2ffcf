//! A local server that answers as the providers do, in a process of its own, so that its cost isn't counted.
//!
//! `POST /SCRIPT/HOLD_MS/…` is answered in the format that its path belongs to: with the script's answer, and
//! after HOLD_MS with a last text. `GET /` returns how many connections and bytes of bodies came since the last
//! such request. `POST /paced/PIECES/…` is answered with a text of 1 MB/s in that number of pieces, `POST /open/0/…`
//! with a beginning whose rest never comes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use provost_llm::WireFormat;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::answer;
use crate::gateway::{PIECE_BYTES, PIECES_A_SECOND};
use crate::model_script::{Next, Script};

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
static BODY_BYTES: AtomicUsize = AtomicUsize::new(0);

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

    /// The connections and the bytes of bodies since this was last asked.
    pub(crate) fn received(&self) -> anyhow::Result<(usize, usize)> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let mut numbers = answer.split_whitespace().map(str::parse::<usize>);
        let mut next = || numbers.next().context("the model server tells nothing");
        // This connection isn't one of theirs.
        Ok((next()??.saturating_sub(1), next()??))
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// The address of a model that calls the tool `calls` times and holds its last answer back for `hold_ms`.
pub(crate) fn base_url(port: u16, calls: usize, hold_ms: u64) -> String {
    format!("http://127.0.0.1:{port}/{calls}/{hold_ms}")
}

/// The address of a model that answers by `script`.
pub(crate) fn scripted_url(port: u16, script: &Script) -> String {
    format!("http://127.0.0.1:{port}/{script}/0")
}

/// The address of a model that answers with a text of 1 MB/s, in this many pieces.
pub(crate) fn paced_url(port: u16, pieces: usize) -> String {
    format!("http://127.0.0.1:{port}/paced/{pieces}")
}

/// The address of a model whose answer begins and never ends.
pub(crate) fn open_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/open/0")
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
            CONNECTIONS.fetch_add(1, Ordering::Relaxed);
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
        let (wire, script, hold, results) = match request {
            Request::Answer { wire, script, hold, results } => (wire, script, hold, results),
            Request::Paced(pieces) => {
                pace(&mut stream, pieces).await?;
                continue;
            }
            Request::Open => {
                stream.write_all(answer::http_head().as_bytes()).await?;
                stream.write_all(answer::chunk(&answer::long_text(1).begin).as_bytes()).await?;
                // Until the client goes away.
                while stream.read(&mut [0]).await? > 0 {}
                return Ok(());
            }
            Request::Received => {
                let (connections, bytes) = (&CONNECTIONS, &BODY_BYTES);
                let told = format!(
                    "{} {}",
                    connections.swap(0, Ordering::Relaxed),
                    bytes.swap(0, Ordering::Relaxed)
                );
                stream.write_all(told.as_bytes()).await?;
                return Ok(());
            }
        };
        let (next, each) = (script.next(results), Duration::from_millis(script.each_ms));
        let wait = if next == Next::LastText { hold + each } else { each };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let events = match next {
            Next::Agents(agent, number) => answer::agents(wire, agent, number)?,
            Next::Call => answer::tool_call(wire, results),
            Next::LastText => answer::last_text(wire),
        };
        stream.write_all(answer::http(&events).as_bytes()).await?;
    }
    Ok(())
}

/// Writes a text of 1 MB/s.
async fn pace(stream: &mut TcpStream, pieces: usize) -> anyhow::Result<()> {
    let text = answer::long_text(PIECE_BYTES);
    let piece = answer::chunk(&text.piece);
    let pause = Duration::from_secs(1).div_f64(crate::sample::count(PIECES_A_SECOND));
    stream.write_all(answer::http_head().as_bytes()).await?;
    stream.write_all(answer::chunk(&text.begin).as_bytes()).await?;
    let mut ticks = tokio::time::interval(pause);
    for _ in 0..pieces {
        ticks.tick().await;
        stream.write_all(piece.as_bytes()).await?;
    }
    stream.write_all(answer::chunk(&text.end).as_bytes()).await?;
    stream.write_all(answer::chunk("").as_bytes()).await?;
    Ok(())
}

/// What a request asks for.
enum Request {
    /// What has come so far.
    Received,
    /// A text of 1 MB/s in this number of pieces.
    Paced(usize),
    /// A beginning without an end.
    Open,
    Answer {
        wire: WireFormat,
        script: Script,
        hold: Duration,
        results: usize,
    },
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
    let path = whole.head.split_whitespace().nth(1).unwrap_or_default();
    if path == "/" {
        return Ok(Some(Request::Received));
    }
    let wire = wire_of(path).with_context(|| format!("no format has the path {path}"))?;
    let mut path = path.split('/').skip(1);
    let script = path.next().context("no script")?;
    if script == "paced" || script == "open" {
        let number = path.next().context("no number of pieces")?.parse()?;
        let request = if script == "open" { Request::Open } else { Request::Paced(number) };
        received.drain(..whole.end);
        return Ok(Some(request));
    }
    let script = script.parse()?;
    let hold = Duration::from_millis(path.next().context("no time to hold")?.parse()?);
    let body = received.get(..whole.end).unwrap_or_default();
    let results = String::from_utf8_lossy(body).matches(answer::result_mark(wire)).count();
    BODY_BYTES.fetch_add(whole.end.saturating_sub(whole.head.len()), Ordering::Relaxed);
    received.drain(..whole.end);
    Ok(Some(Request::Answer { wire, script, hold, results }))
}

fn wire_of(path: &str) -> Option<WireFormat> {
    let ends = [
        ("/v1/messages", WireFormat::Anthropic),
        ("/v1/responses", WireFormat::OpenaiResponses),
        ("/v1/chat/completions", WireFormat::OpenaiChat),
        (":streamgeneratecontent?alt=sse", WireFormat::Gemini),
    ];
    ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
}

/// A complete request.
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
