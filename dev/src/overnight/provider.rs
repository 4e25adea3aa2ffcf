//! A provider on loopback with the Chat Completions API and a series of failures: phase by phase it is overloaded,
//! unreachable, slow, silent, refuses the key, or reports a spent quota.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// One phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Well,
    /// 529, without a retry delay.
    Overloaded,
    /// 429, with a retry delay of two seconds.
    Limited,
    /// Nothing listens.
    Refused,
    /// Its name is unknown.
    Unresolved,
    /// 401.
    WrongKey,
    /// Answers break off in the middle.
    Cut,
    /// Answers come in pieces with pauses.
    Slow,
    /// Requests are accepted, and no answer comes.
    Silent,
    /// 429, because the quota is spent.
    UsedUp,
}

const PARTS: u32 = 14;

/// The night, in parts of the same length. Agents are done in the last two.
const NIGHT: [Phase; PARTS as usize] = [
    Phase::Well,
    Phase::Overloaded,
    Phase::Well,
    Phase::Refused,
    Phase::Unresolved,
    Phase::Well,
    Phase::WrongKey,
    Phase::Slow,
    Phase::Silent,
    Phase::Limited,
    Phase::UsedUp,
    Phase::Cut,
    Phase::Well,
    Phase::Well,
];

/// The schedule of the phases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Night {
    began: Instant,
    part: Duration,
    /// Whether names can be made unknown here.
    names: bool,
}

impl Night {
    pub(super) fn of(length: Duration, names: bool) -> Self {
        Self { began: Instant::now(), part: length / PARTS, names }
    }

    pub(super) const fn part(&self) -> Duration {
        self.part
    }

    /// How many parts have passed.
    fn parts(&self) -> u32 {
        let parts = self.began.elapsed().as_millis() / self.part.as_millis().max(1);
        u32::try_from(parts).unwrap_or(u32::MAX)
    }

    pub(super) fn phase(&self) -> Phase {
        let phase = NIGHT.get(self.parts() as usize).copied().unwrap_or(Phase::Well);
        if phase == Phase::Unresolved && !self.names { Phase::Refused } else { phase }
    }

    /// The remaining time of the current part.
    fn left(&self) -> Duration {
        self.part.saturating_mul(self.parts().saturating_add(1)).saturating_sub(self.began.elapsed())
    }
}

/// The usage in complete answers.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) tokens: AtomicU64,
    pub(super) answers: AtomicU64,
    /// Requests of all phases, by their result.
    pub(super) requests: Mutex<Vec<Phase>>,
}

pub(super) struct Provider {
    pub(super) port: u16,
    pub(super) sent: Arc<Sent>,
}

impl Provider {
    /// Serves until the process ends.
    pub(super) fn start(night: Night) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("can't listen on loopback")?;
        let address = listener.local_addr()?;
        let sent = Arc::new(Sent::default());
        let shared = Arc::clone(&sent);
        thread::spawn(move || listen(night, listener, address, &shared));
        Ok(Self { port: address.port(), sent })
    }
}

/// Accepts connections, except in the phase in which nothing listens.
fn listen(night: Night, first: TcpListener, address: SocketAddr, sent: &Arc<Sent>) {
    let mut listener = Some(first);
    loop {
        if night.phase() == Phase::Refused {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).ok();
        }
        let Some(stream) = listener.as_ref().and_then(accepted) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let sent = Arc::clone(sent);
        // A client that disconnects ends only its connection.
        thread::spawn(move || serve(night, stream, &sent));
    }
}

fn accepted(listener: &TcpListener) -> Option<TcpStream> {
    listener.set_nonblocking(true).ok()?;
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(false).ok()?;
    Some(stream)
}

fn serve(night: Night, mut stream: TcpStream, sent: &Sent) -> io::Result<()> {
    let body = read_request(&mut stream)?;
    let phase = night.phase();
    if let Ok(mut requests) = sent.requests.lock() {
        requests.push(phase);
    }
    match phase {
        Phase::Overloaded => refuse(stream, "529 Overloaded", "", ("overloaded_error", "We are overloaded.")),
        Phase::Limited => {
            let error = ("rate_limit_exceeded", "Slower, please.");
            refuse(stream, "429 Too Many Requests", "retry-after: 2\r\n", error)
        }
        Phase::WrongKey => {
            refuse(stream, "401 Unauthorized", "", ("invalid_api_key", "Incorrect API key provided."))
        }
        Phase::UsedUp => {
            let error = ("insufficient_quota", "You exceeded your current quota.");
            refuse(stream, "429 Too Many Requests", "", error)
        }
        // Until the client gives up, or the phase is over.
        Phase::Silent => {
            stream.set_read_timeout(Some(night.left().max(Duration::from_millis(1))))?;
            let _ = stream.read(&mut [0]);
            Ok(())
        }
        Phase::Refused | Phase::Unresolved => Ok(()),
        Phase::Well | Phase::Cut | Phase::Slow => answer(night, phase, stream, &body, sent),
    }
}

fn refuse(
    mut stream: TcpStream,
    status: &str,
    header: &str,
    (code, message): (&str, &str),
) -> io::Result<()> {
    let body = json!({"error": {"message": message, "type": code, "code": code}}).to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn answer(night: Night, phase: Phase, mut stream: TcpStream, body: &[u8], sent: &Sent) -> io::Result<()> {
    let request: Value = serde_json::from_slice(body)?;
    let delta = super::agent::answer(&request, night.parts() + 2 >= PARTS, night.part());
    let finish = if delta.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let prompt = body.len() as u64 / 4;
    let events = [
        json!({"model": "night", "choices": [{"index": 0, "delta": delta}]}),
        json!({"model": "night", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}),
        json!({"model": "night", "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 30}}),
    ];
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for (place, event) in events.iter().enumerate() {
        if phase == Phase::Cut && place == 1 {
            return Ok(());
        }
        if phase == Phase::Slow {
            thread::sleep(night.part() / 10);
        }
        write!(stream, "data: {event}\n\n")?;
        stream.flush()?;
    }
    stream.write_all(b"data: [DONE]\n\n")?;
    sent.tokens.fetch_add(prompt + 30, Ordering::Relaxed);
    sent.answers.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The body of a request.
fn read_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body)?;
    Ok(body)
}
