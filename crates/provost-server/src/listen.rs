//! The sockets, and what a client may take up.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, OneTimeLink, Token, secret};
use crate::app::{App, Hosts, Listen, ServerOptions};
use crate::peer::{Peer, Way};
use crate::{api, page, tls};

/// Connections at the same time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// How long a client may take for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long answers may take after the server was told to end.
const ENDING_MAX: Duration = Duration::from_secs(3);
/// The pause after a connection couldn't be accepted, as where too many files are open.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// Letters of the page's own host name.
const LABEL_LETTERS: usize = 16;

/// Why a server can't be started.
#[derive(Debug, Error)]
pub enum ServerError {
    /// An address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Another server listens on the socket.
    #[error("another server listens on {}", path.display())]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// The certificate or its key can't be used.
    #[error("{}: {why}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The system gives no randomness.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl From<getrandom::Error> for ServerError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

/// A server that listens, and answers once it is [run](Server::run).
pub struct Server {
    app: Arc<App>,
    token: Token,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    #[cfg(unix)]
    socket: Option<Socket>,
    address: SocketAddr,
    stop: CancellationToken,
}

impl Server {
    /// Listens as the options say, and on the Unix socket if one is given, which only this user may connect to.
    ///
    /// # Errors
    /// [`ServerError`] when an address is in use or can't be listened on.
    pub async fn bind(options: ServerOptions) -> Result<Self, ServerError> {
        let (wanted, tls) = match &options.listen {
            Listen::Loopback(port) => (SocketAddr::from((Ipv4Addr::LOCALHOST, *port)), None),
            Listen::Tls { address, files, .. } => (*address, Some(tls::acceptor(files)?)),
        };
        let cant = |source| ServerError::Listen { address: wanted.to_string(), source };
        // Another server of these runs is named before its port is.
        #[cfg(unix)]
        let socket = options.socket.as_deref().map(Socket::bind).transpose()?;
        let listener = TcpListener::bind(wanted).await.map_err(cant)?;
        let address = listener.local_addr().map_err(cant)?;
        let hosts = hosts(&options.listen, address.port())?;
        let (access, token) = Access::new()?;
        let stop = CancellationToken::new();
        let app = Arc::new(App::new(&options, access, hosts, stop.clone()));
        Ok(Self {
            app,
            token,
            listener,
            tls,
            #[cfg(unix)]
            socket,
            address,
            stop,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What programs send with each request.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// What makes links for as long as the server runs.
    #[must_use]
    pub fn links(&self) -> Links {
        Links(self.app.clone())
    }

    /// Answers requests until `stop` fires; then ends streams, and connections within seconds. Runs go on: other
    /// processes hold them.
    pub async fn run(self, stop: CancellationToken) {
        let router = router(self.app);
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut open = JoinSet::new();
        loop {
            let Ok(permit) = connections.clone().acquire_owned().await else { break };
            tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, client)) => {
                        // Small answers leave at once.
                        let _ = stream.set_nodelay(true);
                        let accepted = Accepted { stream, client, server: self.address, tls: self.tls.clone() };
                        let served = accepted.serve(router.clone(), self.stop.clone());
                        open.spawn(async move {
                            served.await;
                            drop(permit);
                        });
                    }
                    Err(error) => after(&error).await,
                },
                accepted = accept_unix(self.socket.as_ref()) => match accepted {
                    Ok(Some((stream, peer))) => {
                        let router = router.clone().layer(Extension(peer)).layer(Extension(Way::Socket));
                        let served = serve(stream, router, self.stop.clone());
                        open.spawn(async move {
                            served.await;
                            drop(permit);
                        });
                    }
                    Ok(None) => {}
                    Err(error) => after(&error).await,
                },
                Some(_) = open.join_next() => {}
            }
        }
        self.stop.cancel();
        let ended = async { while open.join_next().await.is_some() {} };
        if tokio::time::timeout(ENDING_MAX, ended).await.is_err() {
            open.shutdown().await;
        }
    }
}

