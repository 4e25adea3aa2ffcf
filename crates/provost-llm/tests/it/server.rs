//! A server that speaks HTTP/1.1 byte by byte, so that an answer can be cut, stalled and split anywhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
const FLOOD_BYTES_MAX: usize = 100_000_000;
pub(crate) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_head\r\ntransfer-encoding: chunked\r\n\r\n";

/// Makes a response for a request.
pub(crate) type Answers = Arc<dyn Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync>;

/// The server's action after it has read a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Sends these bytes and waits for the next request on the connection.
    Whole(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Cut(Vec<u8>),
    /// Sends these bytes and waits until the client closes the connection.
    Hold(Vec<u8>),
    /// Closes the connection with an error instead of an end.
    Reset,
    /// Sends these bytes and then closes the connection with an error.
    Broken(Vec<u8>),
    /// Sends the response to the request, and waits for the next one on the connection.
    By(Answers),
    /// Sends some bytes and then repeats others, until the client closes the connection.
    Flood(Flood),
}

/// An endless response. The server stops after a hundred megabytes, so that a client that doesn't stop fails.
#[derive(Clone)]
pub(crate) struct Flood {
    pub(crate) begun: Vec<u8>,
    pub(crate) again: Vec<u8>,
    /// The wait before each repetition.
    pub(crate) pause: Duration,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default, Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) accepted: usize,
    pub(crate) closed: usize,
    pub(crate) asked: Vec<ReceivedRequest>,
    /// Bytes sent in floods.
    pub(crate) flooded: usize,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: watch::Receiver<Seen>,
}

impl Server {
    /// Responds to each request with the next reply, and repeats the last one.
    pub(crate) async fn start(replies: impl Into<VecDeque<Reply>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = Arc::new(Mutex::new(replies.into()));
        let (tell, seen) = watch::channel(Seen::default());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tell.send_modify(|seen| seen.accepted += 1);
                let (tell, replies) = (tell.clone(), Arc::clone(&replies));
                tokio::spawn(async move {
                    serve(stream, &replies, &tell).await;
                    tell.send_modify(|seen| seen.closed += 1);
                });
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until `wanted` is true.
    pub(crate) async fn until(&self, wanted: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        tokio::time::timeout(DEADLINE, seen.wait_for(wanted)).await.expect("in time").unwrap();
    }
}

async fn serve(mut stream: TcpStream, replies: &Mutex<VecDeque<Reply>>, tell: &watch::Sender<Seen>) {
    stream.set_nodelay(true).unwrap();
    while let Some(asked) = read_request(&mut stream).await {
        tell.send_modify(|seen| seen.asked.push(asked.clone()));
        let reply = {
            let mut replies = replies.lock().unwrap();
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
        };
        match reply.expect("a reply") {
            Reply::Whole(bytes) => stream.write_all(&bytes).await.unwrap(),
            Reply::By(answer) => stream.write_all(&answer(&asked)).await.unwrap(),
            Reply::Cut(bytes) => return stream.write_all(&bytes).await.unwrap(),
            Reply::Reset => return drop(resetting(stream)),
            Reply::Broken(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return drop(resetting(stream));
            }
            Reply::Hold(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return closed(&mut stream).await;
            }
            Reply::Flood(flood) => return flooding(stream, &flood, tell).await,
        }
    }
}

/// Waits until the client closes the connection.
async fn closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = [0; 64];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn flooding(stream: TcpStream, flood: &Flood, tell: &watch::Sender<Seen>) {
    let (mut read, mut write) = stream.into_split();
    let sending = async {
        let mut sent = write.write_all(&flood.begun).await;
        while sent.is_ok() && tell.borrow().flooded < FLOOD_BYTES_MAX {
            tokio::time::sleep(flood.pause).await;
            sent = write.write_all(&flood.again).await;
            tell.send_modify(|seen| seen.flooded += flood.again.len());
        }
    };
    tokio::select! {
        () = sending => {}
        () = closed(&mut read) => {}
    }
}

/// A socket that is closed with a reset.
fn resetting(stream: TcpStream) -> TcpStream {
    #[expect(deprecated, reason = "a linger of zero doesn't block, which is what the deprecation warns of")]
    stream.set_linger(Some(Duration::ZERO)).unwrap();
    stream
}

async fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.expect("a content-length");
    while bytes.len() < end + length {
        assert!(stream.read_buf(&mut bytes).await.ok()? > 0, "the whole body");
    }
    Some(ReceivedRequest { head, body: bytes.split_off(end) })
}

/// `bytes` as one chunk of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// A whole streamed answer, in these chunks.
pub(crate) fn streamed<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = HEAD.as_bytes().to_vec();
    for bytes in chunks {
        out.extend(chunk(bytes));
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// A response with a body of known length; `headers` are lines ended by CRLF.
pub(crate) fn plain(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}
