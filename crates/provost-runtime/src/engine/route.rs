//! One address on this machine for several servers, of which each may be gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// How long a server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Connections at a time; later ones wait.
const CONNECTIONS_MAX: usize = 256;

/// Passes each connection to an address of this machine on to the first server that accepts one; ends with its drop.
pub(super) struct Route {
    address: String,
    task: AbortHandle,
}

impl Route {
    /// A way to `servers`, each `HOST:PORT`, in this order.
    ///
    /// # Errors
    /// When no address can be listened on.
    pub(super) async fn to(servers: Vec<String>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let task = tokio::spawn(pass_on(listener, servers.into())).abort_handle();
        Ok(Self { address, task })
    }

    /// Its address, `HOST:PORT`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(listener: TcpListener, servers: Arc<[String]>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(connect(client, Arc::clone(&servers)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(mut client: TcpStream, servers: Arc<[String]>) {
    // Small messages wait for nothing.
    let _ = client.set_nodelay(true);
    for server in servers.iter() {
        if let Ok(Ok(mut server)) = timeout(CONNECT_MAX, TcpStream::connect(server)).await {
            let _ = server.set_nodelay(true);
            // However it ends, the client sees its connection closed.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::Route;

    /// A server that answers with its name, and closes.
    async fn server(name: &'static [u8]) -> (String, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a listener");
        let address = listener.local_addr().expect("an address").to_string();
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(name).await;
            }
        };
        (address, tokio::spawn(serve))
    }

    async fn asked(route: &Route) -> String {
        let mut stream = TcpStream::connect(route.address()).await.expect("a connection");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn a_server_that_is_gone_is_passed_over() {
        let (first, serving) = server(b"first").await;
        let (second, _serving) = server(b"second").await;
        let route = Route::to(vec![first, second]).await.expect("a route");
        assert_eq!(asked(&route).await, "first");
        serving.abort();
        assert!(serving.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(asked(&route).await, "second");
    }
}