/// By which names the server is asked.
fn hosts(listen: &Listen, port: u16) -> Result<Hosts, ServerError> {
    let programs = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    Ok(match listen {
        Listen::Loopback(_) => {
            let label = secret()?.get(..LABEL_LETTERS).unwrap_or_default().to_owned();
            Hosts { scheme: "http", page: format!("{label}.localhost:{port}"), programs }
        }
        Listen::Tls { names, .. } => {
            let names = names.iter().map(|name| format!("{}:{port}", name.to_ascii_lowercase()));
            let names = names.collect::<Vec<_>>();
            let page = names.first().cloned().unwrap_or_default();
            Hosts { scheme: "https", page, programs: names.into_iter().chain(programs).collect() }
        }
    })
}

/// A connection of TCP.
struct Accepted {
    stream: TcpStream,
    client: SocketAddr,
    server: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Accepted {
    async fn serve(self, router: Router, stop: CancellationToken) {
        let Self { stream, client, server, tls } = self;
        let looked = tokio::task::spawn_blocking(move || Peer::of_connection(client, server));
        // A look that fails allows no one to act.
        let peer = looked.await.unwrap_or(Peer::OfRun);
        let router = router.layer(Extension(peer)).layer(Extension(Way::Tcp));
        let Some(tls) = tls else { return serve(stream, router, stop).await };
        match tokio::time::timeout(HEAD_MAX, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve(stream, router, stop).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection isn't secure"),
            Err(_) => tracing::debug!("a connection took too long to become secure"),
        }
    }
}

async fn after(error: &io::Error) {
    tracing::warn!(%error, "a connection can't be accepted");
    tokio::time::sleep(AFTER_ERROR).await;
}

/// Makes links that sign browsers in.
#[derive(Clone)]
pub struct Links(Arc<App>);

impl Links {
    /// A new link.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn issue(&self) -> Result<OneTimeLink, ServerError> {
        let code = self.0.access.issue_link()?;
        Ok(self.0.link(&code))
    }
}

fn router(app: Arc<App>) -> Router {
    let guarded = axum::middleware::from_fn_with_state(app.clone(), crate::guard::guard);
    Router::new()
        .merge(api::routes())
        .merge(page::routes())
        .fallback(api::no_such_route)
        .method_not_allowed_fallback(api::no_such_method)
        .layer(axum::extract::DefaultBodyLimit::max(api::BODY_BYTES_MAX))
        .layer(guarded)
        .with_state(app)
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    stop: CancellationToken,
) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = connection.with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke");
    }
}

/// A Unix socket, which is removed in the end.
#[cfg(unix)]
struct Socket {
    listener: tokio::net::UnixListener,
    path: PathBuf,
}

#[cfg(unix)]
impl Socket {
    fn bind(path: &Path) -> Result<Self, ServerError> {
        use std::os::unix::fs::PermissionsExt as _;
        let cant = |source| ServerError::Listen { address: path.display().to_string(), source };
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ServerError::SocketInUse { path: path.to_owned() });
        }
        // One that a killed server left.
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cant(error)),
        }
        let listener = tokio::net::UnixListener::bind(path).map_err(cant)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(cant)?;
        Ok(Self { listener, path: path.to_owned() })
    }
}

#[cfg(unix)]
impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The next connection of a process of this user; nothing for one of another's, which is closed. Pending without a
/// socket.
#[cfg(unix)]
async fn accept_unix(socket: Option<&Socket>) -> io::Result<Option<(tokio::net::UnixStream, Peer)>> {
    let Some(socket) = socket else { return std::future::pending().await };
    let (stream, _) = socket.listener.accept().await?;
    let client = stream.peer_cred()?;
    let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&socket.path)?);
    if client.uid() != own {
        return Ok(None);
    }
    let process = client.pid().and_then(|process| u32::try_from(process).ok());
    Ok(Some((stream, process.map_or(Peer::Other, Peer::of_process))))
}
