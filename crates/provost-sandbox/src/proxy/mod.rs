//! The proxy of a box: the only way out of it, to the hosts that its policy names.
//!
//! It accepts on a listener in the box's network, from outside, so that no path and no port of the host leads to it,
//! and it knows which agent asks.

mod head;
mod hello;
mod hosts;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use head::{Head, Kind};
pub use hosts::HostPattern;
use hosts::{allowing, is_public, listed_address};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long a client may take to send it.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// How long a client may take to begin with TLS once it is connected.
const HELLO_MAX: Duration = Duration::from_secs(30);
/// Connections of one box at a time; further ones wait.
const CONNECTIONS_MAX: usize = 256;
/// Denials that are kept until they are taken.
const DENIALS_MAX: usize = 20;

/// The variables that lead programs to a proxy.
const VARIABLES: &[&str] = &[
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "CARGO_HTTP_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "PIP_PROXY",
];

/// The names of the loopback interface, which is the box's own.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The environment of programs behind a proxy at this port. A name of the loopback interface that is listed leads to the
/// host's.
pub(crate) fn environment(port: u16, hosts: &[HostPattern]) -> Vec<(String, String)> {
    let address = format!("http://127.0.0.1:{port}");
    let is_listed = |name: &str| hosts.iter().any(|pattern| pattern.matches(name));
    let local = LOCAL.into_iter().filter(|name| !is_listed(name)).collect::<Vec<_>>().join(",");
    let proxies = VARIABLES.iter().map(|name| ((*name).to_owned(), address.clone()));
    proxies.chain(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), local.clone()))).collect()
}

/// What a proxy has denied, until it is taken.
#[derive(Debug, Default)]
pub(crate) struct Denials(Mutex<VecDeque<String>>);

impl Denials {
    fn note(&self, denial: String) {
        tracing::info!(%denial, "the sandbox's proxy");
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&denial) && all.len() < DENIALS_MAX {
            all.push_back(denial);
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

/// What one proxy lets through.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) denials: Arc<Denials>,
}

/// What happens to a connection from a box.
#[derive(Debug)]
pub(crate) enum Inlet {
    /// The proxy's rules decide.
    Proxy(Proxy),
    /// It leads to this address of the host, whatever is sent.
    Address(SocketAddr),
}

impl Inlet {
    async fn serve_one(&self, mut client: TcpStream) -> io::Result<()> {
        match self {
            Self::Proxy(proxy) => proxy.serve_one(client).await,
            Self::Address(address) => {
                let mut server = TcpStream::connect(address).await?;
                // Answers of models come in small pieces.
                client.set_nodelay(true)?;
                server.set_nodelay(true)?;
                copy_bidirectional(&mut client, &mut server).await.map(drop)
            }
        }
    }
}

/// Serves connections until it is dropped.
pub(crate) async fn serve(inlet: Inlet, listener: std::net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let inlet = Arc::new(inlet);
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut clients = tokio::task::JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return Ok(()) };
        while clients.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let inlet = Arc::clone(&inlet);
        clients.spawn(async move {
            let _slot = slot;
            if let Err(error) = inlet.serve_one(client).await {
                tracing::debug!(%error, "a connection from a sandbox");
            }
        });
    }
}

impl Proxy {
    async fn serve_one(&self, mut client: TcpStream) -> io::Result<()> {
        let Ok(read) = timeout(HEAD_TIME_MAX, read_head(&mut client)).await else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        let (bytes, length) = read?;
        let Some(head) = Head::parse(bytes.get(..length).unwrap_or_default()) else {
            return refuse(&mut client, "400 Bad Request", "this isn't a request to a proxy").await;
        };
        let address = match self.admitted(&head.host, head.port).await {
            Ok(address) => address,
            Err(denial) => {
                self.denials.note(denial.clone());
                return refuse(&mut client, "403 Forbidden", &denial).await;
            }
        };
        let rest = bytes.get(length..).unwrap_or_default();
        let server = match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(server)) => server,
            Ok(Err(error)) => {
                return refuse(&mut client, "502 Bad Gateway", &format!("{}: {error}", head.host)).await;
            }
            Err(_) => return refuse(&mut client, "504 Gateway Timeout", "no answer in time").await,
        };
        match &head.kind {
            Kind::Tunnel => self.tunnel(client, server, &head, rest).await,
            Kind::Request { text, body_bytes } => pass(client, server, (text, *body_bytes), rest).await,
        }
    }

    /// The one address that a name and a port lead to, if the policy allows it; else the reason.
    async fn admitted(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        let what = format!("{host}:{port}");
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        if !allowing(&self.hosts, host, port) {
            return Err(format!("the network denies {what}: it isn't in sandbox.allow_hosts"));
        }
        if let Some(address) = literal {
            return Ok(SocketAddr::new(address, port));
        }
        let found = timeout(CONNECT_MAX, lookup_host((host, port))).await;
        let Ok(Ok(mut found)) = found else { return Err(format!("the network can't resolve {host}")) };
        let Some(address) = found.next() else { return Err(format!("the network can't resolve {host}")) };
        if is_public(address.ip()) || listed_address(&self.hosts, address.ip(), port) {
            return Ok(address);
        }
        Err(format!(
            "the network denies {what}: the name leads to {}, an address of this machine or of a private network, which \
             isn't in sandbox.allow_hosts",
            address.ip()
        ))
    }

    async fn tunnel(
        &self,
        mut client: TcpStream,
        mut server: TcpStream,
        head: &Head,
        rest: &[u8],
    ) -> io::Result<()> {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        let mut first = rest.to_vec();
        let named = timeout(HELLO_MAX, hello::server_name(&mut client, &mut first)).await;
        let Ok(named) = named else { return Err(io::ErrorKind::TimedOut.into()) };
        if let Some(objection) = named?.objection(&head.host, head.port) {
            self.denials.note(format!("the network denies {}:{}: {objection}", head.host, head.port));
            return Ok(());
        }
        server.write_all(&first).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    }
}

/// Reads up to the empty line after a head; all that was read, and the head's length.
async fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok((bytes, at.saturating_add(4)));
        }
        let count = client.read(&mut piece).await?;
        if count == 0 || bytes.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
}

async fn refuse(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("provost: {why}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await
}

/// Passes one request on, and no more: a second one could name another host.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    (text, body_bytes): (&str, u64),
    rest: &[u8],
) -> io::Result<()> {
    server.write_all(text.as_bytes()).await?;
    let first = usize::try_from(body_bytes).unwrap_or(usize::MAX).min(rest.len());
    server.write_all(rest.get(..first).unwrap_or_default()).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut body = (&mut from_client).take(body_bytes.saturating_sub(first as u64));
    let there = tokio::io::copy(&mut body, &mut to_server);
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::try_join!(there, back)?;
    to_client.shutdown().await
}
